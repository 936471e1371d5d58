//! The cluster as a whole: who asks, how things stand, tenants.

use serde::Serialize;
use utoipa::ToSchema;

/// Who is signed in, and what they may do.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Me {
    /// The name in their certificate.
    pub(crate) user: String,
    /// `submit`, `operate`, `admin` or `none`.
    pub(crate) role: String,
    /// Whom their jobs may count for.
    pub(crate) tenants: Vec<String>,
    /// To be sent in the header `x-rota-csrf` with everything that changes something.
    pub(crate) csrf: String,
    /// When they have to sign in again.
    pub(crate) expires_unix_s: i64,
    /// What they may do.
    pub(crate) may: Vec<String>,
}

/// How things stand, in a few numbers.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Status {
    /// The head's version.
    pub(crate) version: String,
    /// How often the head has started.
    pub(crate) epoch: u64,
    /// The time on the head's clock.
    pub(crate) now_s: f64,
    /// How that becomes time of the calendar.
    pub(crate) clock: ClockShape,
    /// Whether enough agents are there and rounds are held.
    pub(crate) is_ready: bool,
    /// The policy that decides.
    pub(crate) policy: String,
    /// What is wrong with the head; empty if nothing is.
    pub(crate) trouble: String,
    /// Time between rounds.
    pub(crate) round_s: f64,
    /// Rounds begun so far.
    pub(crate) n_rounds: u64,
    /// Nodes that the head knows.
    pub(crate) n_nodes: u32,
    /// Nodes that are up.
    pub(crate) n_nodes_up: u32,
    /// GPUs of all nodes.
    pub(crate) n_gpus: u32,
    /// GPUs of nodes that are up.
    pub(crate) n_gpus_up: u32,
    /// GPUs held by jobs.
    pub(crate) n_gpus_busy: u32,
    /// Jobs that wait for admission or GPUs.
    pub(crate) n_waiting: u32,
    /// Jobs that run.
    pub(crate) n_running: u32,
}

/// `unix = born_unix_s + t_s / time_scale`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ClockShape {
    /// When the head's clock began.
    pub(crate) born_unix_s: f64,
    /// Seconds of the head's clock in a real one.
    pub(crate) time_scale: f64,
}

/// Whom jobs count for.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Tenant {
    /// Its name.
    pub(crate) name: String,
    /// The most GPUs that its jobs may hold; none is no limit.
    pub(crate) quota: Option<u32>,
    /// GPUs that its jobs hold.
    pub(crate) gpus_held: u32,
    /// Its jobs that run.
    pub(crate) n_running: u32,
    /// Its jobs that wait.
    pub(crate) n_waiting: u32,
    /// GPUs that these ask for.
    pub(crate) gpus_waiting: u32,
}
