//! The head's heart: takes in what arrives, writes it down, lets it out, and holds rounds.
//!
//! Everything that arrived while the last batch was written is one batch: one transaction, one sync. Orders,
//! acknowledgements and answers of a batch leave when it is on the disk. While the disk refuses, nothing leaves and no
//! job is taken in; what runs goes on.

use std::collections::BTreeMap;
use std::sync::mpsc as std_mpsc;
use std::time::Duration;

use rota_core::plan::Wake;
use rota_core::time::{Span, Time};
use rota_transport::message::{FromUser, OrderId, ToAgent, ToHead, ToUser};
use rota_transport::quic::Peer;
use rota_transport::value::{LongText, Name};
use tokio::sync::mpsc;

use super::clock::Clock;
use super::desk::{Answer, Ask};
use super::record::Record;
use super::rounds::Rounds;
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
    /// Why the last decision failed; empty after one that did not.
    pub(super) trouble: String,
    /// Why the text on the disk was not taken; it stands until one is, whatever the old text decides meanwhile.
    pub(super) refused: String,
    pub(super) disk_trouble: Option<String>,
    pub(super) asks: std_mpsc::Sender<Ask>,
    pub(super) tickets: BTreeMap<u64, Waiting>,
    pub(super) next_ticket: u64,
    /// Who waits for output, by the order that fetches it.
    pub(super) readers: BTreeMap<(Name, OrderId), mpsc::Sender<ToUser>>,
    pub(super) replies: Vec<(mpsc::Sender<ToUser>, Vec<ToUser>)>,
    links: BTreeMap<Name, Link>,
    /// The round that the desk works on.
    pub(super) asked: Option<u64>,
    pub(super) last_round: Option<(Time, Time)>,
    /// The last stretch between two rounds on the grid that had its round, by number.
    pub(super) last_slot: Option<i64>,
    /// Real time that the last round took until its plan was written down.
    pub(super) round_cost: Span,
    pub(super) was_planned: bool,
    pub(super) wake: Wake,
    /// Until when, in real time, launches may take to stop before the head ends.
    pub(super) stops_until: Option<Time>,
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
            refused: String::new(),
            disk_trouble: None,
            asks,
            tickets: BTreeMap::new(),
            next_ticket: 0,
            readers: BTreeMap::new(),
            replies: Vec::new(),
            links: BTreeMap::new(),
            asked: None,
            last_round: None,
            last_slot: None,
            round_cost: Span::ZERO,
            was_planned: false,
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
            self.state.launch_what_can(moment);
            self.write_and_send();
            self.note_round_cost();
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
        let gap = self.last_round.map(|(_, real)| real + self.gap() - moment.real);
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
