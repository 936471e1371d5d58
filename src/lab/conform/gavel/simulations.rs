//! Whole simulations: start and finish of every job with our shares where they are determined, with the recorded ones where they
//! are not; there the objective of each answer is compared too.

use std::path::PathBuf;
use std::sync::Arc;

use rota_core::time::Time;
use rota_scripts::artifact::gavel::{
    self as artifact, ArtifactError, Call, GavelJob, Policy, Rounds, Run, Shares, Speeds, Traits,
};
use rota_traces::error::InputError;
use rota_traces::generate::PythonRandom;
use rota_traces::source::Source;
use serde::Deserialize;
use smallvec::smallvec;

use super::speeds::SpeedTable;
use super::{Compare, Python, is_within, parse_row};
use crate::conform::compare::{Fate, Rounds as RoundNumbers, expected, first_difference};
use crate::conform::{CaseError, Judged, Verdict, parse_json};

/// The types of a cluster such as `4:4:4`, in the order in which rounds fill them.
const TYPES: [&str; 3] = ["v100", "p100", "k80"];
/// What the goldens were made with.
const SEED: u64 = 0;
/// Objectives of recorded answers may differ by this part.
const OBJECTIVE: f64 = 1e-5;
/// The original's solver calls some answers optimal that are this far off, with many pairs.
const OBJECTIVE_WITH_PAIRS: f64 = 1e-3;

/// A row of the case table.
pub(super) struct GoldenSimulation {
    pub(super) input: PathBuf,
    pub(super) compare: Compare,
    pub(super) policy: String,
    pub(super) cluster: String,
    pub(super) expected: PathBuf,
    pub(super) speeds: Arc<SpeedTable>,
}

/// A trace and a cluster in the driver's terms.
struct Inputs {
    jobs: Vec<GavelJob>,
    types: Vec<String>,
    gpus: Vec<u32>,
    order: Vec<usize>,
    speeds: Speeds,
}

/// An answer of the original's policy.
#[derive(Deserialize)]
struct Answer {
    t: f64,
    x: std::collections::BTreeMap<String, std::collections::BTreeMap<String, f64>>,
    objective: Option<f64>,
}

impl GoldenSimulation {
    pub(super) fn judge(&self) -> Judged {
        let inputs = self.inputs()?;
        let policy = artifact::policy(&self.policy, Box::new(Python(PythonRandom::new(SEED))))?;
        match self.compare {
            Compare::Exact => {
                let run = self.run(&inputs, policy)?;
                self.compare_jobs(&run)
            }
            Compare::Error => {
                // The original mixes up rows of different jobs (D8); our model has no such rows, so that ours must end well.
                let run = self.run(&inputs, policy)?;
                let n_ended = run.outcomes.iter().filter(|outcome| outcome.finish_s.is_some()).count();
                Ok(Verdict::of((n_ended < inputs.jobs.len()).then(|| format!("{n_ended} jobs ended"))))
            }
            _ => {
                let mut source = Source::open(&self.expected.join("allocations.json.gz"))?;
                // Python writes these as no JSON has them: an answer without a finite objective is replayed, and not compared.
                for word in ["NaN", "-Infinity", "Infinity"] {
                    source.text = source.text.replace(word, "null");
                }
                let answers: Vec<Answer> = parse_json(&source)?;
                let mut replayed = Replayed {
                    answers: answers.into_iter(),
                    own: policy,
                    tolerance: if self.policy.contains("packed") { OBJECTIVE_WITH_PAIRS } else { OBJECTIVE },
                    has_objective: !self.policy.contains("min_total_duration"),
                    difference: None,
                    n_asked: 0,
                };
                let run = self.run_with(&inputs, &mut replayed)?;
                match replayed.difference {
                    Some(difference) => Ok(Verdict::Failed(difference)),
                    None => self.compare_jobs(&run),
                }
            }
        }
    }

    fn run(&self, inputs: &Inputs, mut policy: Box<dyn Policy + Send>) -> Result<Run, CaseError> {
        self.run_with(inputs, policy.as_mut())
    }

    fn run_with(&self, inputs: &Inputs, policy: &mut dyn Policy) -> Result<Run, CaseError> {
        let how = (Rounds::default(), Traits::of(&self.policy));
        let mut random = Python(PythonRandom::new(SEED + 5));
        let Inputs { jobs, types, gpus, order, speeds } = inputs;
        let inputs = artifact::Inputs { jobs, types, gpus, order, speeds };
        Ok(artifact::run(inputs, how, policy, &mut random)?)
    }

    fn compare_jobs(&self, run: &Run) -> Judged {
        let expected = expected(&self.expected.join("jobs.csv"), "first_start_s", "finish_s")?;
        let time = |seconds: Option<f64>| seconds.map(Time::from_secs_f64);
        let fates = run.outcomes.iter().enumerate().map(|(job, outcome)| {
            (job.to_string(), Fate { start: time(outcome.start_s), finish: time(outcome.finish_s) })
        });
        let rounds = RoundNumbers { first: Time::ZERO, length: Time::from_secs_f64(360.0) - Time::ZERO };
        let difference = first_difference(&expected, &fates.collect(), rounds);
        Ok(Verdict::of(difference.map(|difference| difference.to_string())))
    }

    fn inputs(&self) -> Result<Inputs, CaseError> {
        let source = Source::open(&self.input)?;
        let file = source.name.as_str();
        let counts: Result<Vec<u32>, _> = self.cluster.split(':').map(str::parse).collect();
        let counts = counts.ok().filter(|counts| counts.len() == TYPES.len()).ok_or_else(|| {
            InputError::expected(file, "a cluster such as 4:4:4, GPUs of v100, p100 and k80")
                .got(&self.cluster)
        })?;
        let mut present: Vec<(&str, u32)> =
            TYPES.into_iter().zip(counts).filter(|(_, gpus)| *gpus > 0).collect();
        let order: Vec<&str> = present.iter().map(|(name, _)| *name).collect();
        present.sort_unstable();
        let types: Vec<String> = present.iter().map(|(name, _)| (*name).to_owned()).collect();
        let order = order.iter().filter_map(|name| types.iter().position(|other| other == name)).collect();
        let mut kinds: Vec<String> = Vec::new();
        let mut jobs = Vec::new();
        for (at, line) in source.text.lines().enumerate() {
            let job = parse_job(line, &mut kinds).ok_or_else(|| {
                InputError::expected(file, "ten fields between tabs").at_line(at as u64 + 1).got(line)
            })?;
            jobs.push(job);
        }
        let speeds = self.speeds.speeds(&kinds, &types)?;
        Ok(Inputs { jobs, gpus: present.iter().map(|(_, gpus)| *gpus).collect(), types, order, speeds })
    }
}

/// A line of a trace; a new kind of job is added to the kinds.
fn parse_job(line: &str, kinds: &mut Vec<String>) -> Option<GavelJob> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [job_type, _, _, _, _, steps, gpus, weight, _, arrival] = fields[..] else { return None };
    let gpus = gpus.parse().ok()?;
    let name = format!("('{job_type}', {gpus})");
    let kind = kinds.iter().position(|other| *other == name).unwrap_or_else(|| {
        kinds.push(name);
        kinds.len() - 1
    });
    let arrival_s: f64 = arrival.parse().ok()?;
    let weight: f64 = weight.parse().ok()?;
    Some(GavelJob { kind, gpus, steps: steps.parse().ok()?, weight, arrival_s })
}

/// Answers as the original did, and compares what our policy would have reached.
struct Replayed {
    answers: std::vec::IntoIter<Answer>,
    own: Box<dyn Policy + Send>,
    tolerance: f64,
    /// The original looks for the makespan with models that have none: they are feasible or not.
    has_objective: bool,
    difference: Option<String>,
    n_asked: usize,
}

impl Policy for Replayed {
    fn shares(&mut self, call: &Call<'_>) -> Result<Shares, ArtifactError> {
        let wrong = |recorded: String| ArtifactError::Recording { now_s: call.now_s, recorded };
        let answer = self.answers.next().ok_or_else(|| wrong("missing".into()))?;
        if (answer.t - call.now_s).abs() > 1e-6 {
            return Err(wrong(format!("for {} s", answer.t)));
        }
        self.n_asked += 1;
        // The original leaves 0 where its model has no objective of its own.
        let is_compared = |found: &f64| self.has_objective && *found != 0.0 && self.difference.is_none();
        if let Some(expected) = answer.objective.filter(is_compared) {
            self.own.shares(call)?;
            let got = self.own.objective().unwrap_or(f64::NAN);
            if !is_within(self.tolerance, expected, got) {
                self.difference = Some(format!(
                    "answer {} at {} s: expected an objective of {expected}, got {got}",
                    self.n_asked, call.now_s
                ));
            }
        }
        let mut shares = Shares::new();
        for (text, parts) in answer.x {
            let row = parse_row(&text).ok_or_else(|| wrong(format!("for a row {text:?}")))?;
            let share = shares.entry(row).or_insert_with(|| smallvec![0.0; call.types.len()]);
            for (t, gpu_type) in call.types.iter().enumerate() {
                share[t] = parts.get(gpu_type).copied().unwrap_or(0.0);
            }
        }
        Ok(shares)
    }
}
