//! The policies with a model: what each asks of [`rota_solvers::gavel_shares`], and what it remembers between calls.

use std::collections::BTreeMap;

use rota_solvers::gavel_shares::{FinishTimes, Makespan, TimePlan, TimeShares};
use rota_solvers::{Highs, Limits};

use super::call::{Call, CallJob, EntityRule, RowId, Shares};
use super::{ArtifactError, Policy};

/// What a policy wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// The largest smallest share, as the speed it brings against the cluster's mix.
    MaxMin,
    /// The same, and then for those who can still rise, and so on.
    WaterFilling,
    /// The smallest worst finish-time ratio.
    FinishTime,
    /// The shortest makespan.
    Makespan,
    /// The largest sum of speeds; deadlines are kept where they can be.
    Throughput,
    /// The largest product of speeds, discounted so that nobody gains by a lie.
    Product,
}

/// Which speeds a policy believes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belief {
    Measured,
    /// Every type runs every job alike.
    AllAlike,
    /// Every type is as fast as a v100.
    AllV100,
}

impl Objective {
    /// That of a policy by its name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            name if name.starts_with("max_min_fairness_water_filling") => Objective::WaterFilling,
            name if name.starts_with("max_min_fairness") => Objective::MaxMin,
            name if name.starts_with("finish_time_fairness") => Objective::FinishTime,
            name if name.starts_with("min_total_duration") => Objective::Makespan,
            name if name.starts_with("max_sum_throughput") => Objective::Throughput,
            "strategy_proof_perf" => Objective::Product,
            _ => return None,
        })
    }
}

/// A policy with a model.
pub(super) struct ModelPolicy {
    name: String,
    objective: Objective,
    believes: Belief,
    packs: bool,
    history: History,
    /// What the last call came to.
    last: Option<f64>,
    discounts: Vec<f64>,
}

/// What finish-time fairness remembers of each job.
#[derive(Default)]
struct History {
    /// Seconds with its own part of the cluster that its work so far would have taken.
    alone_s: BTreeMap<u32, f64>,
    /// Steps left and speed alone at the last call.
    last: BTreeMap<u32, (f64, f64)>,
}

impl ModelPolicy {
    pub(super) fn new(name: &str, objective: Objective) -> Self {
        let believes = match name {
            "max_min_fairness" | "max_min_fairness_water_filling" => Belief::AllAlike,
            "finish_time_fairness" | "min_total_duration" => Belief::AllV100,
            _ => Belief::Measured,
        };
        let packs = name.contains("packed");
        ModelPolicy {
            name: name.to_owned(),
            objective,
            believes,
            packs,
            history: History::default(),
            last: None,
            discounts: Vec::new(),
        }
    }

    /// The speeds it believes in.
    fn rates(&self, call: &Call<'_>, job: &CallJob) -> Result<Vec<f64>, ArtifactError> {
        let n_types = call.types.len();
        Ok(match self.believes {
            Belief::Measured => job.rates.iter().map(|rate| self.rounded(*rate)).collect(),
            Belief::AllAlike => vec![1.0; n_types],
            Belief::AllV100 => {
                let v100 = call.types.iter().position(|name| name == "v100");
                let v100 = v100.ok_or_else(|| ArtifactError::NoV100 { policy: self.name.clone() })?;
                vec![job.rates[v100]; n_types]
            }
        })
    }

    /// Models with pairs are in single precision in the original (D14).
    fn rounded(&self, rate: f64) -> f64 {
        if self.packs { f64::from(rate as f32) } else { rate }
    }

    fn solve(
        &mut self,
        call: &Call<'_>,
        shares: &TimeShares,
        rates: &[Vec<f64>],
    ) -> Result<TimePlan, ArtifactError> {
        let (solver, limits) = (&mut Highs, &Limits::default());
        let proportional: Vec<f64> = rates.iter().map(|rates| mix(call, rates)).collect();
        let left: Vec<f64> = call.jobs.iter().map(|job| job.left).collect();
        let by_share = |(job, mix): (&CallJob, &f64)| f64::from(job.gpus) / (job.weight * mix);
        Ok(match self.objective {
            Objective::MaxMin => {
                if let Some((job, _)) = call.jobs.iter().zip(&proportional).find(|(_, mix)| **mix <= 0.0) {
                    return Err(ArtifactError::NoSpeed { job: job.id });
                }
                let factors: Vec<f64> = call.jobs.iter().zip(&proportional).map(by_share).collect();
                shares.max_min(&factors, solver, limits)?
            }
            Objective::WaterFilling => {
                let factors: Vec<f64> = proportional.iter().map(|mix| 1.0 / mix).collect();
                shares.fill(&factors, &|is_final| water_weights(call, is_final), solver, limits)?
            }
            Objective::FinishTime => {
                let alone: Vec<f64> =
                    call.jobs.iter().zip(rates).map(|(job, rates)| alone(call, job, rates)).collect();
                let times = self.history.times(call, &alone, self.packs);
                shares.least_worst_ratio(&times, solver, limits)?
            }
            Objective::Makespan => shares.shortest(&left, Makespan::Bisected, solver, limits)?,
            Objective::Throughput => {
                let prices =
                    if call.prices.is_empty() { vec![1.0; call.types.len()] } else { call.prices.to_vec() };
                let least = |job: &CallJob| match job.slo_s.filter(|_| self.name.ends_with("SLOs")) {
                    Some(slo_s) => (job.left / slo_s).max(0.0),
                    None => 0.0,
                };
                let least: Vec<f64> = call.jobs.iter().map(least).collect();
                match shares.max_sum(&prices, &least, solver, limits)? {
                    Some(plan) => plan,
                    // Deadlines that cannot all be kept are all dropped.
                    None => shares
                        .max_sum(&prices, &vec![0.0; least.len()], solver, limits)?
                        .unwrap_or_else(nothing),
                }
            }
            Objective::Product => {
                let factors: Vec<f64> = call.jobs.iter().zip(&proportional).map(by_share).collect();
                let plan = shares.max_product(&factors, solver, limits)?;
                let discounts = shares.discounts(&plan, &factors, solver, limits)?;
                let parts = plan.parts.into_iter().zip(&discounts);
                let parts =
                    parts.map(|(row, discount)| row.into_iter().map(|part| part * discount).collect());
                self.discounts = discounts.clone();
                TimePlan { objective: plan.objective, parts: parts.collect() }
            }
        })
    }
}

fn nothing() -> TimePlan {
    TimePlan { objective: 0.0, parts: Vec::new() }
}

impl Policy for ModelPolicy {
    fn shares(&mut self, call: &Call<'_>) -> Result<Shares, ArtifactError> {
        if call.jobs.is_empty() {
            return Ok(Shares::new());
        }
        let rates: Result<Vec<_>, _> = call.jobs.iter().map(|job| self.rates(call, job)).collect();
        let rates = rates?;
        let by_job: BTreeMap<u32, &Vec<f64>> = call.jobs.iter().map(|job| job.id).zip(&rates).collect();
        let (shares, ids) = call.time_shares(self.packs, |job| by_job[&job.id].clone());
        if self.packs {
            check_rows(call, &ids)?;
        }
        let plan = self.solve(call, &shares.without_slow_pairs(), &rates)?;
        self.last = Some(plan.objective);
        Ok(ids.into_iter().zip(plan.parts.into_iter().map(Into::into)).collect::<BTreeMap<RowId, _>>())
    }

    fn objective(&self) -> Option<f64> {
        self.last
    }

    fn discounts(&self) -> &[f64] {
        &self.discounts
    }

    fn value_of(&self, call: &Call<'_>, answer: &Shares) -> Option<f64> {
        let rates: Vec<Vec<f64>> =
            call.jobs.iter().map(|job| self.rates(call, job)).collect::<Result<_, _>>().ok()?;
        let by_job: BTreeMap<u32, &Vec<f64>> = call.jobs.iter().map(|job| job.id).zip(&rates).collect();
        let (shares, ids) = call.time_shares(self.packs, |job| by_job[&job.id].clone());
        let nothing = vec![0.0; call.types.len()];
        let parts =
            ids.iter().map(|id| answer.get(id).map_or_else(|| nothing.clone(), |parts| parts.to_vec()));
        let speeds = shares.speeds(&parts.collect::<Vec<_>>());
        let jobs = || call.jobs.iter().zip(&speeds);
        match self.objective {
            Objective::Makespan => Some(jobs().map(|(job, speed)| job.left / speed).fold(0.0, f64::max)),
            Objective::WaterFilling => {
                let weights = water_weights(call, &vec![false; speeds.len()]);
                let rising = jobs().zip(&rates).zip(weights).filter(|(_, weight)| *weight > 0.0);
                let levels = rising.map(|(((_, speed), rates), weight)| speed / mix(call, rates) / weight);
                Some(levels.fold(f64::INFINITY, f64::min))
            }
            _ => None,
        }
    }
}

/// A job's speed with the mix of the cluster, all the time.
fn mix(call: &Call<'_>, rates: &[f64]) -> f64 {
    let n_gpus = f64::from(call.n_gpus());
    rates.iter().zip(call.gpus).map(|(rate, gpus)| rate * f64::from(*gpus) / n_gpus).sum()
}

/// The original writes the rows of all jobs into one list and cuts it into as many equal parts as there are jobs (D8), which fails
/// unless the length is a multiple of their number. Where it is one by chance, the original's rows are wrong and ours are not.
fn check_rows(call: &Call<'_>, ids: &[RowId]) -> Result<(), ArtifactError> {
    let rows_of = |job: &CallJob| ids.iter().filter(|id| id.has(job.id)).count();
    let counts: Vec<usize> = call.jobs.iter().map(rows_of).collect();
    let uneven = counts.iter().position(|count| *count != counts[0]);
    match uneven.filter(|_| counts.iter().sum::<usize>() % counts.len() != 0) {
        Some(at) => Err(ArtifactError::UnevenRows {
            first: call.jobs[0].id,
            n_first: counts[0],
            other: call.jobs[at].id,
            n_other: counts[at],
        }),
        None => Ok(()),
    }
}

/// A job's speed with its own part of the cluster.
fn alone(call: &Call<'_>, job: &CallJob, rates: &[f64]) -> f64 {
    let part = |gpus: &u32| f64::from(*gpus) / call.jobs.len() as f64 / f64::from(job.gpus);
    let all = call.gpus.iter().map(part).sum::<f64>().max(1.0);
    rates.iter().zip(call.gpus).map(|(rate, gpus)| rate * part(gpus) / all).sum()
}

/// By how much each job rises for a unit of the level; the level is for each GPU of it.
fn water_weights(call: &Call<'_>, is_final: &[bool]) -> Vec<f64> {
    let mut weights: Vec<f64> = vec![0.0; call.jobs.len()];
    if call.entities.is_empty() {
        weights = call.jobs.iter().map(|job| job.weight).collect();
    }
    for entity in call.entities {
        let open =
            |(at, job): (usize, &CallJob)| (entity.jobs.contains(&job.id) && !is_final[at]).then_some(at);
        let open: Vec<usize> = call.jobs.iter().enumerate().filter_map(open).collect();
        match entity.rule {
            EntityRule::Fifo => {
                open.iter().min_by_key(|at| call.jobs[**at].id).into_iter().for_each(|first| {
                    weights[*first] = entity.weight;
                })
            }
            EntityRule::Fairness => {
                let all: f64 = open.iter().map(|at| call.jobs[*at].weight).sum();
                open.iter().for_each(|at| weights[*at] = entity.weight * call.jobs[*at].weight / all);
            }
        }
    }
    let per_gpu = |(weight, job): (f64, &CallJob)| weight / f64::from(job.gpus);
    weights.into_iter().zip(&call.jobs).map(per_gpu).collect()
}

impl History {
    /// What is known at this call; `alone` are the jobs' speeds with their own part of the cluster.
    fn times(&mut self, call: &Call<'_>, alone: &[f64], has_weights: bool) -> FinishTimes {
        let mut now = BTreeMap::new();
        let mut alone_s = Vec::with_capacity(alone.len());
        for (job, speed) in call.jobs.iter().zip(alone) {
            let so_far = self.alone_s.entry(job.id).or_insert(0.0);
            if let Some((left, speed)) = self.last.get(&job.id) {
                *so_far += (left - job.left) / speed;
            }
            alone_s.push(*so_far + job.left / speed);
            now.insert(job.id, (job.left, *speed));
        }
        self.last = now;
        FinishTimes {
            waited_s: call.jobs.iter().map(|job| job.waited_s).collect(),
            left: call.jobs.iter().map(|job| job.left).collect(),
            alone_s,
            weights: call.jobs.iter().map(|job| if has_weights { job.weight } else { 1.0 }).collect(),
        }
    }
}
