//! A policy that answers as the original did, and compares what ours would have reached.

use std::collections::BTreeMap;

use rota_scripts::artifact::gavel::{ArtifactError, Call, Objective, Policy, Shares};
use serde::Deserialize;
use smallvec::smallvec;

use super::{is_within, parse_row};

/// Objectives of recorded answers may differ by this part.
const OBJECTIVE: f64 = 1e-5;
/// The original's solver calls some answers optimal that are this far off, with many pairs.
const OBJECTIVE_WITH_PAIRS: f64 = 1e-3;
/// Normalised speeds of water filling may differ by this part.
const LEVEL: f64 = 2e-3;
/// Where the original's bisection of the makespan ends: this far apart, and not below the second number.
const BISECTED: (f64, f64) = (1.05, 105.0);

/// An answer of the original's policy.
#[derive(Deserialize)]
pub(super) struct Answer {
    t: f64,
    x: BTreeMap<String, BTreeMap<String, f64>>,
    objective: Option<f64>,
}

/// The original's answers, and our policy.
pub(super) struct Replayed {
    answers: std::vec::IntoIter<Answer>,
    own: Box<dyn Policy + Send>,
    goal: Option<Objective>,
    tolerance: f64,
    difference: Option<String>,
    n_asked: usize,
}

impl Replayed {
    pub(super) fn new(answers: Vec<Answer>, own: Box<dyn Policy + Send>, policy: &str) -> Self {
        Replayed {
            answers: answers.into_iter(),
            own,
            goal: Objective::parse(policy),
            tolerance: if policy.contains("packed") { OBJECTIVE_WITH_PAIRS } else { OBJECTIVE },
            difference: None,
            n_asked: 0,
        }
    }

    /// The first answer that differs, or that was not asked for.
    pub(super) fn into_difference(mut self) -> Option<String> {
        let n_left = self.answers.by_ref().count();
        let unasked = (n_left > 0).then(|| format!("{n_left} recorded answers were not asked for"));
        self.difference.or(unasked)
    }

    /// What differs between a recorded answer and ours.
    fn compare(&self, call: &Call<'_>, shares: &Shares, recorded: Option<f64>) -> Option<String> {
        let got = self.own.objective()?;
        let value = || self.own.value_of(call, shares);
        match self.goal? {
            // The original's objective is a constant: its shares are within the last step of the search.
            Objective::Makespan => {
                let (value, (apart, least)) = (value()?, BISECTED);
                let is_in = value <= got * (1.0 + OBJECTIVE)
                    && (got <= least || value >= got / apart * (1.0 - OBJECTIVE));
                (!is_in)
                    .then(|| format!("expected a makespan of {value} s, got one of {got} s by the last step"))
            }
            Objective::WaterFilling => {
                let value = value()?;
                (!is_within(LEVEL, value, got))
                    .then(|| format!("expected a first level of {value}, got {got}"))
            }
            _ => {
                let expected = recorded?;
                (!is_within(self.tolerance, expected, got))
                    .then(|| format!("expected an objective of {expected}, got {got}"))
            }
        }
    }
}

impl Policy for Replayed {
    fn shares(&mut self, call: &Call<'_>) -> Result<Shares, ArtifactError> {
        let wrong = |recorded: String| ArtifactError::Recording { now_s: call.now_s, recorded };
        let answer = self.answers.next().ok_or_else(|| wrong("missing".into()))?;
        if (answer.t - call.now_s).abs() > 1e-6 {
            return Err(wrong(format!("for {} s", answer.t)));
        }
        let mut shares = Shares::new();
        for (text, parts) in answer.x {
            let row = parse_row(&text).ok_or_else(|| wrong(format!("for a row {text:?}")))?;
            let share = shares.entry(row).or_insert_with(|| smallvec![0.0; call.types.len()]);
            for (t, gpu_type) in call.types.iter().enumerate() {
                share[t] = parts.get(gpu_type).copied().unwrap_or(0.0);
            }
        }
        self.n_asked += 1;
        if !call.jobs.is_empty() && self.difference.is_none() {
            self.own.shares(call)?;
            let difference = self.compare(call, &shares, answer.objective);
            self.difference =
                difference.map(|what| format!("answer {} at {} s: {what}", self.n_asked, call.now_s));
        }
        Ok(shares)
    }
}
