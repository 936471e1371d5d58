//! One run ahead from a snapshot: jobs end when their estimates, with an error drawn for each, say so; rounds are held as the head
//! holds them. No I/O; the only clock is the caller's, which says when to stop.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution as _, LogNormal};
use rota_core::allocation::Allocation;
use rota_core::event::{Command, Event};
use rota_core::ids::{Incarnation, JobId, NodeId};
use rota_core::plan::Wake;
use rota_core::policy::Policy;
use rota_core::round::{self, RoundError};
use rota_core::scheduler::Scheduler;
use rota_core::snapshot::Snapshot;
use rota_core::table::{JobPhase, JobTable};
use rota_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// A job that has already done more than its estimate has at least this part of it left.
const LEAST_LEFT: f64 = 0.02;
/// How often an error is drawn anew for a job that has done more already.
const MOST_DRAWS: usize = 16;
/// The spread is wider than that of estimates by this part of the wait.
const SLACK: f64 = 0.02;

/// How rounds are held, and how far ahead is looked. All times are those of the head's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AheadRules {
    /// Time between rounds.
    pub round: Span,
    /// Whether rounds are held only when they are due.
    pub is_on_grid: bool,
    /// A job that has run for less is not preempted.
    pub min_run: Span,
    /// The least time between two rounds.
    pub gap: Span,
    /// When the next round is due; none before something happens.
    pub next_round: Option<Time>,
    /// From a decision until a job runs.
    pub start_delay: Span,
    /// The longest that this took lately.
    pub most_delay: Span,
    /// How far ahead.
    pub horizon: Span,
}

impl AheadRules {
    /// Rounds at this distance, and nothing else.
    pub fn every(round: Span) -> Self {
        AheadRules {
            round,
            is_on_grid: false,
            min_run: Span::ZERO,
            gap: Span::ZERO,
            next_round: None,
            start_delay: Span::ZERO,
            most_delay: Span::ZERO,
            horizon: Span::from_secs(30 * 86_400),
        }
    }

    /// By how much a spread is wider than that of estimates: starting takes longer or shorter, and rounds move.
    pub(super) fn slack(&self, wait: Span) -> Span {
        let of_rounds = if self.is_on_grid { self.round } else { self.gap };
        let of_wait = Span((wait.0.max(0) as f64 * SLACK) as i64);
        Span(of_rounds.0 + of_wait.0 + (self.most_delay.0 - self.start_delay.0).max(self.start_delay.0 / 2))
    }
}

/// How far estimates are off: standard deviations of the logarithm of real over estimated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// Of jobs with a model: their work is known, their speed by a profile.
    pub profiled: f64,
    /// Of jobs whose run time somebody guessed.
    pub guessed: f64,
}

/// What a run saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Jobs that waited at its beginning.
    pub waited: Vec<JobId>,
    /// When those of them first ran.
    pub starts: Vec<(JobId, Time)>,
    /// When those of them ended, or will by what they hold.
    pub ends: Vec<(JobId, Time)>,
    /// GPUs in use, at each change.
    pub busy: Vec<(Time, u32)>,
    /// Jobs that wait, at each change.
    pub waiting: Vec<(Time, u32)>,
    /// Until then it looked.
    pub until: Time,
}

/// What a run needs to know of a job.
#[derive(Clone, Copy, Debug)]
struct Life {
    /// What it will really have done at its end, as this run has it.
    work: f64,
    done: f64,
    rate: f64,
    works_from: Time,
    incarnation: Incarnation,
    /// Changes with every change of speed, so that obsolete ends are recognised.
    version: u32,
}

/// Looks ahead until every job that waited has started, or the horizon, or `is_over`.
pub fn look_ahead(
    snapshot: &Snapshot,
    policy: &mut dyn Policy,
    rules: &AheadRules,
    errors: Errors,
    seed: u64,
    is_over: impl Fn() -> bool,
) -> Result<Seen, RoundError> {
    let mut run = Run::new(snapshot, rules, errors, seed);
    let until = snapshot.now + rules.horizon;
    while !run.open.is_empty() && !is_over() {
        let Some(next) = run.next(until) else {
            run.now = until;
            break;
        };
        match next {
            Next::End(at, job) => run.end(at, job),
            Next::Round(at) => run.round(at, policy)?,
        }
    }
    Ok(run.close())
}

enum Next {
    End(Time, JobId),
    Round(Time),
}

struct Run<'a> {
    rules: &'a AheadRules,
    scheduler: Scheduler,
    lives: BTreeMap<JobId, Life>,
    ends: BinaryHeap<Reverse<(Time, JobId, u32)>>,
    /// Jobs that waited at the beginning and have not started.
    open: BTreeSet<JobId>,
    seen: Seen,
    now: Time,
    /// When the first round is due.
    first: Option<Time>,
    last_round: Option<Time>,
    last_slot: Option<i64>,
    changed: Option<Time>,
    is_woken: bool,
    wake: Wake,
}

impl<'a> Run<'a> {
    fn new(snapshot: &Snapshot, rules: &'a AheadRules, errors: Errors, seed: u64) -> Self {
        let mut scheduler = Scheduler::new(
            snapshot.cluster.clone(),
            (*snapshot.guards).clone(),
            snapshot.round,
            snapshot.nodes.datasets.clone(),
        )
        .restored((*snapshot.jobs).clone(), JobTable::default(), (*snapshot.nodes).clone());
        scheduler.name_tenants(&snapshot.tenants);
        let mut run = Run {
            rules,
            scheduler,
            lives: BTreeMap::new(),
            ends: BinaryHeap::new(),
            open: BTreeSet::new(),
            seen: Seen::default(),
            now: snapshot.now,
            first: rules.next_round,
            last_round: None,
            last_slot: None,
            changed: None,
            is_woken: false,
            wake: Wake::OnChange,
        };
        let jobs = &snapshot.jobs;
        for row in 0..jobs.len() {
            let (id, spec) = (jobs.id(row), jobs.spec(row));
            let done = jobs.done_at(row, snapshot.now);
            let error = if spec.profile.name.is_empty() { errors.guessed } else { errors.profiled };
            let life = Life {
                work: really(spec.estimated_work, done, error, seed, id),
                done,
                rate: 0.0,
                works_from: snapshot.now,
                incarnation: jobs.incarnation(row),
                version: 0,
            };
            run.lives.insert(id, life);
            match jobs.phase(row) {
                JobPhase::Running => {
                    let rate = spec.rate(jobs.allocation(row), &snapshot.cluster);
                    run.works(id, snapshot.now, rate);
                }
                JobPhase::Asking | JobPhase::Waiting => {
                    run.open.insert(id);
                }
            }
        }
        run.seen.waited = run.open.iter().copied().collect();
        run.sample();
        run
    }

    /// What happens next, if it does so before the horizon.
    fn next(&mut self, until: Time) -> Option<Next> {
        while let Some(Reverse((_, job, version))) = self.ends.peek() {
            if self.lives.get(job).is_some_and(|life| life.version == *version) {
                break;
            }
            self.ends.pop();
        }
        let end = self.ends.peek().map(|Reverse((at, job, _))| (*at, *job));
        let next = match (end, self.next_round()) {
            (Some((at, job)), Some(round)) if at <= round => Next::End(at, job),
            (_, Some(round)) => Next::Round(round),
            (Some((at, job)), None) => Next::End(at, job),
            (None, None) => return None,
        };
        let (Next::End(at, _) | Next::Round(at)) = &next;
        (*at <= until).then_some(next)
    }

    /// When the next round is due, by the rules of the head's timer.
    fn next_round(&self) -> Option<Time> {
        if self.scheduler.jobs().is_empty() {
            return None;
        }
        let not_before = self.last_round.map_or(self.now, |last| last + self.rules.gap).max(self.now);
        if self.last_round.is_none() && !self.is_woken {
            return self.first.map(|at| at.max(self.now));
        }
        let on_grid = |time: Time| time.align_up(Time::ZERO, self.rules.round).max(not_before);
        let after_last = self.last_round.map_or(self.now, |last| last + Span(1));
        if !self.rules.is_on_grid && self.is_woken {
            return Some(not_before);
        }
        if let Some(changed) = self.changed {
            return Some(on_grid(after_last.max(changed)));
        }
        match self.wake {
            Wake::NextRound => Some(on_grid(after_last)),
            Wake::OnChange => None,
            Wake::AtOrOnChange(time) => Some(on_grid(after_last.max(time))),
        }
    }

    fn end(&mut self, at: Time, job: JobId) {
        self.ends.pop();
        self.now = at;
        let Some(life) = self.lives.remove(&job) else { return };
        let event = Event::JobFinished { job, incarnation: life.incarnation };
        self.scheduler.handle(at, &event, &mut Vec::new());
        if self.seen.waited.binary_search(&job).is_ok() {
            self.seen.ends.push((job, at));
        }
        self.changed.get_or_insert(at);
        self.is_woken = true;
        self.sample();
    }

    fn round(&mut self, at: Time, policy: &mut dyn Policy) -> Result<(), RoundError> {
        self.now = at;
        let slot = at.0.div_euclid(self.rules.round.0.max(1));
        // A round that was brought forward preempts no job younger than a round.
        let min_run = match self.last_slot.replace(slot) == Some(slot) {
            true => self.rules.min_run.max(self.rules.round),
            false => self.rules.min_run,
        };
        self.scheduler.set_min_run(min_run);
        let snapshot = self.scheduler.snapshot(at);
        let decided = round::decide(&snapshot, policy)?;
        drop(snapshot);
        self.wake = decided.wake;
        let commands = self.scheduler.commit(at, decided.checked);
        self.last_round = Some(at);
        self.is_woken = false;
        self.changed = (!commands.is_empty()).then_some(at);
        let freed = self.stop(at, &commands);
        for command in &commands {
            match command {
                Command::Start { job, incarnation, allocation } => {
                    self.start(at, *job, *incarnation, allocation, &freed);
                }
                Command::Resize { job, allocation, .. } => self.resize(at, *job, allocation),
                Command::Decline { job, .. } => {
                    self.lives.remove(job);
                    self.open.remove(job);
                }
                Command::Admit { .. } | Command::Stop { .. } => {}
            }
        }
        if !commands.is_empty() {
            self.sample();
        }
        Ok(())
    }

    /// Stops what a plan stops; the nodes on which something has to end first.
    fn stop(&mut self, at: Time, commands: &[Command]) -> BTreeSet<NodeId> {
        let mut freed = BTreeSet::new();
        for command in commands {
            let Command::Stop { job, .. } = command else { continue };
            self.count(*job, at);
            if let Some(life) = self.lives.get_mut(job) {
                (life.rate, life.version) = (0.0, life.version + 1);
            }
            freed.extend(self.scheduler.cluster().nodes().iter().map(|node| node.id));
        }
        freed
    }

    fn start(
        &mut self,
        at: Time,
        job: JobId,
        incarnation: Incarnation,
        allocation: &Allocation,
        freed: &BTreeSet<NodeId>,
    ) {
        let jobs = self.scheduler.jobs();
        let Some(row) = jobs.row(job) else { return };
        let (rate, costs) =
            (jobs.spec(row).rate(allocation, self.scheduler.cluster()), jobs.spec(row).costs());
        let has_to_wait = allocation.slices.iter().any(|slice| freed.contains(&slice.node));
        let stopping = if has_to_wait { self.rules.start_delay } else { Span::ZERO };
        let runs_from = at + self.rules.start_delay + stopping;
        let again = if incarnation.0 > 1 { costs.restart_and_checkpoint() } else { Span::ZERO };
        if let Some(life) = self.lives.get_mut(&job) {
            life.incarnation = incarnation;
        }
        self.works(job, runs_from + again, rate);
        if self.open.remove(&job) {
            self.seen.starts.push((job, runs_from));
        }
    }

    fn resize(&mut self, at: Time, job: JobId, allocation: &Allocation) {
        let jobs = self.scheduler.jobs();
        let Some(row) = jobs.row(job) else { return };
        let rate = jobs.spec(row).rate(allocation, self.scheduler.cluster());
        self.count(job, at);
        let from = self.lives.get(&job).map_or(at, |life| life.works_from.max(at));
        self.works(job, from, rate);
    }

    /// Adds the work done up to a time at the rate so far.
    fn count(&mut self, job: JobId, at: Time) {
        if let Some(life) = self.lives.get_mut(&job) {
            let worked = (at - life.works_from).as_secs_f64().max(0.0);
            life.done = (life.done + worked * life.rate).min(life.work);
            life.works_from = life.works_from.max(at);
        }
    }

    /// From a time on a job works at a rate; its end is noted.
    fn works(&mut self, job: JobId, from: Time, rate: f64) {
        let Some(life) = self.lives.get_mut(&job) else { return };
        (life.rate, life.works_from) = (rate, from);
        life.version += 1;
        if rate > 0.0 {
            let left = Span::from_secs_f64(((life.work - life.done).max(0.0) / rate).min(1e10));
            self.ends.push(Reverse((from + left, job, life.version)));
        }
    }

    fn sample(&mut self) {
        let jobs = self.scheduler.jobs();
        let busy = (0..jobs.len()).map(|row| jobs.allocation(row).n_gpus()).sum();
        let waiting = (jobs.len() - jobs.n_running()) as u32;
        for (samples, value) in [(&mut self.seen.busy, busy), (&mut self.seen.waiting, waiting)] {
            match samples.last_mut() {
                Some(last) if last.0 == self.now => last.1 = value,
                Some(last) if last.1 == value => {}
                _ => samples.push((self.now, value)),
            }
        }
    }

    fn close(mut self) -> Seen {
        self.seen.until = self.now;
        // What runs will end, if it keeps what it holds.
        for (job, life) in &self.lives {
            let is_meant = self.seen.waited.binary_search(job).is_ok() && life.rate > 0.0;
            if is_meant {
                let left = Span::from_secs_f64(((life.work - life.done).max(0.0) / life.rate).min(1e10));
                self.seen.ends.push((*job, life.works_from + left));
            }
        }
        self.seen
    }
}

/// What a job will have done at its end: its estimate with an error that is drawn from the seed and its number, in so far as it has
/// not done more already.
pub(super) fn really(estimated: f64, done: f64, error: f64, seed: u64, job: JobId) -> f64 {
    let least = done + LEAST_LEFT * estimated;
    let Ok(errors) = LogNormal::new(0.0, error.clamp(0.0, 3.0)) else { return estimated.max(least) };
    let mut random = ChaCha8Rng::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(job.0));
    let mut draw = || estimated * errors.sample(&mut random);
    (0..MOST_DRAWS).map(|_| draw()).find(|work| *work > done).unwrap_or(least)
}
