//! `rota up`: a head and emulated agents on this machine, for a first try and for tests; `rota up --stop` ends them.

use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rota_core::time::Span;
use rota_transport::identity::{Authority, Identity, Role, UserRole, Validity};
use rota_transport::logging::{DEFAULT_FILTER, LogFilter, LoggingError};
use rota_transport::message::{FromUser, SignInBy};
use rota_transport::value::Name;

use super::client::{Client, ClientFile, HeadArgs, home};
use super::web::{self, sign_in};

/// The cluster to start.
#[derive(Args, Clone, Debug)]
pub(crate) struct UpArgs {
    /// Number of agents, each an emulated node
    #[arg(value_name = "N", default_value_t = 2)]
    pub agents: u32,
    /// Emulated GPUs of each node
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub gpus: u32,
    /// Emulated CPUs of each node
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub cpus: u32,
    /// Memory of each node for jobs
    #[arg(long, value_name = "BYTES", default_value = "500GB")]
    pub memory: String,
    /// Type of the emulated GPUs, as profiles name it
    #[arg(long, value_name = "NAME", default_value = "V100")]
    pub gpu_type: String,
    /// Emulate the nodes of this cluster, a file or a built-in name [default: N equal nodes]
    #[arg(long, value_name = "FILE|NAME", conflicts_with_all = ["agents", "gpus", "cpus", "memory", "gpu_type"])]
    pub cluster: Option<String>,
    /// Policy, such as las+tune or ./mine.rhai+tune
    #[arg(short, long, value_name = "P", default_value = "las+tune")]
    pub policy: String,
    /// Profiles of the models that jobs may name: a file or a built-in set
    #[arg(long, value_name = "FILE|NAME", default_value = "synergy")]
    pub profiles: String,
    /// Time between scheduling rounds
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "10s")]
    pub round: Span,
    /// Decide only when a round is due, not as soon as something happens
    #[arg(long)]
    pub on_grid: bool,
    /// Give each agent its own checkpoint folder, between which the head copies, instead of one shared folder
    #[arg(long)]
    pub copy_checkpoints: bool,
    /// Allow `rota deploy --fast-forward` to skip time in which nothing happens
    #[arg(long)]
    pub fast_forward: bool,
    /// The most GPUs a tenant may hold, e.g. `--quota vision=32` [default: no limit]
    #[arg(long, value_name = "TENANT=GPUS")]
    pub quota: Vec<String>,
    /// Seconds of the jobs' time in one real second
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub time_scale: f64,
    /// How long an agent keeps jobs running without contact to the head
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "20s")]
    pub lease: Span,
    /// What the head and the agents log, each to a file in --home: a level (error, warn, info, debug, trace, off), or levels by
    /// target, as in `info,rota_head=debug`
    #[arg(long, value_name = "LEVEL|FILTER", value_parser = parse_log, default_value = DEFAULT_FILTER)]
    pub log: String,
    /// Stop the head and the agents; the folder is kept
    #[arg(long)]
    pub stop: bool,
    /// Folder for certificates, logs and state [default: $ROTA_HOME, else ~/.rota]
    #[arg(long, value_name = "DIR")]
    pub home: Option<PathBuf>,
}

/// Starts or stops the cluster.
pub(crate) fn run(args: &UpArgs) -> Result<()> {
    let home = args.home.clone().map_or_else(home, Ok)?;
    if args.stop { stop(&home) } else { start(args, &home) }
}

fn start(args: &UpArgs, home: &Path) -> Result<()> {
    fs::create_dir_all(home).with_context(|| home.display().to_string())?;
    let home = &home.canonicalize().with_context(|| home.display().to_string())?;
    if home.join("pids").exists() {
        bail!("a cluster was already started in {}: stop it with `rota up --stop`", home.display());
    }
    let agent = agent_program()?;
    let nodes = nodes(args)?;
    let pki = home.join("pki");
    let authority = match pki.join("ca.key").exists() {
        true => Authority::open(&pki)?,
        false => Authority::create(&pki, Validity::days(3650))?,
    };
    let issue = |role, name: &str| -> Result<PathBuf> {
        let identity = Identity { role, name: Name::new(name)? };
        // The only person of this cluster; the role is not used for others.
        Ok(authority.issue_as(&identity, UserRole::Admin, Validity::days(365))?.folder)
    };
    let (head_folder, user) = (issue(Role::Head, "head")?, issue(Role::User, "me")?);
    let address = format!("127.0.0.1:{}", free_port()?);
    let mut pids = Vec::new();
    let mut head = Command::new(std::env::current_exe()?);
    head.args(["head", "--listen", &address, "--policy", &args.policy, "--profiles", &args.profiles]);
    head.args(["--round", &args.round.to_string(), "--lease", &args.lease.to_string()]);
    head.args(["--wait-for", &nodes.len().to_string(), "--time-scale", &args.time_scale.to_string()]);
    head.args(["--log", &args.log]);
    let page = format!("127.0.0.1:{}", free_tcp_port()?);
    head.args(["--web", &page]);
    head.arg("--pki").arg(&pki);
    head.arg("--credentials").arg(&head_folder).arg("--state").arg(home.join("head"));
    if args.on_grid {
        head.arg("--on-grid");
    }
    if args.copy_checkpoints {
        head.arg("--copy-checkpoints");
    }
    if args.fast_forward {
        head.arg("--fast-forward");
    }
    for quota in &args.quota {
        head.args(["--quota", quota]);
    }
    pids.push(spawn(&mut head, &home.join("head.log"))?.id());
    for (index, has) in nodes.iter().enumerate() {
        let name = format!("node{index}");
        let mut node = Command::new(&agent);
        node.args(["--head", &address, "--address", "127.0.0.1", "--log", &args.log]).args(has);
        // Whoever holds the only user's certificate is the user who started the cluster.
        node.args(["--jobs-as", "self"]);
        // Their GPUs fail when a file says so: looking costs nothing.
        node.args(["--health-every", "250ms"]);
        node.arg("--identity").arg(issue(Role::Agent, &name)?);
        node.arg("--run-dir").arg(home.join("agents").join(&name));
        if !args.copy_checkpoints {
            node.arg("--checkpoint-dir").arg(home.join("checkpoints"));
        }
        pids.push(spawn(&mut node, &home.join(format!("{name}.log")))?.id());
    }
    let text: String = pids.iter().map(|pid| format!("{pid}\n")).collect();
    fs::write(home.join("pids"), text)?;
    let file = ClientFile { head: address.clone(), credentials: user.clone() };
    fs::write(home.join("client.toml"), toml::to_string(&file)?)?;
    wait_until_ready(nodes.len(), home, &address, &user)?;
    println!("ready: a head at {address}, {} agents with emulated GPUs", nodes.len());
    if rustix::process::geteuid().is_root() {
        println!(
            "jobs run as root, as this command does; only root can read the certificate that submits them"
        );
    }
    println!("try:  rota submit --emulate --model res50 --gpus 2 --iterations 1000\n      rota top");
    println!("page: {}", page_link(&address, &user)?);
    println!("      works once, within a minute; another link: rota web login");
    println!("stop: rota up --stop");
    Ok(())
}

/// A link to the page that works once.
fn page_link(address: &str, user: &Path) -> Result<String> {
    let head = HeadArgs {
        head: Some(address.to_owned()),
        credentials: Some(user.to_owned()),
        ..HeadArgs::default()
    };
    let way = sign_in(&mut Client::new(&head)?, SignInBy::Link)?;
    Ok(format!("{}{}", web::address(&way, address), way.secret))
}

/// The text of a filter, checked here so that head and agents will accept it.
fn parse_log(text: &str) -> Result<String, LoggingError> {
    LogFilter::parse(text).map(|_| text.to_owned())
}

/// The options of each agent: what its node has.
fn nodes(args: &UpArgs) -> Result<Vec<Vec<String>>> {
    let options = |gpus: String, cpus: String, memory: String, kind: String| {
        let pairs =
            [("--emulate-gpus", gpus), ("--emulate-cpus", cpus), ("--memory", memory), ("--gpu-type", kind)];
        pairs.into_iter().flat_map(|(option, value)| [option.to_owned(), value]).collect::<Vec<_>>()
    };
    let Some(cluster) = &args.cluster else {
        let alike =
            options(args.gpus.to_string(), args.cpus.to_string(), args.memory.clone(), args.gpu_type.clone());
        return Ok(vec![alike; args.agents as usize]);
    };
    let cluster = rota_traces::cluster::load(cluster)?;
    let node = |node: &rota_core::cluster::Node| {
        let kind = cluster.gpu_types().get(node.gpu_type.index()).cloned().unwrap_or_default();
        let (cpus, memory) = (node.host.cpus().to_string(), format!("{}B", node.host.mem_bytes));
        let mut has = options(node.n_gpus.to_string(), cpus, memory, kind);
        has.extend(["--gpu-memory".to_owned(), format!("{}B", node.gpu_mem_bytes)]);
        has.extend(["--storage".to_owned(), format!("{}B/s", node.host.storage_bps)]);
        has.extend(["--rack".to_owned(), node.rack.to_string()]);
        has
    };
    Ok(cluster.nodes().iter().map(node).collect())
}

/// An agent that `rota up` started, with what it takes to end and start it.
pub(crate) struct AgentProcess {
    /// Its folder, in which it keeps its launches and looks for files of an operator.
    pub(crate) run_dir: PathBuf,
    pid: u32,
    /// Its own, where this program started it again: it is waited for.
    child: Option<std::process::Child>,
    command: Vec<String>,
    home: PathBuf,
    log: PathBuf,
    /// Its line in the list of processes.
    index: usize,
}

/// The agents of the cluster that was started here and whose head has this address, by name, with its home.
pub(crate) fn local_agents(address: &str) -> Result<(PathBuf, Vec<(String, AgentProcess)>)> {
    let home = home()?;
    let path = home.join("client.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let file: ClientFile = toml::from_str(&text).with_context(|| path.display().to_string())?;
    if file.head != address {
        bail!("the cluster in {} has its head at {}, not at {address}", home.display(), file.head);
    }
    let path = home.join("pids");
    let pids = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let agents = pids.lines().enumerate().skip(1).map(|(index, line)| {
        let pid = line.trim().parse().with_context(|| format!("{}: {line}", path.display()))?;
        let name = format!("node{}", index - 1);
        let command =
            fs::read(format!("/proc/{pid}/cmdline")).with_context(|| format!("{name}: process {pid}"))?;
        let command = command.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        let command = command.map(|part| String::from_utf8_lossy(part).into_owned()).collect();
        let (run_dir, log) = (home.join("agents").join(&name), home.join(format!("{name}.log")));
        Ok((name, AgentProcess { run_dir, pid, child: None, command, home: home.clone(), log, index }))
    });
    let agents = agents.collect::<Result<Vec<_>>>()?;
    Ok((home, agents))
}

impl AgentProcess {
    /// Whether it runs.
    pub(crate) fn is_alive(&self) -> bool {
        is_ours(self.pid)
    }

    /// Ends it and everything that runs on its node, as when the power fails. It hangs up first: nobody has to wait for its silence.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let below = descendants(self.pid);
        end_process(self.pid);
        let limit = Instant::now() + Duration::from_secs(10);
        while self.is_alive() && Instant::now() < limit {
            if let Some(child) = &mut self.child {
                let _ = child.try_wait();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // Shims and jobs outlive their agent.
        for pid in below.into_iter().chain([self.pid]) {
            if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        match self.is_alive() {
            true => bail!("process {} does not end", self.pid),
            false => Ok(()),
        }
    }

    /// Starts it again.
    pub(crate) fn start(&mut self) -> Result<()> {
        let (program, args) = self.command.split_first().context("an agent without a program")?;
        let child = spawn(Command::new(program).args(args), &self.log)?;
        self.pid = child.id();
        self.child = Some(child);
        // `rota up --stop` ends what the list names.
        let path = self.home.join("pids");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let line = |(index, line): (usize, &str)| match index == self.index {
            true => format!("{}\n", self.pid),
            false => format!("{line}\n"),
        };
        let text: String = text.lines().enumerate().map(line).collect();
        rota_lab::results::replace_file(&path, text.as_bytes())?;
        Ok(())
    }
}

/// All processes that come from one, in any generation.
fn descendants(pid: u32) -> Vec<u32> {
    let parent_of = |entry: fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let parent = stat.rsplit_once(") ")?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((pid, parent))
    };
    let all: Vec<(u32, u32)> =
        fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(parent_of).collect();
    let (mut found, mut next) = (Vec::new(), vec![pid]);
    while let Some(parent) = next.pop() {
        let children = all.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid);
        let children: Vec<u32> = children.collect();
        found.extend(&children);
        next.extend(children);
    }
    found
}

fn wait_until_ready(n_agents: usize, home: &Path, address: &str, user: &Path) -> Result<()> {
    let (address, user) = (Some(address.to_owned()), Some(user.to_owned()));
    let head = HeadArgs { head: address, credentials: user, ..HeadArgs::default() };
    let limit = Instant::now() + Duration::from_secs(60 + n_agents as u64);
    loop {
        let is_ready =
            Client::new(&head).and_then(|mut client| client.status()).is_ok_and(|status| status.is_ready);
        if is_ready {
            return Ok(());
        }
        if Instant::now() > limit {
            stop(home)?;
            bail!(
                "the head did not become ready; its log and those of the agents are {}/*.log",
                home.display()
            );
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The agent's program: in the folder of this one, or on the path.
pub(crate) fn agent_program() -> Result<PathBuf> {
    let sibling = std::env::current_exe()?.with_file_name("rota-agent");
    if sibling.exists() {
        return Ok(sibling);
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|path| path.join("rota-agent")).find(|path| path.exists());
    found.context("rota-agent is neither next to rota nor on the PATH: `./dev install` installs both")
}

/// A free port below those that systems give to clients, so that none of them is given it before the head listens.
fn free_port() -> Result<u16> {
    let is_free = |port: &u16| UdpSocket::bind(("127.0.0.1", *port)).is_ok();
    (0..1_000)
        .map(|_| rand::random_range(20_000..32_000))
        .find(is_free)
        .context("no UDP port of loopback is free")
}

/// A free TCP port, of those that systems do not give to clients.
fn free_tcp_port() -> Result<u16> {
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (0..1_000)
        .map(|_| rand::random_range(20_000..32_000))
        .find(is_free)
        .context("no TCP port of loopback is free")
}

fn spawn(command: &mut Command, log: &Path) -> Result<std::process::Child> {
    use std::os::unix::process::CommandExt as _;
    let out = File::options().create(true).append(true).open(log)?;
    let errors = out.try_clone()?;
    // In a process group of its own, so that Ctrl-C in the terminal does not reach it.
    command.stdin(Stdio::null()).stdout(out).stderr(errors).process_group(0);
    command.spawn().with_context(|| format!("{:?}", command.get_program()))
}

/// Stops the jobs after a checkpoint, then the head and the agents; jobs continue at the next start.
fn stop(home: &Path) -> Result<()> {
    let path = home.join("pids");
    let text =
        fs::read_to_string(&path).with_context(|| format!("no cluster was started in {}", home.display()))?;
    if let Ok(file) = fs::read_to_string(home.join("client.toml"))
        && let Ok(file) = toml::from_str::<ClientFile>(&file)
    {
        let (head, credentials) = (Some(file.head), Some(file.credentials));
        let args = HeadArgs { head, credentials, ..HeadArgs::default() };
        // The head may be gone already.
        let _ = Client::new(&args).and_then(|mut client| client.text(&FromUser::StopAll));
    }
    let pids: Vec<u32> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    // The head ends when no job runs any more. Until then the agents are needed to stop the jobs.
    let limit = Instant::now() + Duration::from_secs(45);
    while pids.first().is_some_and(|head| is_ours(*head)) && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(20));
    }
    pids.iter().rev().filter(|pid| is_ours(**pid)).for_each(|pid| end_process(*pid));
    fs::remove_file(&path)?;
    println!("stopped; everything is kept in {}", home.display());
    Ok(())
}

/// Whether a process is alive and one of ours: the number may have been reused.
fn is_ours(pid: u32) -> bool {
    let is_named = fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("rota"));
    // The state follows the name, which is in parentheses.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_dead = stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'));
    is_named && !is_dead
}

fn end_process(pid: u32) {
    let _ = Command::new("kill").arg(pid.to_string()).status();
}
