//! A snapshot that arrives as a series of differences is the one that was sent, whatever happened in between.

#[expect(dead_code, reason = "shared with the other tests of this crate")]
mod common;

use std::sync::Arc;

use common::{Dice, Walker, random_cluster, random_workload};
use rota_core::check::check;
use rota_core::difference::{Received, Sent};
use rota_core::event::Event;
use rota_core::ids::NodeId;
use rota_core::job::JobSpec;
use rota_core::policy::Policy as _;
use rota_core::scheduler::Scheduler;
use rota_core::snapshot::{Guards, Snapshot};
use rota_core::table::Field;
use rota_core::time::{Span, Time};

fn assert_same(sent: &Snapshot, received: &Snapshot, seed: u64) {
    let (mine, theirs) = (&sent.jobs, &received.jobs);
    assert_eq!(
        (mine.len(), mine.n_asking(), mine.n_running()),
        (theirs.len(), theirs.n_asking(), theirs.n_running()),
        "seed {seed}"
    );
    for row in 0..mine.len() {
        assert_eq!(theirs.row(mine.id(row)), Some(row), "seed {seed}");
        assert_eq!(mine.spec(row), theirs.spec(row), "seed {seed}");
        assert_eq!(mine.phase(row), theirs.phase(row), "seed {seed}");
        assert_eq!(mine.size(row), theirs.size(row), "seed {seed}");
        assert_eq!(mine.demand_per_gpu(row), theirs.demand_per_gpu(row), "seed {seed}");
        assert_eq!(mine.allocation(row), theirs.allocation(row), "seed {seed}");
        assert_eq!(mine.incarnation(row), theirs.incarnation(row), "seed {seed}");
        let times = |jobs: &rota_core::table::JobTable| {
            (jobs.started(row), jobs.fetch(row), jobs.restart_cost(row), jobs.gpus()[row])
        };
        assert_eq!(times(mine), times(theirs), "seed {seed}");
    }
    for (field, name, _) in Field::ALL {
        let bits = |column: &[f64]| column.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(mine.column(*field)), bits(theirs.column(*field)), "seed {seed}: {name}");
    }
    let others = |s: &Snapshot| {
        (s.now, s.round, s.cluster.clone(), s.nodes.clone(), s.guards.clone(), s.tenants.clone())
    };
    assert_eq!(others(sent), others(received), "seed {seed}");
}

#[test]
fn what_arrives_is_what_was_sent_while_jobs_and_nodes_come_and_go() {
    for seed in 0..200 {
        let dice = &mut Dice(seed);
        let cluster = random_cluster(dice);
        let workload = random_workload(dice, &cluster, false);
        let guards = Guards { min_run: Span(dice.roll(5) as i64), ..Guards::default() };
        let mut scheduler = Scheduler::new(Arc::clone(&cluster), guards, Span::from_secs(300), Vec::new());
        let (mut sent, mut received) = (Sent::default(), Received::default());
        let mut waiting: Vec<Arc<JobSpec>> = workload.jobs.clone();
        for step in 1..40_i64 {
            let time = Time(step * 1_000_000);
            let mut orders = Vec::new();
            for _ in 0..dice.roll(4) {
                if let Some(spec) = waiting.pop() {
                    scheduler.handle(time, &Event::JobSubmitted(spec), &mut orders);
                }
            }
            let jobs = scheduler.jobs();
            if !jobs.is_empty() && dice.one_in(2) {
                let row = dice.roll(jobs.len() as u64) as usize;
                let (job, incarnation) = (jobs.id(row), jobs.incarnation(row));
                let event = match dice.one_in(2) {
                    true => Event::JobCancelled { job },
                    false => Event::JobFinished { job, incarnation },
                };
                scheduler.handle(time, &event, &mut orders);
            }
            let node = NodeId(dice.roll(cluster.nodes().len() as u64) as u32);
            let event = match dice.roll(8) {
                0 => Some(Event::NodeLost { node }),
                1 => Some(Event::NodeReturned { node }),
                _ => None,
            };
            if let Some(event) = event {
                scheduler.handle(time, &event, &mut orders);
            }
            // A receiver that was killed and started again begins with nothing.
            if dice.one_in(10) {
                (sent, received) = (Sent::default(), Received::default());
            }
            let snapshot = scheduler.snapshot(time);
            let difference = sent.difference(&snapshot);
            let again = received.apply(difference).expect("it fits");
            assert_same(&snapshot, &again, seed);
            let decide = |snapshot: &Snapshot| {
                let mut walker = Walker::random(&mut Dice(seed ^ step as u64));
                walker.decide(snapshot).expect("a walk decides")
            };
            let plan = decide(&snapshot);
            assert_eq!(decide(&again), plan, "seed {seed}");
            let checked = check(&snapshot, plan).expect("a walk's plan is sound");
            drop(snapshot);
            if dice.one_in(2) {
                scheduler.commit(time, checked);
            }
        }
    }
}

#[test]
fn a_difference_that_does_not_fit_is_an_error_and_no_panic() {
    let dice = &mut Dice(1);
    let cluster = random_cluster(dice);
    let workload = random_workload(dice, &cluster, false);
    let mut scheduler = Scheduler::new(cluster, Guards::default(), Span::from_secs(300), Vec::new());
    let mut sent = Sent::default();
    sent.difference(&scheduler.snapshot(Time(0)));
    for spec in &workload.jobs[..4] {
        scheduler.handle(Time(1), &Event::JobSubmitted(Arc::clone(spec)), &mut Vec::new());
    }
    let first = sent.difference(&scheduler.snapshot(Time(1)));
    scheduler.handle(Time(2), &Event::JobCancelled { job: workload.jobs[0].id }, &mut Vec::new());
    let second = sent.difference(&scheduler.snapshot(Time(2)));
    assert!(Received::default().apply(first).is_err(), "nothing was received before");
    assert!(Received::default().apply(second).is_err());
}
