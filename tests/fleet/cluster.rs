//! A live cluster of real processes on loopback: one head, agents with emulated GPUs, and the commands of a user.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rota_test_support::need;
use rota_test_support::ports::free_port;
use serde_json::Value;
use tempfile::TempDir;

use crate::relay::Relay;

/// Longer than anything here takes on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(240);

/// People of most tests have no accounts on this machine, whoever runs the tests.
const AS_SELF: [&str; 2] = ["--jobs-as", "self"];

pub(crate) struct Cluster {
    pub(crate) folder: TempDir,
    pub(crate) address: String,
    head_args: Vec<String>,
    head: Option<Child>,
    agents: Vec<Option<Child>>,
    agent_program: PathBuf,
    /// Options of every agent.
    agent_args: Vec<String>,
    /// Each agent's way to the head; empty when nothing is between them.
    relays: Vec<Relay>,
}

impl Cluster {
    /// Starts a head and agents and waits until the head is ready.
    pub(crate) fn start(n_agents: usize, n_gpus: u32, head_args: &[&str]) -> Self {
        Cluster::start_over(n_agents, n_gpus, head_args, &AS_SELF, |_| Vec::new())
    }

    /// The same with agents that run jobs as their submitters' accounts, and more options for them.
    pub(crate) fn start_with_accounts(n_agents: usize, n_gpus: u32, agent_args: &[&str]) -> Self {
        Cluster::start_over(n_agents, n_gpus, &["--round", "1s"], agent_args, |_| Vec::new())
    }

    /// The same with a head that issues certificates.
    pub(crate) fn start_joinable(n_agents: usize, n_gpus: u32, head_args: &[&str]) -> Self {
        Cluster::start_over(n_agents, n_gpus, &[head_args, &["--pki", "{pki}"]].concat(), &AS_SELF, |_| {
            Vec::new()
        })
    }

    /// The same with a relay between the head and each agent.
    pub(crate) fn start_behind_relays(n_agents: usize, n_gpus: u32, head_args: &[&str]) -> Self {
        Cluster::start_over(n_agents, n_gpus, head_args, &AS_SELF, |head| {
            (0..n_agents as u64).map(|seed| Relay::to(head, seed)).collect()
        })
    }

    fn start_over(
        n_agents: usize,
        n_gpus: u32,
        head_args: &[&str],
        agent_args: &[&str],
        relays: impl FnOnce(SocketAddr) -> Vec<Relay>,
    ) -> Self {
        let agent_program = need::agent(env!("CARGO_BIN_EXE_rota"));
        let folder = tempfile::tempdir().expect("a folder");
        // Jobs with accounts of their own pass through it.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).expect("set");
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let mut cluster = Cluster {
            address: address.to_string(),
            relays: relays(address),
            head_args: head_args.iter().map(|arg| (*arg).to_owned()).collect(),
            folder,
            head: None,
            agents: Vec::new(),
            agent_program,
            agent_args: agent_args.iter().map(|arg| (*arg).to_owned()).collect(),
        };
        let pki = cluster.path("pki");
        cluster.plain(&["pki", "init", &pki]);
        cluster.plain(&["pki", "issue", "--pki", &pki, "--user", "ada", "--role", "admin"]);
        if n_agents > 0 {
            let names: Vec<_> = (0..n_agents).map(|index| format!("node{index}")).collect();
            cluster.plain(&["pki", "issue", "--pki", &pki, "--agent", &names.join(",")]);
        }
        cluster.head_args.extend(["--wait-for".into(), n_agents.to_string()]);
        cluster.start_head();
        for index in 0..n_agents {
            cluster.agents.push(None);
            cluster.start_agent(index, n_gpus);
        }
        cluster.until("the head is ready", |cluster| cluster.status()["is_ready"] == true);
        cluster
    }

    /// An agent's way to the head.
    pub(crate) fn relay(&self, index: usize) -> &Relay {
        &self.relays[index]
    }

    /// Where the head listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Memory that the head has now, in megabytes.
    pub(crate) fn head_memory_mb(&self) -> f64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.head_id())).expect("it lives");
        let line = text.lines().find(|line| line.starts_with("VmRSS")).expect("a line for the memory");
        line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).expect("kilobytes") / 1e3
    }

    /// The process of the head.
    pub(crate) fn head_id(&self) -> u32 {
        self.head.as_ref().expect("a head").id()
    }

    /// The head's children in which policies decide.
    pub(crate) fn deciders(&self) -> Vec<u32> {
        let head = self.head_id().to_string();
        let is_decider = |pid: &u32| {
            let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t"));
            command.contains("decide-child") && parent == Some(head.as_str())
        };
        let all = std::fs::read_dir("/proc").expect("it is mounted").flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_decider).collect()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub(crate) fn start_head(&mut self) {
        self.start_head_with(&[]);
    }

    /// Starts the head with options for this start alone.
    pub(crate) fn start_head_with(&mut self, more: &[&str]) {
        let (state, credentials) = (self.path("head"), self.path("pki/head"));
        // A head whose files are limited (`limit_head_files`) gets errors, not a signal.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_rota")]);
        command.args(["head", "--listen", &self.address, "--state", &state, "--credentials", &credentials]);
        command.args(self.head_args.iter().map(|arg| arg.replace("{pki}", &self.path("pki"))));
        command.args(more);
        self.head = Some(spawn(&mut command, &self.folder.path().join("head.log")));
    }

    pub(crate) fn start_agent(&mut self, index: usize, n_gpus: u32) {
        let name = format!("node{index}");
        self.agents[index] = Some(self.spawn_agent(index, n_gpus, &name));
    }

    /// Starts a second agent with the identity of another, in a run directory of its own; its log has the same name.
    pub(crate) fn start_twin(&mut self, index: usize, n_gpus: u32, run: &str) {
        let twin = self.spawn_agent(index, n_gpus, run);
        self.agents.push(Some(twin));
    }

    fn spawn_agent(&self, index: usize, n_gpus: u32, run: &str) -> Child {
        let name = format!("node{index}");
        let (identity, run_dir) = (self.path(&format!("pki/agents/{name}")), self.path(run));
        let has_own = self.head_args.iter().any(|arg| arg == "--copy-checkpoints");
        let checkpoints = self.path(if has_own { &name } else { "checkpoints" });
        let mut command = Command::new(&self.agent_program);
        let head = self.relays.get(index).map_or(self.address.clone(), |relay| relay.address().to_string());
        command.args(["--head", &head, "--identity", &identity, "--address", "127.0.0.1"]);
        command.args(&self.agent_args);
        command.args([
            "--run-dir",
            &run_dir,
            "--checkpoint-dir",
            &format!("{checkpoints}-kept"),
            "--memory",
            "500GB",
        ]);
        command.args([
            "--emulate-gpus",
            &n_gpus.to_string(),
            "--emulate-cpus",
            "24",
            "--retry-at-most",
            "1s",
            "--health-every",
            "500ms",
        ]);
        spawn(&mut command, &self.folder.path().join(format!("{run}.log")))
    }

    /// How many agents the next head waits for.
    pub(crate) fn set_wait_for(&mut self, n_agents: usize) {
        let at = self.head_args.iter().position(|arg| arg == "--wait-for").expect("it was given");
        self.head_args[at + 1] = n_agents.to_string();
    }

    /// Kills the head as a power cut would.
    pub(crate) fn kill_head(&mut self) {
        kill(self.head.take());
    }

    /// Lets no file of the head grow beyond so many bytes, as a full disk would; none lifts the limit.
    pub(crate) fn limit_head_files(&self, bytes: Option<u64>) {
        let id = self.head_id();
        let limit = bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
        let done = Command::new("prlimit")
            .args(["--pid", &id.to_string(), &format!("--fsize={limit}:")])
            .status()
            .expect("prlimit runs");
        assert!(done.success());
    }

    /// Kills the processes of a launch.
    pub(crate) fn kill_job(&self, index: usize, attempt: &str) {
        let mark = format!("{attempt}@{}", self.path(&format!("node{index}")));
        let is_of_it = |id: &str| {
            let of = |file: &str| std::fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
            let (environment, command) = (of("environ"), of("cmdline"));
            let has = |bytes: &[u8]| bytes.windows(mark.len()).any(|part| part == mark.as_bytes());
            has(&environment) || String::from_utf8_lossy(&command).contains(&mark)
        };
        for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.bytes().all(|byte| byte.is_ascii_digit()) && is_of_it(&name) {
                let _ = Command::new("kill").args(["-9", &name]).status();
            }
        }
    }

    pub(crate) fn kill_agent(&mut self, index: usize) {
        kill(self.agents[index].take());
    }

    /// A command of ada, who may do everything; what it printed, or what it complained about.
    pub(crate) fn try_rota(&self, args: &[&str]) -> Result<String, String> {
        self.try_rota_as("ada", args)
    }

    /// A certificate for another user.
    pub(crate) fn issue(&self, user: &str, role: &str) {
        self.plain(&["pki", "issue", "--pki", &self.path("pki"), "--user", user, "--role", role]);
    }

    /// A command of any user.
    pub(crate) fn try_rota_as(&self, user: &str, args: &[&str]) -> Result<String, String> {
        let credentials = self.path(&format!("pki/users/{user}"));
        let output = Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(args)
            .env("ROTA_HEAD", &self.address)
            .env("ROTA_CREDENTIALS", &credentials)
            .env("ROTA_HOME", self.folder.path())
            .output()
            .expect("rota runs");
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// What a command of ada returns to the shell.
    pub(crate) fn exit_code(&self, args: &[&str]) -> Option<i32> {
        let credentials = self.path("pki/users/ada");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
        command.args(args).env("ROTA_HEAD", &self.address).env("ROTA_CREDENTIALS", &credentials);
        command.env("ROTA_HOME", self.folder.path()).stderr(Stdio::null()).stdout(Stdio::null());
        command.status().expect("rota runs").code()
    }

    pub(crate) fn rota(&self, args: &[&str]) -> String {
        self.try_rota(args).unwrap_or_else(|error| panic!("rota {args:?}: {error}\n{}", self.head_log()))
    }

    fn plain(&self, args: &[&str]) {
        self.rota(args);
    }

    pub(crate) fn head_log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("head.log")).unwrap_or_default()
    }

    pub(crate) fn agent_log(&self, index: usize) -> String {
        self.log(&format!("node{index}"))
    }

    /// The log of the agent in a run directory.
    pub(crate) fn log(&self, run: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{run}.log"))).unwrap_or_default()
    }

    /// How things stand; null while the head cannot be reached.
    pub(crate) fn status(&self) -> Value {
        self.try_rota(&["top", "--json"])
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or(Value::Null)
    }

    pub(crate) fn jobs(&self) -> Vec<Value> {
        let text = self.try_rota(&["jobs", "--all", "--json"]).unwrap_or_else(|_| "[]".into());
        serde_json::from_str(&text).expect("JSON")
    }

    pub(crate) fn nodes(&self) -> Vec<Value> {
        let text = self.try_rota(&["nodes", "--json"]).unwrap_or_else(|_| "[]".into());
        serde_json::from_str(&text).expect("JSON")
    }

    /// Waits for a condition.
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut(&Cluster) -> bool) {
        let limit = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(
                Instant::now() < limit,
                "timed out waiting for: {what}\n{}\njobs: {:#?}\nnodes: {:#?}",
                self.head_log(),
                self.jobs(),
                self.nodes()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn until_all_finished(&self, n_jobs: usize) {
        self.until("every job is finished", |cluster| {
            let jobs = cluster.jobs();
            jobs.len() == n_jobs && jobs.iter().all(|job| job["state"] == "finished")
        });
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.relays.iter().for_each(Relay::mend);
        // Jobs outlive their agents by design: they are withdrawn first.
        let active: Vec<_> = self
            .jobs()
            .iter()
            .filter(|job| {
                !["finished", "declined", "cancelled", "failed", "time-limit"]
                    .iter()
                    .any(|end| job["state"] == *end)
            })
            .map(|job| job["id"].to_string())
            .collect();
        if !active.is_empty() {
            let ids: Vec<_> = active.iter().map(String::as_str).collect();
            let _ = self.try_rota(&[&["cancel"][..], ids.as_slice()].concat());
            let limit = Instant::now() + Duration::from_secs(20);
            while self.nodes().iter().any(|node| node["n_busy"] != 0) && Instant::now() < limit {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        for agent in &mut self.agents {
            kill(agent.take());
        }
        kill(self.head.take());
    }
}

fn spawn(command: &mut Command, log: &Path) -> Child {
    let out = std::fs::File::options().create(true).append(true).open(log).expect("a log");
    let errors = out.try_clone().expect("a log");
    command.stdin(Stdio::null()).stdout(out).stderr(errors).spawn().expect("it starts")
}

fn kill(child: Option<Child>) {
    if let Some(mut child) = child {
        let _ = child.kill();
        let _ = child.wait();
    }
}
