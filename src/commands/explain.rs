//! `rota explain`: one job of a result folder, in sentences or as JSON.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rota_core::time::Time;

use super::again;
use crate::explain::{DeadlineShare, Explanation, Shortage, Watch, explain};
use crate::results::{Results, RunResult};

/// Which job of which run.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExplainArgs {
    /// Result folder (what `--out` wrote)
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// The job, as the trace names it
    #[arg(value_name = "JOB")]
    pub job: String,
    /// The run to look at, where the folder holds several
    #[arg(short, long, value_name = "P")]
    pub policy: Option<String>,
    /// Only what the folder holds: the run is not simulated again, and what was missing when is not said
    #[arg(long)]
    pub recorded: bool,
    /// Print JSON instead of sentences
    #[arg(long)]
    pub json: bool,
}

/// Prints why the job fared as it did.
pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    let results = Results::read(&args.result)?;
    let run = again::chosen(&results, args.policy.as_deref())?;
    let mut explanation = explain(run, &args.job)?;
    if !args.recorded {
        match decisions(&results, run, &args.job) {
            Ok((shortages, shares)) => explanation.add_decisions(shortages, shares),
            Err(why) => explanation.without_decisions(format!("{why:#}")),
        }
    }
    print!("{}", if args.json { explanation.to_json() } else { explanation.to_text() });
    Ok(())
}

/// What the decisions of the run meant for the job, simulated again until it is gone.
fn decisions(results: &Results, run: &RunResult, job: &str) -> Result<(Vec<Shortage>, Vec<DeadlineShare>)> {
    let Some(id) = Explanation::id(run, job) else { return Ok(Default::default()) };
    let mut watch = Watch::new(&run.jobs, id);
    again::decisions(results, &run.meta, &mut |snapshot, plan| watch.see(snapshot, plan))?;
    let last_decision = run.samples.last().map_or(Time::ZERO, |sample| sample.time);
    Ok(watch.close(run.jobs[id.index()].finish.unwrap_or(last_decision)))
}
