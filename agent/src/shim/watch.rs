//! The shim's loop: everything that can happen to one launch, from its preparation until nothing of it is left.

use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rota_transport::value::Text;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Gid, Uid};
use rustix::process::{WaitOptions, WaitStatus};
use rustix::time::Timespec;
use tracing::warn;

use super::control::ToShim;
use super::log::RotatingLog;
use super::record::{AttemptDir, Exit, ExitCause, ExitHow, ProcessMark, ShimPhase, State};
use super::socket::ClientSocket;
use super::stopping::{Lease, Stopping};
use super::{Beginning, ShimError};
use crate::clock::{monotonic_s, now_ms};
use crate::job::protocol::{FromJob, PROTOCOL, ToJob};
use crate::launch::account::Account;
use crate::launch::spec::{LaunchSpec, OnHeadLost, Rendezvous};
use crate::launch::{LaunchError, Launcher, Rank, Workplace, survivors};

/// How often a shim checks its launch when nothing wakes it.
const TURN_MS: u64 = 1_000;
/// How often it checks while processes are ending.
const DYING_TURN_MS: u64 = 10;
/// Progress is reported at most this often.
const TELL_EVERY_MS: u64 = 200;

/// Ranks that were not started.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("it was started before")]
    StartedBefore,
}

/// One launch that this shim watches.
pub(super) struct Watch {
    attempt: AttemptDir,
    spec: LaunchSpec,
    launcher: Box<dyn Launcher>,
    state: State,
    log: RotatingLog,
    /// Both ends of the pipe that ranks write to; the writing end goes when they are started.
    output: OwnedFd,
    input: Option<OwnedFd>,
    has_output_ended: bool,
    agents: ClientSocket,
    jobs: ClientSocket,
    job_socket: PathBuf,
    ranks: Vec<Rank>,
    /// The port kept free until the ranks start.
    port: Option<TcpListener>,
    lease: Option<Lease>,
    stopping: Option<Stopping>,
    /// The end that counts: that of the first rank that failed, or of the last one.
    end: Option<ExitHow>,
    /// Whether nobody on this node may run it.
    is_refused: bool,
    running_since_ms: u64,
    told_at_ms: u64,
    has_untold: bool,
    /// The lowest rank that has reported progress; its reports count for the whole launch.
    speaker: Option<u32>,
    /// The lowest rank that has said that the work is done.
    done_by: Option<u32>,
    /// Whether a rank promised to end by itself when it is asked to stop: its success then only says that it has obeyed.
    promised_to_stop: bool,
}

impl Watch {
    /// Opens the job's socket and the log; starts nothing.
    pub(super) fn new(
        attempt: AttemptDir,
        agents: ClientSocket,
        spec: LaunchSpec,
        launcher: Box<dyn Launcher>,
        place: &Workplace,
    ) -> Result<Self, ShimError> {
        let system = |what| move |source| ShimError::System { what, source };
        let port = TcpListener::bind(("0.0.0.0", 0)).map_err(system("finding a free port"))?;
        let number = port.local_addr().map_err(system("finding a free port"))?.port();
        let (output, input) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|error| ShimError::System { what: "opening a pipe", source: error.into() })?;
        rustix::io::ioctl_fionbio(&output, true)
            .map_err(|error| ShimError::System { what: "opening a pipe", source: error.into() })?;
        let state = State::before_start(spec.work.done, ProcessMark::own(), number);
        // Before any message is sent, so that a peer that gets one finds the shim's state on disk.
        attempt.set_state(&state)?;
        let job_socket = place.job_socket(&spec.run_as);
        Ok(Watch {
            log: RotatingLog::open(&attempt.log(), spec.log).map_err(system("opening the log"))?,
            agents,
            jobs: ClientSocket::open(&job_socket).map_err(system("opening the job socket"))?,
            job_socket,
            lease: spec.lease_until_ms.map(|until_ms| Lease::new(until_ms, spec.grace_ms)),
            input: Some(input),
            has_output_ended: false,
            ranks: Vec::new(),
            port: Some(port),
            stopping: None,
            end: None,
            is_refused: false,
            running_since_ms: 0,
            told_at_ms: 0,
            has_untold: false,
            speaker: None,
            done_by: None,
            promised_to_stop: false,
            attempt,
            spec,
            launcher,
            state,
            output,
        })
    }

    /// Watches until the launch has ended and all agents know.
    pub(super) fn run(mut self, beginning: Beginning) -> Result<(), ShimError> {
        self.begin(beginning);
        while !matches!(self.state.phase, ShimPhase::Ended(_)) {
            self.wait();
            self.turn();
        }
        self.attempt.set_state(&self.state)?;
        // Nobody is left who would connect; it is no error if the directory is gone.
        let _ = std::fs::remove_file(&self.job_socket);
        self.agents.admit();
        let state = self.state.clone();
        self.agents.send(&state);
        self.agents.tidy();
        Ok(())
    }

    fn begin(&mut self, beginning: Beginning) {
        match (Account::of(&self.spec.run_as), beginning) {
            (Ok(None), _) => {}
            (Ok(Some(account)), _) => self.run_as(account),
            (Err(error), Beginning::Fresh) => {
                self.is_refused = true;
                return self.ended_before(ExitHow::NotStarted(Text::cut(&error.to_string())));
            }
            // It runs already, with the account that it had.
            (Err(_), Beginning::Adopted) => {}
        }
        let prepared = self.launcher.prepare();
        match (prepared, beginning) {
            (Err(error), _) => self.ended_before(ExitHow::NotStarted(Text::cut(&error.to_string()))),
            (Ok(()), Beginning::Adopted) => match self.with_input(|launcher, input| launcher.adopt(input)) {
                Err(why) => self.ended_before(ExitHow::Unknown(Text::cut(&why.to_string()))),
                ranks => self.started(ranks),
            },
            (Ok(()), Beginning::Fresh) if self.spec.waits_for_go => self.enter(ShimPhase::Prepared),
            (Ok(()), Beginning::Fresh) => {
                let address = "127.0.0.1".to_owned();
                self.go(&Rendezvous { address, port: self.state.port });
            }
        }
    }

    /// Makes an account the user of the launch: it may write to the output and to the job's socket.
    fn run_as(&mut self, account: Account) {
        let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
        let output =
            self.input.as_ref().map_or(Ok(()), |input| rustix::fs::fchown(input, Some(uid), Some(gid)));
        let socket = std::os::unix::fs::lchown(&self.job_socket, Some(account.uid), Some(account.gid));
        for error in [output.err().map(std::io::Error::from), socket.err()].into_iter().flatten() {
            self.warn(format!("the job cannot open its output or its socket: {error}"));
        }
        self.launcher.run_as(account);
    }

    fn go(&mut self, rendezvous: &Rendezvous) {
        self.port = None;
        let started = self.with_input(|launcher, input| launcher.start(rendezvous, input));
        self.started(started);
    }

    fn with_input<T>(
        &mut self,
        act: impl FnOnce(&mut dyn Launcher, std::os::fd::BorrowedFd<'_>) -> Result<T, LaunchError>,
    ) -> Result<T, StartError> {
        // Taken out of the field: the pipe must end when the last rank does.
        match self.input.take() {
            Some(input) => Ok(act(&mut *self.launcher, input.as_fd())?),
            None => Err(StartError::StartedBefore),
        }
    }

    fn started(&mut self, ranks: Result<Vec<Rank>, StartError>) {
        match ranks {
            Ok(ranks) => {
                self.ranks = ranks;
                self.running_since_ms = now_ms();
                self.enter(ShimPhase::Running);
            }
            Err(error) => self.ended_before(ExitHow::NotStarted(Text::cut(&error.to_string()))),
        }
    }

    fn ended_before(&mut self, how: ExitHow) {
        self.end = Some(how);
        self.finish_when_empty();
    }

    /// Sleeps until something happens or is due.
    fn wait(&self) {
        let now = now_ms();
        let is_dying = self.end.is_some() || self.stopping.as_ref().is_some_and(|s| now >= s.kill_at_ms);
        let lease = self
            .lease
            .filter(|_| self.stopping.is_none() && self.spec.on_head_lost == OnHeadLost::Stop)
            .map(|lease| lease.until_ms);
        let stop = self.stopping.as_ref().map(|s| if s.was_asked { s.kill_at_ms } else { s.ask_at_ms });
        let turn = if is_dying { DYING_TURN_MS } else { TURN_MS };
        let tell = self.has_untold.then(|| self.told_at_ms + TELL_EVERY_MS);
        let due = [lease, stop, tell].into_iter().flatten().map(|at| at.saturating_sub(now) + 1);
        let left_ms = due.chain([turn]).min().unwrap_or(turn).clamp(1, turn);
        let timeout =
            Timespec { tv_sec: (left_ms / 1_000) as i64, tv_nsec: (left_ms % 1_000) as i64 * 1_000_000 };
        let clients = self.agents.clients.iter().chain(&self.jobs.clients).map(|client| {
            let out = if client.lines.has_unsent() { PollFlags::OUT } else { PollFlags::empty() };
            PollFd::new(&client.lines, PollFlags::IN | out)
        });
        let ends = self.ranks.iter().filter_map(|rank| rank.ended.as_ref());
        let mut fds: Vec<PollFd<'_>> = clients.collect();
        fds.extend(ends.map(|ended| PollFd::new(ended, PollFlags::IN)));
        fds.push(PollFd::new(&self.agents.listener, PollFlags::IN));
        fds.push(PollFd::new(&self.jobs.listener, PollFlags::IN));
        if self.input.is_none() && !self.has_output_ended {
            fds.push(PollFd::new(&self.output, PollFlags::IN));
        }
        // An interrupted wait only ends early.
        let _ = poll(&mut fds, Some(&timeout));
    }

    fn turn(&mut self) {
        if self.agents.admit() {
            self.has_untold = true;
            self.told_at_ms = 0;
        }
        self.jobs.admit();
        self.keep_output();
        self.read_agents();
        self.read_jobs();
        self.reap();
        self.guess_progress();
        self.keep_lease();
        self.drive_stop();
        self.finish_when_empty();
        self.tell();
        self.agents.tidy();
        self.jobs.tidy();
    }

    /// Moves output into the log, a bounded amount at a time.
    fn keep_output(&mut self) {
        let mut buffer = vec![0; 64 * 1024];
        for _ in 0..16 {
            match rustix::io::read(&self.output, &mut buffer[..]) {
                Ok(0) => {
                    self.has_output_ended = self.input.is_none();
                    break;
                }
                Err(_) => break,
                Ok(n_bytes) => {
                    let kept = self.log.write(buffer.get(..n_bytes).unwrap_or_default());
                    if let Err(error) = kept {
                        self.warn(format!("output is lost: {error}"));
                    }
                }
            }
        }
    }

    fn read_agents(&mut self) {
        let heard: Vec<ToShim> =
            self.agents.clients.iter_mut().flat_map(|client| client.lines.receive()).flatten().collect();
        for message in heard {
            match message {
                ToShim::Go(rendezvous) if self.state.phase == ShimPhase::Prepared => self.go(&rendezvous),
                ToShim::Go(_) => {}
                ToShim::Stop { grace_ms, keep_work } => self.stop(ExitCause::Ordered, grace_ms, keep_work),
                ToShim::Checkpoint => self.jobs.send(&ToJob::Checkpoint),
                ToShim::Rescale { n_gpus: gpus, world_size } => {
                    self.jobs.send(&ToJob::Rescale { gpus, world_size });
                }
                ToShim::Lease(until_ms) => {
                    self.lease = until_ms.map(|until| Lease::new(until, self.spec.grace_ms));
                }
                ToShim::Resize { cpu_micro, mem_bytes, rate } => self.resize(cpu_micro, mem_bytes, rate),
            }
        }
    }

    fn resize(&mut self, cpu_micro: u64, mem_bytes: u64, rate: f64) {
        if let Err(error) = self.launcher.resize(cpu_micro, mem_bytes) {
            self.warn(error.to_string());
        }
        self.guess_progress();
        let work = &mut self.spec.work;
        let past_s = (now_ms() - self.running_since_ms) as f64 / 1e3 * work.time_scale;
        // What is known so far stays; the new speed counts from now on.
        (work.done, work.delay_s, work.rate) = (self.state.iterations, past_s.max(work.delay_s), rate);
        self.jobs.send(&ToJob::Resize { cpus: cpu_micro as f64 / 1e6, memory_bytes: mem_bytes, rate });
    }

    fn read_jobs(&mut self) {
        let now = now_ms();
        let lease_s = self.lease.map(|lease| lease.until_ms.saturating_sub(now) as f64 / 1e3);
        let mut counts = Vec::new();
        for client in &mut self.jobs.clients {
            for message in client.lines.receive() {
                match message {
                    Ok(FromJob::Hello { rank, stops, .. }) => {
                        (client.rank, client.stops) = (Some(rank), stops);
                        self.promised_to_stop |= stops;
                        client.lines.send(&ToJob::Welcome {
                            protocol: PROTOCOL,
                            job: self.spec.attempt.job,
                            incarnation: self.spec.attempt.incarnation,
                            world_size: self.spec.gang.world_size,
                            iterations: self.spec.work.iterations,
                            done: self.spec.work.done,
                            lease_s,
                        });
                    }
                    Ok(FromJob::Renew) => client.lines.send(&ToJob::Lease { lease_s }),
                    Ok(said) => counts.push((client.rank.unwrap_or(0), said)),
                    Err(error) => client.lines.send(&ToJob::Error { text: error.to_string() }),
                }
            }
        }
        counts.into_iter().for_each(|(rank, said)| self.count(rank, &said));
    }

    fn count(&mut self, rank: u32, said: &FromJob) {
        let is_sound = |iterations: f64| (0.0..=1e15).contains(&iterations);
        let speaker = self.speaker.map_or(rank, |speaker| speaker.min(rank));
        self.speaker = Some(speaker);
        match *said {
            FromJob::Progress { iterations, at_s } if is_sound(iterations) && rank == speaker => {
                self.state.iterations = iterations;
                self.keep_progress(iterations, at_s);
            }
            FromJob::Checkpointed { iterations } if is_sound(iterations) => {
                self.state.checkpointed = self.state.checkpointed.max(iterations);
                self.told_at_ms = 0;
                self.save();
            }
            FromJob::Done => self.done_by = Some(self.done_by.map_or(rank, |by| by.min(rank))),
            _ => return,
        }
        self.state.speaks |= *said != FromJob::Done;
        let said_done = self.done_by.is_some_and(|by| by <= speaker);
        if said_done != self.state.said_done {
            self.state.said_done = said_done;
            self.save();
        }
        self.has_untold = true;
    }

    /// Keeps a report for a measurement; an impossible time is replaced by now.
    fn keep_progress(&mut self, iterations: f64, at_s: Option<f64>) {
        if !self.spec.keeps_progress {
            return;
        }
        let now_s = monotonic_s();
        let at_s = at_s.filter(|at_s| (now_s - 60.0..=now_s).contains(at_s)).unwrap_or(now_s);
        if let Err(error) = self.attempt.add_progress(at_s, iterations) {
            self.warn(error.to_string());
        }
    }

    /// Reaps every process that has ended, inherited ones included.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if let Some(at) = self.ranks.iter().position(|rank| rank.pid == pid) {
                let rank = self.ranks.swap_remove(at);
                self.rank_ended(&rank, status);
            }
        }
    }

    fn rank_ended(&mut self, rank: &Rank, status: WaitStatus) {
        let how = self.launcher.exit_of(rank, status);
        let is_good = how == ExitHow::Code(0);
        let has_failed = self.end.as_ref().is_some_and(|end| *end != ExitHow::Code(0));
        if !has_failed {
            self.end = Some(how);
        }
        if !is_good && !self.ranks.is_empty() && self.stopping.is_none() {
            self.stop(ExitCause::Itself, self.spec.grace_ms, false);
        }
        if is_good && !has_failed && !self.ranks.is_empty() {
            // Other ranks still run.
            self.end = None;
        }
    }

    fn guess_progress(&mut self) {
        let work = self.spec.work;
        if self.state.speaks || work.rate <= 0.0 || self.ranks.is_empty() {
            return;
        }
        let past_s = (now_ms() - self.running_since_ms) as f64 / 1e3 * work.time_scale;
        let guess = work.done + (past_s - work.delay_s).max(0.0) * work.rate;
        let most = if work.iterations > 0.0 { work.iterations } else { f64::MAX };
        self.state.iterations = guess.min(most);
        self.has_untold |= now_ms() >= self.told_at_ms + TURN_MS;
    }

    fn keep_lease(&mut self) {
        let now = now_ms();
        let ending = self.lease.filter(|lease| now >= lease.until_ms && self.stopping.is_none());
        if let Some(lease) = ending.filter(|_| self.spec.on_head_lost == OnHeadLost::Stop) {
            self.stop(ExitCause::LeaseOver, lease.grace_left_ms(now), true);
        }
    }

    fn stop(&mut self, cause: ExitCause, grace_ms: u64, keep_work: bool) {
        let now = now_ms();
        if let Some(stopping) = &mut self.stopping {
            stopping.hasten(now, grace_ms);
            return;
        }
        if self.ranks.is_empty() && self.end.is_none() {
            self.end = Some(ExitHow::NotStarted(Text::cut("stopped before it started")));
        }
        let ends_by_itself = keep_work && self.jobs.clients.iter().any(|client| client.stops);
        self.stopping = Some(Stopping::new(cause, now, grace_ms, ends_by_itself));
        self.jobs.send(&ToJob::Stop { grace_s: grace_ms as f64 / 1e3, keep_work });
        self.enter(ShimPhase::Stopping);
        self.drive_stop();
    }

    fn drive_stop(&mut self) {
        let now = now_ms();
        let Some(stopping) = &mut self.stopping else { return };
        if now >= stopping.ask_at_ms && !stopping.was_asked {
            stopping.was_asked = true;
            self.launcher.ask_to_stop(&self.ranks);
        }
        if now >= stopping.kill_at_ms && !self.ranks.is_empty() {
            self.launcher.kill(&self.ranks);
        }
    }

    /// Ends when no rank is left, and neither is anything they started.
    fn finish_when_empty(&mut self) {
        if !self.ranks.is_empty() {
            return;
        }
        let Some(how) = self.end.clone() else { return };
        if !survivors::children().is_empty() {
            survivors::kill_children();
            return;
        }
        self.keep_output();
        let cause = match &self.stopping {
            _ if self.is_done(&how) => ExitCause::Done,
            Some(stopping) => stopping.cause,
            None if self.is_refused => ExitCause::Refused,
            None if self.launcher.was_over_limit() => ExitCause::OverLimit,
            None => ExitCause::Itself,
        };
        self.launcher.clear();
        if how == ExitHow::Code(0) && !self.state.speaks && self.spec.work.iterations > 0.0 {
            let is_whole = matches!(cause, ExitCause::Itself | ExitCause::Done);
            self.state.iterations = if is_whole { self.spec.work.iterations } else { self.state.iterations };
        }
        self.state.phase = ShimPhase::Ended(Exit { how, cause });
    }

    /// Whether the work is done though the launch did not simply end by itself with success: the job said so, or it was
    /// told to stop and ended with success. The success of a job that promised to end when it is told counts only if it
    /// has reported all iterations.
    fn is_done(&self, how: &ExitHow) -> bool {
        let all = self.spec.work.iterations;
        let has_obeyed = self.promised_to_stop && (all <= 0.0 || self.state.iterations < all);
        let has_succeeded = self.stopping.is_some() && *how == ExitHow::Code(0) && !has_obeyed;
        has_succeeded || (self.state.said_done && (self.stopping.is_some() || *how != ExitHow::Code(0)))
    }

    fn enter(&mut self, phase: ShimPhase) {
        self.state.phase = phase;
        self.told_at_ms = 0;
        self.has_untold = true;
        self.save();
    }

    fn save(&mut self) {
        if let Err(error) = self.attempt.set_state(&self.state) {
            self.warn(error.to_string());
        }
    }

    fn warn(&mut self, warning: String) {
        warn!(attempt = %self.spec.attempt, "{warning}");
        if self.state.warnings.len() < 8 && !self.state.warnings.contains(&warning) {
            self.state.warnings.push(warning);
            self.has_untold = true;
        }
    }

    fn tell(&mut self) {
        let now = now_ms();
        if self.has_untold && now >= self.told_at_ms + TELL_EVERY_MS {
            let state = self.state.clone();
            self.agents.send(&state);
            (self.has_untold, self.told_at_ms) = (false, now);
        }
    }
}
