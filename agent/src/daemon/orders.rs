//! Carries out orders. That each is carried out only once is ensured by the session.

use std::path::Path;

use rota_transport::message::{Fact, JobEnd, KeepWork, Launch, Launcher, OrderId, Outcome, Start, Task};
use rota_transport::value::{LogBytes, MOST_LOG_BYTES, Text};
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::checkpoints::CopyError;
use super::launches::KnownLaunch;
use super::watcher::{News, Origin, Watcher};
use super::{Daemon, checkpoints, millis_of, translate, unreadable};
use crate::clock::now_ms;
use crate::launch::spec::{Attempt, Rendezvous};
use crate::shim::control::ToShim;
use crate::shim::log;
use crate::shim::record::{ShimPhase, State};

impl Daemon {
    pub(super) fn execute(&mut self, order: OrderId, task: Task) {
        let outcome = match task {
            Task::Launch(launch) => self.launch(order, &launch),
            Task::Go { attempt, rendezvous } => {
                let address = rendezvous.address.to_string();
                let word = ToShim::Go(Rendezvous { address, port: rendezvous.port });
                self.tell(translate::attempt(attempt), word)
            }
            Task::Stop { attempt, grace, keep_work } => {
                let grace_ms = translate::millis(grace.span());
                self.stop(order, translate::attempt(attempt), grace_ms, keep_work == KeepWork::Yes)
            }
            Task::Rescale { attempt, n_gpus, world_size } => {
                self.tell(translate::attempt(attempt), ToShim::Rescale { n_gpus, world_size })
            }
            Task::Checkpoint { attempt } => self.tell(translate::attempt(attempt), ToShim::Checkpoint),
            Task::Resize { attempt, host, rate } => {
                let attempt = translate::attempt(attempt);
                let host = host.host();
                if let Some(live) = self.launches.get_mut(attempt) {
                    live.launch.host = host;
                }
                let (cpu_micro, mem_bytes, rate) = (host.cpu_micro, host.mem_bytes, rate.per_s());
                self.tell(attempt, ToShim::Resize { cpu_micro, mem_bytes, rate })
            }
            Task::ReadCheckpoint { attempt, offset } => {
                self.copy(order, move |folder| checkpoints::read_piece(folder, offset), attempt.job.0);
                None
            }
            Task::WriteCheckpoint { attempt, offset, bytes, is_end } => {
                let write = move |folder: &Path| {
                    let stream = folder.with_extension("stream");
                    checkpoints::write(&stream, folder, offset, bytes.as_bytes(), is_end)
                        .map(|()| Outcome::Done)
                };
                self.copy(order, write, attempt.job.0);
                None
            }
            Task::Forget { attempt, end } => Some(self.forget(translate::attempt(attempt), end)),
            Task::ReadLog { attempt, offset, n_bytes } => {
                Some(self.read_log(order, translate::attempt(attempt), offset, n_bytes))
            }
        };
        if let Some(outcome) = outcome {
            self.act(|session, now, out| session.order_done(now, order, outcome, out));
        }
    }

    /// Handles a new state that a watcher reports.
    pub(super) fn take_news(&mut self, news: News) {
        let log = self.run_dir.log(news.attempt);
        let Some(live) = self.launches.get_mut(news.attempt) else { return };
        let consequences = live.update(news.state, &log, now_ms());
        if consequences.has_ended {
            self.cpus.give_back(&live.launch.pinned);
        }
        for fact in consequences.facts {
            // Without a session progress is not reported: the next inventory contains it.
            if self.session.is_open() || !matches!(fact, Fact::Progressed { .. }) {
                self.report(fact);
            }
        }
        for (order, outcome) in consequences.outcomes {
            self.act(|session, now, out| session.order_done(now, order, outcome, out));
        }
    }

    /// Finds launches of an earlier agent: those that run are watched, those that ended are kept for the inventory.
    pub(super) fn find_launches(&mut self) {
        let mut unreadable = Vec::new();
        for attempt in self.run_dir.attempts() {
            let dir = self.run_dir.attempt_dir(attempt);
            match dir.launch() {
                Ok(spec) => {
                    let launch = KnownLaunch::from(spec);
                    let recorded = dir.state().ok().flatten();
                    let state = recorded.unwrap_or_else(|| State::without_shim(launch.done));
                    info!(%attempt, "found a launch of an earlier agent, {:?}", state.phase);
                    self.cpus.bind(&launch.pinned);
                    self.watch(launch, state, Origin::Found);
                }
                Err(error) if unreadable::must_stay(&dir) => unreadable.push((attempt, error)),
                // It was not written completely, so nothing was started from it.
                Err(error) => {
                    warn!(%attempt, "a launch that cannot be read is dropped: {error}");
                    let _ = std::fs::remove_dir_all(dir.path());
                }
            }
        }
        for (attempt, error) in unreadable {
            let text = format!(
                "launch {attempt} cannot be read and may be alive: its GPUs stay taken until it ends or is stopped: {error}"
            );
            warn!("{text}");
            let dir = self.run_dir.attempt_dir(attempt);
            let held = self.launches.gpus();
            let launch = unreadable::stand_in(attempt, self.run_dir.path(), &self.node, &held);
            self.watch(launch, unreadable::state(&dir), Origin::Found);
            self.report(Fact::Warning(Text::cut(&text)));
        }
        if self.launches.n_live() > 0 && self.run_dir.lease().0 > 0 {
            self.session.adopt_lease(super::now(), self.run_dir.lease());
        }
    }

    fn launch(&mut self, order: OrderId, launch: &Launch) -> Option<Outcome> {
        let failed = |why: String| Some(Outcome::Failed(Text::cut(&why)));
        if let Launcher::Container(container) = &launch.launcher
            && let Err(fault) = container.check()
        {
            return failed(fault.to_string());
        }
        let (gpus, near) = match translate::gpus(launch, &self.node) {
            Ok(gpus) => gpus,
            Err(error) => return failed(error.to_string()),
        };
        let pinned = self.cpus.take(launch.host.host().cpu_micro, &near);
        let local = translate::Local {
            node: &self.node,
            places: &self.options.places,
            options: &self.options.launch,
            limits: self.limits,
            epoch: self.session.memory().epoch,
            lease_until_ms: self.session.work_until().map(millis_of),
            run_as: self.accounts.run_as(&launch.user),
            hidden: if self.hides_devices { translate::hidden(&gpus, &self.node) } else { Vec::new() },
        };
        let spec = translate::spec(launch, gpus, pinned.clone(), &local);
        let dir = self.run_dir.attempt_dir(spec.attempt);
        // A head that does not know this launch must be recognised, even if this agent is killed next.
        self.keep_journal(now_ms(), 0);
        // The directory is the record that this launch was ordered: made once, and before anything runs.
        let made = std::fs::create_dir(dir.path()).map_err(|error| error.to_string());
        if let Err(why) = made.and_then(|()| dir.set_launch(&spec).map_err(|error| error.to_string())) {
            self.cpus.give_back(&pinned);
            return failed(format!("{}: {why}", dir.path().display()));
        }
        let attempt = spec.attempt;
        let state = State::without_shim(spec.work.done);
        self.watch(spec.into(), state, Origin::Ordered);
        match launch.start {
            Start::AtOnce => Some(Outcome::Done),
            Start::WhenTold => {
                if let Some(live) = self.launches.get_mut(attempt) {
                    live.answer_when_prepared(order);
                }
                None
            }
        }
    }

    fn watch(&mut self, launch: KnownLaunch, state: State, origin: Origin) {
        let (words, heard) = mpsc::unbounded_channel();
        let has_ended = matches!(state.phase, ShimPhase::Ended(_));
        let watcher = Watcher {
            run_dir: self.run_dir.path().to_owned(),
            dir: self.run_dir.attempt_dir(launch.attempt),
            launch: launch.clone(),
            news: self.news.clone(),
            words: heard,
            nursery: self.nursery.clone(),
        };
        self.launches.add(launch, state, words);
        if !has_ended {
            tokio::spawn(watcher.watch(origin));
        }
    }

    fn tell(&mut self, attempt: Attempt, word: ToShim) -> Option<Outcome> {
        match self.launches.get_mut(attempt) {
            Some(live) if !live.has_ended() => {
                live.tell(word);
                Some(Outcome::Done)
            }
            Some(_) => Some(Outcome::Failed(Text::cut(&format!("launch {attempt} has ended")))),
            None => Some(Outcome::Failed(Text::cut(&format!("launch {attempt} is not known here")))),
        }
    }

    /// Stopping a launch that has already ended succeeds at once; otherwise the answer waits for its end.
    fn stop(&mut self, order: OrderId, attempt: Attempt, grace_ms: u64, keep_work: bool) -> Option<Outcome> {
        match self.launches.get_mut(attempt) {
            Some(live) if !live.has_ended() => {
                live.tell(ToShim::Stop { grace_ms, keep_work });
                live.answer_when_ended(order);
                None
            }
            _ => Some(Outcome::Done),
        }
    }

    fn forget(&mut self, attempt: Attempt, end: JobEnd) -> Outcome {
        match self.launches.get_mut(attempt) {
            Some(live) if !live.has_ended() => {
                return Outcome::Failed(Text::cut(&format!("launch {attempt} has not ended")));
            }
            None => return Outcome::Done,
            Some(_) => {}
        }
        match self.run_dir.forget(attempt, end) {
            Ok(()) => {
                self.launches.remove(attempt);
                self.remove_empty_home(attempt.job);
                Outcome::Done
            }
            Err(error) => Outcome::Failed(Text::cut(&error.to_string())),
        }
    }

    /// Removes the folder that a job got from us and left nothing in; one that holds something stays.
    fn remove_empty_home(&self, job: u32) {
        // A later launch of the job may run there.
        if !self.launches.has_job(job) {
            let _ = std::fs::remove_dir(self.run_dir.path().join("work").join(job.to_string()));
        }
    }

    /// Reads or writes a piece of a checkpoint on another thread: a disk may take longer than a lease lasts.
    fn copy(
        &self,
        order: OrderId,
        copy: impl FnOnce(&Path) -> Result<Outcome, CopyError> + Send + 'static,
        job: u32,
    ) {
        let (folder, finished) = (self.options.places.checkpoints_of(job), self.finished.clone());
        tokio::task::spawn_blocking(move || {
            let outcome =
                copy(&folder).unwrap_or_else(|error| Outcome::Failed(Text::cut(&error.to_string())));
            // If the receiver is gone, the agent is ending; the head asks its successor again.
            let _ = finished.send((order, outcome));
        });
    }

    fn read_log(&mut self, order: OrderId, attempt: Attempt, offset: u64, n_bytes: u32) -> Outcome {
        let most = (n_bytes as usize).min(MOST_LOG_BYTES);
        // Checked before reading: what a launch wrote last is in the log before the launch has ended.
        let has_ended = self.launches.get_mut(attempt).is_none_or(|live| live.has_ended());
        let path = self.run_dir.log(attempt);
        match log::read(&path, offset, most) {
            Ok(piece) => {
                let end = piece.offset + piece.bytes.len() as u64;
                let is_end = has_ended && end >= log::length(&path);
                if let Ok(bytes) = LogBytes::new(piece.bytes) {
                    self.act(|session, _, out| session.log(order, piece.offset, bytes, is_end, out));
                }
                Outcome::Done
            }
            Err(error) => Outcome::Failed(Text::cut(&format!("{}: {error}", path.display()))),
        }
    }
}
