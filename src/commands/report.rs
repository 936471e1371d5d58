//! `rota report`: writes the page of a result folder again, or one page of several.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use rota_lab::report;
use rota_lab::results::Results;

/// Which folders.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// Result folders, written with --out
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Write one page for all folders, which compares the others with the first [default: one page for each folder]
    #[arg(long, value_name = "FILE")]
    pub together: Option<PathBuf>,
    /// Also write every plot as SVG and PNG into DIR/plots
    #[arg(long)]
    pub plot: bool,
}

/// Draws the report of each folder.
pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    if let Some(path) = &args.together {
        let named = |dir: &PathBuf| Ok((dir.display().to_string(), Results::read(dir)?));
        report::write_together(&args.dirs.iter().map(named).collect::<Result<Vec<_>>>()?, path)?;
        println!("{}", path.display());
        return Ok(());
    }
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
