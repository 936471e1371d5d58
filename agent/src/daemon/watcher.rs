//! One task for each launch: starts its shim or finds it running, passes messages to it and states from it, and makes
//! sure that nothing of the launch is left once the shim is gone.

use std::path::PathBuf;
use std::time::Duration;

use rota_transport::value::Text;
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::launches::KnownLaunch;
use super::nursery::{Nursery, ShimProcess};
use crate::launch::environment;
use crate::launch::spec::Attempt;
use crate::launch::survivors;
use crate::shim::control::ToShim;
use crate::shim::record::{AttemptDir, Exit, ExitCause, ExitHow, ProcessMark, ShimPhase, State};
use crate::shim::{self, Beginning, ShimError};

/// How often to try a socket that does not exist yet.
const RETRY: Duration = Duration::from_millis(2);
/// Time between two checks whether something is gone.
const LOOK: Duration = Duration::from_millis(20);
/// A shim that has not opened its socket by then never will.
const MOST_RETRIES: u32 = 15_000;

/// A launch's new state.
pub(super) struct News {
    pub(super) attempt: Attempt,
    pub(super) state: State,
}

/// A launch and its shim.
pub(super) struct Watcher {
    pub(super) run_dir: PathBuf,
    pub(super) dir: AttemptDir,
    pub(super) launch: KnownLaunch,
    pub(super) news: UnboundedSender<News>,
    pub(super) words: UnboundedReceiver<ToShim>,
    pub(super) nursery: Nursery,
}

/// Whether a launch is new or was there before the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Ordered,
    Found,
}

impl Watcher {
    /// Watches until the launch has ended; the last news is its end.
    pub(super) async fn watch(mut self, origin: Origin) {
        let mut shim = match origin {
            Origin::Ordered => match self.nursery.shim(&self.dir, Beginning::Fresh).await {
                Ok(shim) => shim,
                Err(why) => {
                    return self.tell_end(ExitHow::NotStarted(Text::cut(&format!("its shim: {why}"))));
                }
            },
            Origin::Found => None,
        };
        loop {
            if let Some(stream) = self.connect(shim.as_ref()).await {
                self.converse(stream).await;
            }
            let lock = self.wait_for_shim(shim.take()).await;
            match self.dir.state() {
                Ok(Some(State { phase: ShimPhase::Ended(_), .. })) => return self.tell_recorded(),
                _ if self.can_be_adopted() => {
                    drop(lock);
                    match self.nursery.shim(&self.dir, Beginning::Adopted).await {
                        Ok(started) => shim = started,
                        Err(why) => {
                            return self
                                .tell_end(ExitHow::Unknown(Text::cut(&format!("no shim adopts it: {why}"))));
                        }
                    }
                }
                _ => {
                    self.clear_away().await;
                    self.tell_end(ExitHow::Unknown(Text::cut("its shim was ended from outside")));
                    // Only now: a shim that starts late finds the end recorded, and ends.
                    drop(lock);
                    return;
                }
            }
        }
    }

    /// Containers outlive their shim, unless they were never started.
    fn can_be_adopted(&self) -> bool {
        let was_started = matches!(
            self.dir.state(),
            Ok(Some(State { phase: ShimPhase::Running | ShimPhase::Stopping, .. }))
        );
        was_started && self.launch.is_container
    }

    /// The shim's socket, once it is there; none when the shim is gone.
    async fn connect(&self, shim: Option<&ShimProcess>) -> Option<UnixStream> {
        let path = self.dir.control_socket();
        for _ in 0..MOST_RETRIES {
            if let Ok(stream) = UnixStream::connect(&path).await {
                return Some(stream);
            }
            let is_gone = match shim {
                Some(shim) => shim.is_gone(),
                None => self.shim_mark().is_none_or(|mark| !mark.is_alive()),
            };
            if is_gone {
                return None;
            }
            tokio::time::sleep(RETRY).await;
        }
        None
    }

    /// Passes on messages and states until the shim closes the connection.
    async fn converse(&mut self, stream: UnixStream) {
        let (reader, mut writer) = stream.into_split();
        let mut lines = BufReader::new(reader).lines();
        let mut has_words = true;
        loop {
            tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => {
                        if let Ok(state) = serde_json::from_str(&line) {
                            self.tell(state);
                        }
                    }
                    Ok(None) | Err(_) => return,
                },
                word = self.words.recv(), if has_words => match word {
                    Some(word) => {
                        let line = serde_json::to_string(&word).unwrap_or_default() + "\n";
                        // A shim that does not take it is about to end; reading then fails too.
                        let _ = writer.write_all(line.as_bytes()).await;
                    }
                    None => has_words = false,
                },
            }
        }
    }

    /// Waits until the shim is gone, because its launch may be alive until then; holds its lock from then on.
    async fn wait_for_shim(&self, shim: Option<ShimProcess>) -> Option<std::fs::File> {
        if let Some(shim) = shim {
            shim.gone().await;
        }
        loop {
            match shim::lock(&self.dir) {
                Ok(lock) => return Some(lock),
                Err(ShimError::Held(_)) => tokio::time::sleep(LOOK).await,
                // A directory in which nothing can be locked has no shim.
                Err(_) => return None,
            }
        }
    }

    fn shim_mark(&self) -> Option<ProcessMark> {
        self.dir.state().ok().flatten().map(|state| state.shim)
    }

    /// Ends what carries the launch's mark, until nothing does.
    async fn clear_away(&self) {
        let mark = environment::mark(self.launch.attempt, &self.run_dir);
        loop {
            let left: Vec<Pid> = survivors::marked(&mark);
            if left.is_empty() {
                return;
            }
            for pid in left {
                // It is no error if one has ended meanwhile.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn tell(&self, state: State) {
        // If the receiver is gone, the agent is ending.
        let _ = self.news.send(News { attempt: self.launch.attempt, state });
    }

    fn tell_recorded(&self) {
        if let Ok(Some(state)) = self.dir.state() {
            self.tell(state);
        }
    }

    /// Records and reports an end that the shim could not record.
    fn tell_end(&self, how: ExitHow) {
        let last = self.dir.state().ok().flatten();
        let mut state = last.unwrap_or_else(|| State::without_shim(self.launch.done));
        let cause = if state.said_done { ExitCause::Done } else { ExitCause::Itself };
        state.phase = ShimPhase::Ended(Exit { how, cause });
        if let Err(error) = self.dir.set_state(&state) {
            state.warnings.push(error.to_string());
        }
        self.tell(state);
    }
}
