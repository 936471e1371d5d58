//! One run: the world produces events, the scheduler absorbs them, the policy is asked at rounds.
//!
//! Rounds are points in time like any other. When a policy says that its answer cannot change until the set of jobs
//! or nodes does, rounds without such a change are skipped; the result is the same.

use std::sync::Arc;

use crate::check::PlanViolation;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::event::{Command, Event};
use crate::fault::Fault;
use crate::ledger::{FaultUse, Ledger};
use crate::plan::{Plan, Verdict, Wake};
use crate::policy::{Policy, PolicyError};
use crate::recorder::Recorder;
use crate::round::{self, Decision, RoundError};
use crate::scheduler::{Impact, Scheduler};
use crate::snapshot::{Guards, Snapshot};
use crate::table::JobPhase;
use crate::time::{Span, Time};
use crate::workload::Workload;
use crate::world::World;

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Time between rounds.
    pub round: Span,
    /// The first round; the others follow at multiples of `round` after it.
    pub first_round: Time,
    /// Whether rounds that cannot change anything are skipped.
    pub skips_rounds: bool,
    /// Guards that hold for every policy.
    pub guards: Guards,
    /// Whether what ran where is recorded.
    pub keeps_timeline: bool,
    /// Whether the scheduler's state is checked for contradictions after every round.
    pub is_paranoid: bool,
    /// Whether jobs that failed or were killed where they were recorded do so here too; otherwise they finish at that point.
    pub ends_as_recorded: bool,
    /// The run ends when all jobs with these ids (first, one past the last) have ended; `None` waits for all.
    pub window: Option<(u32, u32)>,
    /// After this many rounds in a row in which nothing runs, starts or is still to arrive, the run is given up.
    pub max_idle_rounds: u32,
    /// After this many rounds in a row in which no job arrives or ends and no node fails or recovers, the run is given up: a
    /// policy that moves jobs faster than they can start would never end.
    pub max_stalled_rounds: u32,
}

impl Default for RunSettings {
    fn default() -> Self {
        RunSettings {
            round: Span::from_secs(300),
            first_round: Time::ZERO,
            skips_rounds: true,
            guards: Guards::default(),
            keeps_timeline: false,
            is_paranoid: false,
            ends_as_recorded: false,
            window: None,
            max_idle_rounds: 10_000,
            max_stalled_rounds: 1_000_000,
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Jobs that have ended.
    pub n_ended: usize,
    /// Jobs in all.
    pub n_jobs: usize,
    /// Decisions taken.
    pub n_decisions: u64,
}

/// A run that had to stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// The policy failed.
    #[error("at {now} s, decision {decision}: {error}")]
    Policy {
        /// Simulated time.
        now: Time,
        /// How many decisions came before this one.
        decision: u64,
        /// The policy's message.
        error: PolicyError,
    },
    /// The policy's plan cannot be carried out.
    #[error("at {now} s, decision {decision}: the plan cannot be carried out: {violation}")]
    Violation {
        /// Simulated time.
        now: Time,
        /// How many decisions came before this one.
        decision: u64,
        /// The first rule that the plan breaks.
        violation: PlanViolation,
    },
}

/// A run in progress.
pub struct Simulation<'a> {
    settings: &'a RunSettings,
    policy: &'a mut dyn Policy,
    workload: Arc<Workload>,
    scheduler: Scheduler,
    world: World,
    recorder: Recorder,
    digest: Digest,
    now: Time,
    wake: Wake,
    /// Whether jobs, nodes or what is held changed since the last snapshot was taken.
    is_changed: bool,
    last_decision: Option<Time>,
    n_decisions: u64,
    n_ended: usize,
    n_window_left: usize,
    n_idle: u32,
    n_stalled: u32,
    gpus_up: u32,
    /// GPU time that was down, in GPU-microseconds, until `down_since`.
    down: i128,
    down_since: Time,
    reports: Vec<Event>,
    orders: Vec<Command>,
}

/// Runs a workload to its end under a policy.
pub fn simulate(
    cluster: Arc<Cluster>,
    workload: Arc<Workload>,
    faults: Vec<Fault>,
    policy: &mut dyn Policy,
    settings: &RunSettings,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Ledger, SimulationError> {
    let mut run = Simulation::new(cluster, workload, faults, policy, settings);
    while run.step()? {
        observe(&run.progress());
    }
    Ok(run.close())
}

impl<'a> Simulation<'a> {
    /// A run that has not begun.
    pub fn new(
        cluster: Arc<Cluster>,
        workload: Arc<Workload>,
        faults: Vec<Fault>,
        policy: &'a mut dyn Policy,
        settings: &'a RunSettings,
    ) -> Self {
        let n_jobs = workload.jobs.len();
        let (first, past) = settings.window.unwrap_or((0, n_jobs as u32));
        let mut scheduler = Scheduler::new(
            Arc::clone(&cluster),
            settings.guards.clone(),
            settings.round,
            workload.datasets.clone(),
        );
        scheduler.name_tenants(&workload.tenants);
        Simulation {
            n_window_left: (past as usize).min(n_jobs).saturating_sub(first as usize),
            gpus_up: cluster.n_gpus(),
            scheduler,
            world: World::new(cluster, Arc::clone(&workload), faults, settings.ends_as_recorded),
            recorder: Recorder::new(n_jobs, settings.keeps_timeline),
            digest: Digest::default(),
            now: Time(i64::MIN),
            down: 0,
            down_since: Time(i64::MIN),
            wake: Wake::NextRound,
            is_changed: false,
            last_decision: None,
            n_decisions: 0,
            n_ended: 0,
            n_idle: 0,
            n_stalled: 0,
            reports: Vec::new(),
            orders: Vec::new(),
            settings,
            policy,
            workload,
        }
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        Progress {
            now: self.now,
            n_ended: self.n_ended,
            n_jobs: self.workload.jobs.len(),
            n_decisions: self.n_decisions,
        }
    }

    /// Goes on to the next round and decides it; false when the run is over.
    pub fn step(&mut self) -> Result<bool, SimulationError> {
        loop {
            let is_given_up = self.n_idle > self.settings.max_idle_rounds
                || self.n_stalled > self.settings.max_stalled_rounds;
            if self.n_window_left == 0 || is_given_up {
                return Ok(false);
            }
            let round = self.next_round();
            match (self.world.next_time(), round) {
                (Some(event), Some(round)) if event > round => return self.decide(round).map(|()| true),
                (None, Some(round)) => return self.decide(round).map(|()| true),
                (Some(event), _) => self.absorb(event),
                (None, None) => return Ok(false),
            }
        }
    }

    /// When the policy is asked next, if nothing happens before.
    fn next_round(&self) -> Option<Time> {
        if self.scheduler.jobs().is_empty() {
            return None;
        }
        let (origin, round) = (self.settings.first_round, self.settings.round);
        let earliest = self.last_decision.map_or(Time(i64::MIN), |last| last + round);
        let soonest = self.now.max(earliest).align_up(origin, round);
        if self.is_changed || !self.settings.skips_rounds {
            return Some(soonest);
        }
        match self.wake {
            Wake::NextRound => Some(soonest),
            Wake::OnChange => None,
            Wake::AtOrOnChange(time) => Some(soonest.max(time.align_up(origin, round))),
        }
    }

    /// Takes in everything that happens at `time`.
    fn absorb(&mut self, time: Time) {
        self.now = time;
        while let Some(event) = self.world.pop(time) {
            self.take_in(&event);
        }
    }

    fn take_in(&mut self, event: &Event) {
        self.digest.event(self.now, event);
        let mut orders = std::mem::take(&mut self.orders);
        if self.scheduler.handle(self.now, event, &mut orders) == Impact::Changed {
            self.is_changed = true;
            (self.n_idle, self.n_stalled) = (0, 0);
        }
        self.recorder.event(self.now, event);
        match event {
            Event::JobFinished { job, .. } | Event::JobFailed { job, .. } => self.count_end(job.0),
            Event::NodeLost { .. }
            | Event::NodeReturned { .. }
            | Event::GpuLost { .. }
            | Event::GpuReturned { .. } => {
                let (nodes, states) = (self.scheduler.cluster().nodes(), self.scheduler.nodes());
                self.down += self.gpu_time_down();
                self.down_since = self.now;
                self.gpus_up = nodes.iter().map(|node| states.usable(node).len()).sum();
            }
            _ => {}
        }
        self.carry_out(&orders);
        orders.clear();
        self.orders = orders;
    }

    /// GPU time that was down since the last time it was counted.
    fn gpu_time_down(&self) -> i128 {
        let n_down = self.scheduler.cluster().n_gpus().saturating_sub(self.gpus_up);
        i128::from(n_down) * i128::from((self.now.0).saturating_sub(self.down_since.0))
    }

    fn count_end(&mut self, job: u32) {
        self.n_ended += 1;
        self.recorder.left(self.workload.jobs[job as usize].gpus.asked);
        let (first, past) = self.settings.window.unwrap_or((0, u32::MAX));
        if (first..past).contains(&job) {
            self.n_window_left -= 1;
        }
    }

    /// Hands orders to the world and takes in what it reports back.
    fn carry_out(&mut self, orders: &[Command]) {
        for command in orders {
            self.digest.command(self.now, command);
            self.recorder.command(self.now, command, self.scheduler.jobs(), self.scheduler.cluster());
            if let Command::Decline { job, .. } = command {
                self.count_end(job.0);
            }
            let mut reports = std::mem::take(&mut self.reports);
            self.world.apply(self.now, command, &mut reports);
            for report in reports.drain(..) {
                self.digest.event(self.now, &report);
                self.scheduler.handle(self.now, &report, &mut Vec::new());
            }
            self.reports = reports;
        }
    }

    fn decide(&mut self, now: Time) -> Result<(), SimulationError> {
        self.count_skipped(now);
        self.now = now;
        let decision = self.n_decisions;
        let snapshot = self.scheduler.snapshot(now);
        let Decision { checked, wake, notes } =
            round::decide(&snapshot, self.policy).map_err(|error| match error {
                RoundError::Policy(error) => SimulationError::Policy { now, decision, error },
                RoundError::Violation(violation) => SimulationError::Violation { now, decision, violation },
            })?;
        drop(snapshot);
        let commands = self.scheduler.commit(now, checked);
        self.carry_out(&commands);
        if self.settings.is_paranoid {
            self.scheduler.assert_sane();
        }
        self.recorder.decided(now, self.scheduler.jobs(), self.gpus_up, commands.len(), notes);
        let is_idle =
            self.scheduler.jobs().n_running() == 0 && commands.is_empty() && self.world.next_time().is_none();
        self.n_idle = if is_idle { self.n_idle + 1 } else { 0 };
        self.n_stalled += 1;
        self.wake = wake;
        self.is_changed = !commands.is_empty();
        self.last_decision = Some(now);
        self.n_decisions += 1;
        Ok(())
    }

    fn count_skipped(&mut self, now: Time) {
        if let Some(last) = self.last_decision {
            self.recorder.skipped(((now - last).0 / self.settings.round.0 - 1).max(0) as u64);
        }
    }

    /// Ends the run and returns its ledger.
    pub fn close(self) -> Ledger {
        let jobs = self.scheduler.jobs();
        let why = |job| match jobs.row(job).map(|row| jobs.phase(row)) {
            None => "had not arrived when the run ended".to_owned(),
            Some(JobPhase::Running) => "was running when the run ended".to_owned(),
            Some(JobPhase::Asking) => "was never admitted".to_owned(),
            Some(JobPhase::Waiting) => "was waiting when the run ended".to_owned(),
        };
        let down = self.down + self.gpu_time_down();
        Ledger {
            data: self.world.data_use(self.now),
            faults: self.world.fault_use(self.now).map(|found| FaultUse { down, ..found }),
            ..self.recorder.close(self.now, self.digest.hex(), why)
        }
    }
}

/// Admits every job that asks: for policies without admission control.
pub fn admit_all(snapshot: &Snapshot, plan: &mut Plan) {
    let jobs = &snapshot.jobs;
    if jobs.n_asking() == 0 {
        return;
    }
    let mut asking: Vec<_> =
        (0..jobs.len()).filter(|row| jobs.phase(*row) == JobPhase::Asking).map(|row| jobs.id(row)).collect();
    asking.sort_unstable();
    plan.verdicts.extend(asking.into_iter().map(|job| (job, Verdict::Admit)));
}
