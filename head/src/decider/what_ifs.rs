//! What other policies would do, now or in the time ahead: each question in a child of its own, a few at a time, behind everything else on the machine, and
//! in turn for each person. Rounds have their own child, so no question delays one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rota_core::round::{self, Decision};
use rota_core::snapshot::Snapshot;
use rota_transport::value::Name;

use super::loaded::{DecideError, PolicyUseError};
use super::process::{Asked, Child, ChildSettings};
use super::trials::Wanted;
use super::{Answer, ForecastFrom, Tell};
use crate::forecast::Forecast;

/// Children at a time.
const MOST_AT_ONCE: usize = 2;
/// Questions of one person that wait.
const MOST_WAITING: usize = 8;
/// How long a forecast may take before its child is killed; runs are cut short before that.
const FORECAST_LIMIT: Duration = Duration::from_secs(20);

/// A question.
pub(super) struct WhatIf {
    pub(super) ticket: u64,
    pub(super) user: Name,
    pub(super) wanted: Wanted,
    pub(super) question: Question,
}

/// What is asked of a policy.
pub(super) enum Question {
    /// What it would decide.
    Decide(Snapshot),
    /// What would become of the jobs.
    Foresee(Box<ForecastFrom>),
}

impl Question {
    /// The answer when there is none.
    fn failed(&self, ticket: u64, error: PolicyUseError) -> Answer {
        match self {
            Question::Decide(_) => Answer::WhatIf { ticket, result: Err(error) },
            Question::Foresee(_) => Answer::Foreseen { ticket, result: Err(error), took: Duration::ZERO },
        }
    }
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
        let mut queue = self.queue();
        let mine = queue.waiting.entry(question.user.clone()).or_default();
        if mine.len() >= MOST_WAITING {
            drop(queue);
            let refused =
                question.question.failed(question.ticket, PolicyUseError::TooManyQuestions(MOST_WAITING));
            return self.refuse(refused);
        }
        mine.push_back(question);
        drop(queue);
        self.go_on();
    }

    /// In a thread of its own, because whoever asks may be the one who takes answers.
    fn refuse(&self, refused: Answer) {
        let tell = Arc::clone(&self.tell);
        // Without a thread there is no answer; the person's own time limit then ends the wait.
        let _ = thread::Builder::new().spawn(move || tell(refused));
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread for each question that may begin.
    fn go_on(&self) {
        loop {
            let Some(question) = self.queue().next() else { return };
            let (this, name) = (self.clone(), question.user.clone());
            let refused =
                question.question.failed(question.ticket, PolicyUseError::TooManyQuestions(MOST_WAITING));
            let thread = thread::Builder::new().name("what-if".into());
            let spawned = thread.spawn({
                let (this, name) = (this.clone(), name.clone());
                move || {
                    let answer = this.answer(question);
                    (this.tell)(answer);
                    this.queue().busy.retain(|busy| *busy != name);
                    this.go_on();
                }
            });
            if let Err(error) = spawned {
                tracing::error!("a thread cannot be started: {error}");
                this.queue().busy.retain(|busy| *busy != name);
                this.refuse(refused);
            }
        }
    }

    fn answer(&self, what_if: WhatIf) -> Answer {
        let WhatIf { ticket, wanted, question, .. } = what_if;
        match question {
            Question::Decide(snapshot) => Answer::WhatIf { ticket, result: self.decide(&wanted, &snapshot) },
            Question::Foresee(from) => {
                let began = Instant::now();
                let result = self.foresee(&wanted, *from).map(Box::new);
                Answer::Foreseen { ticket, result, took: began.elapsed() }
            }
        }
    }

    /// A child with a policy.
    fn child(&self, wanted: &Wanted) -> Result<Child, PolicyUseError> {
        let Wanted { policy, set, scripts } = wanted;
        let limit = self.settings.limit;
        let failed = |error| PolicyUseError::Decide(DecideError::Child(error));
        let texts = scripts.texts(policy)?;
        let mut child = Child::start(&self.settings, true).map_err(failed)?;
        child.load(policy, set, &texts.sources, limit).map_err(failed)?.map_err(PolicyUseError::Script)?;
        Ok(child)
    }

    fn foresee(&self, wanted: &Wanted, from: ForecastFrom) -> Result<Forecast, PolicyUseError> {
        let ForecastFrom { snapshot, memory, settings } = from;
        let mut child = self.child(wanted)?;
        let seen = child.look_ahead(&snapshot, memory, settings.clone(), FORECAST_LIMIT);
        let seen = seen.map_err(|error| PolicyUseError::Decide(DecideError::Child(error)))?;
        Ok(Forecast::of(snapshot.now, &settings, &seen.map_err(PolicyUseError::Script)?))
    }

    fn decide(&self, wanted: &Wanted, snapshot: &Snapshot) -> Result<Decision, PolicyUseError> {
        let limit = self.settings.limit;
        let failed = |error| PolicyUseError::Decide(DecideError::Child(error));
        let mut child = self.child(wanted)?;
        let mut asked = Asked::new(&mut child, limit);
        let decided = round::decide(snapshot, &mut asked);
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
        let question = Question::Decide(rota_scripts::sample::snapshot(size));
        WhatIf { ticket, user, wanted, question }
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
