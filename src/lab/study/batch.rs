//! Runs under way: each is looked up, or run on the thread pool; reading a figure waits for that run alone.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rota_scripts::study::{self, Comparison, FigureError, Interval, RunRefused, Settings};

use super::{Cache, Execute, Figures, Key, Shard, Watch};
use crate::statistics;

/// A run that was asked for.
#[derive(Clone, Debug)]
pub struct Ran {
    /// As the script gave them.
    pub settings: Settings,
    /// What its result is kept under.
    pub key: Key,
    /// Its result.
    pub outcome: Outcome,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was run, here or before.
    Done(Arc<Figures>),
    /// It cannot be run.
    Failed(String),
    /// It belongs to another shard, and was not needed here.
    Elsewhere,
}

/// All runs of a study.
pub struct Batch<E: Execute> {
    execute: E,
    cache: Cache,
    shard: Option<Shard>,
    watch: Arc<dyn Watch>,
    state: Mutex<State<E>>,
}

struct State<E: Execute> {
    title: Option<String>,
    remarks: Vec<String>,
    runs: Vec<Arc<Slot<E::Plan>>>,
    by_key: HashMap<Key, usize>,
}

struct Slot<P> {
    settings: Settings,
    key: Key,
    plan: P,
    progress: Mutex<Progress>,
    changed: Condvar,
}

enum Progress {
    /// Not begun.
    Idle,
    Running,
    Over(Outcome),
}

impl<E: Execute> Batch<E> {
    /// A batch without runs.
    pub fn new(execute: E, cache: Cache, shard: Option<Shard>, watch: Arc<dyn Watch>) -> Self {
        let state = State { title: None, remarks: Vec::new(), runs: Vec::new(), by_key: HashMap::new() };
        Batch { execute, cache, shard, watch, state: Mutex::new(state) }
    }

    /// Waits for everything: title, remarks, runs.
    pub fn finish(&self) -> (Option<String>, Vec<String>, Vec<Ran>) {
        let (title, remarks, slots) = {
            let state = self.state();
            (state.title.clone(), state.remarks.clone(), state.runs.clone())
        };
        let ran = |slot: &Arc<Slot<E::Plan>>| Ran {
            settings: slot.settings.clone(),
            key: slot.key.clone(),
            outcome: slot.wait(),
        };
        (title, remarks, slots.iter().map(ran).collect())
    }

    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(self: &Arc<Self>, slot: Arc<Slot<E::Plan>>) {
        let batch = Arc::clone(self);
        rayon::spawn_fifo(move || batch.work(&slot));
    }

    /// Runs a slot on this thread, unless another thread does.
    fn work(&self, slot: &Slot<E::Plan>) {
        if !slot.begin() {
            return;
        }
        // A panic in one run must not end the others.
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.execute.run(&slot.plan)));
        let outcome = match ran {
            Ok(Ok(result)) => {
                let figures = Figures::of(&result);
                match self.cache.write(&slot.key, &figures) {
                    Ok(()) => Outcome::Done(Arc::new(figures)),
                    Err(error) => Outcome::Failed(error.to_string()),
                }
            }
            Ok(Err(error)) => Outcome::Failed(error.why),
            Err(_) => Outcome::Failed("a defect of the program: see the message above".to_owned()),
        };
        self.watch.done(matches!(outcome, Outcome::Failed(_)));
        slot.end(outcome);
    }

    /// The outcome of a run that the script reads: another shard's is run after all.
    fn needed(&self, run: usize) -> Outcome {
        let slot = Arc::clone(&self.state().runs[run]);
        match slot.wait() {
            Outcome::Elsewhere => {
                slot.reopen();
                self.watch.submitted(false);
                self.work(&slot);
                slot.wait()
            }
            outcome => outcome,
        }
    }
}

impl<P> Slot<P> {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> bool {
        let mut progress = self.progress();
        let is_idle = matches!(*progress, Progress::Idle);
        if is_idle {
            *progress = Progress::Running;
        }
        is_idle
    }

    fn end(&self, outcome: Outcome) {
        *self.progress() = Progress::Over(outcome);
        self.changed.notify_all();
    }

    fn reopen(&self) {
        *self.progress() = Progress::Idle;
    }

    fn wait(&self) -> Outcome {
        let mut progress = self.progress();
        loop {
            if let Progress::Over(outcome) = &*progress {
                return outcome.clone();
            }
            progress = self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What scripts see. It is implemented for the counted reference, because runs outlive the call that asks for them.
pub(super) struct Shared<E: Execute>(pub(super) Arc<Batch<E>>);

impl<E: Execute> study::Batch for Shared<E> {
    fn submit(&self, settings: Settings) -> Result<usize, RunRefused> {
        let batch = &self.0;
        let (plan, key) = batch.execute.plan(&settings).map_err(|error| RunRefused(error.why))?;
        if let Some(known) = batch.state().by_key.get(&key) {
            return Ok(*known);
        }
        let kept = batch.cache.read(&key).map_err(|error| RunRefused(error.to_string()))?;
        let is_ours = batch.shard.is_none_or(|shard| shard.holds(&key));
        let progress = match kept {
            Some(figures) => Progress::Over(Outcome::Done(Arc::new(figures))),
            None if is_ours => Progress::Idle,
            None => Progress::Over(Outcome::Elsewhere),
        };
        let is_idle = matches!(progress, Progress::Idle);
        let is_done = matches!(progress, Progress::Over(Outcome::Done(_)));
        let slot = Slot {
            settings,
            key: key.clone(),
            plan,
            progress: Mutex::new(progress),
            changed: Condvar::new(),
        };
        let slot = Arc::new(slot);
        let run = {
            let mut state = batch.state();
            state.runs.push(Arc::clone(&slot));
            let run = state.runs.len() - 1;
            state.by_key.insert(key, run);
            run
        };
        if is_idle || is_done {
            batch.watch.submitted(is_done);
        }
        if is_idle {
            batch.start(slot);
        }
        Ok(run)
    }

    fn figure(&self, run: usize, name: &str) -> Result<Option<f64>, FigureError> {
        match self.0.needed(run) {
            Outcome::Done(figures) => match figures.numbers.get(name) {
                Some(number) => Ok(*number),
                None => {
                    let known = figures.numbers.keys().cloned().collect();
                    Err(FigureError::Unknown { name: name.to_owned(), known })
                }
            },
            Outcome::Failed(why) => Err(FigureError::Failed { number: run + 1, why }),
            Outcome::Elsewhere => Err(FigureError::Elsewhere { number: run + 1 }),
        }
    }

    fn failure(&self, run: usize) -> Option<String> {
        match self.0.needed(run) {
            Outcome::Failed(why) => Some(why),
            Outcome::Done(_) | Outcome::Elsewhere => None,
        }
    }

    fn interval(&self, values: &[f64]) -> Option<Interval> {
        statistics::interval(values)
    }

    fn compare(&self, baseline: &[f64], other: &[f64]) -> Option<Comparison> {
        statistics::compare(baseline, other)
    }

    fn title(&self, text: &str) {
        self.0.state().title = Some(text.to_owned());
    }

    fn say(&self, line: &str) {
        self.0.state().remarks.push(line.to_owned());
        self.0.watch.say(line);
    }
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
