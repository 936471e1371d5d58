//! Profile files as far as an emulated job needs them: one model's speed. Everything else in a file is passed over; the
//! full reader, with every check, is in `rota-traces`, which a lean agent does not carry.

use std::collections::BTreeMap;

use rota_core::profile::{CurveError, HostCurve, Profile, ScaleCurve};
use rota_core::resources::{GB, Host};
use rota_core::time::Span;
use serde::Deserialize;

use crate::units::Bytes;

/// A profile that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// No profile file.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// A model that is not in the file.
    #[error("model `{model}` is not in the file; it has {known}")]
    Unknown {
        /// What was asked for.
        model: String,
        /// What is there.
        known: String,
    },
    /// Several models, and nobody said which.
    #[error("the file has several models, name one with --model: {known}")]
    Which {
        /// What is there.
        known: String,
    },
    /// A model without a speed.
    #[error("model `{model}`: {why}")]
    Speed {
        /// Which.
        model: String,
        /// What is missing or wrong.
        why: String,
    },
}

#[derive(Deserialize)]
struct File {
    grid: Option<Grid>,
    profile: Vec<Entry>,
}

#[derive(Deserialize)]
struct Grid {
    cpus: Vec<f64>,
    mem: Vec<Bytes>,
    share: Share,
}

#[derive(Deserialize)]
struct Share {
    cpus: f64,
    mem: Bytes,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    #[serde(default)]
    batch: u32,
    iteration_s: Option<f64>,
    speed: Option<Vec<Vec<f64>>>,
    #[serde(default)]
    scale: Vec<Scale>,
    #[serde(default)]
    gpu_speed: BTreeMap<String, f64>,
    #[serde(default)]
    spread: Vec<f64>,
    #[serde(default)]
    demand: Demand,
    #[serde(default)]
    storage_need: Vec<StorageNeed>,
    #[serde(default)]
    gpu_mem: Bytes,
    restart: Option<String>,
    checkpoint: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Demand {
    cpus: f64,
    mem: Bytes,
    storage: Bytes,
}

#[derive(Deserialize)]
struct Scale {
    #[serde(default)]
    gpu_type: String,
    batch: u32,
    points: Vec<(u32, f64)>,
}

#[derive(Deserialize)]
struct StorageNeed {
    mem: Bytes,
    rate: Bytes,
}

/// One model of a profile file: the one asked for, or the only one.
pub(super) fn read(text: &str, model: Option<&str>) -> Result<Profile, ProfileError> {
    let file: File = toml::from_str(text)?;
    let known = file.profile.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ");
    let entry = match (model, file.profile.as_slice()) {
        (Some(model), entries) => entries
            .iter()
            .find(|entry| entry.name == model)
            .ok_or_else(|| ProfileError::Unknown { model: model.to_owned(), known })?,
        (None, [only]) => only,
        (None, _) => return Err(ProfileError::Which { known }),
    };
    profile(file.grid.as_ref(), entry).map_err(|why| ProfileError::Speed { model: entry.name.clone(), why })
}

fn profile(grid: Option<&Grid>, entry: &Entry) -> Result<Profile, String> {
    let curve = |scale: &Scale| ScaleCurve {
        gpu_type: scale.gpu_type.clone(),
        batch: scale.batch,
        points: scale.points.clone(),
    };
    let scale: Vec<ScaleCurve> = entry.scale.iter().map(curve).collect();
    let base_rate = match (entry.iteration_s, scale.first()) {
        (Some(seconds), _) => 1.0 / seconds,
        (None, Some(curve)) => curve.rate(1),
        (None, None) => return Err("it has neither an iteration time nor a scale curve".to_owned()),
    };
    let rates = scale.iter().flat_map(|curve| &curve.points).map(|point| point.1).chain([base_rate]);
    if let Some(bad) = rates.into_iter().find(|rate| !(rate.is_finite() && *rate > 0.0)) {
        return Err(format!("a speed of {bad} iterations per second"));
    }
    let span = |text: &Option<String>| match text {
        Some(text) => Span::parse(text).map_err(|error| error.to_string()),
        None => Ok(Span::ZERO),
    };
    Ok(Profile {
        batch: entry.batch,
        host: host_curve(grid, entry.speed.as_ref()).map_err(|error| error.to_string())?,
        gpu_speed: entry.gpu_speed.clone().into_iter().collect(),
        spread: entry.spread.clone(),
        demand_per_gpu: Host {
            mem_bytes: entry.demand.mem.0,
            storage_bps: entry.demand.storage.0,
            ..Host::from_units(entry.demand.cpus, 0.0, 0.0)
        },
        storage_need: entry.storage_need.iter().map(|need| (need.mem.0, need.rate.0)).collect(),
        gpu_mem_bytes: entry.gpu_mem.0,
        restart: span(&entry.restart)?,
        checkpoint: span(&entry.checkpoint)?,
        scale,
        ..Profile::plain(&entry.name, base_rate)
    })
}

/// Speed relative to the proportional share, at which iteration times were taken.
fn host_curve(grid: Option<&Grid>, speed: Option<&Vec<Vec<f64>>>) -> Result<Option<HostCurve>, CurveError> {
    let Some(speed) = speed else { return Ok(None) };
    let Some(grid) = grid else { return Err(CurveError { why: "no [grid] names its levels".to_owned() }) };
    let gb = |bytes: Bytes| bytes.0 as f64 / GB as f64;
    let mem: Vec<f64> = grid.mem.iter().copied().map(gb).collect();
    let raw = HostCurve::new(grid.cpus.clone(), mem.clone(), speed.clone())?;
    let at_share = raw.at(grid.share.cpus, gb(grid.share.mem));
    let relative = speed.iter().map(|row| row.iter().map(|s| s / at_share).collect()).collect();
    HostCurve::new(grid.cpus.clone(), mem, relative).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::profile::Shape;

    const SYNERGY: &str = include_str!("../../../configs/profiles/synergy.toml");
    const ELASTICFLOW: &str = include_str!("../../../configs/profiles/elasticflow-a100.toml");

    #[test]
    fn shipped_profiles_are_read() {
        let alexnet = read(SYNERGY, Some("alexnet")).expect("shipped");
        let share = Shape {
            gpus: 1,
            n_nodes: 1,
            per_gpu: Host::from_units(3.0, 62.5, 62.5),
            gpu_type: "V100",
            batch: 0,
        };
        let slow = Shape { per_gpu: Host::from_units(1.0, 62.5, 62.5), ..share };
        assert!(alexnet.rate(&slow) < alexnet.rate(&share), "fewer CPUs are slower");
        let resnet = read(ELASTICFLOW, Some("resnet50")).expect("shipped");
        let with = |gpus| resnet.rate(&Shape { gpus, gpu_type: "A100", batch: 64, ..share });
        assert!(with(4) > 2.0 * with(1), "curves are followed");
    }

    #[test]
    fn mistakes_name_the_model() {
        let message = |text: &str, model| read(text, model).expect_err("wrong").to_string();
        assert!(message(SYNERGY, None).starts_with("the file has several models"));
        assert!(message(SYNERGY, Some("nothing")).contains("`nothing` is not in the file; it has alexnet"));
        let none = "[[profile]]\nname = \"m\"\n";
        assert_eq!(message(none, None), "model `m`: it has neither an iteration time nor a scale curve");
        let zero = "[[profile]]\nname = \"m\"\niteration_s = 0.0\n";
        assert_eq!(message(zero, None), "model `m`: a speed of inf iterations per second");
    }
}
