//! The only way from a plan to the cluster: a [`CheckedPlan`] exists only if nothing is given twice.

use crate::allocation::{Allocation, GpuSet, Slice, WHOLE_GPU};
use crate::ids::{JobId, NodeId};
use crate::plan::{Hold, Plan, Verdict};
use crate::resources::Host;
use crate::snapshot::Snapshot;
use crate::table::JobPhase;

/// A plan that can be carried out as it is.
#[derive(Debug)]
pub struct CheckedPlan {
    plan: Plan,
    /// For each row, whether it runs.
    runs: Vec<bool>,
}

impl CheckedPlan {
    /// The plan that was checked.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn runs(&self, row: usize) -> bool {
        self.runs[row]
    }

    pub(crate) fn into_plan(self) -> Plan {
        self.plan
    }

    /// Takes out the plan's remarks.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.plan.notes)
    }

    /// The plan after `mend`, which says whether it changed it; a changed plan is checked again.
    pub(crate) fn mended(
        mut self,
        snapshot: &Snapshot,
        mend: impl FnOnce(&Snapshot, &mut Plan) -> bool,
    ) -> Result<Self, PlanViolation> {
        match mend(snapshot, &mut self.plan) {
            true => check(snapshot, self.plan),
            false => Ok(self),
        }
    }
}

/// Why a plan cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanViolation {
    /// The job has ended, or never existed.
    #[error("job {job}: is not active, so a plan cannot {what} it")]
    UnknownJob {
        /// The job that the plan names.
        job: JobId,
        /// What the plan wants with it, as a verb.
        what: &'static str,
    },
    /// Two lines for one job.
    #[error("job {job}: is planned twice")]
    PlannedTwice {
        /// The job that the plan names.
        job: JobId,
    },
    /// A verdict on a job that does not ask.
    #[error("job {job}: is admitted already, so it cannot be admitted or declined")]
    NotAsking {
        /// The job that the plan names.
        job: JobId,
    },
    /// It runs without admission.
    #[error("job {job}: is to run but was not admitted")]
    NotAdmitted {
        /// The job that the plan names.
        job: JobId,
    },
    /// It keeps what it does not have.
    #[error("job {job}: is to keep what it holds but does not run")]
    KeepsNothing {
        /// The job that the plan names.
        job: JobId,
    },
    /// A gang that is not whole, or a count the job cannot use.
    #[error("job {job}: is given {given} GPUs, asks for {asked}")]
    WrongCount {
        /// The job that the plan names.
        job: JobId,
        /// GPUs that the plan gives it.
        given: u32,
        /// The counts that the job can use, as text.
        asked: String,
    },
    /// A node that is not there, or down.
    #[error("job {job}: is placed on node {node}, which {why}")]
    NoSuchNode {
        /// The job that the plan names.
        job: JobId,
        /// The node that the plan names.
        node: NodeId,
        /// Whether it is missing, down, or has a bad GPU.
        why: &'static str,
    },
    /// GPUs the node does not have, none, or one node listed twice.
    #[error("job {job}: is given GPUs {gpus:?} of node {node}: {why}")]
    BadGpus {
        /// The job that the plan names.
        job: JobId,
        /// The node that the plan names.
        node: NodeId,
        /// Their numbers on the node, from 0.
        gpus: Vec<u32>,
        /// What is wrong with them.
        why: &'static str,
    },
    /// A GPU given to more than it has room for.
    #[error("node {node}: GPU {gpu} is given away beyond its capacity, the last part of it to job {job}")]
    GpuTwice {
        /// The node that the plan names.
        node: NodeId,
        /// Its number on the node, from 0.
        gpu: u32,
        /// The job with which the limit was exceeded.
        job: JobId,
    },
    /// Two jobs on the same GPUs that cannot have them at the same time.
    #[error("job {job}: cannot run beside job {mate} on node {node}: {why}")]
    NotBeside {
        /// The job that the plan names.
        job: JobId,
        /// The other job on its GPUs.
        mate: JobId,
        /// The node that the plan names.
        node: NodeId,
        /// What speaks against it.
        why: &'static str,
    },
    /// More host resources than the node has.
    #[error("node {node}: has {has}, the plan gives {given}, the last of it to job {job}")]
    HostTwice {
        /// The node that the plan names.
        node: NodeId,
        /// All of the node's host resources.
        has: Host,
        /// What the plan gives away of them up to this job.
        given: Host,
        /// The job with which the limit was exceeded.
        job: JobId,
    },
}

/// Checks a plan against the snapshot it was made for.
pub fn check(snapshot: &Snapshot, plan: Plan) -> Result<CheckedPlan, PlanViolation> {
    let runs = rows_that_run(snapshot, &plan)?;
    Ok(CheckedPlan { plan, runs })
}

/// Whether a plan would pass [`check`].
pub fn is_sound(snapshot: &Snapshot, plan: &Plan) -> bool {
    rows_that_run(snapshot, plan).is_ok()
}

/// For each row, whether a plan runs it; or what is wrong with the plan.
fn rows_that_run<'a>(snapshot: &'a Snapshot, plan: &'a Plan) -> Result<Vec<bool>, PlanViolation> {
    let jobs = &snapshot.jobs;
    let mut admitted = vec![false; if plan.verdicts.is_empty() { 0 } else { jobs.len() }];
    let mut judged = admitted.clone();
    for (job, verdict) in &plan.verdicts {
        let row = jobs.row(*job).ok_or(PlanViolation::UnknownJob { job: *job, what: "judge" })?;
        if jobs.phase(row) != JobPhase::Asking || judged[row] {
            return Err(PlanViolation::NotAsking { job: *job });
        }
        judged[row] = true;
        admitted[row] = *verdict == Verdict::Admit;
    }
    let mut runs = vec![false; jobs.len()];
    let mut given = Given::new(snapshot);
    for run in &plan.run {
        let job = run.job;
        let row = jobs.row(job).ok_or(PlanViolation::UnknownJob { job, what: "run" })?;
        if runs[row] {
            return Err(PlanViolation::PlannedTwice { job });
        }
        runs[row] = true;
        if jobs.phase(row) == JobPhase::Asking && !admitted.get(row).copied().unwrap_or(false) {
            return Err(PlanViolation::NotAdmitted { job });
        }
        let allocation = match &run.what {
            Hold::Keep if jobs.phase(row) != JobPhase::Running => {
                return Err(PlanViolation::KeepsNothing { job });
            }
            Hold::Keep => jobs.allocation(row),
            Hold::Take(allocation) => {
                check_request(snapshot, job, row, allocation)?;
                allocation
            }
        };
        given.add(job, row, allocation)?;
    }
    Ok(runs)
}

/// Whether a job can use an allocation, regardless of what other jobs hold.
fn check_request(
    snapshot: &Snapshot,
    job: JobId,
    row: usize,
    allocation: &Allocation,
) -> Result<(), PlanViolation> {
    let spec = snapshot.jobs.spec(row);
    let given = allocation.n_gpus();
    if !spec.gpus.allows(given) {
        let asked = if spec.gpus.levels.is_empty() {
            spec.gpus.asked.to_string()
        } else {
            format!("{}, or one of {:?}", spec.gpus.asked, spec.gpus.levels)
        };
        return Err(PlanViolation::WrongCount { job, given, asked });
    }
    let mut last = None;
    for slice in &allocation.slices {
        let node = slice.node;
        let bad = |why| PlanViolation::BadGpus { job, node, gpus: slice.gpus.iter().collect(), why };
        let Some(found) = snapshot.cluster.node(node) else {
            return Err(PlanViolation::NoSuchNode { job, node, why: "does not exist" });
        };
        if slice.gpus.is_empty() {
            return Err(bad("none at all"));
        }
        if !slice.gpus.is_within(GpuSet::first(found.n_gpus)) {
            return Err(bad("it has fewer"));
        }
        if slice.share == 0 || (slice.share > WHOLE_GPU && !slice.is_beside()) {
            return Err(bad("a share is between 1 and 1000 thousandths"));
        }
        if slice.is_beside() != allocation.is_beside() {
            return Err(bad("a job has all its GPUs beside another, or none"));
        }
        if last.is_some_and(|l| l >= node) {
            return Err(bad("nodes must be listed once, in ascending order"));
        }
        if spec.gpu_type.is_some_and(|t| t != found.gpu_type) {
            return Err(bad("of a type the job cannot use"));
        }
        last = Some(node);
    }
    Ok(())
}

/// What a plan has given away so far.
struct Given<'a> {
    snapshot: &'a Snapshot,
    whole: Vec<GpuSet>,
    host: Vec<Host>,
    shared: std::collections::BTreeMap<(NodeId, u32), u32>,
    /// Who has a GPU that another job may have at the same time.
    beside: std::collections::BTreeMap<(NodeId, u32), (JobId, usize, &'a Allocation)>,
}

impl<'a> Given<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        let n = snapshot.cluster.nodes().len();
        Given {
            snapshot,
            whole: vec![GpuSet::NONE; n],
            host: vec![Host::NONE; n],
            shared: Default::default(),
            beside: Default::default(),
        }
    }

    fn add(&mut self, job: JobId, row: usize, allocation: &'a Allocation) -> Result<(), PlanViolation> {
        for slice in &allocation.slices {
            let (node, index) = (slice.node, slice.node.index());
            if !self.snapshot.nodes.is_up[index] {
                return Err(PlanViolation::NoSuchNode { job, node, why: "is down" });
            }
            if !slice
                .gpus
                .and(self.snapshot.nodes.bad_gpus.get(&node).copied().unwrap_or(GpuSet::NONE))
                .is_empty()
            {
                return Err(PlanViolation::NoSuchNode { job, node, why: "has a bad GPU among those given" });
            }
            let twice = |gpu| PlanViolation::GpuTwice { node, gpu, job };
            let overlap = self.whole[index].and(slice.gpus);
            if let Some(gpu) = overlap.iter().next() {
                return Err(twice(gpu));
            }
            if slice.share == WHOLE_GPU && self.shared.is_empty() {
                self.whole[index] = self.whole[index].or(slice.gpus);
            } else {
                for gpu in slice.gpus.iter() {
                    let sum = self.shared.entry((node, gpu)).or_default();
                    // Beside a job is not in turn with one.
                    let is_mixed = *sum > 0 && slice.is_beside() != self.beside.contains_key(&(node, gpu));
                    *sum += u32::from(slice.thousandths());
                    if is_mixed || *sum > u32::from(WHOLE_GPU) {
                        return Err(twice(gpu));
                    }
                }
            }
            if slice.is_beside() {
                self.put_beside(job, row, slice, allocation)?;
            }
            let has = self.snapshot.cluster.host_of(node);
            let given = self.host[index].checked_add(&slice.host).unwrap_or(slice.host);
            if !given.fits_in(has) || !slice.host.fits_in(&given) {
                return Err(PlanViolation::HostTwice { node, has: *has, given, job });
            }
            self.host[index] = given;
        }
        Ok(())
    }

    /// Two jobs on a GPU have the same GPUs everywhere, and it is known how fast they are then.
    fn put_beside(
        &mut self,
        job: JobId,
        row: usize,
        slice: &Slice,
        allocation: &'a Allocation,
    ) -> Result<(), PlanViolation> {
        let (jobs, node) = (&self.snapshot.jobs, slice.node);
        for gpu in slice.gpus.iter() {
            let Some((mate, its_row, held)) = self.beside.insert((node, gpu), (job, row, allocation)) else {
                continue;
            };
            let refused = |why| Err(PlanViolation::NotBeside { job, mate, node, why });
            if !held.same_gpus(allocation) {
                return refused("one has GPUs that the other has not");
            }
            let rate = jobs.spec(row).rate_beside(jobs.spec(its_row), allocation, &self.snapshot.cluster);
            if rate <= 0.0 {
                return refused("how fast they are together was not measured");
            }
        }
        Ok(())
    }
}
