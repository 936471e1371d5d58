//! What a child does that decides for the head: it compiles a policy, keeps the last snapshot and the policy's memory, and
//! answers with plans. It holds nothing that the head could not send again.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rota_core::difference::{Difference, DifferenceError, Received};
use rota_core::plan::Plan;
use rota_core::policy::{Policy as _, PolicyError};
use rota_core::round::RoundError;
use rota_scripts::{ScriptPolicy, Source};
use rustix::process::{Resource, Rlimit, nice, setrlimit};

use super::loaded::{PolicyUseError, compile};
use super::wire::{Effort, FromChild, PolicyFailure, SourceText, ToChild, read, write};
use crate::forecast::{ForecastSettings, Seen, look_ahead};

/// Scripts and solvers recurse deeply.
const STACK_BYTES: usize = 64 << 20;
/// How much sooner than others a child is killed when memory runs out: 1000 is the most.
const KILLED_FIRST: &str = "500";
/// How much a child in the background yields.
const BACKGROUND_NICE: i32 = 10;

/// Decides for the head that started this process, until the head closes its end or kills it. The process may use no more
/// memory than this, and writes no core dump; in the background it yields to everything else.
pub fn serve_decisions(memory_bytes: u64, is_background: bool) -> io::Result<()> {
    if is_background {
        nice(BACKGROUND_NICE)?;
    }
    for (resource, most) in [(Resource::As, memory_bytes), (Resource::Core, 0)] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    // When the machine runs out of memory, this process goes before the head; where the system has no such rule, nothing is lost.
    let _ = std::fs::write("/proc/self/oom_score_adj", KILLED_FIRST);
    // The head is gone or wants nothing more. A normal end would wait for a solver that cannot be interrupted.
    serve(io::stdin(), io::stdout(), || std::process::abort())
}

/// Answers requests until there are no more, then calls `at_end`, even in the middle of a decision.
pub(super) fn serve(
    mut input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    at_end: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let (requests, received) = mpsc::channel();
    let reader = thread::Builder::new().name("requests".into()).spawn(move || {
        while let Ok(Some(request)) = read::<ToChild>(&mut input) {
            if requests.send(request).is_err() {
                break;
            }
        }
        at_end();
    })?;
    let output = Arc::new(Mutex::new(output));
    let policy = thread::Builder::new().name("policy".into()).stack_size(STACK_BYTES).spawn(move || {
        let solves = Arc::default();
        let mut serving = Serving { script: None, received: Received::default(), output, solves };
        while let Ok(request) = received.recv() {
            if serving.answer(request).is_err() {
                break;
            }
        }
    })?;
    let _ = policy.join();
    drop(reader);
    Ok(())
}

/// Why a child could not do what it was asked.
#[derive(Debug, thiserror::Error)]
enum TaskError {
    #[error("there is no policy")]
    NoPolicy,
    #[error("the policy panicked: {0}")]
    Panicked(String),
    #[error(transparent)]
    Use(#[from] PolicyUseError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Round(#[from] RoundError),
    #[error(transparent)]
    Difference(#[from] DifferenceError),
}

/// The same result, as the head is told it.
fn told<T>(result: Result<T, TaskError>) -> Result<T, PolicyFailure> {
    result.map_err(|error| PolicyFailure::new(error.to_string()))
}

struct Serving<W> {
    script: Option<ScriptPolicy>,
    received: Received,
    output: Arc<Mutex<W>>,
    solves: Arc<Mutex<Solves>>,
}

impl<W: Write + Send + 'static> Serving<W> {
    fn answer(&mut self, request: ToChild) -> io::Result<()> {
        let answer = match request {
            ToChild::Load { policy, set, sources, alarm } => {
                FromChild::Done(told(self.load(&policy, &set, sources, alarm)))
            }
            ToChild::Remember { memory } => FromChild::Done(told(self.remember(&memory))),
            ToChild::Decide { snapshot } => {
                let mut effort = Effort::default();
                let result = self.decide(*snapshot, &mut effort);
                FromChild::Decided(told(result), effort)
            }
            ToChild::LookAhead { snapshot, memory, settings, budget } => {
                FromChild::Ahead(told(self.look_ahead(*snapshot, &memory, &settings, budget)))
            }
        };
        say(&self.output, &answer)
    }

    fn load(
        &mut self,
        policy: &str,
        set: &[(String, String)],
        sources: Vec<SourceText>,
        alarm: Duration,
    ) -> Result<(), TaskError> {
        let sources: Vec<Source> = sources.into_iter().map(Source::from).collect();
        let mut script = safely(|| compile(policy, set, &sources, Some(alarm)))??;
        let output = Arc::clone(&self.output);
        let solves = Arc::clone(&self.solves);
        script.announce_solves(move |at| {
            solves.lock().unwrap_or_else(PoisonError::into_inner).note(at.is_empty());
            // If the head is gone, so is this process in a moment.
            let _ = say(&output, &FromChild::At(at.to_owned()));
        });
        self.script = Some(script);
        Ok(())
    }

    fn remember(&mut self, memory: &str) -> Result<(), TaskError> {
        let script = self.script.as_mut().ok_or(TaskError::NoPolicy)?;
        Ok(safely(|| script.restore_memory(memory))??)
    }

    fn decide(&mut self, difference: Difference, effort: &mut Effort) -> Result<(Plan, String), TaskError> {
        let snapshot = self.received.apply(difference)?;
        let script = self.script.as_mut().ok_or(TaskError::NoPolicy)?;
        let began = Instant::now();
        *self.solves.lock().unwrap_or_else(PoisonError::into_inner) = Solves::default();
        let plan = safely(|| script.decide(&snapshot));
        let solves = self.solves.lock().unwrap_or_else(PoisonError::into_inner);
        *effort = Effort {
            took: began.elapsed(),
            operations: script.operations(),
            n_solves: solves.n,
            solving: solves.took,
        };
        Ok((plan??, script.memory()))
    }

    /// Runs with the errors of several seeds, each from the same memory. One that would take too long ends early, and those after it
    /// look no further.
    fn look_ahead(
        &mut self,
        difference: Difference,
        memory: &str,
        settings: &ForecastSettings,
        budget: Duration,
    ) -> Result<Vec<Seen>, TaskError> {
        let snapshot = self.received.apply(difference)?;
        let script = self.script.as_mut().ok_or(TaskError::NoPolicy)?;
        let (began, n_seeds) = (Instant::now(), settings.n_seeds.max(1));
        let (mut rules, mut runs) = (settings.rules, Vec::new());
        for seed in 0..n_seeds {
            script.restore_memory(memory)?;
            let until = budget * (seed + 1) / n_seeds;
            let is_over = || began.elapsed() > until;
            let run =
                safely(|| look_ahead(&snapshot, script, &rules, settings.errors, u64::from(seed), is_over))??;
            if began.elapsed() > until {
                rules.horizon = rules.horizon.min(run.until - snapshot.now);
            }
            runs.push(run);
        }
        Ok(runs)
    }
}

/// How often solvers were called in a decision, and how long they took.
#[derive(Default)]
struct Solves {
    n: u64,
    took: Duration,
    since: Option<Instant>,
}

impl Solves {
    fn note(&mut self, is_answered: bool) {
        if is_answered {
            self.took += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        } else {
            self.n += 1;
            self.since = Some(Instant::now());
        }
    }
}

fn say<W: Write>(output: &Mutex<W>, message: &FromChild) -> io::Result<()> {
    write(&mut *output.lock().unwrap_or_else(PoisonError::into_inner), message)
}

/// A panic is a failure like any other; where it was is on standard error.
fn safely<T>(work: impl FnOnce() -> T) -> Result<T, TaskError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("without a message");
        TaskError::Panicked(text.to_owned())
    })
}
