//! ElasticFlow's admission as a MILP: against brute force, and never below a greedy plan.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_solvers::elasticflow_shares::{
    Admission, Pace, ShareAnswer, ShareGoal, ShareJob, ShareLevel, SharePlan, ShareProblem, ShareRun,
    ShareSlot, solve_shares,
};
use rota_solvers::{Highs, Limits, SolveStatus, check};

fn random_problem(random: &mut StdRng, n_jobs: usize, n_slots: usize, gpus: &[u32]) -> ShareProblem {
    let mut job = || {
        let speed: f64 = random.random_range(0.5..2.0);
        let level = |&gpus: &u32| ShareLevel { gpus, rate: speed * f64::from(gpus).powf(0.7) };
        ShareJob {
            levels: gpus.iter().map(level).collect(),
            work: random.random_range(0.5..4.0),
            deadline_s: f64::from(random.random_range(1..=n_slots as u32 + 1)),
            worth: 1.0,
            admission: Admission::Open,
        }
    };
    let jobs = (0..n_jobs).map(|_| job()).collect();
    let slots = (0..n_slots).map(|_| ShareSlot { length_s: 1.0, gpus: random.random_range(1..=4) }).collect();
    ShareProblem { slots, jobs, pace: Pace::Whole }
}

/// Work done, GPUs within capacity, deadlines kept; returns jobs admitted and GPU seconds spent.
fn audit(problem: &ShareProblem, plan: &SharePlan) -> (usize, f64) {
    let mut spent = 0.0;
    for (t, slot) in problem.slots.iter().enumerate() {
        let in_slot = plan.runs.iter().flatten().filter(|run| run.slot == t);
        let gpus: f64 = in_slot.map(|run| run.part * f64::from(run.gpus)).sum();
        assert!(gpus <= f64::from(slot.gpus) + 1e-7, "slot {t} is oversubscribed: {gpus}");
        spent += gpus * slot.length_s;
    }
    for (j, (runs, &is_admitted)) in plan.runs.iter().zip(&plan.admitted).enumerate() {
        let job = &problem.jobs[j];
        for t in 0..problem.slots.len() {
            let part: f64 = runs.iter().filter(|run| run.slot == t).map(|run| run.part).sum();
            let usable = problem.usable_s(job, t) / problem.slots[t].length_s;
            let most = if problem.pace == Pace::Whole { usable.ceil() } else { usable };
            assert!(part <= most + 1e-7, "{job:?} runs in {part} of slot {t}, of which {usable} is usable");
        }
        assert!(is_admitted || runs.is_empty(), "{job:?} runs and is not admitted");
        let work = problem.work_done(j, runs);
        assert!(!is_admitted || work >= job.work * (1.0 - 1e-7), "{job:?} admitted with {work} done");
    }
    (plan.admitted.iter().filter(|&&is_admitted| is_admitted).count(), spent)
}

/// Most jobs admitted, then fewest GPU slots, over every plan: per job all ways to run, joined by capacity.
fn brute_force(problem: &ShareProblem) -> (usize, u32) {
    let ways: Vec<Vec<Vec<u32>>> = problem.jobs.iter().map(|job| ways_to_finish(problem, job)).collect();
    let mut best = (0, 0);
    let mut free = problem.slots.iter().map(|slot| slot.gpus).collect();
    extend(&ways, &mut free, (0, 0), &mut best);
    best
}

fn ways_to_finish(problem: &ShareProblem, job: &ShareJob) -> Vec<Vec<u32>> {
    let n_slots = problem.slots.len();
    let base = job.levels.len() + 1;
    let mut ways = Vec::new();
    for code in 0..base.pow(n_slots as u32) {
        let levels = (0..n_slots).map(|t| code / base.pow(t as u32) % base);
        let mut gpus = vec![0; n_slots];
        let mut work = 0.0;
        for (t, level) in levels.enumerate().filter(|&(_, level)| level > 0) {
            gpus[t] = job.levels[level - 1].gpus;
            work += job.levels[level - 1].rate * problem.usable_s(job, t);
        }
        if work >= job.work {
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

fn solve(problem: &ShareProblem, start: Option<&SharePlan>) -> ShareAnswer {
    let limits = Limits { nodes: 2000, ..Limits::default() };
    solve_shares(problem, &mut Highs, &limits, start, -1.0).unwrap()
}

#[test]
fn random_share_problems_agree_with_brute_force() {
    for seed in 0..150 {
        let mut random = StdRng::seed_from_u64(seed);
        let problem = random_problem(&mut random, 3, 3, &[1, 2, 4]);
        let answer = solve(&problem, None);
        assert_eq!(answer.admit.status, SolveStatus::Optimal, "seed {seed}");
        assert_eq!(answer.save.as_ref().unwrap().status, SolveStatus::Optimal, "seed {seed}");
        let (n_admitted, spent) = audit(&problem, &answer.plan.unwrap());
        let (n_best, least) = brute_force(&problem);
        assert_eq!((n_admitted, spent.round()), (n_best, f64::from(least)), "seed {seed} {problem:?}");
    }
}

#[test]
fn parts_of_slots_admit_at_least_what_whole_slots_do() {
    let mut n_more = 0;
    for seed in 0..60 {
        let mut random = StdRng::seed_from_u64(seed);
        let whole = random_problem(&mut random, 8, 5, &[1, 2, 4]);
        let parts = ShareProblem { pace: Pace::Parts, ..whole.clone() };
        let (n_whole, _) = audit(&whole, &solve(&whole, None).plan.unwrap());
        let (n_parts, _) = audit(&parts, &solve(&parts, None).plan.unwrap());
        assert!(n_parts >= n_whole, "seed {seed}: {n_parts} in parts, {n_whole} in whole slots");
        n_more += n_parts - n_whole;
    }
    assert!(n_more > 0, "parts are never better: the two are the same model");
}

#[test]
fn a_deadline_inside_a_slot_leaves_the_time_before_it() {
    let job = |deadline_s| ShareJob {
        levels: vec![ShareLevel { gpus: 1, rate: 1.0 }],
        work: 25.0,
        deadline_s,
        worth: 1.0,
        admission: Admission::Open,
    };
    for pace in [Pace::Parts, Pace::Whole] {
        let slots = vec![ShareSlot { length_s: 10.0, gpus: 2 }, ShareSlot { length_s: 30.0, gpus: 2 }];
        let problem = ShareProblem { slots, jobs: vec![job(24.9), job(25.0)], pace };
        let plan = solve(&problem, None).plan.unwrap();
        assert_eq!(plan.admitted, [false, true], "{pace:?}");
        audit(&problem, &plan);
    }
}

/// Earliest deadline first, each job at the fewest GPUs that finish it in what is free.
fn greedy(problem: &ShareProblem) -> SharePlan {
    let mut free: Vec<u32> = problem.slots.iter().map(|slot| slot.gpus).collect();
    let n_jobs = problem.jobs.len();
    let mut plan = SharePlan { admitted: vec![false; n_jobs], runs: vec![Vec::new(); n_jobs] };
    let mut order: Vec<usize> = (0..n_jobs).collect();
    order.sort_by(|&a, &b| problem.jobs[a].deadline_s.total_cmp(&problem.jobs[b].deadline_s));
    for j in order {
        let job = &problem.jobs[j];
        for level in &job.levels {
            let mut runs = Vec::new();
            for (t, &free) in free.iter().enumerate() {
                let is_open = free >= level.gpus && problem.usable_s(job, t) > 0.0;
                if is_open && problem.work_done(j, &runs) < job.work {
                    runs.push(ShareRun { slot: t, gpus: level.gpus, part: 1.0 });
                }
            }
            if problem.work_done(j, &runs) >= job.work {
                runs.iter().for_each(|run| free[run.slot] -= run.gpus);
                (plan.admitted[j], plan.runs[j]) = (true, runs);
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
        let values = built.encode(&start).unwrap();
        assert_eq!(check(&built.model, &values), Ok(n_greedy as f64), "seed {seed}");
        let (n_admitted, _) = audit(&problem, solve(&problem, Some(&start)).plan.as_ref().unwrap());
        assert!(n_admitted >= n_greedy, "seed {seed}: {n_admitted} against {n_greedy}");
        n_more += n_admitted - n_greedy;
    }
    assert!(n_more > 0, "the greedy is never beaten: nothing was tested");
}

#[test]
fn who_wants_no_more_than_the_start_gets_no_second_solve() {
    let mut random = StdRng::seed_from_u64(7);
    let problem = random_problem(&mut random, 4, 4, &[1, 2]);
    let answer = solve_shares(&problem, &mut Highs, &Limits::default(), None, 4.0).unwrap();
    assert!(answer.save.is_none() && answer.plan.is_some());
}

/// A job of one GPU that takes a second, and has one.
fn second() -> ShareJob {
    ShareJob {
        levels: vec![ShareLevel { gpus: 1, rate: 1.0 }],
        work: 1.0,
        deadline_s: 1.0,
        worth: 1.0,
        admission: Admission::Open,
    }
}

#[test]
fn a_promise_that_cannot_be_kept_is_infeasible() {
    let job = ShareJob { work: 3.0, deadline_s: 2.0, admission: Admission::Promised, ..second() };
    let slots = vec![ShareSlot { length_s: 1.0, gpus: 4 }; 2];
    let problem = ShareProblem { slots, jobs: vec![job.clone()], pace: Pace::Whole };
    let answer = solve(&problem, None);
    assert_eq!((answer.admit.status, answer.plan), (SolveStatus::Infeasible, None));
    let open = ShareProblem { jobs: vec![ShareJob { admission: Admission::Open, ..job }], ..problem };
    assert_eq!(solve(&open, None).plan.unwrap().admitted, [false]);
}

#[test]
fn worth_decides_between_jobs_that_exclude_each_other() {
    let job = |worth| ShareJob { levels: vec![ShareLevel { gpus: 2, rate: 1.0 }], worth, ..second() };
    let slots = vec![ShareSlot { length_s: 1.0, gpus: 3 }];
    let problem = ShareProblem { slots, jobs: vec![job(1.0), job(2.5)], pace: Pace::Parts };
    assert_eq!(solve(&problem, None).plan.unwrap().admitted, [false, true]);
}

#[test]
fn numbers_that_make_no_sense_are_named() {
    let job = second();
    let error = |slot: ShareSlot, job: ShareJob| {
        let problem = ShareProblem { slots: vec![slot], jobs: vec![job], pace: Pace::Parts };
        problem.model(ShareGoal::AdmitMost).map(|_| ()).unwrap_err().to_string()
    };
    let slot = ShareSlot { length_s: 1.0, gpus: 1 };
    assert!(error(ShareSlot { length_s: 0.0, ..slot }, job.clone()).contains("slot 0, length"));
    assert!(error(slot, ShareJob { deadline_s: f64::NAN, ..job.clone() }).contains("job 0, deadline"));
    assert!(error(slot, ShareJob { work: f64::INFINITY, ..job.clone() }).contains("job 0, work"));
    let levels = vec![ShareLevel { gpus: 0, rate: 1.0 }];
    assert!(error(slot, ShareJob { levels, ..job }).contains("job 0, level 0, gpus"));
}
