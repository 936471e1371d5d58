//! The jobs a policy can decide about, as columns: one row for each job that has arrived and not ended.
//!
//! Columns are what scripts compute with, so that a key over all jobs is one pass over an array. Rows have no
//! meaningful order (the last row replaces a job that ends); code that sorts must break ties by id. `index` is where each job is,
//! `aside` what is kept of one that leaves for a while, `saved` how a table is written down, `revised` what other rules change about its jobs.

mod aside;
mod index;
mod revised;
pub(crate) mod rows;
mod saved;

pub(crate) use revised::RevisedRates;
pub use saved::{RestoreError, SavedRow, SavedTable};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::allocation::Allocation;
use crate::ids::{Incarnation, JobId};
use crate::job::JobSpec;
use crate::resources::Host;
use crate::time::{Span, Time};
use index::RowIndex;

/// The phase of a job that has arrived and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub enum JobPhase {
    /// Arrived, not yet admitted.
    Asking,
    /// Admitted, without GPUs.
    Waiting,
    /// Holding GPUs.
    Running,
}

/// A job's size for packing: GPUs, then CPUs, then memory asked for at best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u128);

impl Size {
    fn of(gpus: u32, per_gpu: &Host) -> Self {
        let demand = per_gpu.times(gpus);
        let mem_mb = (demand.mem_bytes / 1_000_000).min((1 << 40) - 1);
        Size(
            u128::from(gpus) << 96
                | u128::from(demand.cpu_micro.min((1 << 56) - 1)) << 40
                | u128::from(mem_mb),
        )
    }
}

macro_rules! columns {
    ($($(#[doc = $doc:literal])* $variant:ident => $field:ident),* $(,)?) => {
        /// A numeric column by name: what a script can read of all jobs at once.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Field { $($(#[doc = $doc])* $variant),* }

        impl Field {
            /// Every column, with its name in scripts and its meaning.
            pub const ALL: &'static [(Field, &'static str, &'static str)] =
                &[$((Field::$variant, stringify!($field), concat!($($doc),*))),*];
        }

        /// The numeric columns.
        #[derive(Clone, Debug, Default)]
        struct Columns { $($field: Vec<f64>),* }

        impl Columns {
            fn get(&self, field: Field) -> &[f64] {
                match field { $(Field::$variant => &self.$field),* }
            }

            fn get_mut(&mut self, field: Field) -> &mut [f64] {
                match field { $(Field::$variant => &mut self.$field),* }
            }

            fn push_zeros(&mut self) {
                $(self.$field.push(0.0);)*
            }

            fn swap_remove(&mut self, row: usize) {
                $(self.$field.swap_remove(row);)*
            }

            fn move_row(&mut self, row: usize, to: &mut Columns) {
                $(to.$field.push(self.$field.swap_remove(row));)*
            }

            fn truncate(&mut self, len: usize) {
                $(self.$field.truncate(len);)*
            }

            /// All values of a row, in the order of [`Field::ALL`].
            fn row(&self, row: usize) -> [f64; Field::ALL.len()] {
                [$(self.$field[row]),*]
            }
        }
    };
}

columns! {
    /// Time of submission, seconds.
    Arrival => arrival,
    /// Larger is more important.
    Priority => priority,
    /// GPUs asked for.
    Gpus => gpus,
    /// Estimated run time at the proportional share, from beginning to end, seconds.
    Duration => duration,
    /// Estimated run time left at the proportional share, seconds.
    Remaining => remaining,
    /// Time run so far, seconds.
    Attained => attained,
    /// GPU time received so far, GPU-seconds.
    Service => service,
    /// Iterations done.
    Done => done,
    /// Iterations it is thought to need in all.
    Work => work,
    /// Deadline (the first step of a soft one), seconds; infinite when there is none.
    Deadline => deadline,
    /// CPUs asked for at best, in all.
    CpuDemand => cpu_demand,
    /// Memory asked for at best, in all, gigabytes.
    MemDemand => mem_demand,
    /// Storage rate asked for at best, in all, megabytes per second.
    StorageDemand => storage_demand,
    /// How many times as fast as at its proportional share it runs with all it asks for at best.
    BestSpeed => best_speed,
    /// GPUs held now.
    Held => held,
    /// When it last started to run, or last stopped, or arrived: since when it is in its phase, seconds.
    Since => since,
    /// Number of its tenant.
    Tenant => tenant,
    /// How often it was stopped before its end.
    Preemptions => preemptions,
}

impl Field {
    /// Whether the column tells how long a job will take, which no cluster knows before its end.
    pub const fn is_estimate(self) -> bool {
        matches!(self, Field::Duration | Field::Remaining | Field::Work)
    }
}

/// Progress since a job last changed its allocation; turns into column values when a snapshot is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Pace {
    /// Values of the columns at `from`.
    attained: f64,
    service: f64,
    done: f64,
    /// From here time counts as run; progress starts later, after the costs of starting.
    from: Time,
    works_from: Time,
    /// When this launch started, how long it fetches its data from then on, and what it would cost to stop the job and start
    /// it again. All are looked at for every running job in every round; here they are in the CPU cache already.
    started: Time,
    fetch: Span,
    #[serde(skip)]
    restart: Span,
    /// Estimated iterations per second.
    rate: f64,
    /// Seconds at the proportional share for one iteration.
    #[serde(with = "saved::perhaps_infinite")]
    fair_s_per_iteration: f64,
    gpus: f64,
}

/// All jobs that have arrived and not ended.
#[derive(Clone, Debug, Default)]
pub struct JobTable {
    columns: Columns,
    /// Kept apart from the specs, so that looking up an id does not load a spec from memory.
    ids: Vec<JobId>,
    specs: Vec<Arc<JobSpec>>,
    phases: Vec<JobPhase>,
    gpus: Vec<u32>,
    demand_per_gpu: Vec<Host>,
    sizes: Vec<Size>,
    allocations: Vec<Allocation>,
    incarnations: Vec<Incarnation>,
    /// Launches have at least this number.
    first_launch: Incarnation,
    paces: Vec<Pace>,
    row_of: RowIndex,
    n_asking: usize,
    n_running: usize,
    refreshed: Option<Time>,
    estimates: Looked,
}

/// Whether anybody looked at something that is shared; a copy starts with the answer of the original.
#[derive(Debug, Default)]
struct Looked(AtomicBool);

impl Clone for Looked {
    fn clone(&self) -> Self {
        Looked(AtomicBool::new(self.0.load(Ordering::Relaxed)))
    }
}

impl JobTable {
    /// How many rows.
    pub fn len(&self) -> usize {
        self.specs.len()
    }

    /// Whether there is no job.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// How many jobs wait for admission.
    pub fn n_asking(&self) -> usize {
        self.n_asking
    }

    /// How many jobs run.
    pub fn n_running(&self) -> usize {
        self.n_running
    }

    /// A numeric column.
    pub fn column(&self, field: Field) -> &[f64] {
        if field.is_estimate() {
            self.estimates.0.store(true, Ordering::Relaxed);
        }
        self.columns.get(field)
    }

    /// Whether a column of estimates was asked for since this was last called.
    pub fn take_estimates_read(&self) -> bool {
        self.estimates.0.swap(false, Ordering::Relaxed)
    }

    /// The row of a job that has not ended.
    pub fn row(&self, job: JobId) -> Option<usize> {
        self.row_of.get(job)
    }

    /// The job of a row.
    pub fn id(&self, row: usize) -> JobId {
        self.ids[row]
    }

    /// What the job of a row asked for.
    pub fn spec(&self, row: usize) -> &Arc<JobSpec> {
        &self.specs[row]
    }

    /// The phase of the job of a row.
    pub fn phase(&self, row: usize) -> JobPhase {
        self.phases[row]
    }

    /// The phase of every row.
    pub fn phases(&self) -> &[JobPhase] {
        &self.phases
    }

    /// GPUs asked for, as whole numbers.
    pub fn gpus(&self) -> &[u32] {
        &self.gpus
    }

    /// How large the job of a row is, to put large ones first.
    pub fn size(&self, row: usize) -> Size {
        self.sizes[row]
    }

    /// Best demand for each GPU, cut to what a node can give.
    pub fn demand_per_gpu(&self, row: usize) -> &Host {
        &self.demand_per_gpu[row]
    }

    /// What the job of a row holds; empty when it does not run.
    pub fn allocation(&self, row: usize) -> &Allocation {
        &self.allocations[row]
    }

    /// How many times the job of a row was launched.
    pub fn incarnation(&self, row: usize) -> Incarnation {
        self.incarnations[row]
    }

    /// The number of the launch after one: the next, or the first that was not skipped.
    pub fn launch_after(&self, incarnation: Incarnation) -> Incarnation {
        Incarnation(incarnation.0.saturating_add(1)).max(self.first_launch)
    }

    /// Launches from now on have at least this number: lower ones may be in use by launches that are not known here.
    pub(crate) fn skip_launches(&mut self, first: Incarnation) {
        self.first_launch = self.first_launch.max(first);
    }

    /// Takes a launch that was started elsewhere for the last one of the job of a row.
    pub(crate) fn set_incarnation(&mut self, row: usize, incarnation: Incarnation) {
        self.incarnations[row] = incarnation;
    }

    /// Iterations done so far, as far as known.
    pub fn done(&self, row: usize) -> f64 {
        self.columns.done[row]
    }

    /// GPU time that the job of a row has received until `now`, in GPU-seconds.
    pub fn service_at(&self, row: usize, now: Time) -> f64 {
        let pace = &self.paces[row];
        match self.phases[row] {
            JobPhase::Running => pace.service + (now - pace.from).as_secs_f64().max(0.0) * pace.gpus,
            JobPhase::Asking | JobPhase::Waiting => self.columns.service[row],
        }
    }

    /// Iterations that the job of a row is thought to have done by `now`.
    pub fn done_at(&self, row: usize, now: Time) -> f64 {
        let pace = &self.paces[row];
        match self.phases[row] {
            JobPhase::Running => {
                let worked = (now - pace.works_from).as_secs_f64().max(0.0);
                (pace.done + worked * pace.rate).min(self.columns.work[row].max(pace.done))
            }
            JobPhase::Asking | JobPhase::Waiting => self.columns.done[row],
        }
    }

    /// Iterations per second that the job of a row is thought to do, if it runs.
    pub(crate) fn rate(&self, row: usize) -> f64 {
        self.paces[row].rate
    }

    /// Adds a job that asks for admission.
    pub fn insert(&mut self, spec: Arc<JobSpec>, demand_per_gpu: Host, fair_rate: f64, best_speed: f64) {
        let fair_s_per_iteration = if fair_rate > 0.0 { 1.0 / fair_rate } else { f64::INFINITY };
        self.push(spec, demand_per_gpu, fair_s_per_iteration, best_speed);
    }

    fn push(&mut self, spec: Arc<JobSpec>, demand_per_gpu: Host, fair_s_per_iteration: f64, best_speed: f64) {
        let row = self.len();
        let id = spec.id;
        assert!(self.row(id).is_none(), "job {id} was submitted twice");
        self.row_of.set(id, row);
        let demand = demand_per_gpu.times(spec.gpus.asked);
        let duration = spec.estimated_work * fair_s_per_iteration;
        self.columns.push_zeros();
        let c = &mut self.columns;
        c.arrival[row] = spec.arrival.as_secs_f64();
        c.priority[row] = f64::from(spec.priority);
        c.gpus[row] = f64::from(spec.gpus.asked);
        c.duration[row] = duration;
        c.best_speed[row] = best_speed;
        c.remaining[row] = duration;
        c.work[row] = spec.estimated_work;
        c.deadline[row] = spec.deadline.first().map_or(f64::INFINITY, Time::as_secs_f64);
        c.cpu_demand[row] = demand.cpus();
        c.mem_demand[row] = demand.mem_gb();
        c.storage_demand[row] = demand.storage_mb_per_s();
        c.since[row] = c.arrival[row];
        c.tenant[row] = f64::from(spec.tenant.0);
        self.gpus.push(spec.gpus.asked);
        self.demand_per_gpu.push(demand_per_gpu);
        self.sizes.push(Size::of(spec.gpus.asked, &demand_per_gpu));
        self.allocations.push(Allocation::default());
        self.incarnations.push(Incarnation(0));
        let restart = spec.costs().restart_and_checkpoint();
        self.paces.push(Pace { fair_s_per_iteration, restart, ..Pace::default() });
        self.phases.push(JobPhase::Asking);
        self.ids.push(id);
        self.specs.push(spec);
        self.n_asking += 1;
    }

    /// Takes out a job that ended.
    pub fn remove(&mut self, row: usize) -> Arc<JobSpec> {
        self.leave_phase(row);
        self.columns.swap_remove(row);
        self.gpus.swap_remove(row);
        self.demand_per_gpu.swap_remove(row);
        self.sizes.swap_remove(row);
        self.allocations.swap_remove(row);
        self.incarnations.swap_remove(row);
        self.paces.swap_remove(row);
        self.phases.swap_remove(row);
        self.ids.swap_remove(row);
        let spec = self.specs.swap_remove(row);
        self.row_of.clear(spec.id);
        if let Some(moved) = self.ids.get(row) {
            self.row_of.set(*moved, row);
        }
        spec
    }

    fn leave_phase(&mut self, row: usize) {
        match self.phases[row] {
            JobPhase::Asking => self.n_asking -= 1,
            JobPhase::Running => self.n_running -= 1,
            JobPhase::Waiting => {}
        }
    }

    /// Admits a job: it waits for GPUs from now on.
    pub fn admit(&mut self, row: usize) {
        self.leave_phase(row);
        self.phases[row] = JobPhase::Waiting;
    }

    /// Brings the columns of every running job up to `now`.
    pub(crate) fn refresh(&mut self, now: Time) {
        if self.refreshed == Some(now) {
            return;
        }
        for row in 0..self.len() {
            if self.phases[row] == JobPhase::Running {
                self.refresh_row(row, now);
            }
        }
        self.refreshed = Some(now);
    }

    fn refresh_row(&mut self, row: usize, now: Time) {
        let pace = &self.paces[row];
        let ran = (now - pace.from).as_secs_f64().max(0.0);
        let work = self.columns.work[row];
        let done = self.done_at(row, now);
        self.columns.attained[row] = pace.attained + ran;
        self.columns.service[row] = pace.service + ran * pace.gpus;
        self.columns.done[row] = done;
        self.columns.remaining[row] = ((work - done) * pace.fair_s_per_iteration).max(0.0);
    }

    fn count_row(&mut self, row: usize, now: Time) {
        if self.phases[row] == JobPhase::Running {
            self.refresh_row(row, now);
        }
        self.refreshed = None;
    }

    /// How long the job of a row fetches its data, from when it last started.
    pub fn fetch(&self, row: usize) -> Span {
        self.paces[row].fetch
    }

    /// When the job of a row, which runs, was started.
    pub fn started(&self, row: usize) -> Time {
        self.paces[row].started
    }

    /// What it costs to stop the job of a row and to start it again, its data apart.
    pub fn restart_cost(&self, row: usize) -> Span {
        self.paces[row].restart
    }

    /// The job runs with `allocation` from `now` on, and work proceeds after `delay` at the estimated `rate`. It fetches its data
    /// for `fetch`.
    pub(crate) fn start(
        &mut self,
        row: usize,
        now: Time,
        allocation: Allocation,
        rate: f64,
        delay: Span,
        fetch: Span,
    ) -> Incarnation {
        self.count_row(row, now);
        self.leave_phase(row);
        self.phases[row] = JobPhase::Running;
        self.n_running += 1;
        self.columns.since[row] = now.as_secs_f64();
        self.incarnations[row] = self.launch_after(self.incarnations[row]);
        self.set_pace(row, now, now + delay, &allocation, rate);
        self.paces[row].started = now;
        self.paces[row].fetch = fetch;
        self.allocations[row] = allocation;
        self.incarnations[row]
    }

    /// The job goes on with another host share at another rate.
    pub(crate) fn resize(&mut self, row: usize, now: Time, allocation: Allocation, rate: f64) {
        self.count_row(row, now);
        let works_from = self.paces[row].works_from.max(now);
        self.set_pace(row, now, works_from, &allocation, rate);
        self.allocations[row] = allocation;
    }

    fn set_pace(&mut self, row: usize, now: Time, works_from: Time, allocation: &Allocation, rate: f64) {
        let gpus: f64 = allocation
            .slices
            .iter()
            .map(|s| f64::from(s.gpus.len()) * f64::from(s.thousandths()) / 1000.0)
            .sum();
        self.columns.held[row] = f64::from(allocation.n_gpus());
        self.paces[row] = Pace {
            attained: self.columns.attained[row],
            service: self.columns.service[row],
            done: self.columns.done[row],
            from: now,
            works_from,
            rate,
            gpus,
            ..self.paces[row]
        };
    }

    /// The job releases its GPUs and waits.
    pub(crate) fn stop(&mut self, row: usize, now: Time) -> Allocation {
        self.count_row(row, now);
        self.leave_phase(row);
        self.phases[row] = JobPhase::Waiting;
        self.columns.since[row] = now.as_secs_f64();
        self.columns.held[row] = 0.0;
        self.columns.preemptions[row] += 1.0;
        std::mem::take(&mut self.allocations[row])
    }

    /// Reported progress replaces the estimate.
    pub(crate) fn report_done(&mut self, row: usize, now: Time, done: f64) {
        self.count_row(row, now);
        let pace = &mut self.paces[row];
        pace.attained = self.columns.attained[row];
        pace.service = self.columns.service[row];
        pace.done = done;
        pace.works_from = pace.works_from.max(now);
        pace.from = now;
        self.columns.done[row] = done;
        self.columns.remaining[row] = ((self.columns.work[row] - done) * pace.fair_s_per_iteration).max(0.0);
    }

    /// Replaces what is known about a job's speed: `rate` with what it holds, `fair_rate` at the proportional share.
    pub(crate) fn correct(&mut self, row: usize, now: Time, spec: Arc<JobSpec>, fair_rate: f64, rate: f64) {
        self.count_row(row, now);
        let fair_s_per_iteration = if fair_rate > 0.0 { 1.0 / fair_rate } else { f64::INFINITY };
        let (work, done) = (self.columns.work[row], self.columns.done[row]);
        self.columns.priority[row] = f64::from(spec.priority);
        self.columns.duration[row] = work * fair_s_per_iteration;
        self.columns.remaining[row] = ((work - done) * fair_s_per_iteration).max(0.0);
        let pace = &mut self.paces[row];
        pace.fair_s_per_iteration = fair_s_per_iteration;
        pace.restart = spec.costs().restart_and_checkpoint();
        if self.phases[row] == JobPhase::Running {
            pace.attained = self.columns.attained[row];
            pace.service = self.columns.service[row];
            pace.done = done;
            pace.works_from = pace.works_from.max(now);
            pace.from = now;
            pace.rate = rate;
        }
        self.specs[row] = spec;
    }

    /// For [`OverwriteJobs`](crate::artifact::OverwriteJobs).
    pub(crate) fn overwrite(&mut self, row: usize, field: Field, value: f64) {
        self.columns.get_mut(field)[row] = value;
    }

    /// For [`OverwriteJobs`](crate::artifact::OverwriteJobs).
    pub(crate) fn overwrite_held(&mut self, row: usize, allocation: Allocation) {
        self.leave_phase(row);
        let runs = !allocation.slices.is_empty();
        self.phases[row] = if runs { JobPhase::Running } else { JobPhase::Waiting };
        self.n_running += usize::from(runs);
        self.columns.held[row] = f64::from(allocation.n_gpus());
        self.allocations[row] = allocation;
    }
}
