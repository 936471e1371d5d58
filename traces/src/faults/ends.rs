//! Jobs that fail or are killed, drawn where a trace does not say how its jobs ended.

use rand::RngExt;
use rota_core::workload::{RecordedEnd, Workload};

use crate::error::InputError;
use crate::generate::draws::{self, Purpose};

/// Parts of the jobs that do not pass, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnEnds {
    /// They end with an error of their own.
    pub failed: f64,
    /// Their owners end them.
    pub killed: f64,
}

impl DrawnEnds {
    /// Refuses what are no parts of a whole.
    pub fn check(&self) -> Result<(), InputError> {
        let (failed, killed) = (self.failed, self.killed);
        match failed >= 0.0 && killed >= 0.0 && failed + killed <= 1.0 {
            true => Ok(()),
            false => Err(InputError::expected("faults", "parts from 0 to 1, together at most 1")
                .at_name("jobs: failed, killed")
                .got(format!("{failed}, {killed}"))),
        }
    }

    /// Gives every job an end that has none. Each job has its own number: more jobs do not change the ends of the first.
    pub fn apply(&self, workload: &mut Workload, seed: u64) {
        let mut rng = draws::branched_stream(seed, Purpose::Faults, u16::MAX, 0);
        for truth in &mut workload.truths {
            let number = rng.random::<f64>();
            if truth.end == RecordedEnd::Unknown {
                truth.end = match number {
                    _ if number < self.failed => RecordedEnd::Failed,
                    _ if number < self.failed + self.killed => RecordedEnd::Killed,
                    _ => RecordedEnd::Passed,
                };
            }
        }
    }
}
