//! `rota trace check`: what is wrong or odd in a trace, and what can be mended.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use rota_core::workload::Workload;
use rota_traces::check::{self, Finding, Severity};
use rota_traces::format::{Lines, write_chronus, write_rota};
use rota_traces::repair;
use rota_traces::source::Source;

use super::{counted, resolve_and_list};
use crate::commands::inputs::{InputArgs, Inputs, Load};
use rota_lab::report::grouped;
use rota_lab::results::replace_file;

pub(super) const EXAMPLES: &str = "\
Try:
  rota trace check jobs.csv --cluster philly
  rota trace check jobs.csv --cluster mine.toml --strict --json > findings.json    in a CI job
  rota trace check jobs.csv --fix mended.csv       also writes mended.csv.changes.csv: every change with its reason";

/// Findings that a terminal shows; --json has all.
const MOST_FINDINGS: usize = 50;

/// A trace to check.
#[derive(Args, Clone, Debug)]
pub(crate) struct CheckArgs {
    /// The trace, `-` for standard input [default: a workload is drawn]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    inputs: InputArgs,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// The exit code is 1 for warnings too
    #[arg(long)]
    strict: bool,
    /// Write what can be mended without guessing as Rota's CSV, and a record of every change next to it (FILE.changes.csv) [default:
    /// nothing is written]
    ///
    /// Left out are rows that make no sense and jobs that can never run; a deadline that is over when its job arrives is removed; a
    /// trace that begins years after time 0 begins at 0. The exit code is 0 if no error is left.
    #[arg(long, value_name = "FILE")]
    fix: Option<PathBuf>,
    /// List of users that Chronus reads next to a trace; a list that lacks some is refused [default: none]
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
}

/// Checks a trace.
pub(super) fn run(args: &CheckArgs) -> Result<()> {
    // Rows that make no sense are findings too: all of them are wanted, not the first.
    let inputs = resolve_and_list(args.file.as_ref(), &args.inputs)?;
    let load = inputs.loads.first().context("no workload")?;
    if let Some(path) = &args.names {
        check_names(&load.workload, path)?;
    }
    let findings = check::check(&load.workload, &load.dropped, &lines(load), &inputs.cluster);
    match args.json {
        true => print_json(&findings, load)?,
        false => print_text(&findings, load, &inputs),
    }
    if let Some(path) = &args.fix {
        return fix(path, load, &inputs);
    }
    let worst = findings.iter().map(Finding::severity).max();
    match worst {
        Some(Severity::Error) => bail!("{} has errors: {}", inputs.name, by_severity(&findings)),
        Some(Severity::Warning) if args.strict => {
            bail!("{} has warnings: {}", inputs.name, by_severity(&findings))
        }
        _ => Ok(()),
    }
}

fn lines(load: &Load) -> Lines {
    load.reading.as_ref().map(|reading| reading.lines.clone()).unwrap_or_default()
}

fn print_json(findings: &[Finding], load: &Load) -> Result<()> {
    let rows: Vec<_> = findings
        .iter()
        .map(|finding| {
            serde_json::json!({
                "severity": finding.severity().name(),
                "rule": finding.rule.name(),
                "line": finding.at.line,
                "column": finding.at.column,
                "job": finding.at.job,
                "value": finding.value,
                "finding": finding.message,
            })
        })
        .collect();
    let all = serde_json::json!({"jobs": load.workload.jobs.len(), "findings": rows});
    println!("{}", serde_json::to_string_pretty(&all)?);
    Ok(())
}

fn print_text(findings: &[Finding], load: &Load, inputs: &Inputs) {
    for finding in findings.iter().take(MOST_FINDINGS) {
        println!("{finding}");
    }
    if findings.len() > MOST_FINDINGS {
        println!("… and {} more; --json has all", grouped((findings.len() - MOST_FINDINGS) as u64));
    }
    let jobs = counted(load.workload.jobs.len(), "job");
    println!("{} on {}: {jobs}, {}", inputs.name, inputs.cluster.name, by_severity(findings));
}

fn by_severity(findings: &[Finding]) -> String {
    let count = |severity: Severity| {
        let n = findings.iter().filter(|finding| finding.severity() == severity).count();
        counted(n, severity.name())
    };
    [Severity::Error, Severity::Warning, Severity::Note].map(count).join(", ")
}

fn fix(path: &Path, load: &Load, inputs: &Inputs) -> Result<()> {
    let repaired = repair::repair(&load.workload, &load.dropped, &lines(load), &inputs.cluster);
    if repaired.workload.jobs.is_empty() {
        bail!("no job is left to write: every one of them is wrong");
    }
    let record = PathBuf::from(format!("{}.changes.csv", path.display()));
    replace_file(path, write_rota(&repaired.workload, &inputs.cluster).as_bytes())?;
    replace_file(&record, repair::record(&repaired.changes).as_bytes())?;
    eprintln!(
        "{} written to {}, {} to {}",
        counted(repaired.workload.jobs.len(), "job"),
        path.display(),
        counted(repaired.changes.len(), "change"),
        record.display()
    );
    let left = check::check(&repaired.workload, &[], &Lines::default(), &inputs.cluster);
    match left.iter().find(|finding| finding.severity() == Severity::Error) {
        Some(finding) => bail!("an error is left: {finding}"),
        None => Ok(()),
    }
}

fn check_names(workload: &Workload, path: &Path) -> Result<()> {
    let list = Source::open(path)?;
    let missing = write_chronus::missing_names(workload, &write_chronus::read_names(&list.text));
    match missing.first() {
        None => Ok(()),
        Some(first) => bail!("{} lacks {} users of the trace, {first} first", list.name, missing.len()),
    }
}
