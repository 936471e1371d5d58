//! Nodes and their GPUs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Event;

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Node {
    /// Its name.
    pub(crate) name: String,
    /// Its number, in the order of joining; none of one that never joined.
    pub(crate) index: Option<u32>,
    /// up, silent, lost, drained, draining or unreachable.
    pub(crate) state: String,
    /// The reason for its state; empty if there is nothing to add.
    pub(crate) reason: String,
    /// Its GPUs' type.
    pub(crate) gpu_type: String,
    /// The rack it is in.
    pub(crate) rack: u32,
    /// CPUs that jobs may use.
    pub(crate) cpus: f64,
    /// Memory that jobs may use.
    pub(crate) mem_bytes: u64,
    /// Its agent's version.
    pub(crate) version: String,
    /// Since when it is in its state.
    pub(crate) since_s: f64,
    /// How many GPUs it has.
    pub(crate) n_gpus: u32,
    /// How many of them jobs hold.
    pub(crate) n_busy: u32,
    /// Jobs there that the person may see.
    pub(crate) jobs: Vec<u32>,
    /// Its GPUs, by their numbers.
    pub(crate) gpus: Vec<Gpu>,
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct Gpu {
    /// The job that holds it; -1 is somebody else's, none is free.
    pub(crate) job: Option<i64>,
    /// Other jobs that take turns on it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) others: Vec<i64>,
    /// Whom its job counts for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<String>,
    /// Its job's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Whether it can be used.
    pub(crate) is_healthy: bool,
    /// Its temperature, where the driver says it.
    pub(crate) temperature_c: Option<u32>,
    /// How much of the time it was busy lately, where the driver says it.
    pub(crate) use_percent: Option<u32>,
    /// Memory in use, where the driver says it.
    pub(crate) mem_used_bytes: Option<u64>,
    /// Power that it draws, where the driver says it.
    pub(crate) power_w: Option<f64>,
}

/// A node and everything that is known of it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct NodePage {
    #[serde(flatten)]
    #[schema(inline)]
    pub(crate) node: Node,
    /// What jobs hold there, of those that the person may see.
    pub(crate) placements: Vec<NodePlacement>,
    /// Why it is drained, as an operator put it.
    pub(crate) drained_reason: String,
    /// What happened to it lately.
    pub(crate) events: Vec<Event>,
}

/// What a job holds on a node.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct NodePlacement {
    /// The job.
    pub(crate) job: u32,
    /// Numbers of its GPUs.
    pub(crate) gpus: Vec<u32>,
    /// CPUs.
    pub(crate) cpus: f64,
    /// Memory in bytes.
    pub(crate) mem_bytes: u64,
}

/// A node out of service, or back into it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServiceShape {
    /// How.
    pub(crate) service: ServiceWord,
    /// Why, for people.
    #[serde(default)]
    pub(crate) reason: String,
}

/// How a node is taken out of service, or back into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ServiceWord {
    /// At once: its jobs move.
    Out,
    /// When the jobs that run there have ended.
    OutWhenIdle,
    /// Back.
    In,
}

/// What became of a node.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct NodeChanged {
    /// Its name.
    pub(crate) node: String,
    /// How it is in service now; none if it was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<ServiceWord>,
}

/// A node that cannot be reached is given up.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GiveUpShape {
    /// Says that the person has made sure of it.
    pub(crate) nothing_runs_there: bool,
}
