//! The accounts of a run: when each job ended and how that is judged, written down as it happens.

use rota_core::ledger::{Ledger, Outcome, Status};
use rota_core::time::Time;

use super::job::{Job, Judgement, Run};
use crate::artifact::track::{Holder, Track};

/// What the ledger and the judgements of a run will be made of.
#[derive(Clone, Debug)]
pub(super) struct Accounts {
    outcomes: Vec<Outcome>,
    judgements: Vec<Judgement>,
    track: Track,
}

impl Accounts {
    pub(super) fn new(n_jobs: usize, n_gpus: u32, keeps_timeline: bool) -> Self {
        let open = Outcome::unfinished("the original stopped before it was done");
        Accounts {
            outcomes: vec![open; n_jobs],
            judgements: vec![Judgement::Unfinished; n_jobs],
            track: Track::new(n_jobs, n_gpus, keeps_timeline),
        }
    }

    /// After a decision: all jobs that are there, and what those that run hold.
    pub(super) fn round(&mut self, now: Time, jobs: &[Job], there: &[u32], holders: Vec<Holder>) {
        let waiting = there.len().saturating_sub(holders.len()) as u32;
        let asked = there.iter().map(|id| u64::from(jobs[*id as usize].asked)).sum();
        self.track.round(now, holders, waiting, asked);
    }

    pub(super) fn decline(&mut self, job: u32) {
        let reason = "the plan with it would not have met all deadlines".to_owned();
        self.set(job, Judgement::Declined, Status::Declined, None, None, reason);
    }

    pub(super) fn finish(&mut self, id: u32, job: &Job, start: Option<Time>, end: Time, is_late: bool) {
        let judgement = match (is_late, job.is_best_effort) {
            (true, _) => Judgement::Missed,
            (false, true) => Judgement::BestEffortDone,
            (false, false) => Judgement::Met,
        };
        self.set(id, judgement, Status::Finished, start, Some(end), String::new());
        self.track.end(id, end);
    }

    fn set(
        &mut self,
        job: u32,
        judgement: Judgement,
        status: Status,
        start: Option<Time>,
        finish: Option<Time>,
        reason: String,
    ) {
        let index = job as usize;
        self.judgements[index] = judgement;
        self.outcomes[index] = Outcome { status, start, finish, ..Outcome::unfinished(reason) };
    }

    pub(super) fn close(self, jobs: &[Job]) -> Run {
        let last = self.outcomes.iter().filter_map(|o| o.finish).max();
        let mut ledger = Ledger {
            first: jobs.iter().map(|j| j.submit).min(),
            last,
            outcomes: self.outcomes,
            ..Ledger::default()
        };
        self.track.write(&mut ledger);
        Run { ledger, judgements: self.judgements }
    }
}
