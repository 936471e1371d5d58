//! A job as the original keeps it, and what a run leaves.

use rota_core::allocation::Slice;
use rota_core::cluster::Cluster;
use rota_core::job::JobSpec;
use rota_core::ledger::Ledger;
use rota_core::time::{Span, Time};
use rota_core::timeline::{Need, Reservation, Speeds};
use rota_core::workload::Workload;
use smallvec::SmallVec;

use super::{ArtifactError, Defect, ElasticflowSettings, Scheduler};
use crate::artifact::track::Holder;

/// The most GPUs the original gives to one job.
const MOST_GPUS: u32 = 64;

/// What all its schedulers keep of a job.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) submit: Time,
    /// [`Need::NEVER`] for a job without one.
    pub(super) deadline: Time,
    /// What it is planned for: its deadline, or earlier where a plan keeps room for a start.
    pub(super) target: Time,
    pub(super) is_admitted: bool,
    pub(super) is_best_effort: bool,
    /// GPUs of the trace.
    pub(super) asked: u32,
    /// Run time of the trace with these GPUs.
    pub(super) duration: Span,
    /// Iterations left; below zero when the original credits more than there was.
    pub(super) work: f64,
    /// Levels its scheduler may use.
    pub(super) speeds: Speeds,
    /// GPUs now.
    pub(super) gpus: u32,
    pub(super) start: Option<Time>,
    /// When its end is noticed.
    pub(super) end: Time,
    /// When it is done by its plan, not aligned to a slot; only ElasticFlow keeps it.
    pub(super) real_end: Option<Time>,
    /// Under which time its end is to be found in the event list.
    pub(super) old_end: Option<Time>,
    pub(super) overhead: Span,
    pub(super) is_cached: bool,
    /// GPUs it had in the round before.
    pub(super) had_gpus: u32,
    pub(super) plan: Reservation,
    pub(super) is_running: bool,
}

impl Job {
    pub(super) fn need(&self) -> Need<'_> {
        Need { speeds: &self.speeds, work: self.work, deadline: self.target }
    }

    pub(super) fn rate(&self) -> f64 {
        self.speeds.rate(self.gpus)
    }

    /// The job as a holder of so many GPUs on these nodes.
    pub(super) fn holding(&self, id: u32, gpus: u32, slices: SmallVec<[Slice; 1]>) -> Holder {
        let single = self.speeds.rate(1);
        let worth = if single > 0.0 { self.speeds.rate(gpus) / single } else { f64::from(gpus) };
        Holder { job: id, gpus, worth, slices }
    }
}

/// The jobs of a workload, by id. Run times are those of the trace where it has them, else the work at the speed of
/// the GPUs asked for, in whole seconds.
pub(super) fn jobs_of(
    workload: &Workload,
    cluster: &Cluster,
    settings: &ElasticflowSettings<'_>,
) -> Result<Vec<Job>, ArtifactError> {
    let ElasticflowSettings { scheduler, durations, defects, .. } = *settings;
    let is_edf = matches!(scheduler, Scheduler::Edf | Scheduler::EdfAdmission);
    let knows_limit = scheduler.is_elastic() || (is_edf && !defects.has(Defect::EdfWidth));
    let gpu_type = cluster.gpu_types().first().map_or("", String::as_str);
    let jobs = workload.jobs.iter().zip(&workload.truths).enumerate().map(|(index, (spec, truth))| {
        let wrong = |why: String| ArtifactError::Job { name: spec.name.to_string(), why };
        let levels = levels(spec, gpu_type);
        let asked_rate = levels.iter().find(|l| l.0 == spec.gpus.asked).map(|l| l.1);
        let most = if knows_limit { spec.gpus.max() } else { MOST_GPUS.min(spec.batch) };
        let speeds = Speeds::new(levels).map_err(|e| wrong(e.to_string()))?.up_to(most);
        let duration = match (durations.and_then(|d| d.get(index)), asked_rate) {
            (Some(duration), _) => *duration,
            (None, Some(rate)) => Span::from_secs((truth.work / rate).ceil() as i64),
            (None, None) if scheduler.uses_durations() => {
                return Err(wrong(format!("was not measured with the {} GPUs it asks for", spec.gpus.asked)));
            }
            (None, None) => Span::ZERO,
        };
        Ok(Job {
            name: spec.name.to_string(),
            submit: spec.arrival,
            deadline: spec.deadline.first().unwrap_or(Need::NEVER),
            target: spec.deadline.first().unwrap_or(Need::NEVER),
            is_admitted: false,
            is_best_effort: spec.deadline.first().is_none(),
            asked: spec.gpus.asked,
            duration,
            work: truth.work,
            speeds,
            gpus: spec.gpus.asked,
            start: None,
            end: Time::ZERO,
            real_end: None,
            old_end: None,
            overhead: Span::ZERO,
            is_cached: false,
            had_gpus: 0,
            plan: Reservation::none(spec.arrival),
            is_running: false,
        })
    });
    jobs.collect()
}

fn levels(spec: &JobSpec, gpu_type: &str) -> Vec<(u32, f64)> {
    let curve = spec.profile.scale_curve(gpu_type, spec.batch);
    curve.map_or_else(|| vec![(spec.gpus.asked, spec.profile.base_rate)], |curve| curve.points.clone())
}

/// What the original says of a job in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Done in time, as the original judges it.
    Met,
    /// Done too late.
    Missed,
    /// Refused.
    Declined,
    /// Done; it had no deadline.
    BestEffortDone,
    /// Not done when the original stopped.
    Unfinished,
}

/// What became of all jobs.
#[derive(Clone, Debug)]
pub struct Run {
    /// In Rota's terms; the original's judgement of deadlines is not in there.
    pub ledger: Ledger,
    /// By job.
    pub judgements: Vec<Judgement>,
}

impl Run {
    /// The original's `accepted jobs`: those with a deadline that met it.
    pub fn accepted(&self) -> usize {
        self.judgements.iter().filter(|j| **j == Judgement::Met).count()
    }

    /// The original's `declined jobs`: refused, or late.
    pub fn declined(&self) -> usize {
        self.judgements.iter().filter(|j| matches!(j, Judgement::Declined | Judgement::Missed)).count()
    }
}
