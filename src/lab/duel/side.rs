//! The policies that are compared: from what a user writes to names that can be run, and one run of a case.

use std::sync::Arc;

use rota_core::job::JobSpec;
use rota_core::ledger::{Ledger, Status};
use rota_core::plan::Plan;
use rota_core::policy::{Policy, PolicyError};
use rota_core::simulation::{RunSettings, Simulation, SimulationError};
use rota_core::snapshot::Snapshot;
use rota_scripts::shipped::{self, Role};
use rota_scripts::{Limits, LoadError, ScriptPolicy, SetError, Stage};

use super::case::Setting;

/// Rounds without an arrival or an end after which a run is given up: the slowest job of any case ends long before.
const MAX_STALLED_ROUNDS: u32 = 5_000;
/// Rounds in which nothing runs or starts after which a run is given up.
const MAX_IDLE_ROUNDS: u32 = 50;

/// Why a policy cannot take part.
#[derive(Debug, thiserror::Error)]
pub enum SideError {
    /// A policy that cannot be made.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A parameter that cannot be set to this value.
    #[error(transparent)]
    Set(#[from] SetError),
}

/// Two policies that run the same cases, or one that is tested alone.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Match {
    /// The policy that is judged, with all its parts.
    pub policy: String,
    /// The policy it is compared with, if any, with all its parts.
    pub against: Option<String>,
}

/// Completes names: an order that is missing is the other's, or each of `orders` in turn; `with` goes to both.
pub fn matches(
    policy: &str,
    against: Option<&str>,
    orders: &[String],
    with: Option<&str>,
) -> Result<Vec<Match>, SideError> {
    let own = order_of(policy)?;
    let other = against.map(order_of).transpose()?.flatten();
    let turns: Vec<Option<&str>> = match (&own, against, &other) {
        (Some(_), None, _) | (Some(_), Some(_), Some(_)) => vec![None],
        (Some(order), Some(_), None) | (None, Some(_), Some(order)) => vec![Some(order)],
        (None, ..) => orders.iter().map(|order| Some(order.as_str())).collect(),
    };
    let whole = |name: &str, has_order: bool, order: Option<&str>| {
        let order = order.filter(|_| !has_order);
        [order, Some(name), with].into_iter().flatten().collect::<Vec<_>>().join("+")
    };
    let mut found = Vec::new();
    for order in turns {
        let policy = whole(policy, own.is_some(), order);
        let against = against.map(|name| whole(name, other.is_some(), order));
        for name in [Some(&policy), against.as_ref()].into_iter().flatten() {
            ScriptPolicy::load(name, Limits::default())?;
        }
        found.push(Match { policy, against });
    }
    Ok(found)
}

/// The part of a policy's name that orders, or decides all, or needs no order since it is shipped as a policy; `None` where
/// nothing does.
fn order_of(name: &str) -> Result<Option<String>, SideError> {
    let policy = ScriptPolicy::load(name, Limits::default())?;
    let orders = |part: &str, stages: &[Stage]| {
        let is_shipped = shipped::find(part).is_some_and(|script| script.role == Role::Policy);
        is_shipped || stages.contains(&Stage::Order) || stages.contains(&Stage::Decide)
    };
    let stages = policy.stages();
    if stages.len() > name.split('+').count() {
        // Admission that brings the rest of its policy with it.
        return Ok(Some(name.to_owned()));
    }
    let parts = name.split('+').map(str::trim).zip(stages);
    let found = parts.into_iter().find(|(part, (_, _, stages))| orders(part, stages));
    Ok(found.map(|(part, _)| part.to_owned()))
}

/// A policy that is used for one case after another.
pub struct Side {
    policy: ScriptPolicy,
    /// Parameters that were set, to be written into the scenario.
    pub(super) set: Vec<(String, String)>,
    /// Its memory before the first decision.
    fresh: String,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// It finished this many seconds after it arrived.
    Done(f64),
    /// It was refused.
    Declined,
    /// It never ended.
    Never,
}

impl Fate {
    /// Its completion time in seconds, infinite if it never ended; a job that was refused has none.
    pub fn jct_s(self) -> Option<f64> {
        match self {
            Fate::Done(seconds) => Some(seconds),
            Fate::Declined => None,
            Fate::Never => Some(f64::INFINITY),
        }
    }
}

/// The run of a case under a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// How each job ended.
    pub fates: Vec<Fate>,
    /// How often jobs were stopped or moved.
    pub n_stops: u32,
    /// Whether at some decision more GPUs were asked for than there are.
    pub is_crowded: bool,
    /// Why the run did not end, if it did not.
    pub failure: Option<String>,
    /// Digest over all events and commands.
    pub digest: String,
}

impl Outcome {
    /// The mean completion time of all that were not refused, in seconds; infinite where a job never ended.
    pub fn mean_jct_s(&self) -> f64 {
        mean(self.fates.iter().filter_map(|fate| fate.jct_s()))
    }

    fn of(setting: &Setting, ledger: &Ledger) -> Outcome {
        let jobs = setting.workload.jobs.iter().zip(&ledger.outcomes);
        let fate = |(job, outcome): (&Arc<JobSpec>, &rota_core::ledger::Outcome)| match outcome.finish {
            Some(end) => Fate::Done((end - job.arrival).as_secs_f64()),
            None if outcome.status == Status::Declined => Fate::Declined,
            None => Fate::Never,
        };
        Outcome {
            fates: jobs.map(fate).collect(),
            n_stops: ledger.outcomes.iter().map(|outcome| outcome.preemptions).sum(),
            is_crowded: ledger.samples.iter().any(|sample| sample.gpus_asked > u64::from(sample.gpus_up)),
            failure: None,
            digest: ledger.digest.clone(),
        }
    }
}

/// The mean; 0 for no values.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0u32, 0.0), |(n, sum), value| (n + 1, sum + value));
    if n == 0 { 0.0 } else { sum / f64::from(n) }
}

impl Side {
    /// A policy by its whole name, with parameters set.
    pub fn load(name: &str, set: &[(String, String)]) -> Result<Side, SideError> {
        let mut policy = ScriptPolicy::load(name, Limits::default())?;
        for (key, value) in set {
            policy.set(key, value)?;
        }
        let fresh = policy.memory();
        Ok(Side { policy, set: set.to_vec(), fresh })
    }

    /// The policy with its initial memory.
    pub(super) fn policy(&mut self) -> &mut ScriptPolicy {
        if self.policy.memory() != self.fresh {
            let restored = self.policy.restore_memory(&self.fresh);
            restored.expect("what a policy wrote as its memory is read back");
        }
        &mut self.policy
    }

    /// Runs a case to its end.
    pub fn run(&mut self, setting: &Setting) -> Outcome {
        run(setting, self.policy(), true)
    }

    /// Runs a case to its end and shows every decision.
    pub fn watched(&mut self, setting: &Setting, watch: &mut dyn FnMut(&Snapshot, &Plan)) -> Outcome {
        run(setting, &mut Watched { policy: self.policy(), watch }, true)
    }

    /// Decides the first round of a case alone, and shows it; an error says why that could not be.
    pub fn first(
        &mut self,
        setting: &Setting,
        watch: &mut dyn FnMut(&Snapshot, &Plan),
    ) -> Result<(), SimulationError> {
        let settings = settings(setting, true);
        let mut watched = Watched { policy: self.policy(), watch };
        let step = simulation(setting, &mut watched, &settings).step();
        step.map(|_| ())
    }

    /// Runs a case to its end, asking the policy at every round.
    pub fn every_round(&mut self, setting: &Setting) -> Outcome {
        run(setting, self.policy(), false)
    }
}

/// Runs a case to its end under any policy.
pub(super) fn run(setting: &Setting, policy: &mut dyn Policy, skips_rounds: bool) -> Outcome {
    let settings = settings(setting, skips_rounds);
    let to_its_end = |mut simulation: Simulation<'_>| -> Result<Ledger, SimulationError> {
        while simulation.step()? {}
        Ok(simulation.close())
    };
    match to_its_end(simulation(setting, policy, &settings)) {
        Ok(ledger) => Outcome::of(setting, &ledger),
        Err(error) => Outcome {
            fates: vec![Fate::Never; setting.workload.jobs.len()],
            failure: Some(error.to_string()),
            ..Outcome::default()
        },
    }
}

fn settings(setting: &Setting, skips_rounds: bool) -> RunSettings {
    RunSettings {
        round: setting.round,
        skips_rounds,
        max_idle_rounds: MAX_IDLE_ROUNDS,
        max_stalled_rounds: MAX_STALLED_ROUNDS,
        ..RunSettings::default()
    }
}

fn simulation<'a>(
    setting: &Setting,
    policy: &'a mut dyn Policy,
    settings: &'a RunSettings,
) -> Simulation<'a> {
    let (cluster, workload) = (Arc::clone(&setting.cluster), Arc::clone(&setting.workload));
    Simulation::new(cluster, workload, Vec::new(), policy, settings)
}

/// Wraps a policy and shows every decision to an observer.
struct Watched<'a> {
    policy: &'a mut dyn Policy,
    watch: &'a mut dyn FnMut(&Snapshot, &Plan),
}

impl Policy for Watched<'_> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let plan = self.policy.decide(snapshot)?;
        (self.watch)(snapshot, &plan);
        Ok(plan)
    }

    fn memory(&self) -> String {
        self.policy.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(policy: &str, against: Option<&str>, with: Option<&str>) -> Vec<(String, String)> {
        let orders = ["fifo".to_owned(), "las".to_owned()];
        let found = matches(policy, against, &orders, with).unwrap_or_else(|error| panic!("{error}"));
        found.into_iter().map(|m| (m.policy, m.against.unwrap_or_default())).collect()
    }

    fn pair(policy: &str, against: &str) -> (String, String) {
        (policy.to_owned(), against.to_owned())
    }

    #[test]
    fn allocations_meet_under_every_order() {
        let expected = [pair("fifo+tune", "fifo+greedy"), pair("las+tune", "las+greedy")];
        assert_eq!(names("tune", Some("greedy"), None), expected);
        assert_eq!(names("tune", None, None), [pair("fifo+tune", ""), pair("las+tune", "")]);
    }

    #[test]
    fn an_order_that_one_side_names_holds_for_both() {
        assert_eq!(names("tune", Some("srtf+greedy"), None), [pair("srtf+tune", "srtf+greedy")]);
        assert_eq!(names("srtf+tune", Some("greedy"), None), [pair("srtf+tune", "srtf+greedy")]);
        assert_eq!(
            names("srtf", Some("fifo"), Some("tune+consolidate")),
            [pair("srtf+tune+consolidate", "fifo+tune+consolidate")]
        );
        assert_eq!(names("elasticflow", Some("edf"), None), [pair("elasticflow", "edf")]);
        assert_eq!(names("chronus", None, None), [pair("chronus", "")]);
    }

    #[test]
    fn what_cannot_meet_is_refused() {
        let refused = |policy: &str, against: &str| {
            matches(policy, Some(against), &["fifo".to_owned()], None).expect_err("refused").to_string()
        };
        assert!(refused("tuna", "greedy").contains("tune"), "the nearest name is given");
    }
}
