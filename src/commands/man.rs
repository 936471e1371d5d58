//! `rota man`: manual pages of all commands, from the same texts as `--help`.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Command;

/// Writes a page for the program and one for each command and subcommand.
pub(super) fn write(folder: &Path, command: Command) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    clap_mangen::generate_to(command, folder).with_context(|| folder.display().to_string())?;
    Ok(())
}
