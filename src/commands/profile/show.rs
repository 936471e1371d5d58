//! `rota profile show`: the models of a set, or one model's curves.

mod curves;

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use clap::Args;
use rota_core::profile::Profile;
use rota_traces::profile::{BUILT_IN, ProfileEntry, ProfileSet, load};

use super::new_table;

/// The most models that are listed without --all: about a screen.
const MOST_MODELS: usize = 40;

/// What to show.
#[derive(Args, Clone, Debug)]
pub(crate) struct ShowArgs {
    /// Profile file or built-in set [default: list the built-in sets]
    #[arg(value_name = "FILE|NAME")]
    profiles: Option<String>,
    /// Model to show [default: list all models]
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    /// Show all models and all batch sizes, even if there are many
    #[arg(long)]
    all: bool,
}

/// Prints.
pub(super) fn run(args: &ShowArgs) -> Result<()> {
    let Some(profiles) = &args.profiles else { return list_built_in() };
    let set = load(profiles)?;
    match (&args.model, set.entries()) {
        (Some(model), _) => {
            let known =
                || format!("model `{model}` is not in {profiles}; `rota profile show {profiles}` lists them");
            print!("{}", describe(set.entry(model).with_context(known)?, args.all));
        }
        (None, [only]) => print!("{}", describe(only, args.all)),
        (None, _) => print!("{}", list(&set, args.all)),
    }
    Ok(())
}

/// Prints a line for each built-in set.
pub(super) fn list_built_in() -> Result<()> {
    for (name, _) in BUILT_IN {
        let set = load(name)?;
        let types: BTreeSet<&str> =
            set.entries().iter().flat_map(|entry| curves::gpu_types(&entry.profile)).collect();
        let on = match types.into_iter().collect::<Vec<_>>().join(", ") {
            types if types.is_empty() => String::new(),
            types => format!(", measured on {types}"),
        };
        println!("{name:18} {:>2} models{on}", set.entries().len());
    }
    Ok(())
}

/// A row for each model; columns that are empty for all models are left out.
fn list(set: &ProfileSet, is_all: bool) -> String {
    let n_shown = if is_all { set.entries().len() } else { set.entries().len().min(MOST_MODELS) };
    let headings = ["model", "class", "batch", "iteration s", "CPUs", "memory GB", "GPUs", "restart s"];
    let rows: Vec<[String; 8]> = set.entries().iter().take(n_shown).map(row).collect();
    let is_kept: Vec<bool> = (0..headings.len()).map(|c| rows.iter().any(|row| !row[c].is_empty())).collect();
    let kept = |at: &usize| is_kept[*at];
    let headings: Vec<&str> = (0..headings.len()).filter(kept).map(|column| headings[column]).collect();
    let mut table = new_table(&headings, if is_kept[1] { 2 } else { 1 });
    for row in &rows {
        table.add_row((0..row.len()).filter(kept).map(|column| row[column].as_str()));
    }
    let mut text = format!("{table}\n");
    let types: BTreeSet<&str> =
        set.entries().iter().flat_map(|entry| curves::gpu_types(&entry.profile)).collect();
    if !types.is_empty() {
        text += &format!("measured on {}\n", types.into_iter().collect::<Vec<_>>().join(", "));
    }
    if n_shown < set.entries().len() {
        text += &format!("{} more models; --all lists every one\n", set.entries().len() - n_shown);
    }
    text
}

fn row(entry: &ProfileEntry) -> [String; 8] {
    let profile = &entry.profile;
    let demand = profile.demand_per_gpu;
    let most_gpus = profile.scale.iter().flat_map(|curve| curve.points.last()).map(|point| point.0).max();
    let unless_zero = |number: f64| if number > 0.0 { number.to_string() } else { String::new() };
    [
        profile.name.clone(),
        profile.class.clone(),
        curves::batches_text(profile),
        format!("{:.4}", 1.0 / profile.base_rate),
        unless_zero(demand.cpus()),
        unless_zero(demand.mem_gb()),
        most_gpus.filter(|gpus| *gpus > 1).map_or(String::new(), |gpus| format!("1..{gpus}")),
        unless_zero(profile.restart.as_secs_f64()),
    ]
}

/// Describes a model, on a screen or completely.
fn describe(entry: &ProfileEntry, is_all: bool) -> String {
    let profile = &entry.profile;
    let mut text = format!("{}  {}\n{}\n", profile.name, profile.class, profile.source);
    let batch = if profile.batch > 0 { format!(", batch {}", profile.batch) } else { String::new() };
    text += &format!("one iteration: {:.6} s at its share{batch}\n", 1.0 / profile.base_rate);
    if profile.gpu_mem_bytes > 0 {
        text += &format!("GPU memory: {:.3} GB\n", profile.gpu_mem_bytes as f64 / 1e9);
    }
    let demand = profile.demand_per_gpu;
    if demand.cpu_micro > 0 {
        let (cpus, mem) = (demand.cpus(), demand.mem_gb());
        text += &format!(
            "demand for each GPU: {cpus} CPUs, {mem} GB, {} MB/s\n",
            demand.storage_bps as f64 / 1e6
        );
    }
    for (name, span) in [("restart", profile.restart), ("checkpoint", profile.checkpoint)] {
        if span.as_secs_f64() > 0.0 {
            text += &format!("{name}: {} s\n", span.as_secs_f64());
        }
    }
    text += &grid_text(profile);
    text += &curves::tables(profile, is_all);
    if let Some(measured) = &entry.measured {
        text += &format!(
            "measured {} on {} by {}: {}\n{} points\n",
            measured.day,
            measured.machine,
            measured.tool,
            measured.command,
            measured.points.len()
        );
        for change in &measured.changes {
            let how = if change.moved { "moved" } else { "scaled" };
            text += &format!(
                "{how} {} → {} GPUs: {:.3} s to checkpoint, {:.3} s to the next iteration\n",
                change.from, change.to, change.checkpoint_s, change.restart_s
            );
        }
        measured.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
    }
    text
}

fn grid_text(profile: &Profile) -> String {
    let Some(curve) = &profile.host else { return String::new() };
    let headings: Vec<String> =
        ["CPUs".to_owned()].into_iter().chain(curve.mem_gb().iter().map(|gb| format!("{gb} GB"))).collect();
    let mut table = new_table(&headings.iter().map(String::as_str).collect::<Vec<_>>(), 0);
    for (row, cpus) in curve.cpus().iter().enumerate() {
        let speeds = (0..curve.mem_gb().len()).map(|column| format!("{:.3}", curve.at_level(row, column)));
        table.add_row([cpus.to_string()].into_iter().chain(speeds));
    }
    format!("speed relative to its share, by CPUs and memory for each GPU:\n{table}\n")
}
