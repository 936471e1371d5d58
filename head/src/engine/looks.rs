//! Looks: what programs and the page are shown of the head's state, as values and not as messages.
//!
//! A look is a function of the engine that a person sends, with the kind of request that it stands for. Whether they may is
//! decided by the same rule as for that request, before anything else; the answer leaves when all it rests on is on the disk.

use rota_transport::access::RequestKind;
use tokio::sync::oneshot;

use super::refusal::Refusal;
use super::{Engine, access};
use crate::roles::Person;
use crate::state::Moment;

/// Hands an answer over.
pub(crate) type Deliver = Box<dyn FnOnce() + Send>;

type Show = Box<dyn FnOnce(&mut Engine, Moment, &Person) -> Deliver + Send>;

/// Something that a person wants to see.
pub(crate) struct Look(Show);

impl std::fmt::Debug for Look {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Look")
    }
}

impl Look {
    /// A look that stands for a kind of request, and where its answer arrives.
    pub(crate) fn new<T: Send + 'static>(
        kind: RequestKind,
        look: impl FnOnce(&mut Engine, Moment, &Person) -> Result<T, Refusal> + Send + 'static,
    ) -> (Self, oneshot::Receiver<Result<T, Refusal>>) {
        Look::checked(move |person| access::check(person, kind), look)
    }

    /// A look at what concerns nobody: how the head itself fares, and who asks.
    pub(crate) fn at_the_head<T: Send + 'static>(
        look: impl FnOnce(&mut Engine, Moment, &Person) -> T + Send + 'static,
    ) -> (Self, oneshot::Receiver<Result<T, Refusal>>) {
        Look::checked(|_| Ok(()), |engine, moment, person| Ok(look(engine, moment, person)))
    }

    fn checked<T: Send + 'static>(
        check: impl FnOnce(&Person) -> Result<(), Refusal> + Send + 'static,
        look: impl FnOnce(&mut Engine, Moment, &Person) -> Result<T, Refusal> + Send + 'static,
    ) -> (Self, oneshot::Receiver<Result<T, Refusal>>) {
        let (answer, answered) = oneshot::channel();
        let show = move |engine: &mut Engine, moment: Moment, person: &Person| {
            let seen = check(person).and_then(|()| look(engine, moment, person));
            let deliver: Deliver = Box::new(move || {
                // Whoever asked may be gone.
                let _ = answer.send(seen);
            });
            deliver
        };
        (Look(Box::new(show)), answered)
    }
}

/// Shows a person what they want to see, with the next batch.
pub(super) fn show(engine: &mut Engine, moment: Moment, person: &Person, look: Look) {
    let deliver = look.0(engine, moment, person);
    engine.replies.show(deliver);
}
