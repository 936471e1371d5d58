//! `rota explain`: one job of a result folder, in sentences or as JSON.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::live::{self, HeadArgs};
use crate::explain::explain;
use crate::results::{Results, RunResult};

/// Which job of which run.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExplainArgs {
    /// Result folder (what `--out` wrote) and job, as the trace names it; a job's number alone asks the live head
    #[arg(value_name = "[RESULT] JOB", num_args = 1..=2, required = true)]
    pub which: Vec<String>,
    /// The run to look at, where the folder holds several
    #[arg(short, long, value_name = "P")]
    pub policy: Option<String>,
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
                    "`{job}` is no number of a live job; for a simulated one give its result folder first"
                )
            })?;
            return live::explain_job(&args.head, number);
        }
        _ => bail!("give a result folder and a job, or the number of a live job"),
    };
    let results = Results::read(&result)?;
    let explanation = explain(chosen(&results, args.policy.as_deref())?, job)?;
    print!("{}", if args.head.json { explanation.to_json() } else { explanation.to_text() });
    Ok(())
}

fn chosen<'a>(results: &'a Results, policy: Option<&str>) -> Result<&'a RunResult> {
    let names = results.run_names();
    match (policy, results.runs.as_slice()) {
        (None, [run]) => Ok(run),
        (None, _) => {
            bail!("the folder holds several runs: say which with --policy, one of {}", names.join("; "))
        }
        (Some(policy), runs) => {
            let found =
                runs.iter().zip(&names).find(|(run, name)| *name == policy || run.meta.policy == policy);
            Ok(found.with_context(|| format!("--policy {policy}: the folder holds {}", names.join("; ")))?.0)
        }
    }
}
