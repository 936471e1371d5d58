//! Answers to users: those that leave with the next batch, and users who wait for a job's output.

use std::collections::BTreeMap;

use rota_transport::message::{OrderId, ToUser};
use rota_transport::value::{LongText, Name};
use tokio::sync::mpsc;

use super::streams::Stream;

/// Where a user's answers go.
pub(crate) type Reply = mpsc::Sender<ToUser>;

/// Answers that have not been sent.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    ready: Vec<(Reply, Vec<ToUser>)>,
    /// Long answers to be started.
    streams: Vec<(Reply, Stream)>,
    /// Users who wait for output, by the order that fetches it.
    readers: BTreeMap<(Name, OrderId), Reply>,
}

impl Replies {
    pub(crate) fn push(&mut self, reply: Reply, answers: Vec<ToUser>) {
        self.ready.push((reply, answers));
    }

    /// A long answer, which begins when everything before it is on the disk.
    pub(super) fn stream(&mut self, reply: Reply, stream: Stream) {
        self.streams.push((reply, stream));
    }

    /// Long answers that may begin.
    pub(super) fn take_streams(&mut self) -> Vec<(Reply, Stream)> {
        std::mem::take(&mut self.streams)
    }

    /// Registers a user who waits for the output that an order fetches.
    pub(crate) fn wait_for(&mut self, order: (Name, OrderId), reply: Reply) {
        self.readers.insert(order, reply);
    }

    /// An order for output was answered.
    pub(crate) fn fetched(&mut self, order: (Name, OrderId), answers: Vec<ToUser>) {
        if let Some(reply) = self.readers.remove(&order) {
            self.push(reply, answers);
        }
    }

    /// Sends everything.
    pub(crate) fn send_all(&mut self) {
        send(std::mem::take(&mut self.ready));
    }

    /// Sends refusals alone: they do not depend on anything that has to be written first.
    pub(crate) fn send_refusals(&mut self) {
        let is_refusal = |answers: &[ToUser]| matches!(answers, [ToUser::Failed(_)]);
        let (out, kept) = std::mem::take(&mut self.ready).into_iter().partition(|(_, a)| is_refusal(a));
        self.ready = kept;
        send(out);
    }
}

fn send(replies: Vec<(Reply, Vec<ToUser>)>) {
    for (reply, answers) in replies {
        for answer in answers {
            // The user may be gone.
            let _ = reply.try_send(answer);
        }
    }
}

/// A refusal with its reason.
pub(crate) fn failed(why: &str) -> ToUser {
    ToUser::Failed(LongText::cut(why))
}
