//! `rota export`: a result folder in the log formats of the original programs.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::export::{System, export};
use crate::results::Results;

/// What, and in whose format.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExportArgs {
    /// Whose format
    #[arg(value_enum)]
    pub system: System,
    /// Result folder (what `--out` wrote)
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Folder to write into
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Writes the logs and names them.
pub(crate) fn run(args: &ExportArgs) -> Result<()> {
    for file in export(&Results::read(&args.result)?, args.system, &args.out)? {
        println!("{}", file.display());
    }
    Ok(())
}
