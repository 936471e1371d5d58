//! What is left on the table, at a few decisions: the bound against the solver's, and which decisions are looked at.

use std::sync::Arc;

use rota_core::plan::Plan;
use rota_core::policy::{Policy, PolicyError};
use rota_core::room::Room;
use rota_core::simulation::{RunSettings, simulate};
use rota_core::snapshot::Snapshot;
use rota_lab::solve::{Sampled, given};
use rota_scripts::optimum::{self, Relaxation, RowOnType, optimum, speed_of};
use rota_scripts::{Limits as ScriptLimits, ScriptPolicy};
use rota_solvers::{Highs, Limits};
use rota_traces::generate::{Split, WorkloadOptions, generate};
use rota_traces::{cluster, profile};

/// Compares the look at every 25th decision with what the solver says of it.
struct Compared {
    inner: ScriptPolicy,
    relaxation: Relaxation,
    n_decisions: usize,
    n_compared: usize,
}

impl Policy for Compared {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let plan = self.inner.decide(snapshot)?;
        self.n_decisions += 1;
        if self.n_decisions % 25 == 1 {
            self.compare(snapshot, &plan);
        }
        Ok(plan)
    }

    fn memory(&self) -> String {
        self.inner.memory()
    }
}

impl Compared {
    fn compare(&mut self, snapshot: &Snapshot, plan: &Plan) {
        let runs = given(snapshot, plan);
        let Some(look) = self.relaxation.look(snapshot, &runs) else { return };
        let reached: f64 =
            runs.iter().map(|(row, held)| speed_of(snapshot, snapshot.jobs.spec(*row), held)).sum();
        assert!((look.reached - reached).abs() < 1e-9 * reached, "{} is not {reached}", look.reached);
        let jobs: Vec<RowOnType> = runs
            .iter()
            .map(|(row, held)| RowOnType {
                row: *row as u32,
                gpus: held.n_gpus(),
                gpu_type: snapshot.cluster.gpu_type_of(held.slices[0].node),
            })
            .collect();
        let limits = Limits { gap: 1e-4, nodes: 200, ..Limits::default() };
        let solved = optimum::bound(snapshot, &jobs, &mut Highs, &limits).expect("a bound");
        assert!(look.bound >= solved * (1.0 - 2e-4), "{} below the solver's {solved}", look.bound);
        assert!(look.bound <= solved * 1.1, "{} far above the solver's {solved}", look.bound);
        let order: Vec<u32> = jobs.iter().map(|job| job.row).collect();
        let best = optimum(snapshot, &order, &mut Room::new(snapshot), &mut Highs, &Default::default());
        let best = best.expect("an optimum").throughput;
        assert!(look.bound >= best - 1e-6, "{} below a plan that reaches {best}", look.bound);
        self.n_compared += 1;
    }
}

#[test]
fn the_bound_is_never_below_the_optimum_of_the_solver() {
    let cluster = Arc::new(cluster::load("small").expect("built in"));
    let profiles = profile::load("synergy").expect("built in");
    let mut n_compared = 0;
    for (seed, policy) in ["fifo+proportional", "srtf+greedy", "las+tune", "fifo+opt"].into_iter().enumerate()
    {
        let options = WorkloadOptions {
            jobs: Some(60),
            jobs_per_hour: 3.0 + 2.0 * seed as f64,
            split: Split::of(33.0, 33.0, 34.0),
            multi_gpu: seed % 2 == 1,
            seed: seed as u64,
            ..WorkloadOptions::default()
        };
        let workload = Arc::new(generate(&cluster, &profiles, &options).expect("a workload"));
        let inner = ScriptPolicy::load(policy, ScriptLimits::default()).expect("shipped");
        let mut compared =
            Compared { inner, relaxation: Relaxation::default(), n_decisions: 0, n_compared: 0 };
        simulate(
            Arc::clone(&cluster),
            workload,
            Vec::new(),
            &mut compared,
            &RunSettings::default(),
            &mut |_| (),
        )
        .expect("a shipped policy runs");
        n_compared += compared.n_compared;
    }
    assert!(n_compared > 20, "only {n_compared} decisions were compared");
}

/// A long run is looked at as often as a short one, and evenly.
#[test]
fn looks_are_few_and_spread_over_the_run() {
    let cluster = Arc::new(cluster::load("small").expect("built in"));
    let profiles = profile::load("synergy").expect("built in");
    let options = WorkloadOptions { jobs: Some(400), jobs_per_hour: 4.0, ..WorkloadOptions::default() };
    let workload = Arc::new(generate(&cluster, &profiles, &options).expect("a workload"));
    let mut inner = ScriptPolicy::load("las", ScriptLimits::default()).expect("shipped");
    let mut sampled = Sampled::new(&mut inner);
    let ledger = simulate(
        Arc::clone(&cluster),
        workload,
        Vec::new(),
        &mut sampled,
        &RunSettings::default(),
        &mut |_| (),
    )
    .expect("a shipped policy runs");
    let gap = sampled.gap(&cluster).expect("these models depend on CPUs");
    assert!(ledger.n_decisions > 1_000, "{} decisions", ledger.n_decisions);
    assert!((16..=32).contains(&gap.decisions), "{gap:?}");
    assert!(gap.lost > 0.05 && gap.lost < 0.6, "proportional shares leave a lot: {gap:?}");
}
