//! The first bad decision: where the policy lost time that the other policy would have saved.
//!
//! The policy decides up to some round and the other from there on. The later the other takes over, the less it can mend;
//! the first decision after which it mends much less is the one to look at, and both plans for that instant are shown side by
//! side.

use rota_core::plan::{Plan, Wake};
use rota_core::policy::{Policy, PolicyError};
use rota_core::snapshot::Snapshot;
use rota_core::time::Time;
use rota_scripts::ScriptPolicy;
use rota_scripts::optimum::speed_of;

use super::case::Setting;
use super::side::{self, Side};
use crate::solve::given;

/// The most decisions that are tried.
const MOST_DECISIONS: usize = 300;
/// A decision is bad if it costs at least this fraction of the costliest one.
const NOTABLE: f64 = 0.5;

/// The first bad decision.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Blame {
    /// Time of the decision, in seconds.
    pub at_s: f64,
    /// Mean completion time in seconds, had the other decided from here on.
    pub mean_jct_before_s: f64,
    /// The same, had the other decided from the next round on.
    pub mean_jct_after_s: f64,
    /// Every job that was there, with what each side gives it.
    pub jobs: Vec<Served>,
}

/// A job at that instant.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Served {
    /// Its name in the scenario.
    pub job: String,
    /// GPUs it asks for.
    pub gpus: u32,
    /// CPUs it can use, in all.
    pub cpus: f64,
    /// Memory it can use, in all, in gigabytes.
    pub mem_gb: f64,
    /// What the policy gives it; `None` if it waits.
    pub policy: Option<Grant>,
    /// What the other would have given it.
    pub against: Option<Grant>,
}

/// What a job is given.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Grant {
    /// On which nodes.
    pub nodes: Vec<u32>,
    /// CPUs, in all.
    pub cpus: f64,
    /// Memory, in all, in gigabytes.
    pub mem_gb: f64,
    /// Its speed; 1 is at the proportional share.
    pub speed: f64,
}

impl Served {
    /// What it gains by the policy's decision, in speed.
    pub fn gain(&self) -> f64 {
        let speed = |grant: &Option<Grant>| grant.as_ref().map_or(0.0, |grant| grant.speed);
        speed(&self.policy) - speed(&self.against)
    }
}

/// Finds the first bad decision of a case; `None` if no decision costs anything.
pub fn blame(policy: &mut Side, against: &mut Side, setting: &Setting) -> Option<Blame> {
    let mut times = Vec::new();
    policy.watched(setting, &mut |snapshot, _| times.push(snapshot.now));
    times.truncate(MOST_DECISIONS);
    let mut mean_from = |time: Time| {
        let mut relay = Relay::new(policy.policy(), against.policy(), time);
        side::run(setting, &mut relay, true).mean_jct_s()
    };
    let mut means: Vec<f64> = times.iter().map(|time| mean_from(*time)).collect();
    means.push(mean_from(Time::MAX));
    let costs: Vec<f64> = means.windows(2).map(|pair| cost(pair[0], pair[1])).collect();
    let most = costs.iter().copied().fold(0.0, f64::max);
    let at = costs.iter().position(|cost| *cost > 0.0 && *cost >= NOTABLE * most)?;
    let jobs = side_by_side(policy, against, setting, times[at]);
    Some(Blame {
        at_s: times[at].as_secs_f64(),
        mean_jct_before_s: means[at],
        mean_jct_after_s: means[at + 1],
        jobs,
    })
}

fn cost(before: f64, after: f64) -> f64 {
    match (before.is_finite(), after.is_finite()) {
        (true, false) => f64::MAX,
        (true, true) => after - before,
        _ => 0.0,
    }
}

/// What both would decide at a moment of the policy's run.
fn side_by_side(policy: &mut Side, against: &mut Side, setting: &Setting, at: Time) -> Vec<Served> {
    let mut relay = Relay::new(policy.policy(), against.policy(), Time::MAX);
    relay.watched = Some(at);
    side::run(setting, &mut relay, true);
    relay.seen
}

/// One policy decides before a moment and another from then on. Both are always asked, so that both keep their memory.
struct Relay<'a> {
    first: &'a mut ScriptPolicy,
    second: &'a mut ScriptPolicy,
    from: Time,
    watched: Option<Time>,
    seen: Vec<Served>,
}

impl<'a> Relay<'a> {
    fn new(first: &'a mut ScriptPolicy, second: &'a mut ScriptPolicy, from: Time) -> Self {
        Relay { first, second, from, watched: None, seen: Vec::new() }
    }
}

impl Policy for Relay<'_> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let (first, second) = (self.first.decide(snapshot)?, self.second.decide(snapshot)?);
        if self.watched == Some(snapshot.now) {
            self.seen = served(snapshot, &first, &second);
        }
        let plan = if snapshot.now < self.from { first } else { second };
        // The policy that takes over must be asked at the next round.
        Ok(Plan { wake: Wake::NextRound, ..plan })
    }
}

fn served(snapshot: &Snapshot, policy: &Plan, against: &Plan) -> Vec<Served> {
    let jobs = &snapshot.jobs;
    let mut rows: Vec<usize> = (0..jobs.len()).collect();
    rows.sort_by_key(|row| jobs.id(*row));
    let of = |row: usize| {
        let gpus = jobs.gpus()[row];
        let demand = jobs.demand_per_gpu(row).times(gpus);
        Served {
            job: jobs.spec(row).name.to_string(),
            gpus,
            cpus: demand.cpus(),
            mem_gb: demand.mem_gb(),
            policy: grant(snapshot, policy, row),
            against: grant(snapshot, against, row),
        }
    };
    rows.into_iter().map(of).collect()
}

fn grant(snapshot: &Snapshot, plan: &Plan, row: usize) -> Option<Grant> {
    let (_, allocation) = given(snapshot, plan).into_iter().find(|(given, _)| *given == row)?;
    let host = allocation.host();
    Some(Grant {
        nodes: allocation.slices.iter().map(|slice| slice.node.0).collect(),
        cpus: host.cpus(),
        mem_gb: host.mem_gb(),
        speed: speed_of(snapshot, snapshot.jobs.spec(row), allocation),
    })
}
