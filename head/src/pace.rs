//! How fast a job really is compared with its profile, computed from its reports without clock or I/O.

use rota_core::time::Time;

/// The largest factor by which a profile is taken to be wrong, either way: reports may be wrong too.
const MOST: f64 = 4.0;
/// Smaller relative corrections are not made, because reports come in steps.
const LEAST_CHANGE: f64 = 0.2;
/// The fewest reports that a correction is based on.
const LEAST_REPORTS: u32 = 8;

/// Limits a pace to what a profile can plausibly be wrong by.
pub fn bounded(pace: f64) -> f64 {
    if pace.is_finite() { pace.clamp(1.0 / MOST, MOST) } else { 1.0 }
}

/// Watches the reports of one launch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PaceWatch {
    since: Option<Since>,
}

/// The first of a series of reports at one expected speed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Since {
    at: Time,
    done: f64,
    expected: f64,
    n_reports: u32,
}

impl PaceWatch {
    /// Takes a report of `done` iterations. The profile expects `expected` iterations per second, and the job is assumed
    /// to run at `known` times that. Returns a new pace when the reports contradict the assumed one.
    pub fn report(&mut self, now: Time, done: f64, expected: f64, known: f64) -> Option<f64> {
        let fresh = Since { at: now, done, expected, n_reports: 0 };
        let since = match self.since {
            // After a change of resources or a loss of work, earlier reports do not apply.
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
