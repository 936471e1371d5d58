//! Gavel's throughputs: `{gpu type: {"('ResNet-18 (batch size 16)', 2)": {"null": steps per second, …}}}`.
//!
//! Next to `null` are speeds of two jobs on the same GPUs at the same time, of this one and of the other; a pair of which one does
//! nothing does not fit. `v100_unconsolidated` is a job spread over nodes: its ratio to `v100` becomes the model's `spread`.

use std::collections::BTreeMap;

use rota_core::profile::{Beside, Profile, ScaleCurve};
use serde_json::{Map, Value};

use super::{Imported, is_sound};
use crate::error::InputError;
use crate::profile::{ProfileEntry, ProfileSet};
use crate::source::Source;

const SPREAD: &str = "_unconsolidated";

/// Speed of a model and batch by GPU type (spread or not) and GPU count.
type Speeds = BTreeMap<(String, u32), BTreeMap<String, BTreeMap<u32, f64>>>;

/// Speed of a model and batch on so many GPUs of a type, beside other models and batches.
type Pairs = BTreeMap<(String, String, u32, u32), Vec<(String, u32, f64)>>;

pub(super) fn read(source: &Source) -> Result<Imported, InputError> {
    let wrong = |what: &str| InputError::expected(&source.name, what);
    let types: BTreeMap<String, Map<String, Value>> = serde_json::from_str(&source.text)
        .map_err(|e| wrong(&format!("Gavel's throughputs: {e}")).at_line(e.line() as u64))?;
    let mut speeds = Speeds::new();
    let mut pairs = Pairs::new();
    let mut n_pairs = 0;
    let mut n_spread = 0;
    let mut n_apart = 0;
    let mut n_idle = 0;
    for (gpu_type, jobs) in &types {
        for (key, rates) in jobs {
            let (model, batch, gpus) = parse_key(key)
                .ok_or_else(|| wrong("a key such as ('ResNet-18 (batch size 16)', 1)").got(key))?;
            let rates = rates.as_object().ok_or_else(|| wrong("speeds").at_name(key))?;
            for (other, both) in rates.iter().filter(|(other, _)| *other != "null") {
                let pair =
                    both.as_array().and_then(|both| Some((both.first()?.as_f64()?, both.get(1)?.as_f64()?)));
                let (own, others) = pair.ok_or_else(|| wrong("two speeds").at_name(other))?;
                let (mate, mate_batch, mate_gpus) = parse_key(other)
                    .ok_or_else(|| wrong("a key such as ('ResNet-18 (batch size 16)', 1)").got(other))?;
                match () {
                    () if gpu_type.ends_with(SPREAD) => n_spread += 1,
                    () if mate_gpus == gpus && is_sound(own) && is_sound(others) => {
                        n_pairs += 1;
                        let of = (model.clone(), gpu_type.clone(), batch, gpus);
                        pairs.entry(of).or_default().push((mate, mate_batch, own));
                    }
                    () => n_apart += 1,
                }
            }
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
    for ((model, gpu_type, batch, gpus), mut rates) in pairs {
        if let Some(entry) = entries.get_mut(&model) {
            rates.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
            std::sync::Arc::make_mut(&mut entry.profile).beside.push(Beside { gpu_type, gpus, batch, rates });
        }
    }
    let mut notes = vec![format!(
        "{n_pairs} speeds of a job beside another on the same GPUs; {n_apart} pairs do not fit into them"
    )];
    if n_spread > 0 {
        notes.push(format!(
            "{n_spread} speeds of pairs spread over nodes left out: they are as much slower as a job alone"
        ));
    }
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
