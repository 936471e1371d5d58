//! What must hold on any cluster, workload and policy. A failure prints its seed.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{
    Answers, Dice, Key, Sharer, Walker, group, job, random_cluster, random_faults, random_workload,
    random_world, workload,
};
use proptest::prelude::*;
use rota_core::allocation::WHOLE_GPU;
use rota_core::check::check;
use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::event::{Command, Event, StopCause};
use rota_core::fault::Fault;
use rota_core::fill::{Demand, Sequence, Walk};
use rota_core::ids::{DatasetId, TenantId};
use rota_core::job::JobSpec;
use rota_core::ledger::{Ledger, Status};
use rota_core::policy::Policy;
use rota_core::scheduler::Scheduler;
use rota_core::simulation::{RunSettings, simulate};
use rota_core::snapshot::Guards;
use rota_core::time::{Span, Time};
use rota_core::workload::{Dataset, Workload};

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

fn written(ledger: &Ledger) -> String {
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

    /// Fetching takes several rounds here, so that jobs are stopped while they wait.
    #[test]
    fn no_job_waits_for_data_longer_than_it_holds_gpus_and_no_fetch_is_faster_than_its_rate(seed in any::<u64>()) {
        let dice = &mut Dice(seed);
        let (rate, bytes, n_datasets) = (1_000_000, 1_000_000_000, 1 + dice.roll(4));
        let (n_nodes, n_gpus) = (1 + dice.roll(3), 1 + dice.roll(3));
        let node = group(n_nodes as u32, n_gpus as u32, 24.0);
        let groups = [NodeGroup { cache_bytes: bytes * dice.roll(3), fetch_bps: rate, ..node }];
        let cluster = Arc::new(Cluster::new("fetching", &groups).expect("a cluster"));
        let jobs = (0..12).map(|id| JobSpec {
            dataset: Some(DatasetId(dice.roll(n_datasets) as u32)),
            ..job(id, dice.roll(60) as i64 + 60 * i64::from(id), 1, 1.0 + dice.roll(3_000) as f64)
        });
        let dataset = |n: u64| Dataset { name: n.to_string(), bytes, home: None };
        let datasets = (0..n_datasets).map(dataset).collect();
        let workload = Arc::new(Workload { datasets, ..Arc::unwrap_or_clone(workload(jobs.collect())) });
        let mut walker = Walker::new(Key::Attained, Walk::default(), Answers::Tune);
        let ledger = run(&cluster, &workload, &[], &mut walker, &settings());
        let data = ledger.data.expect("data sets are in play");
        prop_assert!(i128::from(data.waited.0) <= ledger.gpu_time, "{:?} of {} GPU us", data, ledger.gpu_time);
        // Also of a run that was given up, because jobs took turns faster than they could fetch.
        let end = ledger.samples.last().map(|sample| sample.time).max(ledger.last);
        let ran_s = end.map_or(0.0, |end| (end - Time::ZERO).as_secs_f64());
        // Each set is on its way to a cache once at a time, and each GPU's job may have one that passes through.
        let most = (n_nodes * (n_gpus + n_datasets) * rate) as f64 * ran_s;
        prop_assert!(data.fetched_bytes as f64 <= most, "{:?} in {} s", data, ran_s);
    }

    /// No two stretches of the timeline overlap on one GPU.
    #[test]
    fn no_gpu_ever_runs_two_jobs(seed in any::<u64>()) {
        let dice = &mut Dice(seed);
        let (cluster, workload, faults) = random_world(dice);
        let ledger = run(&cluster, &workload, &faults, &mut Walker::random(dice), &settings());
        assert_no_gpu_is_given_twice(&ledger);
    }

    #[test]
    fn the_same_run_twice_gives_the_same_ledger(seed in any::<u64>()) {
        let once = || {
            let dice = &mut Dice(seed);
            let (cluster, workload, faults) = random_world(dice);
            written(&run(&cluster, &workload, &faults, &mut Walker::random(dice), &settings()))
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

    /// Elastic jobs change their size from round to round, gangs are bound to GPU types, and nodes come and go.
    #[test]
    fn every_gang_has_a_size_and_a_gpu_type_that_its_job_allows(seed in any::<u64>()) {
        let dice = &mut Dice(seed);
        let (cluster, workload, faults) = random_world(dice);
        let mut walker = Walker::random(dice);
        walker.elastic = Some(seed);
        let ledger = run(&cluster, &workload, &faults, &mut walker, &settings());
        let mut gangs: BTreeMap<_, u32> = BTreeMap::new();
        for stretch in &ledger.timeline {
            let job = &workload.jobs[stretch.job.index()];
            let gpu_type = cluster.gpu_type_of(stretch.slice.node);
            prop_assert!(job.gpu_type.is_none_or(|t| t == gpu_type), "job {} runs on another type", job.id);
            *gangs.entry((stretch.job, stretch.from, stretch.to)).or_default() += stretch.slice.gpus.len();
        }
        for ((job, from, to), gpus) in gangs {
            let request = &workload.jobs[job.index()].gpus;
            prop_assert!(request.allows(gpus), "job {job} had {gpus} GPUs from {from} to {to}, {request:?}");
        }
        for (job, outcome) in workload.jobs.iter().zip(&ledger.outcomes) {
            let can_run = job.gpus.min() <= cluster.n_gpus_of(job.gpu_type);
            prop_assert_eq!(outcome.status == Status::Declined, !can_run);
        }
        assert_no_gpu_is_given_twice(&ledger);
    }

    /// Progress is paid by the share: half a GPU for an hour is as much work as a whole one for half an hour.
    #[test]
    fn shares_of_a_gpu_add_up_to_one_at_most_and_work_is_conserved(seed in any::<u64>()) {
        let dice = &mut Dice(seed);
        let cluster = random_cluster(dice);
        let workload = random_workload(dice, &cluster, true);
        let faults = random_faults(dice, &cluster);
        let ledger = run(&cluster, &workload, &faults, &mut Sharer(seed), &settings());
        assert_no_gpu_is_given_twice(&ledger);
        for ((job, truth), outcome) in workload.jobs.iter().zip(&workload.truths).zip(&ledger.outcomes) {
            if outcome.status == Status::Finished {
                let ran = outcome.service.as_secs_f64() / f64::from(job.gpus.asked);
                let slack = 2e-6 * f64::from(outcome.preemptions + 2);
                prop_assert!((ran - truth.work).abs() <= slack, "job {} ran {} s for {} s of work", job.id, ran, truth.work);
            }
        }
    }

    /// The simulated world loses whole nodes only; single GPUs are lost by live clusters, so the scheduler is driven
    /// directly. `assert_sane` looks for jobs on bad GPUs and for anything given twice.
    #[test]
    fn a_lost_gpu_stops_exactly_the_jobs_that_hold_it(seed in any::<u64>()) {
        let dice = &mut Dice(seed);
        let (cluster, workload, _) = random_world(dice);
        let datasets = workload.datasets.clone();
        let mut scheduler = Scheduler::new(Arc::clone(&cluster), Guards::default(), Span::from_secs(300), datasets);
        let mut walker = Walker::random(dice);
        let mut arrivals = workload.jobs.iter();
        for round in 0..40 {
            let now = Time(round * 300_000_000);
            for spec in arrivals.by_ref().take(dice.roll(4) as usize) {
                scheduler.handle(now, &Event::JobSubmitted(Arc::clone(spec)), &mut Vec::new());
            }
            for _ in 0..dice.roll(4) {
                let node = &cluster.nodes()[dice.roll(cluster.nodes().len() as u64) as usize];
                let (node, gpu) = (node.id, dice.roll(u64::from(node.n_gpus)) as u32);
                if dice.one_in(2) {
                    scheduler.handle(now, &Event::GpuReturned { node, gpu }, &mut Vec::new());
                    continue;
                }
                let jobs = scheduler.jobs();
                let holds = |row: &usize| {
                    jobs.allocation(*row).slices.iter().any(|s| s.node == node && s.gpus.contains(gpu))
                };
                let mut holders: Vec<_> = (0..jobs.len()).filter(holds).map(|row| jobs.id(row)).collect();
                holders.sort_unstable();
                let mut orders = Vec::new();
                scheduler.handle(now, &Event::GpuLost { node, gpu }, &mut orders);
                let mut stopped = Vec::new();
                for order in &orders {
                    match order {
                        Command::Stop { job, cause: StopCause::NodeLost, .. } => stopped.push(*job),
                        other => prop_assert!(false, "{other:?} for the loss of a GPU"),
                    }
                }
                stopped.sort_unstable();
                prop_assert_eq!(stopped, holders);
                scheduler.assert_sane();
            }
            let snapshot = scheduler.snapshot(now);
            let plan = walker.decide(&snapshot).expect("a plan");
            let checked = check(&snapshot, plan).expect("a plan that keeps the rules");
            drop(snapshot);
            scheduler.commit(now, checked);
            scheduler.assert_sane();
        }
    }
}

/// Stretches on one GPU never add up to more than the whole of it.
fn assert_no_gpu_is_given_twice(ledger: &Ledger) {
    let mut by_gpu: BTreeMap<_, Vec<(Time, i64)>> = BTreeMap::new();
    for stretch in &ledger.timeline {
        for gpu in stretch.slice.gpus.iter() {
            let changes = by_gpu.entry((stretch.slice.node, gpu)).or_default();
            changes.push((stretch.from, i64::from(stretch.slice.share)));
            changes.push((stretch.to, -i64::from(stretch.slice.share)));
        }
    }
    for (gpu, mut changes) in by_gpu {
        changes.sort_unstable();
        let mut given = 0;
        for (time, change) in changes {
            given += change;
            assert!(given <= i64::from(WHOLE_GPU), "{gpu:?}: {given} thousandths at {time}");
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
        packs: if dice.one_in(2) { Sequence::LargestFirst } else { Sequence::Queue },
        stayers_first: dice.one_in(2),
        rearranges: dice.one_in(2).then_some(Sequence::Queue),
        tops_up: dice.one_in(2).then_some(Sequence::Queue),
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
    assert!(written(&skipping) == written(&asking), "{} and {}", skipping.digest, asking.digest);
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
