//! `rota diff`: the first decision in which two runs differ.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;

use rota_lab::diff::{Parting, difference, different_options};
use rota_lab::results::{Results, RunResult};

/// Which runs.
#[derive(Args, Clone, Debug)]
pub(crate) struct DiffArgs {
    /// First run: a result folder, or FOLDER:POLICY where the folder has several runs
    pub a: String,
    /// Second run; without :POLICY, the run with the first one's policy
    pub b: String,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Prints the difference; 1 when there is one, as `diff` does.
pub(crate) fn run(args: &DiffArgs) -> Result<ExitCode> {
    let (a, options_a) = chosen(&args.a, None)?;
    let (b, options_b) = chosen(&args.b, Some(&a.meta.policy))?;
    let mut difference = difference(&a, &b);
    difference.settings.extend(different_options(&options_a, &options_b));
    print!("{}", if args.json { difference.to_json() } else { difference.to_text(&args.a, &args.b) });
    Ok(if matches!(difference.parting, Parting::Nowhere) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The run that a text names, and the options of its folder.
fn chosen(text: &str, otherwise: Option<&str>) -> Result<(RunResult, toml::Table)> {
    let (dir, policy) = split(text);
    let mut results = Results::read(&dir)?;
    let names = results.run_names();
    let is_it = |policy: &str, at: usize| names[at] == policy || results.runs[at].meta.policy == policy;
    let found = match (&policy, results.runs.len()) {
        (None, 1) => Some(0),
        (None, n) => otherwise.and_then(|policy| (0..n).find(|at| is_it(policy, *at))),
        (Some(policy), n) => (0..n).find(|at| is_it(policy, *at)),
    };
    match (found, policy) {
        (Some(at), _) => Ok((results.runs.swap_remove(at), results.settings)),
        (None, Some(policy)) => {
            bail!("{}: no run `{policy}`; the runs are {}", dir.display(), names.join("; "))
        }
        (None, None) => {
            bail!("{0} has several runs: choose one as {0}:POLICY from {1}", dir.display(), names.join("; "))
        }
    }
}

/// A folder, and what follows its last colon unless that is part of its name.
fn split(text: &str) -> (PathBuf, Option<String>) {
    match text.rsplit_once(':') {
        Some((dir, policy)) if !Path::new(text).exists() => (dir.into(), Some(policy.to_owned())),
        _ => (text.into(), None),
    }
}
