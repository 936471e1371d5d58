//! Speeds of jobs on a cluster, remembered: asking the core costs a walk over all nodes, and traces have many jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_core::cluster::{Cluster, Node};
use rota_core::ids::GpuTypeId;
use rota_core::job::JobSpec;
use rota_core::profile::Shape;

use crate::error::InputError;

/// Speeds of jobs on one cluster, computed once for each kind of job.
pub(crate) struct Speeds<'c> {
    cluster: &'c Cluster,
    fair_rates: BTreeMap<(usize, u32, u32, Option<GpuTypeId>), f64>,
    reach: BTreeMap<Option<GpuTypeId>, Reach<'c>>,
}

/// What a job bound to a GPU type, or to none, can get.
#[derive(Clone, Copy)]
pub(crate) struct Reach<'c> {
    /// The largest node.
    pub(crate) node: Option<&'c Node>,
    /// That node's GPU type.
    pub(crate) gpu_type: &'c str,
    /// GPUs in all.
    pub(crate) n_gpus: u32,
}

impl<'c> Speeds<'c> {
    pub(crate) fn new(cluster: &'c Cluster) -> Self {
        Speeds { cluster, fair_rates: BTreeMap::new(), reach: BTreeMap::new() }
    }

    /// Iterations per second at the proportional share, as asked for.
    pub(crate) fn fair_rate(&mut self, spec: &JobSpec) -> f64 {
        // Profiles outlive the reading, so their address names them.
        let profile = Arc::as_ptr(&spec.profile) as usize;
        let key = (profile, spec.gpus.asked, spec.batch, spec.gpu_type);
        *self.fair_rates.entry(key).or_insert_with(|| spec.fair_rate(self.cluster))
    }

    /// Iterations in so many seconds at the proportional share.
    pub(crate) fn iterations(&mut self, spec: &JobSpec, duration_s: f64) -> Result<f64, InputError> {
        let work = duration_s * self.fair_rate(spec);
        if work.is_finite() && work > 0.0 {
            return Ok(work);
        }
        let what = format!("models that can run on cluster {}", self.cluster.name);
        Err(InputError::expected("profiles", what).got(&spec.profile.name))
    }

    /// Whole iterations, at least one: the rule of the originals' generators.
    pub(crate) fn whole_iterations(&mut self, spec: &JobSpec, duration_s: f64) -> Result<f64, InputError> {
        self.iterations(spec, duration_s).map(|work| work.floor().max(1.0))
    }

    /// The best rate the job could have alone: at the level where it is fastest, with a fair part of whole nodes.
    pub(crate) fn best_rate(&mut self, spec: &JobSpec) -> f64 {
        let reach = self.reach(spec.gpu_type);
        let Some(node) = reach.node else { return 0.0 };
        let asked = [spec.gpus.asked];
        let levels = if spec.gpus.levels.is_empty() { &asked[..] } else { &spec.gpus.levels };
        let rate = |gpus: u32| {
            let n_nodes = gpus.div_ceil(node.n_gpus.max(1));
            let per_gpu = node.host.per(gpus.min(node.n_gpus).max(1));
            spec.profile.rate(&Shape { gpus, n_nodes, per_gpu, gpu_type: reach.gpu_type, batch: spec.batch })
        };
        let in_reach = levels.iter().filter(|gpus| **gpus <= reach.n_gpus);
        in_reach.map(|gpus| rate(*gpus)).fold(0.0, f64::max)
    }

    /// Whether the speed of a job is known: its model has no curves, or one for its batch on the GPUs it would get.
    pub(crate) fn is_measured(&mut self, spec: &JobSpec) -> bool {
        let gpu_type = self.reach(spec.gpu_type).gpu_type;
        spec.profile.scale.is_empty() || spec.profile.scale_curve(gpu_type, spec.batch).is_some()
    }

    /// What a job bound to a GPU type can get.
    pub(crate) fn reach(&mut self, gpu_type: Option<GpuTypeId>) -> Reach<'c> {
        let cluster = self.cluster;
        *self.reach.entry(gpu_type).or_insert_with(|| {
            let node = cluster.largest_node(gpu_type);
            let name = node.and_then(|n| cluster.gpu_types().get(n.gpu_type.index()));
            Reach { node, gpu_type: name.map_or("", String::as_str), n_gpus: cluster.n_gpus_of(gpu_type) }
        })
    }
}

#[cfg(test)]
mod tests {
    use rota_core::job::GpuRequest;
    use rota_core::time::Time;

    use super::*;
    use crate::format::tests::built_in;
    use crate::jobs::JobList;

    #[test]
    fn the_best_rate_is_that_of_the_fastest_level() {
        let (cluster, profiles) = built_in("a100", "elasticflow-a100");
        let bert = profiles.get("bert").expect("there").clone();
        let mut job = JobList::plain("j", bert.clone(), 1, 1.0, Time::ZERO);
        job.batch = 64;
        job.gpus = GpuRequest { asked: 1, levels: [1, 2, 4, 8, 16].into() };
        let curve = bert.scale_curve("A100", 64).expect("measured");
        assert_eq!(Speeds::new(&cluster).best_rate(&job), curve.rate(8), "16 are slower");
    }

    #[test]
    fn a_model_that_cannot_run_is_refused() {
        let (cluster, profiles) = built_in("a100", "elasticflow-a100");
        let mut profile = rota_core::profile::Profile::clone(profiles.get("bert").expect("there"));
        profile.storage_need = vec![(0, 1)];
        profile.gpu_speed = vec![("A100".into(), 0.0)];
        let job = JobList::plain("j", Arc::new(profile), 1, 1.0, Time::ZERO);
        let message = Speeds::new(&cluster).iterations(&job, 5.0).expect_err("no speed").to_string();
        assert_eq!(message, "profiles: got \"bert\", expected models that can run on cluster a100");
    }
}
