//! Traces that are made: drawn, fitted to another, put together from others; and failures drawn for a cluster.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;
use rota_traces::assign::{Cells, assign};
use rota_traces::faults::{self, FaultPlan};
use rota_traces::format::Setting;
use rota_traces::generate::{Distance, Fit, LikeOptions, Pattern, distance};
use rota_traces::{cluster, reshape, stats};

use super::inputs::{InputArgs, Inputs, Load};
use super::run::what_fails;
use super::trace::{Target, WriteArgs, resolve, write_workload};
use rota_lab::results::replace_file;

/// What is drawn.
#[derive(Args, Clone, Debug)]
pub(crate) struct GenerateArgs {
    /// Fit the trace to this one: its arrivals, GPU counts and durations [default: a workload is drawn]
    #[arg(long, value_name = "FILE", conflicts_with = "workload", help_heading = "Inputs")]
    like: Option<PathBuf>,
    /// With --like, the work offered as a part of what --cluster can do, e.g. 0.8 [default: arrivals as fast as given]
    #[arg(long, value_name = "PART", requires = "like", help_heading = "Workload")]
    load: Option<f64>,
    /// Arrivals at one rate, in bursts (10 times as fast), or by day and night (1.8 times as fast at the peak)
    #[arg(
        long,
        value_name = "poisson|bursty[:TIMES]|diurnal[:PEAK]",
        default_value = "poisson",
        conflicts_with = "like",
        help_heading = "Workload"
    )]
    pattern: Pattern,
    #[command(flatten)]
    write: WriteArgs,
}

/// A part of a trace.
#[derive(Args, Clone, Debug)]
pub(crate) struct SampleArgs {
    /// Probability with which each job is kept, from 0 to 1
    #[arg(long, value_name = "PART")]
    part: f64,
    #[command(flatten)]
    write: WriteArgs,
}

/// Another time.
#[derive(Args, Clone, Debug)]
pub(crate) struct ShiftArgs {
    /// Move all times later by this [default: not moved later; --back moves them earlier]
    #[arg(long, value_name = "TIME", value_parser = Span::parse, required_unless_present = "back", conflicts_with = "back")]
    by: Option<Span>,
    /// Move all times earlier by this; jobs that would arrive before 0 arrive at 0 [default: not moved earlier]
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    back: Option<Span>,
    #[command(flatten)]
    write: WriteArgs,
}

/// Another load, other sizes.
#[derive(Args, Clone, Debug)]
#[command(group = clap::ArgGroup::new("what").args(["load", "faster", "gpus"]).multiple(true).required(true))]
pub(crate) struct ScaleArgs {
    /// The work offered as a part of what --cluster can do while jobs arrive, e.g. 0.8: arrivals come closer together, or farther apart
    /// [default: arrivals stay]
    #[arg(long, value_name = "PART", conflicts_with = "faster")]
    load: Option<f64>,
    /// Multiply the arrivals in an hour by this [default: 1]
    #[arg(long, value_name = "TIMES")]
    faster: Option<f64>,
    /// Multiply the GPUs of each job by this, rounded, at least 1 and at most what --cluster has; jobs take as long as before [default: 1]
    #[arg(long, value_name = "TIMES")]
    gpus: Option<f64>,
    #[command(flatten)]
    write: WriteArgs,
}

/// Several traces.
#[derive(Args, Clone, Debug)]
pub(crate) struct MergeArgs {
    /// More traces, in the same or any other format
    #[arg(long, value_name = "FILE", required = true, value_delimiter = ',')]
    with: Vec<PathBuf>,
    #[command(flatten)]
    write: WriteArgs,
}

/// What fails, where, and until when.
#[derive(Args, Clone, Debug)]
pub(crate) struct FaultArgs {
    /// What fails: a .toml of distributions, a .csv of outages, or a built-in name
    #[arg(value_name = "FILE|NAME", long_help = what_fails())]
    faults: String,
    /// Cluster that fails: a file or a built-in name
    #[arg(long, value_name = "FILE|NAME", default_value = "default")]
    cluster: String,
    /// Draw failures that begin within this time
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "100d")]
    within: Span,
    /// Seed, where the file names none
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Draws a workload, or a trace like another.
pub(super) fn generate(args: &GenerateArgs) -> Result<()> {
    let write = &args.write;
    if write.file.is_some() || write.inputs.trace.is_some() {
        bail!(
            "`rota trace generate` reads no trace: use `rota trace import` or `rota trace convert`, or --like FILE"
        );
    }
    let target = write.to.unwrap_or(Target::Rota);
    let Some(like) = &args.like else {
        let inputs = resolve(None, &write.inputs)?;
        let load = one_load(&inputs)?;
        let mut workload = Workload::clone(&load.workload);
        if let Some(jobs_per_hour) = load.jobs_per_hour {
            args.pattern.apply(&mut workload, jobs_per_hour, inputs.seed);
        }
        return write_workload(&workload, &inputs, target, write.out.as_ref());
    };
    // How many jobs are drawn is no limit for those that are read.
    let inputs = resolve(Some(like), &InputArgs { jobs: None, ..write.inputs.clone() })?;
    let given = &one_load(&inputs)?.workload;
    let setting =
        Setting { options: inputs.options.clone(), ..Setting::new(&inputs.cluster, &inputs.profiles) };
    let options = LikeOptions { jobs: write.inputs.jobs, load: args.load };
    let drawn = Fit::of(given, &inputs.cluster)?.draw(&setting, options)?;
    eprintln!("{}", told(&distance(given, &drawn, &inputs.cluster), args.load));
    write_workload(&drawn, &inputs, target, write.out.as_ref())
}

fn told(apart: &Distance, load: Option<f64>) -> String {
    let Distance { durations, gaps, gpus, allowed } = apart;
    let faster = load.map_or_else(String::new, |load| {
        format!("; jobs come as fast as load {load} asks for, so times between arrivals differ")
    });
    format!(
        "Kolmogorov-Smirnov distance to the given trace: durations {durations:.4}, times between arrivals {gaps:.4}, GPU counts {gpus:.4}; a \
         two-sample test at 5 % allows {allowed:.4}{faster}"
    )
}

fn one_load(inputs: &Inputs) -> Result<&Load> {
    let [load] = inputs.loads.as_slice() else {
        bail!("--jobs-per-hour: a trace has one load, give one value")
    };
    Ok(load)
}

/// Reads a trace, changes it, and writes it.
fn rewrite(write: &WriteArgs, change: impl FnOnce(&Workload, &Inputs) -> Result<Workload>) -> Result<()> {
    let inputs = resolve(write.file.as_ref(), &write.inputs)?;
    let workload = change(&one_load(&inputs)?.workload, &inputs)?;
    if workload.jobs.is_empty() {
        bail!("no job is left");
    }
    write_workload(&workload, &inputs, write.to.unwrap_or(Target::Rota), write.out.as_ref())
}

pub(super) fn sample(args: &SampleArgs) -> Result<()> {
    if !(0.0..=1.0).contains(&args.part) {
        bail!("--part {}: write a number from 0 to 1", args.part);
    }
    rewrite(&args.write, |workload, inputs| Ok(reshape::sample(workload, args.part, inputs.seed)))
}

pub(super) fn shift(args: &ShiftArgs) -> Result<()> {
    let later = args.by.or(args.back.map(|back| Span(-back.0))).context("--by: how much later?")?;
    rewrite(&args.write, |workload, _| Ok(reshape::shift(workload, later)))
}

pub(super) fn scale(args: &ScaleArgs) -> Result<()> {
    for (option, number) in [("--load", args.load), ("--faster", args.faster), ("--gpus", args.gpus)] {
        if let Some(number) = number.filter(|number| !(number.is_finite() && *number > 0.0)) {
            bail!("{option} {number}: write a number greater than 0");
        }
    }
    rewrite(&args.write, |workload, inputs| {
        let mut scaled = Workload::clone(workload);
        if let Some(times) = args.gpus {
            let n_gpus = f64::from(inputs.cluster.n_gpus());
            let cells = scaled.jobs.iter().map(|job| {
                let gpus = (f64::from(job.gpus.asked) * times).round().clamp(1.0, n_gpus);
                Cells::from([("gpus".to_owned(), gpus.to_string())])
            });
            let cells: Vec<Cells> = cells.collect();
            scaled = assign(&scaled, &cells, &Setting::new(&inputs.cluster, &inputs.profiles))?;
        }
        let faster = match args.load {
            Some(load) => load / stats::stats(&scaled, &inputs.cluster).offered_load,
            None => args.faster.unwrap_or(1.0),
        };
        if !(faster.is_finite() && faster > 0.0) {
            bail!("--load: all jobs arrive at once, so there is no load to scale");
        }
        Ok(reshape::speed_up(&scaled, faster))
    })
}

pub(super) fn anonymise(args: &WriteArgs) -> Result<()> {
    rewrite(args, |workload, inputs| Ok(reshape::anonymise(workload, inputs.seed)))
}

pub(super) fn merge(args: &MergeArgs) -> Result<()> {
    rewrite(&args.write, |workload, inputs| {
        let mut all = vec![workload.clone()];
        for path in &args.with {
            // All are read for the same cluster with the same profiles.
            let more = resolve(Some(path), &args.write.inputs)?;
            if more.cluster.name != inputs.cluster.name || more.profiles.name != inputs.profiles.name {
                bail!(
                    "{} is for the cluster {} with the profiles {}, the first trace for {} with {}: say which with --cluster and --profiles",
                    path.display(),
                    more.cluster.name,
                    more.profiles.name,
                    inputs.cluster.name,
                    inputs.profiles.name
                );
            }
            all.push(Arc::unwrap_or_clone(Arc::clone(&one_load(&more)?.workload)));
        }
        Ok(reshape::merge(&all))
    })
}

pub(super) fn faults(args: &FaultArgs) -> Result<()> {
    let cluster = cluster::load(&args.cluster)?;
    let plan = FaultPlan::load(&args.faults, &cluster)?;
    let outages = plan.drawn(&cluster, Time::ZERO + args.within, args.seed)?;
    if plan.ends.is_some() {
        eprintln!("a table of outages does not say how jobs end: that part of {} is left out", args.faults);
    }
    let text = faults::write_table(&outages);
    match &args.out {
        Some(path) => {
            replace_file(path, text.as_bytes())?;
            eprintln!("{} outages written to {}", outages.len(), path.display());
        }
        None => print!("{text}"),
    }
    Ok(())
}
