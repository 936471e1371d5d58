//! What the engine writes and sends, and what it does while the disk refuses (full, read-only, failing).
//!
//! What people ask to be changed is written first and done afterwards, so that a request is refused as a whole. What agents
//! report is taken in first: if it cannot be written, it waits, and until it is written no order and no acknowledgement
//! leaves. Agents keep their reports meanwhile. Leases are renewed all the time, because a head that lives and answers is no
//! reason to stop a job.

use std::time::Instant;

use rota_core::time::Span;
use rota_transport::message::{Task, ToAgent, ToHead};
use rota_transport::value::Name;

use super::{Engine, Input, Refusal};
use crate::record::Record;
use crate::state::Moment;
use crate::store::{StoreError, Write};

/// Time between two attempts to write what the disk refused.
const WRITE_AGAIN_AFTER: Span = Span(500_000);

impl Engine {
    /// Writes one batch to the disk, then sends what depended on it.
    pub(super) fn write_and_send(&mut self) {
        if self.state.outbox().writes().is_empty() && self.disk_trouble.is_none() {
            self.send_all();
            return self.keep_up();
        }
        let is_too_early = self.disk_trouble.is_some() && self.clock.moment().real < self.next_write;
        if !is_too_early && self.write().is_ok() {
            self.send_all();
            self.keep_up();
            for (name, (link, message)) in std::mem::take(&mut self.postponed) {
                self.take(Input::FromAgent { name, link, message });
            }
            return;
        }
        for (name, message) in self.state.outbox().take_sends() {
            // What is held back here is sent again later: agents have not confirmed it.
            if may_leave_unwritten(&message) {
                self.send(&name, message);
            }
        }
        let why = self.disk_trouble.clone().unwrap_or_default();
        self.replies.send_without_disk(&why);
        self.start_streams();
    }

    /// All that the state rests on is on the disk, so that it is the state after the last line: an image of it may be made, and
    /// lines that older ones made superfluous go.
    fn keep_up(&mut self) {
        let now = self.clock.moment().now;
        // Not while the policy decides: a replay that begins with the image would not know what it was asked.
        if self.upkeep.is_image_due(&self.store, now) && !self.timer.is_deciding() {
            self.state.retire_ended();
            self.upkeep.ask_for_image(self.state.cluster(), &self.store, now);
        } else {
            self.upkeep.prune_if_due(self.state.cluster(), &self.store, now);
        }
    }

    /// Writes records of a person's request, and only then does what they say. If the disk refuses, nothing has happened.
    pub(super) fn change(&mut self, moment: Moment, records: Vec<Record>) -> Result<(), Refusal> {
        let n_records = records.len();
        for record in &records {
            self.state.outbox().record(moment.now, record.clone());
        }
        if let Err(error) = self.write() {
            self.state.outbox().drop_last(n_records);
            return Err(Refusal::Disk(error.to_string()));
        }
        for record in records {
            self.state.follow_record(moment, &record);
        }
        Ok(())
    }

    /// Refuses if the disk does: for changes that have to be done before they can be written.
    pub(super) fn prove_disk(&mut self) -> Result<(), Refusal> {
        self.write().map_err(|error| Refusal::Disk(error.to_string()))
    }

    /// Writes what waits to be written, or, if nothing does, something of no meaning.
    fn write(&mut self) -> Result<(), StoreError> {
        let began = Instant::now();
        let written = match self.state.outbox().writes() {
            [] => self.store.set_meta("proven_us", &self.clock.moment().now.0.to_string()),
            writes => self.store.commit(writes),
        };
        if let Err(error) = written {
            if self.disk_trouble.is_none() {
                tracing::error!("the journal cannot be written, nothing is ordered until it can: {error}");
            }
            // An image that does not fit on the disk must not keep small records from being written.
            if self.state.outbox().drop_upkeep() {
                self.upkeep.start_over(&self.store, self.clock.moment().now);
            }
            self.meters.refused();
            self.disk_trouble = Some(error.to_string());
            self.next_write = self.clock.moment().real + WRITE_AGAIN_AFTER;
            return Err(error);
        }
        let writes = self.state.outbox().take_writes();
        self.state.written(&writes);
        let n_records = writes.iter().filter(|write| matches!(write, Write::Record(..))).count();
        if !writes.is_empty() {
            self.meters.written(n_records, began.elapsed());
        }
        self.forecasts.note(&writes);
        let cluster = self.state.cluster();
        self.watch.note(&writes, self.store.position(), |node| cluster.node_name(node).to_owned());
        if self.disk_trouble.take().is_some() {
            tracing::info!("the journal can be written again");
        }
        Ok(())
    }

    /// A message of an agent that can be taken in now. While the disk refuses, reports are left to the agent, which sends them
    /// again, and its last inventory is kept.
    pub(super) fn postpone(&mut self, name: &Name, link: u64, message: ToHead) -> Option<ToHead> {
        match message {
            _ if self.disk_trouble.is_none() => Some(message),
            ToHead::Report(_) => None,
            ToHead::Inventory(_) => {
                self.postponed.insert(name.clone(), (link, message));
                None
            }
            ToHead::Hello(_)
            | ToHead::Heartbeat(_)
            | ToHead::OrderDone(_)
            | ToHead::LogChunk(_)
            | ToHead::Recalled(_)
            | ToHead::Origin(_) => Some(message),
        }
    }

    fn send_all(&mut self) {
        for (name, message) in self.state.outbox().take_sends() {
            self.send(&name, message);
        }
        self.replies.send_all();
        self.start_streams();
    }

    fn start_streams(&mut self) {
        for (user, reply, stream) in self.replies.take_streams() {
            self.streams.start(self.store.reader(), &user, stream, reply);
        }
    }

    fn send(&self, name: &Name, mut message: ToAgent) {
        message.stamp(self.store.position());
        let Some(link) = self.links.get(name) else { return };
        if link.sender.try_send(message).is_err() {
            tracing::warn!("{name} does not keep up with what it is sent: its connection is closed");
            link.peer.close("this agent does not keep up");
        }
    }
}

/// Whether a message may leave while something is not written: it says nothing of it.
fn may_leave_unwritten(message: &ToAgent) -> bool {
    match message {
        ToAgent::Welcome(_) | ToAgent::Refused(_) | ToAgent::Renew { .. } | ToAgent::Acknowledge(_) => true,
        ToAgent::Order(order) => matches!(order.task, Task::ReadLog { .. }),
    }
}
