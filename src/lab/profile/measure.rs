//! One run of the command at one point, through `rota-agent measure`: what it reported, and what went wrong, if anything.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use rota_transport::measure::{MeasureEnd, MeasureEndHow, MeasureEvent, MeasureOrder, MeasureSpec};

use super::pattern::{Pattern, Reading};
use super::perf_file::PerfFileError;
use super::samples::iteration_times;

/// Lines of output kept to show when a run fails.
const LAST_LINES: usize = 8;

/// What one run reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Reports: (seconds, iterations done).
    pub reports: Vec<(f64, f64)>,
    /// Iteration times that the command itself stated.
    pub stated_s: Vec<f64>,
    /// When its processes were started.
    pub started_s: Option<f64>,
    /// When its last checkpoint was noticed.
    pub checkpointed_s: Option<f64>,
    /// Iterations in it.
    pub checkpointed: Option<f64>,
    /// How it ended; `None` while it runs.
    pub end: Option<MeasureEnd>,
    /// The last lines it wrote.
    pub last_lines: VecDeque<String>,
}

/// How a command reports its speed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// Through the job protocol.
    Protocol,
    /// In its output, as a pattern reads it.
    Pattern,
    /// In a file that it leaves, with what was wrong with that file, if anything.
    File(Option<PerfFileError>),
}

/// A run that cannot even be tried.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The agent does not start.
    #[error("cannot start {}: {source}", program.display())]
    Agent {
        /// Path of `rota-agent`.
        program: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// The agent refuses.
    #[error("{0}")]
    Refused(String),
}

/// A run that is under way. Dropping it stops it: the agent sees the end of its input.
pub struct Running {
    child: Child,
    orders: Option<ChildStdin>,
    lines: io::Lines<BufReader<std::process::ChildStdout>>,
    account: Account,
}

impl Running {
    /// Starts a run.
    pub fn start(agent: &Path, spec: &MeasureSpec) -> Result<Self, MeasureError> {
        let failed = |source| MeasureError::Agent { program: agent.to_owned(), source };
        let mut command = Command::new(agent);

        // In a process group of its own: at an interrupt it sees the end of its input, and cleans up.
        command
            .process_group(0)
            .arg("measure")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (orders, output) = (child.stdin.take(), child.stdout.take());
        let (Some(mut orders), Some(output)) = (orders, output) else {
            return Err(failed(io::Error::other("it has no pipes")));
        };
        let line = serde_json::to_string(spec).unwrap_or_default() + "\n";
        orders.write_all(line.as_bytes()).map_err(failed)?;
        let lines = BufReader::new(output).lines();
        Ok(Running { child, orders: Some(orders), lines, account: Account::default() })
    }

    /// Its next report; none when it has ended.
    pub fn next(&mut self, pattern: Option<&Pattern>) -> Option<MeasureEvent> {
        let line = self.lines.next()?.ok()?;
        let event: MeasureEvent = serde_json::from_str(&line).ok()?;
        self.account.take(&event, pattern);
        Some(event)
    }

    /// Sends it a request.
    pub fn order(&mut self, order: MeasureOrder) {
        let line = serde_json::to_string(&order).unwrap_or_default() + "\n";
        if let Some(orders) = &mut self.orders {
            // If it no longer reads its input it has ended, and its end says why.
            let _ = orders.write_all(line.as_bytes()).and_then(|()| orders.flush());
        }
    }

    /// All that it reported, once it has ended.
    pub fn account(mut self) -> Result<Account, MeasureError> {
        // Its input must stay open until it has ended, or it would stop the run.
        if self.account.end.is_none() {
            self.orders = None;
            let mut why = String::new();
            if let Some(mut errors) = self.child.stderr.take() {
                let _ = io::Read::read_to_string(&mut errors, &mut why);
            }
            let _ = self.child.wait();
            return Err(MeasureError::Refused(why.trim().trim_start_matches("rota-agent: ").to_owned()));
        }
        Ok(std::mem::take(&mut self.account))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.orders = None;
        // It ends by itself when its input does, after it has ended the run.
        let _ = self.child.wait();
    }
}

impl Account {
    fn take(&mut self, event: &MeasureEvent, pattern: Option<&Pattern>) {
        match event {
            MeasureEvent::Started { at_s } => self.started_s = Some(*at_s),
            MeasureEvent::Progress { at_s, iterations } => self.reports.push((*at_s, *iterations)),
            MeasureEvent::Checkpointed { at_s, iterations } => {
                (self.checkpointed_s, self.checkpointed) = (Some(*at_s), Some(*iterations));
            }
            MeasureEvent::Line { at_s, text } => {
                match pattern.and_then(|pattern| pattern.read(text)) {
                    Some(Reading::Iterations(iterations)) => self.reports.push((*at_s, iterations)),
                    Some(Reading::Seconds(seconds)) => self.stated_s.push(seconds),
                    None => {}
                }
                self.last_lines.push_back(text.clone());
                if self.last_lines.len() > LAST_LINES {
                    self.last_lines.pop_front();
                }
            }
            MeasureEvent::Ended(end) => self.end = Some(end.clone()),
        }
    }

    /// Iteration times, after a warm-up of so many iterations.
    pub fn iteration_s(&self, warm_up: u64) -> Vec<f64> {
        if self.stated_s.is_empty() {
            return iteration_times(&self.reports, warm_up as f64);
        }
        let skipped = (warm_up as usize).min(self.stated_s.len() - 1);
        self.stated_s.iter().skip(skipped).copied().collect()
    }

    /// What went wrong, in words for the user who typed the command; none when it went well.
    pub fn failure(&self, spec: &MeasureSpec, speaks: &Speaks) -> Option<String> {
        let end = self.end.as_ref()?;
        let words = match &end.how {
            MeasureEndHow::Finished if !self.reports.is_empty() || !self.stated_s.is_empty() => return None,
            // A run that was stopped at its limit after many iterations was measured nevertheless.
            MeasureEndHow::TooLong if self.iteration_s(0).len() >= 2 => return None,
            MeasureEndHow::Finished => match speaks {
                Speaks::Pattern => "it ended successfully, but no line of its output matches --pattern".to_owned(),
                Speaks::File(Some(error)) => error.to_string(),
                Speaks::Protocol | Speaks::File(None) => {
                    "it ended well, but did not report its iterations: use the job protocol \
                     (docs/job-protocol.md), name what it prints with --pattern, or use --synergy for a script of \
                     Synergy's"
                        .to_owned()
                }
            },
            MeasureEndHow::Failed(code) => format!("it failed with code {code}"),
            MeasureEndHow::Killed(signal) => format!("signal {signal} ended it"),
            MeasureEndHow::NotStarted(why) => format!("it did not start: {why}"),
            MeasureEndHow::TooLong => {
                format!(
                    "it did not end within {} s and was stopped; --run-limit gives more",
                    spec.time_limit_s
                )
            }
            MeasureEndHow::Silent => format!(
                "it reported no progress and wrote no output for {} s, and was stopped; --silence gives more",
                spec.silence_limit_s
            ),
            MeasureEndHow::OverMemory => format!(
                "it needed more than the {} GB it was given, and was stopped",
                spec.mem_bytes as f64 / 1e9
            ),
            MeasureEndHow::Stopped => "it was stopped".to_owned(),
        };
        let output = match self.last_lines.is_empty() {
            true => String::new(),
            false => {
                let lines: Vec<&str> = self.last_lines.iter().map(String::as_str).collect();
                format!("; its last lines:\n    {}", lines.join("\n    "))
            }
        };
        Some(format!("{words}{output}"))
    }
}
