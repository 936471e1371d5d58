//! `rota trace`: traces in and out of every format, what they hold, and what is wrong with them.

mod assign;
mod check;
mod stats;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Arg, Args, Subcommand, ValueEnum};
use rota_core::time::Time;
use rota_core::workload::Workload;
use rota_traces::format::{Format, replay, write_chronus, write_elasticflow, write_rota};
use rota_traces::{profile, reshape};

use super::inputs::{InputArgs, Inputs, Reading, parse_hours};
use super::make_trace::{self, FaultArgs, GenerateArgs, MergeArgs, SampleArgs, ScaleArgs, ShiftArgs};
use rota_lab::report::grouped;
use rota_lab::results::replace_file;

/// Speeds that ElasticFlow's tables are written with when the profiles at hand lack its models.
const ELASTICFLOW_PROFILES: &str = "elasticflow-a100";

/// What to do with traces.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum TraceCommand {
    /// Read a trace in any format and write it as Rota's CSV
    ///
    /// Rota's CSV has one line for each job: when it arrives, how many GPUs it asks for, its model, how much work it has, and,
    /// where there is one, its deadline. Import a trace to look at it or edit it in any tool; to simulate it,
    /// that is not necessary: `rota simulate --trace` reads all of these formats.
    #[command(after_help = IMPORT_EXAMPLES, mut_arg("file", must_be_given))]
    Import(WriteArgs),
    /// Draw a workload at random and write it as a trace
    ///
    /// A workload is drawn from a recipe: number of jobs, arrivals per hour, mix of models, durations. The built-in recipes are
    /// those of Synergy and ElasticFlow; a .toml file describes your own. The same options and the same seed always give the
    /// same bytes. `rota simulate` draws the same workload by itself: write it to a file only to look at it, to edit it or to
    /// give it to another program.
    ///
    /// With --like, the trace is fitted to another one: arrivals, GPU counts and durations have its distributions.
    #[command(after_help = GENERATE_EXAMPLES, mut_args(draws_only))]
    Generate(GenerateArgs),
    /// Write a trace or a drawn workload in Synergy's record/replay format
    #[command(mut_arg("to", |arg| arg.help("Format to write [default: synergy]")))]
    Record(WriteArgs),
    /// Write a trace in the format of another program
    ///
    /// Use it to run the same jobs in Rota and in an original program. A format keeps what it has columns for, and no more:
    /// Synergy's has no deadlines, Chronus' no models. `rota trace formats` lists what is read, `--to` what is written.
    #[command(after_help = CONVERT_EXAMPLES, mut_arg("to", |arg| arg.help("Format to write; it must be given [default: none]")))]
    Convert(WriteArgs),
    /// Write a part of a trace: the jobs at some positions, or of some time
    Slice(SliceArgs),
    /// Write a trace at another load, or with other GPU counts, as for a smaller or larger cluster
    Scale(ScaleArgs),
    /// Write a random part of a trace's jobs
    Sample(SampleArgs),
    /// Write the jobs of several traces as one
    Merge(MergeArgs),
    /// Write a trace with all times later, or earlier
    Shift(ShiftArgs),
    /// Write a trace without names: jobs, tenants and data sets are numbered, and time begins with the first job
    Anonymise(WriteArgs),
    /// Give the jobs of a trace models, batch sizes, deadlines and more, by rules in a script
    ///
    /// Most traces do not say what their jobs train. A script of rules is asked for each job what it gets; the rules of Synergy,
    /// ElasticFlow, Gavel, Pollux and Chronus come with Rota. Equal seeds give equal traces, and the trace that is written names the
    /// rules, their checksum, their parameters and the seed in a last heading.
    #[command(after_help = assign::EXAMPLES)]
    Assign(assign::AssignArgs),
    /// Draw the failures of a cluster and write them as a table for --faults
    Faults(FaultArgs),
    /// Check a trace against a cluster; the exit code is 1 if a row makes no sense or a job can never run
    ///
    /// Every finding has a severity, a rule, and, where it is in one place, line, column and value. Errors are rows that make no sense
    /// and jobs that can never run; warnings say that results will not mean what they seem to (deadlines that cannot be met, times in
    /// the wrong unit, more asked for than there is); notes are worth knowing (gaps, copies, times of high demand).
    #[command(after_help = check::EXAMPLES)]
    Check(check::CheckArgs),
    /// Print what a trace is like: counts, percentiles, offered load; or draw it as a page
    ///
    /// The page has arrivals by hour and weekday, distributions of durations and GPU counts, and the GPUs asked for over time;
    /// --against puts a second trace next to the first.
    #[command(after_help = stats::EXAMPLES)]
    Stats(stats::StatsArgs),
    /// List the formats that are read
    Formats,
}

fn must_be_given(file: Arg) -> Arg {
    file.help("The trace, `-` for standard input; it must be given [default: none]")
}

/// What reads a trace is refused where one is drawn, so help does not list it.
fn draws_only(arg: Arg) -> Arg {
    let is_hidden = arg.is_hide_set() || ["file", "trace"].contains(&arg.get_id().as_str());
    arg.hide(is_hidden)
}

const IMPORT_EXAMPLES: &str = "\
Try:
  rota trace import cluster_job_log -o philly.csv       Philly's job log
  rota trace import cluster_job_log --log-hours 2400..3000 --skip-bad-rows -o part.csv
  zcat jobs.csv.gz | rota trace import - | head
  sacct -aPX -S 2026-01-01 -o JobID,User,Account,State,Submit,ElapsedRaw,AllocTRES | rota trace import -
  rota trace import mine.csv --map job_id=id,arrival_s=submitted:date,gpus=n,duration_s=hours:h";

const GENERATE_EXAMPLES: &str = "\
Try:
  rota trace generate -o jobs.csv                       2,000 jobs, the default workload
  rota trace generate --jobs 500 --jobs-per-hour 6 --multi-gpu --seed 7 -o jobs.csv
  rota trace generate --workload deadlines | rota trace stats -
  rota trace generate --jobs-per-hour 6 --pattern bursty:10 -o bursts.csv
  rota trace generate --like philly.csv --cluster small --load 0.8 --jobs 5000 -o small.csv";

const CONVERT_EXAMPLES: &str = "\
Try:
  rota trace convert jobs.csv --to synergy -o jobs.trace
  rota trace convert jobs.csv --to chronus -o chronus.csv --names users.csv
  rota trace generate --workload elasticflow | rota trace convert - --to elasticflow";

/// A trace to read and where to write it.
#[derive(Args, Clone, Debug)]
pub(crate) struct WriteArgs {
    /// The trace, `-` for standard input [default: a workload is drawn]
    #[arg(value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) inputs: InputArgs,
    /// Format to write [default: rota]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(super) to: Option<Target>,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Also write the list of users that Chronus reads next to a trace [default: not written]
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
}

/// A part of a trace.
#[derive(Args, Clone, Debug)]
pub(crate) struct SliceArgs {
    /// Positions in the order of arrival, from 0; the last is not included: 0..1000 [default: --hours]
    #[arg(long, value_name = "LO..HI", required_unless_present = "hours", conflicts_with = "hours")]
    jobs_range: Option<String>,
    /// Hours of the trace in which the jobs arrive, e.g. 24..48; time then begins with the first of these [default: --jobs-range]
    #[arg(long, value_name = "LO..HI", value_parser = parse_hours)]
    hours: Option<(f64, f64)>,
    #[command(flatten)]
    write: WriteArgs,
}

/// A format that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// Rota's CSV: everything about a job
    Rota,
    /// Synergy's record/replay file: id,model,arrival,iterations,gpus
    Synergy,
    /// Chronus' table, in minutes; best-effort jobs stay best-effort
    Chronus,
    /// Chronus' table in seconds, as ElasticFlow's port reads it
    ChronusSeconds,
    /// ElasticFlow's table, with models and batch sizes of --profiles; best-effort jobs stay best-effort
    Elasticflow,
}

/// Runs a trace command.
pub(crate) fn run(command: &TraceCommand) -> Result<()> {
    match command {
        TraceCommand::Import(args) => {
            let given = args.file.as_ref().or(args.inputs.trace.as_ref());
            given.context("which trace? `rota trace import FILE`, or `-` for standard input")?;
            write(args, args.to.unwrap_or(Target::Rota))
        }
        TraceCommand::Generate(args) => make_trace::generate(args),
        TraceCommand::Record(args) => write(args, args.to.unwrap_or(Target::Synergy)),
        TraceCommand::Convert(args) => {
            write(args, args.to.context("which format? For instance --to synergy or --to chronus")?)
        }
        TraceCommand::Slice(args) => slice(args),
        TraceCommand::Scale(args) => make_trace::scale(args),
        TraceCommand::Sample(args) => make_trace::sample(args),
        TraceCommand::Merge(args) => make_trace::merge(args),
        TraceCommand::Shift(args) => make_trace::shift(args),
        TraceCommand::Anonymise(args) => make_trace::anonymise(args),
        TraceCommand::Assign(args) => assign::run(args),
        TraceCommand::Faults(args) => make_trace::faults(args),
        TraceCommand::Check(args) => check::run(args),
        TraceCommand::Stats(args) => stats::run(args),
        TraceCommand::Formats => {
            let width = Format::ALL.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
            for entry in Format::ALL {
                println!("{:width$}  {}", entry.name, entry.about.trim());
            }
            Ok(())
        }
    }
}

/// Reads or draws what is asked for and says how, and which rows were dropped.
pub(super) fn resolve(file: Option<&PathBuf>, inputs: &InputArgs) -> Result<Inputs> {
    let resolved = with_file(file, inputs).resolve()?;
    tell(&resolved);
    for row in resolved.loads.iter().flat_map(|load| &load.dropped) {
        eprintln!("dropped line {}: {}", row.line, row.reason);
    }
    Ok(resolved)
}

/// The same for a caller that lists the rows itself, were it all of them.
pub(super) fn resolve_and_list(file: Option<&PathBuf>, inputs: &InputArgs) -> Result<Inputs> {
    let resolved = with_file(file, inputs).resolve_and_list()?;
    tell(&resolved);
    Ok(resolved)
}

fn with_file(file: Option<&PathBuf>, inputs: &InputArgs) -> InputArgs {
    InputArgs { trace: file.cloned().or(inputs.trace.clone()), ..inputs.clone() }
}

fn tell(resolved: &Inputs) {
    for load in &resolved.loads {
        if let Some(reading) = &load.reading {
            eprintln!("{}: {}", resolved.name, told(reading, load.workload.jobs.len(), load.dropped.len()));
        }
    }
}

/// `1 job`, `1,234 jobs`.
pub(super) fn counted(n: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(n as u64), if n == 1 { "" } else { "s" })
}

/// How a trace was read, as a sentence for people.
fn told(reading: &Reading, n_jobs: usize, n_dropped: usize) -> String {
    let how = if reading.is_recognised { "recognised as" } else { "read as" };
    let mut parts = vec![format!("{how} {}", reading.format.name()), counted(n_jobs, "job")];
    parts.extend(reading.clauses.iter().cloned());
    if n_dropped > 0 {
        let (rows, make, were) =
            if n_dropped == 1 { ("row", "makes", "was") } else { ("rows", "make", "were") };
        parts.push(format!("{} {rows} {make} no sense and {were} dropped", grouped(n_dropped as u64)));
    }
    parts.join("; ")
}

pub(super) fn write(args: &WriteArgs, target: Target) -> Result<()> {
    let inputs = resolve(args.file.as_ref(), &args.inputs)?;
    let [load] = inputs.loads.as_slice() else {
        bail!("--jobs-per-hour: a trace has one load, give one value")
    };
    if let Some(names) = &args.names {
        replace_file(names, write_chronus::write_names(&load.workload).as_bytes())?;
    }
    write_workload(&load.workload, &inputs, target, args.out.as_ref())
}

pub(super) fn write_workload(
    workload: &Workload,
    inputs: &Inputs,
    target: Target,
    out: Option<&PathBuf>,
) -> Result<()> {
    let text = match target {
        Target::Rota => write_rota(workload, &inputs.cluster),
        Target::Synergy => replay::write(workload),
        Target::Chronus => write_chronus::write(workload, &inputs.cluster, 60.0),
        Target::ChronusSeconds => write_chronus::write(workload, &inputs.cluster, 1.0),
        Target::Elasticflow => elasticflow(workload, inputs)?,
    };
    match out {
        Some(path) => {
            replace_file(path, text.as_bytes())?;
            eprintln!("{} written to {}", counted(workload.jobs.len(), "job"), path.display());
        }
        None => print!("{text}"),
    }
    Ok(())
}

fn elasticflow(workload: &Workload, inputs: &Inputs) -> Result<String> {
    let measured;
    let profiles = if inputs.profiles.entry(write_elasticflow::UNKNOWN).is_some() {
        &inputs.profiles
    } else {
        measured = profile::load(ELASTICFLOW_PROFILES)?;
        eprintln!(
            "the profiles {} do not have ElasticFlow's models: iterations are computed with {ELASTICFLOW_PROFILES}",
            inputs.profiles.name
        );
        &measured
    };
    let (text, n_replaced) = write_elasticflow::write(workload, &inputs.cluster, profiles)?;
    if n_replaced > 0 {
        eprintln!(
            "{n_replaced} jobs of models that ElasticFlow does not have became resnet50, as in ElasticFlow's own program"
        );
    }
    Ok(text)
}

fn slice(args: &SliceArgs) -> Result<()> {
    let write = &args.write;
    let inputs = resolve(write.file.as_ref(), &write.inputs)?;
    let [load] = inputs.loads.as_slice() else {
        bail!("--jobs-per-hour: a trace has one load, give one value")
    };
    let all = &load.workload;
    let part = match (&args.jobs_range, args.hours) {
        (Some(range), _) => at_positions(all, range)?,
        (None, Some((from, to))) => {
            reshape::between(all, Time::from_secs_f64(from * 3_600.0), Time::from_secs_f64(to * 3_600.0))
        }
        (None, None) => bail!("--jobs-range or --hours: which part?"),
    };
    if part.jobs.is_empty() {
        let last = all.jobs.last().map_or(0.0, |job| job.arrival.as_secs_f64() / 3_600.0);
        bail!(
            "no job arrives in these hours: the last of {} arrives in hour {last:.1}",
            grouped(all.jobs.len() as u64)
        );
    }
    write_workload(&part, &inputs, write.to.unwrap_or(Target::Rota), write.out.as_ref())
}

fn at_positions(all: &Workload, range: &str) -> Result<Workload> {
    let ends = range
        .split_once("..")
        .and_then(|(lo, hi)| Some((lo.parse::<usize>().ok()?, hi.parse::<usize>().ok()?)));
    let Some((lo, hi)) = ends.filter(|(lo, hi)| lo < hi) else {
        bail!("--jobs-range {range}: write it as 0..1000")
    };
    if lo >= all.jobs.len() {
        bail!("--jobs-range {range}: the trace has {} jobs", all.jobs.len());
    }
    Ok(reshape::select(all, |index, _| (lo..hi).contains(&index)))
}
