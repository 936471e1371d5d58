//! `rota profile compare`: where two profiles differ.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use rota_core::profile::{Profile, Shape};
use rota_core::resources::Host;
use rota_traces::profile::{ProfileSet, load};

use rota_lab::report::{Axis, Figure, Line, Marks, TABLE_STYLE, table_and_plots};
use rota_lab::results::replace_file;

/// What to compare.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompareArgs {
    /// Profile file or built-in set
    #[arg(value_name = "A")]
    first: String,
    /// Profile file or built-in set to compare it with
    #[arg(value_name = "B")]
    second: String,
    /// Model in A and in B, such as res50 or res50=mine [default: all models with the same name, or the only ones]
    #[arg(long, value_name = "A[=B]")]
    model: Vec<String>,
    /// Also write a page with the table and a plot for each model [default: not written]
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// One model in both.
struct Pair<'s> {
    name: String,
    first: &'s Profile,
    second: &'s Profile,
}

/// One point in both.
struct Both {
    axis: Axes,
    at: f64,
    /// Iterations per second in the first and in the second.
    rates: (f64, f64),
}

#[derive(Clone, Copy, PartialEq)]
enum Axes {
    Cpus,
    Memory,
    Gpus(u32),
}

/// Compares and prints.
pub(super) fn run(args: &CompareArgs) -> Result<()> {
    let (first, second) = (load(&args.first)?, load(&args.second)?);
    let pairs = pairs(args, &first, &second)?;
    let mut table = Table::new();
    table.load_style(TABLE_STYLE).set_content_arrangement(ContentArrangement::Disabled);
    let headings = [
        "model",
        "points",
        "mean difference (%)",
        "largest (%)",
        "where",
        "CPUs wanted",
        "memory wanted (GB)",
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    table.set_header(headings);
    for column in [1, 2, 3, 5, 6] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut figures = Vec::new();
    for pair in &pairs {
        let points = pair.points();
        let off = |both: &Both| (both.rates.1 / both.rates.0 - 1.0).abs() * 100.0;
        let mean = points.iter().map(off).sum::<f64>() / points.len().max(1) as f64;
        let worst = points.iter().max_by(|a, b| off(a).total_cmp(&off(b)));
        let demand = |of: fn(&Host) -> f64| {
            let (a, b) = (of(&pair.first.demand_per_gpu), of(&pair.second.demand_per_gpu));
            if a == b { a.to_string() } else { format!("{a} → {b}") }
        };
        rows.push(vec![
            pair.name.clone(),
            points.len().to_string(),
            format!("{mean:.1}"),
            worst.map_or(String::new(), |both| format!("{:.1}", off(both))),
            // Where nothing differs, no place differs most.
            worst.filter(|both| off(both) >= 0.05).map_or(String::new(), Both::place),
            demand(Host::cpus),
            demand(Host::mem_gb),
        ]);
        figures.extend(pair.figures(&points, (&args.first, &args.second)));
    }
    table.add_rows(rows.clone());
    println!("{table}");
    if let Some(page) = &args.page {
        let title = format!("Profiles of {} against {}", args.second, args.first);
        replace_file(page, table_and_plots(&title, &headings, &rows, &figures)?.as_bytes())?;
        println!("{} written", page.display());
    }
    Ok(())
}

fn pairs<'s>(args: &CompareArgs, first: &'s ProfileSet, second: &'s ProfileSet) -> Result<Vec<Pair<'s>>> {
    let find = |set: &'s ProfileSet, file: &str, name: &str| {
        set.get(name).map(|profile| &**profile).with_context(|| format!("model `{name}` is not in {file}"))
    };
    let mut pairs = Vec::new();
    for names in &args.model {
        let (a, b) = names.split_once('=').unwrap_or((names, names));
        let (one, other) = (find(first, &args.first, a)?, find(second, &args.second, b)?);
        pairs.push(Pair { name: names.clone(), first: one, second: other });
    }
    if pairs.is_empty() {
        for entry in first.entries() {
            let other = second.get(&entry.profile.name);
            pairs.extend(other.map(|other| Pair {
                name: entry.profile.name.clone(),
                first: &entry.profile,
                second: other,
            }));
        }
    }
    if let ([], [a], [b]) = (pairs.as_slice(), first.entries(), second.entries()) {
        let name = format!("{}={}", a.profile.name, b.profile.name);
        pairs.push(Pair { name, first: &a.profile, second: &b.profile });
    }
    if pairs.is_empty() {
        bail!("no model is in both {} and {}; --model A=B compares two by name", args.first, args.second);
    }
    Ok(pairs)
}

impl Both {
    fn place(&self) -> String {
        match self.axis {
            Axes::Cpus if self.at == 1.0 => "1 CPU".to_owned(),
            Axes::Cpus => format!("{} CPUs", self.at),
            Axes::Memory => format!("{} GB", self.at),
            Axes::Gpus(0) if self.at == 1.0 => "1 GPU".to_owned(),
            Axes::Gpus(0) => format!("{} GPUs", self.at),
            Axes::Gpus(batch) if self.at == 1.0 => format!("1 GPU, batch {batch}"),
            Axes::Gpus(batch) => format!("{} GPUs, batch {batch}", self.at),
        }
    }
}

impl Pair<'_> {
    /// Every level that either profile has, with everything else at its maximum.
    fn points(&self) -> Vec<Both> {
        let levels = |of: fn(&Profile) -> Vec<f64>| {
            let mut levels = [of(self.first), of(self.second)].concat();
            levels.sort_by(f64::total_cmp);
            levels.dedup();
            levels
        };
        let cpus = levels(|p| p.host.as_ref().map_or(Vec::new(), |curve| curve.cpus().to_vec()));
        let memory = levels(|p| p.host.as_ref().map_or(Vec::new(), |curve| curve.mem_gb().to_vec()));
        let most = |levels: &[f64]| levels.last().copied().unwrap_or(1e6);
        let both = |axis, at, gpus: u32, batch, per_gpu| {
            let rate = |profile: &Profile| {
                let gpu_type = profile.scale.first().map_or("", |curve| curve.gpu_type.as_str());
                profile.rate(&Shape { gpus, n_nodes: 1, per_gpu, gpu_type, batch })
            };
            Both { axis, at, rates: (rate(self.first), rate(self.second)) }
        };
        // More than any model needs: storage is not compared here.
        let host = |cpus, mem| Host::from_units(cpus, mem, 1e9);
        let full = host(most(&cpus), most(&memory));
        let mut points: Vec<Both> =
            cpus.iter().map(|at| both(Axes::Cpus, *at, 1, 0, host(*at, most(&memory)))).collect();
        points.extend(memory.iter().map(|at| both(Axes::Memory, *at, 1, 0, host(most(&cpus), *at))));
        for curve in &self.first.scale {
            let Some(other) = self.second.scale.iter().find(|other| other.batch == curve.batch) else {
                continue;
            };
            // Beyond what was measured a curve is flat, so it is not compared there.
            let counts = curve.points.iter().map(|point| point.0);
            let counts = counts.filter(|gpus| other.points.iter().any(|point| point.0 == *gpus));
            points.extend(
                counts.map(|gpus| both(Axes::Gpus(curve.batch), f64::from(gpus), gpus, curve.batch, full)),
            );
        }
        if points.is_empty() {
            points.push(both(Axes::Gpus(0), 1.0, 1, 0, full));
        }
        points
    }

    fn figures(&self, points: &[Both], names: (&str, &str)) -> Vec<Figure> {
        let chunks = points.chunk_by(|a, b| a.axis == b.axis).filter(|chunk| chunk.len() > 1);
        let figure = |chunk: &[Both]| {
            let line = |label: &str, colour: usize, of: fn(&Both) -> f64| Line {
                label: label.to_owned(),
                colour,
                has_dots: true,
                points: chunk.iter().map(|both| (both.at, of(both))).collect(),
            };
            let highest = chunk.iter().map(|both| both.rates.0.max(both.rates.1)).fold(0.0, f64::max);
            let values: Vec<f64> = chunk.iter().map(|both| both.at).collect();
            let what = match chunk.first().map(|both| both.axis) {
                Some(Axes::Memory) => "memory for each GPU (GB)".to_owned(),
                Some(Axes::Gpus(batch)) => format!("GPUs, batch {batch}"),
                _ => "CPUs for each GPU".to_owned(),
            };
            Figure {
                name: format!("{}-{what}", self.name),
                section: self.name.clone(),
                title: format!("{}: speed by {}", self.name, what.trim_end_matches(" (GB)")),
                caption: format!("Where curves coincide, {} is on top.", names.1),
                x: Axis::at_values(what, &values),
                y: Axis::from_zero("iterations per second", highest),
                marks: Marks::Lines(vec![
                    line(names.0, 0, |both| both.rates.0),
                    line(names.1, 1, |both| both.rates.1),
                ]),
            }
        };
        chunks.map(figure).collect()
    }
}
