//! Rounds as the engine holds them: the policy is asked, its answer accepted, and other policies chosen.

use rota_core::plan::Wake;
use rota_core::round::{self, Decision};
use rota_core::time::Span;
use rota_transport::message::ToUser;
use rota_transport::value::LongText;

use super::Engine;
use super::refusal::RefusalKind;
use super::replies::{Said, failed};
use super::views;
use crate::decider::{Answer, DecideError, PolicyChosen, PolicyUseError};
use crate::meters::RoundEnd;
use crate::record::Record;
use crate::state::Moment;

impl Engine {
    /// When the next round is due, in the head's time; none while no round can be held.
    pub(super) fn next_round(&self, moment: Moment) -> Option<rota_core::time::Time> {
        let may_begin = self.is_ready && self.stops_until.is_none();
        if may_begin { self.timer.next(moment.now, self.state.cluster()) } else { None }
    }

    pub(super) fn begin_round_if_due(&mut self, moment: Moment) {
        if self.state.is_waiting_for_leases() || self.state.later_state().is_some() {
            return;
        }
        if !self.is_ready {
            let n_here = self.state.agents().n_here();
            self.is_ready = n_here >= self.timer.settings().wait_for;
            if !self.is_ready {
                return;
            }
            tracing::info!("ready: {n_here} agents are here");
        }
        if self.disk_trouble.is_some() {
            return;
        }
        self.state.release_held(moment);
        let is_due = self.next_round(moment).is_some_and(|at| at <= moment.now);
        let is_soon = self.timer.not_before().is_some_and(|real| moment.real < real);
        if !is_due || is_soon {
            return;
        }
        self.state.note_progress(moment);
        let round = self.state.cluster().n_rounds() + 1;
        let protects = Some(self.timer.begin(moment, round));
        self.state.record(moment, Record::RoundBegan { round, protects });
        let snapshot = self.state.snapshot(moment);
        self.decider.decide(round, snapshot);
    }

    pub(super) fn take_answer(&mut self, moment: Moment, answer: Answer) {
        match answer {
            Answer::Decided { round, result, effort } => {
                if self.timer.is_answered(round) {
                    let since = self.timer.last_began().map_or(Span::ZERO, |began| moment.real - began);
                    self.meters.decided(since, &effort);
                    match result {
                        Ok((decision, memory)) => self.take_decision(moment, round, decision, memory),
                        Err(error) => self.policy_failed(moment, &error),
                    }
                }
            }
            Answer::Chosen { ticket, result } => self.policy_chosen(moment, ticket, result),
            Answer::Foreseen { ticket, result, took } => self.take_forecast(moment, ticket, result, took),
            Answer::WhatIf { ticket, result } => {
                let Some(waiting) = self.decider.redeem(ticket) else { return };
                let answers = match result {
                    Ok(decision) => {
                        let changes = views::what_if(self, decision.checked.plan());
                        vec![Said::Would(changes), ToUser::End.into()]
                    }
                    Err(error) => vec![said_of(&error)],
                };
                self.replies.push_free(waiting.reply, answers);
            }
        }
    }

    /// Accepts a decision, if its plan still fits the state of the cluster.
    fn take_decision(&mut self, moment: Moment, round: u64, decision: Decision, memory: String) {
        if self.stops_until.is_some() {
            return;
        }
        let accepted = round::accept(&self.state.snapshot(moment), decision);
        match accepted {
            Ok(decision) => {
                self.decider.has_decided();
                self.meters.round(RoundEnd::Planned);
                self.timer.wake_at(decision.wake);
                self.state.plan(moment, round, decision, memory);
            }
            // Something happened while the policy decided, so it is asked again at once.
            Err(violation) => {
                tracing::debug!("round {round} was overtaken by events: {violation}");
                self.meters.round(RoundEnd::Overtaken);
                self.decider.forget(round);
                self.state.record(moment, Record::PlanOvertaken { round, reason: violation.to_string() });
            }
        }
    }

    fn policy_failed(&mut self, moment: Moment, error: &DecideError) {
        self.timer.wake_at(Wake::NextRound);
        self.meters.round(RoundEnd::Failed);
        let reason = error.to_string();
        if self.decider.has_failed(&reason) {
            tracing::warn!("the policy failed, what runs is kept: {reason}");
            self.state.record(moment, Record::PolicyFailed { reason });
        }
    }

    fn policy_chosen(
        &mut self,
        moment: Moment,
        ticket: Option<u64>,
        result: Result<PolicyChosen, PolicyUseError>,
    ) {
        let waiting = ticket.and_then(|ticket| self.decider.redeem(ticket));
        let user = match &waiting {
            Some(waiting) => waiting.user.to_string(),
            None if ticket.is_some() => "the head's start".into(),
            None => "a changed file".into(),
        };
        let known = self.state.cluster().policy();
        let is_known = |chosen: &PolicyChosen| {
            (&chosen.policy, &chosen.set) == (&known.name, &known.set)
                && (&chosen.texts, &chosen.files) == (&known.texts, &known.files)
        };
        let trouble = result.as_ref().ok().and_then(|chosen| chosen.trouble.clone());
        let why_kept = result.as_ref().ok().and_then(|chosen| chosen.why_kept.clone());
        let answers = match result {
            // After a restart the same policy goes on: nothing to write down.
            Ok(chosen) if ticket.is_some() && waiting.is_none() && is_known(&chosen) => {
                // A text that was refused before the restart may have been mended meanwhile.
                if !known.refused.is_empty() && why_kept.is_none() {
                    self.decider.look_again();
                }
                Vec::<Said>::new()
            }
            Ok(PolicyChosen { policy, set, digest, texts, files, .. }) => {
                tracing::info!("policy {policy} decides from the next round on, set by {user}");
                self.decider.has_chosen();
                let text = format!("policy {policy} decides from the next round on");
                self.state.record(moment, Record::PolicySet { policy, set, user, digest, texts, files });
                vec![ToUser::Text(LongText::cut(&text)).into(), ToUser::End.into()]
            }
            Err(error) => {
                let text = format!("the policy was not changed: {error}");
                tracing::warn!("{text}");
                let is_file = matches!(error, PolicyUseError::OldTextStays(_));
                if !is_file {
                    self.state.record(moment, Record::Noted { text });
                } else if text != known.refused {
                    self.state.record(moment, Record::PolicyRefused { reason: text });
                }
                vec![said_of(&error)]
            }
        };
        if let Some(text) = why_kept {
            let reason = trouble.map_or(text.clone(), |trouble| format!("{text}: {trouble}"));
            tracing::warn!("{reason}");
            if self.state.cluster().policy().refused != reason {
                self.state.record(moment, Record::PolicyRefused { reason });
            }
        } else if let Some(trouble) = trouble {
            tracing::warn!("{trouble}");
            self.decider.has_failed(&trouble);
        }
        if let Some(waiting) = waiting {
            self.replies.push(waiting.reply, answers);
        }
    }
}

/// A policy that cannot be used, or a question that is one too many.
pub(super) fn said_of(error: &PolicyUseError) -> Said {
    match error {
        PolicyUseError::TooManyQuestions(_) => {
            Said::Refused { kind: RefusalKind::TooMany, why: LongText::cut(&error.to_string()) }
        }
        error => failed(&error.to_string()),
    }
}
