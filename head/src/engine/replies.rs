//! Answers to users: those that leave with the next batch, and users who wait for a job's output.
//!
//! What people are told is a [`Said`]: a message of the wire, or something of which the wire has only the words.

use std::collections::BTreeMap;

use rota_transport::message::{OrderId, ToUser};
use rota_transport::value::{LongText, Name};
use tokio::sync::mpsc;

use super::looks::Deliver;
use super::refusal::{Refusal, RefusalKind};
use super::streams::Stream;
use super::views::JobWould;
use crate::web::shapes::ForecastShape;

/// Where a user's answers go.
pub(crate) type Reply = mpsc::Sender<Said>;

/// What a person is told.
#[derive(Debug)]
pub(crate) enum Said {
    /// As it goes over the wire.
    Message(ToUser),
    /// A refusal with its reason.
    Refused { kind: RefusalKind, why: LongText },
    /// What another policy would change.
    Would(Vec<JobWould>),
    /// What may become of the jobs.
    Forecast(Box<ForecastShape>),
}

impl From<ToUser> for Said {
    fn from(message: ToUser) -> Self {
        Said::Message(message)
    }
}

impl Said {
    /// The message of the wire.
    pub(crate) fn into_message(self) -> ToUser {
        match self {
            Said::Message(message) => message,
            Said::Refused { why, .. } => ToUser::Failed(why),
            Said::Would(changes) => ToUser::Text(LongText::cut(&JobWould::text(&changes))),
            // Only programs of the API ask for it; over the wire, starts are sent by themselves.
            Said::Forecast(_) => ToUser::End,
        }
    }
}

/// Answers that have not been sent.
#[derive(Default)]
pub(crate) struct Replies {
    ready: Vec<Ready>,
    /// What the page was shown.
    looks: Vec<Deliver>,
    /// Long answers to be started, and for whom.
    streams: Vec<(Name, Reply, Stream)>,
    /// Users who wait for output, by the order that fetches it.
    readers: BTreeMap<(Name, OrderId), (Name, Reply)>,
}

/// An answer on its way.
#[derive(Debug)]
struct Ready {
    reply: Reply,
    answers: Vec<Said>,
    /// Whether it tells of something that has to be on the disk first.
    needs_disk: bool,
}

impl Replies {
    /// An answer that tells of something that has to be on the disk first.
    pub(crate) fn push(&mut self, reply: Reply, answers: Vec<impl Into<Said>>) {
        let answers: Vec<Said> = answers.into_iter().map(Into::into).collect();
        let needs_disk = !matches!(answers.as_slice(), [Said::Refused { .. }]);
        self.ready.push(Ready { reply, answers, needs_disk });
    }

    /// An answer that holds whatever becomes of the disk.
    pub(crate) fn push_free(&mut self, reply: Reply, answers: Vec<impl Into<Said>>) {
        let answers = answers.into_iter().map(Into::into).collect();
        self.ready.push(Ready { reply, answers, needs_disk: false });
    }

    /// A request that is not carried out.
    pub(crate) fn refuse(&mut self, reply: Reply, refusal: &Refusal) {
        self.push(reply, vec![refused(refusal)]);
    }

    /// Something to be shown when all it rests on is on the disk, or cannot be written.
    pub(super) fn show(&mut self, look: Deliver) {
        self.looks.push(look);
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
    pub(crate) fn fetched(&mut self, order: (Name, OrderId), answers: Vec<impl Into<Said>>) {
        if let Some((_, reply)) = self.readers.remove(&order) {
            self.push_free(reply, answers);
        }
    }

    /// Sends everything.
    pub(crate) fn send_all(&mut self) {
        std::mem::take(&mut self.ready).into_iter().for_each(Ready::send);
        std::mem::take(&mut self.looks).into_iter().for_each(|deliver| deliver());
    }

    /// Sends everything while the disk refuses: who waits for it is told so.
    pub(crate) fn send_without_disk(&mut self, why: &str) {
        for mut ready in std::mem::take(&mut self.ready) {
            if ready.needs_disk {
                let text = format!(
                    "the head cannot write this to its journal yet: {why}. It takes effect when it can; look before you repeat it"
                );
                ready.answers =
                    vec![Said::Refused { kind: RefusalKind::Unavailable, why: LongText::cut(&text) }];
            }
            ready.send();
        }
        std::mem::take(&mut self.looks).into_iter().for_each(|deliver| deliver());
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

/// A request that came to nothing, and why.
pub(crate) fn failed(why: &str) -> Said {
    Said::Refused { kind: RefusalKind::Refused, why: LongText::cut(why) }
}

/// The same for a refusal.
pub(crate) fn refused(refusal: &Refusal) -> Said {
    Said::Refused { kind: refusal.kind(), why: LongText::cut(&refusal.to_string()) }
}
