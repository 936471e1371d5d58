//! What this node has: GPUs by NVIDIA's library, CPUs and memory by hwloc or /sys, or what an operator
//! chooses to emulate.
//!
//! What of it a job gets is decided by the head; which CPUs these are is in `cpus`.

mod cpus;
mod gpus;
#[cfg(feature = "hwloc")]
mod hwloc;
pub mod machines;
mod sysfs;
mod topology;

use rota_core::cluster::MAX_GPUS_PER_NODE;
use rota_core::resources::{CPU, Host};

use crate::options::NodeOptions;
use crate::ranges::Ranges;

pub use cpus::CpuPool;
pub use gpus::{
    BAD_GPUS_FILE, Driver, DriverError, Gpu, find as find_gpus, find_by as find_gpus_by, pretended_trouble,
    trouble,
};
pub use topology::{NumaNode, Topology, read as read_topology, read_by};

/// What a node offers to jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its GPUs; jobs know them by their place here.
    pub gpus: Vec<Gpu>,
    /// CPUs, memory and storage rate in all.
    pub host: Host,
    /// CPUs that are given to jobs; empty when they are emulated.
    pub cpus: Ranges,
    /// Sockets, NUMA nodes and caches.
    pub topology: Topology,
    /// Whether its GPUs are emulated.
    pub is_emulated: bool,
}

/// Why a node cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// No driver, or no GPU, where some are needed.
    #[error("no GPU: {why}; `--emulate-gpus N` emulates some")]
    NoGpu {
        /// The driver's error.
        why: String,
    },
    /// GPUs that were asked for and are not there.
    #[error("--gpus {asked}: this node has GPUs {present}")]
    GpusMissing {
        /// The GPUs that `--gpus` names.
        asked: Ranges,
        /// The GPUs of this machine.
        present: Ranges,
    },
    /// CPUs that were asked for and are not there.
    #[error("--cpus {asked}: this node has CPUs {present}")]
    CpusMissing {
        /// The CPUs that `--cpus` names.
        asked: Ranges,
        /// The CPUs of this machine.
        present: Ranges,
    },
    /// More than a node may have.
    #[error("{n_gpus} GPUs: a node has at most {MAX_GPUS_PER_NODE}")]
    TooManyGpus {
        /// GPUs that were found.
        n_gpus: usize,
    },
}

/// Finds what the node has, within what the options allow.
pub fn node(options: &NodeOptions) -> Result<Node, ProbeError> {
    let topology = read_topology();
    let gpus = match options.emulate_gpus {
        Some(n_gpus) => gpus::emulated(n_gpus, options),
        None => real_gpus(options)?,
    };
    if gpus.len() > MAX_GPUS_PER_NODE as usize {
        return Err(ProbeError::TooManyGpus { n_gpus: gpus.len() });
    }
    let cpus = own_cpus(options, &topology)?;
    let n_cpus = options.emulate_cpus.unwrap_or(cpus.len() as f64);
    let host = Host {
        cpu_micro: (n_cpus * CPU as f64).round() as u64,
        mem_bytes: options.memory.map_or(topology.mem_bytes(), |memory| memory.0),
        storage_bps: options.storage.map_or(0, |storage| storage.0),
    };
    let is_pretended = options.emulate_cpus.is_some();
    let cpus = if is_pretended { Ranges::default() } else { cpus };
    Ok(Node { gpus, host, cpus, topology, is_emulated: options.emulate_gpus.is_some() })
}

fn real_gpus(options: &NodeOptions) -> Result<Vec<Gpu>, ProbeError> {
    let mut gpus = match find_gpus() {
        Ok(gpus) if gpus.is_empty() => {
            return Err(ProbeError::NoGpu { why: "the driver shows none".to_owned() });
        }
        Ok(gpus) => gpus,
        Err(error) => return Err(ProbeError::NoGpu { why: error.to_string() }),
    };
    if let Some(asked) = &options.gpus {
        let present: Ranges = gpus.iter().map(|gpu| gpu.number).collect();
        if asked.and(&present) != *asked {
            return Err(ProbeError::GpusMissing { asked: asked.clone(), present });
        }
        gpus.retain(|gpu| asked.contains(gpu.number));
    }
    gpus.retain(|gpu| gpu.number >= options.first_gpu);
    if let Some(model) = &options.gpu_type {
        gpus.iter_mut().for_each(|gpu| gpu.model.clone_from(model));
    }
    Ok(gpus)
}

fn own_cpus(options: &NodeOptions, topology: &Topology) -> Result<Ranges, ProbeError> {
    let present = topology.cpus();
    match &options.cpus {
        Some(asked) if asked.and(&present) != *asked => {
            Err(ProbeError::CpusMissing { asked: asked.clone(), present })
        }
        Some(asked) => Ok(asked.clone()),
        None => Ok(present.as_slice().iter().copied().filter(|cpu| *cpu >= options.first_cpu).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pretended_node_has_what_was_said() {
        let options = NodeOptions {
            emulate_gpus: Some(8),
            emulate_cpus: Some(24.0),
            memory: Some("500GB".parse().expect("bytes")),
            storage: Some("500MB/s".parse().expect("a rate")),
            gpu_type: Some("A100".to_owned()),
            gpu_memory: Some("40GB".parse().expect("bytes")),
            ..NodeOptions::default()
        };
        let node = node(&options).expect("a node");
        assert_eq!(node.host, Host::from_units(24.0, 500.0, 500.0));
        assert_eq!((node.gpus.len(), node.gpus[7].number), (8, 7));
        assert_eq!((node.gpus[0].model.as_str(), node.gpus[0].mem_bytes), ("A100", 40_000_000_000));
        assert!(node.cpus.is_empty() && node.is_emulated);
    }

    #[test]
    fn two_agents_of_one_host_may_pretend_different_gpus() {
        let gpus = Some("4-7".parse().expect("GPUs"));
        let options = NodeOptions { emulate_gpus: Some(8), gpus, ..NodeOptions::default() };
        let numbers: Vec<u32> = node(&options).expect("a node").gpus.iter().map(|gpu| gpu.number).collect();
        assert_eq!(numbers, [4, 5, 6, 7]);
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        let cpus = Some("0,60000".parse().expect("CPUs"));
        let options = NodeOptions { emulate_gpus: Some(1), cpus, ..NodeOptions::default() };
        let error = node(&options).expect_err("no such CPU").to_string();
        assert!(error.contains("--cpus 0,60000: this node has CPUs 0"), "{error}");
        let options = NodeOptions { emulate_gpus: Some(65), ..NodeOptions::default() };
        assert_eq!(node(&options), Err(ProbeError::TooManyGpus { n_gpus: 65 }));
    }
}
