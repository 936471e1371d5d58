//! Synergy's `profile.json`: batch time by CPUs, epoch time and required storage rate by CPUs and percent of the data
//! set in memory.

use std::collections::BTreeMap;

use rota_core::profile::{HostCurve, Profile};
use rota_core::resources::{GB, Host, MB_PER_S};

use super::{ImportOptions, Imported, is_sound};
use crate::error::InputError;
use crate::profile::{ProfileEntry, ProfileSet};
use crate::source::Source;

/// Slower by no more than this is as fast: where a demand is read off.
const FLAT: f64 = 0.03;

/// By the keys of the file, which are numbers written as text.
type ByCpus<T> = BTreeMap<String, T>;
type ByMemory<T> = BTreeMap<String, T>;

pub(super) fn read(source: &Source, options: &ImportOptions) -> Result<Imported, InputError> {
    let wrong = |what: &str| InputError::expected(&source.name, what);
    type Tables = (ByCpus<f64>, ByCpus<ByMemory<f64>>, ByCpus<ByMemory<f64>>);
    let (batch_s, epoch_s, storage): Tables = serde_json::from_str(&source.text)
        .map_err(|e| wrong(&format!("Synergy's three tables: {e}")).at_line(e.line() as u64))?;
    let dataset = options
        .dataset_bytes
        .ok_or_else(|| wrong("the size of the data set, for memory is in percent of it: --dataset 140GB"))?;
    let n_gpus = f64::from(options.gpus.max(1));
    let number = |key: &str| {
        key.parse::<f64>()
            .ok()
            .filter(|n| n.is_finite() && *n >= 0.0)
            .ok_or_else(|| wrong("a number as key").got(key))
    };
    let mut rows: Vec<(f64, f64, &String)> = Vec::new();
    for (key, seconds) in &batch_s {
        if !is_sound(*seconds) {
            return Err(wrong("a batch time greater than 0").at_name(key.clone()).got(seconds.to_string()));
        }
        rows.push((number(key)? / n_gpus, *seconds, key));
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let last = rows.last().ok_or_else(|| wrong("at least one CPU count"))?;
    let percents = sorted(epoch_s.get(last.2).into_iter().flat_map(BTreeMap::keys), number)?;
    if percents.is_empty() {
        return Err(wrong("epoch times by memory").at_name(last.2.clone()));
    }
    // Epoch times of a row hold for its batch time at full memory, so their ratio is what memory costs.
    let mut speed = Vec::new();
    for (_, seconds, key) in &rows {
        let row = epoch_s.get(*key).ok_or_else(|| wrong("epoch times").at_name((*key).clone()))?;
        let at = |percent: &String| row.get(percent).copied().filter(|epoch| is_sound(*epoch));
        let full = percents.last().and_then(|(_, key)| at(key));
        let speeds: Option<Vec<f64>> =
            percents.iter().map(|(_, percent)| Some(full? / at(percent)? / seconds)).collect();
        speed.push(speeds.ok_or_else(|| {
            wrong("an epoch time greater than 0 for every part of memory").at_name((*key).clone())
        })?);
    }
    let gb = |percent: f64| percent / 100.0 * dataset as f64 / GB as f64 / n_gpus;
    let (cpus, mem_gb): (Vec<f64>, Vec<f64>) =
        (rows.iter().map(|row| row.0).collect(), percents.iter().map(|(p, _)| gb(*p)).collect());
    let best_rate = 1.0 / last.1;
    let relative: Vec<Vec<f64>> =
        speed.iter().map(|row| row.iter().map(|rate| rate / best_rate).collect()).collect();
    let demand = demand(&relative);
    let curve = HostCurve::new(cpus.clone(), mem_gb.clone(), relative)
        .map_err(|e| wrong(&format!("a sound grid: {}", e.why)))?;
    let needs = rows.get(demand.0).and_then(|row| storage.get(row.2));
    let storage_need = percents.iter().filter_map(|(percent, key)| {
        let bps = needs?.get(*key).filter(|mb| mb.is_finite() && **mb >= 0.0)? * MB_PER_S as f64;
        Some(((gb(*percent) * GB as f64).round() as u64, (bps / n_gpus).round() as u64))
    });
    let storage_need: Vec<(u64, u64)> = storage_need.collect();
    let at_demand = storage_need.get(demand.1).map_or(0, |need| need.1);
    let host = Host::from_units(
        cpus.get(demand.0).copied().unwrap_or(0.0),
        mem_gb.get(demand.1).copied().unwrap_or(0.0),
        0.0,
    );
    let name = options.model.clone().unwrap_or_else(|| source.stem());
    let profile = Profile {
        source: "Synergy's offline profiler".to_owned(),
        batch: options.batch,
        host: Some(curve),
        demand_per_gpu: Host { storage_bps: at_demand, ..host },
        storage_need,
        ..Profile::plain(name, best_rate)
    };
    let notes = vec![format!(
        "memory is computed from percentages of a data set of {} GB; CPUs and memory are for each of {} GPUs",
        dataset as f64 / GB as f64,
        n_gpus
    )];
    Ok(Imported { set: ProfileSet::new("synergy", vec![ProfileEntry::new(profile)]), notes })
}

fn sorted<'k>(
    keys: impl Iterator<Item = &'k String>,
    number: impl Fn(&str) -> Result<f64, InputError>,
) -> Result<Vec<(f64, &'k String)>, InputError> {
    let mut sorted: Vec<(f64, &String)> =
        keys.map(|key| Ok((number(key)?, key))).collect::<Result<_, InputError>>()?;
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(sorted)
}

/// The least CPUs, then the least memory, that are as fast as everything.
fn demand(relative: &[Vec<f64>]) -> (usize, usize) {
    let full = |row: &Vec<f64>| row.last().copied().unwrap_or(0.0);
    let best = relative.iter().map(full).fold(0.0, f64::max);
    let cpu = relative.iter().position(|row| full(row) >= (1.0 - FLAT) * best).unwrap_or(0);
    let row = relative.get(cpu).map(Vec::as_slice).unwrap_or_default();
    (cpu, row.iter().position(|speed| *speed >= (1.0 - FLAT) * best).unwrap_or(0))
}
