//! Pairs of jobs that can have the same GPUs at the same time, for models: `let pairs = jobs.pairs(); let y = m.real("pair", pairs.first);`.
//!
//! A pair is of two jobs with equally many GPUs whose speeds beside each other were measured. On a type where they are no faster together than in
//! turns, a pair is left out: time shares of the two alone do the same with less.

use std::collections::BTreeMap;
use std::sync::Arc;

use rhai::ImmutableString;
use rota_core::ids::GpuTypeId;
use rota_core::job::JobSpec;
use rota_core::profile::Shape;
use rota_core::resources::Host;
use rota_core::snapshot::Snapshot;

use super::linear::{Building, Linear};
use super::matrix::Matrix;
use super::shape::{Set, Shape as Over, Sides};
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::models::optimum::fair_rate;
use crate::values::gpu_types::{gpu_type, is_allowed};
use crate::values::{Column, JobValue, Jobs};

/// Pairs of a set of jobs, the one that arrived first first.
#[derive(Clone, Debug)]
pub(crate) struct PairsValue {
    jobs: Jobs,
    /// Positions in the set.
    members: Arc<Vec<[u32; 2]>>,
    /// Iterations per second of either, a column for each type.
    first: Matrix,
    second: Matrix,
    gpus: Matrix,
}

/// Jobs that are as fast as each other, alone and beside others.
type Kind = (usize, u32, u32, Option<GpuTypeId>);

impl PairsValue {
    fn of(jobs: &Jobs) -> Outcome<PairsValue> {
        let session = &jobs.session;
        let snapshot = &session.snapshot;
        let n_types = snapshot.cluster.gpu_types().len();
        let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
        let mut examples: Vec<usize> = Vec::new();
        let mut kind_of = Vec::with_capacity(jobs.len());
        for row in jobs.rows() {
            let spec = snapshot.jobs.spec(row);
            let key =
                (Arc::as_ptr(&spec.profile) as usize, spec.batch, snapshot.jobs.gpus()[row], spec.gpu_type);
            kind_of.push(*kinds.entry(key).or_insert_with(|| {
                examples.push(row);
                examples.len() - 1
            }));
        }
        session.meter().charge(jobs.len() + examples.len() * examples.len() * n_types)?;
        let alone: Vec<Vec<f64>> = examples.iter().map(|row| alone(snapshot, *row)).collect();
        // For each two kinds, the speeds of the first on each type; nothing where they are not worth it.
        let mut together = vec![Vec::new(); examples.len() * examples.len()];
        for (a, first) in examples.iter().enumerate() {
            for (b, second) in examples.iter().enumerate() {
                let rates = |t: usize| {
                    let rates = beside(snapshot, *first, *second, GpuTypeId::from(t));
                    let worth = rates[0] / alone[a][t] + rates[1] / alone[b][t];
                    if alone[a][t] > 0.0 && alone[b][t] > 0.0 && worth > 1.0 { rates } else { [0.0; 2] }
                };
                let rates: Vec<[f64; 2]> = (0..n_types).map(rates).collect();
                if rates.iter().any(|rates| rates[0] > 0.0) {
                    together[a * examples.len() + b] = rates;
                }
            }
        }
        let positions: Vec<usize> = jobs.positions_by_id().collect();
        let mut members = Vec::new();
        let (mut first, mut second, mut gpus) = (Vec::new(), Vec::new(), Vec::new());
        for (at, a) in positions.iter().enumerate() {
            session.meter().charge(positions.len() - at)?;
            for b in &positions[at + 1..] {
                let rates = &together[kind_of[*a] * examples.len() + kind_of[*b]];
                if rates.is_empty() {
                    continue;
                }
                members.push([*a as u32, *b as u32]);
                first.extend(rates.iter().map(|rates| rates[0]));
                second.extend(rates.iter().map(|rates| rates[1]));
                gpus.push(f64::from(snapshot.jobs.gpus()[jobs.row_at(*a)]));
            }
        }
        session.meter().take_column(members.len() as u64 * 8)?;
        session.meter().free_column(members.len() as u64 * 8);
        let rows = Some(Set::Count(members.len()));
        let sides = Sides { rows: rows.clone(), columns: Some(n_types) };
        Ok(PairsValue {
            first: Matrix::compute(session, sides.clone(), first.into_iter())?,
            second: Matrix::compute(session, sides, second.into_iter())?,
            gpus: Matrix::compute(session, Sides { rows, columns: None }, gpus.into_iter())?,
            jobs: jobs.clone(),
            members: Arc::new(members),
        })
    }

    /// For each job, what its pairs have of `first` where it is the first, and of `second` where it is the second.
    fn per_job(&self, first: &Linear, second: &Linear) -> Outcome<Linear> {
        if !second.is_of(first.cell()) {
            return fail("per_job: expressions of two models");
        }
        for linear in [first, second] {
            if linear.shape().len() != self.members.len() * self.first.sides().n_columns() {
                return fail(format!(
                    "per_job: takes expressions over {} pairs x GPU types, these are over {}",
                    self.members.len(),
                    linear.shape()
                ));
            }
        }
        let mut of_job: Vec<Vec<(u32, bool)>> = vec![Vec::new(); self.jobs.len()];
        for (pair, [a, b]) in self.members.iter().enumerate() {
            of_job[*a as usize].push((pair as u32, true));
            of_job[*b as usize].push((pair as u32, false));
        }
        let n_types = self.first.sides().n_columns();
        let mut body = Building::new(first.cell(), self.jobs.len(), first.n_terms() + second.n_terms())?;
        for pairs in of_job {
            let mut constant = 0.0;
            for (pair, is_first) in pairs {
                let linear = if is_first { first } else { second };
                for position in pair as usize * n_types..(pair as usize + 1) * n_types {
                    body.terms.extend_from_slice(linear.terms(position));
                    constant += linear.number(position);
                }
            }
            body.close(constant);
        }
        Ok(body.done(Over::Each(Set::Jobs(self.jobs.clone()))))
    }

    /// Members by row of the table, with the numbers of a matrix over pairs and types where they are not 0.
    pub(crate) fn entries(&self, matrix: &Matrix) -> Option<Vec<([usize; 2], Vec<f64>)>> {
        let n_types = self.first.sides().n_columns();
        if matrix.sides().n_rows() != self.members.len() || matrix.sides().n_columns() != n_types {
            return None;
        }
        let rows = self.members.iter().zip(matrix.values().chunks(n_types.max(1)));
        let entry = |([a, b], numbers): (&[u32; 2], &[f64])| {
            let is_any = numbers.iter().any(|number| *number != 0.0);
            is_any.then(|| ([*a, *b].map(|at| self.jobs.row_at(at as usize)), numbers.to_vec()))
        };
        Some(rows.filter_map(entry).collect())
    }

    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    fn member(&self, index: i64, which: usize) -> Outcome<JobValue> {
        match usize::try_from(index).ok().and_then(|index| self.members.get(index)) {
            Some(members) => {
                let row = self.jobs.row_at(members[which] as usize);
                Ok(JobValue::new(&self.jobs.session, row as u32))
            }
            None => fail(format!("pair {index} is not among {}", self.members.len())),
        }
    }
}

/// Iterations per second alone, on each type.
fn alone(snapshot: &Snapshot, row: usize) -> Vec<f64> {
    (0..snapshot.cluster.gpu_types().len()).map(|t| alone_on(snapshot, row, GpuTypeId::from(t))).collect()
}

fn alone_on(snapshot: &Snapshot, row: usize, gpu_type: GpuTypeId) -> f64 {
    let (spec, gpus) = (snapshot.jobs.spec(row), snapshot.jobs.gpus()[row]);
    if is_allowed(snapshot, row, gpu_type) { fair_rate(&snapshot.cluster, spec, gpus, gpu_type) } else { 0.0 }
}

/// Iterations per second of two jobs with the same GPUs of a type, each with half of their proportional share; 0 where they
/// cannot have them.
pub(crate) fn beside(snapshot: &Snapshot, a: usize, b: usize, gpu_type: GpuTypeId) -> [f64; 2] {
    let cluster = &snapshot.cluster;
    let gpus = snapshot.jobs.gpus()[a];
    let can =
        gpus == snapshot.jobs.gpus()[b] && [a, b].iter().all(|row| is_allowed(snapshot, *row, gpu_type));
    let Some(node) = cluster.largest_node(Some(gpu_type)).filter(|_| can) else { return [0.0; 2] };
    let shares = cluster.nodes().iter().filter(|n| n.gpu_type == gpu_type && n.n_gpus > 0);
    let share = shares.map(|node| node.share_per_gpu()).reduce(|a, b| a.min(&b)).unwrap_or(Host::NONE);
    let rate = |own: &JobSpec, mate: &JobSpec| {
        let shape = Shape {
            gpus,
            n_nodes: gpus.div_ceil(node.n_gpus.max(1)),
            per_gpu: share.per(2),
            gpu_type: &cluster.gpu_types()[gpu_type.index()],
            batch: own.batch,
        };
        own.profile.rate_beside(&shape, &mate.profile, mate.batch)
    };
    let (first, second) = (snapshot.jobs.spec(a), snapshot.jobs.spec(b));
    [rate(first, second), rate(second, first)]
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Pairs";
    registrar.class::<PairsValue>(
        OWNER,
        "Pairs of jobs that are faster on the same GPUs at the same time than in turns, by the speeds of their profiles beside \
         each other; both have equally many GPUs, and the one that arrived first is the first.",
    );
    let engine = registrar.method(
        "Jobs",
        "pairs() -> Pairs",
        "All pairs of these jobs that are worth having the same GPUs at the same time, on at least one GPU type.",
    );
    engine.register_fn("pairs", |jobs: Jobs| PairsValue::of(&jobs));
    let engine = registrar.field(OWNER, "len: int", "How many.");
    engine.register_get("len", |pairs: &mut PairsValue| pairs.members.len() as i64);
    let engine = registrar.field(
        OWNER,
        "first: Matrix",
        "Iterations per second of the first of each pair, a column for each of `cluster.gpu_types`; 0 where the pair is not worth it: \
         `m.real(\"pair\", pairs.first)` makes a variable for each pair and type where it is.",
    );
    engine.register_get("first", |pairs: &mut PairsValue| pairs.first.clone());
    let engine = registrar.field(OWNER, "second: Matrix", "The same of the second of each pair.");
    engine.register_get("second", |pairs: &mut PairsValue| pairs.second.clone());
    let engine = registrar.field(
        OWNER,
        "gpus: Matrix",
        "The GPUs that each pair takes, in all columns: `sum((x * pairs.gpus).column(0))` is what all take of the first type.",
    );
    engine.register_get("gpus", |pairs: &mut PairsValue| pairs.gpus.clone());
    let engine = registrar.method(
        OWNER,
        "per_job(first: Linear, second: Linear) -> Linear",
        "For each job, the sum over its pairs of what `first` has where it is the first of the pair and `second` where it is the second: \
         `pairs.per_job(x * pairs.first, x * pairs.second)` is the speed that it has from them.",
    );
    engine.register_fn("per_job", |pairs: PairsValue, first: Linear, second: Linear| {
        pairs.per_job(&first, &second)
    });
    let engine = registrar.method(
        OWNER,
        "per_job(expressions: Linear) -> Linear",
        "The same with one expression for both.",
    );
    engine.register_fn("per_job", |pairs: PairsValue, both: Linear| pairs.per_job(&both, &both));
    let engine = registrar.method(OWNER, "first_of(index: int) -> Job", "The first job of a pair.");
    engine.register_fn("first_of", |pairs: PairsValue, index: i64| pairs.member(index, 0));
    let engine = registrar.method(OWNER, "second_of(index: int) -> Job", "The second job of a pair.");
    engine.register_fn("second_of", |pairs: PairsValue, index: i64| pairs.member(index, 1));
    registrar.unknown_field::<PairsValue>(OWNER);
    let engine = registrar.method(
        "Jobs",
        "worth_beside(job: Job, gpu_type: String) -> Column",
        "What each job and this one are worth on the same GPUs of a type at the same time: their speeds beside each other over those \
         alone, added up; more than 1 is better than turns, 0 where they cannot be together or were not measured.",
    );
    engine.register_fn(
        "worth_beside",
        |jobs: Jobs, job: JobValue, name: ImmutableString| -> Outcome<Column> {
            let snapshot = &jobs.session.snapshot;
            let t = gpu_type(&jobs.session, &name)?;
            let worth = |row: usize| {
                let (rates, alone) = (
                    beside(snapshot, row, job.row(), t),
                    [row, job.row()].map(|row| alone_on(snapshot, row, t)),
                );
                let is_there = row != job.row() && rates.iter().chain(&alone).all(|rate| *rate > 0.0);
                if is_there { rates[0] / alone[0] + rates[1] / alone[1] } else { 0.0 }
            };
            Column::compute(&jobs, jobs.rows().map(worth))
        },
    );
}
