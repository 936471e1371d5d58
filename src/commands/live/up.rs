//! `rota up`: a head and emulated agents on this machine, for a first try and for tests; `rota up --stop` ends them.

use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rota_core::time::Span;
use rota_transport::identity::{Authority, Identity, Role, Validity};
use rota_transport::message::FromUser;
use rota_transport::value::Name;

use super::client::{Client, ClientFile, HeadArgs, home};

/// What to start.
#[derive(Args, Clone, Debug)]
pub(crate) struct UpArgs {
    /// Agents
    #[arg(value_name = "N", default_value_t = 2)]
    pub agents: u32,
    /// Emulated GPUs of each
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub gpus: u32,
    /// Emulated CPUs of each
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub cpus: u32,
    /// Memory of each that is given to jobs
    #[arg(long, value_name = "BYTES", default_value = "500GB")]
    pub memory: String,
    /// The policy
    #[arg(short, long, value_name = "P", default_value = "las+tune")]
    pub policy: String,
    /// Profiles that jobs may name
    #[arg(long, value_name = "F", default_value = "synergy")]
    pub profiles: String,
    /// Time between rounds
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "10s")]
    pub round: Span,
    /// Hold rounds only when they are due
    #[arg(long)]
    pub on_grid: bool,
    /// Seconds of jobs' time in a real second
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub time_scale: f64,
    /// How long an agent goes on without a word from the head
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "20s")]
    pub lease: Span,
    /// End what was started; its folder stays
    #[arg(long)]
    pub stop: bool,
    /// Where everything is kept [default: $ROTA_HOME, else ~/.rota]
    #[arg(long, value_name = "DIR")]
    pub home: Option<PathBuf>,
}

/// Starts, or ends.
pub(crate) fn run(args: &UpArgs) -> Result<()> {
    let home = args.home.clone().map_or_else(home, Ok)?;
    if args.stop { stop(&home) } else { start(args, &home) }
}

fn start(args: &UpArgs, home: &Path) -> Result<()> {
    fs::create_dir_all(home).with_context(|| home.display().to_string())?;
    let home = &home.canonicalize().with_context(|| home.display().to_string())?;
    if home.join("pids").exists() {
        bail!("something was started here already; end it with `rota up --stop`");
    }
    let agent = agent_program()?;
    let pki = home.join("pki");
    let authority = match pki.join("ca.key").exists() {
        true => Authority::open(&pki)?,
        false => Authority::create(&pki, Validity::days(3650))?,
    };
    let issue = |role, name: &str| -> Result<PathBuf> {
        let identity = Identity { role, name: Name::new(name)? };
        Ok(authority.issue(&identity, Validity::days(365))?.folder)
    };
    let (head_folder, user) = (issue(Role::Head, "head")?, issue(Role::User, "me")?);
    let address = format!("127.0.0.1:{}", free_port()?);
    let mut pids = Vec::new();
    let mut head = Command::new(std::env::current_exe()?);
    head.args(["head", "--listen", &address, "--policy", &args.policy, "--profiles", &args.profiles]);
    head.args(["--round", &args.round.to_string(), "--lease", &args.lease.to_string()]);
    head.args(["--wait-for", &args.agents.to_string(), "--time-scale", &args.time_scale.to_string()]);
    head.arg("--credentials").arg(&head_folder).arg("--state").arg(home.join("head"));
    if args.on_grid {
        head.arg("--on-grid");
    }
    pids.push(spawn(&mut head, &home.join("head.log"))?);
    for index in 0..args.agents {
        let name = format!("node{index}");
        let mut node = Command::new(&agent);
        node.args(["--head", &address, "--address", "127.0.0.1", "--memory", &args.memory]);
        node.args(["--emulate-gpus", &args.gpus.to_string(), "--emulate-cpus", &args.cpus.to_string()]);
        node.arg("--identity").arg(issue(Role::Agent, &name)?);
        node.arg("--run-dir").arg(home.join("agents").join(&name));
        node.arg("--checkpoint-dir").arg(home.join("checkpoints"));
        pids.push(spawn(&mut node, &home.join(format!("{name}.log")))?);
    }
    let text: String = pids.iter().map(|pid| format!("{pid}\n")).collect();
    fs::write(home.join("pids"), text)?;
    let file = ClientFile { head: address.clone(), credentials: user.clone() };
    fs::write(home.join("client.toml"), toml::to_string(&file)?)?;
    wait_until_ready(args, home, &address, &user)?;
    println!("ready: a head at {address}, {} agents with {} emulated GPUs each", args.agents, args.gpus);
    println!("try:  rota submit --emulate --model res50 --gpus 2 --iterations 1000\n      rota top");
    println!("end:  rota up --stop");
    Ok(())
}

fn wait_until_ready(args: &UpArgs, home: &Path, address: &str, user: &Path) -> Result<()> {
    let head = HeadArgs { head: Some(address.to_owned()), credentials: Some(user.to_owned()), json: false };
    let limit = Instant::now() + Duration::from_secs(60 + u64::from(args.agents));
    loop {
        let is_ready =
            Client::new(&head).and_then(|mut client| client.status()).is_ok_and(|status| status.is_ready);
        if is_ready {
            return Ok(());
        }
        if Instant::now() > limit {
            stop(home)?;
            bail!("the head did not become ready; see {}/*.log", home.display());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The agent's program: beside this one, or on the path.
fn agent_program() -> Result<PathBuf> {
    let beside = std::env::current_exe()?.with_file_name("rota-agent");
    if beside.exists() {
        return Ok(beside);
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|path| path.join("rota-agent")).find(|path| path.exists());
    found.context("rota-agent is neither beside rota nor on the path: build it with `cargo build --release -p rota-agent`")
}

fn free_port() -> Result<u16> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn spawn(command: &mut Command, log: &Path) -> Result<u32> {
    use std::os::unix::process::CommandExt as _;
    let out = File::options().create(true).append(true).open(log)?;
    let errors = out.try_clone()?;
    // A group of its own: an interrupt of the terminal is not for it.
    command.stdin(Stdio::null()).stdout(out).stderr(errors).process_group(0);
    let child = command.spawn().with_context(|| format!("{:?}", command.get_program()))?;
    Ok(child.id())
}

/// Ends the agents' jobs by ending the agents after the head was asked to cancel what runs.
fn stop(home: &Path) -> Result<()> {
    let path = home.join("pids");
    let text =
        fs::read_to_string(&path).with_context(|| format!("nothing was started in {}", home.display()))?;
    if let Ok(file) = fs::read_to_string(home.join("client.toml"))
        && let Ok(file) = toml::from_str::<ClientFile>(&file)
    {
        let args = HeadArgs { head: Some(file.head), credentials: Some(file.credentials), json: false };
        // A head that is gone needs no farewell.
        let _ = Client::new(&args).and_then(|mut client| client.text(&FromUser::Shutdown));
    }
    for pid in text.lines().rev().filter_map(|line| line.trim().parse::<u32>().ok()) {
        end_process(pid);
    }
    fs::remove_file(&path)?;
    println!("stopped; everything is kept in {}", home.display());
    Ok(())
}

/// Asks a process to end, if it is still one of ours.
fn end_process(pid: u32) {
    let is_ours = fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("rota"));
    if is_ours {
        let _ = Command::new("kill").arg(pid.to_string()).status();
    }
}
