//! The simulated world: the only place that knows how long jobs really take and when nodes will fail.
//!
//! It produces events from the workload, the faults and the commands it is given. Policies never see it.

use std::sync::Arc;

use crate::allocation::Allocation;
use crate::cache::Caches;
use crate::cluster::Cluster;
use crate::event::{Command, Event, StopCause};
use crate::fault::{Change, Fault};
use crate::ids::{Incarnation, JobId};
use crate::job::JobSpec;
use crate::ledger::{DataUse, FaultUse};
use crate::losses::{Losses, Stopped};
use crate::queue::EventQueue;
use crate::running::mates::Mates;
use crate::running::slow_nodes::SlowNodes;
use crate::time::{Span, Time};
use crate::workload::Workload;

/// What really happens.
#[derive(Debug)]
pub struct World {
    cluster: Arc<Cluster>,
    workload: Arc<Workload>,
    lives: Vec<Life>,
    ends: EventQueue,
    n_arrived: usize,
    faults: Vec<Fault>,
    n_faults: usize,
    /// Whether the last failure took the checkpoints of the jobs it hit.
    loses_checkpoints: bool,
    ends_as_recorded: bool,
    /// Kept where something can fail.
    losses: Option<Losses>,
    /// Kept where nodes become slow.
    slow_nodes: Option<SlowNodes>,
    mates: Mates,
    caches: Caches,
}

/// A job's real progress.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// Iterations done when `rate` began to apply.
    done: f64,
    /// Iterations per second from `works_from` on; 0 while it does not run.
    rate: f64,
    works_from: Time,
    /// Where the current launch began, in iterations and time: checkpoints count from here.
    launched: (f64, Time),
    incarnation: Incarnation,
    /// Changes with every change of speed, so that obsolete ends are recognised.
    version: u32,
}

impl World {
    /// A world in which nothing has happened. Faults must ascend in time.
    pub fn new(
        cluster: Arc<Cluster>,
        workload: Arc<Workload>,
        faults: Vec<Fault>,
        ends_as_recorded: bool,
    ) -> Self {
        let slows = faults.iter().any(|fault| matches!(fault.change, Change::Slows { .. }));
        let can_fail = !faults.is_empty() || ends_as_recorded;
        let caches = Caches::new(&cluster, &workload.datasets);
        let lives = vec![Life::default(); workload.jobs.len()];
        World {
            losses: can_fail.then(|| Losses::new(workload.jobs.len())),
            slow_nodes: slows.then(|| SlowNodes::new(cluster.nodes().len())),
            loses_checkpoints: false,
            ends_as_recorded,
            cluster,
            workload,
            lives,
            ends: EventQueue::default(),
            n_arrived: 0,
            faults,
            n_faults: 0,
            mates: Mates::default(),
            caches,
        }
    }

    /// How jobs got their data until `now`; nothing when no job reads a data set.
    pub fn data_use(&self, now: Time) -> Option<DataUse> {
        self.caches.data_use(now)
    }

    /// What failures cost until `now`; nothing when nothing can fail. How long nodes were down is not known here.
    pub fn fault_use(&self, now: Time) -> Option<FaultUse> {
        self.losses.as_ref().map(|losses| losses.close(now))
    }

    /// When the next thing happens by itself.
    pub fn next_time(&mut self) -> Option<Time> {
        let arrival = self.workload.jobs.get(self.n_arrived).map(|j| j.arrival);
        let fault = self.faults.get(self.n_faults).map(|f| f.time);
        let lives = &self.lives;
        let end = self.ends.peek(|job, version| lives[job.index()].version == version).map(|(time, _)| time);
        [end, fault, arrival].into_iter().flatten().min()
    }

    /// The next event at `now`, if one is due: ends first, then faults, then arrivals.
    pub fn pop(&mut self, now: Time) -> Option<Event> {
        let lives = &self.lives;
        if let Some((time, job)) = self.ends.peek(|job, version| lives[job.index()].version == version)
            && time <= now
        {
            self.ends.pop();
            return Some(self.end(job, time));
        }
        while let Some(fault) = self.faults.get(self.n_faults).filter(|f| f.time <= now).copied() {
            self.n_faults += 1;
            if let Some(event) = self.fail(&fault) {
                return Some(event);
            }
        }
        let job = self.workload.jobs.get(self.n_arrived).filter(|j| j.arrival <= now)?;
        self.n_arrived += 1;
        Some(Event::JobSubmitted(Arc::clone(job)))
    }

    fn end(&mut self, job: JobId, time: Time) -> Event {
        let truth = self.workload.truths[job.index()];
        let life = &mut self.lives[job.index()];
        (life.done, life.rate, life.version) = (truth.work, 0.0, life.version + 1);
        let incarnation = life.incarnation;
        self.caches.end(job, time);
        let is_premature = self.ends_as_recorded && truth.end.is_premature();
        if let Some(losses) = &mut self.losses {
            losses.ended(job, time, life.launched.1, is_premature);
        }
        if let Some(slow_nodes) = &mut self.slow_nodes {
            slow_nodes.leave(job);
        }
        self.part(job, time);
        match is_premature {
            true => Event::JobFailed { job, incarnation, end: truth.end },
            false => Event::JobFinished { job, incarnation },
        }
    }

    /// Something fails or recovers; the scheduler learns of it unless a node only becomes slow or fast.
    fn fail(&mut self, fault: &Fault) -> Option<Event> {
        let node = fault.node;
        let losses = self.losses.as_mut()?;
        match fault.change {
            Change::NodeFails { loses_checkpoints } => {
                self.loses_checkpoints = loses_checkpoints;
                losses.count(|found| found.node_failures += 1);
                Some(Event::NodeLost { node })
            }
            Change::GpuFails { gpu, loses_checkpoints } => {
                self.loses_checkpoints = loses_checkpoints;
                losses.count(|found| found.gpu_failures += 1);
                Some(Event::GpuLost { node, gpu })
            }
            Change::NodeReturns => Some(Event::NodeReturned { node }),
            Change::GpuReturns { gpu } => Some(Event::GpuReturned { node, gpu }),
            Change::Slows { to } => {
                losses.count(|found| found.slowdowns += u64::from(to < 1.0));
                let hit = self.slow_nodes.as_mut().map(|slow| slow.change(node, to)).unwrap_or_default();
                for (job, rate) in hit {
                    self.count(job, fault.time);
                    self.set_rate(job, rate);
                }
                None
            }
        }
    }

    /// Carries out a command at once; what is reported back right away is appended to `reports`.
    pub fn apply(&mut self, now: Time, command: &Command, reports: &mut Vec<Event>) {
        match command {
            Command::Admit { .. } | Command::Decline { .. } => {}
            Command::Start { job, incarnation, allocation } => {
                let spec = Arc::clone(&self.workload.jobs[job.index()]);
                let costs = spec.costs();
                let again = if incarnation.0 > 1 { costs.restart_and_checkpoint() } else { Span::ZERO };
                let fetch = self.caches.begin(*job, spec.dataset, allocation, now, reports);
                let life = &mut self.lives[job.index()];
                life.incarnation = *incarnation;
                life.works_from = now + again + fetch;
                life.launched = (life.done, life.works_from);
                if let Some(losses) = &mut self.losses {
                    losses.started(*job, now, allocation);
                }
                self.join(*job, allocation, now);
                let rate = self.slowed(*job, allocation, self.rate(*job, allocation));
                self.set_rate(*job, rate);
            }
            Command::Resize { job, allocation, .. } => {
                self.part(*job, now);
                self.join(*job, allocation, now);
                let rate = self.slowed(*job, allocation, self.rate(*job, allocation));
                let pace = self.workload.truths[job.index()].pace;
                if rate * pace != self.lives[job.index()].rate {
                    self.count(*job, now);
                    self.set_rate(*job, rate);
                }
            }
            Command::Stop { job, incarnation, cause } => {
                self.caches.end(*job, now);
                self.count(*job, now);
                let spec = Arc::clone(&self.workload.jobs[job.index()]);
                let life = &mut self.lives[job.index()];
                let (had, is_failure) = (life.done, *cause == StopCause::NodeLost);
                let mut survives = Span((now - life.launched.1).0.max(0));
                if is_failure {
                    (life.done, survives) = match self.loses_checkpoints {
                        true => (0.0, Span::ZERO),
                        false => surviving(life, &spec, now),
                    };
                }
                (life.rate, life.version) = (0.0, life.version + 1);
                if let Some(losses) = &mut self.losses {
                    let (works_from, left) = (life.launched.1, life.done);
                    losses.stopped(*job, &Stopped { now, works_from, survives, had, left, is_failure });
                }
                if let Some(slow_nodes) = &mut self.slow_nodes {
                    slow_nodes.leave(*job);
                }
                self.part(*job, now);
                let done = self.lives[job.index()].done;
                reports.push(Event::JobStopped { job: *job, incarnation: *incarnation, done });
            }
        }
    }

    /// Iterations per second with an allocation, beside the job that has the same GPUs if there is one.
    fn rate(&self, job: JobId, allocation: &Allocation) -> f64 {
        let spec = &self.workload.jobs[job.index()];
        match self.mates.of(job) {
            Some(mate) => spec.rate_beside(&self.workload.jobs[mate.index()], allocation, &self.cluster),
            None => spec.rate(allocation, &self.cluster),
        }
    }

    /// A job has these GPUs from now on; the one that has them already is slower beside it.
    fn join(&mut self, job: JobId, allocation: &Allocation, now: Time) {
        if let Some(mate) = self.mates.join(job, allocation) {
            self.work_anew(mate, now);
        }
    }

    /// A job no longer has its GPUs; the one that stays there is as fast as alone.
    fn part(&mut self, job: JobId, now: Time) {
        if let Some(mate) = self.mates.leave(job) {
            self.work_anew(mate, now);
        }
    }

    fn work_anew(&mut self, job: JobId, now: Time) {
        let Some(allocation) = self.mates.held(job).cloned() else { return };
        let rate = self.slowed(job, &allocation, self.rate(job, &allocation));
        self.count(job, now);
        self.set_rate(job, rate);
    }

    /// The rate on nodes that may be slow.
    fn slowed(&mut self, job: JobId, allocation: &Allocation, rate: f64) -> f64 {
        self.slow_nodes.as_mut().map_or(rate, |slow_nodes| slow_nodes.take(job, allocation, rate))
    }

    /// Adds the work done up to `now` at the rate so far.
    fn count(&mut self, job: JobId, now: Time) {
        let work = self.workload.truths[job.index()].work;
        let life = &mut self.lives[job.index()];
        let worked = (now - life.works_from).as_secs_f64().max(0.0);
        life.done = (life.done + worked * life.rate).min(work);
        life.works_from = life.works_from.max(now);
    }

    /// From `works_from` on the job works at `rate` by its profile; its end is scheduled.
    fn set_rate(&mut self, job: JobId, rate: f64) {
        let truth = self.workload.truths[job.index()];
        let life = &mut self.lives[job.index()];
        life.rate = rate * truth.pace;
        life.version += 1;
        if life.rate > 0.0 {
            let left_micros = ((truth.work - life.done).max(0.0) / life.rate * 1e6).ceil();
            self.ends.push(life.works_from + Span(left_micros as i64), job, life.version);
        }
        if let Some(losses) = &mut self.losses {
            losses.works(job, life.works_from, life.done, life.rate);
        }
    }
}

/// Iterations and working time that survive a failure: those at the last checkpoint of this launch.
fn surviving(life: &Life, spec: &JobSpec, now: Time) -> (f64, Span) {
    let every = spec.costs().checkpoint_every;
    let (done_before, from) = life.launched;
    let ran = (now - from).0.max(0);
    if every <= Span::ZERO {
        return (life.done, Span(ran));
    }
    if ran == 0 {
        return (done_before, Span::ZERO);
    }
    let kept = ran / every.0 * every.0;
    (done_before + (life.done - done_before) * kept as f64 / ran as f64, Span(kept))
}
