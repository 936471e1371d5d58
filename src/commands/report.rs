//! `rota report`: the page of a result folder, drawn again.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::report;
use crate::results::Results;

/// Which folders.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// Result folders written by --out
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Also write every plot as SVG and PNG into DIR/plots
    #[arg(long)]
    pub plot: bool,
}

/// Draws the report of each folder.
pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    for dir in &args.dirs {
        let results = Results::read(dir)?;
        report::write_page(&results, dir)?;
        if args.plot {
            report::write_plots(&results, dir)?;
        }
        println!("{}", dir.join("report.html").display());
    }
    Ok(())
}
