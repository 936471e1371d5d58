//! Packing rows into leases, each as late as it may be (Chronus, SoCC'21, §4.2: how arrivals are judged).
//!
//! Late leases are the ones that later arrivals are least likely to need, and what runs late leaves the present to
//! jobs without a promise. Two walks: [`pack`] holds every job to its most urgent level and answers whether all fit;
//! [`greedy`] lets a job fall to a lesser level, and is what runs when a solve ends without an answer.

use std::cmp::Reverse;

use super::{LeasePlan, LeaseRow};

/// GPUs left in each lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shelf {
    free: Vec<i64>,
}

impl Shelf {
    /// So many GPUs in each lease; there are none after the last.
    pub fn new(free: Vec<i64>) -> Self {
        Shelf { free }
    }

    /// GPUs left, by lease.
    pub fn free(&self) -> &[i64] {
        &self.free
    }

    /// Takes the latest leases before the row's horizon that have room for it; nothing if they are too few.
    pub fn put_late(&mut self, row: &LeaseRow) -> Option<Vec<bool>> {
        let mut taken = vec![false; row.n_leases()];
        if !self.seek_late(row, |free, lease| {
            *free -= i64::from(row.gpus);
            taken[lease] = true;
        }) {
            self.give(&taken, row.gpus);
            return None;
        }
        Some(taken)
    }

    /// As [`Shelf::put_late`], but what does not fit leaves its part behind.
    fn fits_late(&mut self, row: &LeaseRow) -> bool {
        self.seek_late(row, |free, _| *free -= i64::from(row.gpus))
    }

    /// Finds the latest leases with room for a row; whether they are enough.
    fn seek_late(&mut self, row: &LeaseRow, mut found: impl FnMut(&mut i64, usize)) -> bool {
        let gpus = i64::from(row.gpus);
        let mut left = row.need;
        for (lease, free) in self.free.iter_mut().enumerate().take(row.n_leases()).rev() {
            if left == 0 {
                break;
            }
            if *free >= gpus {
                found(free, lease);
                left -= 1;
            }
        }
        left == 0
    }

    /// Gives GPUs back in the leases flagged.
    pub fn give(&mut self, leases: &[bool], gpus: u32) {
        for (free, _) in self.free.iter_mut().zip(leases).filter(|(_, runs)| **runs) {
            *free += i64::from(gpus);
        }
    }

    /// Takes GPUs in the leases flagged; what is promised twice goes below zero, where nothing fits any more.
    pub fn take(&mut self, leases: &[bool], gpus: u32) {
        for (free, _) in self.free.iter_mut().zip(leases).filter(|(_, runs)| **runs) {
            *free -= i64::from(gpus);
        }
    }
}

/// Packs every job at its most urgent level: widest first, then the least slack, then the farthest horizon. Answers with
/// the leases of each row, none for rows of other levels; `Err` has the first row that did not fit.
pub fn pack(rows: &[LeaseRow], mut shelf: Shelf) -> Result<Vec<Vec<bool>>, usize> {
    let mut leases = vec![Vec::new(); rows.len()];
    for j in most_urgent(rows) {
        leases[j] = shelf.put_late(&rows[j]).ok_or(j)?;
    }
    Ok(leases)
}

/// Whether [`pack`] finds room for every row.
pub fn packs(rows: &[LeaseRow], mut shelf: Shelf) -> bool {
    most_urgent(rows).into_iter().all(|j| shelf.fits_late(&rows[j]))
}

/// The most urgent row of each job, in the order in which they are packed.
fn most_urgent(rows: &[LeaseRow]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&j| {
        let row = &rows[j];
        (Reverse(row.gpus), row.slack(), Reverse(row.horizon))
    });
    let job_of = jobs_of(rows);
    let mut is_packed = vec![false; rows.len()];
    order.retain(|&j| !std::mem::replace(&mut is_packed[job_of[j]], true));
    order
}

/// Gives each job the most valuable level that still packs: dearest rows first, then as in [`pack`]. `Err` has the
/// first row of a job for which no level is left.
pub fn greedy(rows: &[LeaseRow], mut shelf: Shelf) -> Result<LeasePlan, usize> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&rows[a], &rows[b]);
        let dearest = b.value.total_cmp(&a.value).then(b.gpus.cmp(&a.gpus));
        dearest.then(a.slack().cmp(&b.slack())).then(b.horizon.cmp(&a.horizon))
    });
    let job_of = jobs_of(rows);
    let n_leases = rows.iter().map(LeaseRow::n_leases).max().unwrap_or(0);
    let mut plan =
        LeasePlan { chosen: vec![false; rows.len()], leases: vec![vec![false; n_leases]; rows.len()] };
    let mut is_packed = vec![false; rows.len()];
    for j in order {
        if is_packed[job_of[j]] {
            continue;
        }
        if let Some(taken) = shelf.put_late(&rows[j]) {
            plan.leases[j][..taken.len()].copy_from_slice(&taken);
            plan.chosen[j] = true;
            is_packed[job_of[j]] = true;
        }
    }
    match job_of.iter().find(|&&first| !is_packed[first]) {
        Some(&first) => Err(first),
        None => Ok(plan),
    }
}

/// Who goes first when leases are packed backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backwards {
    /// The row that still needs most, then the widest: optimal for gangs of one size.
    NeediestFirst,
    /// Gangs before single GPUs, which fill whatever is left: wins where a gang would come too late to fit.
    GangsFirst,
}

/// Packs from the last lease backwards: what cannot wait any longer is what has most left to do, and the first lease gets
/// the least that must be there. Each row is a job of its own. `None` if the leases of some row do not fit.
pub fn pack_backwards(rows: &[LeaseRow], capacity: &[i64], who: Backwards) -> Option<Vec<Vec<bool>>> {
    let n_leases = rows.iter().map(LeaseRow::n_leases).max().unwrap_or(0);
    let mut leases = vec![vec![false; n_leases]; rows.len()];
    let mut by_horizon: Vec<usize> = (0..rows.len()).collect();
    by_horizon.sort_by_key(|&j| rows[j].horizon);
    let mut left: Vec<u32> = rows.iter().map(|row| row.need).collect();
    let mut open: Vec<usize> = Vec::new();
    for lease in (0..n_leases).rev() {
        while by_horizon.last().is_some_and(|&j| rows[j].n_leases() > lease) {
            open.extend(by_horizon.pop());
        }
        open.retain(|&j| left[j] > 0);
        // Stable, since it is nearly sorted from the lease before.
        open.sort_by_key(|&j| {
            let is_gang = who == Backwards::GangsFirst && rows[j].gpus > 1;
            (Reverse((is_gang, left[j], rows[j].gpus)), j)
        });
        let mut free = capacity.get(lease).copied().unwrap_or(0);
        for &j in &open {
            if i64::from(rows[j].gpus) <= free {
                free -= i64::from(rows[j].gpus);
                left[j] -= 1;
                leases[j][lease] = true;
            }
            if free <= 0 {
                break;
            }
        }
    }
    left.iter().all(|left| *left == 0).then_some(leases)
}

/// For each row the first row of its job.
pub(super) fn jobs_of(rows: &[LeaseRow]) -> Vec<usize> {
    let mut first = 0;
    let job = |(j, row): (usize, &LeaseRow)| {
        if row.level == 0 {
            first = j;
        }
        first
    };
    rows.iter().enumerate().map(job).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(gpus: u32, need: u32, horizon: i64, value: f64, level: u32) -> LeaseRow {
        LeaseRow { gpus, need, horizon, value, level }
    }

    #[test]
    fn rows_take_the_latest_leases_with_room() {
        let mut shelf = Shelf::new(vec![8, 8, 2, 8]);
        assert_eq!(shelf.put_late(&row(4, 2, 4, 10.0, 0)), Some(vec![false, true, false, true]));
        assert_eq!(shelf.free(), [8, 4, 2, 4]);
        assert_eq!(shelf.put_late(&row(8, 2, 3, 10.0, 0)), None, "only one lease is left for eight");
        assert_eq!(shelf.free(), [8, 4, 2, 4], "what did not fit took nothing");
        assert_eq!(shelf.put_late(&row(1, 1, -3, 10.0, 0)), None, "a horizon in the past");
    }

    #[test]
    fn packing_holds_jobs_to_their_most_urgent_level() {
        let soft = [row(8, 2, 2, 10.0, 0), row(8, 2, 4, 5.0, 1)];
        assert_eq!(pack(&soft, Shelf::new(vec![8; 4])), Ok(vec![vec![true, true], Vec::new()]));
        let both = [soft[0], soft[1], row(8, 1, 1, 10.0, 0)];
        assert_eq!(pack(&both, Shelf::new(vec![8; 4])), Err(2), "though the lesser level would fit");
    }

    #[test]
    fn packing_backwards_keeps_the_first_lease_free() {
        let rows = [row(8, 2, 4, 10.0, 0), row(8, 1, 2, 10.0, 0)];
        let leases = pack_backwards(&rows, &[8; 4], Backwards::NeediestFirst).expect("there is room");
        assert_eq!(leases, [[false, false, true, true], [false, true, false, false]]);
        let three = [rows[0], rows[0], rows[1]];
        assert_eq!(pack_backwards(&three, &[8; 4], Backwards::NeediestFirst), None);
    }

    #[test]
    fn gangs_that_go_first_do_not_come_too_late() {
        let rows = [row(1, 2, 3, 10.0, 0), row(2, 1, 3, 10.0, 0)];
        let first = |who| {
            let leases = pack_backwards(&rows, &[2, 1, 2], who).expect("there is room");
            [leases[0][0], leases[1][0]]
        };
        assert_eq!(first(Backwards::NeediestFirst), [false, true], "the gang, two GPUs");
        assert_eq!(first(Backwards::GangsFirst), [true, false], "the single one");
    }

    #[test]
    fn greedy_falls_to_lesser_levels() {
        let rows = [row(8, 2, 2, 8.0, 0), row(8, 2, 4, 5.0, 1), row(8, 1, 1, 10.0, 0)];
        let plan = greedy(&rows, Shelf::new(vec![8; 4])).expect("fits at the second level");
        assert_eq!(plan.chosen, [false, true, true]);
        assert_eq!(plan.leases[1], [false, false, true, true]);
        assert_eq!(greedy(&rows[..1], Shelf::new(vec![8])), Err(0));
    }
}
