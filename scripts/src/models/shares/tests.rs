//! The model against one by one and against every plan there is.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::ids::{JobId, TenantId};
use rota_core::job::{Costs, Deadline, GpuRequest, JobSpec};
use rota_core::profile::{Profile, ScaleCurve};
use rota_core::resources::Host;
use rota_core::snapshot::{Guards, NodeStates};
use rota_core::table::JobTable;
use rota_core::time::Span;
use rota_solvers::Highs;

use super::*;

const N_GPUS: u32 = 4;
const ROUND_S: i64 = 10;

/// A job: its speeds by GPUs, work, deadline in rounds.
#[derive(Clone, Debug)]
struct Wish {
    levels: Vec<(u32, f64)>,
    work: f64,
    rounds: i64,
}

fn snapshot(wishes: &[Wish]) -> Snapshot {
    let group = NodeGroup {
        count: 1,
        racks: 1,
        gpu_type: "A100".into(),
        n_gpus: N_GPUS,
        gpu_mem_bytes: 0,
        host: Host::from_units(64.0, 256.0, 0.0),
        cache_bytes: 0,
        fetch_bps: 0,
    };
    let cluster = Arc::new(Cluster::new("four", &[group]).expect("a cluster"));
    let mut table = JobTable::default();
    for (index, wish) in wishes.iter().enumerate() {
        let curve = ScaleCurve { gpu_type: String::new(), batch: 64, points: wish.levels.clone() };
        let profile = Arc::new(Profile { scale: vec![curve], batch: 64, ..Profile::plain("m", 1.0) });
        let spec = JobSpec {
            id: JobId::from(index),
            name: index.to_string().into(),
            tenant: TenantId(0),
            priority: 0,
            profile,
            batch: 64,
            gpus: GpuRequest {
                asked: wish.levels[0].0,
                levels: wish.levels.iter().map(|level| level.0).collect(),
            },
            gpu_type: None,
            estimated_work: wish.work,
            arrival: Time::ZERO,
            deadline: Deadline::Strict(Time::ZERO + Span::from_secs(wish.rounds * ROUND_S)),
            dataset: None,
            costs: Some(Costs::default()),
        };
        table.insert(Arc::new(spec), Host::NONE, 1.0, 1.0);
    }
    Snapshot {
        now: Time::ZERO,
        round: Span::from_secs(ROUND_S),
        jobs: Arc::new(table),
        nodes: Arc::new(NodeStates::all_up(&cluster)),
        cluster,
        guards: Arc::new(Guards::default()),
        tenants: Arc::default(),
    }
}

fn random_wishes(random: &mut StdRng, n_jobs: usize, most_rounds: i64) -> Vec<Wish> {
    let choices: [&[(u32, f64)]; 5] = [
        &[(1, 1.0)],
        &[(2, 2.0)],
        &[(1, 1.0), (2, 1.8)],
        &[(1, 1.0), (2, 1.8), (4, 3.0)],
        &[(1, 1.0), (4, 3.0)],
    ];
    (0..n_jobs)
        .map(|_| Wish {
            levels: choices[random.random_range(0..choices.len())].to_vec(),
            work: f64::from(random.random_range(1..=12_u32)) * 5.0,
            rounds: random.random_range(1..=most_rounds),
        })
        .collect()
}

fn ask(wishes: &[Wish], pace: Pace) -> Found {
    let view = snapshot(wishes);
    let newcomers: Vec<Newcomer> = (0..wishes.len() as u32).map(|row| Newcomer { row, worth: 1.0 }).collect();
    let settings = ShareSettings { pace, ..ShareSettings::default() };
    most(&view, &Ahead::new(&view), &newcomers, &mut Highs, &settings).expect("sane numbers")
}

/// Never more GPUs than there are; every job that was let in does its work by its deadline.
fn audit(wishes: &[Wish], found: &Found) {
    let planned = found.ahead.planned();
    assert_eq!(planned.iter().filter(|planned| !planned.is_late).count() as f64, found.worth);
    let mut done = vec![0.0; planned.len()];
    for second in 0..200 {
        let now = Time::ZERO + Span::from_secs(second);
        let mut used = 0;
        for (planned, done) in planned.iter().zip(&mut done) {
            let step = planned.plan.steps().iter().rev().find(|step| step.0 <= now);
            let gpus = step.map_or(0, |step| if now < planned.plan.end() { step.1 } else { 0 });
            used += gpus;
            if now < planned.deadline {
                let levels = &wishes[planned.row as usize].levels;
                *done += levels.iter().find(|level| level.0 == gpus).map_or(0.0, |level| level.1);
            }
        }
        assert!(used <= N_GPUS, "{used} GPUs at {second} s for {wishes:?}");
    }
    for (planned, done) in planned.iter().zip(done).filter(|(planned, _)| !planned.is_late) {
        assert!(done >= planned.work() - 1e-6, "row {}: {done} done of {wishes:?}", planned.row);
    }
}

/// The most jobs that any choice of levels in every round lets in.
fn brute_force(wishes: &[Wish], n_rounds: usize) -> usize {
    let subsets = 0..1_usize << wishes.len();
    let members = |set: usize| (0..wishes.len()).filter(move |job| set & (1 << job) != 0);
    let fits = |set: &usize| {
        let chosen: Vec<&Wish> = members(*set).map(|job| &wishes[job]).collect();
        let mut left: Vec<f64> = chosen.iter().map(|wish| wish.work).collect();
        can_finish(&chosen, &mut left, 0, n_rounds)
    };
    subsets.filter(fits).map(usize::count_ones).max().unwrap_or(0) as usize
}

fn can_finish(wishes: &[&Wish], left: &mut Vec<f64>, round: usize, n_rounds: usize) -> bool {
    if left.iter().all(|left| *left <= 1e-9) {
        return true;
    }
    let is_late = |(wish, left): (&&Wish, &f64)| *left > 1e-9 && wish.rounds <= round as i64;
    if round == n_rounds || wishes.iter().zip(left.iter()).any(is_late) {
        return false;
    }
    choose(wishes, left, round, n_rounds, 0, N_GPUS)
}

fn choose(
    wishes: &[&Wish],
    left: &mut Vec<f64>,
    round: usize,
    n_rounds: usize,
    job: usize,
    free: u32,
) -> bool {
    let Some(wish) = wishes.get(job) else { return can_finish(wishes, left, round + 1, n_rounds) };
    for &(gpus, rate) in wish.levels.iter().filter(|level| level.0 <= free) {
        let before = left[job];
        if before > 1e-9 && wish.rounds > round as i64 {
            left[job] -= rate * ROUND_S as f64;
            if choose(wishes, left, round, n_rounds, job + 1, free - gpus) {
                left[job] = before;
                return true;
            }
            left[job] = before;
        }
    }
    choose(wishes, left, round, n_rounds, job + 1, free)
}

#[test]
fn between_one_by_one_and_the_best_of_all_plans() {
    let (mut n_better, mut n_best) = (0, 0);
    for seed in 0..120 {
        let wishes = random_wishes(&mut StdRng::seed_from_u64(seed), 4, 3);
        let best = brute_force(&wishes, 3) as f64;
        for pace in [Pace::Parts, Pace::Whole] {
            let found = ask(&wishes, pace);
            audit(&wishes, &found);
            assert!(found.worth >= found.greedy, "seed {seed}: {}", found.note());
            if pace == Pace::Parts {
                assert!(found.bound >= best, "seed {seed}: bound {} of {wishes:?}, best {best}", found.bound);
                n_better += usize::from(found.worth > found.greedy);
                n_best += usize::from(found.worth >= best);
            }
        }
    }
    println!(
        "better than one by one {n_better} times of 120, as good as the best plan in rounds {n_best} times"
    );
    assert!(n_better >= 5 && n_best >= 110, "{n_better} times better, {n_best} times best");
}

#[test]
fn larger_crowds_are_never_let_in_less_than_one_by_one() {
    for seed in 0..40 {
        let wishes = random_wishes(&mut StdRng::seed_from_u64(1_000 + seed), 14, 15);
        let found = ask(&wishes, Pace::Parts);
        audit(&wishes, &found);
        assert!(found.greedy <= found.worth && found.worth <= found.bound, "seed {seed}: {}", found.note());
    }
}

#[test]
fn promises_are_kept_whoever_asks() {
    let promised = Wish { levels: vec![(1, 1.0), (2, 1.8), (4, 3.0)], work: 88.0, rounds: 3 };
    let small = Wish { levels: vec![(1, 1.0)], work: 5.0, rounds: 1 };
    let wishes: Vec<Wish> = std::iter::once(promised).chain(std::iter::repeat_n(small, 6)).collect();
    let view = snapshot(&wishes);
    let mut base = Ahead::new(&view);
    base.reserve(&view, &[0], Way::LeastShare);
    let newcomers: Vec<Newcomer> = (1..wishes.len() as u32).map(|row| Newcomer { row, worth: 1.0 }).collect();
    let found = most(&view, &base, &newcomers, &mut Highs, &ShareSettings::default()).expect("sane numbers");
    assert!(found.ahead.of(0).is_some_and(|planned| !planned.is_late), "{}", found.note());
    assert_eq!((found.worth, found.bound), (0.0, 0.0), "the promise needs nearly all of the cluster");
}

#[test]
fn slots_are_cut_where_deadlines_are_and_thinned_far_away() {
    let wishes: Vec<Wish> =
        (1..=40).map(|rounds| Wish { levels: vec![(1, 1.0)], work: 5.0, rounds }).collect();
    let view = snapshot(&wishes);
    let jobs = Ahead::new(&view).unplanned(&view, &(0..40).collect::<Vec<_>>());
    let ends = |most| -> Vec<i64> {
        slot_ends(&view, &jobs, most).iter().map(|end| end.0 / (ROUND_S * 1_000_000)).collect()
    };
    assert_eq!(ends(100), (1..=40).collect::<Vec<_>>());
    let few = ends(8);
    assert_eq!((few.len(), few[0], few[7]), (8, 1, 40), "{few:?}");
    assert!(few.windows(3).all(|three| three[2] - three[1] >= three[1] - three[0] - 1), "{few:?}");
}
