//! The head's heart: takes in what arrives, writes it down, lets it out, and holds rounds.
//!
//! Everything that arrived while the last batch was written is one batch: one transaction, one sync. Orders,
//! acknowledgements and answers of a batch leave when it is on the disk. While the disk refuses, nothing leaves and no
//! job is taken in; what runs goes on.

use std::collections::BTreeMap;
use std::sync::mpsc as std_mpsc;
use std::time::Duration;

use rota_core::check::check;
use rota_core::plan::{Plan, Wake};
use rota_core::time::{Span, Time};
use rota_transport::message::{FromUser, OrderId, ToAgent, ToHead, ToUser};
use rota_transport::quic::Peer;
use rota_transport::value::{LongText, Name};
use tokio::sync::mpsc;

use super::clock::Clock;
use super::desk::{Answer, Ask, Taken};
use super::record::{PlanRecord, Record};
use super::rules::Rules;
use super::state::{Moment, State};
use super::store::Store;
use super::users;

/// How long launches may take to stop when the cluster is shut down.
const STOP_AT_MOST: Span = Span::from_secs(40);

/// What arrives.
#[derive(Debug)]
pub(super) enum Input {
    AgentConnected {
        name: Name,
        link: u64,
        sender: mpsc::Sender<ToAgent>,
        peer: Peer,
    },
    FromAgent {
        name: Name,
        link: u64,
        message: ToHead,
    },
    AgentGone {
        name: Name,
        link: u64,
    },
    User {
        user: Name,
        request: FromUser,
        reply: mpsc::Sender<ToUser>,
    },
    Desk(Answer),
    /// Some certificate was revoked: whoever is connected must show again who it is.
    CertificatesChanged,
    Shutdown,
}

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
}

/// Who waits for something that is not there yet.
#[derive(Debug)]
pub(super) enum Waiting {
    /// For the desk.
    Desk(mpsc::Sender<ToUser>, Name),
}

/// The head at work.
pub(super) struct Engine {
    pub(super) state: State,
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) rounds: Rounds,
    pub(super) rules: Rules,
    pub(super) is_ready: bool,
    /// What is wrong with the policy or the disk.
    pub(super) trouble: String,
    pub(super) disk_trouble: Option<String>,
    pub(super) asks: std_mpsc::Sender<Ask>,
    pub(super) tickets: BTreeMap<u64, Waiting>,
    pub(super) next_ticket: u64,
    /// Who waits for output, by the order that fetches it.
    pub(super) readers: BTreeMap<(Name, OrderId), mpsc::Sender<ToUser>>,
    pub(super) replies: Vec<(mpsc::Sender<ToUser>, Vec<ToUser>)>,
    links: BTreeMap<Name, Link>,
    /// The round that the desk works on.
    asked: Option<u64>,
    last_round: Option<(Time, Time)>,
    wake: Wake,
    /// Until when, in real time, launches may take to stop before the head ends.
    stops_until: Option<Time>,
    is_over: bool,
}

#[derive(Debug)]
struct Link {
    id: u64,
    sender: mpsc::Sender<ToAgent>,
    peer: Peer,
}

impl Engine {
    pub(super) fn new(
        state: State,
        store: Store,
        clock: Clock,
        rounds: Rounds,
        rules: Rules,
        asks: std_mpsc::Sender<Ask>,
    ) -> Self {
        Engine {
            state,
            store,
            clock,
            rounds,
            rules,
            is_ready: false,
            trouble: String::new(),
            disk_trouble: None,
            asks,
            tickets: BTreeMap::new(),
            next_ticket: 0,
            readers: BTreeMap::new(),
            replies: Vec::new(),
            links: BTreeMap::new(),
            asked: None,
            last_round: None,
            wake: Wake::NextRound,
            stops_until: None,
            is_over: false,
        }
    }

    /// Works until it is told to end.
    pub(super) async fn run(mut self, mut inputs: mpsc::Receiver<Input>) {
        while !self.is_over {
            let wait = self.wait();
            if let Ok(input) = tokio::time::timeout(wait, inputs.recv()).await {
                let Some(input) = input else { break };
                self.take(input);
                // What has piled up meanwhile belongs to the same batch.
                for _ in 0..4096 {
                    let Ok(input) = inputs.try_recv() else { break };
                    self.take(input);
                }
            }
            let moment = self.clock.moment();
            self.state.tick(moment);
            self.begin_round_if_due(moment);
            self.write_and_send();
            let is_empty = self.state.fleet.lives.is_empty();
            self.is_over |= self.stops_until.is_some_and(|until| is_empty || moment.real >= until);
        }
        self.write_and_send();
        for link in self.links.values() {
            link.peer.close("the head ends");
        }
    }

    /// How long nothing happens if nothing arrives.
    fn wait(&self) -> Duration {
        let moment = self.clock.moment();
        let tick = self.state.timeout().map(|at| at - moment.real);
        let round = self.next_round(moment).map(|at| self.clock.to_real(at - moment.now));
        let gap = self.last_round.map(|(_, real)| real + self.rounds.least_gap - moment.real);
        let round = round.map(|round| gap.map_or(round, |gap| round.max(gap)));
        let soonest = [tick, round].into_iter().flatten().min().unwrap_or(Span::from_secs(1));
        Duration::from_micros(soonest.0.clamp(1_000, 1_000_000) as u64)
    }

    fn take(&mut self, input: Input) {
        let moment = self.clock.moment();
        match input {
            Input::AgentConnected { name, link, sender, peer } => {
                self.state.connected(&name);
                if let Some(old) = self.links.insert(name, Link { id: link, sender, peer }) {
                    old.peer.close("another connection of this agent took its place");
                }
            }
            Input::FromAgent { name, link, message } => {
                if self.links.get(&name).is_none_or(|known| known.id != link) {
                    return;
                }
                if let Err(error) = self.state.heard(moment, &name, message) {
                    let text = format!("{name} was sent away: {error}");
                    self.state.record(moment, Record::Noted { text });
                    // Its last words leave with this batch, then the connection ends.
                    self.write_and_send();
                    self.hang_up(&name);
                }
            }
            Input::AgentGone { name, link } => {
                if self.links.get(&name).is_some_and(|known| known.id == link) {
                    self.links.remove(&name);
                    self.state.disconnected(&name);
                }
            }
            Input::User { user, request, reply } => users::answer(self, moment, &user, request, reply),
            Input::Desk(answer) => self.take_answer(moment, answer),
            Input::CertificatesChanged => {
                for link in self.links.values() {
                    link.peer.close("certificates were revoked: connect again");
                }
            }
            Input::Shutdown => self.is_over = true,
        }
        self.hand_out_logs();
    }

    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// Stops what runs and ends when it is gone, or has taken too long.
    pub(super) fn wind_down(&mut self, moment: Moment) {
        self.stops_until = Some(moment.real + STOP_AT_MOST);
        for attempt in self.state.fleet.lives.keys().copied().collect::<Vec<_>>() {
            self.state.fail(moment, attempt, "the cluster was shut down".into(), false);
            self.state.conclude(moment, attempt);
        }
    }

    fn hang_up(&mut self, name: &Name) {
        if let Some(link) = self.links.remove(name) {
            // The writer ends when its queue does, after what is in it was sent.
            drop(link.sender);
        }
        self.state.disconnected(name);
    }

    fn hand_out_logs(&mut self) {
        for (name, order, chunk) in std::mem::take(&mut self.state.logs) {
            if let Some(reply) = self.readers.remove(&(name, order)) {
                let (offset, bytes, is_end) = (chunk.offset, chunk.bytes, chunk.is_end);
                self.replies.push((reply, vec![ToUser::Log { offset, bytes, is_end }, ToUser::End]));
            }
        }
        for (name, order, why) in std::mem::take(&mut self.state.log_failures) {
            if let Some(reply) = self.readers.remove(&(name, order)) {
                self.replies.push((reply, vec![failed(&why)]));
            }
        }
    }

    /// Whether the policy was asked and has not answered.
    pub(super) fn is_deciding(&self) -> bool {
        self.asked.is_some()
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
        if let Some(changed) = self.state.books.changed {
            return Some(if self.rounds.wakes_early { moment.now } else { on_grid(after_last.max(changed)) });
        }
        match self.wake {
            Wake::NextRound => Some(on_grid(after_last)),
            Wake::OnChange => None,
            Wake::AtOrOnChange(time) => Some(on_grid(after_last.max(time))),
        }
    }

    fn begin_round_if_due(&mut self, moment: Moment) {
        if !self.is_ready {
            self.is_ready = self.state.n_agents_here() >= self.rounds.wait_for;
            if !self.is_ready {
                return;
            }
            eprintln!("ready: {} agents are here", self.state.n_agents_here());
        }
        self.state.release_held(moment);
        let is_due = self.next_round(moment).is_some_and(|at| at <= moment.now);
        let is_soon = self.last_round.is_some_and(|(_, real)| moment.real < real + self.rounds.least_gap);
        if !is_due || is_soon || self.disk_trouble.is_some() {
            return;
        }
        self.state.note_progress(moment);
        let round = self.state.books.n_rounds + 1;
        self.state.record(moment, Record::RoundBegan { round });
        let snapshot = self.state.books.scheduler.snapshot(moment.now);
        self.last_round = Some((moment.now, moment.real));
        self.asked = Some(round);
        if self.asks.send(Ask::Decide { round, snapshot }).is_err() {
            self.trouble = "the desk is gone".into();
        }
    }

    fn take_answer(&mut self, moment: Moment, answer: Answer) {
        match answer {
            Answer::Decided { round, result } if self.asked == Some(round) => {
                self.asked = None;
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
                        vec![ToUser::Text(LongText::cut(&users::what_if_text(self, &plan))), ToUser::End]
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
                let text = format!("round {round} was overtaken by events and is held again: {violation}");
                self.state.record(moment, Record::Noted { text });
                self.state.books.changed.get_or_insert(moment.now);
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
                    self.trouble = text;
                }
                vec![failed(&why)]
            }
        };
        if let Some(Waiting::Desk(reply, _)) = waiting {
            self.replies.push((reply, answers));
        }
    }

    /// One batch: to the disk, then out.
    fn write_and_send(&mut self) {
        if !self.state.writes.is_empty() {
            if let Err(error) = self.store.commit(&self.state.writes) {
                if self.disk_trouble.is_none() {
                    eprintln!("the journal cannot be written, nothing is ordered until it can: {error}");
                }
                self.disk_trouble = Some(error.to_string());
                // Refusals rest on nothing that had to be written.
                let is_refusal = |answers: &[ToUser]| matches!(answers, [ToUser::Failed(_)]);
                let (out, kept) =
                    std::mem::take(&mut self.replies).into_iter().partition(|(_, a)| is_refusal(a));
                self.replies = kept;
                return send_answers(out);
            }
            self.disk_trouble = None;
            let writes = std::mem::take(&mut self.state.writes);
            self.state.written(&writes);
        }
        for (name, message) in std::mem::take(&mut self.state.sends) {
            let Some(link) = self.links.get(&name) else { continue };
            if link.sender.try_send(message).is_err() {
                link.peer.close("this agent does not keep up");
            }
        }
        send_answers(std::mem::take(&mut self.replies));
    }
}

fn send_answers(replies: Vec<(mpsc::Sender<ToUser>, Vec<ToUser>)>) {
    for (reply, answers) in replies {
        for answer in answers {
            // Whoever asked may be gone.
            let _ = reply.try_send(answer);
        }
    }
}

/// A refusal.
pub(super) fn failed(why: &str) -> ToUser {
    ToUser::Failed(LongText::cut(why))
}
