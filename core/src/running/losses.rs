//! What failures cost: work that is lost, time that restarts take, and how long jobs need until they are where they were.
//!
//! Kept only for runs in which something can fail.

use crate::allocation::Allocation;
use crate::ids::JobId;
use crate::ledger::FaultUse;
use crate::time::{Span, Time};

/// The account of a run so far.
#[derive(Debug)]
pub struct Losses {
    accounts: Vec<Account>,
    found: FaultUse,
}

/// What one job has, and what it has yet to make up for.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// GPUs of the current launch, in thousandths; 0 while it does not run.
    gpu_milli: u32,
    started: Time,
    /// GPU-microseconds of work that has survived until the current launch.
    kept: i128,
    setback: Option<Setback>,
}

/// A failure that a job has not recovered from.
#[derive(Clone, Copy, Debug)]
struct Setback {
    failed: Time,
    /// Iterations it had then.
    had: f64,
    /// When it will have them again, as it runs now.
    recovers: Option<Time>,
}

/// How a launch came to its end.
#[derive(Clone, Copy, Debug)]
pub struct Stopped {
    /// When it ended.
    pub now: Time,
    /// When it began to work: its restart and its data take time before that.
    pub works_from: Time,
    /// How much of its working time survives.
    pub survives: Span,
    /// Iterations it had, and those it has left.
    pub had: f64,
    /// See `had`.
    pub left: f64,
    /// Whether a failure ended it.
    pub is_failure: bool,
}

impl Losses {
    /// Nothing has failed yet.
    pub fn new(n_jobs: usize) -> Self {
        Losses { accounts: vec![Account::default(); n_jobs], found: FaultUse::default() }
    }

    /// What was found until `now`; jobs that have not recovered by then are counted as such.
    pub fn close(&self, now: Time) -> FaultUse {
        let mut found = self.found.clone();
        for setback in self.accounts.iter().filter_map(|account| account.setback) {
            match setback.recovers.filter(|time| *time <= now) {
                Some(time) => found.recoveries.push(time - setback.failed),
                None => found.unrecovered += 1,
            }
        }
        found
    }

    /// Counts a failure of a node, of a GPU, or a node that slows down.
    pub fn count(&mut self, count: impl Fn(&mut FaultUse)) {
        count(&mut self.found);
    }

    /// A job is launched.
    pub fn started(&mut self, job: JobId, now: Time, allocation: &Allocation) {
        let account = &mut self.accounts[job.index()];
        account.started = now;
        account.gpu_milli =
            allocation.slices.iter().map(|slice| slice.gpus.len() * u32::from(slice.share)).sum();
    }

    /// From `from` on a job works at `rate`, with `done` iterations behind it.
    pub fn works(&mut self, job: JobId, from: Time, done: f64, rate: f64) {
        if let Some(setback) = &mut self.accounts[job.index()].setback {
            let left_s = (setback.had - done).max(0.0) / rate;
            setback.recovers = (rate > 0.0).then(|| from + Span::from_secs_f64(left_s));
        }
    }

    /// A launch is over, but its job is not.
    pub fn stopped(&mut self, job: JobId, stopped: &Stopped) {
        let worked = self.settle(job, stopped.now, stopped.works_from);
        let account = &mut self.accounts[job.index()];
        let gpus = i128::from(account.gpu_milli);
        let survives = i128::from(stopped.survives.0) * gpus / 1000;
        self.found.lost += worked - survives;
        account.kept += survives;
        if stopped.is_failure {
            self.found.stops += 1;
            if stopped.left <= 0.0 {
                self.found.lost += account.kept;
                account.kept = 0;
            }
            // Who is hit again before he has recovered is where he was only when he has the most he ever had.
            let (failed, had) =
                account.setback.map_or((stopped.now, 0.0), |before| (before.failed, before.had));
            account.setback = Some(Setback { failed, had: had.max(stopped.had), recovers: None });
        }
        account.gpu_milli = 0;
    }

    /// A job is over; `is_premature` when it has not done what it was to do.
    pub fn ended(&mut self, job: JobId, now: Time, works_from: Time, is_premature: bool) {
        let worked = self.settle(job, now, works_from);
        let account = &mut self.accounts[job.index()];
        if is_premature {
            self.found.premature += account.kept + worked;
        }
        *account = Account::default();
    }

    /// Counts the time before a launch worked, and a recovery that has come; returns the GPU-microseconds it worked.
    fn settle(&mut self, job: JobId, now: Time, works_from: Time) -> i128 {
        let account = &mut self.accounts[job.index()];
        let gpus = i128::from(account.gpu_milli);
        let of = |span: Span| i128::from(span.0.max(0)) * gpus / 1000;
        self.found.overhead += of(works_from.min(now) - account.started);
        if let Some(setback) = account.setback {
            match setback.recovers.filter(|time| *time <= now) {
                Some(time) => {
                    self.found.recoveries.push(time - setback.failed);
                    account.setback = None;
                }
                None => account.setback = Some(Setback { recovers: None, ..setback }),
            }
        }
        of(now - works_from)
    }
}
