//! The clock, the lists of jobs, and what all steps of a tick share.

use std::collections::VecDeque;

use rota_core::cluster::Cluster;
use rota_core::workload::Workload;
use rota_solvers::Solver;

use super::job::{Job, jobs_of};
use super::machines::Machines;
use super::record::Run;
use super::{ArtifactError, ChronusSettings, Defect, Objective, Placement, PowerSaving};
use crate::artifact::track::{Holder, Track};

/// Ticks in a row without a running job or an arrival to come after which nothing will start any more.
const MOST_IDLE_TICKS: u32 = 100_000;

/// The original's scheduler and simulator, which are one.
pub(super) struct Simulator<'a> {
    pub(super) jobs: Vec<Job>,
    pub(super) n_arrived: usize,
    /// In the original's list order, which decides ties.
    pub(super) pending: Vec<usize>,
    pub(super) running: Vec<usize>,
    pub(super) machines: Machines,
    /// Number of the lease after the current one.
    pub(super) index: i64,
    /// GPUs of the leases to come as far as they are fewer than all.
    pub(super) capacity: VecDeque<i64>,
    pub(super) guaranteed: u32,
    pub(super) spot: u32,
    pub(super) n_unaccepted: usize,
    pub(super) mode: Objective,
    pub(super) is_full_power: bool,
    pub(super) settings: ChronusSettings<'a>,
    pub(super) solver: &'a mut dyn Solver,
    pub(super) run: Run,
    pub(super) track: Track,
}

impl<'a> Simulator<'a> {
    pub(super) fn new(
        cluster: &Cluster,
        workload: &Workload,
        settings: &ChronusSettings<'a>,
        solver: &'a mut dyn Solver,
    ) -> Result<Self, ArtifactError> {
        let ChronusSettings { lease, check, slot, .. } = *settings;
        if lease < 1 {
            return Err(ArtifactError::Lease { lease });
        }
        if check < 1 || slot % check != 0 {
            return Err(ArtifactError::Ticks { check, slot });
        }
        if settings.placement == Placement::LocalSearch && !settings.has_profile {
            return Err(ArtifactError::NoProfile);
        }
        let machines = Machines::of(cluster)?;
        let jobs = jobs_of(cluster, workload, settings)?;
        Ok(Simulator {
            track: Track::new(jobs.len(), machines.n_gpus(), settings.keeps_timeline),
            jobs,
            n_arrived: 0,
            pending: Vec::new(),
            running: Vec::new(),
            index: 0,
            capacity: VecDeque::new(),
            guaranteed: 0,
            spot: machines.n_gpus(),
            machines,
            n_unaccepted: 0,
            mode: settings.objective,
            is_full_power: false,
            settings: *settings,
            solver,
            run: Run::default(),
        })
    }

    pub(super) fn run(mut self) -> Result<Run, ArtifactError> {
        let ChronusSettings { lease, check, slot, power, .. } = self.settings;
        let (mut now, mut n_idle) = (0, 0);
        while self.n_arrived < self.jobs.len() || !self.pending.is_empty() || !self.running.is_empty() {
            if power != PowerSaving::Off {
                self.switch_power(now);
            }
            self.credit_running(now)?;
            if now % lease == 0 {
                self.lease(now)?;
                self.capacity.pop_front();
            }
            if now % slot == 0 {
                self.admit(now)?;
                self.start_pending(now)?;
                self.write_down(now);
            }
            let fills = if self.settings.has(Defect::OddTicks) { now % 2 != 0 } else { now % slot != 0 };
            if fills && self.fill(now)? {
                self.write_down(now);
            }
            let is_idle = self.running.is_empty() && self.n_arrived == self.jobs.len();
            n_idle = if is_idle { n_idle + 1 } else { 0 };
            if n_idle > MOST_IDLE_TICKS {
                let why = format!("{} jobs wait and none can be placed", self.pending.len());
                return Err(ArtifactError::Aborts { time: now, why });
            }
            now += check;
        }
        self.run.close(self.jobs, self.settings.unit, self.track);
        Ok(self.run)
    }

    /// Who holds what after a decision.
    fn write_down(&mut self, now: i64) {
        let holder = |job: &usize| {
            let (it, job) = (&self.jobs[*job], *job as u32);
            Holder {
                job,
                gpus: it.gpus,
                worth: f64::from(it.gpus),
                slices: it.places.iter().copied().collect(),
            }
        };
        let holders = self.running.iter().map(holder).collect();
        let there = self.pending.iter().chain(&self.running);
        let asked = there.map(|job| u64::from(self.jobs[*job].gpus)).sum();
        self.track.round(self.settings.time(now as f64), holders, self.pending.len() as u32, asked);
    }

    /// GPUs of a lease to come; 0 is the next.
    pub(super) fn capacity_of(&self, lease: usize) -> i64 {
        let all = i64::from(self.machines.n_nodes() * self.machines.gpus_per_node);
        self.capacity.get(lease).copied().unwrap_or(all)
    }

    /// Starts those of these jobs that fit the free GPUs, one after another.
    pub(super) fn fitting(&self, jobs: &[usize]) -> Vec<usize> {
        let mut free = self.machines.n_free();
        let fits = |job: &&usize| {
            let fits = self.jobs[**job].gpus <= free;
            free -= if fits { self.jobs[**job].gpus } else { 0 };
            fits
        };
        jobs.iter().filter(fits).copied().collect()
    }

    /// Places jobs and returns those that found a place, in the order given. Local search takes the widest first.
    pub(super) fn place(&mut self, jobs: &[usize], now: i64) -> Result<Vec<usize>, ArtifactError> {
        let placement = self.settings.placement;
        let mut order = jobs.to_vec();
        if placement == Placement::LocalSearch {
            order.sort_by_key(|&job| std::cmp::Reverse(self.jobs[job].gpus));
        }
        for job in order {
            let gpus = self.jobs[job].gpus;
            let placed = self.machines.place(placement, gpus);
            let placed = placed.map_err(|why| ArtifactError::Aborts { time: now, why: why.to_owned() })?;
            if let Some(places) = placed {
                self.jobs[job].places = places;
                self.jobs[job].start.get_or_insert(now);
            }
        }
        Ok(jobs.iter().filter(|&&job| !self.jobs[job].places.is_empty()).copied().collect())
    }

    /// From the pending list to the end of the running one.
    pub(super) fn move_to_running(&mut self, jobs: &[usize]) {
        let mut moves = vec![false; self.n_arrived];
        jobs.iter().for_each(|&job| moves[job] = true);
        self.pending.retain(|&job| !moves[job]);
        self.running.extend_from_slice(jobs);
    }

    pub(super) fn release(&mut self, job: usize) {
        let places = std::mem::take(&mut self.jobs[job].places);
        self.machines.release(&places);
    }

    /// Counts starts and stops against the jobs that ran before.
    pub(super) fn count_changes(&mut self, ran_before: &[usize]) {
        let mut has_run = vec![false; self.n_arrived];
        ran_before.iter().for_each(|&job| has_run[job] = true);
        for &job in &self.running {
            self.jobs[job].n_resumes += u32::from(!has_run[job]);
        }
        for &job in &self.pending {
            self.jobs[job].n_preempts += u32::from(has_run[job]);
        }
    }

    pub(super) fn aborts<T>(&self, time: i64, why: impl Into<String>) -> Result<T, ArtifactError> {
        Err(ArtifactError::Aborts { time, why: why.into() })
    }
}
