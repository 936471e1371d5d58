//! Why a job of a finished run waited, was slow or missed its deadline.
//!
//! ```text
//! RunResult ─▶ held       what the job held over time, and the times in between
//!          ─▶ meanwhile   who had the GPUs while it waited, who gained when it lost some
//! Snapshot, Plan ─▶ shortages   what it needed and what was missing, decision by decision of the run simulated again
//!                ─▶ slow        what it lacked of CPUs and memory while it ran, and who held it
//!                ─▶ at_best     what opt would have done, at the worst of these times
//!          ─▶ Explanation ─▶ sentences   (text), JSON, page (with a picture)
//! ```
//!
//! Nothing is guessed: every sentence is a fact from the folder's tables, or from a decision computed again from the same
//! inputs. The reason of a decline (binding window, share needed, jobs in the way) comes from the policy that declined.

mod at_best;
mod held;
mod lack;
mod meanwhile;
mod page;
mod picture;
mod shortages;
mod slow;
mod text;
mod watched;

use rota_core::ids::JobId;
use rota_core::time::{Span, Time};

use crate::results::{JobRow, RunResult};
pub use at_best::{AtBest, NotSolved};
pub use held::HeldPeriod;
pub use meanwhile::{Holder, Move, Wait};
pub use shortages::{DeadlineShare, Limit, Seen, Shortage, Watch};
pub use slow::{Amount, Excess, Slow};
pub use watched::Watched;

/// A job that cannot be explained.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// The run has no such job.
    #[error("the run of {policy} has no job `{job}`; it has {n_jobs}, the first is `{first}`")]
    NoJob {
        /// Name that was asked for.
        job: String,
        /// Policy of the run.
        policy: String,
        /// Jobs in the run.
        n_jobs: usize,
        /// A name as they look there.
        first: String,
    },
}

/// All that is known of one job.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Explanation {
    /// Its name in the trace.
    pub job_id: String,
    /// Policy of the run.
    pub policy: String,
    /// Name of its model in the profiles.
    pub model: String,
    /// GPUs it asked for.
    pub gpus: u32,
    /// How it ended.
    pub status: &'static str,
    /// The reason that the policy gave; empty if it gave none.
    pub reason: String,
    /// When it was submitted, in seconds.
    pub arrival_s: f64,
    /// When it first held GPUs.
    pub start_s: Option<f64>,
    /// When it ended.
    pub finish_s: Option<f64>,
    /// Its deadline (the first step of a soft one).
    pub deadline_s: Option<f64>,
    /// Whether it was done by then.
    pub met: Option<bool>,
    /// How often it was stopped before its end.
    pub preemptions: u32,
    /// The part of its best speed it had over its run; `None` where speed does not depend on CPUs and memory.
    pub speed_of_best: Option<f64>,
    /// CPUs it held with each GPU on average, and CPUs it wanted.
    pub cpus_per_gpu: Option<(f64, f64)>,
    /// The same of memory, in gigabytes.
    pub mem_gb_per_gpu: Option<(f64, f64)>,
    /// Whether the folder records what ran where; without it the lists below are empty.
    pub has_timeline: bool,
    /// What it held over time.
    pub phases: Vec<HeldPeriod>,
    /// When it held nothing between its arrival and its end.
    pub waits: Vec<Wait>,
    /// When what it held changed, and who gained or lost at that moment.
    pub moves: Vec<Move>,
    /// When it had less than it needed, and what was missing; empty unless the run was simulated again.
    pub shortages: Vec<Shortage>,
    /// The share its deadline asked for, from when on; empty without a deadline, or unless the run was simulated again.
    pub deadline_shares: Vec<DeadlineShare>,
    /// When it ran slowly for lack of CPUs or memory; empty unless the run was simulated again.
    pub slow: Vec<Slow>,
    /// What `opt` would have done when the longest of these times began.
    pub at_best: Option<AtBest>,
    /// Why that was not computed.
    pub not_asked: Option<String>,
    /// Why the run was not simulated again, where that was wanted and not possible.
    pub not_seen: Option<String>,
    /// The same as sentences.
    pub sentences: Vec<String>,
}

/// Explains one job of a run.
pub fn explain(run: &RunResult, job: &str) -> Result<Explanation, ExplainError> {
    let id = Explanation::id(run, job).ok_or_else(|| ExplainError::NoJob {
        job: job.to_owned(),
        policy: run.meta.policy.clone(),
        n_jobs: run.jobs.len(),
        first: run.jobs.first().map(|row| row.job_id.to_string()).unwrap_or_default(),
    })?;
    let row = &run.jobs[id.index()];
    let has_timeline = !run.timeline.is_empty();
    let phases = held::phases(run, id);
    let waits = if has_timeline { waits(run, row, id, &phases) } else { Vec::new() };
    let mut explanation = Explanation {
        job_id: row.job_id.to_string(),
        policy: run.meta.policy.clone(),
        model: row.model.to_string(),
        gpus: row.gpus,
        status: row.status_name(),
        reason: row.reason.clone(),
        arrival_s: row.arrival.as_secs_f64(),
        start_s: row.start.map(Time::as_secs_f64),
        finish_s: row.finish.map(Time::as_secs_f64),
        deadline_s: row.deadline.map(Time::as_secs_f64),
        met: row.met,
        preemptions: row.preemptions,
        speed_of_best: row.share.map(|share| share.of_best_micro as f64 / 1e6),
        cpus_per_gpu: row.share.map(|share| (share.held.cpus(), share.wanted.cpus())),
        mem_gb_per_gpu: row.share.map(|share| (share.held.mem_gb(), share.wanted.mem_gb())),
        has_timeline,
        moves: meanwhile::moves(run, row, id, &phases),
        phases,
        waits,
        shortages: Vec::new(),
        deadline_shares: Vec::new(),
        slow: Vec::new(),
        at_best: None,
        not_asked: None,
        not_seen: None,
        sentences: Vec::new(),
    };
    explanation.sentences = text::sentences(&explanation);
    Ok(explanation)
}

/// Gaps between arrival, phases and end. A declined job did not wait, but the jobs
/// that held the GPUs up to its deadline are what kept it out.
fn waits(run: &RunResult, row: &JobRow, id: JobId, phases: &[HeldPeriod]) -> Vec<Wait> {
    let last_sample = run.samples.last().map_or(row.arrival, |sample| sample.time);
    let is_declined = row.status == rota_core::ledger::Status::Declined;
    let end =
        if is_declined { row.deadline.unwrap_or(row.arrival) } else { row.finish.unwrap_or(last_sample) };
    held::gaps(row.arrival, end, phases)
        .into_iter()
        .filter(|(from, to)| *to - *from > Span::ZERO)
        .map(|(from, to)| meanwhile::wait(run, id, from, to))
        .collect()
}

impl Explanation {
    /// The job's number in the run.
    pub fn id(run: &RunResult, job: &str) -> Option<JobId> {
        run.jobs.iter().position(|row| &*row.job_id == job).map(JobId::from)
    }

    /// Adds what was seen of the decisions.
    pub fn add_decisions(&mut self, seen: Seen) {
        for change in &mut self.moves {
            let share = seen.deadline_shares.iter().rev().find(|share| share.from_s <= change.at_s);
            change.gpus_for_deadline = share.and_then(|share| share.gpus);
        }
        (self.shortages, self.deadline_shares, self.slow) = (seen.shortages, seen.deadline_shares, seen.slow);
        match seen.at_best {
            Some(Ok(at_best)) => self.at_best = Some(at_best),
            Some(Err(why)) => self.not_asked = Some(why.to_string()),
            None => {}
        }
        self.sentences = text::sentences(self);
    }

    /// Notes why the run could not be simulated again.
    pub fn without_decisions(&mut self, why: String) {
        self.not_seen = Some(why);
        self.sentences = text::sentences(self);
    }

    /// As sentences.
    pub fn to_text(&self) -> String {
        self.sentences.join("\n") + "\n"
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("an explanation is plain numbers and text") + "\n"
    }
}

#[cfg(test)]
mod tests;
