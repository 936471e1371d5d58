//! What is known of a job changes as a whole: with the rules of a cluster that was started again.

use std::sync::Arc;

use super::{JobTable, Size};
use crate::job::JobSpec;
use crate::resources::Host;
use crate::time::Time;

/// How fast a job is thought to be, after a change of what is known about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RevisedRates {
    /// Iterations per second at the proportional share.
    pub(crate) fair_rate: f64,
    /// The same with what it holds.
    pub(crate) rate: f64,
    /// How many times as fast as at the proportional share it is at best.
    pub(crate) best_speed: f64,
}

impl JobTable {
    /// Replaces all that is known of a job besides its progress: whose it is, what it asks for, and how fast it is.
    pub(crate) fn revise(
        &mut self,
        row: usize,
        now: Time,
        spec: Arc<JobSpec>,
        demand_per_gpu: Host,
        rates: RevisedRates,
    ) {
        let demand = demand_per_gpu.times(spec.gpus.asked);
        let c = &mut self.columns;
        c.priority[row] = f64::from(spec.priority);
        c.gpus[row] = f64::from(spec.gpus.asked);
        c.best_speed[row] = rates.best_speed;
        c.work[row] = spec.estimated_work;
        c.deadline[row] = spec.deadline.first().map_or(f64::INFINITY, Time::as_secs_f64);
        c.cpu_demand[row] = demand.cpus();
        c.mem_demand[row] = demand.mem_gb();
        c.storage_demand[row] = demand.storage_mb_per_s();
        c.tenant[row] = f64::from(spec.tenant.0);
        self.gpus[row] = spec.gpus.asked;
        self.demand_per_gpu[row] = demand_per_gpu;
        self.sizes[row] = Size::of(spec.gpus.asked, &demand_per_gpu);
        self.correct(row, now, spec, rates.fair_rate, rates.rate);
    }
}
