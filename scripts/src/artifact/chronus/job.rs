//! A job as the original keeps it.

use rota_core::allocation::Slice;
use rota_core::cluster::Cluster;
use rota_core::job::{Deadline, JobSpec};
use rota_core::workload::{Truth, Workload};
use rota_solvers::chronus_leases::LeaseRow;

use super::{ArtifactError, ChronusSettings, Defect};

/// A deadline is worth this much at most.
pub(super) const MOST_VALUE: f64 = 10.0;

/// Cost of one start, in units of time for a single GPU.
const RESTART_COST: f64 = 0.5;

/// Factor by which durations are taken to be longer than traced.
const CAUTION: f64 = 1.1;

/// The original's priority classes, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Its deadline is out of reach.
    Lowest,
    /// Its deadline is promised.
    Accepted,
    /// It has a deadline and no promise.
    Unaccepted,
    /// It has no deadline.
    BestEffort,
}

/// What is kept of a job. Times are in units of the trace.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) name: String,
    /// The trace's number for it, by which frozen rows are sorted.
    pub(super) number: i64,
    pub(super) gpus: u32,
    pub(super) submit: i64,
    /// What plans assume.
    pub(super) duration: i64,
    pub(super) true_duration: i64,
    /// Deadlines after submission with their values, tightest first.
    pub(super) levels: Vec<(i64, f64)>,
    pub(super) is_best_effort: bool,
    pub(super) class: Class,
    /// Deadline after submission that it is held to.
    pub(super) expected: i64,
    pub(super) estimate: i64,
    pub(super) progress: i64,
    pub(super) executed: i64,
    pub(super) waited: i64,
    /// Leases still needed.
    pub(super) need: i64,
    /// Whether it runs in each lease to come.
    pub(super) plan: Option<Vec<bool>>,
    pub(super) level: usize,
    pub(super) holds_lease: bool,
    pub(super) is_forced: bool,
    /// It ran longer than estimated.
    pub(super) is_overdue: bool,
    pub(super) is_in_model: bool,
    pub(super) n_resumes: u32,
    pub(super) n_preempts: u32,
    pub(super) last_check: i64,
    pub(super) emergence: i64,
    pub(super) start: Option<i64>,
    pub(super) end: Option<f64>,
    /// GPUs held, by node.
    pub(super) places: Vec<Slice>,
    /// GPUs as rows of the model count them.
    model_gpus: u32,
}

impl Job {
    /// Time added to the job by its starts.
    pub(super) fn overhead(&self) -> f64 {
        f64::from(self.n_resumes) * RESTART_COST * self.width()
    }

    /// 1 + log2 of the gang.
    fn width(&self) -> f64 {
        1.0 + f64::from(self.gpus).log2()
    }

    /// The duration to plan with, given what is believed of it.
    pub(super) fn estimate_of(&self, duration: f64, lease: i64) -> i64 {
        let restarts = 1.0 + self.width() * RESTART_COST / lease as f64;
        (duration * restarts * CAUTION) as i64
    }

    /// Leases that what is left of the estimate takes.
    pub(super) fn leases_left(&self, lease: i64) -> i64 {
        let left = self.estimate - self.progress;
        left.div_euclid(lease) + i64::from(left.rem_euclid(lease) > 0)
    }

    pub(super) fn is_guaranteed(&self) -> bool {
        self.holds_lease || self.is_forced
    }

    /// The order of jobs that run without a lease, descending.
    pub(super) fn rank(&self) -> (bool, Class, i64, i64) {
        (self.is_overdue, self.class.min(Class::Unaccepted), self.emergence, -self.submit)
    }

    /// Rows of the lease model, one for each level, seen from lease number `index`.
    pub(super) fn rows(&self, lease: i64, index: i64) -> impl Iterator<Item = LeaseRow> {
        let (gpus, need) = (self.model_gpus, u32::try_from(self.need).unwrap_or(0));
        self.levels.iter().enumerate().map(move |(level, &(deadline, value))| {
            let horizon = (self.submit + deadline).div_euclid(lease) - index;
            LeaseRow { gpus, need, horizon, value, level: level as u32 }
        })
    }

    /// Whole leases before the deadline it is held to.
    pub(super) fn horizon(&self, lease: i64, index: i64) -> i64 {
        (self.submit + self.expected).div_euclid(lease) - index
    }

    /// Clears so many of its planned leases, the earliest first.
    pub(super) fn clear_earliest(&mut self, n_leases: i64) {
        let planned = self.plan.iter_mut().flatten().filter(|runs| **runs);
        planned.take(usize::try_from(n_leases).unwrap_or(0)).for_each(|runs| *runs = false);
    }

    /// What missing its deadlines cost: 0 when the first was met, 1 when none was.
    pub(super) fn missed_value(&self) -> f64 {
        let Some(end) = self.end.filter(|_| !self.is_best_effort) else { return 0.0 };
        let met = self.levels.iter().find(|(deadline, _)| (self.submit + deadline) as f64 >= end);
        met.map_or(1.0, |(_, value)| 1.0 - value / MOST_VALUE)
    }
}

/// The jobs of a workload, by id: in order of submission.
pub(super) fn jobs_of(
    cluster: &Cluster,
    workload: &Workload,
    settings: &ChronusSettings<'_>,
) -> Result<Vec<Job>, ArtifactError> {
    let jobs = workload.jobs.iter().zip(&workload.truths).enumerate();
    jobs.map(|(id, (spec, truth))| job_of(id, spec, truth, cluster, settings)).collect()
}

fn job_of(
    id: usize,
    spec: &JobSpec,
    truth: &Truth,
    cluster: &Cluster,
    settings: &ChronusSettings<'_>,
) -> Result<Job, ArtifactError> {
    let wrong = |why: String| ArtifactError::Job { name: spec.name.to_string(), why };
    if spec.gpus.asked > cluster.n_gpus() {
        return Err(wrong(format!("asks {} GPUs, the cluster has {}", spec.gpus.asked, cluster.n_gpus())));
    }
    let unit_s = settings.unit.as_secs_f64();
    let rate = spec.fair_rate(cluster);
    let units = |work: f64| (work / rate / unit_s).round() as i64;
    let true_duration = units(truth.work / truth.pace);
    let submit = spec.arrival.0.div_euclid(settings.unit.0.max(1));
    let after = |time: rota_core::time::Time| (time - spec.arrival).0.div_euclid(settings.unit.0.max(1));
    let expectation = settings.expectations.and_then(|times| times.get(id)).copied();
    let levels = match &spec.deadline {
        Deadline::None => vec![(expectation.unwrap_or(true_duration), MOST_VALUE)],
        Deadline::Strict(time) => vec![(after(*time), MOST_VALUE)],
        Deadline::Soft(steps) => steps.iter().map(|(time, value)| (after(*time), *value)).collect(),
    };
    let expected =
        levels.first().map(|(time, _)| *time).ok_or_else(|| wrong("has no deadline step".into()))?;
    Ok(Job {
        name: spec.name.to_string(),
        number: spec.name.parse().unwrap_or(id as i64),
        gpus: spec.gpus.asked,
        submit,
        duration: units(spec.estimated_work),
        true_duration,
        expected,
        levels,
        is_best_effort: spec.deadline == Deadline::None,
        class: Class::Accepted,
        estimate: 0,
        progress: 0,
        executed: 0,
        waited: 0,
        need: 0,
        plan: None,
        level: 0,
        holds_lease: false,
        is_forced: false,
        is_overdue: false,
        is_in_model: true,
        n_resumes: 0,
        n_preempts: 0,
        last_check: 0,
        emergence: i64::MAX,
        start: None,
        end: None,
        places: Vec::new(),
        model_gpus: if settings.has(Defect::GangRounding) {
            rounded(spec.gpus.asked)
        } else {
            spec.gpus.asked
        },
    })
}

/// Gangs of 3 and of 5 to 7 are rounded up.
fn rounded(gpus: u32) -> u32 {
    match gpus {
        3 => 4,
        5..=7 => 8,
        gpus => gpus,
    }
}
