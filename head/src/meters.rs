//! What the head counts and measures about itself, for Prometheus. Figures that the state has anyway are read from it when
//! somebody asks (`web/metrics`).

use std::time::Duration;

use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry};
use rota_core::time::Span;

use crate::decider::Effort;

/// Counters and histograms.
#[derive(Clone)]
pub(crate) struct Meters {
    pub(crate) registry: Registry,
    rounds: IntCounterVec,
    decision: Histogram,
    policy: Histogram,
    operations: IntCounter,
    solves: IntCounter,
    solving: prometheus::Counter,
    records: IntCounter,
    commit: Histogram,
    commit_failures: IntCounter,
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundEnd {
    Planned,
    Overtaken,
    Failed,
}

impl Default for Meters {
    fn default() -> Self {
        let registry = Registry::new();
        let counter = |name: &str, about: &str| IntCounter::new(name, about).expect("a name");
        let histogram = |name: &str, about: &str| {
            let buckets = vec![
                0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
            ];
            Histogram::with_opts(HistogramOpts::new(name, about).buckets(buckets)).expect("a name")
        };
        let rounds = Opts::new("rota_rounds_total", "Rounds that were decided, by how they ended.");
        let meters = Meters {
            rounds: IntCounterVec::new(rounds, &["result"]).expect("a name"),
            decision: histogram(
                "rota_decision_duration_seconds",
                "Real time from the beginning of a round until its plan was there.",
            ),
            policy: histogram("rota_policy_duration_seconds", "Real time that policies took to decide."),
            operations: counter(
                "rota_policy_operations_total",
                "Operations that the scripts of policies took, native work included.",
            ),
            solves: counter("rota_solver_calls_total", "Models that policies had solved."),
            solving: prometheus::Counter::new("rota_solver_seconds_total", "Real time that solvers took.")
                .expect("a name"),
            records: counter("rota_journal_records_total", "Lines that were written to the journal."),
            commit: histogram("rota_journal_commit_duration_seconds", "Real time that writing a batch took."),
            commit_failures: counter(
                "rota_journal_commit_failures_total",
                "Batches that the disk refused to take.",
            ),
            registry,
        };
        for result in ["planned", "overtaken", "failed"] {
            meters.rounds.with_label_values(&[result]).reset();
        }
        let all: [Box<dyn prometheus::core::Collector>; 9] = [
            Box::new(meters.rounds.clone()),
            Box::new(meters.decision.clone()),
            Box::new(meters.policy.clone()),
            Box::new(meters.operations.clone()),
            Box::new(meters.solves.clone()),
            Box::new(meters.solving.clone()),
            Box::new(meters.records.clone()),
            Box::new(meters.commit.clone()),
            Box::new(meters.commit_failures.clone()),
        ];
        for collector in all {
            meters.registry.register(collector).expect("each name once");
        }
        meters
    }
}

impl Meters {
    /// A round ended.
    pub(crate) fn round(&self, end: RoundEnd) {
        let result = match end {
            RoundEnd::Planned => "planned",
            RoundEnd::Overtaken => "overtaken",
            RoundEnd::Failed => "failed",
        };
        self.rounds.with_label_values(&[result]).inc();
    }

    /// The decider answered after this real time.
    pub(crate) fn decided(&self, after: Span, effort: &Effort) {
        self.decision.observe(after.as_secs_f64().max(0.0));
        self.policy.observe(effort.took.as_secs_f64());
        self.operations.inc_by(effort.operations);
        self.solves.inc_by(effort.n_solves);
        self.solving.inc_by(effort.solving.as_secs_f64());
    }

    /// A batch was written.
    pub(crate) fn written(&self, n_records: usize, took: Duration) {
        self.records.inc_by(n_records as u64);
        self.commit.observe(took.as_secs_f64());
    }

    /// A batch could not be written.
    pub(crate) fn refused(&self) {
        self.commit_failures.inc();
    }
}
