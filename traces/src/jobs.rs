//! From rows to a workload: names become ids, jobs are put in order of arrival, durations become iterations.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_core::cluster::Cluster;
use rota_core::ids::{DatasetId, GpuTypeId, JobId, TenantId};
use rota_core::job::{Deadline, GpuRequest, JobSpec};
use rota_core::profile::{Profile, Shape};
use rota_core::time::Time;
use rota_core::workload::{Dataset, Truth, Workload};

/// The tenant of jobs that name none.
pub(crate) const NO_TENANT: &str = "default";

/// A workload while it is read: jobs in the order of the file.
#[derive(Default)]
pub(crate) struct JobList {
    jobs: Vec<(JobSpec, Truth)>,
    tenants: Names,
    datasets: Vec<Dataset>,
}

/// Names by order of appearance.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    ids: BTreeMap<String, u32>,
}

impl JobList {
    /// A job with nothing but what every job has; ids are given at the end.
    pub(crate) fn plain(name: &str, profile: Arc<Profile>, gpus: u32, work: f64, arrival: Time) -> JobSpec {
        JobSpec {
            id: JobId(0),
            name: name.into(),
            tenant: TenantId(0),
            priority: 0,
            profile,
            batch: 0,
            gpus: GpuRequest::fixed(gpus),
            gpu_type: None,
            estimated_work: work,
            arrival,
            deadline: Deadline::None,
            dataset: None,
            costs: None,
        }
    }

    /// The id of a tenant; the empty name is [`NO_TENANT`].
    pub(crate) fn tenant(&mut self, name: &str) -> TenantId {
        TenantId(self.tenants.intern(if name.is_empty() { NO_TENANT } else { name }))
    }

    /// The id of a data set that was added before.
    pub(crate) fn dataset(&self, name: &str) -> Option<DatasetId> {
        self.datasets.iter().position(|d| d.name == name).map(DatasetId::from)
    }

    /// What is known of a data set.
    pub(crate) fn dataset_at(&self, id: DatasetId) -> Option<&Dataset> {
        self.datasets.get(id.index())
    }

    /// Adds a data set nobody named before.
    pub(crate) fn add_dataset(&mut self, dataset: Dataset) -> DatasetId {
        self.datasets.push(dataset);
        DatasetId::from(self.datasets.len() - 1)
    }

    /// Adds a job whose profile is right and whose estimate is as given.
    pub(crate) fn push(&mut self, spec: JobSpec, work: f64) {
        self.push_with(spec, Truth { work, pace: 1.0 });
    }

    /// Adds a job with all that really happens to it.
    pub(crate) fn push_with(&mut self, spec: JobSpec, truth: Truth) {
        self.jobs.push((spec, truth));
    }

    /// Orders by arrival (those of one instant stay in file order) and numbers through.
    pub(crate) fn finish(mut self) -> Workload {
        if !self.jobs.is_sorted_by_key(|(spec, _)| spec.arrival) {
            self.jobs.sort_by_key(|(spec, _)| spec.arrival);
        }
        if self.tenants.names.is_empty() {
            self.tenants.intern(NO_TENANT);
        }
        let mut workload =
            Workload { tenants: self.tenants.names, datasets: self.datasets, ..Workload::default() };
        workload.jobs.reserve_exact(self.jobs.len());
        workload.truths.reserve_exact(self.jobs.len());
        for (index, (mut spec, truth)) in self.jobs.into_iter().enumerate() {
            spec.id = JobId::from(index);
            workload.jobs.push(Arc::new(spec));
            workload.truths.push(truth);
        }
        workload
    }
}

impl Names {
    fn intern(&mut self, name: &str) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = TenantId::from(self.names.len()).0;
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }
}

/// Whether the speed of a job is known: its model has no curves, or one for its batch on the GPUs it would get.
pub(crate) fn is_measured(cluster: &Cluster, spec: &JobSpec) -> bool {
    let node = cluster.largest_node(spec.gpu_type);
    let gpu_type = node.and_then(|n| cluster.gpu_types().get(n.gpu_type.index())).map_or("", String::as_str);
    spec.profile.scale.is_empty() || spec.profile.scale_curve(gpu_type, spec.batch).is_some()
}

/// Iterations per second at the proportional share, remembered: asking the core costs a walk over all nodes.
pub(crate) struct FairRates<'c> {
    cluster: &'c Cluster,
    known: BTreeMap<(usize, u32, u32, Option<GpuTypeId>), f64>,
}

impl<'c> FairRates<'c> {
    pub(crate) fn new(cluster: &'c Cluster) -> Self {
        FairRates { cluster, known: BTreeMap::new() }
    }

    /// The rate of a job as asked for.
    pub(crate) fn of(&mut self, spec: &JobSpec) -> f64 {
        // Profiles outlive the reading, so their address names them.
        let profile = Arc::as_ptr(&spec.profile) as usize;
        let key = (profile, spec.gpus.asked, spec.batch, spec.gpu_type);
        *self.known.entry(key).or_insert_with(|| spec.fair_rate(self.cluster))
    }

    /// The best rate the job could have alone: at the level where it is fastest, with all it asks for.
    pub(crate) fn best(&self, spec: &JobSpec) -> f64 {
        let Some(node) = self.cluster.largest_node(spec.gpu_type) else { return 0.0 };
        let gpu_type = self.cluster.gpu_types().get(node.gpu_type.index()).map_or("", String::as_str);
        let asked = [spec.gpus.asked];
        let levels = if spec.gpus.levels.is_empty() { &asked[..] } else { &spec.gpus.levels };
        let rate = |gpus: u32| {
            let n_nodes = gpus.div_ceil(node.n_gpus.max(1));
            let per_gpu = node.host.per(gpus.min(node.n_gpus).max(1));
            spec.profile.rate(&Shape { gpus, n_nodes, per_gpu, gpu_type, batch: spec.batch })
        };
        let in_reach = levels.iter().filter(|gpus| **gpus <= self.cluster.n_gpus());
        in_reach.map(|gpus| rate(*gpus)).fold(0.0, f64::max)
    }

    /// Whole iterations in so many seconds, at least one: the rule of the originals' generators.
    pub(crate) fn whole_iterations(&mut self, spec: &JobSpec, duration_s: f64) -> f64 {
        (duration_s * self.of(spec)).floor().max(1.0)
    }
}
