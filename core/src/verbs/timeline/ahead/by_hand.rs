//! Plans written by hand, piece by piece: what a script reserves for a job itself.

use super::{Ahead, Planned, Way};
use crate::snapshot::Snapshot;
use crate::time::Time;
use crate::timeline::{Need, Reservation};

/// A piece that cannot be reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PieceError {
    /// More than is free.
    #[error("only {free} GPUs are free all through it")]
    Taken {
        /// GPUs that are.
        free: i32,
    },
    /// Before the end of what is reserved for the job already.
    #[error("the job has GPUs until {until} s already: add pieces in the order of time")]
    Overlaps {
        /// The end of its last piece.
        until: Time,
    },
}

impl Ahead {
    /// Reserves GPUs for a row over `[from, to)`, after what is reserved for it already. Whether it will be in time is
    /// counted with all its pieces and every restart between them.
    pub fn reserve_piece(
        &mut self,
        snapshot: &Snapshot,
        row: u32,
        gpus: u32,
        from: Time,
        to: Time,
    ) -> Result<(), PieceError> {
        let now = self.timeline.begin();
        let from = from.max(now);
        let known = self.planned.iter().position(|planned| planned.row == row);
        let mut planned = match known {
            Some(index) => self.planned[index].clone(),
            None => Planned::new(snapshot, row, Way::LeastShare, &self.speeds),
        };
        let until = planned.plan.end();
        if until > from {
            return Err(PieceError::Overlaps { until });
        }
        let free = self.timeline.least_free(from, to);
        if i64::from(free) < i64::from(gpus) {
            return Err(PieceError::Taken { free });
        }
        if to > from {
            self.timeline.reserve(&Reservation::flat(from, gpus, to, to));
            let mut plan = planned.plan;
            if from > until {
                plan.push(until, 0);
            }
            plan.push(from, gpus);
            planned.plan = plan.close(to, to);
        }
        let run = planned.run(&planned.course(), &self.grid, now);
        let finish = run.as_ref().map_or(Need::NEVER, Reservation::finish);
        planned.is_late = planned.deadline != Need::NEVER && run.is_err();
        let end = planned.plan.end();
        planned.plan = planned.plan.close(end, finish);
        planned.gpus = planned.plan.first_share();
        match known {
            Some(index) => self.planned[index] = planned,
            None => self.planned.push(planned),
        }
        Ok(())
    }

    /// The fewest GPUs with which a row, if it holds them from now on, is done by a time, where they are free as long as
    /// that; a restart included where it would change its GPUs.
    pub fn share_until(&self, snapshot: &Snapshot, row: u32, by: Time) -> Option<u32> {
        let planned = Planned::new(snapshot, row, Way::LeastShare, &self.speeds);
        let now = self.timeline.begin();
        let is_enough = |&&(gpus, rate): &&(u32, f64)| {
            let pause_s = if planned.has_run && gpus != planned.held { planned.change_s } else { 0.0 };
            let finish = self.grid.finish(now, pause_s + planned.work / rate);
            finish <= by && self.timeline.has_free(gpus, now, finish)
        };
        planned.speeds.levels().iter().find(is_enough).map(|level| level.0)
    }
}
