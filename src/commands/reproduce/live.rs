//! The functional test on a live cluster: a head and one agent with eight emulated GPUs on this machine, the ten jobs
//! deployed under each contender with fast-forward, by the commands a user would type.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value;

use super::local_cluster::LocalCluster;
use rota_lab::reproduce::elasticflow::{CONTENDERS, README, TEN_JOBS};

/// Iterations that each launch does before time is passed over.
const REAL_ITERATIONS: &str = "5";
/// The server: what the original's cluster file says.
const SERVER: [&str; 9] = ["1", "--gpus", "8", "--gpu-type", "A100", "--cpus", "64", "--memory", "256GB"];
const ROUND: &str = "240s";

/// One contender.
#[derive(Serialize)]
struct LiveRun {
    policy: &'static str,
    original: &'static str,
    /// Jobs done by their deadline, and the others.
    live: Counts,
    simulated: Counts,
    published: Counts,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
struct Counts {
    accepted: u64,
    declined: u64,
}

/// Runs the test; 1 when the live cluster's counts are not the simulator's.
pub(super) fn functional(is_json: bool, is_quiet: bool) -> Result<ExitCode> {
    let rota = LocalCluster::new()?;
    let trace = rota.home().join("ten_jobs.csv");
    std::fs::write(&trace, TEN_JOBS).with_context(|| trace.display().to_string())?;
    let say = |text: &str| {
        if !is_quiet && !is_json {
            eprintln!("{text}")
        }
    };
    say("starting a head and an agent with 8 emulated GPUs");
    let profiles = ["--profiles", "elasticflow-a100", "--round", ROUND, "--on-grid", "--fast-forward"];
    rota.up(&[&SERVER[..], &profiles].concat())?;
    let runs = CONTENDERS.iter().zip(README).map(|(contender, (accepted, declined))| {
        say(&format!("deploying ten jobs under {}", contender.policy));
        let (live, simulated) = deploy(&rota, &trace, contender.policy)?;
        let published = Counts { accepted: accepted as u64, declined: declined as u64 };
        Ok(LiveRun { policy: contender.policy, original: contender.original, live, simulated, published })
    });
    let runs = runs.collect::<Result<Vec<_>>>()?;
    rota.down()?;
    print!("{}", if is_json { serde_json::to_string_pretty(&runs)? + "\n" } else { to_text(&runs) });
    let is_as_simulated = runs.iter().all(|run| run.live == run.simulated);
    Ok(if is_as_simulated { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Counts of a deployment and of its simulation.
fn deploy(rota: &LocalCluster, trace: &Path, policy: &str) -> Result<(Counts, Counts)> {
    let trace = trace.display().to_string();
    let args = ["deploy", "--trace", &trace, "--profiles", "elasticflow-a100", "--round", ROUND];
    let how = ["--fast-forward", REAL_ITERATIONS, "--compare-simulation", "--json", "-p", policy];
    let text = rota.run(&[&args[..], &how].concat())?;
    let results: Value = serde_json::from_str(&text).context("the summary of a deployment")?;
    let counts = |run: usize| {
        let number = |key: &str| results.pointer(&format!("/runs/{run}/{key}")).and_then(Value::as_u64);
        let met = number("met").context("no count of jobs in time")?;
        let jobs = number("jobs").context("no count of jobs")?;
        Ok::<_, anyhow::Error>(Counts { accepted: met, declined: jobs - met })
    };
    Ok((counts(0)?, counts(1)?))
}

fn to_text(runs: &[LiveRun]) -> String {
    let mut text = String::from(
        "ElasticFlow's functional test on a live cluster: one server of 8 emulated GPUs, ten jobs, slots of 240 s\n\
         accepted/declined   live   simulated   the original's README\n",
    );
    for LiveRun { policy, original, live, simulated, published } in runs {
        let pair = |counts: &Counts| format!("{}/{}", counts.accepted, counts.declined);
        text.push_str(&format!(
            "{policy:<18} {:>5}   {:>9}   {} ({original})\n",
            pair(live),
            pair(simulated),
            pair(published)
        ));
    }
    text.push_str(
        "The shipped policies decide here, not the original's program: that one is `rota reproduce elasticflow functional`.\n",
    );
    text
}
