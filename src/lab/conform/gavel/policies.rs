//! One call of a policy: its objective, and its shares where they are unique.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rota_scripts::artifact::gavel::{
    self as artifact, Call, CallJob, Entity, EntityRule, PairSpeeds, RowId, Shares,
};
use rota_traces::error::InputError;
use rota_traces::generate::PythonRandom;
use rota_traces::source::Source;
use serde::Deserialize;
use smallvec::SmallVec;

use super::{Compare, Python, is_within, parse_row};
use crate::conform::{Judged, Verdict, parse_json};

/// Objectives and shares may differ by these parts.
const OBJECTIVE: f64 = 1e-5;
const UNIQUE_SHARES: f64 = 1e-4;
const SHARES: f64 = 1e-9;
const NORMALISED: f64 = 2e-3;

/// A row of the case table.
pub(super) struct GoldenCall {
    pub(super) input: PathBuf,
    pub(super) compare: Compare,
    pub(super) note: String,
}

#[derive(Deserialize)]
struct Input {
    policy: String,
    cluster: BTreeMap<String, u32>,
    jobs: Vec<Job>,
    #[serde(default)]
    pairs: Vec<Pair>,
    #[serde(default)]
    costs: BTreeMap<String, f64>,
    #[serde(default)]
    entities: BTreeMap<String, EntityOf>,
    #[serde(default)]
    history: Vec<Vec<Earlier>>,
    #[serde(default)]
    seed: u64,
    expected: Expected,
}

#[derive(Deserialize)]
struct Job {
    id: u32,
    scale_factor: u32,
    priority: f64,
    throughput: BTreeMap<String, f64>,
    steps_remaining: f64,
    time_since_start: f64,
    slo_s: Option<f64>,
}

#[derive(Deserialize)]
struct Pair {
    ids: [u32; 2],
    throughput: BTreeMap<String, [f64; 2]>,
}

#[derive(Deserialize)]
struct EntityOf {
    weight: f64,
    policy: String,
    jobs: Vec<u32>,
}

/// A job at an earlier call.
#[derive(Deserialize)]
struct Earlier {
    id: u32,
    time_since_start: f64,
    steps_remaining: f64,
}

#[derive(Deserialize)]
struct Expected {
    objective: Option<f64>,
    #[serde(rename = "T_last_feasible")]
    last_feasible: Option<f64>,
    #[serde(default)]
    allocation: BTreeMap<String, BTreeMap<String, f64>>,
    #[serde(default)]
    normalised_throughput: Vec<f64>,
    #[serde(default)]
    discount_factors: Vec<f64>,
}

/// Speeds of the pairs in a file.
struct Pairs(BTreeMap<(u32, u32), SmallVec<[[f64; 2]; 4]>>);

impl PairSpeeds for Pairs {
    fn pair(&self, first: u32, second: u32) -> Option<SmallVec<[[f64; 2]; 4]>> {
        self.0.get(&(first, second)).cloned()
    }
}

impl GoldenCall {
    pub(super) fn judge(&self) -> Judged {
        if self.compare == Compare::KnownDefect {
            return Ok(Verdict::Skipped(format!("the original's answer is wrong: {}", self.note)));
        }
        let source = Source::open(&self.input)?;
        let input: Input = parse_json(&source)?;
        let types: Vec<String> = input.cluster.keys().cloned().collect();
        let answer = input.answer(&source.name, &types);
        if self.compare == Compare::Error {
            return Ok(Verdict::of(match answer {
                Ok(_) => Some(format!("the original fails ({}), and ours answers", self.note)),
                Err(_) => None,
            }));
        }
        let (shares, objective, discounts) = answer?;
        let input_error = || InputError::problem(&source.name, "an expected row cannot be read");
        let difference = match self.compare {
            Compare::Objective => {
                input.objective_difference(objective).or_else(|| input.discount_difference(&discounts))
            }
            Compare::Shares => share_difference(&input, &types, &shares, SHARES).ok_or_else(input_error)?,
            Compare::NormalisedSpeeds => input.speed_difference(&types, &shares),
            _ => match input.objective_difference(objective) {
                None => share_difference(&input, &types, &shares, UNIQUE_SHARES).ok_or_else(input_error)?,
                found => found,
            },
        };
        Ok(Verdict::of(difference))
    }
}

impl Input {
    fn answer(
        &self,
        file: &str,
        types: &[String],
    ) -> Result<(Shares, Option<f64>, Vec<f64>), crate::conform::CaseError> {
        let by_type =
            |of: &BTreeMap<String, f64>| types.iter().map(|t| of.get(t).copied().unwrap_or(0.0)).collect();
        let pair = |pair: &Pair| {
            let rates = types.iter().map(|t| pair.throughput.get(t).copied().unwrap_or([0.0; 2])).collect();
            ((pair.ids[0], pair.ids[1]), rates)
        };
        let pairs = Pairs(self.pairs.iter().map(pair).collect());
        let rule = |name: &str| match name {
            "fairness" => Ok(EntityRule::Fairness),
            "fifo" => Ok(EntityRule::Fifo),
            _ => Err(InputError::expected(file, "an entity's policy, fairness or fifo").got(name)),
        };
        let entity = |of: &EntityOf| {
            Ok::<_, InputError>(Entity { weight: of.weight, rule: rule(&of.policy)?, jobs: of.jobs.clone() })
        };
        let entities: Vec<Entity> = self.entities.values().map(entity).collect::<Result<_, _>>()?;
        let prices: Vec<f64> = match self.costs.is_empty() {
            true => Vec::new(),
            false => types.iter().map(|t| self.costs.get(t).copied().unwrap_or(1.0)).collect(),
        };
        let gpus: Vec<u32> = self.cluster.values().copied().collect();
        let call = |jobs| Call {
            now_s: 0.0,
            types,
            gpus: &gpus,
            jobs,
            pairs: &pairs,
            prices: &prices,
            entities: &entities,
        };
        let job = |job: &Job, left: f64, waited_s: f64| CallJob {
            id: job.id,
            gpus: job.scale_factor,
            weight: job.priority,
            rates: by_type(&job.throughput),
            left,
            waited_s,
            slo_s: job.slo_s,
        };
        let mut policy = artifact::policy(&self.policy, Box::new(Python(PythonRandom::new(self.seed))))?;
        for earlier in &self.history {
            let known = |then: &Earlier| {
                let of = self.jobs.iter().find(|job| job.id == then.id)?;
                Some(job(of, then.steps_remaining, then.time_since_start))
            };
            policy.shares(&call(earlier.iter().filter_map(known).collect()))?;
        }
        let now = self.jobs.iter().map(|of| job(of, of.steps_remaining, of.time_since_start)).collect();
        let shares = policy.shares(&call(now))?;
        Ok((shares, policy.objective(), policy.discounts().to_vec()))
    }

    fn objective_difference(&self, got: Option<f64>) -> Option<String> {
        let (expected, part) = match self.expected.last_feasible {
            Some(last) => (Some(last), 1e-9),
            None => (self.expected.objective, OBJECTIVE),
        };
        match (expected, got) {
            (Some(expected), Some(got)) if is_within(part, expected, got) => None,
            (Some(expected), Some(got)) => Some(format!("expected an objective of {expected}, got {got}")),
            (expected, got) => Some(format!("expected the objective {expected:?}, got {got:?}")),
        }
    }

    fn discount_difference(&self, discounts: &[f64]) -> Option<String> {
        let expected = &self.expected.discount_factors;
        let mut pairs = expected.iter().zip(discounts).zip(&self.jobs);
        if expected.len() != discounts.len() {
            return Some(format!("expected {} discounts, got {}", expected.len(), discounts.len()));
        }
        pairs.find(|((expected, got), _)| !is_within(NORMALISED, **expected, **got)).map(
            |((expected, got), job)| format!("job {}: expected a discount of {expected}, got {got}", job.id),
        )
    }

    /// Compares each job's speed against that of the cluster's mix.
    fn speed_difference(&self, types: &[String], shares: &Shares) -> Option<String> {
        let alike = self.policy == "max_min_fairness_water_filling";
        let n_gpus: f64 = self.cluster.values().map(|gpus| f64::from(*gpus)).sum();
        let mut difference = None;
        for (job, expected) in self.jobs.iter().zip(&self.expected.normalised_throughput) {
            let rate = |t: &String| if alike { 1.0 } else { job.throughput.get(t).copied().unwrap_or(0.0) };
            let mix: f64 = types.iter().map(|t| rate(t) * f64::from(self.cluster[t]) / n_gpus).sum();
            let mut speed = 0.0;
            for (row, parts) in shares.iter().filter(|(row, _)| row.has(job.id)) {
                for (t, part) in types.iter().zip(parts) {
                    speed += part * self.rate_in(*row, job, t).unwrap_or_else(|| rate(t));
                }
            }
            let got = speed / mix;
            if (got - expected).abs() > NORMALISED * got.max(1e-3) {
                difference.get_or_insert(format!(
                    "job {}: expected {expected} times the speed of the cluster's mix, got {got}",
                    job.id
                ));
            }
        }
        difference
    }

    /// A job's speed in a pair.
    fn rate_in(&self, row: RowId, job: &Job, gpu_type: &str) -> Option<f64> {
        let second = row.second?;
        let pair = self.pairs.iter().find(|pair| pair.ids == [row.first, second])?;
        let rates = pair.throughput.get(gpu_type)?;
        Some(rates[usize::from(job.id == second)])
    }
}

/// The first share that differs; nothing if a row cannot be read.
fn share_difference(input: &Input, types: &[String], shares: &Shares, most: f64) -> Option<Option<String>> {
    for (text, expected) in &input.expected.allocation {
        let row = parse_row(text)?;
        for (t, gpu_type) in types.iter().enumerate() {
            let expected = expected.get(gpu_type).copied().unwrap_or(0.0);
            let got = shares.get(&row).map_or(0.0, |parts| parts[t]);
            if (got - expected).abs() > most {
                return Some(Some(format!(
                    "row {row} on {gpu_type}: expected a share of {expected}, got {got}"
                )));
            }
        }
    }
    Some(None)
}
