//! The head in figures, for Prometheus.

use std::collections::BTreeMap;

use rota_core::table::JobPhase;

use super::super::{Engine, views};
use super::newest_launches;
use super::nodes::{node_state_word, tenants};
use crate::meters::Meters;
use crate::roles::Person;
use crate::state::Moment;

/// Figures of the state at one moment.
pub(crate) struct Figures {
    pub(crate) is_ready: bool,
    pub(crate) epoch: u64,
    pub(crate) now_s: f64,
    pub(crate) has_trouble: bool,
    /// By state.
    pub(crate) jobs: Vec<(String, f64)>,
    pub(crate) gpus_waiting: f64,
    pub(crate) oldest_wait_s: f64,
    /// By state.
    pub(crate) gpus: Vec<(String, f64)>,
    /// By state.
    pub(crate) nodes: Vec<(String, f64)>,
    pub(crate) n_agents: f64,
    pub(crate) tenant_held: Vec<(String, f64)>,
    pub(crate) tenant_quota: Vec<(String, f64)>,
    pub(crate) tenant_waiting: Vec<(String, f64)>,
    pub(crate) journal_lines: f64,
    pub(crate) journal_bytes: f64,
    pub(crate) is_writable: bool,
    pub(crate) meters: Meters,
}

/// The head in figures.
pub(crate) fn figures(engine: &Engine, moment: Moment) -> Figures {
    let status = views::status(engine, moment);
    let cluster = engine.state.cluster();
    let launches = newest_launches(engine);
    let states = ["asking", "waiting", "starting", "running", "stopping", "held"];
    let mut jobs: BTreeMap<&str, f64> = states.into_iter().map(|state| (state, 0.0)).collect();
    for (id, job) in cluster.jobs().iter().filter(|(_, job)| !job.standing.is_over()) {
        let phase = launches.get(id).map(|live| &live.phase);
        *jobs.entry(views::job_state(cluster, *id, job, phase).as_str()).or_default() += 1.0;
    }
    let table = cluster.scheduler().jobs();
    let waits = |row: &usize| table.phase(*row) != JobPhase::Running;
    let waiting = || (0..table.len()).filter(waits);
    let oldest = waiting().map(|row| table.spec(row).arrival).min();
    let states = ["up", "silent", "lost", "drained", "draining", "unreachable"];
    let mut nodes: BTreeMap<&str, f64> = states.into_iter().map(|state| (state, 0.0)).collect();
    for (_, agent) in engine.state.agents().iter() {
        *nodes.entry(node_state_word(engine, agent)).or_default() += 1.0;
    }
    let bad: u32 = cluster.scheduler().nodes().bad_gpus.values().map(|bad| bad.len()).sum();
    let free = status.n_gpus_up.saturating_sub(status.n_gpus_busy).saturating_sub(bad);
    let gpus = [("busy", status.n_gpus_busy), ("free", free), ("unusable", bad)];
    let tenants = tenants(engine, &Person::anybody());
    let of_tenants = |figure: fn(&crate::web::shapes::Tenant) -> Option<u32>| {
        tenants.iter().filter_map(|tenant| Some((tenant.name.clone(), f64::from(figure(tenant)?)))).collect()
    };
    let owned = |all: BTreeMap<&str, f64>| all.into_iter().map(|(state, n)| (state.to_owned(), n)).collect();
    Figures {
        is_ready: status.is_ready,
        epoch: status.epoch.0,
        now_s: status.now.as_secs_f64(),
        has_trouble: !views::trouble(engine).is_empty(),
        jobs: owned(jobs),
        gpus_waiting: waiting().map(|row| f64::from(table.spec(row).gpus.asked)).sum(),
        oldest_wait_s: oldest.map_or(0.0, |at| (moment.now - at).as_secs_f64().max(0.0)),
        gpus: gpus.into_iter().map(|(state, n)| (state.to_owned(), f64::from(n))).collect(),
        nodes: owned(nodes),
        n_agents: engine.state.agents().n_here() as f64,
        tenant_held: of_tenants(|tenant| Some(tenant.gpus_held)),
        tenant_quota: of_tenants(|tenant| tenant.quota),
        tenant_waiting: of_tenants(|tenant| Some(tenant.n_waiting)),
        journal_lines: engine.store.position() as f64,
        journal_bytes: engine.store.bytes() as f64,
        is_writable: engine.disk_trouble.is_none(),
        meters: engine.meters.clone(),
    }
}

/// Why the journal cannot be written.
pub(crate) fn disk_trouble(engine: &Engine) -> Option<String> {
    engine.disk_trouble.clone()
}
