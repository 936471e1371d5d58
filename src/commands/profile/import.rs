//! `rota profile import`: converts profiles of other systems.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use rota_traces::profile::import::{ImportOptions, Imported, Origin, import};
use rota_traces::profile::write;
use rota_traces::source::Source;

use super::levels::parse_bytes;
use rota_lab::results::replace_file;

const EXAMPLES: &str = "\
Try:
  rota profile import profiles/mine_0412/profile.json --model mine --dataset 140GB --gpus 4
  rota profile import throughputs/A100 -o a100.toml
  rota profile import simulation_throughputs.json -o gavel.toml
  rota profile import gpemu/profiled_data -o gpemu.toml";

/// What to import.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    /// Synergy's profile.json, Gavel's throughputs, a table of ElasticFlow or a folder of them, or GPEmu's folder
    #[arg(value_name = "FILE|DIR", required = true)]
    paths: Vec<PathBuf>,
    /// System whose profiles these are [default: recognised]
    #[arg(long, value_name = "SYSTEM", value_parser = parse_origin)]
    from: Option<Origin>,
    /// Name of the model, where a file has only one [default: the file's name]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Type of GPU that was measured, where the files do not say [default: the folder's name]
    #[arg(long, value_name = "NAME")]
    gpu_type: Option<String>,
    /// Size of the data set, of which Synergy's memory levels are percentages [default: unknown, refused where it is needed]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    dataset: Option<u64>,
    /// Number of GPUs with which Synergy's profiler ran
    #[arg(long, value_name = "N", default_value_t = 1)]
    gpus: u32,
    /// Batch size with which Synergy's profiler ran, or of GPEmu's models when a job names none [default: unknown for Synergy, 64
    /// for GPEmu]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    batch: u32,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn parse_origin(text: &str) -> Result<Origin, String> {
    let found = Origin::ALL.iter().find(|(_, name)| *name == text).map(|(origin, _)| *origin);
    let names: Vec<_> = Origin::ALL.iter().map(|(_, name)| *name).collect();
    found.ok_or_else(|| format!("write one of {}", names.join(", ")))
}

/// Reads and writes.
pub(super) fn run(args: &ImportArgs) -> Result<()> {
    let mut files = Vec::new();
    for path in &args.paths {
        gather(path, &mut files).with_context(|| path.display().to_string())?;
    }
    files.sort();
    let sources: Vec<Source> = files.iter().map(|file| Source::open(file)).collect::<Result<_, _>>()?;
    let recognised = sources.iter().find_map(Origin::of);
    let Some(origin) = args.from.or(recognised) else {
        bail!("{}: format not recognised; name the system with --from", args.paths[0].display());
    };
    let options = ImportOptions {
        model: args.model.clone(),
        gpu_type: args.gpu_type.clone(),
        dataset_bytes: args.dataset,
        gpus: args.gpus,
        batch: args.batch,
    };
    let Imported { set, notes } = import(origin, &sources, &options)?;
    notes.iter().for_each(|note| eprintln!("note: {note}"));
    let text = write(&set);
    match &args.out {
        Some(file) => {
            replace_file(file, text.as_bytes())?;
            println!("{} models written to {}", set.entries().len(), file.display());
        }
        None => print!("{text}"),
    }
    Ok(())
}

/// A file, or all tables below a folder.
fn gather(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        let is_table = path.extension().is_some_and(|e| e == "csv");
        if path.is_dir() || is_table {
            gather(&path, files)?;
        }
    }
    Ok(())
}
