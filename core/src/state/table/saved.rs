//! The job table as it is written down and read back: what cannot be computed from a job's spec. A table that is read back
//! goes on exactly as the one that was written.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{JobPhase, JobTable, Pace};
use crate::allocation::Allocation;
use crate::ids::{Incarnation, JobId};
use crate::job::JobSpec;
use crate::resources::Host;
use crate::time::Time;

/// One row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedRow {
    job: JobId,
    phase: JobPhase,
    incarnation: Incarnation,
    #[serde(default, skip_serializing_if = "Allocation::is_empty")]
    allocation: Allocation,
    demand_per_gpu: Host,
    best_speed: f64,
    attained: f64,
    service: f64,
    done: f64,
    since: f64,
    preemptions: f64,
    pace: Pace,
}

/// All rows, in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedTable {
    rows: Vec<SavedRow>,
    refreshed: Option<Time>,
    first_launch: Incarnation,
}

/// A row without its job, or two rows of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a saved table has a row of job {job}, which is missing or there twice")]
pub struct RestoreError {
    /// The job of the row.
    pub job: JobId,
}

impl JobTable {
    /// The table as it is written down, without the specs.
    pub fn save(&self) -> SavedTable {
        let row = |row: usize| SavedRow {
            job: self.ids[row],
            phase: self.phases[row],
            incarnation: self.incarnations[row],
            allocation: self.allocations[row].clone(),
            demand_per_gpu: self.demand_per_gpu[row],
            best_speed: self.columns.best_speed[row],
            attained: self.columns.attained[row],
            service: self.columns.service[row],
            done: self.columns.done[row],
            since: self.columns.since[row],
            preemptions: self.columns.preemptions[row],
            pace: self.paces[row],
        };
        SavedTable {
            rows: (0..self.len()).map(row).collect(),
            refreshed: self.refreshed,
            first_launch: self.first_launch,
        }
    }

    /// A table that was written down, with the specs of its jobs.
    pub fn restored(
        saved: &SavedTable,
        spec_of: impl Fn(JobId) -> Option<Arc<JobSpec>>,
    ) -> Result<Self, RestoreError> {
        let mut table = JobTable::default();
        for (row, saved) in saved.rows.iter().enumerate() {
            let job = saved.job;
            let spec = spec_of(job).filter(|_| table.row(job).is_none()).ok_or(RestoreError { job })?;
            let restart = spec.costs().restart_and_checkpoint();
            table.push(spec, saved.demand_per_gpu, saved.pace.fair_s_per_iteration, saved.best_speed);
            table.leave_phase(row);
            table.phases[row] = saved.phase;
            match saved.phase {
                JobPhase::Asking => table.n_asking += 1,
                JobPhase::Running => table.n_running += 1,
                JobPhase::Waiting => {}
            }
            table.incarnations[row] = saved.incarnation;
            table.paces[row] = Pace { restart, ..saved.pace };
            let c = &mut table.columns;
            c.attained[row] = saved.attained;
            c.service[row] = saved.service;
            c.done[row] = saved.done;
            c.remaining[row] = ((c.work[row] - saved.done) * saved.pace.fair_s_per_iteration).max(0.0);
            c.since[row] = saved.since;
            c.preemptions[row] = saved.preemptions;
            c.held[row] = f64::from(saved.allocation.n_gpus());
            table.allocations[row] = saved.allocation.clone();
        }
        (table.refreshed, table.first_launch) = (saved.refreshed, saved.first_launch);
        Ok(table)
    }
}

/// Numbers that may be infinite, which JSON cannot write: absent then.
pub(super) mod perhaps_infinite {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
    pub(in super::super) fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        number.is_finite().then_some(*number).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
    }
}
