//! Two jobs on the same GPUs at the same time: what a plan may say, how fast they are, what is counted.

#[expect(dead_code, reason = "other tests need more of it")]
mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{Dice, group, job, workload};
use proptest::prelude::*;
use rota_core::allocation::{Allocation, BESIDE, GpuSet, Slice, WHOLE_GPU};
use rota_core::check::check;
use rota_core::cluster::Cluster;
use rota_core::event::{Command, Event};
use rota_core::ids::NodeId;
use rota_core::job::JobSpec;
use rota_core::ledger::{Ledger, Status};
use rota_core::plan::{Hold, Plan, Run};
use rota_core::policy::{Policy, PolicyError};
use rota_core::profile::{Beside, Profile};
use rota_core::resources::Host;
use rota_core::scheduler::Scheduler;
use rota_core::simulation::{RunSettings, admit_all, simulate};
use rota_core::snapshot::{Guards, Snapshot};
use rota_core::table::JobPhase;
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;

const MODELS: [&str; 3] = ["a", "b", "c"];

/// Iterations per second of a model beside another, on so many GPUs; `c` does not fit beside itself.
fn rate_beside(model: &str, mate: &str, gpus: u32) -> f64 {
    let at = |name: &str| MODELS.iter().position(|model| *model == name).expect("a model") as f64;
    if (model, mate) == ("c", "c") {
        0.0
    } else {
        0.5 + 0.1 * at(model) + 0.03 * at(mate) + 0.01 * f64::from(gpus)
    }
}

/// One iteration per second alone.
fn model(name: &str) -> Arc<Profile> {
    let rates = |gpus| MODELS.map(|mate| (mate.to_owned(), 0, rate_beside(name, mate, gpus)));
    let beside = |gpus| Beside {
        gpu_type: "V100".into(),
        gpus,
        batch: 0,
        rates: rates(gpus).into_iter().filter(|(_, _, rate)| *rate > 0.0).collect(),
    };
    Arc::new(Profile { beside: (1..=4).map(beside).collect(), ..Profile::plain(name, 1.0) })
}

fn job_of(name: &str, id: u32, arrival_s: i64, gpus: u32, work_s: f64) -> JobSpec {
    JobSpec { profile: model(name), ..job(id, arrival_s, gpus, work_s) }
}

fn cluster(nodes: u32, gpus: u32) -> Arc<Cluster> {
    Arc::new(Cluster::new("test", &[group(nodes, gpus, 12.0)]).expect("a cluster"))
}

fn slice(node: u32, gpus: u64, share: u16) -> Slice {
    Slice { node: NodeId(node), gpus: GpuSet(gpus), share, host: Host::NONE }
}

fn take(job: u32, slices: &[Slice]) -> Run {
    Run {
        job: rota_core::ids::JobId(job),
        what: Hold::Take(Allocation { slices: slices.iter().copied().collect() }),
    }
}

/// Jobs that ask for admission, all at time 0.
fn scheduler_with(jobs: impl IntoIterator<Item = JobSpec>) -> Scheduler {
    let mut scheduler = Scheduler::new(cluster(2, 4), Guards::default(), Span::from_secs(300), Vec::new());
    for job in jobs {
        scheduler.handle(Time::ZERO, &Event::JobSubmitted(Arc::new(job)), &mut Vec::new());
    }
    scheduler
}

fn planned(snapshot: &Snapshot, run: Vec<Run>) -> Plan {
    let mut plan = Plan { run, ..Plan::default() };
    admit_all(snapshot, &mut plan);
    plan
}

#[test]
fn a_plan_may_put_two_jobs_on_the_same_gpus_if_it_is_known_how_fast_they_are_then() {
    let jobs = [("a", 2), ("b", 2), ("c", 2), ("c", 2), ("a", 1), ("a", 4), ("b", 4)];
    let jobs = jobs.into_iter().zip(0..).map(|((name, gpus), id)| job_of(name, id, 0, gpus, 1e3));
    let snapshot = scheduler_with(jobs).snapshot(Time::ZERO);
    let verdict = |run: Vec<Run>| match check(&snapshot, planned(&snapshot, run)) {
        Ok(_) => String::new(),
        Err(violation) => violation.to_string(),
    };
    let beside = |job, gpus| take(job, &[slice(0, gpus, BESIDE)]);
    assert_eq!(verdict(vec![beside(0, 0b11), beside(1, 0b11)]), "");
    assert_eq!(verdict(vec![beside(0, 0b11)]), "", "alone");
    let wide = [slice(0, 0b11, BESIDE), slice(1, 0b1100, BESIDE)];
    assert_eq!(verdict(vec![take(5, &wide), take(6, &wide)]), "", "on two nodes");
    for (run, expected) in [
        (
            vec![beside(2, 0b11), beside(3, 0b11)],
            "job 3: cannot run beside job 2 on node 0: how fast they are together was not measured",
        ),
        (
            vec![beside(0, 0b11), beside(4, 0b1)],
            "job 4: cannot run beside job 0 on node 0: one has GPUs that the other has not",
        ),
        (
            vec![beside(0, 0b11), beside(1, 0b110)],
            "job 1: cannot run beside job 0 on node 0: one has GPUs that the other has not",
        ),
        (
            vec![beside(0, 0b11), beside(1, 0b11), beside(2, 0b11)],
            "node 0: GPU 0 is given away beyond its capacity, the last part of it to job 2",
        ),
        (
            vec![beside(0, 0b11), take(1, &[slice(0, 0b11, WHOLE_GPU)])],
            "node 0: GPU 0 is given away beyond its capacity, the last part of it to job 1",
        ),
        (
            vec![take(1, &[slice(0, 0b11, WHOLE_GPU)]), beside(0, 0b110)],
            "node 0: GPU 1 is given away beyond its capacity, the last part of it to job 0",
        ),
        (
            vec![take(0, &[slice(0, 0b11, 300)]), beside(1, 0b11)],
            "node 0: GPU 0 is given away beyond its capacity, the last part of it to job 1",
        ),
        (
            vec![beside(0, 0b11), take(1, &[slice(0, 0b11, 300)])],
            "node 0: GPU 0 is given away beyond its capacity, the last part of it to job 1",
        ),
        (
            vec![take(5, &[slice(0, 0b11, BESIDE), slice(1, 0b11, WHOLE_GPU)])],
            "job 5: is given GPUs [0, 1] of node 1: a job has all its GPUs beside another, or none",
        ),
    ] {
        assert_eq!(verdict(run), expected);
    }
}

#[test]
fn a_mate_comes_and_goes_without_a_restart_of_the_other() {
    let mut scheduler = scheduler_with([job_of("a", 0, 0, 2, 1e3), job_of("b", 1, 0, 2, 1e3)]);
    let mut decide = |at_s: i64, run: Vec<Run>| {
        let now = Time(at_s * 1_000_000);
        let snapshot = scheduler.snapshot(now);
        let done: Vec<f64> = (0..2).map(|row| (snapshot.jobs.done(row) * 1e3).round() / 1e3).collect();
        let checked = check(&snapshot, planned(&snapshot, run)).expect("sound");
        drop(snapshot);
        let commands = scheduler.commit(now, checked);
        scheduler.assert_sane();
        let of_first = |command: &&Command| match command {
            Command::Start { job, .. } | Command::Stop { job, .. } => job.0 == 0,
            _ => false,
        };
        (done, commands.iter().filter(of_first).count())
    };
    let (alone, beside) =
        (|job| take(job, &[slice(0, 0b11, WHOLE_GPU)]), |job| take(job, &[slice(0, 0b11, BESIDE)]));
    assert_eq!(decide(0, vec![alone(0)]), (vec![0.0, 0.0], 1), "it starts");
    assert_eq!(decide(100, vec![beside(0), beside(1)]), (vec![100.0, 0.0], 0));
    // 0.55 and 0.62 of an iteration in a second beside each other.
    assert_eq!(decide(200, vec![alone(0)]), (vec![155.0, 62.0], 0));
    assert_eq!(decide(300, vec![alone(0)]), (vec![255.0, 62.0], 0));
}

/// Pairs jobs at random: some run alone, some beside another, some wait; those that run sometimes stay as they are.
struct Pairer(u64);

impl Policy for Pairer {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let (jobs, dice) = (&snapshot.jobs, &mut Dice(self.0 ^ snapshot.now.0 as u64));
        let mut rows: Vec<usize> = (0..jobs.len()).collect();
        rows.sort_by_key(|row| (jobs.phase(*row) != JobPhase::Running, jobs.id(*row)));
        let mut free: Vec<GpuSet> =
            snapshot.cluster.nodes().iter().map(|node| snapshot.nodes.usable(node)).collect();
        // Who may get a mate: the row and where it is.
        let mut open: Vec<(usize, Slice)> = Vec::new();
        let mut plan = Plan::default();
        for row in rows {
            let gpus = jobs.gpus()[row];
            let is_measured = |other: usize, at: &Slice| {
                let allocation = Allocation { slices: [*at].into_iter().collect() };
                jobs.gpus()[other] == gpus
                    && jobs.spec(row).rate_beside(jobs.spec(other), &allocation, &snapshot.cluster) > 0.0
            };
            let held = jobs.allocation(row).slices.first().copied();
            let stays = held.filter(|held| held.gpus.is_within(free[held.node.index()]) && !dice.one_in(4));
            let mate = open.iter().position(|(other, at)| is_measured(*other, at)).filter(|_| dice.one_in(2));
            let slice = match (mate, stays) {
                (Some(at), _) => open.swap_remove(at).1,
                (None, Some(held)) => {
                    let share = if dice.one_in(2) { BESIDE } else { WHOLE_GPU };
                    Slice { share, ..held }
                }
                (None, None) => {
                    let Some(node) = free.iter().position(|free| free.len() >= gpus) else { continue };
                    let share = if dice.one_in(3) { WHOLE_GPU } else { BESIDE };
                    slice(node as u32, free[node].lowest(gpus).0, share)
                }
            };
            if mate.is_none() {
                let free = &mut free[slice.node.index()];
                *free = free.without(slice.gpus);
                if slice.is_beside() {
                    open.push((row, slice));
                }
            }
            plan.run.push(take(jobs.id(row).0, &[slice]));
        }
        admit_all(snapshot, &mut plan);
        Ok(plan)
    }
}

fn random_jobs(dice: &mut Dice) -> Arc<Workload> {
    let mut now = 0;
    let one = |id: u32| {
        now += dice.roll(600) as i64;
        let name = MODELS[dice.roll(3) as usize];
        job_of(name, id, now, 1 + dice.roll(2) as u32, 50.0 + dice.roll(4_000) as f64)
    };
    workload((0..24).map(one).collect())
}

fn run(jobs: &Arc<Workload>, seed: u64) -> Ledger {
    let settings = RunSettings { is_paranoid: true, keeps_timeline: true, ..RunSettings::default() };
    simulate(cluster(2, 4), Arc::clone(jobs), Vec::new(), &mut Pairer(seed), &settings, &mut |_| {})
        .expect("a run")
}

/// What each job did, counted anew from who was where and when.
fn work_done(ledger: &Ledger, jobs: &Workload) -> Vec<f64> {
    let mut done = vec![0.0; jobs.jobs.len()];
    for stretch in &ledger.timeline {
        let others: Vec<_> = ledger
            .timeline
            .iter()
            .filter(|other| other.job != stretch.job && other.slice.node == stretch.slice.node)
            .filter(|other| !other.slice.gpus.and(stretch.slice.gpus).is_empty())
            .filter(|other| other.from < stretch.to && other.to > stretch.from)
            .collect();
        let mut alone_s = (stretch.to - stretch.from).as_secs_f64();
        let spec = &jobs.jobs[stretch.job.index()];
        for other in others {
            let both_s = (stretch.to.min(other.to) - stretch.from.max(other.from)).as_secs_f64();
            let mate = &jobs.jobs[other.job.index()];
            alone_s -= both_s;
            done[stretch.job.index()] +=
                both_s * rate_beside(&spec.profile.name, &mate.profile.name, spec.gpus.asked);
        }
        done[stretch.job.index()] += alone_s;
    }
    done
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn work_is_paid_at_the_speed_that_was_measured_beside_whoever_was_there(seed in any::<u64>()) {
        let jobs = random_jobs(&mut Dice(seed));
        let ledger = run(&jobs, seed);
        let mut n_beside = 0;
        for ((outcome, truth), done) in ledger.outcomes.iter().zip(&jobs.truths).zip(work_done(&ledger, &jobs)) {
            prop_assert_eq!(outcome.status, Status::Finished);
            prop_assert!((done - truth.work).abs() < 1e-3, "{done} of {}", truth.work);
            n_beside += usize::from(outcome.service < outcome.ran);
        }
        prop_assert!(n_beside > 0, "no job had a mate");
        let mut by_gpu: BTreeMap<_, Vec<(Time, i64)>> = BTreeMap::new();
        for stretch in &ledger.timeline {
            for gpu in stretch.slice.gpus.iter() {
                let share = i64::from(stretch.slice.thousandths());
                by_gpu.entry((stretch.slice.node, gpu)).or_default().extend([(stretch.from, share), (stretch.to, -share)]);
            }
        }
        for mut changes in by_gpu.into_values() {
            changes.sort_unstable();
            changes.iter().fold(0, |given, (_, change)| {
                assert!(given + change <= i64::from(WHOLE_GPU));
                given + change
            });
        }
    }

    #[test]
    fn the_same_pairs_twice_give_the_same_run(seed in any::<u64>()) {
        let jobs = random_jobs(&mut Dice(seed));
        prop_assert_eq!(run(&jobs, seed).digest, run(&jobs, seed).digest);
    }
}
