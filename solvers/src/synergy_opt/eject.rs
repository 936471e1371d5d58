//! Ejection search: homes for the last jobs of a tight packing.
//!
//! A homeless job takes the place of one or two others, those that have been turned out least often; they
//! then look for a home in turn. The counts steer the search out of circles (breakout local search), so it
//! needs no random numbers. Phase 1 uses up every CPU, so packings here are often perfect or nothing.

use super::{Demand, Part, Server};

/// Most ejections before giving up: about 10 ms on 16 servers of 8 jobs.
const MOST_STEPS: usize = 8_000;

/// Tries to place every homeless job whole; the best state seen is kept. Spread jobs stay where they are.
pub(super) fn eject(jobs: &[Demand], free: &mut Vec<Server>, placed: &mut [Vec<Part>]) {
    let mut search = Search {
        jobs,
        here: vec![Vec::new(); free.len()],
        free: free.clone(),
        home: vec![None; jobs.len()],
        weights: vec![1; jobs.len()],
    };
    let mut homeless = Vec::new();
    for (j, parts) in placed.iter().enumerate() {
        match parts[..] {
            [Part { server, .. }] => {
                search.home[j] = Some(server);
                search.here[server].push(j);
            }
            [] if search.could_fit(j) => homeless.push(j),
            _ => {}
        }
    }
    let n_missing = |homeless: &[usize]| homeless.iter().map(|&j| jobs[j].gpus).sum::<u32>();
    let mut fewest = n_missing(&homeless);
    let mut steps = 0;
    while let Some(j) = homeless.pop()
        && steps < MOST_STEPS
    {
        steps += 1;
        if let Some(server) = search.open_home(j) {
            search.settle(j, server);
        } else if let Some((server, turned_out)) = search.cheapest_ejection(j) {
            for other in turned_out.into_iter().flatten() {
                search.leave(other, server);
                homeless.push(other);
            }
            search.settle(j, server);
            // the largest looks first
            homeless.sort_by_key(|&j| (jobs[j].gpus, jobs[j].cpus as u64, std::cmp::Reverse(j)));
        } else {
            homeless.insert(0, j);
        }
        if n_missing(&homeless) < fewest {
            fewest = n_missing(&homeless);
            free.clone_from(&search.free);
            search.write(placed);
        }
    }
}

/// A server, and the one or two jobs that leave it.
type Ejection = (usize, [Option<usize>; 2]);

struct Search<'a> {
    jobs: &'a [Demand],
    free: Vec<Server>,
    /// Whole jobs on each server.
    here: Vec<Vec<usize>>,
    home: Vec<Option<usize>>,
    /// How often each job was turned out, plus one.
    weights: Vec<u32>,
}

impl Search<'_> {
    /// Whether some server, emptied of whole jobs, could hold the job.
    fn could_fit(&self, j: usize) -> bool {
        self.free.iter().any(|server| server.units(&self.jobs[j]) == self.jobs[j].gpus)
            || self.here.iter().zip(&self.free).any(|(here, server)| {
                let mut empty = *server;
                here.iter().for_each(|&other| empty.give(&self.jobs[other], self.jobs[other].gpus));
                empty.units(&self.jobs[j]) == self.jobs[j].gpus
            })
    }

    /// The server with room for the job that has least CPUs left.
    fn open_home(&self, j: usize) -> Option<usize> {
        let job = &self.jobs[j];
        let fits = |&s: &usize| self.free[s].units(job) == job.gpus;
        (0..self.free.len()).filter(fits).min_by(|&a, &b| self.free[a].cpus.total_cmp(&self.free[b].cpus))
    }

    fn settle(&mut self, j: usize, server: usize) {
        self.free[server].take(&self.jobs[j], self.jobs[j].gpus);
        self.here[server].push(j);
        self.home[j] = Some(server);
    }

    fn leave(&mut self, j: usize, server: usize) {
        self.free[server].give(&self.jobs[j], self.jobs[j].gpus);
        self.here[server].retain(|&other| other != j);
        self.home[j] = None;
        self.weights[j] += 1;
    }

    /// The one or two jobs whose leaving makes room, by least weight, then least CPUs left over.
    fn cheapest_ejection(&self, j: usize) -> Option<Ejection> {
        let job = &self.jobs[j];
        let mut best: Option<((u32, f64), Ejection)> = None;
        for (s, here) in self.here.iter().enumerate() {
            for (at, &first) in here.iter().enumerate() {
                let mut one_less = self.free[s];
                one_less.give(&self.jobs[first], self.jobs[first].gpus);
                let seconds = std::iter::once(None).chain(here[at + 1..].iter().copied().map(Some));
                for second in seconds {
                    let mut room = one_less;
                    let mut weight = self.weights[first];
                    if let Some(second) = second {
                        room.give(&self.jobs[second], self.jobs[second].gpus);
                        weight += self.weights[second];
                    }
                    let score = (weight, room.cpus);
                    let is_better = best.as_ref().is_none_or(|(so_far, ..)| score < *so_far);
                    if is_better && room.units(job) == job.gpus {
                        best = Some((score, (s, [Some(first), second])));
                    }
                    if second.is_none() && room.units(job) == job.gpus {
                        break;
                    }
                }
            }
        }
        best.map(|(_, ejection)| ejection)
    }

    /// Writes the whole jobs' homes; spread jobs keep their parts.
    fn write(&self, placed: &mut [Vec<Part>]) {
        for ((home, job), parts) in self.home.iter().zip(self.jobs).zip(placed) {
            match home {
                Some(server) => *parts = vec![Part { server: *server, gpus: job.gpus }],
                None if parts.len() <= 1 => parts.clear(),
                None => {}
            }
        }
    }
}
