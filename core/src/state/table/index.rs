//! Where in the table each job is, by its number.

use crate::ids::JobId;

const NO_ROW: u32 = u32::MAX;
/// Fewer numbers of ended jobs than this are not worth forgetting.
const LEAST_FORGOTTEN: usize = 1024;

/// The rows of jobs. Numbers that are lower than those of all jobs are forgotten, so that a table that lives for years stays small.
#[derive(Clone, Default)]
pub(super) struct RowIndex {
    /// By number, from `first` on.
    rows: Vec<u32>,
    first: u32,
    /// How many at the beginning are of no job.
    n_gone: usize,
}

impl RowIndex {
    /// The row of a job.
    pub(super) fn get(&self, job: JobId) -> Option<usize> {
        let index = job.0.checked_sub(self.first)? as usize;
        self.rows.get(index).filter(|row| **row != NO_ROW).map(|row| *row as usize)
    }

    /// Notes where a job is.
    pub(super) fn set(&mut self, job: JobId, row: usize) {
        if self.rows.is_empty() {
            self.first = job.0;
        }
        if job.0 < self.first {
            let n_before = (self.first - job.0) as usize;
            self.rows.splice(0..0, std::iter::repeat_n(NO_ROW, n_before));
            self.first = job.0;
        }
        let index = (job.0 - self.first) as usize;
        if self.rows.len() <= index {
            self.rows.resize(index + 1, NO_ROW);
        }
        self.rows[index] = row as u32;
        self.n_gone = self.n_gone.min(index);
    }

    /// Notes that a job is not in the table any more.
    pub(super) fn clear(&mut self, job: JobId) {
        let Some(index) = job.0.checked_sub(self.first).map(|index| index as usize) else { return };
        let Some(row) = self.rows.get_mut(index) else { return };
        *row = NO_ROW;
        while self.rows.get(self.n_gone) == Some(&NO_ROW) {
            self.n_gone += 1;
        }
        if self.n_gone > LEAST_FORGOTTEN && 2 * self.n_gone > self.rows.len() {
            self.rows.drain(..self.n_gone);
            self.first += self.n_gone as u32;
            self.n_gone = 0;
        }
    }
}

/// Jobs and rows, whatever was forgotten.
impl std::fmt::Debug for RowIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rows = (self.first..).zip(&self.rows).filter(|(_, row)| **row != NO_ROW);
        f.debug_map().entries(rows).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_found_in_whatever_order_they_come_and_go_and_old_numbers_are_forgotten() {
        let mut index = RowIndex::default();
        for job in [7, 9, 3] {
            index.set(JobId(job), job as usize + 1);
        }
        index.clear(JobId(7));
        index.clear(JobId(8));
        index.clear(JobId(100));
        let found = [0, 3, 7, 8, 9, 10].map(|job| index.get(JobId(job)));
        assert_eq!(found, [None, Some(4), None, None, Some(10), None]);
        assert_eq!(format!("{index:?}"), "{3: 4, 9: 10}");
        index.clear(JobId(3));
        for job in 10..1_000_000 {
            index.set(JobId(job), 5);
            index.clear(JobId(job - 1));
        }
        assert_eq!((index.get(JobId(999_999)), index.get(JobId(9))), (Some(5), None));
        assert!(index.rows.len() < 10_000, "{}", index.rows.len());
        index.set(JobId(2), 6);
        assert_eq!((index.get(JobId(999_999)), index.get(JobId(2))), (Some(5), Some(6)));
    }
}
