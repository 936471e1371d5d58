//! Rows of the table as they are sent to another process, and put into its table there.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Columns, Field, JobPhase, JobTable, Pace, Size};
use crate::allocation::Allocation;
use crate::ids::{Incarnation, JobId};
use crate::job::JobSpec;
use crate::resources::Host;

const N_COLUMNS: usize = Field::ALL.len();

/// A row by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    id: JobId,
    /// The number of its profile and the rest of its spec; none for a spec that was sent before.
    spec: Option<(u32, JobSpec)>,
    columns: [f64; N_COLUMNS],
    phase: JobPhase,
    demand_per_gpu: Host,
    allocation: Allocation,
    incarnation: Incarnation,
    pace: Pace,
}

impl JobTable {
    /// The rows that differ from those of another table, by ascending position. `number_of` numbers the profile of a spec that
    /// the other table does not have.
    pub(crate) fn rows_since(
        &self,
        before: &JobTable,
        mut number_of: impl FnMut(&JobSpec) -> u32,
    ) -> Vec<(u32, Row)> {
        let mut rows = Vec::new();
        for at in (0..self.len()).filter(|at| !self.is_same_row(*at, before)) {
            let spec = &self.specs[at];
            let known = before.row(spec.id).is_some_and(|row| Arc::ptr_eq(&before.specs[row], spec));
            let row = Row {
                id: self.ids[at],
                spec: (!known).then(|| (number_of(spec), JobSpec::clone(spec))),
                columns: self.columns.row(at),
                phase: self.phases[at],
                demand_per_gpu: self.demand_per_gpu[at],
                allocation: self.allocations[at].clone(),
                incarnation: self.incarnations[at],
                pace: self.paces[at],
            };
            rows.push((at as u32, row));
        }
        rows
    }

    fn is_same_row(&self, at: usize, other: &JobTable) -> bool {
        let bits = |columns: &Columns| columns.row(at).map(f64::to_bits);
        at < other.len()
            && self.ids[at] == other.ids[at]
            && Arc::ptr_eq(&self.specs[at], &other.specs[at])
            && self.phases[at] == other.phases[at]
            && self.demand_per_gpu[at] == other.demand_per_gpu[at]
            && self.allocations[at] == other.allocations[at]
            && self.incarnations[at] == other.incarnations[at]
            && self.paces[at] == other.paces[at]
            && bits(&self.columns) == bits(&other.columns)
    }

    /// Replaces and adds rows, and cuts the table to `len`; `spec_of` completes a spec by the number of its profile. What does
    /// not fit is an error, and the table is then of no use.
    pub(crate) fn put_rows(
        &mut self,
        len: usize,
        rows: Vec<(u32, Row)>,
        spec_of: impl Fn(u32, JobSpec) -> Option<JobSpec>,
    ) -> Result<(), &'static str> {
        let mut found = Vec::with_capacity(rows.len());
        for (at, mut row) in rows {
            let spec = match row.spec.take() {
                Some((profile, spec)) => Arc::new(spec_of(profile, spec).ok_or("a profile is missing")?),
                None => Arc::clone(&self.specs[self.row(row.id).ok_or("a job is missing")?]),
            };
            if spec.id != row.id || at as usize >= len {
                return Err("a row is out of place");
            }
            found.push((at as usize, row, spec));
        }
        let gone = found.iter().map(|(at, ..)| *at).filter(|at| *at < self.len()).chain(len..self.len());
        for at in gone.collect::<Vec<_>>() {
            self.row_of.clear(self.ids[at]);
        }
        self.cut(len);
        for (at, row, spec) in found {
            if at == self.len() {
                self.push_blank(Arc::clone(&spec));
            }
            if at >= self.len() {
                return Err("a row is missing");
            }
            self.put_row(at, row, spec);
        }
        self.n_asking = self.phases.iter().filter(|phase| **phase == JobPhase::Asking).count();
        self.n_running = self.phases.iter().filter(|phase| **phase == JobPhase::Running).count();
        if self.len() == len { Ok(()) } else { Err("rows are missing") }
    }

    fn put_row(&mut self, at: usize, row: Row, spec: Arc<JobSpec>) {
        self.row_of.set(row.id, at);
        for ((field, ..), value) in Field::ALL.iter().zip(row.columns) {
            self.columns.get_mut(*field)[at] = value;
        }
        self.ids[at] = row.id;
        self.phases[at] = row.phase;
        self.gpus[at] = spec.gpus.asked;
        self.demand_per_gpu[at] = row.demand_per_gpu;
        self.sizes[at] = Size::of(spec.gpus.asked, &row.demand_per_gpu);
        self.allocations[at] = row.allocation;
        self.incarnations[at] = row.incarnation;
        self.paces[at] = Pace { restart: spec.costs().restart_and_checkpoint(), ..row.pace };
        self.specs[at] = spec;
    }

    fn push_blank(&mut self, spec: Arc<JobSpec>) {
        self.columns.push_zeros();
        self.ids.push(spec.id);
        self.phases.push(JobPhase::Asking);
        self.gpus.push(0);
        self.demand_per_gpu.push(Host::NONE);
        self.sizes.push(Size::of(0, &Host::NONE));
        self.allocations.push(Allocation::default());
        self.incarnations.push(Incarnation(0));
        self.paces.push(Pace::default());
        self.specs.push(spec);
    }

    fn cut(&mut self, len: usize) {
        self.columns.truncate(len);
        self.ids.truncate(len);
        self.phases.truncate(len);
        self.gpus.truncate(len);
        self.demand_per_gpu.truncate(len);
        self.sizes.truncate(len);
        self.allocations.truncate(len);
        self.incarnations.truncate(len);
        self.paces.truncate(len);
        self.specs.truncate(len);
    }
}
