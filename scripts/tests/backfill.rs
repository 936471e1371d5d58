//! Backfilling against an independent count: whole runs of the shipped scripts on random jobs, and the same by the rules as
//! papers state them, second by second.

use rota_scripts::scenario::{parse, run};
use rota_scripts::{Limits, ScriptPolicy};

const GPUS: i64 = 8;
const ROUND: i64 = 300;

#[derive(Clone, Copy, Debug)]
struct Job {
    gpus: i64,
    seconds: i64,
    at: i64,
}

/// Names of the jobs that run in each round, as the scenario's report says.
fn by_script(policy: &str, jobs: &[Job], n_rounds: usize) -> Vec<Vec<usize>> {
    let mut text = format!("scenario: random\ncluster 1 nodes, {GPUS} gpus, 64 cpus, 256 GB\n");
    for (index, job) in jobs.iter().enumerate() {
        text.push_str(&format!("job j{index} gpus={} work={} at={}\n", job.gpus, job.seconds, job.at));
    }
    text.push_str(&format!("policy {policy}\nrounds {n_rounds}\n----\n"));
    let scenarios = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut script = ScriptPolicy::load(policy, Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    let mut rounds = vec![Vec::new(); n_rounds];
    for line in run(&scenarios[0], &mut script).actual {
        let (time, what) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
        let round = time.parse::<i64>().expect("a time") / ROUND;
        let running = what.split(" | ").next().unwrap_or_default();
        let named =
            running.split(", ").filter_map(|job| job.strip_prefix('j')?.split(' ').next()?.parse().ok());
        rounds[round as usize] = named.collect();
        rounds[round as usize].sort_unstable();
    }
    rounds
}

/// When a job that starts at a round gives its GPUs back: at a round, since they are given out there.
fn end(start: i64, job: &Job) -> i64 {
    start + (job.seconds + ROUND - 1) / ROUND * ROUND
}

/// EASY as its authors state it: shadow time and extra GPUs.
fn easy(now: i64, running: &[(usize, i64)], waiting: &[usize], jobs: &[Job]) -> Vec<usize> {
    let mut free = GPUS - running.iter().map(|(job, _)| jobs[*job].gpus).sum::<i64>();
    let mut ends: Vec<(i64, i64)> =
        running.iter().map(|(job, start)| (end(*start, &jobs[*job]), jobs[*job].gpus)).collect();
    let mut started = Vec::new();
    let mut queue = waiting.iter().copied();
    let head = queue.by_ref().find(|job| {
        let fits = jobs[*job].gpus <= free;
        if fits {
            free -= jobs[*job].gpus;
            ends.push((end(now, &jobs[*job]), jobs[*job].gpus));
            started.push(*job);
        }
        !fits
    });
    let Some(head) = head else { return started };
    ends.sort_unstable();
    let (mut shadow, mut will_be_free) = (now, free);
    for (time, gpus) in ends {
        if will_be_free >= jobs[head].gpus && time > shadow {
            break;
        }
        (shadow, will_be_free) = (time, will_be_free + gpus);
    }
    let mut extra = will_be_free - jobs[head].gpus;
    for job in queue {
        let ends_before = end(now, &jobs[job]) <= shadow;
        if jobs[job].gpus <= free && (ends_before || jobs[job].gpus <= extra) {
            free -= jobs[job].gpus;
            extra -= if ends_before { 0 } else { jobs[job].gpus };
            started.push(job);
        }
    }
    started
}

/// Conservative backfilling, round by round: who comes first takes the first gap that is long enough.
fn conservative(now: i64, running: &[(usize, i64)], waiting: &[usize], jobs: &[Job]) -> Vec<usize> {
    let mut free = vec![GPUS; 4000];
    let take = |from: i64, to: i64, gpus: i64, free: &mut Vec<i64>| {
        for round in (from - now) / ROUND..(to - now) / ROUND {
            free[round as usize] -= gpus;
        }
    };
    for (job, start) in running {
        take(now, end(*start, &jobs[*job]), jobs[*job].gpus, &mut free);
    }
    let mut started = Vec::new();
    for job in waiting {
        let n_rounds = (end(now, &jobs[*job]) - now) / ROUND;
        let has_room =
            |from: &i64| (*from..from + n_rounds).all(|round| free[round as usize] >= jobs[*job].gpus);
        let from = (0..).find(has_room).expect("all ends some time");
        take(now + from * ROUND, now + (from + n_rounds) * ROUND, jobs[*job].gpus, &mut free);
        if from == 0 {
            started.push(*job);
        }
    }
    started
}

type Rule = fn(i64, &[(usize, i64)], &[usize], &[Job]) -> Vec<usize>;

fn by_rule(rule: Rule, jobs: &[Job], n_rounds: usize) -> Vec<Vec<usize>> {
    let mut running: Vec<(usize, i64)> = Vec::new();
    let mut has_started = vec![false; jobs.len()];
    let mut rounds = Vec::new();
    for round in 0..n_rounds as i64 {
        let now = round * ROUND;
        running.retain(|(job, start)| start + jobs[*job].seconds > now);
        let waiting: Vec<usize> =
            (0..jobs.len()).filter(|job| !has_started[*job] && jobs[*job].at <= now).collect();
        for job in rule(now, &running, &waiting, jobs) {
            has_started[job] = true;
            running.push((job, now));
        }
        let mut names: Vec<usize> = running.iter().map(|(job, _)| *job).collect();
        names.sort_unstable();
        rounds.push(names);
    }
    rounds
}

fn random_jobs(seed: u64) -> Vec<Job> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut draw = |most: i64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as i64 % most
    };
    let mut at = 0;
    let job = |_| {
        at += if draw(2) == 0 { 0 } else { draw(400) };
        Job { gpus: 1 + draw(GPUS), seconds: 60 + draw(2400), at }
    };
    (0..12).map(job).collect()
}

#[test]
fn easy_backfill_starts_whom_the_rule_starts() {
    let mut n_backfilled = 0;
    for seed in 1..150 {
        let jobs = random_jobs(seed);
        let expected = by_rule(easy, &jobs, 60);
        assert_eq!(by_script("easy-backfill", &jobs, 60), expected, "seed {seed}: {jobs:?}");
        let fifo = by_script("conservative-backfill", &jobs, 60);
        n_backfilled += usize::from(fifo != expected);
    }
    assert!(n_backfilled > 20, "the two rules differ in {n_backfilled} cases only");
}

#[test]
fn conservative_backfill_starts_whom_the_rule_starts() {
    for seed in 1..150 {
        let jobs = random_jobs(seed);
        let expected = by_rule(conservative, &jobs, 60);
        assert_eq!(by_script("conservative-backfill", &jobs, 60), expected, "seed {seed}: {jobs:?}");
    }
}
