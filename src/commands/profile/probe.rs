//! `rota profile probe`: how fast storage and memory are here.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use rota_lab::profile::rates::{Amounts, Rates, measure};

/// What to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProbeArgs {
    /// Folder whose storage is measured: the one with the data sets
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Measure again, even if the rates are known
    #[arg(long)]
    again: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Prints the stored rates, or measures them.
pub(super) fn run(args: &ProbeArgs) -> Result<()> {
    let known =
        Rates::cache_file().filter(|_| !args.again).and_then(|file| Rates::remembered(&file, &args.folder));
    let is_known = known.is_some();
    let rates = match known {
        Some(rates) => rates,
        None => measure_now(&args.folder)?,
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&rates)?);
        return Ok(());
    }
    println!("machine  {}", rates.machine);
    let cached = if rates.is_uncached { "" } else { " (possibly read from the page cache)" };
    println!("storage  {:.0} MB/s from {}{cached}", rates.storage_bps / 1e6, rates.folder.display());
    for (threads, bps) in &rates.memory_bps {
        println!(
            "memory   {:.1} GB/s with {threads} thread{}",
            bps / 1e9,
            if *threads == 1 { "" } else { "s" }
        );
    }
    if is_known {
        println!("measured before; --again measures again");
    }
    Ok(())
}

/// The rates of a folder's storage and of memory: stored, or else measured.
pub(super) fn rates_of(folder: &Path) -> Result<Rates> {
    match Rates::cache_file().and_then(|file| Rates::remembered(&file, folder)) {
        Some(rates) => Ok(rates),
        None => measure_now(folder),
    }
}

fn measure_now(folder: &Path) -> Result<Rates> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let rates = measure(folder, threads, Amounts::default())?;
    if let Some(Err(error)) = Rates::cache_file().map(|file| rates.remember(&file)) {
        eprintln!("cannot store the rates: {error}");
    }
    Ok(rates)
}
