//! `rota-agent check`: what an operator runs first on a server. It looks at everything an agent needs and gives a verdict
//! with advice for each. It changes nothing except for a trial control group and a trial file, which it removes at once.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use rota_traces::units::Bytes;
use rota_transport::identity::{Credentials, Role};
use rota_transport::quic::{ConnectError, Connector};
use serde::Serialize;

use crate::accounts::Accounts;
use crate::daemon::DaemonOptions;
use crate::launch::{cgroup, devices, gpu_flag};
use crate::options::{JobsAs, LimitOption};
use crate::probe::{self, Driver, Topology};
use crate::ranges::Ranges;

/// How long the head may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// A directory with less free space than this counts as full.
const LEAST_FREE_BYTES: u64 = 1_000_000_000;
/// The first moment of 2025: a clock before that was never set.
const LEAST_UNIX_S: u64 = 1_735_689_600;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The part of the node that was checked, as shown in the first column: `driver`, `cgroups`.
    pub name: &'static str,
    /// How serious the finding is; one bad verdict makes `check` exit with an error.
    pub status: Status,
    /// What was found, in a few words for a person.
    pub found: String,
    /// What to do about it; empty when nothing is to be done.
    pub advice: String,
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Good,
    /// Jobs run, but something is missing.
    Warning,
    /// No job can run.
    Bad,
}

impl Verdict {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Verdict { name, status: Status::Good, found: found.into(), advice: String::new() }
    }

    fn warning(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Verdict { name, status: Status::Warning, found: found.into(), advice: advice.into() }
    }

    fn bad(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Verdict { name, status: Status::Bad, found: found.into(), advice: advice.into() }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = match self.status {
            Status::Good => "good",
            Status::Warning => "warning",
            Status::Bad => "BAD",
        };
        write!(f, "{status:<8} {:<12} {}", self.name, self.found)?;
        if !self.advice.is_empty() {
            write!(f, "\n{:<22}to do: {}", "", self.advice)?;
        }
        Ok(())
    }
}

/// Runs every check; verdicts always come in the same order.
pub async fn check(options: &DaemonOptions) -> Vec<Verdict> {
    let topology = probe::read_topology();
    let mut verdicts = vec![driver(options), gpus(options), cpus(options, &topology), limits(options)];
    verdicts.push(gpu_devices(options));
    verdicts.push(accounts(options));
    verdicts.push(containers(options));
    let places = &options.places;
    verdicts.push(directory("run dir", &places.run_dir));
    verdicts.push(directory("data dir", &places.data_dir()));
    verdicts.push(directory("checkpoints", &places.checkpoint_dir()));
    verdicts.push(clock());
    verdicts.push(identity(options));
    verdicts.push(head(options).await);
    verdicts
}

fn driver(options: &DaemonOptions) -> Verdict {
    match (Driver::find(), options.node.emulate_gpus) {
        (Ok(driver), _) => {
            Verdict::good("driver", format!("NVIDIA {}, CUDA up to {}", driver.version, driver.cuda))
        }
        (Err(why), Some(_)) => Verdict::good("driver", format!("{why}; not needed, GPUs are emulated")),
        (Err(why), None) => Verdict::bad(
            "driver",
            why.to_string(),
            "install NVIDIA's driver and try `nvidia-smi`, or pretend with --emulate-gpus N",
        ),
    }
}

fn gpus(options: &DaemonOptions) -> Verdict {
    match probe::node(&options.node) {
        Err(error) => Verdict::bad("GPUs", error.to_string(), "see the driver above, or --gpus and --cpus"),
        Ok(node) => {
            let model = node.gpus.first().map_or("none", |gpu| gpu.model.as_str());
            let healthy = node.gpus.iter().filter(|gpu| gpu.trouble.is_none());
            let memory = match healthy.map(|gpu| gpu.mem_bytes).min().unwrap_or(0) {
                0 => "of unknown memory".to_owned(),
                bytes => format!("{} each", Bytes(bytes)),
            };
            let kind = if node.is_emulated { "emulated " } else { "" };
            let found = format!("{} {kind}{model}, {memory}", node.gpus.len());
            let sick: Vec<_> =
                node.gpus.iter().filter_map(|gpu| Some((gpu.number, gpu.trouble.clone()?))).collect();
            match sick.first() {
                None => Verdict::good("GPUs", found),
                Some((number, why)) => Verdict::warning(
                    "GPUs",
                    format!("{found}; {} cannot be used, GPU {number}: {why}", sick.len()),
                    "reset it with `nvidia-smi --gpu-reset`, or leave it out with --gpus",
                ),
            }
        }
    }
}

fn cpus(options: &DaemonOptions, topology: &Topology) -> Verdict {
    let all = topology.cpus();
    let found = format!(
        "{} CPUs, {} cores, {} sockets, {} NUMA nodes, {}",
        all.len(),
        topology.cores.len(),
        topology.sockets.len(),
        topology.numa.len(),
        Bytes(topology.mem_bytes())
    );
    match &options.node.cpus {
        _ if all.is_empty() => Verdict::bad("topology", "no CPU was found", "is /sys mounted?"),
        Some(asked) if asked.and(&all) != *asked => {
            Verdict::bad("topology", format!("{found}: not all of {asked}"), format!("choose among {all}"))
        }
        asked => {
            let used: &Ranges = asked.as_ref().unwrap_or(&all);
            Verdict::good("topology", format!("{found}; jobs get {used}"))
        }
    }
}

fn limits(options: &DaemonOptions) -> Verdict {
    match (cgroup::support(), options.launch.limits) {
        (_, LimitOption::Never) => Verdict::good("cgroups", "not asked for (--limits never)"),
        (Ok(version), _) => {
            Verdict::good("cgroups", format!("{version}: CPUs, CPU time and memory can be limited"))
        }
        (Err(why), LimitOption::Always) => {
            Verdict::bad("cgroups", why.to_string(), "run as root, or give up limits with --limits auto")
        }
        (Err(why), LimitOption::Auto) => Verdict::warning(
            "cgroups",
            format!("CPU and memory of jobs cannot be limited: {why}"),
            "run as root, or delegate a control group with the controllers cpu, cpuset and memory",
        ),
    }
}

fn gpu_devices(options: &DaemonOptions) -> Verdict {
    match (devices::support(), options.launch.limits) {
        (_, LimitOption::Never) => Verdict::good("GPU devices", "not limited (--limits never)"),
        (_, _) if options.node.emulate_gpus.is_some() => {
            Verdict::good("GPU devices", "emulated GPUs have none")
        }
        (Ok(version), _) => {
            Verdict::good("GPU devices", format!("{version}: jobs can open only those they were given"))
        }
        (Err(why), _) => Verdict::warning(
            "GPU devices",
            format!("jobs can open those of other jobs, too: {why}"),
            "run as root, on a kernel with control groups for devices (version 1) or CONFIG_CGROUP_BPF (version 2)",
        ),
    }
}

fn accounts(options: &DaemonOptions) -> Verdict {
    let advice = match options.accounts.jobs_as {
        JobsAs::Submitter => "run the agent as root, or let all jobs run as its user with --jobs-as self",
        JobsAs::Own => {
            "leave out --jobs-as self: jobs then run as the accounts of their submitters, and never as root"
        }
    };
    match Accounts::open(&options.accounts) {
        Err(error) => Verdict::bad("accounts", error.to_string(), "mend the file that --accounts names"),
        Ok(accounts) if accounts.is_doubtful() => Verdict::warning("accounts", accounts.text(), advice),
        Ok(accounts) => Verdict::good("accounts", accounts.text()),
    }
}

fn containers(options: &DaemonOptions) -> Verdict {
    let client = &options.launch.container_client;
    let mut words = client.split_whitespace();
    let Some(program) = words.next() else {
        return Verdict::warning("containers", "no client is named", "name one with --container-client");
    };
    let advice = "install docker or podman, or name another with --container-client; processes run without";
    // `info` needs the daemon to answer; `version` also works with the client alone.
    match Command::new(program).args(words).args(["info", "--format", "{{json .}}"]).output() {
        Ok(output) if output.status.success() => {
            let way = gpu_flag::find(&options.launch, options.node.emulate_gpus.is_some());
            let found = format!("`{client}` answers; GPUs are given {}", way.how);
            match way.advice.is_empty() {
                true => Verdict::good("containers", found),
                false => Verdict::warning("containers", found, way.advice),
            }
        }
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            let line = errors.lines().next().unwrap_or("no reason given").trim().to_owned();
            Verdict::warning("containers", format!("`{client}` does not work: {line}"), advice)
        }
        Err(error) => Verdict::warning("containers", format!("`{program}` cannot be run: {error}"), advice),
    }
}

fn directory(name: &'static str, path: &Path) -> Verdict {
    let shown = path.display();
    let advice = format!("make it and let this user write to it: `mkdir -p {shown}`");
    if let Err(error) = std::fs::create_dir_all(path) {
        return Verdict::bad(name, format!("{shown}: {error}"), advice);
    }
    let trial = path.join(format!(".rota-check-{}", std::process::id()));
    if let Err(error) = std::fs::write(&trial, "trial").and_then(|()| std::fs::remove_file(&trial)) {
        return Verdict::bad(name, format!("{shown}: cannot be written to: {error}"), advice);
    }
    match rustix::fs::statvfs(path) {
        Ok(space) if space.f_bavail * space.f_frsize < LEAST_FREE_BYTES => {
            let free = Bytes(space.f_bavail * space.f_frsize);
            Verdict::warning(name, format!("{shown}: only {free} free"), "make room, or choose another disk")
        }
        Ok(space) => Verdict::good(name, format!("{shown}: {} free", Bytes(space.f_bavail * space.f_frsize))),
        Err(error) => Verdict::warning(name, format!("{shown}: free space unknown: {error}"), ""),
    }
}

/// Leases do not look at the wall clock, certificates do.
fn clock() -> Verdict {
    let unix_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let advice = "start a time service (systemd-timesyncd, chrony or ntpd): certificates need the right day";
    let keepers = ["/run/systemd/timesync/synchronized", "/run/chrony/chronyd.pid", "/run/ntpd.pid"];
    match keepers.iter().find(|path| Path::new(path).exists()) {
        _ if unix_s < LEAST_UNIX_S => Verdict::bad("clock", "it was never set", advice),
        Some(_) => Verdict::good("clock", "set by a time service"),
        None => Verdict::warning("clock", "plausible, but no time service was found", advice),
    }
}

fn identity(options: &DaemonOptions) -> Verdict {
    let folder = &options.head.identity;
    match Credentials::load_for(folder, Role::Agent) {
        Ok(credentials) => Verdict::good("identity", format!("{}", credentials.identity())),
        Err(error) => Verdict::bad(
            "identity",
            error.to_string(),
            "on the head: `rota pki issue --agent NAME`; carry the folder here and name it with --identity",
        ),
    }
}

async fn head(options: &DaemonOptions) -> Verdict {
    let Some(address) = &options.head.head else {
        return Verdict::bad("head", "no address is given", "name it with --head HOST:PORT");
    };
    let advice = "is `rota head` running there, and is this UDP port let through?";
    let connect = async {
        let credentials = Credentials::load_for(&options.head.identity, Role::Agent)?;
        let peer = Connector::new(&credentials)?.connect(address).await?;
        peer.close("only a check");
        Ok::<(), ConnectError>(())
    };
    match tokio::time::timeout(PATIENCE, connect).await {
        Ok(Ok(())) => Verdict::good("head", format!("{address} answers and accepts this certificate")),
        Ok(Err(error)) => Verdict::bad("head", error.to_string(), advice),
        Err(_) => Verdict::bad("head", format!("{address} does not answer within {PATIENCE:?}"), advice),
    }
}
