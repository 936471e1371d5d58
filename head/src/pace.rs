//! How fast a job really is against its profile, from its reports: pure, so that the head only has to ask.

use rota_core::time::Time;

/// A profile is never thought to be off by more than this, either way: reports may be wrong too.
const MOST: f64 = 4.0;
/// Corrections smaller than this part are left alone: reports come in steps.
const LEAST_CHANGE: f64 = 0.2;
/// Reports that one correction rests on, at least.
const LEAST_REPORTS: u32 = 8;

/// A pace within what is believed.
pub fn bounded(pace: f64) -> f64 {
    if pace.is_finite() { pace.clamp(1.0 / MOST, MOST) } else { 1.0 }
}

/// Watches the reports of one launch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PaceWatch {
    since: Option<Since>,
}

/// Where a stretch of reports at one expected speed began.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Since {
    at: Time,
    done: f64,
    expected: f64,
    n_reports: u32,
}

impl PaceWatch {
    /// A report of `done` iterations, where the profile expects `expected` a second, and the job is thought to run at
    /// `known` times that. Returns a better pace when there is reason to.
    pub fn heard(&mut self, now: Time, done: f64, expected: f64, known: f64) -> Option<f64> {
        let fresh = Since { at: now, done, expected, n_reports: 0 };
        let since = match self.since {
            // Other resources, or work that was lost: what was seen before says nothing.
            Some(since) if since.expected == expected && done >= since.done => since,
            _ => {
                self.since = Some(fresh);
                return None;
            }
        };
        let since = Since { n_reports: since.n_reports + 1, ..since };
        self.since = Some(since);
        let seconds = (now - since.at).as_secs_f64();
        if since.n_reports < LEAST_REPORTS || seconds <= 0.0 || expected <= 0.0 {
            return None;
        }
        let pace = bounded((done - since.done) / seconds / expected);
        self.since = Some(fresh);
        ((pace / known - 1.0).abs() > LEAST_CHANGE).then_some(pace)
    }
}
