//! `rota profile show`: the models of a set, or one model's curves.

use anyhow::{Context, Result};
use clap::Args;
use comfy_table::Table;
use rota_core::profile::Profile;
use rota_traces::profile::{BUILT_IN, ProfileEntry, ProfileSet, load};

use super::new_table;

/// What to show.
#[derive(Args, Clone, Debug)]
pub(crate) struct ShowArgs {
    /// A profile file or a built-in set; without it, the built-in sets are listed
    #[arg(value_name = "FILE|NAME")]
    profiles: Option<String>,
    /// One model of it
    #[arg(value_name = "MODEL")]
    model: Option<String>,
}

/// Prints.
pub(super) fn run(args: &ShowArgs) -> Result<()> {
    let Some(profiles) = &args.profiles else {
        for (name, _) in BUILT_IN {
            let set = load(name)?;
            println!("{name:18} {} models", set.entries().len());
        }
        return Ok(());
    };
    let set = load(profiles)?;
    match (&args.model, set.entries()) {
        (Some(model), _) => {
            let known =
                || format!("model `{model}` is not in {profiles}; `rota profile show {profiles}` lists them");
            print!("{}", describe(set.entry(model).with_context(known)?));
        }
        (None, [only]) => print!("{}", describe(only)),
        (None, _) => println!("{}", list(&set)),
    }
    Ok(())
}

fn list(set: &ProfileSet) -> Table {
    let mut table =
        new_table(&["model", "class", "batch", "iteration s", "CPUs", "memory GB", "GPUs", "restart s"], 2);
    for entry in set.entries() {
        let profile = &entry.profile;
        let demand = profile.demand_per_gpu;
        let gpus = profile.scale.iter().flat_map(|curve| curve.points.last()).map(|point| point.0).max();
        let mut batches: Vec<u32> = profile.scale.iter().map(|curve| curve.batch).collect();
        batches.extend(profile.scale.is_empty().then_some(profile.batch));
        batches.sort_unstable();
        batches.dedup();
        let batches: Vec<String> = batches.iter().map(u32::to_string).collect();
        table.add_row([
            profile.name.clone(),
            profile.class.clone(),
            batches.join(","),
            format!("{:.4}", 1.0 / profile.base_rate),
            if demand.cpu_micro > 0 { demand.cpus().to_string() } else { String::new() },
            if demand.mem_bytes > 0 { demand.mem_gb().to_string() } else { String::new() },
            gpus.map_or(String::new(), |gpus| format!("1..{gpus}")),
            if profile.restart.as_secs_f64() > 0.0 {
                profile.restart.as_secs_f64().to_string()
            } else {
                String::new()
            },
        ]);
    }
    table
}

/// Everything known of a model.
fn describe(entry: &ProfileEntry) -> String {
    let profile = &entry.profile;
    let mut text = format!("{}  {}\n{}\n", profile.name, profile.class, profile.source);
    text += &format!("one iteration: {:.6} s at its share\n", 1.0 / profile.base_rate);
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
    for curve in &profile.scale {
        let points: Vec<String> =
            curve.points.iter().map(|(gpus, rate)| format!("{gpus}: {rate:.3}")).collect();
        let on = if curve.gpu_type.is_empty() { String::new() } else { format!(" on {}", curve.gpu_type) };
        text += &format!("batch {}{on}, iterations per second by GPUs: {}\n", curve.batch, points.join("  "));
    }
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
