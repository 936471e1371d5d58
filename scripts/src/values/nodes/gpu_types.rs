//! Clusters with several GPU types, for scripts: how many there are of each, how fast each job is on each, and a
//! round in which every job gets GPUs of the type it is owed (Gavel, OSDI'20, §5).

use std::cmp::Reverse;

use rhai::{Array, Dynamic, ImmutableString, Map};
use rota_core::fill::{Demand, Fill, Granted, Quotas, Walk};
use rota_core::ids::GpuTypeId;
use rota_core::place::Consolidate;
use rota_core::snapshot::Snapshot;

use crate::language::nearest;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, fail};
use crate::models::optimum::{fair_rate, leave_only};
use crate::values::cluster::ClusterValue;
use crate::values::{Column, Jobs, PlanValue, View, type_label};

pub(crate) fn gpu_type(session: &Session, name: &str) -> Outcome<GpuTypeId> {
    let cluster = &session.snapshot.cluster;
    match cluster.gpu_type_id(name) {
        Some(gpu_type) => Ok(gpu_type),
        None => {
            let names = cluster.gpu_types().iter().map(String::as_str);
            let hint = nearest::hint(name, names.clone());
            let hint = hint.unwrap_or_else(|| format!("there are {}", names.collect::<Vec<_>>().join(", ")));
            fail(format!("there is no GPU type `{name}`: {hint}"))
        }
    }
}

/// Whether a job may run on a type at all.
pub(crate) fn is_allowed(snapshot: &Snapshot, row: usize, gpu_type: GpuTypeId) -> bool {
    let spec = snapshot.jobs.spec(row);
    let node = snapshot.cluster.largest_node(Some(gpu_type));
    spec.gpu_type.is_none_or(|only| only == gpu_type)
        && node
            .is_some_and(|node| node.gpu_mem_bytes == 0 || spec.profile.gpu_mem_bytes <= node.gpu_mem_bytes)
}

fn rate_on(jobs: &Jobs, name: &str) -> Outcome<Column> {
    let snapshot = &jobs.session.snapshot;
    let gpu_type = gpu_type(&jobs.session, name)?;
    let rate = |row: usize| match is_allowed(snapshot, row, gpu_type) {
        true => fair_rate(&snapshot.cluster, snapshot.jobs.spec(row), snapshot.jobs.gpus()[row], gpu_type),
        false => 0.0,
    };
    Column::compute(jobs, jobs.rows().map(rate))
}

fn runs_on(jobs: &Jobs, name: &str) -> Outcome<Column> {
    let snapshot = &jobs.session.snapshot;
    let gpu_type = gpu_type(&jobs.session, name)?;
    let is_there = |row: usize| {
        let slice = snapshot.jobs.allocation(row).slices.first();
        slice.is_some_and(|slice| snapshot.cluster.nodes()[slice.node.index()].gpu_type == gpu_type)
    };
    Column::compute(jobs, jobs.rows().map(|row| f64::from(u8::from(is_there(row)))))
}

impl View {
    /// Highest priority first over all pairs of job and type; each job once.
    fn fill_by_type(&self, priorities: &Map) -> Outcome<PlanValue> {
        let session = &self.0;
        let snapshot = &session.snapshot;
        let mut pairs = Vec::new();
        for (name, value) in priorities {
            let index = gpu_type(session, name)?;
            let Some(column) = value.read_lock::<Column>() else {
                return fail(format!("fill_by_type: `{name}` must be a column, got {}", type_label(value)));
            };
            session.meter().charge(column.jobs.len())?;
            for (position, priority) in column.values().iter().enumerate().filter(|(_, p)| **p > 0.0) {
                let row = column.jobs.row_at(position);
                if is_allowed(snapshot, row, index) {
                    pairs.push((*priority, snapshot.jobs.id(row), index, row as u32));
                }
            }
        }
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        session.meter().charge(pairs.len() + snapshot.cluster.nodes().len())?;
        Ok(PlanValue::of(session, self.serve(&pairs)))
    }

    fn serve(&self, pairs: &[(f64, rota_core::ids::JobId, GpuTypeId, u32)]) -> Vec<Granted> {
        let snapshot = &self.0.snapshot;
        let mut room = self.0.take_room();
        let n_types = snapshot.cluster.gpu_types().len();
        let mut left: Vec<u32> = (0..n_types).map(|t| room.free_gpus_of(GpuTypeId::from(t))).collect();
        let mut quotas = Quotas::new(snapshot);
        let mut rows = vec![Vec::new(); n_types];
        let mut is_served = vec![false; snapshot.jobs.len()];
        for (_, _, gpu_type, row) in pairs {
            let gpus = snapshot.jobs.gpus()[*row as usize];
            let has_room = left[gpu_type.index()] >= gpus && !is_served[*row as usize];
            if has_room && quotas.take(*row as usize, gpus) {
                is_served[*row as usize] = true;
                left[gpu_type.index()] -= gpus;
                rows[gpu_type.index()].push(*row);
            }
        }
        let walk = Walk { demand: Demand::FairShare, ..Walk::default() };
        let mut granted = Vec::new();
        for (index, mut rows) in rows.into_iter().enumerate() {
            leave_only(snapshot, &mut room, GpuTypeId::from(index));
            rows.sort_by_key(|row| Reverse(snapshot.jobs.gpus()[*row as usize]));
            granted.extend(Fill::new(snapshot, &mut room, &mut Consolidate::default()).run(
                &rows,
                &walk,
                &mut [],
            ));
        }
        self.0.give_room(room);
        granted
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    let engine = registrar.field("Cluster", "gpu_types: Array", "Names of the GPU types.");
    engine.register_get("gpu_types", |cluster: &mut ClusterValue| -> Array {
        let names = cluster.0.snapshot.cluster.gpu_types();
        names.iter().map(|name| Dynamic::from(ImmutableString::from(name.as_str()))).collect()
    });
    let engine = registrar.method(
        "Cluster",
        "gpus_of(gpu_type: String) -> int",
        "GPUs of one type on nodes that are up.",
    );
    engine.register_fn("gpus_of", |cluster: ClusterValue, name: ImmutableString| -> Outcome<i64> {
        let snapshot = &cluster.0.snapshot;
        let gpu_type = gpu_type(&cluster.0, &name)?;
        let nodes = snapshot.cluster.nodes().iter().zip(&snapshot.nodes.is_up);
        Ok(nodes
            .filter(|(node, is_up)| **is_up && node.gpu_type == gpu_type)
            .map(|(node, _)| i64::from(node.n_gpus))
            .sum())
    });
    let engine = registrar.method(
        "Jobs",
        "rate_on(gpu_type: String) -> Column",
        "Estimated iterations per second on the GPUs asked for if all are of one type, each with its proportional \
         share; 0 where a job cannot use that type.",
    );
    engine.register_fn("rate_on", |jobs: Jobs, name: ImmutableString| rate_on(&jobs, &name));
    let engine = registrar.method(
        "Jobs",
        "runs_on(gpu_type: String) -> Column",
        "1 where a job runs on GPUs of that type now, else 0.",
    );
    engine.register_fn("runs_on", |jobs: Jobs, name: ImmutableString| runs_on(&jobs, &name));
    let engine = registrar.method(
        "View",
        "fill_by_type(priorities: Map) -> Plan",
        "Gives each job GPUs of one type, the pairs of job and type with the highest priority first: \
         `#{A100: column, T4: column}`. A priority of 0 is never served. Jobs that run on the type they get stay where \
         they are; every job has its proportional share.",
    );
    engine.register_fn("fill_by_type", |view: View, priorities: Map| view.fill_by_type(&priorities));
}
