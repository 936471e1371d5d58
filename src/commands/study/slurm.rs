//! `--on slurm`: the shards of a study as a job array of an existing Slurm, waited for.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::PartsArgs;
use super::shards::Shards;

/// Submits a task for each shard and waits for all.
pub(super) fn run(args: &PartsArgs, shards: &Shards, is_quiet: bool) -> Result<()> {
    let script = shards.write_script("$SLURM_ARRAY_TASK_ID")?;
    let mut sbatch = Command::new("sbatch");
    sbatch.args(["--wait", "--job-name=rota-study"]);
    sbatch.arg(format!("--array=1-{}", args.shards));
    sbatch.arg(format!("--output={}", shards.logs().join("%a.log").display()));
    sbatch.args(&args.slurm_option).arg(&script);
    if !is_quiet {
        eprintln!("submitting {} shards to Slurm; logs in {}", args.shards, shards.logs().display());
    }
    let output = sbatch.output().context("cannot run sbatch: is Slurm installed here?")?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        if shards.present().is_empty() {
            bail!("sbatch: {}", why.trim());
        }
        eprintln!(
            "some of the {} tasks failed: see {}; what they did not run is run here",
            args.shards,
            shards.logs().display()
        );
    }
    Ok(())
}
