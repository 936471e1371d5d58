//! Rota's workload file: the options of a generated workload, and what goes with it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::options::{DataOptions, DeadlineOptions, Lengths, Recipe, Split, WorkloadOptions};
use crate::error::InputError;
use crate::source::Source;
use crate::units::Bytes;

/// The built-in workloads: name and file, in the order they are listed to people.
pub const BUILT_IN: [(&str, &str); 8] = [
    ("default", include_str!("../../../configs/workloads/default.toml")),
    ("small", include_str!("../../../configs/workloads/small.toml")),
    ("multi", include_str!("../../../configs/workloads/multi.toml")),
    ("static", include_str!("../../../configs/workloads/static.toml")),
    ("deadlines", include_str!("../../../configs/workloads/deadlines.toml")),
    ("synergy-artifact", include_str!("../../../configs/workloads/synergy-artifact.toml")),
    ("elasticflow", include_str!("../../../configs/workloads/elasticflow.toml")),
    ("data", include_str!("../../../configs/workloads/data.toml")),
];

/// A workload as a file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadFile {
    /// The name in the file, or the file's own without extension.
    pub name: String,
    /// What it was made for, in a sentence; may be empty.
    pub about: String,
    /// The profile set its models come from.
    pub profiles: String,
    /// The cluster it was made for.
    pub cluster: String,
    /// Loads to run one after another, in jobs per hour; the first is that of `options`.
    pub loads: Vec<f64>,
    /// What is drawn, with the first of the loads.
    pub options: WorkloadOptions,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    name: Option<String>,
    #[serde(default)]
    about: String,
    #[serde(default)]
    recipe: Recipe,
    #[serde(default = "synergy")]
    profiles: String,
    #[serde(default = "default")]
    cluster: String,
    jobs: usize,
    jobs_per_hour: Loads,
    #[serde(default, rename = "static")]
    is_static: bool,
    split: Option<BTreeMap<String, f64>>,
    #[serde(default)]
    multi_gpu: bool,
    #[serde(default)]
    lengths: Lengths,
    deadlines: Option<DeadlineTable>,
    #[serde(default)]
    data: Vec<DataTable>,
    #[serde(default = "one")]
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeadlineTable {
    tightness: (f64, f64),
    #[serde(default)]
    best_effort: f64,
}

/// The data sets of one class.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DataTable {
    class: String,
    sets: u32,
    size: (Bytes, Bytes),
    #[serde(default = "usual_skew")]
    skew: f64,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected jobs per hour: a number, or a list of them")]
enum Loads {
    One(f64),
    Many(Vec<f64>),
}

fn synergy() -> String {
    "synergy".into()
}

fn default() -> String {
    "default".into()
}

fn one() -> u64 {
    1
}

fn usual_skew() -> f64 {
    1.0
}

/// A built-in workload by name, or a workload file.
pub fn load(name_or_path: &str) -> Result<WorkloadFile, InputError> {
    read(&Source::find(name_or_path, &BUILT_IN, "workload", "workload", "workloads")?)
}

/// Reads Rota's workload file.
pub fn read(source: &Source) -> Result<WorkloadFile, InputError> {
    let file = source.toml(|file: &File| file.format)?;
    let loads = match file.jobs_per_hour {
        Loads::One(load) => vec![load],
        Loads::Many(loads) => loads,
    };
    let Some(first) = loads.first().copied().filter(|_| loads.iter().all(|l| l.is_finite() && *l > 0.0))
    else {
        let what = "at least one number, all greater than 0";
        return Err(InputError::expected(&source.name, what)
            .at_name("jobs_per_hour")
            .got(format!("{loads:?}")));
    };
    let options = WorkloadOptions {
        recipe: file.recipe,
        jobs: Some(file.jobs),
        jobs_per_hour: first,
        is_static: file.is_static,
        split: file.split.map_or_else(Split::default, ordered),
        multi_gpu: file.multi_gpu,
        lengths: file.lengths,
        deadlines: file.deadlines.map_or_else(DeadlineOptions::default, |d| DeadlineOptions {
            tightness: d.tightness,
            best_effort: d.best_effort,
        }),
        data: file.data.into_iter().map(DataTable::options).collect(),
        seed: file.seed,
        ..WorkloadOptions::default()
    };
    options.check().map_err(|e| InputError { file: source.name.clone(), ..e })?;
    let name = file.name.unwrap_or_else(|| source.stem());
    Ok(WorkloadFile {
        name,
        about: file.about,
        profiles: file.profiles,
        cluster: file.cluster,
        loads,
        options,
    })
}

impl DataTable {
    fn options(self) -> DataOptions {
        let DataTable { class, sets, size, skew } = self;
        DataOptions { class, sets, bytes: (size.0.0, size.1.0), skew }
    }
}

/// The three usual classes come first, because ties go to the first; others follow by name.
fn ordered(classes: BTreeMap<String, f64>) -> Split {
    let usual = ["vision", "language", "speech"];
    let place = |name: &str| usual.iter().position(|u| *u == name).unwrap_or(usual.len());
    let mut classes: Vec<_> = classes.into_iter().collect();
    classes.sort_by_key(|(name, _)| place(name));
    Split(classes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cluster, generate, profile};

    #[test]
    fn every_built_in_workload_can_be_drawn_for_its_cluster() {
        for (name, _) in BUILT_IN {
            let file = load(name).expect(name);
            assert_eq!(file.name, name);
            let cluster = cluster::load(&file.cluster).expect(name);
            let profiles = profile::load(&file.profiles).expect(name);
            let workload = generate::generate(&cluster, &profiles, &file.options).expect(name);
            assert_eq!(workload.check(), Ok(()), "{name}");
            assert!((100..=2_000).contains(&workload.jobs.len()), "{name}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let cases = [
            (
                "format = 1\njobs = 5\njobs_per_hour = []\n",
                "w.toml, jobs_per_hour: got \"[]\", expected at least one number, all greater than 0",
            ),
            (
                "format = 1\njobs = 5\njobs_per_hour = 1.0\nsplit = { vision = 50.0 }\n",
                "w.toml, split: got \"[(\\\"vision\\\", 50.0)]\", expected percentages that add up to 100",
            ),
            (
                "format = 1\njobs = 5\njobs_per_hour = \"many\"\n",
                "w.toml:3, column 17: got \"many\", expected jobs per hour: a number, or a list of them",
            ),
            (
                "format = 1\njobs = 5\njobs_per_hour = 1\ndata = [{ class = \"vision\", sets = 0, size = [\"1GB\", \"2GB\"] }]\n",
                "w.toml, data of vision, sets: got \"0\", expected 1 to 10,000",
            ),
            (
                "format = 1\njobs = 5\njobs_per_hour = 1\ndata = [{ class = \"vision\", sets = 2, size = [\"2GB\", \"1GB\"] }]\n",
                "w.toml, data of vision, size: got \"2000000000..1000000000\", expected two ascending sizes greater than 0",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(read(&Source::new("w.toml", text)).expect_err(text).to_string(), message);
        }
    }
}
