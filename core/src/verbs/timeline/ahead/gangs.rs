//! Gangs that wait for a gap: each job is planned in one piece with the GPUs it asks for, at the first time at which they
//! are free for as long as it is thought to run. What backfilling policies plan with.

use super::{Ahead, LEAST_WORK, Planned, Way};
use crate::snapshot::Snapshot;
use crate::table::Field;
use crate::time::{Span, Time};
use crate::timeline::{Grid, Need, Reservation, Speeds, Timeline};

impl Timeline {
    /// The first time from `from` on at which so many GPUs are free for so long; none when there never are as many.
    pub fn first_gap(&self, gpus: u32, length: Span, from: Time) -> Option<Time> {
        let mut since = None;
        for stretch in self.stretches(from) {
            if i64::from(stretch.free) < i64::from(gpus) {
                since = None;
                continue;
            }
            let start = *since.get_or_insert(stretch.from);
            if stretch.to.is_none_or(|to| to >= start + length) {
                return Some(start);
            }
        }
        None
    }

    /// Whether so many GPUs are free all through `[from, to)`.
    pub fn has_free(&self, gpus: u32, from: Time, to: Time) -> bool {
        self.window(from, to).all(|(.., free)| i64::from(free) >= i64::from(gpus))
    }
}

impl Ahead {
    /// Plans rows one after another, each at its first gap. At most `most_waiting` of those that cannot begin now reserve
    /// their gap; the others reserve nothing and begin only when they can begin at once.
    pub fn reserve_gangs(&mut self, snapshot: &Snapshot, rows: &[u32], most_waiting: usize) {
        let now = self.timeline.begin();
        // Rounds of one width: a gap that is only seen widened would make a job wait that need not.
        let grid = Grid::even(now, self.grid.slot(), Span(1));
        let mut n_waiting = 0;
        self.planned.reserve(rows.len());
        for &row in rows {
            let (mut planned, seconds) = Planned::gang(snapshot, row);
            let finish = grid.finish(now, seconds);
            let length = grid.align(finish) - now;
            let gpus = planned.speeds.levels()[0].0;
            let start = if self.timeline.has_free(gpus, now, now + length) {
                Some(now)
            } else if n_waiting < most_waiting {
                self.timeline.first_gap(gpus, length, now)
            } else {
                None
            };
            if let Some(start) = start {
                n_waiting += usize::from(start > now);
                let mut plan = Reservation::none(now);
                plan.push(start, gpus);
                planned.plan = plan.close(start + length, finish + (start - now));
                planned.gpus = planned.plan.first_share();
                self.timeline.reserve(&planned.plan);
            }
            let is_in_time = start.is_some() && planned.plan.finish() <= planned.deadline;
            planned.is_late = planned.deadline != Need::NEVER && !is_in_time;
            self.planned.push(planned);
        }
    }
}

impl Planned {
    /// A job with the GPUs it asks for, or those that it holds, and the seconds that it is thought to run with them.
    fn gang(snapshot: &Snapshot, row: u32) -> (Self, f64) {
        let index = row as usize;
        let jobs = &snapshot.jobs;
        let held = jobs.allocation(index).n_gpus();
        let gpus = if held > 0 { held } else { jobs.gpus()[index] }.max(1);
        let mut planned = Planned::with_speeds(
            snapshot,
            row,
            Way::Earliest,
            Speeds::fixed(gpus, 1.0).expect("one positive level"),
        );
        let total_s = jobs.column(Field::Duration)[index];
        planned.work = jobs.column(Field::Remaining)[index].max(total_s * LEAST_WORK);
        let restart_s = if planned.has_run && held == 0 { planned.change_s } else { 0.0 };
        let seconds = planned.work + restart_s;
        (planned, seconds)
    }
}
