//! What the engine has yet to do: records to write, messages to send once they are written, output for users who asked.

use rota_core::time::Time;
use rota_transport::message::{LogChunk, OrderId, ToAgent};
use rota_transport::session::SeenReports;
use rota_transport::value::{Name, Text};

use crate::record::Record;
use crate::store::Write;
use crate::store::history::EndedJob;

/// A piece of a job's output, or the agent's reason why there is none.
pub(crate) type LogAnswer = Result<LogChunk, Text>;

/// Filled by the state, emptied by the engine.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    writes: Vec<Write>,
    sends: Vec<(Name, ToAgent)>,
    logs: Vec<(Name, OrderId, LogAnswer)>,
}

impl Outbox {
    pub(super) fn record(&mut self, time: Time, record: Record) {
        self.writes.push(Write::Record(time, record));
    }

    /// An agent's reports are in the journal up to this one, once this is written.
    pub(super) fn seen(&mut self, name: &Name, seen: SeenReports) {
        self.writes.push(Write::Seen(name.clone(), seen));
    }

    /// A job has ended.
    pub(super) fn ended(&mut self, job: EndedJob) {
        self.writes.push(Write::Ended(Box::new(job)));
    }

    pub(super) fn send(&mut self, name: &Name, message: ToAgent) {
        self.sends.push((name.clone(), message));
    }

    /// An answer to an order for output.
    pub(super) fn log(&mut self, name: &Name, order: OrderId, answer: LogAnswer) {
        self.logs.push((name.clone(), order, answer));
    }

    /// What the journal's upkeep wants written.
    pub(crate) fn keep(&mut self, writes: Vec<Write>) {
        self.writes.extend(writes);
    }

    pub(crate) fn writes(&self) -> &[Write] {
        &self.writes
    }

    pub(crate) fn take_writes(&mut self) -> Vec<Write> {
        std::mem::take(&mut self.writes)
    }

    pub(crate) fn take_sends(&mut self) -> Vec<(Name, ToAgent)> {
        std::mem::take(&mut self.sends)
    }

    pub(crate) fn take_logs(&mut self) -> Vec<(Name, OrderId, LogAnswer)> {
        std::mem::take(&mut self.logs)
    }
}
