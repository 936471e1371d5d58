//! `--on slurm`: the shards of a study as a job array of an existing Slurm, waited for, gathered and merged.
//!
//! Each task is this program with `--shard`, so a task that Slurm requeues goes on where it was. The folder must be one
//! that all nodes see.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::BatchArgs;
use crate::study::Cache;

/// Submits the shards and waits for all; returns their folders.
pub(super) fn run(args: &BatchArgs, file: &str, out: &Path) -> Result<Vec<PathBuf>> {
    let n_shards = args.shards;
    let out = std::path::absolute(out).with_context(|| format!("cannot resolve {}", out.display()))?;
    // A folder of other things is refused before anything is put into it.
    Cache::open(&out, &[])?;
    let folder = out.join("slurm");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let script = folder.join("job.sh");
    std::fs::write(&script, text(args, file, &out)?)
        .with_context(|| format!("cannot write {}", script.display()))?;
    let mut sbatch = Command::new("sbatch");
    sbatch.args(["--wait", "--job-name=rota-study"]);
    sbatch.arg(format!("--array=1-{n_shards}")).arg(format!("--output={}", folder.join("%a.log").display()));
    sbatch.args(&args.slurm_option).arg(&script);
    if !args.quiet {
        eprintln!("submitting {n_shards} shards; logs in {}", folder.display());
    }
    let output = sbatch.output().context("cannot run sbatch: is Slurm installed here?")?;
    let shards: Vec<PathBuf> =
        (1..=n_shards).map(|shard| out.join("shards").join(shard.to_string())).collect();
    let n_there = shards.iter().filter(|shard| shard.join("cache").is_dir()).count();
    if n_there == 0 {
        bail!("sbatch: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    if !output.status.success() {
        eprintln!(
            "some of the {n_shards} tasks failed: see {}; what they did not run is run here",
            folder.display()
        );
    }
    Ok(shards.into_iter().filter(|shard| shard.join("cache").is_dir()).collect())
}

/// The script of a task.
fn text(args: &BatchArgs, file: &str, out: &Path) -> Result<String> {
    let program = std::env::current_exe().context("cannot find the program itself")?;
    let mut words =
        vec![program.display().to_string(), "study".to_owned(), file.to_owned(), "--quiet".to_owned()];
    words.extend(args.quick.then(|| "--quick".to_owned()));
    words.extend(args.set.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
    words.extend(args.threads.iter().flat_map(|threads| ["--threads".to_owned(), threads.to_string()]));
    let command: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let here = std::env::current_dir().context("cannot find the current folder")?;
    Ok(format!(
        "#!/bin/sh\ncd {} && exec {} --shard \"$SLURM_ARRAY_TASK_ID/{}\" --out {}/\"$SLURM_ARRAY_TASK_ID\"\n",
        quoted(&here.display().to_string()),
        command.join(" "),
        args.shards,
        quoted(&out.join("shards").display().to_string())
    ))
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_task_as_they_are() {
        assert_eq!(quoted("it's $HOME; rm -rf"), r"'it'\''s $HOME; rm -rf'");
    }
}
