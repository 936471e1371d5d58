//! The shards of a study that others run: what a task does, and where its results are found afterwards.
//!
//! A task is this program with `--shard`, so one that is stopped and started again goes on where it was. The folder, this
//! program and the study's inputs must be where all nodes see them.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::BatchArgs;
use rota_lab::study::Cache;

/// A study in parts, in the folder that it ends in.
pub(super) struct Shards<'a> {
    args: &'a BatchArgs,
    n: u32,
    out: PathBuf,
}

impl<'a> Shards<'a> {
    /// Makes the folder; one of other things is refused before anything is put into it.
    pub(super) fn new(args: &'a BatchArgs, n: u32) -> Result<Self> {
        let out = args.out()?;
        let out = std::path::absolute(&out).with_context(|| format!("cannot resolve {}", out.display()))?;
        Cache::open(&out, &[])?;
        let shards = Shards { args, n, out };
        let logs = shards.logs();
        std::fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
        Ok(shards)
    }

    /// Where tasks leave what they print.
    pub(super) fn logs(&self) -> PathBuf {
        self.out.join("tasks")
    }

    /// The folders that tasks have left results in.
    pub(super) fn present(&self) -> Vec<PathBuf> {
        (1..=self.n)
            .map(|shard| self.out.join("shards").join(shard.to_string()))
            .filter(|shard| shard.join("cache").is_dir())
            .collect()
    }

    /// Writes the script of a task, which finds its number in `number`, an expression of the shell.
    pub(super) fn write_script(&self, number: &str) -> Result<PathBuf> {
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let here = std::env::current_dir().context("cannot find the current folder")?;
        let mut words = vec![
            program.display().to_string(),
            "study".into(),
            self.args.name()?.to_owned(),
            "--quiet".into(),
        ];
        words.extend(self.args.quick.then(|| "--quick".to_owned()));
        words.extend(self.args.overwrite.then(|| "--overwrite".to_owned()));
        words.extend(self.args.set.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
        words.extend(self.args.threads.iter().flat_map(|n| ["--threads".to_owned(), n.to_string()]));
        let command: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let script = format!(
            "#!/bin/sh\nshard={number}\ncd {} && exec {} --shard \"$shard/{}\" --out {}/\"$shard\"\n",
            quoted(&here.display().to_string()),
            command.join(" "),
            self.n,
            quoted(&self.out.join("shards").display().to_string())
        );
        let path = self.logs().join("task.sh");
        std::fs::write(&path, script).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
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
