//! `rota report`: writes the page of a result folder again, or one page of several.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::plots::PlotArgs;
use rota_lab::report::{self, By};
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
    /// Also write every plot as SVG, PNG and PDF into DIR/plots
    #[arg(long)]
    pub plot: bool,
    #[command(flatten)]
    pub plots: PlotArgs,
    /// Also print results by GPUs asked for, by model or by tenant [default: not shown]
    #[arg(long, value_name = "gpus|model|tenant", value_delimiter = ',')]
    pub by: Vec<By>,
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
            report::write_plots(&results, dir, &args.plots.options()?)?;
        }
        args.by.iter().for_each(|by| print!("{}", report::by_text(&results, *by)));
        println!("{}", dir.join("report.html").display());
    }
    Ok(())
}
