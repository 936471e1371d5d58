//! `rota trace`: traces in and out of every format, what they hold, and what is wrong with them.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use comfy_table::{CellAlignment, Table};
use rota_core::ids::JobId;
use rota_core::workload::Workload;
use rota_traces::format::{Format, replay, write_chronus, write_elasticflow, write_rota};
use rota_traces::source::Source;
use rota_traces::stats::{Group, Stats, Summary};
use rota_traces::{check, profile, stats};

use super::inputs::{InputArgs, Inputs, Reading};
use rota_lab::report::grouped;
use rota_lab::results::replace_file;

/// Speeds that ElasticFlow's tables are written with when the profiles at hand lack its models.
const ELASTICFLOW_PROFILES: &str = "elasticflow-a100";

/// Findings that a terminal shows; --json has all.
const MOST_FINDINGS: usize = 50;

/// What to do with traces.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum TraceCommand {
    /// Read a trace in any format and write it as Rota's CSV
    ///
    /// Rota's CSV has one line for each job: when it arrives, how many GPUs it asks for, its model, how much work it has, and,
    /// where there is one, its deadline. Import a trace to look at it or edit it in any tool; to simulate it,
    /// that is not necessary: `rota simulate --trace` reads all of these formats.
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(WriteArgs),
    /// Draw a workload at random and write it as a trace
    ///
    /// A workload is drawn from a recipe: number of jobs, arrivals per hour, mix of models, durations. The built-in recipes are
    /// those of Synergy and ElasticFlow; a .toml file describes your own. The same options and the same seed always give the
    /// same bytes. `rota simulate` draws the same workload by itself: write it to a file only to look at it, to edit it or to
    /// give it to another program.
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(WriteArgs),
    /// Write a trace or a drawn workload in Synergy's record/replay format
    Record(WriteArgs),
    /// Write a trace in the format of another program
    ///
    /// Use it to run the same jobs in Rota and in an original program. A format keeps what it has columns for, and no more:
    /// Synergy's has no deadlines, Chronus' no models. `rota trace formats` lists what is read, `--to` what is written.
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(WriteArgs),
    /// Write a part of a trace: the jobs at positions LO..HI
    Slice(SliceArgs),
    /// Check a trace against a cluster; the exit code is 1 if a row makes no sense or a job can never run
    Check(ReadArgs),
    /// Print counts, percentiles and the offered load of a trace
    Stats(ReadArgs),
    /// List the formats that are read
    Formats,
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
  rota trace generate --workload deadlines | rota trace stats -";

const CONVERT_EXAMPLES: &str = "\
Try:
  rota trace convert jobs.csv --to synergy -o jobs.trace
  rota trace convert jobs.csv --to chronus -o chronus.csv --names users.csv
  rota trace generate --workload elasticflow | rota trace convert - --to elasticflow";

/// A trace to read.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReadArgs {
    /// The trace, `-` for standard input [default: a workload is drawn]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    inputs: InputArgs,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// List of users that Chronus reads next to a trace; `check` refuses a list that lacks some [default: none]
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
}

/// A trace to read and where to write it.
#[derive(Args, Clone, Debug)]
pub(crate) struct WriteArgs {
    /// The trace, `-` for standard input [default: a workload is drawn]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    inputs: InputArgs,
    /// Format to write [default: rota; synergy for `record`; `convert` needs it]
    #[arg(long, value_enum)]
    to: Option<Target>,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also write the list of users that Chronus reads next to a trace [default: not written]
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
}

/// A part of a trace.
#[derive(Args, Clone, Debug)]
pub(crate) struct SliceArgs {
    /// Positions in the order of arrival, from 0, without the last: 0..1000
    #[arg(long, value_name = "LO..HI")]
    jobs_range: String,
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
        TraceCommand::Generate(args) => {
            if args.file.is_some() || args.inputs.trace.is_some() {
                bail!(
                    "`rota trace generate` reads no trace: use `rota trace import` or `rota trace convert`"
                );
            }
            write(args, args.to.unwrap_or(Target::Rota))
        }
        TraceCommand::Record(args) => write(args, args.to.unwrap_or(Target::Synergy)),
        TraceCommand::Convert(args) => {
            write(args, args.to.context("which format? For instance --to synergy or --to chronus")?)
        }
        TraceCommand::Slice(args) => slice(args),
        TraceCommand::Check(args) => check_trace(args),
        TraceCommand::Stats(args) => print_stats(args),
        TraceCommand::Formats => {
            let width = Format::ALL.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
            for entry in Format::ALL {
                println!("{:width$}  {}", entry.name, entry.about.trim());
            }
            Ok(())
        }
    }
}

fn resolve(file: Option<&PathBuf>, inputs: &InputArgs) -> Result<Inputs> {
    let mut inputs = inputs.clone();
    inputs.trace = file.cloned().or(inputs.trace);
    let resolved = inputs.resolve()?;
    for load in &resolved.loads {
        if let Some(reading) = &load.reading {
            eprintln!("{}: {}", resolved.name, told(reading, load.workload.jobs.len(), load.dropped.len()));
        }
        for row in &load.dropped {
            eprintln!("dropped line {}: {}", row.line, row.reason);
        }
    }
    Ok(resolved)
}

/// How a trace was read, as a sentence for people.
fn told(reading: &Reading, n_jobs: usize, n_dropped: usize) -> String {
    let how = if reading.is_recognised { "recognised as" } else { "read as" };
    let jobs = if n_jobs == 1 { "job" } else { "jobs" };
    let n_jobs = grouped(n_jobs as u64);
    let mut parts = vec![format!("{how} {}", reading.format.name()), format!("{n_jobs} {jobs}")];
    parts.extend(reading.clauses.iter().cloned());
    if n_dropped > 0 {
        parts.push(format!("{} rows make no sense and were dropped", grouped(n_dropped as u64)));
    }
    parts.join("; ")
}

fn write(args: &WriteArgs, target: Target) -> Result<()> {
    let inputs = resolve(args.file.as_ref(), &args.inputs)?;
    let [load] = inputs.loads.as_slice() else {
        bail!("--jobs-per-hour: a trace has one load, give one value")
    };
    if let Some(names) = &args.names {
        replace_file(names, write_chronus::write_names(&load.workload).as_bytes())?;
    }
    write_workload(&load.workload, &inputs, target, args.out.as_ref())
}

fn write_workload(workload: &Workload, inputs: &Inputs, target: Target, out: Option<&PathBuf>) -> Result<()> {
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
            eprintln!("{} jobs written to {}", workload.jobs.len(), path.display());
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
    let range = args
        .jobs_range
        .split_once("..")
        .and_then(|(lo, hi)| Some((lo.parse::<usize>().ok()?, hi.parse::<usize>().ok()?)));
    let Some((lo, hi)) = range.filter(|(lo, hi)| lo < hi) else {
        bail!("--jobs-range {}: write it as 0..1000", args.jobs_range)
    };
    let write = &args.write;
    let inputs = resolve(write.file.as_ref(), &write.inputs)?;
    let [load] = inputs.loads.as_slice() else {
        bail!("--jobs-per-hour: a trace has one load, give one value")
    };
    let all = &load.workload;
    let hi = hi.min(all.jobs.len());
    if lo >= hi {
        bail!("--jobs-range {}: the trace has {} jobs", args.jobs_range, all.jobs.len());
    }
    let renumber = |(index, job): (usize, &Arc<_>)| {
        let mut job = rota_core::job::JobSpec::clone(job);
        job.id = JobId::from(index);
        Arc::new(job)
    };
    let part = Workload {
        jobs: all.jobs[lo..hi].iter().enumerate().map(renumber).collect(),
        truths: all.truths[lo..hi].to_vec(),
        tenants: all.tenants.clone(),
        datasets: all.datasets.clone(),
    };
    write_workload(&part, &inputs, write.to.unwrap_or(Target::Rota), write.out.as_ref())
}

fn check_trace(args: &ReadArgs) -> Result<()> {
    // Rows that make no sense are findings too: all of them are wanted, not the first.
    let inputs = resolve(args.file.as_ref(), &InputArgs { skip_bad_rows: true, ..args.inputs.clone() })?;
    let load = inputs.loads.first().context("no workload")?;
    if let Some(path) = &args.names {
        check_names(&load.workload, path)?;
    }
    let findings = check::check(&load.workload, &inputs.cluster);
    let impossible = findings.iter().filter(|f| f.oddity.is_impossible()).count();
    if args.json {
        let of_rows = load.dropped.iter().map(|row| {
            serde_json::json!({"line": row.line, "finding": row.reason.to_string(), "severity": "unreadable"})
        });
        let of_jobs = findings.iter().map(|f| {
            let severity = if f.oddity.is_impossible() { "impossible" } else { "odd" };
            serde_json::json!({"job": f.name, "finding": f.to_string(), "severity": severity})
        });
        let rows: Vec<_> = of_rows.chain(of_jobs).collect();
        let all = serde_json::json!({"jobs": load.workload.jobs.len(), "findings": rows});
        println!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        for finding in findings.iter().take(MOST_FINDINGS) {
            println!("{finding}");
        }
        if findings.len() > MOST_FINDINGS {
            println!("… and {} more", findings.len() - MOST_FINDINGS);
        }
        println!(
            "{} on {}: {} jobs, {} rows that make no sense, {} findings, {impossible} can never run",
            inputs.name,
            inputs.cluster.name,
            load.workload.jobs.len(),
            load.dropped.len(),
            findings.len()
        );
    }
    match (load.dropped.len(), impossible) {
        (0, 0) => Ok(()),
        (0, _) => bail!("{impossible} jobs can never run on {}", inputs.cluster.name),
        (rows, _) => bail!("{rows} rows of {} make no sense", inputs.name),
    }
}

fn check_names(workload: &Workload, path: &std::path::Path) -> Result<()> {
    let list = Source::open(path)?;
    let missing = write_chronus::missing_names(workload, &write_chronus::read_names(&list.text));
    match missing.first() {
        None => Ok(()),
        Some(first) => bail!("{} lacks {} users of the trace, {first} first", list.name, missing.len()),
    }
}

fn print_stats(args: &ReadArgs) -> Result<()> {
    let inputs = resolve(args.file.as_ref(), &args.inputs)?;
    let load = inputs.loads.first().context("no workload")?;
    let stats = stats::stats(&load.workload, &inputs.cluster);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&to_json(&stats))?);
        return Ok(());
    }
    println!("{}: {} jobs over {:.1} days", inputs.name, stats.n_jobs, stats.span_s / 86_400.0);
    println!(
        "{:.0} GPU-hours, {:.0} % of {} ({} GPUs) while jobs arrive",
        stats.gpu_hours,
        stats.offered_load * 100.0,
        inputs.cluster.name,
        inputs.cluster.n_gpus()
    );
    if stats.n_elastic + stats.n_strict + stats.n_soft > 0 {
        println!(
            "{} elastic, {} with a strict deadline, {} with soft ones",
            stats.n_elastic, stats.n_strict, stats.n_soft
        );
    }
    let mut table = plain_table(&["seconds", "mean", "min", "median", "p90", "p99", "max"]);
    for (name, s) in [("duration", &stats.duration_s), ("between arrivals", &stats.gap_s)] {
        let cells = [s.mean, s.min, s.median, s.p90, s.p99, s.max].map(|v| format!("{v:.0}"));
        table.add_row(std::iter::once(name.to_owned()).chain(cells));
    }
    println!("{table}");
    let by_gpus = stats.by_gpus.iter().map(|(gpus, group)| (gpus.to_string(), group));
    println!("{}", group_table("GPUs", by_gpus, &stats));
    println!("{}", group_table("model", stats.by_model.iter().map(|(n, g)| (n.clone(), g)), &stats));
    if stats.by_tenant.len() > 1 {
        println!("{}", group_table("tenant", stats.by_tenant.iter().map(|(n, g)| (n.clone(), g)), &stats));
    }
    Ok(())
}

fn plain_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(rota_lab::report::TABLE_STYLE).set_header(header.iter().copied());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn group_table<'a>(name: &str, groups: impl Iterator<Item = (String, &'a Group)>, stats: &Stats) -> Table {
    let mut table = plain_table(&[name, "jobs", "% of jobs", "GPU-hours", "% of GPU time"]);
    let percent =
        |part: f64, whole: f64| format!("{:.1}", if whole > 0.0 { part / whole * 100.0 } else { 0.0 });
    for (key, group) in groups {
        let jobs = percent(group.n_jobs as f64, stats.n_jobs as f64);
        table.add_row([
            key,
            group.n_jobs.to_string(),
            jobs,
            format!("{:.0}", group.gpu_hours),
            percent(group.gpu_hours, stats.gpu_hours),
        ]);
    }
    table
}

fn to_json(stats: &Stats) -> serde_json::Value {
    let summary = |s: &Summary| serde_json::json!({"mean": s.mean, "min": s.min, "median": s.median, "p90": s.p90, "p99": s.p99, "max": s.max});
    let group = |g: &Group| serde_json::json!({"jobs": g.n_jobs, "gpu_hours": g.gpu_hours});
    let map = |groups: Vec<(String, &Group)>| {
        groups.into_iter().map(|(k, g)| (k, group(g))).collect::<serde_json::Map<_, _>>()
    };
    serde_json::json!({
        "jobs": stats.n_jobs,
        "span_s": stats.span_s,
        "gpu_hours": stats.gpu_hours,
        "offered_load": stats.offered_load,
        "duration_s": summary(&stats.duration_s),
        "gap_s": summary(&stats.gap_s),
        "elastic": stats.n_elastic,
        "strict_deadlines": stats.n_strict,
        "soft_deadlines": stats.n_soft,
        "datasets": stats.n_datasets,
        "by_gpus": map(stats.by_gpus.iter().map(|(k, g)| (k.to_string(), g)).collect()),
        "by_model": map(stats.by_model.iter().map(|(k, g)| (k.clone(), g)).collect()),
        "by_tenant": map(stats.by_tenant.iter().map(|(k, g)| (k.clone(), g)).collect()),
    })
}
