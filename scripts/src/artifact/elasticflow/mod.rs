//! ElasticFlow's simulator (ASPLOS'23 artifact) and the baselines it carries: its clock, progress, overhead and ends.
//!
//! ```text
//!  elastic   ef-accessctrl, ef     least shares in deadline order, then spare GPUs one level at a time (`scale`)
//!  edf       edf, edf-accessctrl   earliest plans in deadline order
//!  gandiva   gandiva               classes of nodes, time slices by rotation
//!  tiresias  dlas-gpu              queues by attained service
//!  themis    themis                leases by finish-time fairness
//! ```
//!
//! Shared with the shipped policies: the timeline's least share and earliest plans ([`rota_core::timeline`]), the
//! buddy shelves ([`rota_core::buddy`]) and the fair shares of Themis. What the original does differently around them
//! is in `plans`; its event list is in `events`. The differences from the shipped policies and what they do to the
//! numbers are in docs/fidelity.md.

mod accounts;
mod deadlines;
mod edf;
mod elastic;
mod events;
mod gandiva;
mod job;
mod overhead;
mod plans;
mod scale;
mod themis;
mod tiresias;

use rota_core::allocation::{GpuSet, Slice, WHOLE_GPU};
use rota_core::cluster::Cluster;
use rota_core::ids::NodeId;
use rota_core::resources::Host;
use rota_core::time::Span;
use rota_core::workload::Workload;
use smallvec::SmallVec;

use super::{Defect, Defects};

pub use job::{Judgement, Run};

/// The original's schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// `ef-accessctrl`: ElasticFlow.
    ElasticFlow,
    /// `ef`: its elastic scaling without admission.
    ElasticFlowOpen,
    /// `edf`.
    Edf,
    /// `edf-accessctrl`: with admission.
    EdfAdmission,
    /// `gandiva`.
    Gandiva,
    /// `dlas-gpu`: Tiresias.
    Tiresias,
    /// `themis`.
    Themis,
}

impl Scheduler {
    /// All of them, by the original's names.
    pub const ALL: [(&'static str, Scheduler); 7] = [
        ("ef-accessctrl", Scheduler::ElasticFlow),
        ("ef", Scheduler::ElasticFlowOpen),
        ("edf", Scheduler::Edf),
        ("edf-accessctrl", Scheduler::EdfAdmission),
        ("gandiva", Scheduler::Gandiva),
        ("dlas-gpu", Scheduler::Tiresias),
        ("themis", Scheduler::Themis),
    ];

    /// By the original's name or by that of the shipped policy.
    pub fn parse(name: &str) -> Result<Self, ArtifactError> {
        let original = match name {
            "elasticflow" => "ef-accessctrl",
            "elasticflow-open" => "ef",
            "edf-admission" => "edf-accessctrl",
            "tiresias" => "dlas-gpu",
            other => other,
        };
        let known = Self::ALL.iter().find(|(known, _)| *known == original).map(|(_, scheduler)| *scheduler);
        known.ok_or_else(|| ArtifactError::Scheduler { name: name.to_owned() })
    }

    /// Whether it scales jobs up to their own limit (the others only know the tables').
    fn is_elastic(self) -> bool {
        matches!(self, Scheduler::ElasticFlow | Scheduler::ElasticFlowOpen)
    }

    /// Whether it uses the trace's run times instead of speeds.
    fn uses_durations(self) -> bool {
        matches!(self, Scheduler::Gandiva | Scheduler::Tiresias | Scheduler::Themis)
    }
}

/// How a run goes.
#[derive(Clone, Copy, Debug)]
pub struct ElasticflowSettings<'a> {
    /// Which of its schedulers.
    pub scheduler: Scheduler,
    /// Time between decisions.
    pub slot: Span,
    /// Run times of the trace, by job id; without them they are computed from the work.
    pub durations: Option<&'a [Span]>,
    /// The defects that the run has.
    pub defects: Defects,
    /// Whether what ran where is recorded, as far as the scheduler knows.
    pub keeps_timeline: bool,
}

impl ElasticflowSettings<'_> {
    /// The original as it is.
    pub fn new(scheduler: Scheduler, slot: Span) -> Self {
        ElasticflowSettings { scheduler, slot, durations: None, defects: Defects::ALL, keeps_timeline: false }
    }
}

/// A run that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArtifactError {
    /// No such scheduler.
    #[error(
        "the original has no scheduler `{name}`: it has ef-accessctrl, ef, edf, edf-accessctrl, gandiva, dlas-gpu and themis"
    )]
    Scheduler {
        /// What was asked for.
        name: String,
    },
    /// A job the original cannot handle.
    #[error("job {name}: {why}")]
    Job {
        /// Its name in the trace.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A cluster the original cannot describe.
    #[error("the original knows only like nodes: {why}")]
    Cluster {
        /// What is wrong with it.
        why: String,
    },
    /// A slot of nothing.
    #[error("a slot of {slot} s: the original needs whole seconds, one at least")]
    Slot {
        /// The length that the original cannot use.
        slot: Span,
    },
}

/// Like nodes in racks.
#[derive(Clone, Debug)]
struct Machines {
    /// Number of each node within its rack: the original sorts free nodes by it, though racks share numbers.
    keys: Vec<u32>,
    gpus_per_node: u32,
    n_gpus: u32,
}

impl Machines {
    fn of(cluster: &Cluster) -> Result<Self, ArtifactError> {
        let nodes = cluster.nodes();
        let wrong = |why: &str| ArtifactError::Cluster { why: why.to_owned() };
        let first = nodes.first().ok_or_else(|| wrong("there is none"))?;
        if nodes.iter().any(|n| n.n_gpus != first.n_gpus || n.gpu_type != first.gpu_type) {
            return Err(wrong("some have other GPUs than the first"));
        }
        let mut keys = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let is_new_rack = index == 0 || nodes[index - 1].rack != node.rack;
            keys.push(if is_new_rack { 0 } else { keys[index - 1] + 1 });
        }
        Ok(Machines { keys, gpus_per_node: first.n_gpus, n_gpus: cluster.n_gpus() })
    }

    /// So many GPUs of a set of nodes, from its `first` on.
    fn slices(&self, nodes: &[u32], first: u32, gpus: u32) -> SmallVec<[Slice; 1]> {
        let (per_node, past) = (self.gpus_per_node, first + gpus);
        let on_node = |(index, node): (usize, &u32)| {
            let begin = index as u32 * per_node;
            let (from, to) = (first.max(begin), past.min(begin + per_node));
            let gpus = GpuSet::first(to.saturating_sub(begin)).without(GpuSet::first(from - begin));
            let node = NodeId(*node);
            (from < to).then_some(Slice { node, gpus, share: WHOLE_GPU, host: Host::NONE })
        };
        nodes.iter().enumerate().filter_map(on_node).collect()
    }
}

/// What every scheduler is given.
struct Case {
    jobs: Vec<job::Job>,
    machines: Machines,
    slot: Span,
    defects: Defects,
    accounts: accounts::Accounts,
}

impl Case {
    fn has(&self, defect: Defect) -> bool {
        self.defects.has(defect)
    }
}

/// Runs a workload through one of the original's schedulers.
pub fn run(
    cluster: &Cluster,
    workload: &Workload,
    settings: &ElasticflowSettings<'_>,
) -> Result<Run, ArtifactError> {
    let slot = settings.slot;
    if slot < Span::from_secs(1) || slot.0 % 1_000_000 != 0 {
        return Err(ArtifactError::Slot { slot });
    }
    let machines = Machines::of(cluster)?;
    let jobs = job::jobs_of(workload, cluster, settings)?;
    let accounts = accounts::Accounts::new(jobs.len(), machines.n_gpus, settings.keeps_timeline);
    let case = Case { jobs, machines, slot, defects: settings.defects, accounts };
    match settings.scheduler {
        Scheduler::ElasticFlow => elastic::run(case, elastic::Admission::Deadlines),
        Scheduler::ElasticFlowOpen => elastic::run(case, elastic::Admission::None),
        Scheduler::Edf => edf::run(case),
        Scheduler::EdfAdmission => edf::run_with_admission(case),
        Scheduler::Gandiva => gandiva::run(case),
        Scheduler::Tiresias => tiresias::run(case),
        Scheduler::Themis => themis::run(case),
    }
}

#[cfg(test)]
mod defect_tests;
#[cfg(test)]
mod tests;
