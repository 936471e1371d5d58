//! AlloX: the cheapest assignment of jobs to GPUs and places in their queues, counted from the end.

use std::collections::BTreeMap;

use super::call::{Call, CallJob, RowId, Shares};
use super::{ArtifactError, Policy};

/// Steps in a second of a job on a type that cannot run it.
const NO_SPEED: f64 = 1e-10;

/// The policy and what it remembers: a job keeps its GPU until it ends.
pub(super) struct Allox {
    /// Part of the jobs that are looked at, the oldest first.
    part: f64,
    types: BTreeMap<u32, usize>,
}

impl Allox {
    pub(super) fn new(part: f64) -> Self {
        Allox { part, types: BTreeMap::new() }
    }
}

impl Policy for Allox {
    fn shares(&mut self, call: &Call<'_>) -> Result<Shares, ArtifactError> {
        if let Some(job) = call.jobs.iter().find(|job| job.gpus != 1) {
            return Err(ArtifactError::Gang { job: job.id, gpus: job.gpus });
        }
        self.types.retain(|job, _| call.jobs.iter().any(|other| other.id == *job));
        let mut free = call.gpus.to_vec();
        self.types.values().for_each(|t| free[*t] = free[*t].saturating_sub(1));
        let mut others: Vec<&CallJob> =
            call.jobs.iter().filter(|job| !self.types.contains_key(&job.id)).collect();
        // The one that has waited longest first; of equals, the one that arrived first.
        others.sort_by(|a, b| b.waited_s.total_cmp(&a.waited_s));
        let gpus: Vec<usize> = (0..free.len()).flat_map(|t| vec![t; free[t] as usize]).collect();
        let n_looked_at = ((self.part * others.len() as f64) as usize).max(gpus.len());
        others.truncate(n_looked_at);
        if !others.is_empty() && !gpus.is_empty() {
            self.types.extend(first_of_each(&others, &gpus));
        }
        let all_of_it =
            |chosen: usize| (0..free.len()).map(|t| if t == chosen { 1.0 } else { 0.0 }).collect();
        Ok(self.types.iter().map(|(job, t)| (RowId::single(*job), all_of_it(*t))).collect())
    }
}

/// The job that each GPU runs first, with its type.
fn first_of_each(jobs: &[&CallJob], gpus: &[usize]) -> Vec<(u32, usize)> {
    // A job that is k-th from the end delays itself and the k - 1 jobs behind it.
    let cost = |row: usize, column: usize| {
        let (job, t) = (jobs[row], gpus[column % gpus.len()]);
        let rate = if job.rates[t] > 0.0 { job.rates[t] } else { NO_SPEED };
        (column / gpus.len() + 1) as f64 * (job.left / rate) + job.waited_s
    };
    let places = cheapest(jobs.len(), jobs.len() * gpus.len(), cost);
    let mut first: BTreeMap<usize, (usize, u32)> = BTreeMap::new();
    for (job, place) in jobs.iter().zip(places) {
        let (from_the_end, gpu) = (place / gpus.len(), place % gpus.len());
        let longest = first.entry(gpu).or_insert((from_the_end, job.id));
        if from_the_end > longest.0 {
            *longest = (from_the_end, job.id);
        }
    }
    first.into_iter().map(|(gpu, (_, job))| (job, gpus[gpu])).collect()
}

/// The column of each row in a cheapest assignment, by shortest augmenting paths (Crouse 2016). Written by hand because many
/// assignments are equally cheap, and this one must be the original's: SciPy looks at free columns from the last to the first, and of
/// equals prefers one that ends the path.
fn cheapest(n_rows: usize, n_columns: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<usize> {
    let mut row_price = vec![0.0; n_rows];
    let mut column_price = vec![0.0; n_columns];
    let mut column_of: Vec<Option<usize>> = vec![None; n_rows];
    let mut row_of: Vec<Option<usize>> = vec![None; n_columns];
    for new in 0..n_rows {
        let mut distance = vec![f64::INFINITY; n_columns];
        let mut came_from = vec![0; n_columns];
        let mut reached_rows = Vec::new();
        let mut reached_columns = Vec::new();
        let mut open: Vec<usize> = (0..n_columns).rev().collect();
        let (mut row, mut shortest) = (new, 0.0);
        let sink = loop {
            reached_rows.push(row);
            let mut nearest = (f64::INFINITY, 0);
            for (at, &column) in open.iter().enumerate() {
                let through = shortest + cost(row, column) - row_price[row] - column_price[column];
                if through < distance[column] {
                    (distance[column], came_from[column]) = (through, row);
                }
                let is_end = distance[column] == nearest.0 && row_of[column].is_none();
                if distance[column] < nearest.0 || is_end {
                    nearest = (distance[column], at);
                }
            }
            shortest = nearest.0;
            let column = open.swap_remove(nearest.1);
            match row_of[column] {
                None => break column,
                Some(next) => row = next,
            }
            reached_columns.push(column);
        };
        row_price[new] += shortest;
        for row in reached_rows.into_iter().filter(|row| *row != new) {
            row_price[row] += shortest - column_of[row].map_or(shortest, |column| distance[column]);
        }
        for column in reached_columns {
            column_price[column] -= shortest - distance[column];
        }
        let mut column = Some(sink);
        while let Some(end) = column {
            let row = came_from[end];
            row_of[end] = Some(row);
            column = column_of[row].replace(end).filter(|_| row != new);
        }
    }
    column_of.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assignment_is_the_cheapest_of_all() {
        let costs = [[4.0, 1.0, 3.0, 9.0], [2.0, 0.0, 5.0, 9.0], [3.0, 2.0, 2.0, 9.0]];
        assert_eq!(cheapest(3, 4, |row, column| costs[row][column]), [1, 0, 2]);
        assert_eq!(cheapest(3, 3, |_, _| 1.0), [0, 1, 2], "of equals, SciPy's");
    }
}
