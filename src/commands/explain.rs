//! `rota explain`: one job of a result folder, in sentences or as JSON.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use rota_core::time::Time;

use super::live::{self, HeadArgs};
use super::rerun;
use rota_lab::explain::{Explanation, Seen, Watch, explain};
use rota_lab::results::{Results, RunResult, replace_file};

/// Which job of which run.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExplainArgs {
    /// Result folder (written with --out) and the job's name in the trace; or only the number of a live job
    #[arg(value_name = "[RESULT] JOB", num_args = 1..=2, required = true)]
    pub which: Vec<String>,
    /// Run to use, where the folder has several [default: the only one]
    #[arg(short, long, value_name = "P")]
    pub policy: Option<String>,
    /// Use only the files in the folder: without simulating the run again, the explanation does not say what was missing when
    #[arg(long)]
    pub recorded: bool,
    /// Also write a page with tables and pictures, for a job of a result folder [default: not written]
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    #[command(flatten)]
    pub head: HeadArgs,
}

/// Prints why the job fared as it did.
pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    let (result, job) = match args.which.as_slice() {
        [result, job] => (PathBuf::from(result), job),
        [job] => {
            let number = job.parse().with_context(|| {
                format!(
                    "`{job}` is not the number of a live job; for a simulated job, give its result folder first"
                )
            })?;
            if args.page.is_some() {
                bail!("--page: a live job has no page; give the result folder of a run, then the job");
            }
            return live::explain_job(&args.head, number);
        }
        _ => bail!("give a result folder and a job, or the number of a live job"),
    };
    let results = Results::read(&result)?;
    let run = rerun::chosen(&results, args.policy.as_deref())?;
    let mut explanation = explain(run, job)?;
    if !args.recorded {
        match decisions(&results, run, job) {
            Ok(seen) => explanation.add_decisions(seen),
            Err(why) => explanation.without_decisions(format!("{why:#}")),
        }
    }
    if let Some(page) = &args.page {
        replace_file(page, explanation.to_html()?.as_bytes())?;
    }
    print!("{}", if args.head.json { explanation.to_json() } else { explanation.to_text() });
    Ok(())
}

/// What the decisions of the run meant for the job, simulated again until it is gone.
fn decisions(results: &Results, run: &RunResult, job: &str) -> Result<Seen> {
    let Some(id) = Explanation::id(run, job) else { return Ok(Seen::default()) };
    let mut watch = Watch::new(&run.jobs, id);
    rerun::decisions(results, &run.meta, &mut |snapshot, plan| watch.see(snapshot, plan))?;
    let last_decision = run.samples.last().map_or(Time::ZERO, |sample| sample.time);
    Ok(watch.close(run.jobs[id.index()].finish.unwrap_or(last_decision)))
}
