//! ElasticFlow's admission as a MILP: against brute force, and never below a greedy plan.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_solvers::elasticflow_shares::{
    Admission, ShareGoal, ShareJob, ShareLevel, SharePlan, ShareProblem, solve_shares,
};
use rota_solvers::{Highs, Limits, SolveStatus, check};

fn random_problem(random: &mut StdRng, n_jobs: usize, n_slots: usize, gpus: &[u32]) -> ShareProblem {
    let mut job = || {
        let speed: f64 = random.random_range(0.5..2.0);
        let level = |&gpus: &u32| ShareLevel { gpus, work: speed * f64::from(gpus).powf(0.7) };
        let first_slot = random.random_range(0..n_slots);
        ShareJob {
            levels: gpus.iter().map(level).collect(),
            work: random.random_range(0.5..4.0),
            first_slot,
            deadline_slot: random.random_range(first_slot + 1..=n_slots + 1),
            worth: 1.0,
            admission: Admission::Open,
        }
    };
    let jobs = (0..n_jobs).map(|_| job()).collect();
    ShareProblem { capacity: (0..n_slots).map(|_| random.random_range(1..=4)).collect(), jobs }
}

/// Work done, GPUs within capacity, windows kept; returns jobs admitted and GPU slots spent.
fn audit(problem: &ShareProblem, plan: &SharePlan) -> (usize, u32) {
    for (t, &capacity) in problem.capacity.iter().enumerate() {
        assert!(plan.gpus.iter().map(|gpus| gpus[t]).sum::<u32>() <= capacity, "slot {t} is oversubscribed");
    }
    for ((job, gpus), &is_admitted) in problem.jobs.iter().zip(&plan.gpus).zip(&plan.admitted) {
        let mut work = 0.0;
        for (t, &n_gpus) in gpus.iter().enumerate().filter(|&(_, &n_gpus)| n_gpus > 0) {
            assert!(is_admitted && t >= job.first_slot && t < job.deadline_slot, "{job:?} runs in slot {t}");
            work += job.levels.iter().find(|level| level.gpus == n_gpus).unwrap().work;
        }
        assert!(!is_admitted || work >= job.work * (1.0 - 1e-9), "{job:?} admitted with {work} done");
    }
    let n_admitted = plan.admitted.iter().filter(|&&is_admitted| is_admitted).count();
    (n_admitted, plan.gpus.iter().flatten().sum())
}

/// Most jobs admitted, then fewest GPU slots, over every plan: per job all ways to run, joined by capacity.
fn brute_force(problem: &ShareProblem) -> (usize, u32) {
    let ways: Vec<Vec<Vec<u32>>> = problem.jobs.iter().map(|job| ways_to_finish(problem, job)).collect();
    let mut best = (0, 0);
    extend(&ways, &mut problem.capacity.clone(), (0, 0), &mut best);
    best
}

fn ways_to_finish(problem: &ShareProblem, job: &ShareJob) -> Vec<Vec<u32>> {
    let n_slots = problem.capacity.len();
    let base = job.levels.len() + 1;
    let mut ways = Vec::new();
    for code in 0..base.pow(n_slots as u32) {
        let levels = (0..n_slots).map(|t| code / base.pow(t as u32) % base);
        let mut gpus = vec![0; n_slots];
        let mut work = 0.0;
        let mut is_inside = true;
        for (t, level) in levels.enumerate().filter(|&(_, level)| level > 0) {
            gpus[t] = job.levels[level - 1].gpus;
            work += job.levels[level - 1].work;
            is_inside &= t >= job.first_slot && t < job.deadline_slot;
        }
        if is_inside && work >= job.work {
            ways.push(gpus);
        }
    }
    ways
}

fn extend(ways: &[Vec<Vec<u32>>], free: &mut Vec<u32>, so_far: (usize, u32), best: &mut (usize, u32)) {
    let Some((first, rest)) = ways.split_first() else {
        if so_far.0 > best.0 || (so_far.0 == best.0 && so_far.1 < best.1) {
            *best = so_far;
        }
        return;
    };
    extend(rest, free, so_far, best);
    for way in first {
        if way.iter().zip(&*free).all(|(gpus, free)| gpus <= free) {
            free.iter_mut().zip(way).for_each(|(free, gpus)| *free -= gpus);
            let spent = way.iter().sum::<u32>();
            extend(rest, free, (so_far.0 + 1, so_far.1 + spent), best);
            free.iter_mut().zip(way).for_each(|(free, gpus)| *free += gpus);
        }
    }
}

#[test]
fn random_share_problems_agree_with_brute_force() {
    for seed in 0..150 {
        let mut random = StdRng::seed_from_u64(seed);
        let problem = random_problem(&mut random, 3, 3, &[1, 2, 4]);
        let answer = solve_shares(&problem, &mut Highs, &Limits::default(), None).unwrap();
        assert_eq!(answer.admit.status, SolveStatus::Optimal, "seed {seed}");
        assert_eq!(answer.save.as_ref().unwrap().status, SolveStatus::Optimal, "seed {seed}");
        let plan = answer.plan.unwrap();
        assert_eq!(audit(&problem, &plan), brute_force(&problem), "seed {seed} {problem:?}");
    }
}

/// Earliest deadline first, each job at the fewest GPUs that finish it in what is free.
fn greedy(problem: &ShareProblem) -> SharePlan {
    let n_slots = problem.capacity.len();
    let mut free = problem.capacity.clone();
    let mut plan = SharePlan {
        admitted: vec![false; problem.jobs.len()],
        gpus: vec![vec![0; n_slots]; problem.jobs.len()],
    };
    let mut order: Vec<usize> = (0..problem.jobs.len()).collect();
    order.sort_by_key(|&j| problem.jobs[j].deadline_slot);
    for j in order {
        let job = &problem.jobs[j];
        for level in &job.levels {
            let mut gpus = vec![0; n_slots];
            let mut work = 0.0;
            for t in job.first_slot..job.deadline_slot.min(n_slots) {
                if free[t] >= level.gpus && work < job.work {
                    gpus[t] = level.gpus;
                    work += level.work;
                }
            }
            if work >= job.work {
                free.iter_mut().zip(&gpus).for_each(|(free, gpus)| *free -= gpus);
                (plan.admitted[j], plan.gpus[j]) = (true, gpus);
                break;
            }
        }
    }
    plan
}

#[test]
fn the_optimum_never_admits_fewer_than_the_greedy() {
    let mut n_more = 0;
    for seed in 0..40 {
        let mut random = StdRng::seed_from_u64(seed);
        let problem = random_problem(&mut random, 12, 10, &[1, 2, 4]);
        let start = greedy(&problem);
        let (n_greedy, _) = audit(&problem, &start);
        let built = problem.model(ShareGoal::AdmitMost).unwrap();
        let values = built.encode(&problem, &start).unwrap();
        assert_eq!(check(&built.model, &values), Ok(n_greedy as f64), "seed {seed}");
        let limits = Limits { nodes: 2000, ..Limits::default() };
        let answer = solve_shares(&problem, &mut Highs, &limits, Some(&start)).unwrap();
        let (n_admitted, _) = audit(&problem, answer.plan.as_ref().unwrap());
        assert!(n_admitted >= n_greedy, "seed {seed}: {n_admitted} against {n_greedy}");
        n_more += n_admitted - n_greedy;
    }
    println!("the optimum admits {n_more} jobs more than the greedy over 40 problems of 12 jobs");
}

#[test]
fn a_promise_that_cannot_be_kept_is_infeasible() {
    let job = ShareJob {
        levels: vec![ShareLevel { gpus: 1, work: 1.0 }],
        work: 3.0,
        first_slot: 0,
        deadline_slot: 2,
        worth: 1.0,
        admission: Admission::Promised,
    };
    let problem = ShareProblem { capacity: vec![4; 2], jobs: vec![job.clone()] };
    let answer = solve_shares(&problem, &mut Highs, &Limits::default(), None).unwrap();
    assert_eq!((answer.admit.status, answer.plan), (SolveStatus::Infeasible, None));
    let open = ShareProblem { jobs: vec![ShareJob { admission: Admission::Open, ..job }], ..problem };
    let answer = solve_shares(&open, &mut Highs, &Limits::default(), None).unwrap();
    assert_eq!(answer.plan.unwrap().admitted, [false]);
}

#[test]
fn worth_decides_between_jobs_that_exclude_each_other() {
    let job = |worth| ShareJob {
        levels: vec![ShareLevel { gpus: 2, work: 1.0 }],
        work: 1.0,
        first_slot: 0,
        deadline_slot: 1,
        worth,
        admission: Admission::Open,
    };
    let problem = ShareProblem { capacity: vec![3], jobs: vec![job(1.0), job(2.5)] };
    let answer = solve_shares(&problem, &mut Highs, &Limits::default(), None).unwrap();
    assert_eq!(answer.plan.unwrap().admitted, [false, true]);
}
