//! `rota study --on slurm` against a real Slurm: munged, slurmctld and slurmd of this machine, started for the test with a
//! configuration of their own and stopped after it. Needs Slurm and root.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rota_test_support::need::{self, Lack, Thing};
use rota_test_support::ports::free_port;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
const STUDY: &str = r#"
    title("a batch");
    sweep(#{ policy: ["fifo+proportional", "las+tune"], jobs_per_hour: [6, 9], jobs: 60, seed: 1..=2 });
"#;

/// A Slurm of one node, which is this machine.
struct Slurm {
    folder: TempDir,
    daemons: Vec<Child>,
}

impl Slurm {
    /// Starts it, where it is installed and this user may.
    fn start() -> Option<Self> {
        let find = |name: &str| {
            program(name).ok_or_else(|| Lack::Missing(format!("{name} of Slurm is not installed")))
        };
        let munged = need::found(Thing::Slurm, find("munged"))?;
        let slurmctld = need::found(Thing::Slurm, find("slurmctld"))?;
        let slurmd = need::found(Thing::Slurm, find("slurmd"))?;
        for name in ["sinfo", "sbatch"] {
            need::found(Thing::Slurm, find(name))?;
        }
        let root = if is_root() { Ok(()) } else { Err(Lack::Refused("only root can run slurmd".to_owned())) };
        need::found(Thing::Slurm, root)?;
        let folder = tempfile::tempdir().expect("a folder");
        // Munge will not keep its key or socket where others could put theirs.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("its rights");
        let mut slurm = Slurm { folder, daemons: Vec::new() };
        slurm.start_munge(&munged);
        let conf = slurm.write_configuration();
        for (daemon, args) in [(slurmctld, ["-D", "-f"]), (slurmd, ["-D", "-f"])] {
            let mut command = Command::new(daemon);
            command.args(args).arg(&conf).args(["-c"]);
            slurm.spawn(&mut command);
        }
        slurm.until("the node is idle", |slurm| {
            let nodes = slurm.command("sinfo").args(["--noheader", "--format=%T"]).output();
            nodes.is_ok_and(|nodes| String::from_utf8_lossy(&nodes.stdout).trim() == "idle")
        });
        Some(slurm)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start_munge(&mut self, munged: &Path) {
        let key = self.path("munge.key");
        fs::write(&key, [7_u8; 1024]).expect("a key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("its rights");
        let mut command = Command::new(munged);
        command.args(["--foreground", "--force", "--num-threads=1"]);
        for (option, file) in [
            ("socket", "munge.socket"),
            ("key-file", "munge.key"),
            ("pid-file", "munge.pid"),
            ("log-file", "munge.log"),
            ("seed-file", "munge.seed"),
        ] {
            command.arg(format!("--{option}={}", self.path(file).display()));
        }
        self.spawn(&mut command);
        self.until("munge listens", |slurm| slurm.path("munge.socket").exists());
    }

    fn write_configuration(&self) -> PathBuf {
        let name = Command::new("hostname").arg("-s").output().expect("a host has a name");
        let name = String::from_utf8_lossy(&name.stdout).trim().to_owned();
        let ports = [free_port(), free_port()];
        let folder = self.folder.path().display();
        let text = format!(
            "ClusterName=test\nSlurmctldHost={name}(127.0.0.1)\nSlurmctldPort={}\nSlurmdPort={}\n\
             SlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\nAuthInfo=socket={folder}/munge.socket\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/cons_tres\n\
             SelectTypeParameters=CR_CPU\nMpiDefault=none\nReturnToService=2\n\
             StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool\n\
             SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd.pid\n\
             NodeName={name} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN\n\
             PartitionName=all Nodes=ALL Default=YES State=UP\n",
            ports[0], ports[1]
        );
        for name in ["state", "spool"] {
            fs::create_dir(self.path(name)).expect("a folder");
        }
        let path = self.path("slurm.conf");
        fs::write(&path, text).expect("a configuration");
        path
    }

    fn spawn(&mut self, command: &mut Command) {
        let log =
            fs::File::options().create(true).append(true).open(self.path("daemons.log")).expect("a log");
        let errors = log.try_clone().expect("a log");
        let child = command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().expect("it starts");
        self.daemons.push(child);
    }

    /// A program that speaks to this Slurm.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.path("slurm.conf"));
        command
    }

    fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let limit = Instant::now() + PATIENCE;
        while !holds(self) {
            let log = || fs::read_to_string(self.path("daemons.log")).unwrap_or_default();
            assert!(Instant::now() < limit, "timed out waiting for: {what}\n{}", log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // Those that were started last speak to those that were started first.
        for daemon in self.daemons.iter_mut().rev() {
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let limit = Instant::now() + Duration::from_secs(10);
            while daemon.try_wait().is_ok_and(|status| status.is_none()) && Instant::now() < limit {
                std::thread::sleep(Duration::from_millis(50));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n")
}

fn study(slurm: &Slurm, args: &[&str]) -> Output {
    let mut command = slurm.command(env!("CARGO_BIN_EXE_rota"));
    command.args(["study", "batch.rhai"]).args(args).current_dir(slurm.folder.path());
    command.output().expect("the program starts")
}

#[test]
fn a_job_array_of_a_real_slurm_ends_in_the_same_tables_as_this_machine() {
    let Some(slurm) = Slurm::start() else { return };
    fs::write(slurm.path("batch.rhai"), STUDY).expect("a script");
    let option = "--slurm-option=--job-name=renamed";
    let output = study(&slurm, &["--on", "slurm", "--shards", "3", option, "--out", "there"]);
    let (said, warned) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{warned}");
    assert!(said.contains("0 runs in") && said.contains("8 were there already"), "{said}{warned}");
    assert!(study(&slurm, &["--out", "here", "--quiet"]).status.success());
    for table in ["runs.csv", "groups.csv", "pairs.csv", "runs.parquet"] {
        let read = |folder: &str| fs::read(slurm.path(folder).join(table)).expect("a table");
        assert!(read("there") == read("here"), "{table} differs");
    }
}

#[test]
fn what_slurm_refuses_is_told_in_its_own_words() {
    let Some(slurm) = Slurm::start() else { return };
    fs::write(slurm.path("batch.rhai"), STUDY).expect("a script");
    let output = study(&slurm, &["--on", "slurm", "--slurm-option=--partition=nowhere", "--out", "there"]);
    let warned = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{warned}");
    assert!(warned.contains("sbatch: ") && warned.contains("partition"), "{warned}");
}
