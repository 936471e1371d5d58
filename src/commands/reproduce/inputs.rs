//! The files of a figure that are not shipped: where they are, and which of their rows are used.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rota_lab::reproduce::papers::{Keeps, Needed};
use rota_lab::results::replace_file;
use rota_lab::shared::shared_folder;

/// Where a file that is not shipped lies, or what to do about it.
pub(super) fn located(needed: &Needed, given: &[PathBuf]) -> Result<PathBuf> {
    let folders = if given.is_empty() { vec![shared_folder().join(needed.below)] } else { given.to_vec() };
    let found = folders.iter().map(|folder| folder.join(needed.file)).find(|path| path.is_file());
    found.with_context(|| {
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        format!(
            "{} is in none of the folders {}; it is published at {}: fetch it and name its folder with --traces",
            needed.file,
            folders.join(", "),
            needed.origin
        )
    })
}

/// The file itself, or below the figure's folder a copy with the rows that the figure uses.
pub(super) fn kept(needed: &Needed, file: PathBuf, out: &Path) -> Result<PathBuf> {
    let Some(keeps) = needed.keeps else { return Ok(file) };
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let rows = rows_kept(&text, keeps).with_context(|| file.display().to_string())?;
    let folder = out.join("inputs");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let copy = folder.join(needed.file);
    replace_file(&copy, rows.as_bytes())?;
    Ok(copy)
}

fn rows_kept(text: &str, keeps: Keeps) -> Result<String> {
    let header = text.lines().next().unwrap_or_default();
    let position = header.split(',').position(|name| name.trim() == keeps.column);
    let position = position.with_context(|| format!("line 1: there is no column {}", keeps.column))?;
    let is_kept = |line: &&str| {
        let value = line.split(',').nth(position).unwrap_or_default().trim();
        keeps.values.contains(&value)
    };
    let rows = text.lines().skip(1).filter(is_kept);
    Ok(std::iter::once(header).chain(rows).flat_map(|line| [line, "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_other_values_are_left_out() {
        let keeps = Keeps { column: "num_gpus", values: &["1", "16"] };
        let text = "timestamp,num_gpus\na,1\nb,12\nc,16\nd\n";
        assert_eq!(rows_kept(text, keeps).expect("it has the column"), "timestamp,num_gpus\na,1\nc,16\n");
        let error = rows_kept("timestamp\na\n", keeps).expect_err("no such column");
        assert_eq!(error.to_string(), "line 1: there is no column num_gpus");
    }
}
