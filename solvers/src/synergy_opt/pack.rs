//! Packing without a solver: the start of the placement ILP, and what rounds its LP.
//!
//! Vector bin packing by decreasing size and best fit, tried with several weightings of GPUs, CPUs and
//! memory, then repaired: a job without a place takes one from a job that can move, and at last [`eject`] searches.
//! Ties go to the lower position.

use super::{Demand, Gangs, Part, PlacementProblem, Server, eject::eject};

/// How GPUs, CPUs and memory count when jobs are ordered and servers compared.
const WEIGHTS: [[f64; 3]; 8] = [
    [1.0, 1.0, 1.0],
    [1.0, 0.0, 0.0],
    [0.0, 1.0, 0.0],
    [0.0, 0.0, 1.0],
    [2.0, 1.0, 1.0],
    [1.0, 2.0, 1.0],
    [1.0, 1.0, 2.0],
    [1.0, 2.0, 2.0],
];

/// The packing that places most GPUs, on fewest servers. Jobs that fit nowhere have an empty list.
pub fn pack(problem: &PlacementProblem, gangs: Gangs) -> Vec<Vec<Part>> {
    let mut free = problem.servers.clone();
    let mut placed = vec![Vec::new(); problem.jobs.len()];
    pack_rest(problem, gangs, &mut free, &mut placed);
    placed
}

/// Places the jobs that have no place yet into what is free.
pub(super) fn pack_rest(
    problem: &PlacementProblem,
    gangs: Gangs,
    free: &mut Vec<Server>,
    placed: &mut Vec<Vec<Part>>,
) {
    let rest: Vec<usize> = (0..problem.jobs.len()).filter(|&j| placed[j].is_empty()).collect();
    let mut best: Option<Attempt<'_>> = None;
    for weights in WEIGHTS {
        let scale = Scale::new(&problem.servers, weights);
        let mut attempt = Attempt { problem, gangs, scale, free: free.clone(), placed: placed.clone() };
        attempt.run(&rest);
        let is_perfect = attempt.score(&rest) == (0, rest.len());
        if best.as_ref().is_none_or(|best| attempt.score(&rest) < best.score(&rest)) {
            best = Some(attempt);
        }
        if is_perfect {
            break;
        }
    }
    if let Some(mut best) = best {
        if best.score(&rest).0 > 0 {
            eject(&problem.jobs, &mut best.free, &mut best.placed);
            best.spread_homeless(&rest);
        }
        (*free, *placed) = (best.free, best.placed);
    }
}

/// Weights per unit, so that a whole server counts alike in every resource.
#[derive(Clone, Copy)]
struct Scale([f64; 3]);

impl Scale {
    fn new(servers: &[Server], weights: [f64; 3]) -> Self {
        let per = |weight: f64, total: f64| if total > 0.0 { weight / total } else { 0.0 };
        Scale([
            per(weights[0], servers.iter().map(|s| f64::from(s.gpus)).sum()),
            per(weights[1], servers.iter().map(|s| s.cpus).sum()),
            per(weights[2], servers.iter().map(|s| s.memory).sum()),
        ])
    }

    fn size(&self, gpus: u32, cpus: f64, memory: f64) -> f64 {
        self.0[0] * f64::from(gpus) + self.0[1] * cpus + self.0[2] * memory
    }
}

struct Attempt<'a> {
    problem: &'a PlacementProblem,
    gangs: Gangs,
    scale: Scale,
    free: Vec<Server>,
    placed: Vec<Vec<Part>>,
}

impl Attempt<'_> {
    /// GPUs without a place, then parts: less is better.
    fn score(&self, rest: &[usize]) -> (u32, usize) {
        let homeless = rest.iter().filter(|&&j| self.placed[j].is_empty());
        let n_missing = homeless.map(|&j| self.problem.jobs[j].gpus).sum();
        (n_missing, rest.iter().map(|&j| self.placed[j].len()).sum())
    }

    fn run(&mut self, rest: &[usize]) {
        let size = |job: &Demand| self.scale.size(job.gpus, job.cpus, job.memory);
        let mut order: Vec<usize> = rest.to_vec();
        order.sort_by(|&a, &b| size(&self.problem.jobs[b]).total_cmp(&size(&self.problem.jobs[a])));
        for &j in &order {
            // what is larger than every server comes first in this order, while there is room
            if !self.place_whole(j) && self.is_larger_than_servers(&self.problem.jobs[j]) {
                self.place_spread(j);
            }
        }
        for j in order {
            if self.placed[j].is_empty() {
                self.place_by_moving(j);
            }
        }
    }

    /// Spreads what has no place yet, where the rule allows it.
    fn spread_homeless(&mut self, rest: &[usize]) {
        for &j in rest {
            let may_spread = self.gangs == Gangs::Split || self.is_larger_than_servers(&self.problem.jobs[j]);
            if self.placed[j].is_empty() && may_spread {
                self.place_spread(j);
            }
        }
    }

    fn is_larger_than_servers(&self, job: &Demand) -> bool {
        self.problem.servers.iter().all(|server| server.gpus < job.gpus)
    }

    /// On the server that has least left over.
    fn place_whole(&mut self, j: usize) -> bool {
        let job = &self.problem.jobs[j];
        let Some(server) = self.best_fit(job, usize::MAX) else { return false };
        self.free[server].take(job, job.gpus);
        self.placed[j] = vec![Part { server, gpus: job.gpus }];
        true
    }

    fn best_fit(&self, job: &Demand, except: usize) -> Option<usize> {
        let left = |server: &Server| self.scale.size(server.gpus, server.cpus, server.memory);
        self.free
            .iter()
            .enumerate()
            .filter(|&(s, server)| s != except && server.units(job) == job.gpus)
            .min_by(|(_, a), (_, b)| left(a).total_cmp(&left(b)))
            .map(|(s, _)| s)
    }

    /// Makes room by moving one other whole job elsewhere.
    fn place_by_moving(&mut self, j: usize) -> bool {
        let jobs = &self.problem.jobs;
        for other in 0..jobs.len() {
            let [Part { server, gpus }] = self.placed[other][..] else { continue };
            self.free[server].give(&jobs[other], gpus);
            if self.free[server].units(&jobs[j]) == jobs[j].gpus
                && let Some(target) = self.best_fit(&jobs[other], server)
            {
                self.free[server].take(&jobs[j], jobs[j].gpus);
                self.placed[j] = vec![Part { server, gpus: jobs[j].gpus }];
                self.free[target].take(&jobs[other], gpus);
                self.placed[other] = vec![Part { server: target, gpus }];
                return true;
            }
            self.free[server].take(&jobs[other], gpus);
        }
        false
    }

    /// Over several servers, the roomiest first.
    fn place_spread(&mut self, j: usize) {
        let job = &self.problem.jobs[j];
        let mut servers: Vec<usize> = (0..self.free.len()).collect();
        servers.sort_by_key(|&s| std::cmp::Reverse(self.free[s].units(job)));
        let mut parts = Vec::new();
        let mut missing = job.gpus;
        for server in servers {
            let gpus = self.free[server].units(job).min(missing);
            if gpus > 0 {
                parts.push(Part { server, gpus });
                missing -= gpus;
            }
        }
        if missing == 0 {
            for part in &parts {
                self.free[part.server].take(job, part.gpus);
            }
            self.placed[j] = parts;
        }
    }
}
