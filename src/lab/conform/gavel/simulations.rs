//! Whole simulations: start and finish of every job with our shares where they are determined, with the recorded ones where they
//! are not. There the objective of each answer is compared too (`replayed`), and what our own answers come to in the end (`own`).

use std::path::PathBuf;
use std::sync::Arc;

use rota_core::time::Time;
use rota_scripts::artifact::gavel::{self as artifact, GavelJob, Policy, Rounds, Run, Speeds, Traits};
use rota_traces::error::InputError;
use rota_traces::generate::PythonRandom;
use rota_traces::source::Source;

use super::own::compare_outcome;
use super::replayed::{Answer, Replayed};
use super::speeds::SpeedTable;
use super::{Compare, Python};
use crate::conform::compare::{Fate, Rounds as RoundNumbers, expected, first_difference};
use crate::conform::{CaseError, Judged, Verdict, parse_json};

/// The types of a cluster such as `4:4:4`, in the order in which rounds fill them.
const TYPES: [&str; 3] = ["v100", "p100", "k80"];
/// What the goldens were made with.
const SEED: u64 = 0;

/// A row of the case table.
pub(super) struct GoldenSimulation {
    pub(super) input: PathBuf,
    pub(super) compare: Compare,
    pub(super) note: String,
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

impl GoldenSimulation {
    pub(super) fn judge(&self) -> Judged {
        match self.compare {
            Compare::KnownDefect => {
                Ok(Verdict::Skipped(format!("the original's answer is wrong: {}", self.note)))
            }
            Compare::Error => Ok(Verdict::of(match self.run_alone() {
                Ok(_) => Some(format!("the original fails ({}), and ours runs to the end", self.note)),
                Err(_) => None,
            })),
            Compare::Exact => {
                let run = self.run_alone()?;
                self.compare_jobs(&run)
            }
            _ => self.replay(),
        }
    }

    /// With the recorded shares, and then with ours.
    fn replay(&self) -> Judged {
        let mut source = Source::open(&self.expected.join("allocations.json.gz"))?;
        // Python writes numbers that no JSON has.
        for word in ["-Infinity", "Infinity", "NaN"] {
            if source.text.contains(word) {
                source.text = source.text.replace(word, "null");
            }
        }
        let answers: Vec<Answer> = parse_json(&source)?;
        let inputs = self.inputs()?;
        let mut replayed = Replayed::new(answers, self.policy()?, &self.policy);
        let run = self.run_with(&inputs, &mut replayed)?;
        if let Some(difference) = replayed.into_difference() {
            return Ok(Verdict::Failed(difference));
        }
        match self.compare_jobs(&run)? {
            Verdict::Equal => {
                Ok(Verdict::of(compare_outcome(&self.policy, &inputs.jobs, &run, &self.run_alone()?)))
            }
            other => Ok(other),
        }
    }

    fn policy(&self) -> Result<Box<dyn Policy + Send>, CaseError> {
        Ok(artifact::policy(&self.policy, Box::new(Python(PythonRandom::new(SEED))))?)
    }

    /// With our own shares.
    fn run_alone(&self) -> Result<Run, CaseError> {
        let inputs = self.inputs()?;
        self.run_with(&inputs, self.policy()?.as_mut())
    }

    fn run_with(&self, inputs: &Inputs, policy: &mut dyn Policy) -> Result<Run, CaseError> {
        let how = (Rounds::default(), Traits::of(&self.policy));
        let mut random = Python(PythonRandom::new(SEED + 5));
        let Inputs { jobs, types, gpus, order, speeds } = inputs;
        Ok(artifact::run(jobs, types, gpus, order, speeds, how, policy, &mut random)?)
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
