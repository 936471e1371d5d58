//! `rota explain`: one job of a result folder, in sentences or as JSON.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::explain::explain;
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
    /// Print JSON instead of sentences
    #[arg(long)]
    pub json: bool,
}

/// Prints why the job fared as it did.
pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    let results = Results::read(&args.result)?;
    let explanation = explain(chosen(&results, args.policy.as_deref())?, &args.job)?;
    print!("{}", if args.json { explanation.to_json() } else { explanation.to_text() });
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
