//! Made-up instants to try policies on: a cluster, jobs that run and jobs that wait, the same for the same numbers.

use std::sync::Arc;

use rota_core::check::check;
use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::event::Event;
use rota_core::ids::{JobId, NodeId, TenantId};
use rota_core::job::{Deadline, GpuRequest, JobSpec};
use rota_core::policy::Policy;
use rota_core::profile::Profile;
use rota_core::resources::Host;
use rota_core::scheduler::Scheduler;
use rota_core::snapshot::{Guards, Snapshot};
use rota_core::time::{Span, Time};
use rota_core::workload::{Truth, Workload};

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
    let names: Vec<String> = ["ann", "ben", "cleo", "dan", "eve"].map(String::from).to_vec();
    scheduler.name_tenants(&names);
    let profiles = profiles();
    let submit = |scheduler: &mut Scheduler, ids: std::ops::Range<u32>, now: Time| {
        for id in ids {
            scheduler.handle(now, &Event::JobSubmitted(Arc::new(job(id, now, &profiles))), &mut Vec::new());
        }
    };
    submit(&mut scheduler, 0..size.n_old, Time::ZERO);
    run_first_come(&mut scheduler, Time::ZERO);
    let later = Time::from_secs_f64(600.0);
    submit(&mut scheduler, size.n_old..size.n_old + size.n_new, later);
    scheduler.snapshot(later)
}

/// An instant with something of everything: deadlines strict and soft, elastic jobs, priorities, jobs bound to a GPU type,
/// two GPU types in two racks, a node that is down, jobs that run and jobs that ask.
pub fn varied() -> Snapshot {
    let group = |gpu_type: &str, count| NodeGroup {
        count,
        racks: 2,
        gpu_type: gpu_type.into(),
        n_gpus: 4,
        gpu_mem_bytes: 0,
        host: Host::from_units(12.0, 250.0, 250.0),
        cache_bytes: 0,
        fetch_bps: 0,
    };
    let groups = [group("V100", 4), group("A100", 2)];
    let cluster = Arc::new(Cluster::new("varied", &groups).expect("a cluster with GPUs"));
    let gpu_types = [None, None, cluster.gpu_type_id("A100")];
    let mut scheduler =
        Scheduler::new(Arc::clone(&cluster), Guards::default(), Span::from_secs(300), Vec::new());
    scheduler.name_tenants(&["ann", "ben"].map(String::from));
    let profiles = profiles();
    let varied = |id: u32, arrival: Time| {
        let plain = job(id, arrival, &profiles);
        let due = |hours: f64| arrival + Span::from_secs_f64(hours * 3600.0);
        JobSpec {
            tenant: TenantId(id % 2),
            priority: (id % 3) as i32 - 1,
            gpus: match id % 4 {
                0 => GpuRequest { asked: 2, levels: Box::new([1, 2, 4]) },
                _ => GpuRequest::fixed([1, 2, 4][id as usize % 3]),
            },
            gpu_type: gpu_types[id as usize % 3],
            deadline: match id % 5 {
                0 => Deadline::None,
                1 => Deadline::Soft(vec![(due(4.0), 10.0), (due(40.0), 5.0)]),
                2 => Deadline::Strict(due(0.01)),
                _ => Deadline::Strict(due(20.0)),
            },
            ..plain
        }
    };
    let submit = |scheduler: &mut Scheduler, ids: std::ops::Range<u32>, now: Time| {
        for id in ids {
            scheduler.handle(now, &Event::JobSubmitted(Arc::new(varied(id, now))), &mut Vec::new());
        }
    };
    submit(&mut scheduler, 0..20, Time::ZERO);
    scheduler.handle(Time::ZERO, &Event::NodeLost { node: NodeId(1) }, &mut Vec::new());
    run_first_come(&mut scheduler, Time::ZERO);
    let later = Time::from_secs_f64(900.0);
    submit(&mut scheduler, 20..30, later);
    scheduler.snapshot(later)
}

/// A small world over some hours: two nodes of four GPUs, jobs that come and go, some with deadlines, some thought longer than
/// they are. Few jobs wait for long stretches in which none comes or ends: that is where an order that changes with time shows.
pub(crate) fn hours() -> (Arc<Cluster>, Arc<Workload>) {
    let group = NodeGroup {
        count: 2,
        racks: 1,
        gpu_type: "V100".into(),
        n_gpus: 4,
        gpu_mem_bytes: 0,
        host: Host::from_units(12.0, 250.0, 250.0),
        cache_bytes: 0,
        fetch_bps: 0,
    };
    let cluster = Cluster::new("hours", &[group]).expect("a cluster with GPUs");
    let profiles = profiles();
    let jobs = (0..18).map(|id| {
        let arrival = Time::ZERO + Span::from_secs(i64::from(id) * 1_000);
        let plain = job(id, arrival, &profiles);
        let gpus = GpuRequest::fixed([4, 3, 4, 1, 4, 2, 8][id as usize % 7]);
        let due = arrival + Span::from_secs(if id % 6 == 0 { 1_500 } else { 14_400 });
        let deadline = if id % 3 == 0 { Deadline::Strict(due) } else { Deadline::None };
        let estimated_work = 300.0 + plain.estimated_work % 5_000.0;
        Arc::new(JobSpec { gpus, deadline, estimated_work, ..plain })
    });
    let jobs: Vec<Arc<JobSpec>> = jobs.collect();
    let truth = |job: &Arc<JobSpec>| {
        Truth::of(job.estimated_work * if job.id.0.is_multiple_of(4) { 0.7 } else { 1.0 })
    };
    let truths = jobs.iter().map(truth).collect();
    let tenants = ["ann", "ben", "cleo", "dan", "eve"].map(String::from).to_vec();
    let workload = Workload { jobs, truths, tenants, datasets: Vec::new() };
    (Arc::new(cluster), Arc::new(workload))
}

/// Lets jobs run in the order of their arrival.
fn run_first_come(scheduler: &mut Scheduler, now: Time) {
    let mut first_come =
        ScriptPolicy::load("fifo+proportional", Limits::default()).expect("a shipped policy");
    let instant = scheduler.snapshot(now);
    let plan = first_come.decide(&instant).expect("a shipped policy decides");
    let checked = check(&instant, plan).expect("a shipped policy's plan holds");
    drop(instant);
    scheduler.commit(now, checked);
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
