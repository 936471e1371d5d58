//! Clusters, jobs and workloads for the tests of the drivers.

use std::sync::Arc;

use rota_core::cluster::NodeGroup;
use rota_core::ids::{JobId, TenantId};
use rota_core::job::{Deadline, GpuRequest, JobSpec};
use rota_core::profile::Profile;
use rota_core::resources::Host;
use rota_core::time::Time;
use rota_core::workload::{Truth, Workload};

/// Like nodes in one rack, without caches.
pub(super) fn group(count: u32, gpu_type: &str, n_gpus: u32, host: Host) -> NodeGroup {
    NodeGroup {
        count,
        racks: 1,
        gpu_type: gpu_type.into(),
        n_gpus,
        gpu_mem_bytes: 0,
        host,
        cache_bytes: 0,
        fetch_bps: 0,
    }
}

/// A job of the only tenant, named by its number, without a deadline.
pub(super) fn job(
    index: usize,
    profile: &Arc<Profile>,
    gpus: GpuRequest,
    work: f64,
    arrival_s: i64,
) -> JobSpec {
    JobSpec {
        id: JobId::from(index),
        name: index.to_string().into(),
        tenant: TenantId(0),
        priority: 0,
        profile: Arc::clone(profile),
        batch: 0,
        gpus,
        gpu_type: None,
        estimated_work: work,
        arrival: Time(arrival_s * 1_000_000),
        deadline: Deadline::None,
        dataset: None,
        costs: None,
    }
}

/// A workload of jobs whose estimates are exact.
pub(super) fn workload(jobs: impl IntoIterator<Item = JobSpec>) -> Workload {
    let jobs: Vec<Arc<JobSpec>> = jobs.into_iter().map(Arc::new).collect();
    let truths = jobs.iter().map(|job| Truth::of(job.estimated_work)).collect();
    Workload { jobs, truths, ..Workload::default() }
}
