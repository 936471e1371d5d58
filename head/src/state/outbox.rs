//! What the engine has yet to do: records to write, messages to send once they are written, output for users who asked.

use rota_core::time::Time;
use rota_transport::message::{InstanceId, Lineage, LogChunk, OrderId, ToAgent};
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
    pub(crate) fn record(&mut self, time: Time, record: Record) {
        self.writes.push(Write::Record(time, record));
    }

    /// Takes back the last records, which are not to be written.
    pub(crate) fn drop_last(&mut self, n_records: usize) {
        self.writes.truncate(self.writes.len().saturating_sub(n_records));
    }

    /// An agent's reports are in the journal up to this one, once this is written.
    pub(super) fn seen(&mut self, name: &Name, seen: SeenReports) {
        self.writes.push(Write::Seen(name.clone(), seen));
    }

    /// An agent is served from this run directory, once this is written.
    pub(super) fn instance(&mut self, name: &Name, instance: InstanceId) {
        self.writes.push(Write::Instance(name.clone(), instance));
    }

    /// This state takes the place of another one, once this is written.
    pub(super) fn replaced(&mut self, lineage: Lineage) {
        self.writes.push(Write::Replaced(lineage));
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

    /// Leaves out what the journal's upkeep wants written; whether there was something.
    pub(crate) fn drop_upkeep(&mut self) -> bool {
        let n_before = self.writes.len();
        let is_upkeep =
            |write: &Write| matches!(write, Write::Image(_) | Write::DropImage(_) | Write::Prune(_));
        self.writes.retain(|write| !is_upkeep(write));
        self.writes.len() < n_before
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
