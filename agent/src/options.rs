//! The options of the agent, on the command line or in a settings file: what it gives to jobs, where it keeps things, which
//! head it serves.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rota_core::ids::NodeId;
use rota_core::time::Span;
use rota_traces::units::{Bytes, BytesPerSecond};

use crate::probe::machines::{self, MachinesError};
use crate::ranges::Ranges;

/// What of this machine is given to jobs.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What this node gives to jobs")]
pub struct NodeOptions {
    /// GPUs to use, by the driver's numbers, such as 0-3,8 [default: all]
    #[arg(long, value_name = "LIST")]
    pub gpus: Option<Ranges>,
    /// CPUs to use, by the kernel's numbers, such as 0-15,32-47 [default: all]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<Ranges>,
    /// How CPUs are assigned: by NUMA node near the GPUs, or the lowest numbers first
    #[arg(long, value_enum, default_value = "numa")]
    pub cpu_order: CpuOrder,
    /// Memory given to jobs, such as 500GB [default: all]
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<Bytes>,
    /// Storage rate given to jobs, such as 500MB/s; jobs and the policy know it, nothing enforces it [default: none]
    #[arg(long, value_name = "RATE")]
    pub storage: Option<BytesPerSecond>,
    /// The type of GPU, as profiles and policies name it [default: the driver's name for it; V100 when emulated]
    #[arg(long, value_name = "NAME")]
    pub gpu_type: Option<String>,
    /// Emulate this many GPUs [default: none: the machine's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub emulate_gpus: Option<u32>,
    /// Memory of each emulated GPU [default: 32GB]
    #[arg(long, value_name = "BYTES", requires = "emulate_gpus")]
    pub gpu_memory: Option<Bytes>,
    /// Emulate this many CPUs; jobs are then not bound to CPUs, and nothing is limited [default: none: the machine's own]
    #[arg(long, value_name = "N", requires = "emulate_gpus", value_parser = n_cpus)]
    pub emulate_cpus: Option<f64>,
    /// How often the health of GPUs is checked
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = Span::parse)]
    pub health_every: Span,
    /// The rack or switch of this node
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub rack: u32,
    /// Synergy's machine list: a line for each server, ip,port,first GPU,first CPU,NUMA [default: none]
    #[arg(long, value_name = "FILE", requires = "machine")]
    pub machines: Option<PathBuf>,
    /// Which line of the machine list this server is, from 0 [default: none]
    #[arg(long, value_name = "N", requires = "machines")]
    pub machine: Option<u32>,
    /// The cluster file the machine list is for: it must have as many servers [default: none]
    #[arg(long, value_name = "FILE", requires = "machines")]
    pub cluster: Option<PathBuf>,
    /// GPUs below this number are left to other programs; set by the machine list.
    #[arg(skip)]
    pub first_gpu: u32,
    /// CPUs below this number are left to other programs; set by the machine list.
    #[arg(skip)]
    pub first_cpu: u32,
}

impl NodeOptions {
    /// Takes over this server's line of the machine list, if one was named; its address is returned.
    pub fn take_machine(&mut self) -> Result<Option<IpAddr>, MachinesError> {
        let (Some(path), Some(number)) = (&self.machines, self.machine) else { return Ok(None) };
        let read = |path: &PathBuf| {
            let named = |error| MachinesError::File { path: path.clone(), why: format!("{error}") };
            std::fs::read_to_string(path).map_err(named)
        };
        let listed = machines::read(&read(path)?)?;
        if let Some(cluster) = &self.cluster {
            machines::check_count(&listed, &read(cluster)?)?;
        }
        let machine = machines::of_node(&listed, NodeId(number))?;
        (self.first_gpu, self.first_cpu) = (machine.first_gpu, machine.first_cpu);
        self.cpu_order = if machine.is_numa_aware { CpuOrder::Numa } else { CpuOrder::Plain };
        Ok(Some(machine.address))
    }
}

/// How CPUs are assigned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CpuOrder {
    /// Whole NUMA nodes, near the GPUs.
    #[default]
    Numa,
    /// The lowest free numbers.
    Plain,
}

/// Where an agent keeps things.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Where things are kept")]
pub struct PlaceOptions {
    /// Launches, their output and what must survive a restart
    #[arg(long, value_name = "DIR", default_value = "/var/lib/rota-agent")]
    pub run_dir: PathBuf,
    /// Data sets; jobs find the path in ROTA_DATA_DIR [default: RUN_DIR/data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Checkpoints; a path shared by all nodes lets jobs move between them [default: RUN_DIR/checkpoints]
    #[arg(long, value_name = "DIR")]
    pub checkpoint_dir: Option<PathBuf>,
}

impl PlaceOptions {
    /// Where data sets are.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| self.run_dir.join("data"))
    }

    /// Where checkpoints are.
    pub fn checkpoint_dir(&self) -> PathBuf {
        self.checkpoint_dir.clone().unwrap_or_else(|| self.run_dir.join("checkpoints"))
    }

    /// The folder of a job that names no path of its own.
    pub fn checkpoints_of(&self, job: u32) -> PathBuf {
        self.checkpoint_dir().join(job.to_string())
    }
}

/// How jobs are started.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "How jobs are started")]
pub struct LaunchOptions {
    /// Whether limits of CPU, memory and GPU devices are set in control groups: auto limits where the machine can
    #[arg(long, value_enum, default_value = "auto")]
    pub limits: LimitOption,
    /// The client of the container runtime with its global options
    #[arg(long, value_name = "COMMAND", default_value = "docker")]
    pub container_client: String,
    /// How containers are given GPUs: {gpus} is the list of their numbers, an option with {gpu} is repeated for each; auto asks the
    /// client at start (its --gpus, else CDI, else device files)
    #[arg(long, value_name = "OPTIONS", default_value = "auto", allow_hyphen_values = true)]
    pub container_gpu_flag: String,
    /// Another option for every container [default: none]
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub container_option: Vec<String>,
    /// Where other nodes reach this one [default: its host name]
    #[arg(long, value_name = "HOST")]
    pub address: Option<String>,
}

/// Who jobs run as.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Who jobs run as")]
pub struct AccountOptions {
    /// Who jobs run as: submitter is the account of the user who submitted them, never root, and an agent that is not root
    /// runs the jobs of its own account only; self is the agent's own user, whoever submitted them
    #[arg(long, value_enum, default_value = "submitter")]
    pub jobs_as: JobsAs,
    /// A table with lines `user account` for users whose account has another name; `none` refuses a user's jobs, and the
    /// user `*` is everybody who is not listed [default: the account of the same name]
    #[arg(long, value_name = "FILE")]
    pub accounts: Option<PathBuf>,
}

/// Who jobs run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JobsAs {
    /// The account of the user who submitted them.
    Submitter,
    /// The agent's own user.
    #[value(name = "self")]
    Own,
}

/// Whether limits are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LimitOption {
    /// Where the machine can.
    Auto,
    /// Always: a launch that cannot be limited fails.
    Always,
    /// Never.
    Never,
}

/// The head an agent serves, and how it is reached.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "The head")]
pub struct HeadOptions {
    /// The head, as host:port; it must be given here or in --settings [default: none]
    #[arg(long, value_name = "HOST:PORT")]
    pub head: Option<String>,
    /// The folder with this agent's certificate and key, as `rota pki issue` wrote it
    #[arg(long, value_name = "DIR", default_value = "/etc/rota/agent")]
    pub identity: PathBuf,
    /// A one-time token of `rota pki token`: if --identity has no certificate yet, the agent gets one with it [default:
    /// none]
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// The longest wait between two attempts to reach the head
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = Span::parse)]
    pub retry_at_most: Span,
}

/// A number outside of what an option takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}")]
pub(crate) struct OutOfRange {
    expected: &'static str,
}

/// Reads a number for which a condition holds, described in words.
pub(crate) fn number(
    text: &str,
    expected: &'static str,
    holds: impl FnOnce(f64) -> bool,
) -> Result<f64, OutOfRange> {
    text.parse().ok().filter(|number| holds(*number)).ok_or(OutOfRange { expected })
}

fn n_cpus(text: &str) -> Result<f64, OutOfRange> {
    number(text, "a number of CPUs from 0.001 to 100000", |n| (0.001..=100_000.0).contains(&n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_takes_its_line_of_the_machine_list() {
        let folder = tempfile::tempdir().expect("a folder");
        let (list, cluster) = (folder.path().join("machines"), folder.path().join("cluster.toml"));
        std::fs::write(&list, "10.0.0.4,1,0,0,1\n10.0.0.4,2,4,12,0\n").expect("written");
        std::fs::write(&cluster, "[[nodes]]\ncount = 2\n").expect("written");
        let (machines, cluster) = (Some(list), Some(cluster));
        let mut options = NodeOptions { machines, machine: Some(1), cluster, ..NodeOptions::default() };
        let address = options.take_machine().expect("listed").expect("an address");
        assert_eq!(address.to_string(), "10.0.0.4");
        assert_eq!((options.first_gpu, options.first_cpu, options.cpu_order), (4, 12, CpuOrder::Plain));
        options.machine = Some(2);
        assert!(options.take_machine().is_err());
        options.machines = Some(folder.path().join("none"));
        assert!(options.take_machine().expect_err("no file").to_string().contains("none: "));
    }
}
