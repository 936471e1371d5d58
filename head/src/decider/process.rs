//! The head's end of a child that decides: it is started, asked with a limit, and killed when it has not answered by then.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rota_core::difference::Sent;
use rota_core::plan::Plan;
use rota_core::policy::{Policy, PolicyError};
use rota_core::snapshot::Snapshot;
use rota_scripts::Source;

use super::wire::{Effort, FromChild, PolicyFailure, SourceText, ToChild, frame, read};
use crate::forecast::{ForecastSettings, Seen};

/// A script is stopped by its own alarm after this part of the limit, so that there is time to find the line it was at.
const ALARM_PER_MILLE: u32 = 700;
/// Signals by which a process does not end itself: somebody else, or the system for lack of memory, killed it.
const SIGKILL: i32 = 9;

/// How children are run.
#[derive(Clone, Debug)]
pub(crate) struct ChildSettings {
    pub(crate) program: Program,
    /// How long a decision may take.
    pub(crate) limit: Duration,
    /// Address space of a child.
    pub(crate) memory_bytes: u64,
}

/// What a child is.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// A process of the program that runs, which must answer `decide-child`.
    ThisProgram,
    /// A thread, which cannot be killed: for tests of the engine.
    #[cfg(test)]
    Thread,
}

/// A child that did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChildError {
    /// It could not be started.
    #[error("the process in which policies decide cannot be started: {0}")]
    Start(String),
    /// It took too long and was killed.
    #[error("the policy had not decided after {limit_s} s and was stopped{at}")]
    TooSlow {
        /// How long it may take, in seconds.
        limit_s: String,
        /// Where it was, if that is known.
        at: String,
    },
    /// It ended.
    #[error("the process in which the policy decides ended: {how}{at}")]
    Ended {
        /// By which signal or with which code, and what it wrote last.
        how: String,
        /// Where it was, if that is known.
        at: String,
        /// Whether something else killed it.
        is_killed: bool,
    },
    /// It said what it should not.
    #[error("the process in which the policy decides gave an answer to another question")]
    Answer,
}

/// A child, killed when this is dropped.
pub(super) struct Child {
    process: Option<std::process::Child>,
    /// Frames for the thread that writes to it: a child that does not read must not hold up whoever asks.
    requests: mpsc::Sender<Vec<u8>>,
    answers: mpsc::Receiver<FromChild>,
    last_words: Arc<Mutex<String>>,
    sent: Sent,
    /// What the last decision took.
    pub(super) effort: Effort,
}

impl Child {
    /// Starts one. What is asked by people runs behind everything else on the machine.
    pub(super) fn start(settings: &ChildSettings, is_background: bool) -> Result<Self, ChildError> {
        let started = match settings.program {
            Program::ThisProgram => Self::start_process(settings, is_background),
            #[cfg(test)]
            Program::Thread => Self::start_thread(),
        };
        started.map_err(|error| ChildError::Start(error.to_string()))
    }

    fn start_process(settings: &ChildSettings, is_background: bool) -> io::Result<Self> {
        // This name reaches the program that runs even if its file was replaced.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("rota").arg("decide-child").arg(settings.memory_bytes.to_string());
        if is_background {
            command.arg("--background");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Not the terminal's: a Ctrl-C is for the head.
        let mut process = command.process_group(0).spawn()?;
        let missing = || io::Error::other("a pipe is missing");
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let errors = process.stderr.take().ok_or_else(missing)?;
        let mut child = Self::speak(input.ok_or_else(missing)?, output.ok_or_else(missing)?)?;
        let last_words = Arc::clone(&child.last_words);
        thread::Builder::new().name("child-errors".into()).spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok).filter(|line| !line.is_empty()) {
                tracing::warn!("from the process in which policies decide: {line}");
                *last_words.lock().unwrap_or_else(PoisonError::into_inner) = line;
            }
        })?;
        child.process = Some(process);
        Ok(child)
    }

    #[cfg(test)]
    fn start_thread() -> io::Result<Self> {
        let ((their_input, input), (output, their_output)) = (io::pipe()?, io::pipe()?);
        thread::spawn(move || super::child::serve(their_input, their_output, || ()));
        Self::speak(input, output)
    }

    fn speak(mut input: impl Write + Send + 'static, output: impl Read + Send + 'static) -> io::Result<Self> {
        let (requests, to_write) = mpsc::channel::<Vec<u8>>();
        thread::Builder::new().name("child-input".into()).spawn(move || {
            while let Ok(bytes) = to_write.recv() {
                if input.write_all(&bytes).and_then(|()| input.flush()).is_err() {
                    break;
                }
            }
        })?;
        let (answer, answers) = mpsc::channel();
        thread::Builder::new().name("child-output".into()).spawn(move || {
            let mut output = BufReader::new(output);
            while let Ok(Some(message)) = read(&mut output) {
                if answer.send(message).is_err() {
                    break;
                }
            }
        })?;
        let (last_words, sent) = (Arc::default(), Sent::default());
        Ok(Child { process: None, requests, answers, last_words, sent, effort: Effort::default() })
    }

    /// Has it compile a policy.
    pub(super) fn load(
        &mut self,
        policy: &str,
        set: &[(String, String)],
        sources: &[Source],
        limit: Duration,
    ) -> Result<Result<(), PolicyFailure>, ChildError> {
        let (policy, set) = (policy.to_owned(), set.to_vec());
        let sources = sources.iter().map(SourceText::from).collect();
        let alarm = limit * ALARM_PER_MILLE / 1000;
        self.do_it(&ToChild::Load { policy, set, sources, alarm }, limit)
    }

    /// Gives it the policy's memory.
    pub(super) fn remember(
        &mut self,
        memory: &str,
        limit: Duration,
    ) -> Result<Result<(), PolicyFailure>, ChildError> {
        self.do_it(&ToChild::Remember { memory: memory.to_owned() }, limit)
    }

    fn do_it(&mut self, request: &ToChild, limit: Duration) -> Result<Result<(), PolicyFailure>, ChildError> {
        match self.ask(request, limit)? {
            FromChild::Done(result) => Ok(result),
            _ => Err(ChildError::Answer),
        }
    }

    fn decide(
        &mut self,
        snapshot: &Snapshot,
        limit: Duration,
    ) -> Result<Result<(Plan, String), PolicyFailure>, ChildError> {
        let snapshot = Box::new(self.sent.difference(snapshot));
        match self.ask(&ToChild::Decide { snapshot }, limit)? {
            FromChild::Decided(result, effort) => {
                self.effort = effort;
                Ok(result)
            }
            _ => Err(ChildError::Answer),
        }
    }

    /// Has it look ahead from a snapshot.
    pub(super) fn look_ahead(
        &mut self,
        snapshot: &Snapshot,
        memory: String,
        settings: ForecastSettings,
        limit: Duration,
    ) -> Result<Result<Vec<Seen>, PolicyFailure>, ChildError> {
        let snapshot = Box::new(self.sent.difference(snapshot));
        // A run that is cut short is better than none.
        let budget = limit / 2;
        match self.ask(&ToChild::LookAhead { snapshot, memory, settings, budget }, limit)? {
            FromChild::Ahead(result) => Ok(result),
            _ => Err(ChildError::Answer),
        }
    }

    fn ask(&mut self, request: &ToChild, limit: Duration) -> Result<FromChild, ChildError> {
        let until = Instant::now() + limit;
        let frame = frame(request).map_err(|error| ChildError::Start(error.to_string()))?;
        // If its thread has ended, so has the child, which shows below.
        let _ = self.requests.send(frame);
        let mut at = String::new();
        loop {
            match self.answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(FromChild::At(place)) => at = place,
                Ok(answer) => return Ok(answer),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    self.kill();
                    return Err(ChildError::TooSlow {
                        limit_s: limit.as_secs_f64().to_string(),
                        at: place(&at),
                    });
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let (how, is_killed) = self.how_it_ended();
                    return Err(ChildError::Ended { how, at: place(&at), is_killed });
                }
            }
        }
    }

    fn how_it_ended(&mut self) -> (String, bool) {
        self.kill();
        let Some(Ok(status)) = self.process.as_mut().map(std::process::Child::wait) else {
            return ("without a status".into(), false);
        };
        // Its last words may still be in the pipe; a moment is enough, because nobody writes any more.
        let last_words = || self.last_words.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let until = Instant::now() + Duration::from_millis(100);
        while last_words().is_empty() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        let words = last_words();
        let words = if words.is_empty() { words } else { format!(" ({words})") };
        (format!("{status}{words}"), status.signal() == Some(SIGKILL))
    }

    fn kill(&mut self) {
        if let Some(process) = &mut self.process {
            // One that has ended by itself keeps its own status.
            let _ = process.kill();
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        if let Some(process) = &mut self.process {
            let _ = process.wait();
        }
    }
}

fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!(", at {at}") }
}

/// A child as a policy: asked once, with a limit.
pub(super) struct Asked<'c> {
    pub(super) child: &'c mut Child,
    pub(super) limit: Duration,
    /// The memory after the decision.
    pub(super) memory: Option<String>,
    /// Why there was no answer.
    pub(super) failure: Option<ChildError>,
}

impl<'c> Asked<'c> {
    pub(super) fn new(child: &'c mut Child, limit: Duration) -> Self {
        Asked { child, limit, memory: None, failure: None }
    }
}

impl Policy for Asked<'_> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        match self.child.decide(snapshot, self.limit) {
            Ok(Ok((plan, memory))) => {
                self.memory = Some(memory);
                Ok(plan)
            }
            Ok(Err(failure)) => Err(PolicyError { message: failure.to_string() }),
            Err(error) => {
                let message = error.to_string();
                self.failure = Some(error);
                Err(PolicyError { message })
            }
        }
    }
}
