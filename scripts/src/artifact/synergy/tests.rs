//! The driver's own rules, on clusters and workloads small enough to work out by hand.

use std::sync::Arc;

use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::job::{GpuRequest, JobSpec};
use rota_core::ledger::{Ledger, Status};
use rota_core::profile::Profile;
use rota_core::resources::Host;
use rota_core::time::Time;
use rota_core::workload::Workload;

use super::*;
use crate::artifact::fixtures;

/// Arrival in seconds, iterations, GPUs; of a model that takes 1 s for an iteration, or half of it with 6 CPUs.
type Line = (i64, f64, u32);

fn group(count: u32) -> NodeGroup {
    fixtures::group(count, "V100", 8, Host::from_units(24.0, 500.0, 500.0))
}

fn workload(lines: &[Line]) -> Workload {
    let demand_per_gpu = Host::from_units(6.0, 62.5, 62.5);
    let profile = Arc::new(Profile { demand_per_gpu, ..Profile::plain("model", 1.0) });
    let spec = |(index, &(arrival, work, gpus)): (usize, &Line)| {
        let job = fixtures::job(index, &profile, GpuRequest::fixed(gpus), work, arrival);
        JobSpec { name: format!("j{index}").into(), ..job }
    };
    fixtures::workload(lines.iter().enumerate().map(spec))
}

fn run_with(policy: &str, groups: &[NodeGroup], lines: &[Line]) -> Result<Ledger, ArtifactError> {
    let cluster = Arc::new(Cluster::new("test", groups).expect("a cluster"));
    let models = Models::from([("model".to_owned(), Model { iteration_s: 1.0, ideal_speedup: 2.0 })]);
    let scheme = Scheme::parse(policy, Allocation::Greedy).expect(policy);
    let settings = SynergySettings { keeps_timeline: true, ..SynergySettings::default() };
    run(scheme, cluster, &workload(lines), &models, &settings, &mut |_| ())
}

/// Start and finish of every job, in rounds of 300 s; -1 for never.
fn rounds(policy: &str, lines: &[Line]) -> Vec<(i64, i64)> {
    let ledger = run_with(policy, &[group(1)], lines).expect("a run");
    let round = |time: Option<Time>| time.map_or(-1, |t| t.0 / 300_000_000);
    ledger.outcomes.iter().map(|o| (round(o.start), round(o.finish))).collect()
}

#[test]
fn only_whole_iterations_of_a_round_count_and_ends_are_seen_at_its_end() {
    assert_eq!(rounds("FIFO+fair", &[(0, 300.0, 1), (0, 301.0, 1), (1, 1.0, 1)]), [(0, 1), (0, 2), (1, 2)]);
    assert_eq!(
        rounds("FIFO", &[(0, 600.0, 1), (0, 601.0, 1)]),
        [(0, 1), (0, 2)],
        "twice the speed at the ideal demand"
    );
}

#[test]
fn an_idle_gap_does_not_end_the_run() {
    assert_eq!(rounds("FIFO+tune", &[(0, 10.0, 1), (3_001, 10.0, 1)]), [(0, 1), (11, 12)]);
    let ledger = run_with("FIFO+tune", &[group(1)], &[(0, 10.0, 1), (3_001, 10.0, 1)]).expect("a run");
    assert_eq!(
        (ledger.n_decisions, ledger.n_skipped),
        (4, 9),
        "two jobs, and the rounds in which their ends are seen"
    );
}

#[test]
fn a_job_that_fits_no_empty_cluster_is_left_unfinished() {
    let ledger = run_with("SRTF", &[group(1)], &[(0, 10.0, 16), (0, 10.0, 1)]).expect("a run");
    assert_eq!(ledger.outcomes[0].status, Status::Unfinished);
    assert_eq!(ledger.outcomes[0].reason, "does not fit the empty cluster");
    assert_eq!(ledger.outcomes[1].status, Status::Finished);
}

#[test]
fn neighbours_give_back_and_are_paid_at_the_proportional_share() {
    // Three jobs of two GPUs take 12 of 24 CPUs each; the third needs its share back from the first two.
    let lines = [(0, 600.0, 2), (0, 600.0, 2), (0, 600.0, 2)];
    assert_eq!(rounds("FIFO+tune", &lines), [(0, 2), (0, 1), (0, 2)]);
    assert_eq!(rounds("FIFO", &lines), [(0, 1), (0, 1), (1, 2)], "greedy leaves the third out");
    assert_eq!(rounds("FIFO+fair", &lines), [(0, 2), (0, 2), (0, 2)]);
}

#[test]
fn what_a_run_cost_adds_up() {
    let ledger = run_with("FIFO", &[group(1)], &[(0, 1_200.0, 4), (0, 600.0, 4)]).expect("a run");
    let service: Vec<i64> = ledger.outcomes.iter().map(|o| o.service.0 / 1_000_000).collect();
    assert_eq!(service, [2 * 300 * 4, 300 * 4]);
    let worth: Vec<f64> = ledger.samples.iter().map(|sample| sample.gpus_worth).collect();
    assert_eq!(worth[..3], [4.0; 3], "the model's scaling was not measured: every GPU counts");
    assert_eq!(ledger.worth_time_s, 300.0 * 12.0);
    assert_eq!(ledger.gpu_time, i128::from(service.iter().sum::<i64>()) * 1_000_000);
    assert_eq!(ledger.samples[0].cpus.held, 24.0);
    let stretches: Vec<_> =
        ledger.timeline.iter().map(|s| (s.job.0, s.from.0 / 1_000_000, s.to.0 / 1_000_000)).collect();
    assert_eq!(stretches, [(0, 0, 600), (1, 600, 900)], "the second waits for CPUs");
    assert_eq!(ledger.last, Some(Time(900_000_000)));
}

#[test]
fn what_the_original_cannot_do_is_said_in_a_sentence() {
    let message =
        |policy, groups: &[NodeGroup], lines| run_with(policy, groups, lines).expect_err(policy).to_string();
    let small = NodeGroup { n_gpus: 4, ..group(1) };
    assert!(message("FIFO", &[group(2), small], &[(0, 1.0, 1)]).contains("node 2 differs from node 0"));
    assert_eq!(
        message("FIFO", &[group(1)], &[(0, 1.0, 3)]),
        "job j0: asks 3 GPUs, the original knows 1, 2, 4, 8 and 16 only"
    );
    assert!(message("LAS+opt", &[group(1)], &[(0, 1.0, 1)]).starts_with("policy las+opt+first-fit: "));
    let lean = NodeGroup { host: Host::from_units(48.0, 200.0, 500.0), ..group(1) };
    assert!(message("FIFO", &[lean], &[(0, 1.0, 4)]).contains("divides by zero"));
}
