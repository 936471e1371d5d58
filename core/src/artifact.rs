//! What only the drivers of the original programs do (`rota_scripts::artifact`): they keep a clock, progress and rules
//! of their own, and overwrite state that everywhere else follows from events. No policy and no verb uses this module.

use crate::allocation::Allocation;
use crate::reclaim::Reclaim;
use crate::table::{Field, JobTable};
use crate::time::Time;
use crate::timeline::Timeline;

/// Overwrites rows of the job table. No time is counted, and invariants between columns are not maintained.
pub trait OverwriteJobs {
    /// Replaces one number of a row.
    fn set(&mut self, row: usize, field: Field, value: f64);

    /// Replaces what the job of a row holds; it runs afterwards if that is anything, else it waits.
    fn hold(&mut self, row: usize, allocation: Allocation);
}

impl OverwriteJobs for JobTable {
    fn set(&mut self, row: usize, field: Field, value: f64) {
        self.overwrite(row, field, value);
    }

    fn hold(&mut self, row: usize, allocation: Allocation) {
        self.overwrite_held(row, allocation);
    }
}

/// Overwrites the free GPUs of a timeline.
pub trait OverwriteTimeline {
    /// Sets the number of free GPUs from `from` to `to` (`None`: for ever), whatever was reserved there.
    fn set_free(&mut self, from: Time, to: Option<Time>, free: i32);
}

impl OverwriteTimeline for Timeline {
    fn set_free(&mut self, from: Time, to: Option<Time>, free: i32) {
        self.overwrite_free(from, to, free);
    }
}

/// What a neighbour from whom excess is taken back keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All it holds up to its proportional share, resource by resource, as in the shipped policies.
    UpToItsShare,
    /// Its proportional share of everything, or its best demand where that is smaller.
    WholeShare,
}

/// Which neighbours give back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Givers {
    /// Those that have some of what is needed, as in the shipped policies.
    Useful,
    /// The most richly served first, even if they have nothing of what is needed.
    Anyone,
}

/// Taking excess back by other rules than the shipped policies'.
pub fn reclaim(kept: Kept, givers: Givers) -> Reclaim {
    Reclaim { whole_share: kept == Kept::WholeShare, only_useful: givers == Givers::Useful }
}
