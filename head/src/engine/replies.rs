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
    ready: Vec<Ready>,
    /// Long answers to be started, and for whom.
    streams: Vec<(Name, Reply, Stream)>,
    /// Users who wait for output, by the order that fetches it.
    readers: BTreeMap<(Name, OrderId), (Name, Reply)>,
}

/// An answer on its way.
#[derive(Debug)]
struct Ready {
    reply: Reply,
    answers: Vec<ToUser>,
    /// Whether it tells of something that has to be on the disk first.
    needs_disk: bool,
}

impl Replies {
    /// An answer that tells of something that has to be on the disk first.
    pub(crate) fn push(&mut self, reply: Reply, answers: Vec<ToUser>) {
        let needs_disk = !matches!(answers.as_slice(), [ToUser::Failed(_)]);
        self.ready.push(Ready { reply, answers, needs_disk });
    }

    /// An answer that holds whatever becomes of the disk.
    pub(crate) fn push_free(&mut self, reply: Reply, answers: Vec<ToUser>) {
        self.ready.push(Ready { reply, answers, needs_disk: false });
    }

    /// A long answer, which begins when everything before it is on the disk.
    pub(super) fn stream(&mut self, user: &Name, reply: Reply, stream: Stream) {
        self.streams.push((user.clone(), reply, stream));
    }

    /// Long answers that may begin.
    pub(super) fn take_streams(&mut self) -> Vec<(Name, Reply, Stream)> {
        std::mem::take(&mut self.streams)
    }

    /// How many orders for output a user waits for.
    pub(super) fn n_reading(&mut self, user: &Name) -> usize {
        // Who is gone waits for nothing, though the order may never be answered.
        self.readers.retain(|_, (_, reply)| !reply.is_closed());
        self.readers.values().filter(|(reader, _)| reader == user).count()
    }

    /// Registers a user who waits for the output that an order fetches.
    pub(crate) fn wait_for(&mut self, order: (Name, OrderId), user: &Name, reply: Reply) {
        self.readers.insert(order, (user.clone(), reply));
    }

    /// An order for output was answered.
    pub(crate) fn fetched(&mut self, order: (Name, OrderId), answers: Vec<ToUser>) {
        if let Some((_, reply)) = self.readers.remove(&order) {
            self.push_free(reply, answers);
        }
    }

    /// Sends everything.
    pub(crate) fn send_all(&mut self) {
        std::mem::take(&mut self.ready).into_iter().for_each(Ready::send);
    }

    /// Sends everything while the disk refuses: who waits for it is told so.
    pub(crate) fn send_without_disk(&mut self, why: &str) {
        for mut ready in std::mem::take(&mut self.ready) {
            if ready.needs_disk {
                let text = format!(
                    "the head cannot write this to its journal yet: {why}. It takes effect when it can; look before you repeat it"
                );
                ready.answers = vec![failed(&text)];
            }
            ready.send();
        }
    }
}

impl Ready {
    fn send(self) {
        for answer in self.answers {
            // The user may be gone.
            let _ = self.reply.try_send(answer);
        }
    }
}

/// A refusal with its reason.
pub(crate) fn failed(why: &str) -> ToUser {
    ToUser::Failed(LongText::cut(why))
}
