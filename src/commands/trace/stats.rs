//! `rota trace stats`: what a trace is like, as a table, as JSON, as a page and as plots; two of them next to each other.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use comfy_table::{CellAlignment, Table};
use rota_traces::stats::{self, Group, Look, Stats, Summary};

use super::resolve;
use crate::commands::inputs::{InputArgs, Inputs};
use rota_lab::report::{TraceShown, trace_figures, trace_page, write_figures};
use rota_lab::results::replace_file;

pub(super) const EXAMPLES: &str = "\
Try:
  rota trace stats philly.csv --cluster philly
  rota trace stats philly.csv --cluster philly --page philly.html
  rota trace stats philly.csv --against mine.csv --cluster philly --page both.html --plots both";

/// A trace to look at.
#[derive(Args, Clone, Debug)]
pub(crate) struct StatsArgs {
    /// The trace, `-` for standard input [default: a workload is drawn]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// A second trace, next to the first [default: none]
    ///
    /// It is read with the same options, on the same cluster and with the same profiles; its format is recognised by itself.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    #[command(flatten)]
    inputs: InputArgs,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Write a page with tables and plots [default: none]
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Write the plots as SVG, PNG and PDF into `plots` of this folder [default: none]
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
}

/// Looks at a trace, or at two.
pub(super) fn run(args: &StatsArgs) -> Result<()> {
    let first = resolve(args.file.as_ref(), &args.inputs)?;
    let second = args.against.as_ref().map(|file| against(file, args, &first)).transpose()?;
    let mut shown = vec![looked_at(&first)?];
    shown.extend(second.as_ref().map(looked_at).transpose()?);
    if args.json {
        let all: Vec<_> = shown.iter().map(to_json).collect();
        let value = match all.as_slice() {
            [only] => only.clone(),
            both => serde_json::json!({"traces": both}),
        };
        println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        shown.iter().for_each(|trace| print(trace, &first));
    }
    let drawn = with_short_names(shown);
    if let Some(path) = &args.page {
        replace_file(path, trace_page(&drawn, &first.cluster)?.as_bytes())?;
        eprintln!("page written to {}", path.display());
    }
    if let Some(folder) = &args.plots {
        write_figures(&trace_figures(&drawn, &first.cluster), folder)?;
        eprintln!("plots written to {}", folder.join("plots").display());
    }
    Ok(())
}

/// The same under as much of the ends of their paths as tells them apart: whole paths do not fit a legend.
fn with_short_names(shown: Vec<TraceShown>) -> Vec<TraceShown> {
    let names: Vec<&str> = shown.iter().map(|trace| trace.name.as_str()).collect();
    let names = short_names(&names);
    shown.into_iter().zip(names).map(|(trace, name)| TraceShown { name, ..trace }).collect()
}

fn short_names(paths: &[&str]) -> Vec<String> {
    let most = paths.iter().map(|path| path.split('/').count()).max().unwrap_or(1);
    let ends = |n: usize| {
        let end = |path: &&str| {
            let parts: Vec<&str> = path.split('/').collect();
            parts[parts.len().saturating_sub(n)..].join("/")
        };
        paths.iter().map(end).collect::<Vec<String>>()
    };
    let differ =
        |names: &Vec<String>| names.iter().collect::<std::collections::BTreeSet<_>>().len() == names.len();
    (1..=most).map(ends).find(differ).unwrap_or_else(|| ends(1))
}

/// The second trace, on the cluster and with the profiles of the first.
fn against(file: &PathBuf, args: &StatsArgs, first: &Inputs) -> Result<Inputs> {
    let named =
        |role: &str| first.files.iter().find(|input| input.role == role).map(|input| input.name.clone());
    let inputs = InputArgs {
        cluster: named("cluster"),
        profiles: named("profiles"),
        format: None,
        workload: None,
        ..args.inputs.clone()
    };
    resolve(Some(file), &inputs).with_context(|| format!("--against {}", file.display()))
}

fn looked_at(inputs: &Inputs) -> Result<TraceShown> {
    let load = inputs.loads.first().context("no workload")?;
    let durations = stats::durations_s(&load.workload, &inputs.cluster);
    let begins_s = load.reading.as_ref().and_then(|reading| reading.begins_s);
    Ok(TraceShown {
        name: inputs.name.clone(),
        stats: stats::stats(&load.workload, &inputs.cluster),
        look: Look::of(&load.workload, &durations, begins_s),
    })
}

fn print(trace: &TraceShown, inputs: &Inputs) {
    let stats = &trace.stats;
    let (n_jobs, noun) = (stats.n_jobs, if stats.n_jobs == 1 { "job" } else { "jobs" });
    println!("{}: {n_jobs} {noun} over {:.1} days", trace.name, stats.span_s / 86_400.0);
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
    println!("{}", group_table("GPUs", by_gpus, stats));
    println!("{}", group_table("model", stats.by_model.iter().map(|(n, g)| (n.clone(), g)), stats));
    if stats.by_tenant.len() > 1 {
        println!("{}", group_table("tenant", stats.by_tenant.iter().map(|(n, g)| (n.clone(), g)), stats));
    }
    if !stats.by_end.is_empty() {
        println!("{}", group_table("ended", stats.by_end.iter().map(|(n, g)| (n.clone(), g)), stats));
    }
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

fn to_json(trace: &TraceShown) -> serde_json::Value {
    let stats = &trace.stats;
    let summary = |s: &Summary| serde_json::json!({"mean": s.mean, "min": s.min, "median": s.median, "p90": s.p90, "p99": s.p99, "max": s.max});
    let group = |g: &Group| serde_json::json!({"jobs": g.n_jobs, "gpu_hours": g.gpu_hours});
    let map = |groups: Vec<(String, &Group)>| {
        groups.into_iter().map(|(k, g)| (k, group(g))).collect::<serde_json::Map<_, _>>()
    };
    serde_json::json!({
        "trace": trace.name,
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
        "by_end": map(stats.by_end.iter().map(|(k, g)| (k.clone(), g)).collect()),
        "curves": trace.look,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_have_as_much_of_their_paths_as_tells_them_apart() {
        assert_eq!(short_names(&["/a/x/w.csv"]), ["w.csv"]);
        assert_eq!(short_names(&["/a/x/w.csv", "/a/y/v.csv"]), ["w.csv", "v.csv"]);
        assert_eq!(short_names(&["/a/x/w.csv", "/a/y/w.csv"]), ["x/w.csv", "y/w.csv"]);
        assert_eq!(short_names(&["w.csv", "/a/w.csv"]), ["w.csv", "a/w.csv"]);
        assert_eq!(short_names(&["w.csv", "w.csv"]), ["w.csv", "w.csv"]);
    }
}
