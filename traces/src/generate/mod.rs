//! Workloads from distributions: the published generators, seeded, and the files that describe them.

mod arrivals;
mod artifact;
mod data;
mod deck;
pub(crate) mod draws;
pub(crate) mod elasticflow;
mod file;
mod like;
mod options;
mod python;
mod redraw;
pub(crate) mod synergy;

use rota_core::cluster::Cluster;
use rota_core::workload::Workload;

use crate::error::InputError;
use crate::profile::ProfileSet;

pub use arrivals::Pattern;
pub use file::{BUILT_IN, WorkloadFile, load, read};
pub use like::{Distance, Fit, LikeOptions, distance};
pub use options::{
    DataOptions, DeadlineOptions, Lengths, Origin, PhillyRules, Recipe, Split, WorkloadOptions,
};
pub use python::PythonRandom;
pub use redraw::redraw;

/// Draws a workload for a cluster.
pub fn generate(
    cluster: &Cluster,
    profiles: &ProfileSet,
    options: &WorkloadOptions,
) -> Result<Workload, InputError> {
    options.check()?;
    let mut workload = match options.recipe {
        Recipe::Synergy => synergy::generate(cluster, profiles, options),
        Recipe::SynergyArtifact => artifact::generate(cluster, profiles, options),
        Recipe::Elasticflow => elasticflow::generate(cluster, profiles, options),
    }?;
    data::give(&mut workload, options);
    Ok(workload)
}
