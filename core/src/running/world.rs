//! The simulated world: the only place that knows how long jobs really take and when nodes will fail.
//!
//! It produces events from the workload, the faults and the commands it is given. Policies never see it.

use std::sync::Arc;

use crate::cache::Caches;
use crate::cluster::Cluster;
use crate::event::{Command, Event, StopCause};
use crate::ids::{Incarnation, JobId};
use crate::job::JobSpec;
use crate::ledger::DataUse;
use crate::queue::EventQueue;
use crate::time::{Span, Time};
use crate::workload::{Fault, Workload};

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
    pub fn new(cluster: Arc<Cluster>, workload: Arc<Workload>, faults: Vec<Fault>) -> Self {
        let caches = Caches::new(&cluster, &workload.datasets);
        let lives = vec![Life::default(); workload.jobs.len()];
        World {
            cluster,
            workload,
            lives,
            ends: EventQueue::default(),
            n_arrived: 0,
            faults,
            n_faults: 0,
            caches,
        }
    }

    /// How jobs got their data until `now`; nothing when no job reads a data set.
    pub fn data_use(&self, now: Time) -> Option<DataUse> {
        self.caches.data_use(now)
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
            let work = self.workload.truths[job.index()].work;
            let life = &mut self.lives[job.index()];
            (life.done, life.rate, life.version) = (work, 0.0, life.version + 1);
            self.caches.end(job, time);
            return Some(Event::JobFinished { job, incarnation: life.incarnation });
        }
        if let Some(fault) = self.faults.get(self.n_faults).filter(|f| f.time <= now) {
            self.n_faults += 1;
            let node = fault.node;
            return Some(if fault.is_up { Event::NodeReturned { node } } else { Event::NodeLost { node } });
        }
        let job = self.workload.jobs.get(self.n_arrived).filter(|j| j.arrival <= now)?;
        self.n_arrived += 1;
        Some(Event::JobSubmitted(Arc::clone(job)))
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
                self.set_rate(*job, spec.rate(allocation, &self.cluster));
            }
            Command::Resize { job, allocation, .. } => {
                let rate = self.workload.jobs[job.index()].rate(allocation, &self.cluster);
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
                if *cause == StopCause::NodeLost {
                    life.done = surviving(life, &spec, now);
                }
                (life.rate, life.version) = (0.0, life.version + 1);
                reports.push(Event::JobStopped { job: *job, incarnation: *incarnation, done: life.done });
            }
        }
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
    }
}

/// Iterations that survive a failure: those at the last checkpoint of this launch.
fn surviving(life: &Life, spec: &JobSpec, now: Time) -> f64 {
    let every = spec.costs().checkpoint_every;
    if every <= Span::ZERO {
        return life.done;
    }
    let (done_before, from) = life.launched;
    let ran = (now - from).0.max(0);
    if ran == 0 {
        return done_before;
    }
    let kept = ran / every.0 * every.0;
    done_before + (life.done - done_before) * kept as f64 / ran as f64
}
