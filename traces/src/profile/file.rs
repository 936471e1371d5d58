//! Rota's profile file: one table for each model, a speed grid or scale curves or both, values with units.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_core::profile::{HostCurve, Profile, ScaleCurve};
use rota_core::resources::{GB, Host};
use serde::Deserialize;

use super::{Measured, ProfileEntry, ProfileSet};
use crate::error::InputError;
use crate::source::Source;
use crate::units::{Bytes, BytesPerSecond, Length};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    name: Option<String>,
    #[serde(default)]
    source: String,
    grid: Option<Grid>,
    profile: Vec<Entry>,
}

/// The levels of a speed grid: of every one in the file, or of one model's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grid {
    cpus: Vec<f64>,
    mem: Vec<Bytes>,
    share: Share,
}

/// The proportional share at which iteration times were taken.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Share {
    cpus: f64,
    mem: Bytes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    class: String,
    #[serde(default)]
    batch: u32,
    iteration_s: Option<f64>,
    ideal_speedup: Option<f64>,
    #[serde(default)]
    demand: Demand,
    #[serde(default = "yes")]
    drawn: bool,
    grid: Option<Grid>,
    speed: Option<Vec<Vec<f64>>>,
    #[serde(default)]
    scale: Vec<Scale>,
    #[serde(default)]
    gpu_speed: BTreeMap<String, f64>,
    #[serde(default)]
    spread: Vec<f64>,
    #[serde(default)]
    storage_need: Vec<StorageNeed>,
    #[serde(default)]
    gpu_mem: Bytes,
    #[serde(default)]
    restart: Length,
    #[serde(default)]
    checkpoint: Length,
    measured: Option<Measured>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Demand {
    cpus: f64,
    mem: Bytes,
    storage: BytesPerSecond,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scale {
    #[serde(default)]
    gpu_type: String,
    batch: u32,
    max_gpus: Option<u32>,
    iterations: Option<u64>,
    points: Vec<(u32, f64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StorageNeed {
    mem: Bytes,
    rate: BytesPerSecond,
}

fn yes() -> bool {
    true
}

/// Reads Rota's profile file.
pub fn read(source: &Source) -> Result<ProfileSet, InputError> {
    let file = source.toml(|file: &File| file.format)?;
    let mut names = std::collections::BTreeSet::new();
    let mut entries = Vec::with_capacity(file.profile.len());
    for entry in &file.profile {
        if !names.insert(entry.name.as_str()) {
            return Err(InputError::expected(&source.name, "every model once")
                .at_name("name")
                .got(&entry.name));
        }
        let wrong = |field: &str, what: &str, value: Option<String>| InputError {
            value,
            ..InputError::expected(&source.name, what).at_name(format!("{field} of model {}", entry.name))
        };
        entries.push(profile_entry(&file, entry, &wrong)?);
    }
    Ok(ProfileSet::new(file.name.clone().unwrap_or_else(|| source.stem()), entries))
}

/// Makes the error for a field of one model: (field, expectation, value).
type Wrong<'a> = dyn Fn(&str, &str, Option<String>) -> InputError + 'a;

fn profile_entry(file: &File, entry: &Entry, wrong: &Wrong<'_>) -> Result<ProfileEntry, InputError> {
    let scale = entry.scale.iter().map(|s| scale_curve(s, wrong)).collect::<Result<Vec<_>, _>>()?;
    check_numbers(entry, wrong)?;
    let base_rate = match (entry.iteration_s, scale.first()) {
        (Some(seconds), _) => 1.0 / seconds,
        (None, Some(curve)) => curve.rate(1),
        (None, None) => return Err(wrong("iteration_s", "an iteration time or a scale curve", None)),
    };
    let levels = entry.scale.iter().zip(&scale).filter_map(|(written, curve)| {
        let most = written.max_gpus?;
        Some((curve.batch, curve.points.iter().map(|p| p.0).filter(|g| *g <= most).collect()))
    });
    let trained = entry.scale.iter().filter_map(|scale| Some((scale.batch, scale.iterations?))).collect();
    let demand = Host::from_units(entry.demand.cpus, 0.0, 0.0);
    let profile = Profile {
        name: entry.name.clone(),
        class: entry.class.clone(),
        source: file.source.clone(),
        batch: entry.batch,
        base_rate,
        host: host_curve(entry.grid.as_ref().or(file.grid.as_ref()), entry, wrong)?,
        gpu_speed: entry.gpu_speed.iter().map(|(name, factor)| (name.clone(), *factor)).collect(),
        spread: entry.spread.clone(),
        demand_per_gpu: Host { mem_bytes: entry.demand.mem.0, storage_bps: entry.demand.storage.0, ..demand },
        storage_need: entry.storage_need.iter().map(|need| (need.mem.0, need.rate.0)).collect(),
        gpu_mem_bytes: entry.gpu_mem.0,
        restart: entry.restart.0,
        checkpoint: entry.checkpoint.0,
        scale: scale.clone(),
    };
    Ok(ProfileEntry {
        profile: Arc::new(profile),
        iteration_s: entry.iteration_s,
        ideal_speedup: entry.ideal_speedup,
        levels: levels.collect(),
        trained,
        is_drawn: entry.drawn,
        measured: entry.measured.clone(),
    })
}

fn check_numbers(entry: &Entry, wrong: &Wrong<'_>) -> Result<(), InputError> {
    let single = [("iteration_s", entry.iteration_s), ("ideal_speedup", entry.ideal_speedup)];
    let single = single.into_iter().filter_map(|(field, value)| value.map(|v| (field, v)));
    let factors = entry
        .spread
        .iter()
        .map(|f| ("spread", *f))
        .chain(entry.gpu_speed.values().map(|f| ("gpu_speed", *f)));
    for (field, value) in single.chain(factors) {
        if !(value.is_finite() && (1e-9..=1e9).contains(&value)) {
            return Err(wrong(field, "a number greater than 0", Some(value.to_string())));
        }
    }
    if !(0.0..=1e6).contains(&entry.demand.cpus) {
        return Err(wrong("demand", "CPUs between 0 and a million", Some(entry.demand.cpus.to_string())));
    }
    if !entry.storage_need.windows(2).all(|pair| pair[0].mem.0 < pair[1].mem.0) {
        return Err(wrong("storage_need", "ascending amounts of memory", None));
    }
    Ok(())
}

fn scale_curve(scale: &Scale, wrong: &Wrong<'_>) -> Result<ScaleCurve, InputError> {
    let ascends = scale.points.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let is_sound = scale.points.iter().all(|(gpus, rate)| *gpus > 0 && rate.is_finite() && *rate > 0.0);
    if scale.points.is_empty() || !ascends || !is_sound {
        let what = "points [GPUs, iterations per second] with ascending GPUs and positive rates";
        return Err(wrong("scale", what, Some(format!("{:?}", scale.points))));
    }
    if scale.iterations == Some(0) {
        return Err(wrong("iterations", "a whole number greater than 0", Some("0".to_owned())));
    }
    Ok(ScaleCurve { gpu_type: scale.gpu_type.clone(), batch: scale.batch, points: scale.points.clone() })
}

/// The grid relative to its value at the proportional share, where the iteration time was taken.
fn host_curve(
    grid: Option<&Grid>,
    entry: &Entry,
    wrong: &Wrong<'_>,
) -> Result<Option<HostCurve>, InputError> {
    let Some(speed) = &entry.speed else { return Ok(None) };
    let Some(grid) = grid else {
        return Err(wrong("speed", "a [grid] table that names its levels", None));
    };
    let gb = |bytes: Bytes| bytes.0 as f64 / GB as f64;
    let levels = (grid.cpus.clone(), grid.mem.iter().map(|m| gb(*m)).collect::<Vec<_>>());
    let refused =
        |e: rota_core::profile::CurveError| wrong("speed", &format!("a sound grid: {}", e.why), None);
    let raw = HostCurve::new(levels.0.clone(), levels.1.clone(), speed.clone()).map_err(refused)?;
    let at_share = raw.at(grid.share.cpus, gb(grid.share.mem));
    let relative = speed.iter().map(|row| row.iter().map(|s| s / at_share).collect()).collect();
    HostCurve::new(levels.0, levels.1, relative).map(Some).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        read(&Source::new("p.toml", text)).expect_err(text).to_string()
    }

    #[test]
    fn a_profile_may_have_everything() {
        let text = "format = 1\n[grid]\ncpus = [1, 4]\nmem = [\"10GB\", \"20GB\"]\nshare = { cpus = 4, mem = \"10GB\" }\n\
            [[profile]]\nname = \"m\"\niteration_s = 0.5\ndemand = { cpus = 4, mem = \"20GB\" }\nspeed = [[1, 2], [2, 4]]\n\
            gpu_speed = { T4 = 0.25 }\nspread = [0.9]\nstorage_need = [{ mem = \"0GB\", rate = \"1MB/s\" }]\n\
            gpu_mem = \"8GB\"\nrestart = \"30s\"\ncheckpoint = \"1m\"\n";
        let set = read(&Source::new("mine.toml", text)).expect("a set");
        let profile = set.get("m").expect("there");
        assert_eq!((set.name.as_str(), profile.base_rate), ("mine", 2.0));
        let curve = profile.host.as_ref().expect("a grid");
        assert_eq!((curve.at(4.0, 10.0), curve.at(4.0, 20.0), curve.at(1.0, 10.0)), (1.0, 2.0, 0.5));
        assert_eq!(profile.checkpoint.as_secs_f64(), 60.0);
    }

    #[test]
    fn mistakes_name_the_model_and_the_field() {
        let head = "format = 1\n[[profile]]\nname = \"m\"\n";
        let cases = [
            (
                String::from(head),
                "p.toml, iteration_s of model m: expected an iteration time or a scale curve",
            ),
            (
                format!("{head}iteration_s = 0.0\n"),
                "p.toml, iteration_s of model m: got \"0\", expected a number greater than 0",
            ),
            (
                format!("{head}iteration_s = 1.0\nspeed = [[1]]\n"),
                "p.toml, speed of model m: expected a [grid] table that names its levels",
            ),
            (
                format!("{head}[[profile.scale]]\nbatch = 1\npoints = [[2, 1.0], [1, 1.0]]\n"),
                "p.toml, scale of model m: got \"[(2, 1.0), (1, 1.0)]\", expected points [GPUs, iterations per second] with ascending GPUs and positive rates",
            ),
            (
                format!("{head}[[profile.scale]]\nbatch = 1\niterations = 0\npoints = [[1, 1.0]]\n"),
                "p.toml, iterations of model m: got \"0\", expected a whole number greater than 0",
            ),
            (
                format!("{head}iteration_s = 1.0\n[[profile]]\nname = \"m\"\n"),
                "p.toml, name: got \"m\", expected every model once",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(message(&text), expected);
        }
    }
}
