//! Nodes, their GPUs, and tenants as programs and the page see them.

use std::collections::BTreeMap;

use rota_core::ids::{JobId, NodeId, TenantId};
use rota_core::table::JobPhase;
use rota_transport::value::Name;

use super::super::refusal::Refusal;
use super::super::{Engine, access, views};
use super::jobs::tenant;
use crate::cluster_state::Standing;
use crate::roles::Person;
use crate::state::{Agent, LaunchPhase};
use crate::web::shapes::{Gpu, Node, NodePlacement, Tenant, seconds};

/// What stands for a job that the person may not see.
pub(super) const HIDDEN: i64 = -1;

/// Jobs on each GPU of a node, by the GPU's number: mostly none or one.
pub(super) type OnGpus = Vec<Vec<JobId>>;

/// Every node whose agent has ever connected, with those of its jobs that the person may see.
pub(crate) fn nodes(engine: &Engine, person: &Person) -> Vec<Node> {
    let on_gpus = on_gpus(engine);
    engine.state.agents().iter().map(|(name, agent)| one(engine, person, name, agent, &on_gpus)).collect()
}

/// A node, what jobs hold there, and why it is drained.
pub(crate) fn node(
    engine: &Engine,
    person: &Person,
    name: &Name,
) -> Result<(Node, Vec<NodePlacement>, String), Refusal> {
    let agent = engine.state.agents().get(name).ok_or_else(|| Refusal::NoSuchNode(name.clone()))?;
    let on_gpus = on_gpus(engine);
    let found = one(engine, person, name, agent, &on_gpus);
    let cluster = engine.state.cluster();
    let jobs = cluster.scheduler().jobs();
    let mut placements = Vec::new();
    for row in 0..jobs.len() {
        let id = jobs.id(row);
        let here = jobs.allocation(row).slices.iter().find(|slice| Some(slice.node) == agent.node());
        if let Some(slice) = here.filter(|_| access::may_see(engine, person, id)) {
            let (gpus, mem_bytes) = (slice.gpus.iter().collect(), slice.host.mem_bytes);
            placements.push(NodePlacement { job: id.0, gpus, cpus: slice.host.cpus(), mem_bytes });
        }
    }
    placements.sort_unstable_by_key(|placement| placement.job);
    let reason = agent.node().map_or("", |node| cluster.drain_reason(node)).to_owned();
    Ok((found, placements, reason))
}

/// Whom jobs count for; people who do not operate the cluster see their own tenants.
pub(crate) fn tenants(engine: &Engine, person: &Person) -> Vec<Tenant> {
    let cluster = engine.state.cluster();
    let jobs = cluster.scheduler().jobs();
    let quotas = &engine.rules.quotas;
    let empty = |(index, name): (usize, &String)| {
        let quota = quotas.iter().find(|(known, _)| known == name).map(|(_, gpus)| *gpus);
        let tenant =
            Tenant { name: name.clone(), quota, gpus_held: 0, n_running: 0, n_waiting: 0, gpus_waiting: 0 };
        (TenantId::from(index), tenant)
    };
    let mut found: BTreeMap<TenantId, Tenant> = cluster.tenants().iter().enumerate().map(empty).collect();
    for row in 0..jobs.len() {
        let Some(tenant) = found.get_mut(&jobs.spec(row).tenant) else { continue };
        match jobs.phase(row) {
            JobPhase::Running => {
                tenant.n_running += 1;
                tenant.gpus_held += jobs.allocation(row).n_gpus();
            }
            JobPhase::Asking | JobPhase::Waiting => {
                tenant.n_waiting += 1;
                tenant.gpus_waiting += jobs.spec(row).gpus.asked;
            }
        }
    }
    let is_theirs = |tenant: &Tenant| person.operates() || person.tenant(&tenant.name).is_some();
    found.into_values().filter(is_theirs).collect()
}

fn one(
    engine: &Engine,
    person: &Person,
    name: &Name,
    agent: &Agent,
    on_gpus: &BTreeMap<NodeId, OnGpus>,
) -> Node {
    let cluster = engine.state.cluster();
    let node = agent.node().and_then(|node| cluster.scheduler().cluster().node(node));
    let types = cluster.scheduler().cluster().gpu_types();
    let bad = agent.node().and_then(|node| cluster.scheduler().nodes().bad_gpus.get(&node)).copied();
    let none = OnGpus::new();
    let here = agent.node().and_then(|node| on_gpus.get(&node)).unwrap_or(&none);
    let n_gpus = node.map_or(0, |node| node.n_gpus);
    let gpu = |number: u32| {
        let jobs = here.get(number as usize).map_or(&[][..], Vec::as_slice);
        let mut shown = jobs.iter().map(|job| shown(engine, person, *job));
        let known = jobs.first().filter(|job| access::may_see(engine, person, **job));
        let known = known.and_then(|job| cluster.job(*job));
        Gpu {
            job: shown.next(),
            others: shown.collect(),
            tenant: known.map(|job| tenant(cluster, job)),
            model: known.map(|job| job.request.model.to_string()),
            is_healthy: bad.is_none_or(|bad| !bad.contains(number)),
            ..Gpu::default()
        }
    };
    let mut jobs: Vec<JobId> = here.iter().flatten().copied().collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs.retain(|job| access::may_see(engine, person, *job));
    Node {
        name: name.to_string(),
        index: agent.node().map(|node| node.0),
        state: node_state_word(engine, agent).to_owned(),
        reason: views::node_reason(cluster, agent),
        gpu_type: node.and_then(|node| types.get(node.gpu_type.index())).cloned().unwrap_or_default(),
        rack: node.map_or(0, |node| node.rack),
        cpus: node.map_or(0.0, |node| node.host.cpus()),
        mem_bytes: node.map_or(0, |node| node.host.mem_bytes),
        version: agent.version().to_string(),
        since_s: seconds(agent.since()),
        n_gpus,
        n_busy: here.iter().filter(|jobs| !jobs.is_empty()).count() as u32,
        jobs: jobs.into_iter().map(|job| job.0).collect(),
        gpus: (0..n_gpus).map(gpu).collect(),
    }
}

pub(super) fn node_state_word(engine: &Engine, agent: &Agent) -> &'static str {
    views::node_state(engine.state.cluster(), agent).as_str()
}

/// A job's number as a person sees it.
fn shown(engine: &Engine, person: &Person, job: JobId) -> i64 {
    if access::may_see(engine, person, job) { i64::from(job.0) } else { HIDDEN }
}

/// Which jobs are on which GPUs: what is alive there, and what is to start where nothing is alive.
pub(super) fn on_gpus(engine: &Engine) -> BTreeMap<NodeId, OnGpus> {
    let cluster = engine.state.cluster();
    let nodes = cluster.scheduler().cluster().nodes();
    let mut found: BTreeMap<NodeId, OnGpus> =
        nodes.iter().map(|node| (node.id, vec![Vec::new(); node.n_gpus as usize])).collect();
    let launches = || engine.state.launches().iter();
    let is_ordered = |phase: &LaunchPhase| !matches!(phase, LaunchPhase::Waiting | LaunchPhase::Fetching);
    let alive = launches().filter(|(_, live)| is_ordered(&live.phase));
    for (attempt, live) in alive {
        for slice in &live.allocation.slices {
            let Some(gpus) = found.get_mut(&slice.node) else { continue };
            for gpu in slice.gpus.iter() {
                if let Some(jobs) = gpus.get_mut(gpu as usize).filter(|jobs| !jobs.contains(&attempt.job)) {
                    jobs.push(attempt.job);
                }
            }
        }
    }
    for (attempt, live) in launches().filter(|(_, live)| !is_ordered(&live.phase)) {
        let is_over = cluster.job(attempt.job).is_none_or(|job| job.standing != Standing::Active);
        for slice in live.allocation.slices.iter().filter(|_| !is_over) {
            let Some(gpus) = found.get_mut(&slice.node) else { continue };
            for gpu in slice.gpus.iter() {
                if let Some(jobs) = gpus.get_mut(gpu as usize).filter(|jobs| jobs.is_empty()) {
                    jobs.push(attempt.job);
                }
            }
        }
    }
    found
}
