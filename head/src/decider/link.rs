//! The engine's side of the decider: sends requests, remembers which users wait for an answer and what is wrong with the
//! policy.

use std::collections::BTreeMap;
use std::sync::mpsc as std_mpsc;

use rota_core::snapshot::Snapshot;
use rota_transport::message::ToUser;
use rota_transport::value::Name;
use tokio::sync::mpsc;

use super::Ask;

/// A user who waits for the decider's answer.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) user: Name,
    pub(crate) reply: mpsc::Sender<ToUser>,
}

/// The engine's connection to the decider.
#[derive(Debug)]
pub(crate) struct DeciderLink {
    asks: std_mpsc::Sender<Ask>,
    tickets: BTreeMap<u64, Waiting>,
    /// Ticket 0 is the head's own, for the policy it starts with.
    last_ticket: u64,
    /// Why the last decision failed; empty if it did not.
    failure: String,
    /// Why the script on the disk is not used. Kept until a new text is accepted, even while the old one decides well.
    refusal: String,
}

impl DeciderLink {
    pub(crate) fn new(asks: std_mpsc::Sender<Ask>) -> Self {
        let (failure, refusal) = (String::new(), String::new());
        DeciderLink { asks, tickets: BTreeMap::new(), last_ticket: 0, failure, refusal }
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
        self.refusal.clear();
    }

    /// A changed text was refused.
    pub(crate) fn has_refused(&mut self, reason: &str) {
        reason.clone_into(&mut self.refusal);
    }

    /// What is wrong, for people; empty if nothing is.
    pub(crate) fn trouble(&self) -> String {
        let texts = [&self.failure, &self.refusal].into_iter().filter(|text| !text.is_empty());
        texts.map(String::as_str).collect::<Vec<_>>().join("; ")
    }

    fn send(&mut self, ask: Ask) {
        if self.asks.send(ask).is_err() {
            tracing::error!("the decider's thread has ended: no round can be decided");
            "the decider's thread has ended".clone_into(&mut self.failure);
        }
    }
}
