//! `rota solve --at ROUND RESULT`: one decision of a finished run, which is simulated again up to it. For each job, the
//! allocation that the policy chose next to the best one.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result};
use rota_core::allocation::Allocation;
use rota_core::plan::Plan;
use rota_core::room::Room;
use rota_core::snapshot::Snapshot;
use rota_scripts::optimum::{Optimum, OptimumSettings, optimum, speed_of};
use rota_solvers::Highs;

use crate::commands::rerun;
use rota_lab::results::{Results, RunMeta};
use rota_lab::solve::given;

/// Prints one instant of a run, job by job.
pub(super) fn run(round: u64, dir: &Path, policy: Option<&str>, settings: &OptimumSettings) -> Result<()> {
    let results = Results::read(dir)?;
    let meta = &rerun::chosen(&results, policy)?.meta;
    let instant = instant(round, &results, meta)?;
    let runs = given(&instant.snapshot, &instant.plan);
    let order: Vec<u32> = runs.iter().map(|(row, _)| *row as u32).collect();
    let best = optimum(&instant.snapshot, &order, &mut Room::new(&instant.snapshot), &mut Highs, settings)?;
    print!("{}", table(&instant.snapshot, &runs, &best));
    let reached: f64 = runs
        .iter()
        .map(|(row, given)| speed_of(&instant.snapshot, instant.snapshot.jobs.spec(*row), given))
        .sum();
    println!("{} at {} s, decision {round}: {} jobs run", meta.policy, instant.snapshot.now, runs.len());
    println!(
        "throughput relative to proportional shares: {reached:.3} with the policy, {:.3} at best, at most {:.3} with any placement \
         (the bound assumes that a job with several GPUs runs on the fewest nodes that can hold it)",
        best.throughput, best.bound
    );
    Ok(())
}

/// A decision: what was known, and what was decided.
struct Instant {
    snapshot: Snapshot,
    plan: Plan,
}

fn instant(round: u64, results: &Results, meta: &RunMeta) -> Result<Instant> {
    let (mut left, mut seen) = (round, None);
    let n_decisions = rerun::decisions(results, meta, &mut |snapshot, plan| {
        if left == 0 {
            seen = Some(Instant { snapshot: snapshot.clone(), plan: plan.clone() });
            return ControlFlow::Break(());
        }
        left -= 1;
        ControlFlow::Continue(())
    })?;
    seen.with_context(|| format!("--at {round}: the run has {n_decisions} decisions, numbered from 0"))
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
