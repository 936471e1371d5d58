//! The least share that meets a deadline (ElasticFlow, ASPLOS'23, §4.1: minimum satisfactory share).

use super::{Grid, Reservation, Shortfall, Speeds, Timeline};
use crate::time::Time;

/// What is to be planned.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    /// How fast it runs with how much.
    pub speeds: &'a Speeds,
    /// Iterations left; more than none.
    pub work: f64,
    /// When it should be done; [`Need::NEVER`] when it does not matter.
    pub deadline: Time,
}

impl Need<'_> {
    /// A deadline so far away that it never binds, with room to calculate beyond it.
    pub const NEVER: Time = Time(i64::MAX / 4);
}

impl Timeline {
    /// The cheapest plan from `from` on that meets the deadline: the lowest level such that running as late as
    /// possible, with at most that many GPUs wherever they are free, is enough. Before the critical point, from which
    /// that level alone suffices, it runs at the level below.
    pub fn least_share(&self, need: &Need<'_>, grid: &Grid, from: Time) -> Result<Reservation, Shortfall> {
        let mut below = None;
        let time_left_s = (need.deadline - from.max(self.begin())).as_secs_f64();
        let mut best_rate: f64 = 0.0;
        for &level in need.speeds.levels().iter().take_while(|l| l.0 <= self.n_gpus) {
            best_rate = best_rate.max(level.1);
            // Even alone it would be too slow: no need to look, and the margin is wider than sums of parts can err.
            let is_hopeless = best_rate * time_left_s * (1.0 + 1e-9) < need.work;
            if !is_hopeless && let Some(critical) = self.critical_point(need, level, from) {
                return Ok(self.staircase(need, grid, from, critical, below, level));
            }
            below = Some(level);
        }
        Err(self.shortfall(need, from))
    }

    /// Highest level first where it is free: the level a job runs at in a stretch, at most `level`.
    #[inline]
    fn level_in(need: &Need<'_>, free: i32, level: (u32, f64)) -> Option<(u32, f64)> {
        if i64::from(free) >= i64::from(level.0) { Some(level) } else { need.speeds.within(free) }
    }

    /// The latest breakpoint from which running at `level` to the deadline does all the work.
    fn critical_point(&self, need: &Need<'_>, level: (u32, f64), from: Time) -> Option<Time> {
        let mut done = 0.0;
        for (begin, end, free) in self.window(from, need.deadline).rev() {
            if let Some((_, rate)) = Self::level_in(need, free, level) {
                done += (end - begin).as_secs_f64() * rate;
                if done >= need.work {
                    return Some(begin);
                }
            }
        }
        None
    }

    fn staircase(
        &self,
        need: &Need<'_>,
        grid: &Grid,
        from: Time,
        critical: Time,
        below: Option<(u32, f64)>,
        level: (u32, f64),
    ) -> Reservation {
        let mut plan = Reservation::none(from);
        let mut left = need.work;
        for (begin, end, free) in self.window(from, need.deadline) {
            let limit = if begin >= critical { Some(level) } else { below };
            let Some((gpus, rate)) = limit.and_then(|limit| Self::level_in(need, free, limit)) else {
                plan.push(begin, 0);
                continue;
            };
            plan.push(begin, gpus);
            let done = (end - begin).as_secs_f64() * rate;
            if begin >= critical && done >= left {
                let finish = grid.finish(begin, left / rate);
                let until = grid.align(finish);
                let change = self.next_change(begin).filter(|next| *next >= finish);
                return plan.close(change.map_or(until, |next| until.min(next)), finish);
            }
            left -= done;
        }
        self.run_on(need, grid, plan, left, level)
    }

    /// Rounding can leave some work that the sum from the deadline backwards did not: it is done after the deadline's slot.
    fn run_on(
        &self,
        need: &Need<'_>,
        grid: &Grid,
        mut plan: Reservation,
        left: f64,
        level: (u32, f64),
    ) -> Reservation {
        let after = grid.align(need.deadline);
        match Self::level_in(need, self.free_at(after), level) {
            Some((gpus, rate)) => {
                plan.push(after, gpus);
                let finish = grid.finish(after, left / rate);
                plan.close(grid.align(finish), finish)
            }
            None => plan.close(after, need.deadline),
        }
    }
}
