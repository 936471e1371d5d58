//! Which of several newcomers may enter: admission's question for all arrivals of a round.
//!
//! Each is judged together with those let in before it. To let one in, every job behind it in the order is planned anew, which
//! costs as much as a round; so whole groups are tried together, halved when a try fails and doubled when it succeeds.
//! Whatever was let in has been planned together, so the answer never rests on a guess.

use super::{Ahead, PlanOrder, Planned, Refusal, Timeline, Way};
use crate::snapshot::Snapshot;

/// What became of newcomers.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Whether each may enter.
    pub verdicts: Vec<Result<(), Refusal>>,
    /// The plans with those that may.
    pub inside: Ahead,
}

impl Judgement {
    /// The plans as planning all jobs anew in this order would make them, the rows of `idle` too: jobs without a deadline,
    /// which were let in without being judged. `None` where that is not certain: with other plans a late job could be in time.
    pub fn as_planned_anew(
        mut self,
        snapshot: &Snapshot,
        idle: &[u32],
        way: Way,
        order: &PlanOrder,
    ) -> Option<Ahead> {
        let last = self.inside.planned.iter().map(|planned| order.place(planned.row)).max().unwrap_or(0);
        let are_last = idle.iter().all(|row| order.place(*row) > last);
        if self.inside.n_late() > 0 || !(way == Way::LeastShare || are_last) {
            return None;
        }
        let mut idle = idle.to_vec();
        idle.sort_by_key(|row| order.place(*row));
        self.inside.reserve(snapshot, &idle, way);
        self.inside.planned.sort_by_key(|planned| order.place(planned.row));
        Some(self.inside)
    }
}

impl Ahead {
    /// Whether each of these rows may enter, together with the rows before it that may: planned in its turn it must meet its
    /// deadline, and no job behind it may miss its own because of this. A job that is late already keeps no other out.
    pub fn judge(&self, snapshot: &Snapshot, rows: &[u32], way: Way, order: &PlanOrder) -> Judgement {
        let mut inside = self.clone();
        let newcomers: Vec<Planned> =
            rows.iter().map(|row| Planned::new(snapshot, *row, way, &inside.speeds)).collect();
        let hopeless = if newcomers.len() > 1 { inside.hopeless(&newcomers, order) } else { vec![None] };
        let hopeful = newcomers.iter().zip(&hopeless).filter(|(_, refusal)| refusal.is_none());
        let hopeful: Vec<Planned> = hopeful.map(|(newcomer, _)| newcomer.clone()).collect();
        let mut judged = inside.let_in_in_turn(&hopeful, order).into_iter();
        let verdict = |refusal: Option<Refusal>| refusal.map_or_else(|| judged.next().unwrap_or(Ok(())), Err);
        let verdicts = hopeless.into_iter().take(rows.len()).map(verdict).collect();
        Judgement { verdicts, inside }
    }

    fn let_in_in_turn(&mut self, newcomers: &[Planned], order: &PlanOrder) -> Vec<Result<(), Refusal>> {
        let mut verdicts = Vec::with_capacity(newcomers.len());
        let mut n_together = newcomers.len();
        while let Some(rest) = newcomers.get(verdicts.len()..).filter(|rest| !rest.is_empty()) {
            let group = &rest[..n_together.min(rest.len())];
            match self.let_in(group, order) {
                Ok(()) => {
                    verdicts.extend(group.iter().map(|_| Ok(())));
                    n_together *= 2;
                }
                Err(refusal) if group.len() == 1 => verdicts.push(Err(refusal)),
                Err(_) => n_together = group.len() / 2,
            }
        }
        verdicts
    }

    /// The newcomers that would be late even if none of the others came: one of them would spoil every group it is in.
    fn hopeless(&self, newcomers: &[Planned], order: &PlanOrder) -> Vec<Option<Refusal>> {
        let place = |planned: &Planned| order.place(planned.row);
        let mut refusals = vec![None; newcomers.len()];
        let mut in_order: Vec<usize> = (0..newcomers.len()).collect();
        in_order.sort_by_key(|at| place(&newcomers[*at]));
        let first = in_order.first().map_or(u32::MAX, |at| place(&newcomers[*at]));
        let mut later: Vec<&Planned> = self.planned.iter().filter(|p| place(p) > first).collect();
        later.sort_by_key(|planned| place(planned));
        let mut timeline = self.timeline.clone();
        for planned in &later {
            timeline.release(&planned.plan);
        }
        let mut later = later.into_iter().peekable();
        for at in in_order {
            let mut newcomer = newcomers[at].clone();
            while let Some(planned) = later.next_if(|planned| place(planned) < place(&newcomer)) {
                timeline.reserve(&planned.plan);
            }
            newcomer.plan_on(&mut timeline, &self.grid);
            if newcomer.is_late {
                let before = self.planned.iter().filter(|p| place(p) < place(&newcomer));
                refusals[at] = Some(newcomer.refusal(&timeline, before, None));
            }
            timeline.release(&newcomer.plan);
        }
        refusals
    }

    /// Whether a row may enter: see [`judge`](Self::judge).
    pub fn fits(&self, snapshot: &Snapshot, row: u32, way: Way, order: &PlanOrder) -> Result<(), Refusal> {
        self.judge(snapshot, &[row], way, order).verdicts.pop().unwrap_or(Ok(()))
    }

    /// Plans newcomers and all jobs behind the first of them anew; nothing has changed if one of them would be late.
    fn let_in(&mut self, newcomers: &[Planned], order: &PlanOrder) -> Result<(), Refusal> {
        let place = |planned: &Planned| order.place(planned.row);
        let Some(first) = newcomers.iter().map(place).min() else { return Ok(()) };
        let is_later = |planned: &&Planned| place(planned) > first;
        let mut timeline = self.timeline.clone();
        for planned in self.planned.iter().filter(is_later) {
            timeline.release(&planned.plan);
        }
        let mut again: Vec<Planned> =
            self.planned.iter().filter(is_later).chain(newcomers).cloned().collect();
        again.sort_by_key(place);
        for at in 0..again.len() {
            let planned = &mut again[at];
            if planned.is_late {
                continue;
            }
            planned.plan_on(&mut timeline, &self.grid);
            if planned.is_late {
                let planned = &again[at];
                let is_own = newcomers.iter().any(|newcomer| newcomer.row == planned.row);
                let before = self.planned.iter().filter(|p| !is_later(p)).chain(&again[..at]);
                return Err(planned.refusal(&timeline, before, (!is_own).then_some(planned.row)));
            }
        }
        self.planned.retain(|planned| !is_later(&planned));
        self.planned.extend(again);
        self.timeline = timeline;
        Ok(())
    }
}

impl Planned {
    /// What this job lacks, and which of the jobs planned before it hold that where it is scarcest.
    fn refusal<'p>(
        &self,
        timeline: &Timeline,
        before: impl Iterator<Item = &'p Planned>,
        whose: Option<u32>,
    ) -> Refusal {
        let shortfall = self.shortfall(timeline);
        let held = |planned: &'p Planned| {
            let gpus = shortfall.scarcest.map_or(0, |(from, ..)| planned.plan.held_at(from));
            (gpus > 0).then_some((planned.row, gpus))
        };
        let mut in_the_way: Vec<(u32, u32)> = before.filter_map(held).collect();
        in_the_way.sort_by_key(|(row, gpus)| (std::cmp::Reverse(*gpus), *row));
        Refusal { whose, shortfall, in_the_way }
    }
}
