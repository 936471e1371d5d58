//! Facts about failures, one small run each, and what holds for all of them.

#[expect(dead_code, reason = "some helpers are for other tests")]
mod common;

use std::sync::Arc;

use common::{Answers, Dice, Key, Walker, group, job, random_world, workload};
use rota_core::cluster::Cluster;
use rota_core::fault::{Change, Fault};
use rota_core::fill::Walk;
use rota_core::ids::NodeId;
use rota_core::job::{Costs, JobSpec};
use rota_core::ledger::{FaultUse, Ledger, Status};
use rota_core::simulation::{RunSettings, simulate};
use rota_core::time::{Span, Time};
use rota_core::workload::{RecordedEnd, Workload};

fn cluster(nodes: u32, gpus: u32) -> Arc<Cluster> {
    Arc::new(Cluster::new("test", &[group(nodes, gpus, f64::from(gpus) * 3.0)]).expect("a cluster"))
}

fn run(cluster: &Arc<Cluster>, workload: &Arc<Workload>, faults: &[Fault]) -> Ledger {
    let settings = RunSettings { is_paranoid: true, ends_as_recorded: true, ..RunSettings::default() };
    let mut policy = Walker::new(Key::Arrival, Walk::default(), Answers::Tune);
    simulate(Arc::clone(cluster), Arc::clone(workload), faults.to_vec(), &mut policy, &settings, &mut |_| {})
        .expect("a run without errors")
}

fn at(s: i64, node: u32, change: Change) -> Fault {
    Fault { time: Time(s * 1_000_000), node: NodeId(node), change }
}

fn fails(loses_checkpoints: bool) -> Change {
    Change::NodeFails { loses_checkpoints }
}

fn finish_s(ledger: &Ledger, job: usize) -> f64 {
    ledger.outcomes[job].finish.expect("finished").as_secs_f64()
}

fn found(ledger: &Ledger) -> FaultUse {
    ledger.faults.clone().expect("something can fail")
}

fn seconds(gpu_micros: i128) -> f64 {
    gpu_micros as f64 / 1e6
}

fn careful(spec: JobSpec) -> JobSpec {
    let costs = Costs {
        restart: Span::from_secs(60),
        checkpoint: Span::ZERO,
        checkpoint_every: Span::from_secs(400),
    };
    JobSpec { costs: Some(costs), ..spec }
}

#[test]
fn a_gpu_that_fails_stops_its_job_and_no_other() {
    let gpu = 1;
    let faults = [
        at(450, 0, Change::GpuFails { gpu, loses_checkpoints: false }),
        at(5_000, 0, Change::GpuReturns { gpu }),
    ];
    let ledger = run(&cluster(1, 2), &workload(vec![job(0, 0, 1, 1_000.0), job(1, 0, 1, 1_000.0)]), &faults);
    assert_eq!(finish_s(&ledger, 0), 1_000.0);
    assert_eq!(finish_s(&ledger, 1), 1_200.0 + 550.0, "it goes on with the GPU of the other");
    assert_eq!((found(&ledger).gpu_failures, found(&ledger).node_failures, found(&ledger).stops), (1, 0, 1));
    assert_eq!(seconds(found(&ledger).down), 1_750.0 - 450.0, "one GPU until the run ends");
}

#[test]
fn work_after_the_checkpoint_is_lost_and_the_account_says_so() {
    let faults = [at(500, 1, fails(false)), at(2_900, 1, Change::NodeReturns)];
    let ledger = run(&cluster(2, 2), &workload(vec![careful(job(0, 0, 4, 1_000.0))]), &faults);
    assert_eq!(finish_s(&ledger, 0), 3_000.0 + 60.0 + 600.0, "400 s survived");
    let found = found(&ledger);
    assert_eq!(seconds(found.lost), 4.0 * 100.0);
    assert_eq!(seconds(found.overhead), 4.0 * 60.0);
    assert_eq!(seconds(found.down), 2.0 * 2_400.0);
    // Back at 3,000, works from 3,060, and has the 500 s it had after another 100.
    assert_eq!(found.recoveries, [Span::from_secs(3_160 - 500)]);
    assert_eq!((found.stops, found.unrecovered), (1, 0));
}

#[test]
fn a_job_whose_checkpoints_are_lost_begins_again() {
    let faults = [at(900, 0, fails(true)), at(1_000, 0, Change::NodeReturns)];
    let ledger = run(&cluster(1, 1), &workload(vec![careful(job(0, 0, 1, 1_000.0))]), &faults);
    assert_eq!(finish_s(&ledger, 0), 1_200.0 + 60.0 + 1_000.0);
    assert_eq!(seconds(found(&ledger).lost), 900.0);
    assert_eq!(found(&ledger).recoveries, [Span::from_secs(1_260)]);
}

#[test]
fn what_was_kept_over_several_launches_is_lost_with_the_checkpoints() {
    let faults = [
        at(500, 0, fails(false)),
        at(600, 0, Change::NodeReturns),
        at(1_200, 0, fails(true)),
        at(1_300, 0, Change::NodeReturns),
    ];
    let ledger = run(&cluster(1, 1), &workload(vec![careful(job(0, 0, 1, 2_000.0))]), &faults);
    // 100 s of the first launch; then the 400 s kept and the 540 s of the second.
    assert_eq!(seconds(found(&ledger).lost), 100.0 + 400.0 + 540.0);
    assert_eq!(found(&ledger).stops, 2);
}

#[test]
fn a_job_that_is_hit_again_recovers_once_from_the_first_failure_on() {
    let faults = [
        at(500, 0, fails(false)),
        at(510, 0, Change::NodeReturns),
        at(620, 0, fails(false)),
        at(630, 0, Change::NodeReturns),
    ];
    let ledger = run(&cluster(1, 1), &workload(vec![careful(job(0, 0, 1, 2_000.0))]), &faults);
    // 500 s were done; 400 survive both failures, and work goes on at 960.
    assert_eq!(found(&ledger).recoveries, [Span::from_secs(960 + 100 - 500)]);
}

#[test]
fn a_gang_is_as_fast_as_its_slowest_node_and_nobody_is_told() {
    let faults = [at(200, 1, Change::Slows { to: 0.5 }), at(600, 1, Change::Slows { to: 1.0 })];
    let jobs = workload(vec![job(0, 0, 4, 1_000.0), job(1, 2_000, 1, 100.0)]);
    let ledger = run(&cluster(2, 2), &jobs, &faults);
    assert_eq!(finish_s(&ledger, 0), 1_200.0, "200 of 400 s were lost to the slow node");
    assert_eq!((ledger.outcomes[0].preemptions, found(&ledger).slowdowns), (0, 1));
    let elsewhere = run(&cluster(2, 4), &jobs, &faults);
    assert_eq!(finish_s(&elsewhere, 0), 1_000.0, "it does not run on the slow node");
}

#[test]
fn a_job_that_starts_on_a_slow_node_is_slow() {
    let faults = [at(1, 0, Change::Slows { to: 0.25 })];
    let ledger = run(&cluster(1, 1), &workload(vec![job(0, 10, 1, 100.0)]), &faults);
    assert_eq!(finish_s(&ledger, 0), 300.0 + 400.0);
}

#[test]
fn jobs_end_as_they_were_recorded_where_that_is_asked_for() {
    let mut jobs =
        Arc::unwrap_or_clone(workload(vec![job(0, 0, 1, 100.0), job(1, 0, 1, 200.0), job(2, 0, 1, 300.0)]));
    jobs.truths[0].end = RecordedEnd::Failed;
    jobs.truths[1].end = RecordedEnd::Killed;
    jobs.truths[2].end = RecordedEnd::Passed;
    let ledger = run(&cluster(1, 4), &Arc::new(jobs.clone()), &[]);
    let ends: Vec<_> = ledger.outcomes.iter().map(|o| (o.status, o.reason.as_str())).collect();
    assert_eq!(
        ends,
        [
            (Status::Failed, "failed as recorded"),
            (Status::Failed, "killed as recorded"),
            (Status::Finished, "")
        ]
    );
    assert_eq!((finish_s(&ledger, 0), finish_s(&ledger, 1)), (100.0, 200.0), "after the work they had done");
    assert_eq!(seconds(found(&ledger).premature), 300.0);
    let mut policy = Walker::new(Key::Arrival, Walk::default(), Answers::Tune);
    let ledger = simulate(
        cluster(1, 4),
        Arc::new(jobs),
        Vec::new(),
        &mut policy,
        &RunSettings::default(),
        &mut |_| {},
    )
    .expect("runs");
    assert!(ledger.outcomes.iter().all(|outcome| outcome.status == Status::Finished));
    assert_eq!(ledger.faults, None, "nothing can fail");
}

/// Random worlds in which nodes and GPUs fail and slow down: the account adds up.
#[test]
fn no_more_gpu_time_is_wasted_than_was_held_and_every_stop_recovers_or_does_not() {
    for seed in 0..200 {
        let dice = &mut Dice(seed);
        let (cluster, jobs, mut faults) = random_world(dice);
        for _ in 0..dice.roll(8) {
            let node = dice.roll(cluster.nodes().len() as u64) as u32;
            let gpu = dice.roll(u64::from(cluster.nodes()[node as usize].n_gpus)) as u32;
            let (from, lasts) = (dice.roll(20_000) as i64, 1 + dice.roll(5_000) as i64);
            let (begins, ends) = match dice.one_in(2) {
                true => {
                    (Change::GpuFails { gpu, loses_checkpoints: dice.one_in(3) }, Change::GpuReturns { gpu })
                }
                false => (Change::Slows { to: 0.3 }, Change::Slows { to: 1.0 }),
            };
            faults.extend([at(from, node, begins), at(from + lasts, node, ends)]);
        }
        faults.sort_by_key(Fault::rank);
        let ledger = run(&cluster, &jobs, &faults);
        let found = found(&ledger);
        let wasted = [found.lost, found.overhead, found.premature];
        assert!(wasted.iter().all(|part| *part >= 0), "seed {seed}: {found:?}");
        assert!(
            wasted.iter().sum::<i128>() <= ledger.gpu_time,
            "seed {seed}: {found:?} of {}",
            ledger.gpu_time
        );
        let n_recovered = found.recoveries.len() as u64 + found.unrecovered;
        assert!(
            n_recovered <= found.stops && (found.stops == 0) == (n_recovered == 0),
            "seed {seed}: {found:?}"
        );
        assert!(found.recoveries.iter().all(|span| *span >= Span::ZERO), "seed {seed}: {found:?}");
    }
}
