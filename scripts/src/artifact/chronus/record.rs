//! What a run leaves behind: the original's decisions as golden outputs have them, and Rota's ledger.

use rota_core::ledger::{Ledger, Outcome, Status};
use rota_core::time::{Span, Time};
use rota_solvers::chronus_leases::LeaseProblem;

use super::job::{Class, Job};
use crate::artifact::track::Track;

/// What was decided about an arrival. Jobs are named by their ids; times are in units of the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Admission {
    /// The slot in which it was decided.
    pub time: i64,
    /// The id of the job that arrived.
    pub job: usize,
    /// Whether its deadline is promised, and of which kind it is.
    pub class: Class,
    /// Time that its plans assume.
    pub estimate: i64,
    /// Leases that takes.
    pub need: i64,
    /// Deadline after submission that it is held to.
    pub deadline: i64,
}

/// What a boundary between leases decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Boundary {
    /// When the lease begins.
    pub time: i64,
    /// Jobs that hold a lease, in the order in which they were placed.
    pub leased: Vec<usize>,
    /// GPUs they hold.
    pub guaranteed_gpus: u32,
    /// Jobs whose deadlines are not promised.
    pub n_unaccepted: usize,
    /// What is planned from the next lease on.
    pub plans: Vec<PlanLeft>,
    /// Which solve it took, if any.
    pub solve: Option<usize>,
}

/// The rest of a job's plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanLeft {
    /// The id of the job that is planned.
    pub job: usize,
    /// The deadline level it is held to.
    pub level: usize,
    /// One flag for each lease to come.
    pub leases: Vec<bool>,
    /// Leases it still needs.
    pub need: i64,
}

/// A model that was solved.
#[derive(Clone, Debug, PartialEq)]
pub struct Solve {
    /// The boundary it was solved for.
    pub time: i64,
    /// The jobs and leases that went into it.
    pub problem: LeaseProblem,
    /// The objective, if there was an answer.
    pub objective: Option<f64>,
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Fate {
    /// Its name in the trace.
    pub name: String,
    /// When it first held GPUs.
    pub start: Option<i64>,
    /// When it was done: restarts cost fractions of a unit.
    pub end: Option<f64>,
    /// What missing its deadlines cost, from 0 to 1.
    pub missed_value: f64,
    /// Its class in the end.
    pub class: Class,
    /// Time it waited, as the original counts it.
    pub waited: i64,
    /// Time it was credited with.
    pub executed: i64,
    /// How often it was stopped.
    pub n_preempts: u32,
    /// How often it was started, as far as the original counts.
    pub n_resumes: u32,
    /// Whether it had a deadline.
    pub has_deadline: bool,
}

/// All that a run leaves behind.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// In Rota's terms.
    pub ledger: Ledger,
    /// By job.
    pub fates: Vec<Fate>,
    /// In the order of decisions.
    pub admissions: Vec<Admission>,
    /// One for each lease.
    pub boundaries: Vec<Boundary>,
    /// In the order in which they were solved.
    pub solves: Vec<Solve>,
}

impl Run {
    /// Jobs with a deadline that met none of their levels.
    pub fn n_missed(&self) -> usize {
        self.fates.iter().filter(|fate| fate.missed_value >= 1.0).count()
    }

    pub(super) fn close(&mut self, jobs: Vec<Job>, unit: Span, track: Track) {
        let micros = |units: f64| Time((units * unit.0 as f64).round() as i64);
        let outcome = |job: &Job| Outcome {
            status: if job.end.is_some() { Status::Finished } else { Status::Unfinished },
            start: job.start.map(|start| micros(start as f64)),
            finish: job.end.map(micros),
            service: Span(job.executed * i64::from(job.gpus) * unit.0),
            ran: Span(job.executed * unit.0),
            preemptions: job.n_preempts,
            reason: String::new(),
        };
        let outcomes: Vec<Outcome> = jobs.iter().map(outcome).collect();
        self.ledger = Ledger {
            first: jobs.iter().map(|job| micros(job.submit as f64)).min(),
            last: outcomes.iter().filter_map(|outcome| outcome.finish).max(),
            gpu_time: outcomes.iter().map(|outcome| i128::from(outcome.service.0)).sum(),
            outcomes,
            ..Ledger::default()
        };
        track.write_rounds(&mut self.ledger);
        self.fates = jobs.into_iter().map(fate).collect();
    }
}

fn fate(job: Job) -> Fate {
    Fate {
        start: job.start,
        end: job.end,
        missed_value: job.missed_value(),
        class: job.class,
        waited: job.waited,
        executed: job.executed,
        n_preempts: job.n_preempts,
        n_resumes: job.n_resumes,
        has_deadline: !job.is_best_effort,
        name: job.name,
    }
}
