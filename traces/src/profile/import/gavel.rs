//! Gavel's throughputs: `{gpu type: {"('ResNet-18 (batch size 16)', 2)": {"null": steps per second, …}}}`.
//!
//! Next to `null` are speeds of two jobs that share a GPU; they are left out. `v100_unconsolidated` is a job spread
//! over nodes: its ratio to `v100` becomes the model's `spread`.

use std::collections::BTreeMap;

use rota_core::profile::{Profile, ScaleCurve};
use serde_json::{Map, Value};

use super::{Imported, is_sound};
use crate::error::InputError;
use crate::profile::{ProfileEntry, ProfileSet};
use crate::source::Source;

const SPREAD: &str = "_unconsolidated";

/// Speed of a model and batch by GPU type (spread or not) and GPU count.
type Speeds = BTreeMap<(String, u32), BTreeMap<String, BTreeMap<u32, f64>>>;

pub(super) fn read(source: &Source) -> Result<Imported, InputError> {
    let wrong = |what: &str| InputError::expected(&source.name, what);
    let types: BTreeMap<String, Map<String, Value>> = serde_json::from_str(&source.text)
        .map_err(|e| wrong(&format!("Gavel's throughputs: {e}")).at_line(e.line() as u64))?;
    let mut speeds = Speeds::new();
    let mut n_pairs = 0;
    let mut n_idle = 0;
    for (gpu_type, jobs) in &types {
        for (key, rates) in jobs {
            let (model, batch, gpus) = parse_key(key)
                .ok_or_else(|| wrong("a key such as ('ResNet-18 (batch size 16)', 1)").got(key))?;
            let rates = rates.as_object().ok_or_else(|| wrong("speeds").at_name(key))?;
            n_pairs += rates.len().saturating_sub(1);
            let alone = rates.get("null").and_then(Value::as_f64);
            match alone.ok_or_else(|| wrong("steps per second under \"null\"").at_name(key))? {
                rate if is_sound(rate) => {
                    let by_type = speeds.entry((model, batch)).or_default();
                    by_type.entry(gpu_type.clone()).or_default().insert(gpus, rate);
                }
                // It does not fit into that GPU's memory.
                _ => n_idle += 1,
            }
        }
    }
    let mut entries: BTreeMap<String, ProfileEntry> = BTreeMap::new();
    for ((model, batch), by_type) in &speeds {
        add(&mut entries, model, *batch, by_type);
    }
    let mut notes =
        vec![format!("{n_pairs} speeds of pairs on one GPU left out: jobs hold GPUs whole or in turns")];
    if n_idle > 0 {
        notes.push(format!("{n_idle} cells of 0 steps per second left out"));
    }
    Ok(Imported { set: ProfileSet::new("gavel", entries.into_values().collect()), notes })
}

fn add(
    entries: &mut BTreeMap<String, ProfileEntry>,
    model: &str,
    batch: u32,
    by_type: &BTreeMap<String, BTreeMap<u32, f64>>,
) {
    let together = by_type.iter().filter(|(gpu_type, _)| !gpu_type.ends_with(SPREAD));
    let curves: Vec<ScaleCurve> = together
        .map(|(gpu_type, points)| ScaleCurve {
            gpu_type: gpu_type.clone(),
            batch,
            points: points.iter().map(|(gpus, rate)| (*gpus, *rate)).collect(),
        })
        .collect();
    let Some(first) = curves.first() else { return };
    let entry = entries.entry(model.to_owned()).or_insert_with(|| {
        let profile = Profile {
            source: "Gavel's throughputs".to_owned(),
            batch,
            ..Profile::plain(model, first.rate(1))
        };
        ProfileEntry { iteration_s: None, ..ProfileEntry::new(profile) }
    });
    let profile = std::sync::Arc::make_mut(&mut entry.profile);
    if profile.spread.is_empty() {
        profile.spread = spread(by_type).into_iter().collect();
    }
    profile.scale.extend(curves);
}

/// How much slower a gang is when it is spread, the geometric mean over GPU types and counts.
fn spread(by_type: &BTreeMap<String, BTreeMap<u32, f64>>) -> Option<f64> {
    let mut logs = Vec::new();
    for (gpu_type, apart) in by_type {
        let Some(together) = gpu_type.strip_suffix(SPREAD).and_then(|name| by_type.get(name)) else {
            continue;
        };
        let gangs = apart.iter().filter(|(gpus, _)| **gpus > 1);
        logs.extend(gangs.filter_map(|(gpus, rate)| Some((rate / together.get(gpus)?).ln())));
    }
    let mean = (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)?;
    Some(mean.exp().min(1.0)).filter(|factor| *factor < 1.0)
}

/// `('ResNet-18 (batch size 16)', 2)`: model, batch (0 when none is named) and GPUs.
fn parse_key(key: &str) -> Option<(String, u32, u32)> {
    let (job, gpus) = key.strip_prefix("('")?.strip_suffix(')')?.rsplit_once("', ")?;
    let gpus = gpus.parse().ok().filter(|n| *n > 0)?;
    match job.rsplit_once(" (batch size ") {
        Some((model, batch)) => Some((model.to_owned(), batch.strip_suffix(')')?.parse().ok()?, gpus)),
        None => Some((job.to_owned(), 0, gpus)),
    }
}
