//! The head's loop: takes in what arrives, writes it to the journal, sends what follows, and holds rounds.
//!
//! Everything that arrived while the last batch was written is one batch: one transaction, one sync. Orders,
//! acknowledgements and answers of a batch leave when it is on the disk. While the disk refuses (`disk`), what runs goes
//! on: heartbeats and questions are answered, changes are refused, and agents keep their reports.
//!
//! `timer` says when rounds are due, `rounds` holds them, `replies` keeps answers until they leave; `access` says whether a
//! person may ask, `users` answers requests, with the help of `submit`, `change`, `drain`, `policies`, `views`, `explain` and
//! `fast_forward`; `streams` sends long answers. `looks` is how programs and the page see the state, `sights` what they see of it.

mod access;
mod change;
mod disk;
mod drain;
mod explain;
mod fast_forward;
pub(crate) mod forecasts;
mod history;
pub(crate) mod looks;
#[cfg(test)]
mod overtaken;
mod policies;
pub(crate) mod refusal;
mod replies;
mod rounds;
pub(crate) mod sights;
mod streams;
mod submit;
mod timer;
mod users;
pub(crate) mod views;

pub(crate) use access::Access;
pub(crate) use replies::{Reply, Said};
pub(crate) use timer::{RoundSettings, RoundTimer};

use std::collections::BTreeMap;
use std::time::Duration;

use rota_core::time::{Span, Time};
use rota_transport::identity::UserRole;
use rota_transport::message::{FromUser, ToAgent, ToHead, ToUser};
use rota_transport::quic::Peer;
use rota_transport::value::{Name, Text};
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::decider::{Answer, DeciderLink};
use crate::meters::Meters;
use crate::record::Record;
use crate::roles::{Roles, RolesError};
use crate::rules::Rules;
use crate::state::{Moment, State};
use crate::store::Store;
use crate::upkeep::{ChoreDone, Upkeep};
use forecasts::Forecasts;
use looks::Look;
use refusal::Refusal;
use replies::Replies;
use sights::Watch;
use streams::Streams;
use submit::Submission;

/// How long launches may take to stop when the cluster is shut down.
const STOP_AT_MOST: Span = Span::from_secs(40);
/// The most inputs in one batch.
const MOST_IN_BATCH: usize = 4096;

/// Everything that can wake the engine, from agents, users, the decider and the system.
#[derive(Debug)]
pub(crate) enum Input {
    AgentConnected {
        name: Name,
        link: u64,
        sender: mpsc::Sender<ToAgent>,
        peer: Peer,
        /// What it said first: a greeting, or it is not heard further.
        first: ToHead,
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
        /// What the certificate says.
        role: UserRole,
        /// For how long the certificate is valid, if it was shown.
        left: Option<Duration>,
        request: FromUser,
        reply: Reply,
    },
    /// Somebody wants to see something.
    Look {
        user: Name,
        /// What the certificate says.
        role: UserRole,
        look: Look,
    },
    Decider(Answer),
    /// The journal's upkeep has something to write.
    Upkeep(ChoreDone),
    /// A certificate was revoked: all peers must connect again, so that their certificates are checked again.
    CertificatesChanged {
        /// What peers are told.
        why: &'static str,
    },
    /// Something that an operator should know.
    Noted(String),
    /// The file of roles was read again.
    RolesChanged(Result<Roles, RolesError>),
    Shutdown,
}

/// The head's loop and everything it owns; one task, so nothing here is locked.
pub(crate) struct Engine {
    state: State,
    store: Store,
    clock: Clock,
    rules: Rules,
    timer: RoundTimer,
    decider: DeciderLink,
    access: Access,
    upkeep: Upkeep,
    streams: Streams,
    replies: Replies,
    /// Viewers of the page, and what they were last told.
    watch: Watch,
    forecasts: Forecasts,
    meters: Meters,
    links: BTreeMap<Name, Link>,
    /// Whether all agents that must be there before the first round have come.
    is_ready: bool,
    /// Why the last batch could not be written.
    disk_trouble: Option<String>,
    /// When it is tried again to write it, in real time.
    next_write: Time,
    /// Inventories that came while the disk refused.
    postponed: BTreeMap<Name, (u64, ToHead)>,
    /// Jobs that were submitted since the last batch.
    submissions: Vec<Submission>,
    /// At a shutdown, the real time until which launches may take to stop before the head ends.
    stops_until: Option<Time>,
    is_over: bool,
}

/// The connection of an agent.
#[derive(Debug)]
struct Link {
    id: u64,
    sender: mpsc::Sender<ToAgent>,
    peer: Peer,
}

impl Engine {
    #[expect(clippy::too_many_arguments, reason = "an engine is made from all of these, in one place")]
    pub(crate) fn new(
        state: State,
        store: Store,
        clock: Clock,
        rules: Rules,
        timer: RoundTimer,
        decider: DeciderLink,
        access: Access,
        upkeep: Upkeep,
    ) -> Self {
        Engine {
            state,
            store,
            clock,
            rules,
            timer,
            decider,
            access,
            upkeep,
            streams: Streams::default(),
            replies: Replies::default(),
            watch: Watch::default(),
            forecasts: Forecasts::default(),
            meters: Meters::default(),
            links: BTreeMap::new(),
            is_ready: false,
            disk_trouble: None,
            next_write: Time::ZERO,
            postponed: BTreeMap::new(),
            submissions: Vec::new(),
            stops_until: None,
            is_over: false,
        }
    }

    /// The same, with a page whose viewers are told what changes.
    pub(crate) fn with_viewers(self, watch: Watch) -> Self {
        Engine { watch, ..self }
    }

    /// Runs until a user or a signal ends it.
    pub(crate) async fn run(mut self, mut inputs: mpsc::Receiver<Input>) {
        while !self.is_over {
            let wait = self.wait();
            if let Ok(input) = tokio::time::timeout(wait, inputs.recv()).await {
                let Some(input) = input else { break };
                self.take(input);
                // Inputs that arrived meanwhile belong to the same batch.
                for _ in 0..MOST_IN_BATCH {
                    let Ok(input) = inputs.try_recv() else { break };
                    self.take(input);
                }
            }
            submit::take_in(&mut self);
            let moment = self.clock.moment();
            self.state.tick(moment);
            self.state.end_over_time(moment);
            self.state.drain_idle(moment);
            self.begin_round_if_due(moment);
            if self.disk_trouble.is_none() {
                self.state.launch_what_can(moment);
            }
            self.forecast_for_viewers(moment);
            self.write_and_send();
            if self.disk_trouble.is_none() {
                self.tell_viewers(moment);
            }
            self.timer.written(self.clock.moment().real);
            let is_empty = self.state.launches().is_empty();
            self.is_over |= self.stops_until.is_some_and(|until| is_empty || moment.real >= until);
        }
        self.write_and_send();
        for link in self.links.values() {
            link.peer.close("the head ends");
        }
    }

    /// How long the engine can wait if nothing arrives.
    fn wait(&self) -> Duration {
        let moment = self.clock.moment();
        let tick = self.state.timeout().map(|at| at - moment.real);
        let round = self.next_round(moment).map(|at| self.clock.to_real(at - moment.now));
        let gap = self.timer.not_before().map(|real| real - moment.real);
        let round = round.map(|round| gap.map_or(round, |gap| round.max(gap)));
        let limit = self.state.cluster().next_limit().map(|(at, _)| self.clock.to_real(at - moment.now));
        let viewers = self.watch.due().map(|real| real - moment.real);
        let soonest = [tick, round, limit, viewers].into_iter().flatten().min().unwrap_or(Span::from_secs(1));
        Duration::from_micros(soonest.0.clamp(1_000, 1_000_000) as u64)
    }

    fn take(&mut self, input: Input) {
        let moment = self.clock.moment();
        match input {
            Input::AgentConnected { name, link, sender, peer, first } => {
                self.greeted(moment, &name, Link { id: link, sender, peer }, first);
            }
            Input::FromAgent { name, link, message } => {
                if self.links.get(&name).is_none_or(|known| known.id != link) {
                    return;
                }
                let Some(message) = self.postpone(&name, link, message) else { return };
                self.receive(moment, &name, message);
            }
            Input::AgentGone { name, link } => {
                if self.links.get(&name).is_some_and(|known| known.id == link) {
                    tracing::info!("{name}: its connection is gone");
                    self.links.remove(&name);
                    self.state.disconnected(&name);
                }
            }
            Input::User { user, role, left, request, reply } => {
                let person = self.access.roles.person(&user, role);
                match (request, left) {
                    (FromUser::SignIn { by }, Some(left)) => {
                        users::sign_in(self, &person, role, by, left, reply);
                    }
                    (request, _) => users::answer(self, moment, &person, request, reply),
                }
            }
            Input::Look { user, role, look } => {
                let person = self.access.roles.person(&user, role);
                looks::show(self, moment, &person, look);
            }
            Input::Decider(answer) => self.take_answer(moment, answer),
            Input::Upkeep(done) => {
                let writes = self.upkeep.take(done, self.clock.moment().now);
                self.state.outbox().keep(writes);
            }
            Input::CertificatesChanged { why } => {
                for link in self.links.values() {
                    link.peer.close(why);
                }
                self.access.sessions.iter().for_each(|sessions| sessions.end_all());
            }
            Input::Noted(text) => {
                self.state.record(moment, Record::Noted { text });
            }
            Input::RolesChanged(found) => self.roles_changed(moment, found),
            Input::Shutdown => self.is_over = true,
        }
        self.hand_out_logs();
    }

    /// An agent connected. If it may speak for its node, it takes the place of an earlier connection.
    fn greeted(&mut self, moment: Moment, name: &Name, link: Link, first: ToHead) {
        let ToHead::Hello(hello) = first else {
            return link.peer.close("the first message must be a greeting");
        };
        if let Err(error) = self.state.admit(moment, name, &hello) {
            // The writer sends it and ends, because nothing else will follow.
            let _ = link.sender.try_send(ToAgent::Refused(Text::cut(&error.to_string())));
            return;
        }
        tracing::info!("{name} connected");
        if let Some(old) = self.links.insert(name.clone(), link) {
            old.peer.close("another connection of this agent took its place");
        }
        self.receive(moment, name, ToHead::Hello(hello));
    }

    fn receive(&mut self, moment: Moment, name: &Name, message: ToHead) {
        if let Err(error) = self.state.receive(moment, name, message) {
            let text = format!("{name} was disconnected: {error}");
            tracing::warn!("{text}");
            self.state.record(moment, Record::Noted { text });
            // The last messages to it leave with this batch, then the connection ends.
            self.write_and_send();
            self.hang_up(name);
        }
    }

    /// Stops all launches, and ends when they are gone or have taken too long.
    fn wind_down(&mut self, moment: Moment) {
        self.stops_until = Some(moment.real + STOP_AT_MOST);
        self.state.stop_everything(moment, "the cluster was shut down");
    }

    fn hang_up(&mut self, name: &Name) {
        if let Some(link) = self.links.remove(name) {
            // The writer sends what is in its queue, then ends.
            drop(link.sender);
        }
        self.state.disconnected(name);
    }

    fn hand_out_logs(&mut self) {
        for (name, order, answer) in self.state.outbox().take_logs() {
            let answers = match answer {
                Ok(chunk) => {
                    let (offset, bytes, is_end) = (chunk.offset, chunk.bytes, chunk.is_end);
                    vec![ToUser::Log { offset, bytes, is_end }.into(), ToUser::End.into()]
                }
                Err(why) => vec![replies::failed(why.as_str())],
            };
            self.replies.fetched((name, order), answers);
        }
    }
}
