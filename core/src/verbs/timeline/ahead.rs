//! Plans for all jobs of a cluster, one after another on one timeline: who gets how much now so that every deadline
//! holds, who may still enter, and who gets what is left. Deadline policies are a few calls of these verbs.
//!
//! Jobs are known by their rows of a snapshot. A job that cannot make its deadline (any more) reserves nothing and
//! blocks no other job: it lives from spare GPUs, as a job without a deadline does. Plans that a model or an earlier round made
//! come in through `follow`; `arrange` puts a model's into rounds.

mod arrange;
mod by_hand;
mod follow;
mod gangs;
mod growth;
mod judge;
mod plan_order;
mod speed_table;

use std::sync::Arc;

pub use arrange::Part;
pub use by_hand::PieceError;
pub use follow::Course;
pub use growth::{Growth, Ladder, Limits, Step as GrowthStep};
pub use judge::Judgement;
pub use plan_order::PlanOrder;
pub use speed_table::SpeedTable;

use super::{Grid, Need, Reservation, Shortfall, Speeds, Timeline};
use crate::snapshot::Snapshot;
use crate::table::Field;
use crate::time::Time;

/// Slots of full precision in which plans far ahead are made: their number bounds the cost of planning one job.
const N_EVEN_SLOTS: u32 = 64;

/// Part of its work that a job is thought to need still when its estimate says it should be done.
const LEAST_WORK: f64 = 1e-6;

/// How a job is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The least share that meets the deadline.
    LeastShare,
    /// As soon and as wide as possible.
    Earliest,
}

/// One job and what is planned for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Its row in the snapshot.
    pub row: u32,
    /// Until when it should be done; [`Need::NEVER`] when it does not matter.
    pub deadline: Time,
    /// What it holds when. A job that was not reserved for holds nothing.
    pub plan: Reservation,
    /// Whether its deadline cannot be met.
    pub is_late: bool,
    /// GPUs it shall have now: what its plan says, and what was added to it.
    pub gpus: u32,
    speeds: Speeds,
    work: f64,
    /// Deadline less the time of one restart, where that can be kept.
    target: Time,
    way: Way,
    /// GPUs it holds, and the part of a round that changing them costs.
    held: u32,
    change_cost: f64,
    /// What a change costs, and whether it was ever launched: the first launch costs nothing.
    change_s: f64,
    has_run: bool,
}

/// Why a job may not enter.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Who would miss its deadline: another job, by its row, or itself.
    pub whose: Option<u32>,
    /// What that one would lack.
    pub shortfall: Shortfall,
    /// Who holds GPUs where they are scarcest, the most first: (row, GPUs).
    pub in_the_way: Vec<(u32, u32)>,
}

/// The GPUs a deadline asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareNeeded {
    /// There is no deadline.
    NoDeadline,
    /// The fewest that are enough if they are held from now on.
    Gpus(u32),
    /// No number the job can use is enough.
    OutOfReach,
}

/// The plans of one instant.
#[derive(Clone, Debug)]
pub struct Ahead {
    timeline: Timeline,
    grid: Grid,
    planned: Vec<Planned>,
    speeds: Arc<SpeedTable>,
}

impl Ahead {
    /// All GPUs that are up in the snapshot, free; plans change at rounds.
    pub fn new(snapshot: &Snapshot) -> Self {
        Ahead::sharing(snapshot, Arc::new(SpeedTable::new(snapshot)))
    }

    /// The same, with speeds of this snapshot's jobs that others look up too.
    pub fn sharing(snapshot: &Snapshot, speeds: Arc<SpeedTable>) -> Self {
        let grid = Grid::widening(snapshot.now, snapshot.round, N_EVEN_SLOTS);
        let timeline = Timeline::new(snapshot.now, snapshot.n_gpus_up());
        Ahead { timeline, grid, planned: Vec::new(), speeds }
    }

    /// Free GPUs over time, without what is planned.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// All jobs planned so far, in that order.
    pub fn planned(&self) -> &[Planned] {
        &self.planned
    }

    /// Whether nothing is planned or blocked yet.
    pub fn is_unplanned(&self) -> bool {
        self.planned.is_empty() && self.timeline.steps().len() == 1
    }

    /// What is planned for a row.
    pub fn of(&self, row: u32) -> Option<&Planned> {
        self.planned.iter().find(|planned| planned.row == row)
    }

    /// Takes GPUs for something that is not a job.
    pub fn block(&mut self, gpus: u32, from: Time, to: Time) {
        self.timeline.reserve(&Reservation::flat(from, gpus, to, to));
    }

    /// Plans rows one after another.
    pub fn reserve(&mut self, snapshot: &Snapshot, rows: &[u32], way: Way) {
        self.planned.reserve(rows.len());
        for &row in rows {
            let mut planned = Planned::new(snapshot, row, way, &self.speeds);
            planned.plan_on(&mut self.timeline, &self.grid);
            self.planned.push(planned);
        }
    }

    /// The share with which a row would still meet its deadline if it had it from now on, regardless of other jobs.
    pub fn share_needed(snapshot: &Snapshot, row: u32) -> ShareNeeded {
        let planned = Planned::new(snapshot, row, Way::LeastShare, &SpeedTable::new(snapshot));
        if planned.deadline == Need::NEVER {
            return ShareNeeded::NoDeadline;
        }
        let time_left_s = (planned.deadline - snapshot.now).as_secs_f64();
        let is_enough = |level: &&(u32, f64)| level.1 * time_left_s >= planned.work;
        planned
            .speeds
            .levels()
            .iter()
            .find(is_enough)
            .map_or(ShareNeeded::OutOfReach, |l| ShareNeeded::Gpus(l.0))
    }

    /// When the first plan changes, if one does.
    pub fn next_change(&self) -> Option<Time> {
        let now = self.timeline.begin();
        let ends = self.planned.iter().filter(|p| p.plan.end() > now).map(|p| p.plan.end());
        self.planned.iter().filter_map(|p| p.plan.next_change(now)).chain(ends).min()
    }
}

impl Planned {
    fn with_speeds(snapshot: &Snapshot, row: u32, way: Way, speeds: Speeds) -> Self {
        let index = row as usize;
        let jobs = &snapshot.jobs;
        let spec = jobs.spec(index);
        let total = jobs.column(Field::Work)[index];
        let costs = spec.costs();
        let change_s = costs.restart_and_checkpoint().as_secs_f64();
        let deadline = spec.deadline.first().unwrap_or(Need::NEVER);
        Planned {
            row,
            deadline,
            plan: Reservation::none(snapshot.now),
            is_late: false,
            gpus: 0,
            speeds,
            work: (total - jobs.done(index)).max(total * LEAST_WORK),
            target: deadline - costs.restart - costs.checkpoint,
            way,
            held: jobs.allocation(index).n_gpus(),
            change_cost: change_s / (change_s + snapshot.round.as_secs_f64().max(1e-6)),
            change_s,
            has_run: jobs.incarnation(index).0 > 0,
        }
    }

    fn need(&self, deadline: Time) -> Need<'_> {
        Need { speeds: &self.speeds, work: self.work, deadline }
    }

    fn plan_on(&mut self, timeline: &mut Timeline, grid: &Grid) {
        let now = timeline.begin();
        let plan = match self.way {
            _ if self.deadline == Need::NEVER && self.way == Way::LeastShare => None,
            Way::LeastShare => timeline
                .least_share(&self.need(self.target), grid, now)
                .or_else(|_| timeline.least_share(&self.need(self.deadline), grid, now))
                .ok(),
            Way::Earliest => Some(timeline.earliest(&self.need(self.deadline), grid, now)),
        };
        self.is_late =
            plan.as_ref().map_or(self.deadline != Need::NEVER, |plan| plan.finish() > self.deadline);
        self.plan = plan.unwrap_or_else(|| Reservation::none(now));
        self.gpus = self.plan.first_share();
        timeline.reserve(&self.plan);
    }

    fn shortfall(&self, timeline: &Timeline) -> Shortfall {
        let mut without = timeline.clone();
        without.release(&self.plan);
        without.shortfall(&self.need(self.deadline), timeline.begin())
    }

    /// The level at which work that is not done now will be done: the last of its plan, else its most efficient one; no GPUs
    /// for a job that could run nowhere.
    pub fn later_level(&self) -> (u32, f64) {
        let last = self.plan.steps().iter().rev().map(|step| step.1).find(|gpus| *gpus > 0);
        let level = last.map(|gpus| (gpus, self.speeds.rate(gpus)));
        level.or_else(|| self.speeds.most_efficient(i32::MAX)).unwrap_or((0, 0.0))
    }
}

#[cfg(test)]
mod tests;
