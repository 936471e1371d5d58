//! Ranks in containers, through the command line of docker or podman, which agree on all that is needed here.
//!
//! The process that represents a rank is the attached client. It carries the output, but the
//! container can outlive it: stopping, adopting and asking for the exit status all go to the runtime, by the container's
//! name.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rota_transport::value::Text;
use rustix::process::{Pid, PidfdFlags, WaitStatus};

use super::account::Account;
use super::environment::{self, Places};
use super::process::bind_before_exec;
use super::spec::{ContainerSpec, LaunchSpec, Limits, Mount, Pull, Rendezvous};
use super::{LaunchError, Launcher, Rank, Workplace, make_folders};
use crate::clock::now_ms;
use crate::shim::record::ExitHow;

/// A runtime is asked to kill at most this often.
const KILL_EVERY_MS: u64 = 1_000;

/// The launcher of containers.
pub struct Container {
    spec: LaunchSpec,
    container: ContainerSpec,
    place: Workplace,
    killed_at_ms: u64,
    account: Option<Account>,
}

/// What a runtime reports about a container.
struct Inspected {
    is_running: bool,
    code: i32,
    was_over_memory: bool,
}

impl Container {
    /// Nothing is made or started yet.
    pub fn new(spec: LaunchSpec, container: ContainerSpec, place: Workplace) -> Self {
        Container { spec, container, place, killed_at_ms: 0, account: None }
    }

    /// The name of a rank's container: the same for the shim that made it and the one that adopts it.
    pub fn name(&self, local: u32) -> String {
        // Two agents of one host may serve two clusters with the same numbers.
        let run_dir = self.place.run_dir.as_os_str().as_encoded_bytes();
        let mark = run_dir
            .iter()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        let attempt = self.spec.attempt;
        let rank = self.spec.gang.first_rank + local;
        format!("rota-{}-{}-{rank}-{mark:08x}", attempt.job, attempt.incarnation)
    }

    fn names(&self) -> impl Iterator<Item = (u32, String)> + '_ {
        (0..self.spec.gang.n_ranks).map(|local| (local, self.name(local)))
    }

    fn client(&self) -> Result<Command, LaunchError> {
        let (program, options) = self.container.client.split_first().ok_or(LaunchError::NoCommand)?;
        let mut command = Command::new(program);
        command.args(options).stdin(Stdio::null());
        Ok(command)
    }

    /// Runs the client to its end.
    fn ask(&self, words: &[&str]) -> Result<Output, LaunchError> {
        let mut command = self.client()?;
        let program = command.get_program().to_string_lossy().into_owned();
        command.args(words).output().map_err(|source| LaunchError::Start { program, source })
    }

    /// Runs the client; it is an error if it fails.
    fn must(&self, words: &[&str]) -> Result<String, LaunchError> {
        let output = self.ask(words)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let command = format!("{} {}", self.container.client.join(" "), words.join(" "));
        Err(LaunchError::Client { command, why })
    }

    fn inspect(&self, name: &str) -> Result<Inspected, LaunchError> {
        let format = "{{.State.Running}} {{.State.ExitCode}} {{.State.OOMKilled}}";
        let report = self.must(&["container", "inspect", "--format", format, name])?;
        let mut words = report.split_whitespace();
        let (running, code, over) = (words.next(), words.next(), words.next());
        Ok(Inspected {
            is_running: running == Some("true"),
            code: code.and_then(|code| code.parse().ok()).unwrap_or(-1),
            was_over_memory: over == Some("true"),
        })
    }

    fn create(&self, local: u32, rendezvous: &Rendezvous) -> Result<(), LaunchError> {
        let job_socket = self.place.job_socket(&self.spec.run_as);
        let places = Places { run_dir: &self.place.run_dir, job_socket: &job_socket, rendezvous };
        let mut command = self.client()?;
        command.args(["create", "--name", &self.name(local), "--pull=never"]);
        let environment =
            Environment::write(&self.place.dir, environment::given(&self.spec, local, &places))?;
        command.args(environment.options());
        command.args(self.mounts().iter().map(mount_option));
        command.arg(format!("--workdir={}", self.spec.directory.display()));
        if !self.container.network.is_empty() {
            command.arg(format!("--network={}", self.container.network));
        }
        command.args(self.gpu_options()).args(self.limit_options()).args(self.account_options());
        command.args(&self.container.options);
        command.arg(&self.container.image).args(&self.spec.command);
        let program = command.get_program().to_string_lossy().into_owned();
        let output = command.output().map_err(|source| LaunchError::Start { program, source })?;
        if output.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(LaunchError::Client { command: format!("{} create", self.container.client.join(" ")), why })
    }

    /// What the job asked for, then what every job needs: its directories and its socket, at their own paths.
    fn mounts(&self) -> Vec<Mount> {
        let own = [&self.spec.directory, &self.spec.checkpoint_dir, &self.spec.data_dir];
        let mut mounts = self.container.mounts.clone();
        for path in own.into_iter().cloned().chain([self.place.job_socket(&self.spec.run_as)]) {
            if path.exists() && path.parent().is_some() && mounts.iter().all(|m| m.container != path) {
                mounts.push(Mount { host: path.clone(), container: path, is_read_only: false });
            }
        }
        mounts
    }

    fn gpu_options(&self) -> Vec<String> {
        let gpus: Vec<String> = self.spec.grant.gpus.as_slice().iter().map(u32::to_string).collect();
        if gpus.is_empty() {
            return Vec::new();
        }
        let option = |flag: &str| match flag.contains("{gpu}") {
            true => gpus.iter().map(|gpu| flag.replace("{gpu}", gpu)).collect(),
            // Docker reads the value as comma-separated fields: the list needs quotes of its own.
            false => vec![flag.replace("{gpus}", &gpus.join(","))],
        };
        self.container.gpu_flag.split_whitespace().flat_map(option).collect()
    }

    /// The account, and no way from it to root: what a container mounts, it sees with the account's rights alone.
    fn account_options(&self) -> Vec<String> {
        let Some(account) = &self.account else { return Vec::new() };
        let mut options = vec![
            format!("--user={}:{}", account.uid, account.gid),
            "--cap-drop=ALL".to_owned(),
            "--security-opt=no-new-privileges".to_owned(),
        ];
        let others = account.groups.iter().filter(|group| **group != account.gid);
        options.extend(others.map(|group| format!("--group-add={group}")));
        options
    }

    /// A runtime mounts as root: each folder must be one that the account itself can reach. Colons separate the parts of a mount.
    fn check_mounts(&self) -> Result<(), LaunchError> {
        let own = [&self.spec.directory, &self.spec.checkpoint_dir, &self.spec.data_dir];
        if let Some(path) = own.into_iter().find(|path| path.to_string_lossy().contains(':')) {
            return Err(LaunchError::Mount(path.clone()));
        }
        let Some(account) = &self.account else { return Ok(()) };
        self.container.mounts.iter().try_for_each(|mount| account.check_reach(&mount.host))
    }

    fn limit_options(&self) -> Vec<String> {
        let grant = &self.spec.grant;
        if grant.limits == Limits::Told {
            return Vec::new();
        }
        let n_ranks = u64::from(self.spec.gang.n_ranks.max(1));
        let mut options = Vec::new();
        if grant.cpu_micro > 0 {
            options.push(format!("--cpus={}", (grant.cpu_micro / n_ranks) as f64 / 1e6));
        }
        if !grant.pinned.is_empty() {
            options.push(format!("--cpuset-cpus={}", grant.pinned));
        }
        if grant.mem_bytes > 0 {
            options.push(format!("--memory={}b", grant.mem_bytes / n_ranks));
        }
        options
    }

    /// Starts a client that stays as long as the container does.
    fn attend(&self, local: u32, words: &[&str], output: BorrowedFd<'_>) -> Result<Rank, LaunchError> {
        let mut command = self.client()?;
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |source: std::io::Error| LaunchError::Start { program: program.clone(), source };
        let copy = || output.try_clone_to_owned().map_err(failed);
        command.args(words).stdout(copy()?).stderr(copy()?);
        bind_before_exec(&mut command, Vec::new(), None, None);
        let pid = Pid::from_child(&command.spawn().map_err(failed)?);
        Ok(Rank { local, pid, ended: rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok() })
    }
}

impl Launcher for Container {
    fn run_as(&mut self, account: Account) {
        self.account = Some(account);
    }

    fn prepare(&mut self) -> Result<(), LaunchError> {
        make_folders(&self.spec, self.account.as_ref())?;
        self.check_mounts()?;
        let image = self.container.image.as_str();
        let is_here = || Ok::<_, LaunchError>(self.ask(&["image", "inspect", image])?.status.success());
        match self.container.pull {
            Pull::Always => self.must(&["pull", "--quiet", image]).map(drop),
            Pull::Missing if is_here()? => Ok(()),
            Pull::Missing => self.must(&["pull", "--quiet", image]).map(drop),
            Pull::Never if is_here()? => Ok(()),
            Pull::Never => Err(LaunchError::Client {
                command: format!("{} image inspect {image}", self.container.client.join(" ")),
                why: "the image is not on this node, and it must not be pulled".to_owned(),
            }),
        }
    }

    fn start(&mut self, rendezvous: &Rendezvous, output: BorrowedFd<'_>) -> Result<Vec<Rank>, LaunchError> {
        let start = |(local, name): (u32, String)| {
            self.create(local, rendezvous)?;
            self.attend(local, &["start", "--attach", "--sig-proxy=false", &name], output)
        };
        let ranks: Result<Vec<Rank>, LaunchError> = self.names().map(start).collect();
        if ranks.is_err() {
            self.clear();
        }
        ranks
    }

    fn adopt(&mut self, output: BorrowedFd<'_>) -> Result<Vec<Rank>, LaunchError> {
        let adopt = |(local, name): (u32, String)| match self.inspect(&name)?.is_running {
            true => self.attend(local, &["attach", "--no-stdin", "--sig-proxy=false", &name], output),
            false => self.attend(local, &["wait", &name], output),
        };
        self.names().map(adopt).collect()
    }

    fn ask_to_stop(&mut self, _ranks: &[Rank]) {
        for (_, name) in self.names() {
            // It is no error if one has ended; one that does not react is killed later.
            let _ = self.ask(&["kill", "--signal=TERM", &name]);
        }
    }

    fn kill(&mut self, _ranks: &[Rank]) {
        if now_ms() < self.killed_at_ms + KILL_EVERY_MS {
            return;
        }
        for (_, name) in self.names() {
            let _ = self.ask(&["kill", &name]);
        }
        self.killed_at_ms = now_ms();
    }

    fn exit_of(&self, rank: &Rank, status: WaitStatus) -> ExitHow {
        let name = self.name(rank.local);
        match self.inspect(&name) {
            // A runtime reports the end by a signal as 128 and the signal's number.
            Ok(Inspected { is_running: false, code: code @ 129..=192, .. }) => ExitHow::Signal(code - 128),
            Ok(Inspected { is_running: false, code, .. }) => ExitHow::Code(code),
            Ok(Inspected { is_running: true, .. }) => {
                let _ = self.ask(&["kill", &name]);
                ExitHow::Unknown(Text::cut(&format!("the client of container {name} was ended from outside")))
            }
            Err(error) => ExitHow::Unknown(Text::cut(&format!("{error} (its client ended with {status:?})"))),
        }
    }

    fn was_over_limit(&self) -> bool {
        self.names().any(|(_, name)| self.inspect(&name).is_ok_and(|report| report.was_over_memory))
    }

    fn resize(&mut self, cpu_micro: u64, mem_bytes: u64) -> Result<(), LaunchError> {
        (self.spec.grant.cpu_micro, self.spec.grant.mem_bytes) = (cpu_micro, mem_bytes);
        let options = self.limit_options();
        if options.is_empty() {
            return Ok(());
        }
        for (_, name) in self.names() {
            let words =
                ["update"].into_iter().chain(options.iter().map(String::as_str)).chain([name.as_str()]);
            self.must(&words.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    fn clear(&mut self) {
        for (_, name) in self.names() {
            // A container that was never made cannot be removed.
            let _ = self.ask(&["rm", "--force", &name]);
        }
    }
}

/// The variables of a rank, on their way into its container. The client runs as the agent's user, who may be root, so it must not find
/// them among its own (`LD_PRELOAD`, `DOCKER_CONFIG`): they are in a file that only this user may read, until the container is made.
struct Environment {
    file: PathBuf,
    /// Those that no line of a file can hold.
    with_lines: Vec<(String, String)>,
}

impl Environment {
    fn write(folder: &Path, variables: BTreeMap<String, String>) -> Result<Self, LaunchError> {
        if let Some(name) = variables.keys().find(|name| !is_variable(name)) {
            return Err(LaunchError::Variable(name.clone()));
        }
        let has_lines = |(_, value): &(String, String)| value.contains(['\n', '\r']);
        let (with_lines, plain): (Vec<_>, Vec<_>) = variables.into_iter().partition(has_lines);
        let text: String = plain.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        let file = folder.join("container.env");
        let written = rota_transport::private::file(&file).and_then(|mut open| {
            open.set_len(0)?;
            open.write_all(text.as_bytes())
        });
        let environment = Environment { file, with_lines };
        match written {
            Ok(()) => Ok(environment),
            Err(source) => Err(LaunchError::File { path: environment.file.clone(), source }),
        }
    }

    /// A value of several lines is in the process list while the container is made: a file has no way to write it.
    fn options(&self) -> impl Iterator<Item = String> {
        let of_file = format!("--env-file={}", self.file.display());
        let others = self.with_lines.iter().map(|(name, value)| format!("--env={name}={value}"));
        [of_file].into_iter().chain(others)
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Whether both clients take a line that begins with this name for this variable: they pass over remarks, refuse blanks, and take
/// their own variables where a name ends with a star.
fn is_variable(name: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "=#*".contains(c);
    !name.is_empty() && !name.contains(is_odd)
}

fn mount_option(mount: &Mount) -> String {
    let end = if mount.is_read_only { ":ro" } else { "" };
    format!("--volume={}:{}{end}", mount.host.display(), mount.container.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::tests::{RENDEZVOUS, spec};
    use std::os::unix::fs::PermissionsExt as _;

    fn container(gpu_flag: &str) -> Container {
        let container = ContainerSpec {
            client: vec!["docker".to_owned()],
            image: "image".to_owned(),
            pull: Pull::Never,
            mounts: Vec::new(),
            network: "host".to_owned(),
            gpu_flag: gpu_flag.to_owned(),
            options: Vec::new(),
        };
        let mut spec = spec();
        spec.grant.limits = Limits::Enforced;
        spec.grant.mem_bytes = 2_000_000_000;
        spec.grant.pinned = "0-3".parse().expect("CPUs");
        let place = Workplace { run_dir: PathBuf::from("/r"), dir: PathBuf::from("/r/attempts/7.1") };
        Container::new(spec, container, place)
    }

    #[test]
    fn gpus_are_handed_in_as_the_flag_says() {
        assert_eq!(container("--gpus=\"device={gpus}\"").gpu_options(), ["--gpus=\"device=0,1\""]);
        let each = container("--device=nvidia.com/gpu={gpu}").gpu_options();
        assert_eq!(each, ["--device=nvidia.com/gpu=0", "--device=nvidia.com/gpu=1"]);
        let files = container("--device=/dev/nvidiactl --device=/dev/nvidia{gpu}").gpu_options();
        assert_eq!(files, ["--device=/dev/nvidiactl", "--device=/dev/nvidia0", "--device=/dev/nvidia1"]);
        assert!(container("").gpu_options().is_empty());
    }

    /// A client that writes down what it was started with.
    fn spy(folder: &Path) -> Vec<String> {
        let script = "#!/bin/sh\nenv > $0.own\nfor word in \"$@\"; do echo \"$word\"; case $word in --env-file=*) \
                      stat -c %a ${word#*=} > $0.mode; cat ${word#*=} > $0.given;; esac; done > $0.words\n";
        let path = folder.join("client");
        std::fs::write(&path, script).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
        vec![path.display().to_string()]
    }

    #[test]
    fn the_variables_of_a_job_never_reach_the_client_itself() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut container = container("");
        container.container.client = spy(folder.path());
        container.place.dir = folder.path().to_owned();
        let variables =
            [("LD_PRELOAD_SPY", "/home/ada/evil.so"), ("DOCKER_CONFIG", "/home/ada"), ("SEVERAL", "a\nb")];
        container.spec.environment =
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        container.create(0, &RENDEZVOUS).expect("the client says yes");
        let read = |end: &str| {
            std::fs::read_to_string(folder.path().join(format!("client.{end}"))).expect("written")
        };
        let (own, given, words) = (read("own"), read("given"), read("words"));
        for name in ["LD_PRELOAD_SPY", "DOCKER_CONFIG", "SEVERAL", "RANK", "ROTA_JOB"] {
            assert!(!own.contains(name), "{name} is the client's:\n{own}");
        }
        assert!(
            given.contains("LD_PRELOAD_SPY=/home/ada/evil.so\n") && given.contains("RANK=0\n"),
            "{given}"
        );
        assert!(!words.contains("evil") && words.contains("--env=SEVERAL=a\nb\n"), "{words}");
        assert_eq!(read("mode"), "600\n");
        assert!(!folder.path().join("container.env").exists(), "it goes when the container is made");
        for bad in ["", "A B", "A=B", "#A", "A\nB", "A*"] {
            container.spec.environment = [(bad.to_owned(), "x".to_owned())].into();
            assert!(matches!(container.create(0, &RENDEZVOUS), Err(LaunchError::Variable(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_folder_with_a_colon_is_not_mounted() {
        let mut container = container("");
        container.spec.directory = PathBuf::from("/tmp/a:/etc");
        assert!(matches!(container.check_mounts(), Err(LaunchError::Mount(_))));
    }

    #[test]
    fn ranks_of_a_node_divide_its_grant() {
        let options = container("").limit_options();
        assert_eq!(options, ["--cpus=2", "--cpuset-cpus=0-3", "--memory=1000000000b"]);
    }

    #[test]
    fn names_differ_by_rank_and_by_agent() {
        let (mine, mut other) = (container(""), container(""));
        other.place.run_dir = PathBuf::from("/s");
        assert_ne!(mine.name(0), mine.name(1));
        assert_ne!(mine.name(0), other.name(0));
    }
}
