//! Plans made elsewhere (by a model, or in an earlier round): followed exactly, restarts included, and only as long as they hold.
//!
//! A model, or an earlier round, says how many GPUs a job shall have when. Whether that is enough is not believed but
//! counted here: every change of a job's GPUs costs its restart, no job takes more than is free, and the work is done by
//! the deadline. The greedy verbs plan with one restart in all; this counts each.

use super::{Ahead, PlanOrder, Planned, Refusal, Way};
use crate::snapshot::Snapshot;
use crate::time::{Span, Time};
use crate::timeline::{Grid, Need, Reservation, Timeline};

/// GPUs over time as a plan wants them: (since when, how many), ascending. The last entry ends it.
pub type Course = Vec<(Time, u32)>;

/// Work that floating-point sums may lose.
const CRUMB: f64 = 1e-12;

impl Ahead {
    /// Plans a row as a course says. Does nothing and returns false when it would miss its deadline or take more GPUs than
    /// are free.
    pub fn follow(&mut self, snapshot: &Snapshot, row: u32, course: &[(Time, u32)]) -> bool {
        let mut planned = Planned::new(snapshot, row, Way::LeastShare, &self.speeds);
        let Ok(plan) = planned.run(course, &self.grid, self.timeline.begin()) else { return false };
        if !is_free(&self.timeline, &plan) {
            return false;
        }
        planned.gpus = plan.first_share();
        self.timeline.reserve(&plan);
        planned.plan = plan;
        self.planned.push(planned);
        true
    }

    /// Lets a row enter if it [`fits`](Ahead::fits): it is planned by its deadline, ties by id, and the jobs behind
    /// it are planned again.
    pub fn enter(&mut self, snapshot: &Snapshot, row: u32, way: Way) -> Result<(), Refusal> {
        self.fits(snapshot, row, way, &PlanOrder::by_deadline(snapshot))?;
        let newcomer = Planned::new(snapshot, row, way, &self.speeds);
        let key = |planned: &Planned| (planned.deadline, snapshot.jobs.id(planned.row as usize));
        let is_ahead = |planned: &Planned| key(planned) < key(&newcomer);
        let (ahead, mut behind): (Vec<Planned>, Vec<Planned>) = self.planned.drain(..).partition(is_ahead);
        behind.iter().for_each(|planned| self.timeline.release(&planned.plan));
        behind.sort_by_key(key);
        self.planned = ahead;
        for mut planned in std::iter::once(newcomer).chain(behind) {
            planned.plan_on(&mut self.timeline, &self.grid);
            self.planned.push(planned);
        }
        Ok(())
    }

    /// Forgets rows and what was planned for them.
    pub fn forget(&mut self, rows: &[u32]) {
        let timeline = &mut self.timeline;
        self.planned.retain(|planned| {
            let is_forgotten = rows.contains(&planned.row);
            if is_forgotten {
                timeline.release(&planned.plan);
            }
            !is_forgotten
        });
    }

    /// Rows as they are before anything is planned for them.
    pub fn unplanned(&self, snapshot: &Snapshot, rows: &[u32]) -> Vec<Planned> {
        rows.iter().map(|row| Planned::new(snapshot, *row, Way::LeastShare, &self.speeds)).collect()
    }

    /// How many planned rows cannot meet their deadline.
    pub fn n_late(&self) -> usize {
        self.planned.iter().filter(|planned| planned.is_late).count()
    }
}

impl Planned {
    /// What following a course comes to: the plan, cut off where the work is done, or the work that is undone at the deadline.
    pub(crate) fn run(&self, course: &[(Time, u32)], grid: &Grid, now: Time) -> Result<Reservation, f64> {
        let mut plan = Reservation::none(now);
        let (mut left, mut held, mut has_run) = (self.work, self.held, self.has_run);
        for pair in course.windows(2) {
            let (from, gpus, to) = (pair[0].0.max(now), pair[0].1, pair[1].0);
            if to <= from {
                continue;
            }
            plan.push(from, gpus);
            let rate = self.speeds.rate(gpus);
            let pause_s = if gpus > 0 && gpus != held && has_run { self.change_s } else { 0.0 };
            has_run |= gpus > 0;
            held = gpus;
            let usable_s = (to.min(self.deadline) - from).as_secs_f64() - pause_s;
            if rate <= 0.0 || usable_s <= 0.0 {
                continue;
            }
            if usable_s * rate >= left * (1.0 - CRUMB) {
                let finish = grid.finish(from, pause_s + left / rate).min(to).min(self.deadline);
                return Ok(plan.close(grid.align(finish).min(to), finish));
            }
            left -= usable_s * rate;
        }
        Err(left)
    }

    /// Its speeds by number of GPUs.
    pub fn levels(&self) -> &[(u32, f64)] {
        self.speeds.levels()
    }

    /// Iterations left.
    pub fn work(&self) -> f64 {
        self.work
    }

    /// What a change of its GPUs costs.
    pub fn change(&self) -> Span {
        Span::from_secs_f64(self.change_s)
    }

    /// Whether it could make its deadline if it were alone on so many GPUs.
    pub fn can_make_it(&self, n_gpus: u32, now: Time) -> bool {
        let time_left = (self.deadline - now).as_secs_f64();
        let rates = self.levels().iter().filter(|level| level.0 <= n_gpus).map(|level| level.1);
        self.deadline != Need::NEVER && rates.fold(0.0, f64::max) * time_left >= self.work
    }

    /// Its plan as a course, to be followed in later rounds.
    pub fn course(&self) -> Course {
        self.plan.steps().iter().copied().chain([(self.plan.end(), 0)]).collect()
    }
}

fn is_free(timeline: &Timeline, plan: &Reservation) -> bool {
    let ends = plan.steps().iter().skip(1).map(|step| step.0).chain([plan.end()]);
    let mut pieces = plan.steps().iter().zip(ends).filter(|(step, _)| step.1 > 0);
    pieces.all(|(step, end)| i64::from(timeline.least_free(step.0, end)) >= i64::from(step.1))
}

#[cfg(test)]
mod tests;
