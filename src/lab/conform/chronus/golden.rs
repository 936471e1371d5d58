//! Files of a Chronus case: its settings, its trace, and what the original did.

use std::collections::BTreeMap;
use std::path::Path;

use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::resources::Host;
use rota_core::time::Span;
use rota_core::workload::Workload;
use rota_scripts::artifact::chronus::{ChronusSettings, Objective, Placement, PowerSaving};
use rota_solvers::{Recording, SolveStatus};
use rota_traces::error::InputError;
use rota_traces::source::Source;
use serde::Deserialize;

use super::super::parse_json;

/// `case.json`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct CaseFile {
    switches: u32,
    nodes_per_switch: u32,
    gpus_per_node: u32,
    #[serde(default = "plenty_of_cpus")]
    cpus_per_node: u32,
    lease_term_interval: i64,
    check_time_interval: i64,
    flags: String,
    #[serde(default)]
    code: String,
}

/// More than any job takes: ElasticFlow's port does not say how many a node has.
fn plenty_of_cpus() -> u32 {
    128
}

/// `expected_*.json`, as far as it is compared.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Expected {
    pub(super) milp: Vec<Milp>,
    pub(super) rounds: Vec<Round>,
    pub(super) admission: Vec<Admitted>,
    pub(super) jobs: Vec<Job>,
}

/// The same file for a run that the original aborted; the rest of it has no fixed form.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Failure {
    pub(super) error: Option<String>,
}

/// A model the original solved. Some files leave out rows and values.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Milp {
    pub(super) time: i64,
    #[serde(rename = "obj")]
    pub(super) objective: Option<f64>,
    #[serde(default)]
    pub(super) value: Vec<f64>,
    #[serde(default, rename = "vid")]
    pub(super) level: Vec<u32>,
    #[serde(default)]
    pub(super) gpus: Vec<u32>,
    #[serde(default)]
    pub(super) need: Vec<u32>,
    #[serde(default)]
    pub(super) horizon: Vec<i64>,
    #[serde(default)]
    pub(super) capacity: Vec<i64>,
    #[serde(default, rename = "X")]
    leases: Option<Vec<String>>,
    #[serde(default, rename = "S")]
    chosen: Option<Vec<Option<f64>>>,
}

/// A boundary between leases.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Round {
    pub(super) time: i64,
    pub(super) milp: Option<usize>,
    pub(super) leased: Vec<i64>,
    pub(super) guarantee_gpus: u32,
    pub(super) unaccepted_count: usize,
    pub(super) plans: Option<BTreeMap<String, Plan>>,
}

/// The rest of a plan.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) vid: i64,
    pub(super) rest: String,
    pub(super) need_after: i64,
}

/// What was decided about an arrival.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Admitted {
    pub(super) time: i64,
    pub(super) job: i64,
    pub(super) class: String,
    pub(super) estimate_duration: i64,
    pub(super) need_leases: i64,
    pub(super) effective_deadline_rel: i64,
}

/// What became of a job.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Job {
    pub(super) job_id: i64,
    pub(super) start_time: i64,
    pub(super) end_time: f64,
    pub(super) pending_time: i64,
    pub(super) total_executed_time: i64,
    pub(super) preempt: u32,
    pub(super) resume: u32,
    pub(super) miss_ddl: Option<f64>,
    pub(super) queue_priority: i64,
}

/// Reads a JSON file that may be compressed.
pub(super) fn read<T: serde::de::DeserializeOwned>(folder: &Path, name: &str) -> Result<T, InputError> {
    let plain = folder.join(name);
    let path = if plain.exists() { plain } else { folder.join(format!("{name}.gz")) };
    parse_json(&Source::open(&path)?)
}

/// Whether a file is there, compressed or not.
pub(super) fn has(folder: &Path, name: &str) -> bool {
    folder.join(name).exists() || folder.join(format!("{name}.gz")).exists()
}

impl CaseFile {
    /// What a unit of the trace is: the port by ElasticFlow's authors counts in seconds.
    pub(super) fn unit(&self) -> Span {
        Span::from_secs(if self.is_port() { 1 } else { 60 })
    }

    fn is_port(&self) -> bool {
        self.code.contains("port")
    }

    pub(super) fn cluster(&self) -> Result<Cluster, InputError> {
        let group = NodeGroup {
            count: self.switches.saturating_mul(self.nodes_per_switch),
            racks: self.switches,
            gpu_type: "gpu".into(),
            n_gpus: self.gpus_per_node,
            gpu_mem_bytes: 0,
            host: Host::from_units(f64::from(self.cpus_per_node), 256.0, 0.0),
            cache_bytes: 0,
            fetch_bps: 0,
        };
        Cluster::new("chronus", &[group]).map_err(|error| InputError::problem("case.json", error.to_string()))
    }

    pub(super) fn settings<'a>(&self, expectations: &'a [i64]) -> Result<ChronusSettings<'a>, InputError> {
        let unknown = |flag: &str, value: &str| {
            InputError::expected("case.json", format!("a value of --{flag} that the original has")).got(value)
        };
        let objective = match self.flag("mip_objective").unwrap_or("minimize") {
            "minimize" => Objective::Minimize,
            "maximize" => Objective::Maximize,
            "random" => Objective::Random,
            "adaptive" => Objective::Adaptive,
            other => return Err(unknown("mip_objective", other)),
        };
        let placement = match self.flag("placement").unwrap_or("random") {
            "random" => Placement::Random,
            "consolidate" => Placement::Consolidate,
            "consolidate_random" => Placement::ConsolidateRandom,
            "local_search" => Placement::LocalSearch,
            other => return Err(unknown("placement", other)),
        };
        let power = match (self.is_set("disable_turn_off"), self.is_set("aggressive")) {
            (true, _) => PowerSaving::Off,
            (false, true) => PowerSaving::Aggressive,
            (false, false) => PowerSaving::Conservative,
        };
        Ok(ChronusSettings {
            unit: self.unit(),
            lease: self.lease_term_interval,
            check: self.check_time_interval,
            slot: if self.is_port() { 240 } else { 5 },
            objective,
            placement,
            has_profile: self.is_set("profile"),
            power,
            expectations: Some(expectations),
            ..ChronusSettings::minutes()
        })
    }

    fn flag(&self, name: &str) -> Option<&str> {
        self.flags
            .split_whitespace()
            .find_map(|flag| flag.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='))
    }

    fn is_set(&self, name: &str) -> bool {
        self.flag(name) == Some("True")
    }
}

/// First deadlines after submission by job id: best-effort jobs have one in the trace, which Rota does not keep.
pub(super) fn expectations(source: &Source, workload: &Workload) -> Result<Vec<i64>, InputError> {
    let mut reader = csv::Reader::from_reader(source.text.as_bytes());
    let broken = |error: csv::Error| InputError::problem(&source.name, error.to_string());
    let header = reader.headers().map_err(broken)?.clone();
    let column = |name: &str| header.iter().position(|cell| cell == name);
    let mut by_name = BTreeMap::new();
    if let (Some(id), Some(times)) = (column("job_id"), column("expect_time_list")) {
        for record in reader.records() {
            let record = record.map_err(broken)?;
            let first = record.get(times).and_then(|list| list.split('-').next()?.parse::<i64>().ok());
            by_name.extend(record.get(id).map(str::to_owned).zip(first));
        }
    }
    let of = |name: &str| {
        let missing =
            || InputError::expected(&source.name, format!("a time in expect_time_list for job {name}"));
        by_name.get(name).copied().ok_or_else(missing)
    };
    workload.jobs.iter().map(|job| of(&job.name)).collect()
}

impl Milp {
    /// Its answer as a recording; `None` where the file leaves it out.
    pub(super) fn recording(&self) -> Option<Recording> {
        let (leases, chosen) = (self.leases.as_ref()?, self.chosen.as_ref()?);
        if self.objective.is_none() {
            return Some(Recording { status: SolveStatus::LimitWithout, values: Vec::new() });
        }
        let flags = leases.iter().flat_map(|row| row.chars()).map(|c| f64::from(u8::from(c == '1')));
        let values = flags.chain(chosen.iter().map(|chosen| chosen.unwrap_or(0.0).round())).collect();
        Some(Recording { status: SolveStatus::Optimal, values })
    }
}
