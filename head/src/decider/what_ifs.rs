//! What other policies would do: each question in a child of its own, a few at a time, behind everything else on the machine, and
//! in turn for each person. Rounds have their own child, so no question delays one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rota_core::round::{self, Decision};
use rota_core::snapshot::Snapshot;
use rota_transport::value::Name;

use super::loaded::{DecideError, PolicyUseError};
use super::process::{Asked, Child, ChildSettings};
use super::trials::Wanted;
use super::{Answer, Tell};

/// Children at a time.
const MOST_AT_ONCE: usize = 2;
/// Questions of one person that wait.
const MOST_WAITING: usize = 8;

/// A question.
pub(super) struct WhatIf {
    pub(super) ticket: u64,
    pub(super) user: Name,
    pub(super) wanted: Wanted,
    pub(super) snapshot: Snapshot,
}

/// The questions that wait and those that are looked into.
#[derive(Clone)]
pub(super) struct WhatIfs {
    settings: ChildSettings,
    tell: Tell,
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    waiting: BTreeMap<Name, VecDeque<WhatIf>>,
    /// People with a question that is looked into.
    busy: Vec<Name>,
}

impl Queue {
    /// The next question: of people with none under way, the one asked first.
    fn next(&mut self) -> Option<WhatIf> {
        if self.busy.len() >= MOST_AT_ONCE {
            return None;
        }
        let free = self.waiting.iter().filter(|(name, _)| !self.busy.contains(name));
        let (_, name) = free.filter_map(|(name, queue)| Some((queue.front()?.ticket, name.clone()))).min()?;
        let queue = self.waiting.get_mut(&name)?;
        let question = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting.remove(&name);
        }
        self.busy.push(name);
        Some(question)
    }
}

impl WhatIfs {
    pub(super) fn new(settings: ChildSettings, tell: Tell) -> Self {
        WhatIfs { settings, tell, queue: Arc::default() }
    }

    /// Takes a question; it is answered later.
    pub(super) fn ask(&self, question: WhatIf) {
        let ticket = question.ticket;
        let mut queue = self.queue();
        let mine = queue.waiting.entry(question.user.clone()).or_default();
        if mine.len() >= MOST_WAITING {
            drop(queue);
            return self.refuse(ticket);
        }
        mine.push_back(question);
        drop(queue);
        self.go_on();
    }

    /// In a thread of its own, because whoever asks may be the one who takes answers.
    fn refuse(&self, ticket: u64) {
        let tell = Arc::clone(&self.tell);
        let result = Err(PolicyUseError::TooManyQuestions(MOST_WAITING));
        // Without a thread there is no answer; the person's own time limit then ends the wait.
        let _ = thread::Builder::new().spawn(move || tell(Answer::WhatIf { ticket, result }));
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread for each question that may begin.
    fn go_on(&self) {
        loop {
            let Some(question) = self.queue().next() else { return };
            let (this, name, ticket) = (self.clone(), question.user.clone(), question.ticket);
            let thread = thread::Builder::new().name("what-if".into());
            let spawned = thread.spawn({
                let (this, name) = (this.clone(), name.clone());
                move || {
                    let result = this.decide(&question);
                    (this.tell)(Answer::WhatIf { ticket, result });
                    this.queue().busy.retain(|busy| *busy != name);
                    this.go_on();
                }
            });
            if let Err(error) = spawned {
                tracing::error!("a thread cannot be started: {error}");
                this.queue().busy.retain(|busy| *busy != name);
                this.refuse(ticket);
            }
        }
    }

    fn decide(&self, question: &WhatIf) -> Result<Decision, PolicyUseError> {
        let Wanted { policy, set, scripts } = &question.wanted;
        let limit = self.settings.limit;
        let failed = |error| PolicyUseError::Decide(DecideError::Child(error));
        let texts = scripts.texts(policy)?;
        let mut child = Child::start(&self.settings, true).map_err(failed)?;
        child.load(policy, set, &texts.sources, limit).map_err(failed)?.map_err(PolicyUseError::Script)?;
        let mut asked = Asked::new(&mut child, limit);
        let decided = round::decide(&question.snapshot, &mut asked);
        match asked.failure {
            Some(failure) => Err(failed(failure)),
            None => Ok(decided.map_err(DecideError::Round)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(ticket: u64, user: &str) -> WhatIf {
        let wanted = Wanted { policy: "fifo".into(), set: Vec::new(), scripts: Default::default() };
        let size = rota_scripts::sample::Size { n_nodes: 1, n_old: 1, n_new: 1 };
        let user = Name::new(user).expect("a name");
        WhatIf { ticket, user, wanted, snapshot: rota_scripts::sample::snapshot(size) }
    }

    #[test]
    fn one_person_with_many_questions_does_not_keep_another_waiting() {
        let mut queue = Queue::default();
        for (ticket, user) in [(1, "ada"), (2, "ada"), (3, "ada"), (4, "bob"), (5, "cyd")] {
            let name = Name::new(user).expect("a name");
            queue.waiting.entry(name).or_default().push_back(question(ticket, user));
        }
        let tickets: Vec<u64> = std::iter::from_fn(|| queue.next()).map(|found| found.ticket).collect();
        assert_eq!(tickets, [1, 4], "two at a time, and one of each person");
        queue.busy.retain(|busy| busy.as_str() != "ada");
        assert_eq!(queue.next().map(|found| found.ticket), Some(2));
        queue.busy.clear();
        assert_eq!(queue.next().map(|found| found.ticket), Some(3));
        assert_eq!(queue.next().map(|found| found.ticket), Some(5));
    }
}
