//! `rota solve --at ROUND RESULT`: one instant of a finished run, simulated again up to it; what the policy gave each
//! job beside what is best.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rota_core::allocation::Allocation;
use rota_core::plan::Plan;
use rota_core::policy::{Policy, PolicyError};
use rota_core::room::Room;
use rota_core::simulation::Simulation;
use rota_core::snapshot::Snapshot;
use rota_scripts::optimum::{Optimum, Settings, optimum, speed_of};
use rota_solvers::Highs;

use super::again;
use crate::commands::run;
use crate::results::Results;
use crate::solve::given;

/// Prints one instant of a run, job by job.
pub(super) fn run(round: u64, dir: &Path, policy: Option<&str>, settings: &Settings) -> Result<()> {
    let results = Results::read(dir)?;
    let args = again::args(&results, policy)?;
    let instant = instant(round, &results, &args)?;
    let runs = given(&instant.snapshot, &instant.plan);
    let order: Vec<u32> = runs.iter().map(|(row, _)| *row as u32).collect();
    let best = optimum(&instant.snapshot, &order, &mut Room::new(&instant.snapshot), &mut Highs, settings)?;
    print!("{}", table(&instant.snapshot, &runs, &best));
    let reached: f64 = runs
        .iter()
        .map(|(row, given)| speed_of(&instant.snapshot, instant.snapshot.jobs.spec(*row), given))
        .sum();
    println!(
        "{} at {} s, decision {round}: {} jobs run",
        args.policies.join(","),
        instant.snapshot.now,
        runs.len()
    );
    println!(
        "throughput relative to proportional shares: {reached:.3} by the policy, {:.3} at best, at most {:.3} in any placement",
        best.throughput, best.bound
    );
    Ok(())
}

/// A decision: what was known, and what was decided.
struct Instant {
    snapshot: Snapshot,
    plan: Plan,
}

fn instant(round: u64, results: &Results, args: &run::RunArgs) -> Result<Instant> {
    let inputs = run::prepared(args)?;
    again::same_inputs(results, &inputs.files)?;
    let load = inputs.loads.first().context("the run has no workload")?;
    let policy = args.policies.first().context("the run has no policy")?;
    let mut script = run::load_policy(policy, &args.set)?;
    let mut watched = Watched { inner: &mut script, left: round, seen: None };
    let settings = run::settings(args, &load.workload)?;
    let faults = run::faults(args, &inputs, &load.workload)?;
    {
        let (cluster, workload) = (Arc::clone(&inputs.cluster), Arc::clone(&load.workload));
        let mut simulation = Simulation::new(cluster, workload, faults, &mut watched, &settings);
        while simulation.progress().n_decisions <= round && simulation.step()? {}
        if simulation.progress().n_decisions <= round {
            bail!(
                "--at {round}: the run has {} decisions, 0 is the first",
                simulation.progress().n_decisions
            );
        }
    }
    watched.seen.context("the decision was not seen")
}

/// Keeps the decision after so many others.
struct Watched<'a> {
    inner: &'a mut dyn Policy,
    left: u64,
    seen: Option<Instant>,
}

impl Policy for Watched<'_> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let plan = self.inner.decide(snapshot)?;
        if self.left == 0 && self.seen.is_none() {
            self.seen = Some(Instant { snapshot: snapshot.clone(), plan: plan.clone() });
        }
        self.left = self.left.saturating_sub(1);
        Ok(plan)
    }

    fn memory(&self) -> String {
        self.inner.memory()
    }
}

/// One line for each job: what the policy gives it, and what is best.
fn table(snapshot: &Snapshot, runs: &[(usize, &Allocation)], best: &Optimum) -> String {
    let heads = [
        "job",
        "model",
        "GPUs",
        "policy: nodes",
        "CPUs",
        "GB",
        "speed",
        "best: nodes",
        "CPUs",
        "GB",
        "speed",
    ];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for (row, given) in runs {
        let spec = snapshot.jobs.spec(*row);
        let found = best.granted.iter().find(|granted| granted.row as usize == *row);
        let found = found.map(|granted| Allocation { slices: granted.slices.clone() }).unwrap_or_default();
        let mut cells = vec![spec.name.to_string(), spec.profile.name.clone(), given.n_gpus().to_string()];
        for allocation in [*given, &found] {
            let nodes: Vec<String> = allocation.slices.iter().map(|slice| slice.node.to_string()).collect();
            let host = allocation.host();
            cells.push(nodes.join(" "));
            cells.extend([host.cpus(), host.mem_gb()].map(|amount| format!("{amount:.1}")));
            cells.push(format!("{:.2}", speed_of(snapshot, spec, allocation)));
        }
        lines.push(cells);
    }
    aligned(&lines)
}

/// Columns below each other, numbers to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    let n_columns = lines.first().map_or(0, Vec::len);
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
            0 | 1 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}
