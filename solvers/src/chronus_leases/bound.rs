//! What no plan exceeds, found without a solve.
//!
//! All values count in full; of the first lease, as many GPUs as gangs can fill when they are wanted, as few as must be
//! there when they are not. For the latter gangs are taken apart: a job of `g` GPUs becomes `g` jobs of one, which may run
//! at different times. That is the model's linear relaxation, and for single GPUs packing backwards, who needs most first,
//! is optimal: were another unit to run instead of one that needs more, the two could change places later on.

use std::collections::{BTreeMap, VecDeque};

use super::settle::top;
use super::{LeaseGoal, LeaseProblem, LeaseRow};

impl LeaseProblem {
    /// What no plan exceeds, without a solve.
    pub fn bound(&self) -> f64 {
        if self.goal == LeaseGoal::Random {
            return self.rows.first().map_or(0.0, |row| row.value.max(0.0));
        }
        let values: f64 = self.jobs().filter_map(|(_, rows)| top(rows)).map(|(_, row)| row.value).sum();
        match self.goal {
            LeaseGoal::Maximize => values + self.fullest_first_lease() as f64 / self.largest_capacity(),
            _ if self.levels_are_apart() => {
                values - self.emptiest_first_lease() as f64 / self.largest_capacity()
            }
            _ => values,
        }
    }

    /// The largest sum of gangs that fits into the first lease.
    fn fullest_first_lease(&self) -> usize {
        let capacity = usize::try_from(self.capacity.first().copied().unwrap_or(0)).unwrap_or(0);
        let mut is_reached = vec![false; capacity + 1];
        is_reached[0] = true;
        let mut most = 0;
        for (_, rows) in self.jobs() {
            let Some(row) = rows.iter().find(|row| row.n_leases() > 0 && row.need > 0) else { continue };
            let gpus = row.gpus as usize;
            if most == capacity || gpus == 0 {
                continue;
            }
            for sum in (gpus..=capacity.min(most + gpus)).rev() {
                if is_reached[sum - gpus] && !is_reached[sum] {
                    is_reached[sum] = true;
                    most = most.max(sum);
                }
            }
        }
        most
    }

    /// GPUs of the first lease that no plan at the best levels does without. Nothing where gangs do not fit even taken
    /// apart: then some job has a lesser level, which costs more than the first lease is worth.
    fn emptiest_first_lease(&self) -> i64 {
        let tops = self.jobs().filter_map(|(_, rows)| top(rows)).map(|(_, row)| row);
        Apart::of(tops).left_for_the_first(&self.capacity).unwrap_or(0)
    }
}

/// Gangs taken apart into single GPUs.
struct Apart {
    /// By horizon, farthest last: leases needed, and by how many GPUs.
    by_horizon: BTreeMap<usize, Vec<(u32, i64)>>,
}

impl Apart {
    fn of<'a>(rows: impl Iterator<Item = &'a LeaseRow>) -> Self {
        let mut by_horizon: BTreeMap<usize, Vec<(u32, i64)>> = BTreeMap::new();
        for row in rows.filter(|row| row.need > 0 && row.gpus > 0) {
            by_horizon.entry(row.n_leases()).or_default().push((row.need, i64::from(row.gpus)));
        }
        Apart { by_horizon }
    }

    /// What is left for the first lease when the later ones are packed backwards; `None` if that is too much for it.
    fn left_for_the_first(mut self, capacity: &[i64]) -> Option<i64> {
        let mut left = Left::default();
        let n_leases = self.by_horizon.keys().next_back().copied().unwrap_or(0);
        for lease in (1..n_leases).rev() {
            while let Some(due) = self.by_horizon.last_entry().filter(|entry| *entry.key() > lease) {
                due.remove().into_iter().for_each(|(need, gpus)| left.add(need, gpus));
            }
            left.run(capacity.get(lease).copied().unwrap_or(0).max(0));
        }
        self.by_horizon.into_values().flatten().for_each(|(need, gpus)| left.add(need, gpus));
        let fits = left.by_need.len() <= 1 && left.total <= capacity.first().copied().unwrap_or(0);
        fits.then_some(left.total)
    }
}

/// GPUs that still have leases to run.
#[derive(Default)]
struct Left {
    /// How many GPUs need one lease, two, …; the last is not 0.
    by_need: VecDeque<i64>,
    total: i64,
}

impl Left {
    fn add(&mut self, need: u32, gpus: i64) {
        let (position, n_needs) = (need as usize - 1, self.by_need.len());
        self.by_need.resize(n_needs.max(position + 1), 0);
        self.by_need[position] += gpus;
        self.total += gpus;
    }

    /// Lets so many GPUs run for one lease, those that need most first.
    fn run(&mut self, mut free: i64) {
        if self.total <= free {
            self.total -= self.by_need.pop_front().unwrap_or(0);
            return;
        }
        let mut from_above = 0;
        for gpus in self.by_need.iter_mut().rev() {
            let runs = free.min(*gpus);
            free -= runs;
            *gpus += from_above - runs;
            from_above = runs;
        }
        self.total -= from_above;
        while self.by_need.back() == Some(&0) {
            self.by_need.pop_back();
        }
    }
}
