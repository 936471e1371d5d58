//! Running scenarios: a simulation that writes down what the policy decides.

use std::fmt::Write as _;
use std::sync::Arc;

use rota_core::allocation::{Allocation, GpuSet};
use rota_core::plan::{Hold, Plan, Verdict};
use rota_core::policy::{Policy, PolicyError};
use rota_core::simulation::{RunSettings, Simulation};
use rota_core::snapshot::Snapshot;

use super::Scenario;

/// The result of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What the scenario shows, as its first line says.
    pub name: String,
    /// What was expected, a line for each decision.
    pub expected: Vec<String>,
    /// What the policy decided, a line for each decision; then the lines of an error, if it failed.
    pub actual: Vec<String>,
}

impl Report {
    /// Whether all lines are as expected.
    pub fn passes(&self) -> bool {
        self.expected == self.actual
    }

    /// The lines that differ, expected and actual one above the other.
    pub fn difference(&self) -> String {
        let mut text = format!("scenario: {}\n", self.name);
        for index in 0..self.expected.len().max(self.actual.len()) {
            let (expected, actual) = (self.expected.get(index), self.actual.get(index));
            if expected != actual {
                let shown = |line: Option<&String>| line.map_or_else(|| "(nothing)".to_owned(), Clone::clone);
                let _ = writeln!(text, "  expected {}\n  got      {}", shown(expected), shown(actual));
            }
        }
        text
    }
}

/// Runs a scenario under `policy` and reports each decision. An error of the script is a line too.
pub fn run(scenario: &Scenario, policy: &mut dyn Policy) -> Report {
    let settings = RunSettings {
        round: scenario.round,
        skips_rounds: false,
        is_paranoid: true,
        ..RunSettings::default()
    };
    let mut watched = Watched { policy, lines: Vec::new() };
    let failure = {
        let (cluster, workload) = (Arc::clone(&scenario.cluster), Arc::clone(&scenario.workload));
        let mut simulation = Simulation::new(cluster, workload, Vec::new(), &mut watched, &settings);
        loop {
            match simulation.step() {
                Ok(true) if simulation.progress().n_decisions < scenario.n_rounds as u64 => {}
                Ok(_) => break None,
                Err(error) => break Some(error.to_string()),
            }
        }
    };
    let mut actual = watched.lines;
    actual.truncate(scenario.n_rounds);
    actual.extend(failure.iter().flat_map(|text| text.lines()).map(|line| line.trim().to_owned()));
    Report { name: scenario.name.clone(), expected: scenario.expected.clone(), actual }
}

/// A policy whose answers are written down.
struct Watched<'a> {
    policy: &'a mut dyn Policy,
    lines: Vec<String>,
}

impl Policy for Watched<'_> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let plan = self.policy.decide(snapshot)?;
        self.lines.push(line(snapshot, &plan));
        Ok(plan)
    }

    fn memory(&self) -> String {
        self.policy.memory()
    }
}

/// `300: short 0[0-1] 6c 100g, other 1[0] 3c 50g | waits long | declined big (why) | notes`
fn line(snapshot: &Snapshot, plan: &Plan) -> String {
    let jobs = &snapshot.jobs;
    let mut ids: Vec<_> = (0..jobs.len()).map(|row| jobs.id(row)).collect();
    ids.sort_unstable();
    let (mut runs, mut waits, mut declined) = (Vec::new(), Vec::new(), Vec::new());
    for id in ids {
        let Some(row) = jobs.row(id) else { continue };
        let name = &jobs.spec(row).name;
        let refused = plan.verdicts.iter().find_map(|(job, verdict)| match verdict {
            Verdict::Decline(why) if *job == id => Some(why),
            _ => None,
        });
        match (plan.run.iter().find(|run| run.job == id).map(|run| &run.what), refused) {
            (Some(Hold::Keep), _) => runs.push(format!("{name} {}", held(jobs.allocation(row)))),
            (Some(Hold::Take(allocation)), _) => runs.push(format!("{name} {}", held(allocation))),
            (None, Some(why)) => declined.push(format!("{name} ({why})")),
            (None, None) => waits.push(name.to_string()),
        }
    }
    let mut text =
        format!("{}: {}", snapshot.now, if runs.is_empty() { "nobody".to_owned() } else { runs.join(", ") });
    for (word, list) in
        [("waits", waits.join(" ")), ("declined", declined.join(", ")), ("notes", plan.notes.join("; "))]
    {
        if !list.is_empty() {
            let _ = write!(text, " | {word} {list}");
        }
    }
    text
}

fn held(allocation: &Allocation) -> String {
    let places: Vec<String> =
        allocation.slices.iter().map(|s| format!("{}[{}]", s.node, gpus(s.gpus))).collect();
    let host = allocation.host();
    format!("{} {}c {}g", places.join("+"), host.cpus(), host.mem_gb())
}

/// `0-2,5`
fn gpus(set: GpuSet) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for gpu in set.iter() {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == gpu => *last = gpu,
            _ => spans.push((gpu, gpu)),
        }
    }
    let span = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    spans.iter().map(span).collect::<Vec<_>>().join(",")
}
