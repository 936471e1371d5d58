//! What must hold on any cluster, workload and policy. A failure prints its seed.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{Answers, Dice, Key, Walker, random_cluster, random_faults, random_workload};
use proptest::prelude::*;
use rota_core::cluster::Cluster;
use rota_core::fill::{Demand, Walk};
use rota_core::ids::TenantId;
use rota_core::ledger::{Ledger, Status};
use rota_core::policy::Policy;
use rota_core::simulation::{RunSettings, simulate};
use rota_core::snapshot::Guards;
use rota_core::time::{Span, Time};
use rota_core::workload::{Fault, Workload};

fn settings() -> RunSettings {
    RunSettings {
        is_paranoid: true,
        keeps_timeline: true,
        max_idle_rounds: 50,
        max_stalled_rounds: 2_000,
        ..RunSettings::default()
    }
}

fn run(
    cluster: &Arc<Cluster>,
    workload: &Arc<Workload>,
    faults: &[Fault],
    policy: &mut dyn Policy,
    settings: &RunSettings,
) -> Ledger {
    simulate(Arc::clone(cluster), Arc::clone(workload), faults.to_vec(), policy, settings, &mut |_| {})
        .expect("a run without errors")
}

fn books(ledger: &Ledger) -> String {
    format!("{:?} {:?} {}", ledger.outcomes, ledger.timeline, ledger.digest)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// `is_paranoid` asserts after every round that nothing is given twice and that gangs are whole.
    #[test]
    fn any_policy_on_any_cluster_ends_every_job_in_exactly_one_state(seed in any::<u64>()) {
        let dice = &mut Dice(seed);
        let cluster = random_cluster(dice);
        let workload = random_workload(dice, &cluster, false);
        let faults = random_faults(dice, &cluster);
        let ledger = run(&cluster, &workload, &faults, &mut Walker::random(dice), &settings());
        for (job, outcome) in workload.jobs.iter().zip(&ledger.outcomes) {
            prop_assert_eq!(outcome.status == Status::Finished, outcome.finish.is_some());
            prop_assert_eq!(outcome.status == Status::Declined, job.gpus.asked > cluster.n_gpus());
            prop_assert_eq!(outcome.status == Status::Finished, outcome.reason.is_empty());
            prop_assert!(outcome.start.is_none_or(|s| s >= job.arrival));
            prop_assert!(outcome.finish.is_none_or(|f| Some(f) > outcome.start));
        }
    }

    #[test]
    fn work_is_conserved_whatever_is_preempted(seed in any::<u64>()) {
        let dice = &mut Dice(seed);
        let cluster = random_cluster(dice);
        let workload = random_workload(dice, &cluster, true);
        let faults = random_faults(dice, &cluster);
        let ledger = run(&cluster, &workload, &faults, &mut Walker::random(dice), &settings());
        for ((job, truth), outcome) in workload.jobs.iter().zip(&workload.truths).zip(&ledger.outcomes) {
            if outcome.status == Status::Finished {
                let ran = outcome.service.as_secs_f64() / f64::from(job.gpus.asked);
                let slack = 2e-6 * f64::from(outcome.preemptions + 2);
                prop_assert!((ran - truth.work).abs() <= slack, "job {} ran {} s for {} s of work", job.id, ran, truth.work);
            }
        }
        let held: i128 = ledger.outcomes.iter().map(|o| i128::from(o.service.0)).sum();
        prop_assert!((held - ledger.gpu_time).abs() <= ledger.outcomes.len() as i128 * 10, "GPU time is counted alike");
    }

    /// Every stretch of the timeline is on a node that was up, and no two overlap on one GPU.
    #[test]
    fn no_gpu_ever_runs_two_jobs(seed in any::<u64>()) {
        let dice = &mut Dice(seed);
        let cluster = random_cluster(dice);
        let workload = random_workload(dice, &cluster, false);
        let faults = random_faults(dice, &cluster);
        let ledger = run(&cluster, &workload, &faults, &mut Walker::random(dice), &settings());
        let mut by_gpu: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for stretch in &ledger.timeline {
            for gpu in stretch.slice.gpus.iter() {
                by_gpu.entry((stretch.slice.node, gpu)).or_default().push((stretch.from, stretch.to));
            }
        }
        for (gpu, mut stretches) in by_gpu {
            stretches.sort();
            prop_assert!(stretches.windows(2).all(|w| w[0].1 <= w[1].0), "{gpu:?}: {stretches:?}");
        }
    }

    #[test]
    fn the_same_run_twice_gives_the_same_books(seed in any::<u64>()) {
        let once = || {
            let dice = &mut Dice(seed);
            let cluster = random_cluster(dice);
            let workload = random_workload(dice, &cluster, false);
            let faults = random_faults(dice, &cluster);
            books(&run(&cluster, &workload, &faults, &mut Walker::random(dice), &settings()))
        };
        prop_assert!(once() == once());
    }

    #[test]
    fn skipping_rounds_changes_no_result(seed in any::<u64>()) {
        assert_skipping_changes_nothing(seed);
    }

    #[test]
    fn no_job_is_preempted_before_its_minimum_run_time(seed in any::<u64>()) {
        assert_minimum_run_time_holds(seed);
    }

    #[test]
    fn a_tenant_never_holds_more_than_its_quota(seed in any::<u64>()) {
        let dice = &mut Dice(seed);
        let cluster = random_cluster(dice);
        let workload = random_workload(dice, &cluster, false);
        let quota = 1 + dice.roll(4) as u32;
        let guards = Guards { quota_gpus: [(TenantId(1), quota)].into(), ..Guards::default() };
        let ledger = run(&cluster, &workload, &[], &mut Walker::random(dice), &RunSettings { guards, ..settings() });
        let mut changes: Vec<(Time, i64)> = Vec::new();
        for stretch in ledger.timeline.iter().filter(|s| workload.jobs[s.job.index()].tenant == TenantId(1)) {
            changes.push((stretch.from, i64::from(stretch.slice.gpus.len())));
            changes.push((stretch.to, -i64::from(stretch.slice.gpus.len())));
        }
        changes.sort();
        let mut held = 0;
        for (time, change) in changes {
            held += change;
            prop_assert!(held <= i64::from(quota), "{held} GPUs at {time}");
        }
    }
}

/// An order by arrival depends on nothing but the set of jobs; fills depend on that and on what is held.
fn assert_skipping_changes_nothing(seed: u64) {
    let dice = &mut Dice(seed);
    let cluster = random_cluster(dice);
    let workload = random_workload(dice, &cluster, false);
    let faults = random_faults(dice, &cluster);
    let walk = Walk {
        demand: if dice.one_in(2) { Demand::Best } else { Demand::FairShare },
        only_selected: dice.one_in(2),
        largest_first: dice.one_in(2),
        stayers_first: dice.one_in(2),
        rearranges: dice.one_in(2),
        tops_up: dice.one_in(2),
        keep_places: !dice.one_in(4),
        ..Walk::default()
    };
    let answers = [Answers::None, Answers::Fair, Answers::Tune][dice.roll(3) as usize];
    let once = |skips_rounds| {
        let mut walker = Walker::new(Key::Arrival, walk.clone(), answers);
        walker.is_steady = true;
        run(&cluster, &workload, &faults, &mut walker, &RunSettings { skips_rounds, ..settings() })
    };
    let (skipping, asking) = (once(true), once(false));
    assert!(books(&skipping) == books(&asking), "{} and {}", skipping.digest, asking.digest);
    assert!(skipping.n_decisions <= asking.n_decisions);
}

/// A node that went and came back long after a job had been given up for too large was once seen by one of the two.
#[test]
fn skipping_rounds_changes_nothing_when_only_faults_are_to_come() {
    assert_skipping_changes_nothing(2_853_455_702_148_828_686);
}

fn assert_minimum_run_time_holds(seed: u64) {
    let dice = &mut Dice(seed);
    let cluster = random_cluster(dice);
    let workload = random_workload(dice, &cluster, true);
    let min_run = Span::from_secs(1_000);
    let guards = Guards { min_run, ..Guards::default() };
    let ledger =
        run(&cluster, &workload, &[], &mut Walker::random(dice), &RunSettings { guards, ..settings() });
    let mut last: BTreeMap<_, (Time, Time)> = BTreeMap::new();
    let mut pieces: Vec<_> = ledger.timeline.iter().map(|s| (s.job, s.from, s.to)).collect();
    pieces.sort();
    pieces.dedup();
    for (job, from, to) in pieces {
        match last.get_mut(&job) {
            Some(run) if run.1 == from => run.1 = to,
            Some(run) => {
                assert!(run.1 - run.0 >= min_run, "job {job} was stopped after {} s", run.1 - run.0);
                *run = (from, to);
            }
            None => drop(last.insert(job, (from, to))),
        }
    }
}

/// A protected job that keeps its host share, where the plan would have cut it, left no room for another's.
#[test]
fn the_minimum_run_time_holds_where_a_share_was_to_be_cut() {
    assert_minimum_run_time_holds(3_231_848_024_470_674_076);
    assert_minimum_run_time_holds(16_416_245_042_655_052_948);
}
