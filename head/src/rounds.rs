//! When the policy is asked, and what becomes of its answers.

use rota_core::check::check;
use rota_core::plan::{Plan, Wake};
use rota_core::time::{Span, Time};
use rota_transport::message::ToUser;
use rota_transport::value::LongText;

use super::desk::{Answer, Ask, Taken};
use super::engine::{Engine, Waiting, failed};
use super::record::{PlanRecord, Record};
use super::state::Moment;
use super::views;

/// A round that took this long is followed by so many times as long without one, ...
const GAP_FACTOR: i64 = 2;
/// ... but never by more than this.
const MOST_GAP: Span = Span::from_secs(1);

/// When rounds are held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// Time between rounds, in the head's time.
    pub(super) round: Span,
    /// Whether an arrival, an end or a failure brings the next round forward.
    pub(super) wakes_early: bool,
    /// Real time between two rounds at least.
    pub(super) least_gap: Span,
    /// Agents that must be there before the first.
    pub(super) wait_for: usize,
    /// A job that has run for less is never stopped in favour of another.
    pub(super) min_run: Span,
}

impl Engine {
    /// Whether the policy was asked and has not answered.
    pub(super) fn is_deciding(&self) -> bool {
        self.asked.is_some()
    }

    /// Real time between two rounds at least: in proportion to what the last one took, deciding and writing, so that a
    /// small cluster answers at once and a large one is not always deciding.
    pub(super) fn gap(&self) -> Span {
        self.rounds.least_gap.max((self.round_cost * GAP_FACTOR).min(MOST_GAP))
    }

    /// A plan that was taken is on the disk now: what its round took in all is known.
    pub(super) fn note_round_cost(&mut self) {
        if let Some((_, begun)) = self.last_round.filter(|_| std::mem::take(&mut self.was_planned)) {
            self.round_cost = self.clock.moment().real - begun;
        }
    }

    /// How long a job must have run to be stopped in favour of another by a round held now. In a round that was brought
    /// forward, a whole round: else a policy that deals time out would stop jobs whenever one comes or ends.
    fn protects(&mut self, moment: Moment) -> Span {
        let slot = moment.now.0.div_euclid(self.rounds.round.0.max(1));
        match self.last_slot.replace(slot) == Some(slot) {
            true => self.rounds.min_run.max(self.rounds.round),
            false => self.rounds.min_run,
        }
    }

    /// When the policy is asked next, in the head's time.
    pub(super) fn next_round(&self, moment: Moment) -> Option<Time> {
        let is_idle = self.state.books.scheduler.jobs().is_empty();
        if !self.is_ready || self.asked.is_some() || is_idle || self.stops_until.is_some() {
            return None;
        }
        // Rounds are due at whole multiples of their length, however late the last one was held.
        let on_grid = |time: Time| time.align_up(Time::ZERO, self.rounds.round);
        let after_last = self.last_round.map_or(Time::ZERO, |(last, _)| last + Span(1));
        // What a plan moved waits for its turn: jobs that take turns would else be swapped as fast as they start.
        if self.rounds.wakes_early && self.state.books.is_woken {
            return Some(moment.now);
        }
        if let Some(changed) = self.state.books.changed {
            return Some(on_grid(after_last.max(changed)));
        }
        match self.wake {
            Wake::NextRound => Some(on_grid(after_last)),
            Wake::OnChange => None,
            Wake::AtOrOnChange(time) => Some(on_grid(after_last.max(time))),
        }
    }

    pub(super) fn begin_round_if_due(&mut self, moment: Moment) {
        if !self.is_ready {
            self.is_ready = self.state.n_agents_here() >= self.rounds.wait_for;
            if !self.is_ready {
                return;
            }
            eprintln!("ready: {} agents are here", self.state.n_agents_here());
        }
        self.state.release_held(moment);
        let is_due = self.next_round(moment).is_some_and(|at| at <= moment.now);
        let is_soon = self.last_round.is_some_and(|(_, real)| moment.real < real + self.gap());
        if !is_due || is_soon || self.disk_trouble.is_some() {
            return;
        }
        self.state.note_progress(moment);
        let round = self.state.books.n_rounds + 1;
        let protects = Some(self.protects(moment));
        self.state.record(moment, Record::RoundBegan { round, protects });
        let snapshot = self.state.books.scheduler.snapshot(moment.now);
        self.last_round = Some((moment.now, moment.real));
        self.asked = Some(round);
        if self.asks.send(Ask::Decide { round, snapshot }).is_err() {
            self.trouble = "the desk is gone".into();
        }
    }

    pub(super) fn take_answer(&mut self, moment: Moment, answer: Answer) {
        match answer {
            Answer::Decided { round, result } if self.asked == Some(round) => {
                (self.asked, self.was_planned) = (None, true);
                match result {
                    Ok((plan, memory)) => self.take_plan(moment, round, plan, memory),
                    Err(reason) => self.policy_failed(moment, reason),
                }
            }
            Answer::Decided { .. } => {}
            Answer::Taken { ticket, result } => self.policy_taken(moment, ticket, result),
            Answer::WhatIf { ticket, result } => {
                let Some(Waiting::Desk(reply, _)) = self.tickets.remove(&ticket) else { return };
                let answers = match result {
                    Ok(plan) => {
                        vec![ToUser::Text(LongText::cut(&views::what_if_text(self, &plan))), ToUser::End]
                    }
                    Err(why) => vec![failed(&why)],
                };
                self.replies.push((reply, answers));
            }
        }
    }

    /// Makes a plan true, as far as the world is still the one it was made for.
    fn take_plan(&mut self, moment: Moment, round: u64, mut plan: Plan, memory: String) {
        if self.stops_until.is_some() {
            return;
        }
        let snapshot = self.state.books.scheduler.snapshot(moment.now);
        plan.run.retain(|run| snapshot.jobs.row(run.job).is_some());
        plan.verdicts.retain(|(job, _)| snapshot.jobs.row(*job).is_some());
        let verdict = check(&snapshot, plan.clone());
        drop(snapshot);
        match verdict {
            Ok(_) => {
                self.trouble.clear();
                self.wake = plan.wake;
                let plan = PlanRecord::from(&plan);
                self.state.record(moment, Record::Planned { round, plan, memory });
            }
            // Something happened while the policy decided; it is asked again at once.
            Err(violation) => {
                let reason = violation.to_string();
                self.state.record(moment, Record::PlanOvertaken { round, reason });
                self.state.books.changed.get_or_insert(moment.now);
                self.state.books.is_woken = true;
            }
        }
    }

    fn policy_failed(&mut self, moment: Moment, reason: String) {
        self.wake = Wake::NextRound;
        if self.trouble != reason {
            self.trouble.clone_from(&reason);
            self.state.record(moment, Record::PolicyFailed { reason });
        }
    }

    fn policy_taken(&mut self, moment: Moment, ticket: Option<u64>, result: Result<Taken, String>) {
        let waiting = ticket.and_then(|ticket| self.tickets.remove(&ticket));
        let user = match &waiting {
            Some(Waiting::Desk(_, user)) => user.to_string(),
            None if ticket.is_some() => "the head's start".into(),
            None => "a changed file".into(),
        };
        let known = &self.state.books.chosen;
        let is_known = |taken: &Taken| taken.policy == known.policy && taken.set == known.set;
        let answers = match result {
            // After a restart the same policy decides on: nothing to write down.
            Ok(taken) if ticket.is_some() && waiting.is_none() && is_known(&taken) => Vec::new(),
            Ok(Taken { policy, set, digest }) => {
                self.trouble.clear();
                self.refused.clear();
                self.state.record(moment, Record::PolicySet { policy: policy.clone(), set, user, digest });
                vec![
                    ToUser::Text(LongText::cut(&format!("policy {policy} decides from the next round on"))),
                    ToUser::End,
                ]
            }
            Err(why) => {
                let text = format!("the policy was not taken: {why}");
                self.state.record(moment, Record::Noted { text: text.clone() });
                if waiting.is_none() {
                    self.refused = text;
                }
                vec![failed(&why)]
            }
        };
        if let Some(Waiting::Desk(reply, _)) = waiting {
            self.replies.push((reply, answers));
        }
    }
}
