//! Facts about the engine, one small run each.

#[expect(dead_code, reason = "random worlds are for the properties")]
mod common;

use std::sync::Arc;

use common::{Answers, Key, Walker, group, job, profile, workload};
use rota_core::allocation::{Allocation, GpuSet, Slice, WHOLE_GPU};
use rota_core::check::{PlanViolation, check};
use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::event::{Command, Event, StopCause};
use rota_core::fault::Fault;
use rota_core::fill::Walk;
use rota_core::ids::{DatasetId, Incarnation, JobId, NodeId};
use rota_core::job::{Costs, JobSpec};
use rota_core::ledger::{Ledger, Status};
use rota_core::place::{FirstFit, LocalData, Place};
use rota_core::plan::{Hold, Plan, Run, Verdict};
use rota_core::policy::{Policy, PolicyError};
use rota_core::resources::Host;
use rota_core::scheduler::Scheduler;
use rota_core::simulation::{RunSettings, Simulation, SimulationError, simulate};
use rota_core::snapshot::{Guards, Snapshot};
use rota_core::time::{Span, Time};
use rota_core::workload::{Dataset, Workload};

fn cluster(nodes: u32, gpus: u32) -> Arc<Cluster> {
    Arc::new(Cluster::new("test", &[group(nodes, gpus, f64::from(gpus) * 3.0)]).expect("a cluster"))
}

fn run(
    cluster: &Arc<Cluster>,
    workload: &Arc<Workload>,
    faults: &[Fault],
    policy: &mut dyn Policy,
) -> Ledger {
    let settings = RunSettings { is_paranoid: true, keeps_timeline: true, ..RunSettings::default() };
    simulate(Arc::clone(cluster), Arc::clone(workload), faults.to_vec(), policy, &settings, &mut |_| {})
        .expect("a run without errors")
}

fn by(key: Key) -> Walker {
    Walker::new(key, Walk::default(), Answers::Tune)
}

fn finish_s(ledger: &Ledger, job: usize) -> f64 {
    ledger.outcomes[job].finish.expect("finished").as_secs_f64()
}

#[test]
fn a_preempted_job_keeps_its_work() {
    let jobs = workload(vec![job(0, 0, 1, 1_000.0), job(1, 300, 1, 300.0)]);
    let ledger = run(&cluster(1, 1), &jobs, &[], &mut by(Key::Remaining));
    assert_eq!((ledger.outcomes[0].preemptions, ledger.outcomes[1].preemptions), (1, 0));
    assert_eq!(
        (finish_s(&ledger, 1), finish_s(&ledger, 0)),
        (600.0, 1_300.0),
        "300 s done, 700 s left at 600"
    );
}

#[test]
fn a_restart_costs_time_and_the_first_start_does_not() {
    let costs =
        Costs { restart: Span::from_secs(50), checkpoint: Span::from_secs(10), checkpoint_every: Span::ZERO };
    let costly = JobSpec { costs: Some(costs), ..job(0, 0, 1, 1_000.0) };
    let ledger =
        run(&cluster(1, 1), &workload(vec![costly, job(1, 300, 1, 300.0)]), &[], &mut by(Key::Remaining));
    assert_eq!(finish_s(&ledger, 0), 1_360.0);
}

#[test]
fn a_gang_that_loses_a_node_is_stopped_whole_and_loses_what_came_after_its_checkpoint() {
    let costs = Costs { checkpoint_every: Span::from_secs(400), ..Costs::default() };
    let gang = JobSpec { costs: Some(costs), ..job(0, 0, 4, 1_000.0) };
    let at = |s: i64, change: fn(Time, NodeId) -> Fault| change(Time(s * 1_000_000), NodeId(1));
    let ledger = run(
        &cluster(2, 2),
        &workload(vec![gang]),
        &[at(500, Fault::down), at(2_900, Fault::up)],
        &mut by(Key::Arrival),
    );
    assert_eq!(
        ledger.timeline.iter().map(|s| (s.slice.node.0, s.to.as_secs_f64())).take(2).collect::<Vec<_>>(),
        [(0, 500.0), (1, 500.0)]
    );
    assert_eq!(finish_s(&ledger, 0), 3_000.0 + 600.0, "400 s survived, back at the round after 2,900");
}

#[test]
fn a_job_that_can_never_run_is_declined_with_the_reason() {
    let ledger = run(
        &cluster(2, 4),
        &workload(vec![job(0, 0, 9, 10.0), job(1, 0, 8, 10.0)]),
        &[],
        &mut by(Key::Arrival),
    );
    assert_eq!(ledger.outcomes[0].status, Status::Declined);
    assert_eq!(ledger.outcomes[0].reason, "asks for 9 GPUs, the cluster has 8");
    assert_eq!(ledger.outcomes[1].status, Status::Finished);
}

#[test]
fn a_run_ends_when_its_window_has() {
    let jobs = workload((0..20).map(|i| job(i, i64::from(i) * 300, 1, 250.0)).collect());
    let settings = RunSettings { window: Some((2, 5)), ..RunSettings::default() };
    let ledger = simulate(cluster(1, 1), jobs, Vec::new(), &mut by(Key::Arrival), &settings, &mut |_| {})
        .expect("runs");
    let finished: Vec<_> = (0..20).filter(|i| ledger.outcomes[*i].status == Status::Finished).collect();
    assert_eq!(finished, [0, 1, 2, 3, 4]);
    assert_eq!(ledger.outcomes[19].reason, "had not arrived when the run ended");
}

#[test]
fn neighbours_give_back_what_exceeds_their_share() {
    let hungry = |id, arrival| JobSpec { profile: profile(true), ..job(id, arrival, 1, 1e6) };
    let jobs = workload((0..4).map(|i| hungry(i, i64::from(i) * 300)).collect());
    let settings = RunSettings { keeps_timeline: true, ..RunSettings::default() };
    let mut policy = by(Key::Arrival);
    let mut simulation = Simulation::new(cluster(1, 4), jobs, Vec::new(), &mut policy, &settings);
    for _ in 0..5 {
        simulation.step().expect("runs");
    }
    let ledger = simulation.close();
    let last: Vec<f64> = ledger.timeline.iter().rev().take(4).map(|s| s.slice.host.cpus()).collect();
    let first = ledger.timeline.iter().find(|s| s.job == JobId(0)).expect("ran").slice.host.cpus();
    assert_eq!(first, 9.0, "alone, a job gets all it asks for");
    assert!(
        last.iter().sum::<f64>() <= 12.0 && last.iter().all(|cpus| *cpus >= 3.0),
        "together, each has its share: {last:?}"
    );
}

fn data_cluster() -> Arc<Cluster> {
    let groups = [NodeGroup { cache_bytes: 10_000_000_000, fetch_bps: 10_000_000, ..group(2, 2, 12.0) }];
    Arc::new(Cluster::new("data", &groups).expect("a cluster"))
}

fn data_jobs(jobs: Vec<JobSpec>) -> Arc<Workload> {
    let mut jobs = Arc::unwrap_or_clone(workload(jobs));
    jobs.datasets = vec![Dataset { name: "images".into(), bytes: 1_000_000_000, home: None }];
    Arc::new(jobs)
}

#[test]
fn data_is_fetched_once_for_each_node() {
    let reader = |id, arrival| JobSpec { dataset: Some(DatasetId(0)), ..job(id, arrival, 1, 150.0) };
    let ledger =
        run(&data_cluster(), &data_jobs(vec![reader(0, 0), reader(1, 600)]), &[], &mut by(Key::Arrival));
    assert_eq!(finish_s(&ledger, 0), 250.0, "100 s to fetch 1 GB at 10 MB/s, then 150 s of work");
    assert_eq!(finish_s(&ledger, 1), 750.0, "it is there already");
}

#[test]
fn local_data_placement_goes_where_the_data_is() {
    let reader = |id, arrival| JobSpec { dataset: Some(DatasetId(0)), ..job(id, arrival, 1, 100.0) };
    let jobs = vec![job(0, 0, 2, 100.0), reader(1, 0), reader(2, 600)];
    let where_last = |policy: &mut Walker| {
        let ledger = run(&data_cluster(), &data_jobs(jobs.clone()), &[], policy);
        (ledger.timeline.iter().find(|s| s.job == JobId(2)).expect("ran").slice.node.0, finish_s(&ledger, 2))
    };
    assert_eq!(where_last(&mut by(Key::Arrival)), (0, 800.0), "first-fit fetches again");
    let mut near = by(Key::Arrival);
    near.placement = Box::new(LocalData(FirstFit));
    assert_eq!(where_last(&mut near), (1, 700.0), "node 1 has it from job 1");
}

#[test]
fn local_data_placement_knows_where_a_data_set_lives() {
    let reader = JobSpec { dataset: Some(DatasetId(0)), ..job(0, 0, 1, 100.0) };
    let mut jobs = Arc::unwrap_or_clone(data_jobs(vec![reader]));
    jobs.datasets[0].home = Some(NodeId(1));
    let jobs = Arc::new(jobs);
    let ends_with = |placement: Box<dyn Place>| {
        let mut policy = by(Key::Arrival);
        policy.placement = placement;
        let ledger = run(&data_cluster(), &jobs, &[], &mut policy);
        (ledger.timeline[0].slice.node.0, finish_s(&ledger, 0))
    };
    assert_eq!(ends_with(Box::new(FirstFit)), (0, 200.0));
    assert_eq!(ends_with(Box::new(LocalData(FirstFit))), (1, 100.0), "nothing to fetch at home");
}

/// No cache, and a fetch takes longer than a round: jobs that take turns would fetch for ever and never work.
#[test]
fn a_job_is_not_stopped_before_what_it_fetched_was_of_use() {
    let groups = [NodeGroup { cache_bytes: 0, fetch_bps: 2_500_000, ..group(1, 1, 3.0) }];
    let cluster = Arc::new(Cluster::new("slow", &groups).expect("a cluster"));
    let reader = |id| JobSpec { dataset: Some(DatasetId(0)), ..job(id, 0, 1, 600.0) };
    let ledger = run(&cluster, &data_jobs(vec![reader(0), reader(1)]), &[], &mut by(Key::Attained));
    let ran: Vec<(u32, f64, f64)> = ledger
        .timeline
        .iter()
        .map(|stretch| (stretch.job.0, stretch.from.as_secs_f64(), stretch.to.as_secs_f64()))
        .collect();
    // 400 s to fetch 1 GB at 2.5 MB/s, then a round of 300 s: the next decision after that is at 900 s.
    assert_eq!(ran, [(0, 0.0, 900.0), (1, 900.0, 1_800.0), (0, 1_800.0, 2_300.0), (1, 2_400.0, 2_900.0)]);
    assert_eq!(ledger.data.map(|data| data.waited.as_secs_f64()), Some(1_600.0));
}

/// A scheduler with jobs 0 (running on node 0, GPUs 0 and 1), 1 (waiting, 2 GPUs) and 2 (asking, 1 GPU).
fn three_jobs(guards: Guards) -> Scheduler {
    let mut scheduler = Scheduler::new(cluster(2, 4), guards, Span::from_secs(300), Vec::new());
    let now = Time::ZERO;
    let submit = |scheduler: &mut Scheduler, spec: JobSpec| {
        scheduler.handle(now, &Event::JobSubmitted(Arc::new(spec)), &mut Vec::new());
    };
    submit(&mut scheduler, job(0, 0, 2, 1_000.0));
    submit(&mut scheduler, job(1, 0, 2, 1_000.0));
    let plan = Plan {
        verdicts: vec![(JobId(0), Verdict::Admit), (JobId(1), Verdict::Admit)],
        run: vec![take(0, 0, 0b11)],
        ..Plan::default()
    };
    let snapshot = scheduler.snapshot(now);
    let checked = check(&snapshot, plan).expect("a sound plan");
    drop(snapshot);
    scheduler.commit(now, checked);
    submit(&mut scheduler, job(2, 0, 1, 1_000.0));
    scheduler
}

fn take(job: u32, node: u32, gpus: u64) -> Run {
    let slice = Slice {
        node: NodeId(node),
        gpus: GpuSet(gpus),
        share: WHOLE_GPU,
        host: Host::from_units(1.0, 1.0, 1.0),
    };
    Run { job: JobId(job), what: Hold::Take(Allocation { slices: [slice].into_iter().collect() }) }
}

fn keep(job: u32) -> Run {
    Run { job: JobId(job), what: Hold::Keep }
}

#[test]
fn a_plan_that_cannot_be_is_refused_and_says_why() {
    let mut scheduler = three_jobs(Guards::default());
    let snapshot = scheduler.snapshot(Time::ZERO);
    let too_rich = |mut run: Run| {
        let Hold::Take(allocation) = &mut run.what else { unreachable!("made by take") };
        allocation.slices[0].host = Host::from_units(99.0, 1.0, 1.0);
        run
    };
    let cases: Vec<(Vec<Run>, &str)> = vec![
        (vec![take(7, 0, 1)], "job 7: is not active, so a plan cannot run it"),
        (vec![take(2, 0, 1)], "job 2: is to run but was not admitted"),
        (vec![keep(1)], "job 1: is to keep what it holds but does not run"),
        (vec![keep(0), take(0, 0, 0b11)], "job 0: is planned twice"),
        (vec![take(1, 0, 1)], "job 1: is given 1 GPUs, asks for 2"),
        (vec![take(1, 9, 0b11)], "job 1: is placed on node 9, which does not exist"),
        (vec![take(1, 1, 0b110000)], "job 1: is given GPUs [4, 5] of node 1: it has fewer"),
        (
            vec![keep(0), take(1, 0, 0b110)],
            "node 0: GPU 1 is given away beyond its capacity, the last part of it to job 1",
        ),
        (
            vec![too_rich(take(1, 0, 0b11))],
            "node 0: has 12 CPUs, 500 GB, 500 MB/s, the plan gives 99 CPUs, 1 GB, 1 MB/s, the last of it to job 1",
        ),
    ];
    for (run, expected) in cases {
        let violation = check(&snapshot, Plan { run, ..Plan::default() }).expect_err(expected);
        assert_eq!(violation.to_string(), expected);
    }
    let judged = Plan { verdicts: vec![(JobId(1), Verdict::Admit)], ..Plan::default() };
    assert_eq!(
        check(&snapshot, judged).expect_err("admitted already"),
        PlanViolation::NotAsking { job: JobId(1) }
    );
}

#[test]
fn only_what_differs_is_ordered_and_stops_come_first() {
    let mut scheduler = three_jobs(Guards::default());
    let snapshot = scheduler.snapshot(Time::ZERO);
    let commands = |run: Vec<Run>| {
        let checked = check(&snapshot, Plan { run, ..Plan::default() }).expect("a sound plan");
        rota_core::reconcile::reconcile(&snapshot.jobs, checked)
    };
    assert_eq!(commands(vec![keep(0)]), []);
    assert_eq!(commands(vec![take(0, 0, 0b11)]), [], "the same again");
    let stop = Command::Stop { job: JobId(0), incarnation: Incarnation(1), cause: StopCause::Preempted };
    assert_eq!(commands(vec![]), std::slice::from_ref(&stop));
    assert!(
        matches!(commands(vec![take(1, 0, 0b11)]).as_slice(), [first, Command::Start { job: JobId(1), .. }] if *first == stop)
    );
    let moved = commands(vec![take(0, 1, 0b11)]);
    assert!(
        matches!(moved.as_slice(), [first, Command::Start { incarnation: Incarnation(2), .. }] if *first == stop)
    );
}

#[test]
fn reports_of_an_older_launch_are_dropped() {
    let mut scheduler = three_jobs(Guards::default());
    let late = Event::JobFinished { job: JobId(0), incarnation: Incarnation(0) };
    scheduler.handle(Time(5), &late, &mut Vec::new());
    assert!(scheduler.jobs().row(JobId(0)).is_some(), "a report of launch 0 says nothing about launch 1");
    let current = Event::JobFinished { job: JobId(0), incarnation: Incarnation(1) };
    scheduler.handle(Time(5), &current, &mut Vec::new());
    assert!(scheduler.jobs().row(JobId(0)).is_none());
}

#[test]
fn a_protected_job_goes_on_even_if_a_plan_written_by_hand_forgets_it() {
    let mut scheduler = three_jobs(Guards { min_run: Span::from_secs(600), ..Guards::default() });
    let snapshot = scheduler.snapshot(Time::from_secs_f64(300.0));
    let mut plan = Plan { run: vec![take(1, 0, 0b11)], ..Plan::default() };
    rota_core::guards::mend(&snapshot, &mut plan);
    assert_eq!(plan.run, [keep(0)]);
    assert_eq!(plan.notes, ["guard: job 0 has run for less than the minimum and goes on"]);
}

#[test]
fn a_closed_node_keeps_its_jobs_and_has_nothing_for_others() {
    let mut scheduler = three_jobs(Guards::default());
    let event = |scheduler: &mut Scheduler, event: Event| scheduler.handle(Time(5), &event, &mut Vec::new());
    event(&mut scheduler, Event::NodeClosed { node: NodeId(0) });
    let snapshot = scheduler.snapshot(Time(5));
    let usable = |snapshot: &Snapshot| snapshot.nodes.usable(&snapshot.cluster.nodes()[0]);
    assert_eq!(usable(&snapshot), GpuSet(0b11), "what its job holds");
    let mut plan = Plan { run: vec![take(1, 0, 0b11)], ..Plan::default() };
    rota_core::guards::mend(&snapshot, &mut plan);
    assert_eq!(plan.run, [keep(0)]);
    drop(snapshot);
    event(&mut scheduler, Event::JobFinished { job: JobId(0), incarnation: Incarnation(1) });
    assert_eq!(usable(&scheduler.snapshot(Time(6))), GpuSet::NONE);
    event(&mut scheduler, Event::NodeOpened { node: NodeId(0) });
    assert_eq!(usable(&scheduler.snapshot(Time(7))), GpuSet(0b1111));
}

#[test]
fn a_job_that_was_taken_out_comes_back_with_its_launches_and_its_service() {
    let mut scheduler = three_jobs(Guards::default());
    let now = Time::from_secs_f64(100.0);
    let spec = Arc::clone(scheduler.jobs().spec(scheduler.jobs().row(JobId(0)).expect("known")));
    let kept = scheduler.kept(now, JobId(0)).expect("known");
    assert_eq!((kept.incarnation, kept.attained_s, kept.service_s), (Incarnation(1), 100.0, 200.0));
    let mut orders = Vec::new();
    scheduler.handle(now, &Event::JobWithdrawn { job: JobId(0) }, &mut orders);
    let (job, incarnation) = (JobId(0), Incarnation(1));
    assert_eq!(orders, [Command::Stop { job, incarnation, cause: StopCause::Withdrawn }]);
    assert!(scheduler.jobs().row(job).is_none());
    scheduler.handle(now + Span::from_secs(50), &Event::JobReturned { spec, kept }, &mut orders);
    let row = scheduler.jobs().row(job).expect("back");
    assert_eq!(scheduler.jobs().incarnation(row), incarnation);
    assert_eq!(scheduler.kept(now + Span::from_secs(60), job), Some(kept), "it does not run");
    scheduler.assert_sane();
}

#[test]
fn a_policy_that_fails_ends_the_run_with_its_words() {
    struct Broken;
    impl Policy for Broken {
        fn decide(&mut self, _: &Snapshot) -> Result<Plan, PolicyError> {
            Err(PolicyError { message: "mine.rhai:3:7: no such column".into() })
        }
    }
    let error = simulate(
        cluster(1, 1),
        workload(vec![job(0, 7, 1, 1.0)]),
        Vec::new(),
        &mut Broken,
        &RunSettings::default(),
        &mut |_| {},
    );
    let error = error.expect_err("the policy is broken");
    assert!(matches!(error, SimulationError::Policy { .. }));
    assert_eq!(error.to_string(), "at 300 s, decision 0: mine.rhai:3:7: no such column");
}

#[test]
fn a_policy_that_starts_nothing_does_not_run_forever() {
    struct Lazy;
    impl Policy for Lazy {
        fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
            let mut plan = Plan::default();
            rota_core::simulation::admit_all(snapshot, &mut plan);
            Ok(plan)
        }
    }
    let settings = RunSettings { max_idle_rounds: 20, ..RunSettings::default() };
    let ledger = simulate(
        cluster(1, 1),
        workload(vec![job(0, 0, 1, 1.0)]),
        Vec::new(),
        &mut Lazy,
        &settings,
        &mut |_| {},
    )
    .expect("it ends");
    assert_eq!(ledger.outcomes[0].reason, "was waiting when the run ended");
}

#[test]
fn a_policy_that_moves_a_job_faster_than_it_can_start_does_not_run_forever() {
    struct Restless;
    impl Policy for Restless {
        fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
            let node = (snapshot.now.0 / 300_000_000 % 2) as u32;
            let mut plan = Plan { run: vec![take(0, node, 1)], ..Plan::default() };
            rota_core::simulation::admit_all(snapshot, &mut plan);
            Ok(plan)
        }
    }
    let costs = Costs { restart: Span::from_secs(400), ..Costs::default() };
    let jobs = workload(vec![JobSpec { costs: Some(costs), ..job(0, 0, 1, 1_000.0) }]);
    let settings = RunSettings { max_stalled_rounds: 50, ..RunSettings::default() };
    let ledger =
        simulate(cluster(2, 1), jobs, Vec::new(), &mut Restless, &settings, &mut |_| {}).expect("it ends");
    assert_eq!(ledger.outcomes[0].status, Status::Unfinished);
    assert_eq!(ledger.n_decisions, 51);
}

/// A scheduler with these jobs, admitted, and the plan of a policy that runs them by arrival.
fn scheduler_with(nodes: u32, gpus: u32, jobs: Vec<JobSpec>) -> Scheduler {
    let mut scheduler =
        Scheduler::new(cluster(nodes, gpus), Guards::default(), Span::from_secs(60), Vec::new());
    for spec in jobs {
        scheduler.handle(Time::ZERO, &Event::JobSubmitted(Arc::new(spec)), &mut Vec::new());
    }
    scheduler
}

fn round(scheduler: &mut Scheduler, now: Time, key: Key) -> Vec<Command> {
    let decision = rota_core::round::decide(&scheduler.snapshot(now), &mut by(key)).expect("it decides");
    let commands = scheduler.commit(now, decision.checked);
    scheduler.assert_sane();
    commands
}

#[test]
fn a_parked_job_is_not_seen_and_comes_back_with_what_is_known_of_it() {
    let mut scheduler = scheduler_with(1, 1, vec![job(0, 0, 1, 1_000.0), job(1, 0, 1, 1_000.0)]);
    round(&mut scheduler, Time::ZERO, Key::Arrival);
    scheduler.park(JobId(0));
    assert!(scheduler.jobs().row(JobId(0)).is_some(), "a job that runs is not put aside");
    let failed = Event::JobRequeued { job: JobId(0), incarnation: Incarnation(1), done: 7.0 };
    scheduler.handle(Time(1), &failed, &mut Vec::new());
    scheduler.park(JobId(0));
    let started = round(&mut scheduler, Time(2), Key::Arrival);
    assert!(matches!(&started[..], [Command::Start { job: JobId(1), .. }]), "{started:?}");
    scheduler.resume(JobId(0));
    let row = scheduler.jobs().row(JobId(0)).expect("it is back");
    assert_eq!((scheduler.jobs().incarnation(row), scheduler.jobs().done(row)), (Incarnation(1), 7.0));
    assert!(scheduler.parked().is_empty());
    scheduler.assert_sane();
}

#[test]
fn on_a_node_that_cannot_be_reached_jobs_go_on_and_none_starts() {
    let jobs = [job(0, 0, 1, 1_000.0), job(1, 10, 1, 10.0), job(2, 10, 1, 10.0), job(3, 10, 1, 10.0)];
    let mut scheduler = scheduler_with(2, 2, vec![jobs[0].clone()]);
    round(&mut scheduler, Time::ZERO, Key::Remaining);
    let row = scheduler.jobs().row(JobId(0)).expect("it runs");
    let node = scheduler.jobs().allocation(row).slices[0].node;
    scheduler.cut_off(node);
    for spec in &jobs[1..] {
        scheduler.handle(Time(1), &Event::JobSubmitted(Arc::new(spec.clone())), &mut Vec::new());
    }
    // The shortest first: it would stop the long one for the third of the short ones.
    for command in round(&mut scheduler, Time(2), Key::Remaining) {
        match command {
            Command::Start { job, allocation, .. } => {
                assert!(allocation.slices.iter().all(|slice| slice.node != node), "job {job} starts there");
            }
            Command::Stop { job, .. } => panic!("job {job} is stopped"),
            _ => {}
        }
    }
    assert_eq!(scheduler.jobs().n_running(), 3);
    scheduler.handle(Time(3), &Event::NodeReturned { node }, &mut Vec::new());
    round(&mut scheduler, Time(4), Key::Remaining);
    assert_eq!(scheduler.jobs().n_running(), 4, "its free GPU is used again");
}
