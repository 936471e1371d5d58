//! The policies without a model: equal shares, first come first served, random pairs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::call::{ByType, Call, CallJob, RowId, Shares};
use super::{ArtifactError, Draws, Policy};

/// Two jobs share GPUs in `fifo_packed` if together they are worth more than this many jobs alone.
const WORTH_PACKING: f64 = 1.5;

/// One of them, with what it remembers.
pub(super) struct Heuristic {
    rule: Rule,
    random: Box<dyn Draws + Send>,
}

enum Rule {
    /// One part of the cluster for each of n jobs.
    Equal(Equal),
    /// First come, first served; with the defect D1 the type of each job that runs is remembered.
    Fifo { types: BTreeMap<u32, usize> },
    /// First come, first served, each on its fastest type; in a second pass, jobs that wait join jobs that run.
    FifoBySpeed { packs: bool },
    /// Random pairs are tried and kept while they are worth it.
    Gandiva { kept: BTreeMap<u32, RowId> },
}

#[derive(Clone, Copy)]
enum Equal {
    /// Divided by the job's GPUs.
    Isolated,
    /// Not divided by them.
    PerJob,
    /// The mix of the cluster, all the time.
    Mix,
}

impl Heuristic {
    pub(super) fn parse(name: &str, random: Box<dyn Draws + Send>) -> Option<Self> {
        let rule = match name {
            "isolated" => Rule::Equal(Equal::Isolated),
            "isolated_plus" | "gandiva_fair" => Rule::Equal(Equal::PerJob),
            "proportional" => Rule::Equal(Equal::Mix),
            "fifo" => Rule::Fifo { types: BTreeMap::new() },
            "fifo_perf" => Rule::FifoBySpeed { packs: false },
            "fifo_packed" => Rule::FifoBySpeed { packs: true },
            "gandiva" => Rule::Gandiva { kept: BTreeMap::new() },
            _ => return None,
        };
        Some(Heuristic { rule, random })
    }
}

impl Policy for Heuristic {
    fn shares(&mut self, call: &Call<'_>) -> Result<Shares, ArtifactError> {
        let random = self.random.as_mut();
        Ok(match &mut self.rule {
            Rule::Equal(how) => equal(call, *how),
            Rule::Fifo { types } => fifo(call, types, random),
            Rule::FifoBySpeed { packs } => fifo_by_speed(call, *packs),
            Rule::Gandiva { kept } => gandiva(call, kept, random),
        })
    }
}

/// `parts` of the time, scaled down to one if they are more.
fn at_most_one(parts: ByType) -> ByType {
    let all = parts.iter().sum::<f64>().max(1.0);
    parts.into_iter().map(|part| part / all).collect()
}

/// One of `n` equal parts of the cluster, for a row that takes `gpus` at once.
fn part_of(call: &Call<'_>, n: usize, gpus: f64) -> ByType {
    at_most_one(call.gpus.iter().map(|all| f64::from(*all) / n as f64 / gpus).collect())
}

fn equal(call: &Call<'_>, how: Equal) -> Shares {
    let n_gpus = f64::from(call.n_gpus());
    let share = |job: &CallJob| match how {
        Equal::Isolated => part_of(call, call.jobs.len(), f64::from(job.gpus)),
        Equal::PerJob => part_of(call, call.jobs.len(), 1.0),
        Equal::Mix => call.gpus.iter().map(|all| f64::from(*all) / n_gpus).collect(),
    };
    call.jobs.iter().map(|job| (RowId::single(job.id), share(job))).collect()
}

/// All of the time on one type.
fn only(call: &Call<'_>, chosen: usize) -> ByType {
    (0..call.types.len()).map(|t| if t == chosen { 1.0 } else { 0.0 }).collect()
}

fn by_id<'c>(call: &'c Call<'_>) -> BTreeMap<u32, &'c CallJob> {
    call.jobs.iter().map(|job| (job.id, job)).collect()
}

/// `fifo`, with the defect D1: a job always goes to the alphabetically last type that is still listed, whether it fits there or
/// not, and when that type is full a random one is struck off the list.
fn fifo(call: &Call<'_>, types: &mut BTreeMap<u32, usize>, random: &mut dyn Draws) -> Shares {
    let jobs = by_id(call);
    let mut free: Vec<i64> = call.gpus.iter().map(|gpus| i64::from(*gpus)).collect();
    let mut queue: VecDeque<u32> = jobs.keys().copied().filter(|job| !types.contains_key(job)).collect();
    for (job, t) in types.clone() {
        if let Some(job) = jobs.get(&job) {
            free[t] -= i64::from(job.gpus);
            continue;
        }
        types.remove(&job);
        let next = queue.front().and_then(|next| jobs.get(next));
        if let Some(next) = next.filter(|next| i64::from(next.gpus) <= free[t] && next.rates[t] > 0.0) {
            queue.pop_front();
            types.insert(next.id, t);
            free[t] -= i64::from(next.gpus);
        }
    }
    let mut listed: Vec<usize> = (0..free.len()).filter(|t| free[*t] > 0).collect();
    while let (Some(job), Some(&last)) = (queue.pop_front().and_then(|job| jobs.get(&job)), listed.last()) {
        let fitting: Vec<usize> =
            (0..listed.len()).filter(|at| free[listed[*at]] >= i64::from(job.gpus)).collect();
        if fitting.is_empty() {
            break;
        }
        let drawn = random.below(fitting.len());
        if job.rates[last] > 0.0 {
            types.insert(job.id, last);
            free[last] -= i64::from(job.gpus);
            if free[last] == 0 {
                listed.remove(fitting[drawn]);
            }
        }
    }
    types.iter().map(|(job, t)| (RowId::single(*job), only(call, *t))).collect()
}

fn fifo_by_speed(call: &Call<'_>, packs: bool) -> Shares {
    let jobs = by_id(call);
    let mut free: Vec<i64> = call.gpus.iter().map(|gpus| i64::from(*gpus)).collect();
    let mut queue: VecDeque<u32> = jobs.keys().copied().collect();
    // In the order of assignment, which decides ties of the second pass.
    let mut assigned: Vec<(RowId, usize)> = Vec::new();
    while free.iter().any(|free| *free > 0) {
        let Some(job) = queue.pop_front().and_then(|job| jobs.get(&job)) else { break };
        let fitting = (0..free.len()).filter(|t| free[*t] > 0 && free[*t] >= i64::from(job.gpus));
        // Of equals the first.
        let best = fitting.fold(None, |best: Option<usize>, t| match best {
            Some(best) if job.rates[best] >= job.rates[t] => Some(best),
            _ => Some(t),
        });
        let Some(best) = best else { break };
        if job.rates[best] > 0.0 {
            assigned.push((RowId::single(job.id), best));
            free[best] -= i64::from(job.gpus);
        }
    }
    while let Some(job) = queue.pop_front().filter(|_| packs).and_then(|job| jobs.get(&job)) {
        let Some((at, pair)) = best_mate(call, &jobs, &assigned, job) else { break };
        // The pair comes last, as in the original's map.
        let (_, t) = assigned.remove(at);
        assigned.push((pair, t));
    }
    assigned.into_iter().map(|(row, t)| (row, only(call, t))).collect()
}

/// The job that runs alone and with which this one is worth most, if it is worth it.
fn best_mate(
    call: &Call<'_>,
    jobs: &BTreeMap<u32, &CallJob>,
    assigned: &[(RowId, usize)],
    job: &CallJob,
) -> Option<(usize, RowId)> {
    let mut best = (WORTH_PACKING, None);
    for (at, (row, t)) in assigned.iter().enumerate().filter(|(_, (row, _))| row.second.is_none()) {
        let Some(mate) = jobs.get(&row.first).filter(|mate| mate.gpus == job.gpus) else { continue };
        let pair = RowId::pair(mate.id, job.id);
        let Some(rates) = call.pairs.pair(pair.first, pair.second.unwrap_or(pair.first)) else { continue };
        let members = pair.jobs().zip(rates[*t]).filter(|(_, rate)| *rate > 0.0);
        let worth: f64 = members.map(|(id, rate)| rate / jobs[&id].rates[*t]).sum();
        if worth > best.0 {
            best = (worth, Some((at, pair)));
        }
    }
    best.1
}

fn gandiva(call: &Call<'_>, kept: &mut BTreeMap<u32, RowId>, random: &mut dyn Draws) -> Shares {
    let jobs = by_id(call);
    kept.retain(|_, row| row.jobs().all(|job| jobs.contains_key(&job)) && worth(call, &jobs, *row) >= 1.0);
    let wanted: u32 = call.jobs.iter().map(|job| job.gpus).sum();
    let rows: BTreeSet<RowId> = if wanted > call.n_gpus() {
        let mut alone: Vec<u32> = jobs.keys().copied().filter(|job| !kept.contains_key(job)).collect();
        for _ in 0..alone.len() {
            if alone.len() < 2 {
                break;
            }
            let [a, b] = sample_two(alone.len(), random).map(|at| alone[at]);
            if jobs[&a].gpus == jobs[&b].gpus {
                alone.retain(|job| *job != a && *job != b);
                kept.extend([a, b].map(|job| (job, RowId::pair(a, b))));
            }
        }
        kept.extend(alone.into_iter().map(|job| (job, RowId::single(job))));
        kept.values().copied().collect()
    } else {
        jobs.keys().map(|job| RowId::single(*job)).collect()
    };
    let n_rows = rows.len();
    rows.into_iter().map(|row| (row, part_of(call, n_rows, f64::from(jobs[&row.first].gpus)))).collect()
}

/// What a pair does against its members alone, added up over all types; nothing if it cannot run on one of them.
fn worth(call: &Call<'_>, jobs: &BTreeMap<u32, &CallJob>, row: RowId) -> f64 {
    let Some(rates) = row.second.and_then(|second| call.pairs.pair(row.first, second)) else { return 0.0 };
    if rates.iter().flatten().any(|rate| *rate <= 0.0) {
        return 0.0;
    }
    let on = |(t, rates): (usize, &[f64; 2])| {
        row.jobs().zip(rates).map(|(job, rate)| rate / jobs[&job].rates[t]).sum::<f64>()
    };
    rates.iter().enumerate().map(on).sum()
}

/// Two different places below `n`, as Python's `sample` draws them.
fn sample_two(n: usize, random: &mut dyn Draws) -> [usize; 2] {
    /// Up to here Python draws from a copy of the list.
    const FROM_A_COPY: usize = 21;
    let first = random.below(n);
    if n <= FROM_A_COPY {
        let second = random.below(n - 1);
        // The last one took the place of the first drawn.
        return [first, if second == first { n - 1 } else { second }];
    }
    loop {
        let second = random.below(n);
        if second != first {
            return [first, second];
        }
    }
}
