//! What other jobs did: which held the GPUs while a job waited, and which gained or lost when its own GPUs changed.

use std::collections::BTreeMap;

use rota_core::ids::JobId;
use rota_core::time::Time;

use super::HeldPeriod;
use super::held::gpus;
use crate::results::{JobRow, RunResult};

/// The most jobs that are named; the rest are counted.
const MOST_NAMED: usize = 5;

/// Shares are thousandths: smaller differences are rounding.
const LEAST_CHANGE: f64 = 0.0005;

/// Another job and its GPUs.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Holder {
    /// Its name in the trace.
    pub job_id: String,
    /// GPUs: on average while another waited, or as many as it gained (lost, when negative).
    pub gpus: f64,
}

/// A period in which a job held nothing.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Wait {
    /// Start, in seconds.
    pub from_s: f64,
    /// End, in the same seconds.
    pub to_s: f64,
    /// GPUs of nodes that were up, at the last decision before its end.
    pub gpus_up: u32,
    /// GPUs that all jobs held on average.
    pub gpus_held: f64,
    /// The fewest and the most free GPUs after a decision in it; `None` when no decision fell into it.
    pub gpus_free: Option<(u32, u32)>,
    /// The jobs that held most, the largest first.
    pub holders: Vec<Holder>,
    /// How many more held some.
    pub n_more: usize,
}

/// A moment at which what a job held changed.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Move {
    /// When, in seconds.
    pub at_s: f64,
    /// GPUs before.
    pub gpus_before: f64,
    /// GPUs after.
    pub gpus_after: f64,
    /// Others that gained GPUs (positive) or lost them at that moment, the largest change first.
    pub others: Vec<Holder>,
    /// How many more changed.
    pub n_more: usize,
    /// GPUs its deadline asked for then; `None` when it had none, no number was enough, or the run was not simulated again.
    pub gpus_for_deadline: Option<u32>,
}

/// Who held the GPUs between two times, one job left out.
pub(super) fn wait(run: &RunResult, id: JobId, from: Time, to: Time) -> Wait {
    let length_s = (to - from).as_secs_f64();
    let mut held: BTreeMap<JobId, f64> = BTreeMap::new();
    for stretch in run.timeline.iter().filter(|s| s.job != id && s.from < to && from < s.to) {
        let overlap = stretch.to.min(to) - stretch.from.max(from);
        *held.entry(stretch.job).or_default() += gpus(stretch) * overlap.as_secs_f64() / length_s;
    }
    let in_it = run.samples.iter().filter(|sample| from <= sample.time && sample.time < to);
    let free = in_it.map(|sample| sample.gpus_up.saturating_sub(sample.gpus_held));
    let gpus_free = free.fold(None, |range: Option<(u32, u32)>, free| {
        Some(range.map_or((free, free), |(least, most)| (least.min(free), most.max(free))))
    });
    let last = run.samples.iter().rev().find(|sample| sample.time < to);
    let gpus_held = held.values().sum();
    let (holders, n_more) = named(&run.jobs, held);
    Wait {
        from_s: from.as_secs_f64(),
        to_s: to.as_secs_f64(),
        gpus_up: last.map_or(run.meta.cluster.gpus, |sample| sample.gpus_up),
        gpus_held,
        gpus_free,
        holders,
        n_more,
    }
}

/// The moments after the start and before the end at which what a job held changed.
pub(super) fn moves(run: &RunResult, row: &JobRow, id: JobId, phases: &[HeldPeriod]) -> Vec<Move> {
    let mut moves = Vec::new();
    for (at, phase) in phases.iter().enumerate() {
        let next = phases.get(at + 1);
        let gpus_after = next.filter(|next| next.from == phase.to).map_or(0.0, |next| next.gpus);
        let is_end = next.is_none() && row.finish == Some(phase.to);
        if !is_end {
            moves.push(change(run, id, phase.to, phase.gpus, gpus_after));
        }
        if let Some(next) = next.filter(|next| next.from > phase.to) {
            moves.push(change(run, id, next.from, 0.0, next.gpus));
        }
    }
    moves
}

fn change(run: &RunResult, id: JobId, at: Time, gpus_before: f64, gpus_after: f64) -> Move {
    let mut gained: BTreeMap<JobId, f64> = BTreeMap::new();
    for stretch in run.timeline.iter().filter(|stretch| stretch.job != id) {
        if stretch.from == at {
            *gained.entry(stretch.job).or_default() += gpus(stretch);
        }
        if stretch.to == at {
            *gained.entry(stretch.job).or_default() -= gpus(stretch);
        }
    }
    let (others, n_more) = named(&run.jobs, gained);
    Move { at_s: at.as_secs_f64(), gpus_before, gpus_after, others, n_more, gpus_for_deadline: None }
}

/// The largest by name and the number of the rest; jobs with nothing are left out.
pub(super) fn named(rows: &[JobRow], amounts: BTreeMap<JobId, f64>) -> (Vec<Holder>, usize) {
    let mut amounts: Vec<_> = amounts.into_iter().filter(|(_, gpus)| gpus.abs() > LEAST_CHANGE).collect();
    amounts.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    let n_more = amounts.len().saturating_sub(MOST_NAMED);
    let name =
        |job: JobId| rows.get(job.index()).map_or_else(|| job.to_string(), |row| row.job_id.to_string());
    let holders = amounts.into_iter().take(MOST_NAMED);
    (holders.map(|(job, gpus)| Holder { job_id: name(job), gpus }).collect(), n_more)
}
