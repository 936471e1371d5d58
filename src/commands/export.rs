//! `rota export`: a result folder in the log formats of the original programs.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use rota_lab::export::{System, export};
use rota_lab::results::Results;

/// A program whose logs can be written.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum SystemName {
    /// `job.csv` and `scheduling_events.csv` of each run
    Elasticflow,
    /// `<policy>_<load>.csv` with the JCT of each job, `<policy>_avg_jct.csv`, and `job_completion.csv` of each run
    Synergy,
    /// `<policy>.csv`, `<policy>_resource.csv` and `<policy>_batch_placement_info.csv`, as ElasticFlow's port writes them
    Chronus,
}

impl From<SystemName> for System {
    fn from(name: SystemName) -> Self {
        match name {
            SystemName::Elasticflow => Self::Elasticflow,
            SystemName::Synergy => Self::Synergy,
            SystemName::Chronus => Self::Chronus,
        }
    }
}

/// What, and in whose format.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExportArgs {
    /// Program whose formats to write
    #[arg(value_enum)]
    pub system: SystemName,
    /// Result folder, written with --out
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Folder to write
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace logs of another result in that folder
    #[arg(long)]
    pub overwrite: bool,
}

/// Writes the logs and names them.
pub(crate) fn run(args: &ExportArgs) -> Result<()> {
    for file in export(&Results::read(&args.result)?, args.system.into(), &args.out, args.overwrite)? {
        println!("{}", file.display());
    }
    Ok(())
}
