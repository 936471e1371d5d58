//! As soon and as wide as possible: how EDF plans a job, and what a job does that cannot meet its deadline.

use super::{Grid, Need, Reservation, Timeline};
use crate::time::Time;

impl Timeline {
    /// The plan that takes, from `from` on, the highest level that is free at each time, until the work is done.
    /// Whether the deadline is met is for the caller to see.
    pub fn earliest(&self, need: &Need<'_>, grid: &Grid, from: Time) -> Reservation {
        let mut plan = Reservation::none(from);
        let mut left = need.work;
        for stretch in self.stretches(from) {
            let level = need.speeds.within(stretch.free);
            plan.push(stretch.from, level.map_or(0, |l| l.0));
            let Some((_, rate)) = level else { continue };
            let finish = grid.finish_on_clock(stretch.from, left / rate);
            match stretch.to {
                Some(to) if to < finish => left -= (to - stretch.from).as_secs_f64() * rate,
                Some(to) => return plan.close(grid.align(finish).min(to), finish),
                None => return plan.close(grid.align(finish), finish),
            }
        }
        // Only a cluster smaller than the job's lowest level gets here: it never runs.
        plan.close(Need::NEVER, Need::NEVER)
    }
}
