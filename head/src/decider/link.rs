//! The engine's side of the decider: sends requests, remembers which users wait for an answer and why the last decision
//! failed.

use std::collections::BTreeMap;

use rota_core::snapshot::Snapshot;
use rota_transport::value::Name;

use super::{Ask, Decider};
use crate::engine::Reply;

/// A user who waits for the decider's answer.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) user: Name,
    pub(crate) reply: Reply,
}

/// The engine's connection to the decider.
pub(crate) struct DeciderLink {
    decider: Decider,
    tickets: BTreeMap<u64, Waiting>,
    /// Ticket 0 is the head's own, for the policy it starts with.
    last_ticket: u64,
    /// Why the last decision failed; empty if it did not.
    failure: String,
    /// Why the policy is not the one that the head was told to start with; empty if it is, or another was chosen since.
    start_trouble: String,
}

impl DeciderLink {
    /// With the policy to start with, whose ticket is 0; none if there is none that can be used. `trouble` is what is wrong, if
    /// that is not the policy that the head was told to start with.
    pub(crate) fn new(decider: Decider, first: Option<Ask>, trouble: Option<String>) -> Self {
        let start_trouble = trouble.unwrap_or_default();
        let (tickets, failure) = (BTreeMap::new(), String::new());
        let mut link = DeciderLink { decider, tickets, last_ticket: 0, failure, start_trouble };
        match first {
            Some(first) => link.send(first),
            None => link.decider.begin_without(),
        }
        link
    }

    /// Asks for the decision of a round.
    pub(crate) fn decide(&mut self, round: u64, snapshot: Snapshot) {
        self.send(Ask::Decide { round, snapshot });
    }

    /// A round's plan was overtaken: the policy's memory goes back to what it was before that round.
    pub(crate) fn forget(&mut self, round: u64) {
        self.send(Ask::Forget { round });
    }

    /// Sends a user's request; the ticket says who gets the answer.
    pub(crate) fn ask_for(&mut self, waiting: Waiting, make: impl FnOnce(u64) -> Ask) {
        self.last_ticket += 1;
        self.tickets.insert(self.last_ticket, waiting);
        self.send(make(self.last_ticket));
    }

    /// Asks for a forecast of the head's own.
    pub(crate) fn foresee(&mut self, ask: Ask) {
        self.send(ask);
    }

    /// The user who holds a ticket.
    pub(crate) fn redeem(&mut self, ticket: u64) -> Option<Waiting> {
        self.tickets.remove(&ticket)
    }

    /// A decision was taken.
    pub(crate) fn has_decided(&mut self) {
        self.failure.clear();
    }

    /// A decision failed; whether that is news.
    pub(crate) fn has_failed(&mut self, reason: &str) -> bool {
        let is_new = self.failure != reason;
        reason.clone_into(&mut self.failure);
        is_new
    }

    /// A policy was chosen: what was wrong with the one before does not matter any more.
    pub(crate) fn has_chosen(&mut self) {
        self.failure.clear();
        self.start_trouble.clear();
    }

    /// Why the policy is not the one that the head was told to start with; empty if it is.
    pub(crate) fn start_trouble(&self) -> &str {
        &self.start_trouble
    }

    /// Has the policy's files read again, though nobody asked.
    pub(crate) fn look_again(&mut self) {
        self.send(Ask::Reload { ticket: None, snapshot: None });
    }

    /// Why the last decision failed; empty if it did not.
    pub(crate) fn failure(&self) -> &str {
        &self.failure
    }

    fn send(&mut self, ask: Ask) {
        if !self.decider.send(ask) {
            tracing::error!("a thread of the decider has ended: no round can be decided");
            "a thread of the decider has ended".clone_into(&mut self.failure);
        }
    }
}
