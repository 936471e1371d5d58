//! What is run on what. The options of a run belong to the command line, so what resolves them is behind a trait, as it is for
//! studies; the page can change those options that are in [`Choices`].

use std::path::PathBuf;
use std::sync::Arc;

use rota_core::cluster::Cluster;
use rota_core::fault::Fault;
use rota_core::simulation::RunSettings;
use rota_core::workload::Workload;
use rota_lab::results::{Results, RunResult, Window};
use rota_scripts::Source;

use crate::refusal::Unresolved;

/// What the page can choose; what is missing is as the command line says.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Choices {
    /// A built-in cluster, or the one of the command line.
    pub cluster: Option<String>,
    /// A built-in workload, or the one of the command line.
    pub workload: Option<String>,
    /// Number of an uploaded trace, from 0.
    pub trace: Option<usize>,
    /// Number of jobs.
    pub jobs: Option<usize>,
    /// Arrivals per hour.
    pub jobs_per_hour: Option<f64>,
    /// Whether jobs of several GPUs are drawn.
    pub multi_gpu: Option<bool>,
    /// Seed of everything drawn.
    pub seed: Option<u64>,
    /// What each restart costs, in seconds.
    pub restart_cost_s: Option<f64>,
    /// Spread of the durations that policies see.
    pub estimate_noise: Option<f64>,
    /// Mean time between failures of a node, in hours.
    pub mtbf_h: Option<f64>,
    /// Time between rounds, in seconds.
    pub round_s: Option<f64>,
}

/// A trace that the browser sent.
#[derive(Clone, Debug)]
pub struct Upload {
    /// What its file was called.
    pub name: String,
    /// Where it is kept until the program ends.
    pub path: PathBuf,
}

/// Everything a run needs but the policy.
pub struct Prepared {
    /// The cluster that the jobs run on.
    pub cluster: Arc<Cluster>,
    /// The jobs and how much work each really has.
    pub workload: Arc<Workload>,
    /// Failures of nodes.
    pub faults: Vec<Fault>,
    /// How rounds go.
    pub settings: RunSettings,
    /// Seed of everything drawn.
    pub seed: u64,
    /// Load, where jobs are drawn at one.
    pub jobs_per_hour: Option<f64>,
    /// Jobs that count for the averages.
    pub window: Option<Window>,
    /// Name of the workload or trace.
    pub name: String,
    /// Whether another seed gives another run.
    pub is_drawn: bool,
}

/// What the page can choose from, and what holds as long as nothing is chosen.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Menus {
    /// Clusters by name.
    pub clusters: Vec<String>,
    /// Workloads by name.
    pub workloads: Vec<String>,
    /// What the command line said or the workload says.
    pub defaults: Choices,
    /// The trace of the command line.
    pub trace: Option<String>,
}

/// Resolves choices to inputs, and says the same in other forms.
pub trait Bench: Send + Sync + 'static {
    /// What there is to choose.
    fn menus(&self) -> Menus;
    /// Reads and draws what was chosen; a sentence about what cannot be.
    fn prepare(&self, choices: &Choices, uploads: &[Upload]) -> Result<Prepared, Unresolved>;
    /// The same runs as a command of `rota simulate`.
    fn command_line(
        &self,
        choices: &Choices,
        uploads: &[Upload],
        policies: &[String],
        set: &[String],
    ) -> String;
    /// The same runs as a study script over several seeds.
    fn study_script(
        &self,
        choices: &Choices,
        uploads: &[Upload],
        policies: &[String],
        set: &[(String, String)],
        n_seeds: u64,
    ) -> String;
    /// Runs with the scripts and inputs they were made of, as for a result folder.
    fn results(
        &self,
        choices: &Choices,
        uploads: &[Upload],
        sources: Vec<Source>,
        runs: Vec<RunResult>,
    ) -> Result<Results, Unresolved>;
}
