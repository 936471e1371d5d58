//! Wraps a policy to record, after each decision, what its plan reaches and what no plan for these jobs could exceed.

use rota_core::allocation::Allocation;
use rota_core::plan::{Hold, Plan};
use rota_core::policy::{Policy, PolicyError};
use rota_core::snapshot::Snapshot;
use rota_scripts::optimum::{RowOnType, bound, speed_of};
use rota_solvers::{Highs, Limits};

use crate::results::RoundBound;

/// Wraps a policy and keeps one bound for each decision.
pub struct Bounded<'a> {
    inner: &'a mut dyn Policy,
    limits: Limits,
    /// One for each decision so far.
    pub rounds: Vec<RoundBound>,
}

impl<'a> Bounded<'a> {
    /// Wraps a policy. The solve need not finish: its bound is valid whenever it stops.
    pub fn new(inner: &'a mut dyn Policy) -> Self {
        let limits = Limits { gap: 1e-4, nodes: 200, ..Limits::default() };
        Bounded { inner, limits, rounds: Vec::new() }
    }
}

impl Policy for Bounded<'_> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let plan = self.inner.decide(snapshot)?;
        let round = round_bound(snapshot, &plan, &self.limits);
        self.rounds.push(round.map_err(|error| PolicyError { message: format!("--bound: {error}") })?);
        Ok(plan)
    }

    fn memory(&self) -> String {
        self.inner.memory()
    }
}

/// What a plan gives each job that runs, by row.
pub fn given<'a>(snapshot: &'a Snapshot, plan: &'a Plan) -> Vec<(usize, &'a Allocation)> {
    let allocation = |run: &'a rota_core::plan::Run| {
        let row = snapshot.jobs.row(run.job)?;
        Some(match &run.what {
            Hold::Keep => (row, snapshot.jobs.allocation(row)),
            Hold::Take(allocation) => (row, allocation),
        })
    };
    plan.run.iter().filter_map(allocation).collect()
}

fn round_bound(
    snapshot: &Snapshot,
    plan: &Plan,
    limits: &Limits,
) -> Result<RoundBound, rota_solvers::FormulationError> {
    let mut jobs = Vec::with_capacity(plan.run.len());
    let mut reached = 0.0;
    for (row, allocation) in given(snapshot, plan) {
        let node = allocation.slices.first().and_then(|slice| snapshot.cluster.node(slice.node));
        let Some(node) = node else { continue };
        reached += speed_of(snapshot, snapshot.jobs.spec(row), allocation);
        jobs.push(RowOnType { row: row as u32, gpus: allocation.n_gpus(), gpu_type: node.gpu_type });
    }
    let bound = bound(snapshot, &jobs, &mut Highs, limits)?;
    Ok(RoundBound { reached, bound: bound.max(reached) })
}
