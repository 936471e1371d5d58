//! Made-up instants to try policies on: a cluster, jobs that run and jobs that wait, the same for the same numbers.

use std::sync::Arc;

use rota_core::check::check;
use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::event::Event;
use rota_core::ids::{JobId, TenantId};
use rota_core::job::{Deadline, GpuRequest, JobSpec};
use rota_core::policy::Policy;
use rota_core::profile::Profile;
use rota_core::resources::Host;
use rota_core::scheduler::Scheduler;
use rota_core::snapshot::{Guards, Snapshot};
use rota_core::time::{Span, Time};

use crate::{Limits, ScriptPolicy};

/// How large an instant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Nodes of 8 GPUs, 24 CPUs and 500 GB.
    pub n_nodes: u32,
    /// Jobs there were before the last decision; as many of them run as fit.
    pub n_old: u32,
    /// Jobs that have arrived since.
    pub n_new: u32,
}

/// An instant of that size. Gangs, demands and lengths vary from job to job as in the field: most jobs are small.
pub fn snapshot(size: Size) -> Snapshot {
    let group = NodeGroup {
        count: size.n_nodes,
        racks: 1,
        gpu_type: "V100".into(),
        n_gpus: 8,
        gpu_mem_bytes: 0,
        host: Host::from_units(24.0, 500.0, 500.0),
        cache_bytes: 0,
        fetch_bps: 0,
    };
    let cluster = Arc::new(Cluster::new("sample", &[group]).expect("a cluster with GPUs"));
    let mut scheduler = Scheduler::new(cluster, Guards::default(), Span::from_secs(300), Vec::new());
    let profiles = profiles();
    let submit = |scheduler: &mut Scheduler, ids: std::ops::Range<u32>, now: Time| {
        for id in ids {
            scheduler.handle(now, &Event::JobSubmitted(Arc::new(job(id, now, &profiles))), &mut Vec::new());
        }
    };
    submit(&mut scheduler, 0..size.n_old, Time::ZERO);
    let mut first_come =
        ScriptPolicy::load("fifo+proportional", Limits::default()).expect("a shipped policy");
    let instant = scheduler.snapshot(Time::ZERO);
    let plan = first_come.decide(&instant).expect("a shipped policy decides");
    let checked = check(&instant, plan).expect("a shipped policy's plan holds");
    drop(instant);
    scheduler.commit(Time::ZERO, checked);
    let later = Time::from_secs_f64(600.0);
    submit(&mut scheduler, size.n_old..size.n_old + size.n_new, later);
    scheduler.snapshot(later)
}

/// CPU-hungry, balanced and modest.
fn profiles() -> Vec<Arc<Profile>> {
    [("hungry", 9.0, 62.5), ("balanced", 3.0, 62.5), ("modest", 1.0, 20.0)]
        .into_iter()
        .map(|(name, cpus, mem_gb)| {
            let demand_per_gpu = Host::from_units(cpus, mem_gb, 62.5);
            Arc::new(Profile { demand_per_gpu, ..Profile::plain(name, 1.0) })
        })
        .collect()
}

fn job(id: u32, arrival: Time, profiles: &[Arc<Profile>]) -> JobSpec {
    // A multiplicative hash spreads consecutive ids evenly; nothing here needs better randomness.
    let dice = id.wrapping_mul(2_654_435_761) >> 8;
    let gpus = [1, 1, 1, 1, 1, 1, 1, 2, 4, 8][dice as usize % 10];
    JobSpec {
        id: JobId(id),
        name: id.to_string().into(),
        tenant: TenantId(dice / 10 % 5),
        priority: 0,
        profile: Arc::clone(&profiles[dice as usize / 50 % profiles.len()]),
        batch: 0,
        gpus: GpuRequest::fixed(gpus),
        gpu_type: None,
        estimated_work: 600.0 + f64::from(dice % 50_000),
        arrival,
        deadline: Deadline::None,
        dataset: None,
        costs: None,
    }
}
