//! The loop around one measured run: reports what its shim knows, and enforces the limits.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use rota_transport::measure::{MeasureEnd, MeasureEndHow, MeasureEvent, MeasureOrder, MeasureSpec};
use rota_transport::value::Text;
use rustix::process::Signal;

use super::{LEASE_MS, MeasureError, Prepared, memory};
use crate::clock::{monotonic_s, now_ms};
use crate::launch::{environment, survivors};
use crate::shim::control::ToShim;
use crate::shim::lines::Lines;
use crate::shim::log;
use crate::shim::record::{Exit, ExitCause, ExitHow, ShimPhase, State};

/// How often the run is checked.
const TURN: Duration = Duration::from_millis(5);
/// How often its memory is counted, and its lease renewed.
const SLOW_TURN_S: f64 = 0.2;
/// A line longer than this is cut: patterns have no use for the rest.
const MOST_LINE_BYTES: usize = 4096;
const PIECE_BYTES: usize = 64 * 1024;

/// One run under watch.
pub(super) struct Watch {
    spec: MeasureSpec,
    prepared: Prepared,
    mark: String,
    shim: Child,
    control: Option<Lines>,
    state: Option<State>,
    log_at: u64,
    progress_at: u64,
    unfinished_line: Vec<u8>,
    heard_at_s: f64,
    began_s: f64,
    slow_turn_at_s: f64,
    peak_mem_bytes: u64,
    /// Why it was asked to stop, if it was.
    stopped: Option<MeasureEndHow>,
}

impl Watch {
    pub(super) fn new(spec: MeasureSpec, prepared: Prepared) -> Result<Self, MeasureError> {
        let shim = prepared.start_shim()?;
        let now_s = monotonic_s();
        Ok(Watch {
            mark: environment::mark(prepared.launch.attempt, &spec.run_dir),
            spec,
            prepared,
            shim,
            control: None,
            state: None,
            log_at: 0,
            progress_at: 0,
            unfinished_line: Vec::new(),
            heard_at_s: now_s,
            began_s: now_s,
            slow_turn_at_s: now_s,
            peak_mem_bytes: 0,
            stopped: None,
        })
    }

    /// Watches to the end, and leaves nothing behind.
    pub(super) fn run(
        mut self,
        orders: &Receiver<MeasureOrder>,
        mut tell: impl FnMut(&MeasureEvent) -> Result<(), MeasureError>,
    ) -> Result<(), MeasureError> {
        let exit = loop {
            // Checked before reading: the last output of a run is written before its shim is gone.
            let is_gone = self.shim.try_wait().is_ok_and(|status| status.is_some());
            let mut events = self.receive();
            events.extend(self.read_progress());
            events.extend(self.read_output(is_gone));
            for event in &events {
                if tell(event).is_err() {
                    self.stop(MeasureEndHow::Stopped);
                }
            }
            if !events.is_empty() {
                self.heard_at_s = monotonic_s();
            }
            if is_gone {
                break self.exit();
            }
            self.obey(orders);
            self.keep_limits();
            std::thread::sleep(TURN);
        };
        self.clear();
        let how = self.how(&exit);
        let mut warnings = self.prepared.warnings;
        warnings.extend(self.state.map(|state| state.warnings).unwrap_or_default());
        tell(&MeasureEvent::Ended(MeasureEnd {
            at_s: monotonic_s(),
            how,
            peak_mem_bytes: self.peak_mem_bytes,
            warnings,
        }))
    }

    /// Events from the shim's messages; connects as soon as the shim listens.
    fn receive(&mut self) -> Vec<MeasureEvent> {
        if self.control.is_none() {
            let stream = UnixStream::connect(self.prepared.dir.control_socket());
            self.control = stream.and_then(Lines::new).ok();
        }
        let Some(control) = &mut self.control else { return Vec::new() };
        control.flush();
        let states: Vec<State> = control.receive().into_iter().flatten().collect();
        states.into_iter().flat_map(|state| self.news(state)).collect()
    }

    fn news(&mut self, state: State) -> Vec<MeasureEvent> {
        let at_s = monotonic_s();
        let before = self.state.replace(state);
        let (Some(state), done) = (&self.state, self.spec.done) else { return Vec::new() };
        let was_running = before.as_ref().is_some_and(|state| state.phase == ShimPhase::Running);
        let checkpointed = before.map_or(done, |state| state.checkpointed);
        let mut events = Vec::new();
        if state.phase == ShimPhase::Running && !was_running {
            events.push(MeasureEvent::Started { at_s });
        }
        if state.checkpointed > checkpointed {
            events.push(MeasureEvent::Checkpointed { at_s, iterations: state.checkpointed });
        }
        events
    }

    fn read_progress(&mut self) -> Vec<MeasureEvent> {
        let mut text = String::new();
        let read = fs::File::open(self.prepared.dir.progress()).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.progress_at))?;
            file.read_to_string(&mut text)
        });
        if read.is_err() {
            return Vec::new();
        }
        // A line without an end is still being written.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        self.progress_at += whole.len() as u64;
        let pairs = whole.lines().filter_map(|line| serde_json::from_str::<(f64, f64)>(line).ok());
        pairs.map(|(at_s, iterations)| MeasureEvent::Progress { at_s, iterations }).collect()
    }

    fn read_output(&mut self, is_end: bool) -> Vec<MeasureEvent> {
        while let Ok(piece) = log::read(&self.prepared.dir.log(), self.log_at, PIECE_BYTES) {
            if piece.bytes.is_empty() {
                break;
            }
            self.log_at = piece.offset + piece.bytes.len() as u64;
            self.unfinished_line.extend(piece.bytes);
        }
        let at_s = monotonic_s();
        let mut events = Vec::new();
        let whole = match self.unfinished_line.iter().rposition(|byte| *byte == b'\n' || *byte == b'\r') {
            _ if is_end => self.unfinished_line.len(),
            Some(end) => end + 1,
            None => 0,
        };
        let lines: Vec<u8> = self.unfinished_line.drain(..whole).collect();
        // Progress bars end their lines with a carriage return.
        for line in lines.split(|byte| *byte == b'\n' || *byte == b'\r').filter(|line| !line.is_empty()) {
            let text = String::from_utf8_lossy(&line[..line.len().min(MOST_LINE_BYTES)]).into_owned();
            events.push(MeasureEvent::Line { at_s, text });
        }
        events
    }

    fn obey(&mut self, orders: &Receiver<MeasureOrder>) {
        match orders.try_recv() {
            Ok(MeasureOrder::Checkpoint) => self.send(&ToShim::Checkpoint),
            Ok(MeasureOrder::Stop) | Err(TryRecvError::Disconnected) => self.stop(MeasureEndHow::Stopped),
            Err(TryRecvError::Empty) => {}
        }
    }

    fn keep_limits(&mut self) {
        let now_s = monotonic_s();
        if now_s - self.began_s > self.spec.time_limit_s {
            self.stop(MeasureEndHow::TooLong);
        } else if now_s - self.heard_at_s > self.spec.silence_limit_s {
            self.stop(MeasureEndHow::Silent);
        }
        if now_s - self.slow_turn_at_s < SLOW_TURN_S {
            return;
        }
        self.slow_turn_at_s = now_s;
        if self.stopped.is_none() {
            self.send(&ToShim::Lease(Some(now_ms() + LEASE_MS)));
        }
        if self.prepared.watches_memory {
            let bytes = memory::in_use(&self.mark);
            self.peak_mem_bytes = self.peak_mem_bytes.max(bytes);
            if bytes > self.spec.mem_bytes {
                self.stop(MeasureEndHow::OverMemory);
            }
        }
    }

    fn send(&mut self, word: &ToShim) {
        if let Some(control) = &mut self.control {
            control.send(word);
        }
    }

    /// Tells it to stop, once; the first reason counts.
    fn stop(&mut self, why: MeasureEndHow) {
        // A shim that does not listen yet gets the message on a later turn.
        if self.stopped.is_none() && self.control.is_some() {
            let is_over = why == MeasureEndHow::OverMemory;
            let grace_ms = if is_over { 0 } else { self.prepared.launch.grace_ms };
            self.send(&ToShim::Stop { grace_ms, keep_work: why == MeasureEndHow::Stopped });
            self.stopped = Some(why);
        }
    }

    fn exit(&self) -> Exit {
        let recorded = self.prepared.dir.state().ok().flatten().map(|state| state.phase);
        match recorded {
            Some(ShimPhase::Ended(exit)) => exit,
            _ => {
                let why = fs::read_to_string(self.prepared.dir.shim_log()).unwrap_or_default();
                let how = ExitHow::NotStarted(Text::cut(&format!("its shim is gone: {}", why.trim())));
                Exit { how, cause: ExitCause::Itself }
            }
        }
    }

    fn how(&self, exit: &Exit) -> MeasureEndHow {
        match (&self.stopped, exit.cause, &exit.how) {
            (Some(why), ExitCause::Ordered, _) => why.clone(),
            (_, ExitCause::OverLimit, _) => MeasureEndHow::OverMemory,
            (_, _, ExitHow::Code(0)) => MeasureEndHow::Finished,
            (_, _, ExitHow::Code(code)) => MeasureEndHow::Failed(*code),
            (_, _, ExitHow::Signal(signal)) => MeasureEndHow::Killed(*signal),
            (_, _, ExitHow::NotStarted(why) | ExitHow::Unknown(why)) => {
                MeasureEndHow::NotStarted(why.to_string())
            }
        }
    }

    /// Ends whatever still carries the run's mark and removes its files.
    fn clear(&self) {
        for pid in survivors::marked(&self.mark) {
            // It is no error if one has ended meanwhile.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        // A folder that cannot be removed only takes up space.
        let _ = fs::remove_dir_all(self.prepared.dir.path());
    }
}
