//! Which job is planned before which: the place of each row in an order.

use crate::snapshot::Snapshot;
use crate::timeline::Need;

/// An order of rows, looked up by row. Rows that are not in it come before all others: their plans are never made anew
/// for another job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOrder {
    /// Places by row, from 1 on; 0 is no place.
    by_row: Vec<u32>,
}

impl PlanOrder {
    /// The places of rows in an order, of a snapshot with so many rows.
    pub fn of(order: &[u32], n_rows: usize) -> Self {
        let mut by_row = vec![0; n_rows];
        for (place, row) in (1..).zip(order) {
            by_row[*row as usize] = place;
        }
        PlanOrder { by_row }
    }

    /// All rows by deadline, then by id.
    pub fn by_deadline(snapshot: &Snapshot) -> Self {
        let jobs = &snapshot.jobs;
        let mut order: Vec<u32> = (0..jobs.len() as u32).collect();
        let deadline = |row: u32| jobs.spec(row as usize).deadline.first().unwrap_or(Need::NEVER);
        order.sort_by_cached_key(|row| (deadline(*row), jobs.id(*row as usize)));
        PlanOrder::of(&order, jobs.len())
    }

    /// The place of a row; 0 when it has none.
    pub fn place(&self, row: u32) -> u32 {
        self.by_row.get(row as usize).copied().unwrap_or(0)
    }
}
