//! Jobs that leave the table for a while, and come back.

use super::{JobPhase, JobTable};
use crate::event::KeptJob;
use crate::time::Time;

impl JobTable {
    /// Moves a job to another table, with everything that is known of it.
    pub(crate) fn move_to(&mut self, row: usize, to: &mut JobTable) {
        let (id, phase) = (self.ids[row], self.phases[row]);
        self.leave_phase(row);
        self.columns.move_row(row, &mut to.columns);
        to.gpus.push(self.gpus.swap_remove(row));
        to.demand_per_gpu.push(self.demand_per_gpu.swap_remove(row));
        to.sizes.push(self.sizes.swap_remove(row));
        to.allocations.push(self.allocations.swap_remove(row));
        to.incarnations.push(self.incarnations.swap_remove(row));
        to.paces.push(self.paces.swap_remove(row));
        to.phases.push(self.phases.swap_remove(row));
        to.ids.push(self.ids.swap_remove(row));
        to.specs.push(self.specs.swap_remove(row));
        to.row_of.set(id, to.ids.len() - 1);
        to.n_asking += usize::from(phase == JobPhase::Asking);
        to.n_running += usize::from(phase == JobPhase::Running);
        self.row_of.clear(id);
        if let Some(moved) = self.ids.get(row) {
            self.row_of.set(*moved, row);
        }
        (self.refreshed, to.refreshed) = (None, None);
    }

    /// What is to be kept of a job that is about to leave and may come back.
    pub(crate) fn kept(&mut self, row: usize, now: Time) -> KeptJob {
        self.count_row(row, now);
        KeptJob {
            incarnation: self.incarnations[row],
            done: self.columns.done[row],
            attained_s: self.columns.attained[row],
            service_s: self.columns.service[row],
            preemptions: self.columns.preemptions[row],
        }
    }

    /// The job of a row, just inserted, was here before.
    pub(crate) fn restore(&mut self, row: usize, now: Time, kept: &KeptJob) {
        self.incarnations[row] = kept.incarnation;
        self.columns.attained[row] = kept.attained_s;
        self.columns.service[row] = kept.service_s;
        self.columns.preemptions[row] = kept.preemptions;
        self.columns.since[row] = now.as_secs_f64();
        self.report_done(row, now, kept.done);
    }
}
