//! Reduces a case to a small one that still shows the same: fewer jobs, nodes and GPUs, simpler models, rounder numbers.
//!
//! Every step makes the case lighter ([`Case::weight`]), so it ends; a step after which the problem does not show is not taken.

use super::case::{Case, Group, Job, Need, ROUND_S};

/// The most cases that are tried.
const MOST_TRIES: usize = 4_000;

/// The lightest case found for which `shows` still holds.
pub fn shrink(mut case: Case, shows: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut n_tries = 0;
    loop {
        let weight = case.weight();
        let lighter = candidates(&case).into_iter().find(|candidate| {
            let is_worth_it = candidate.weight() < weight && is_sound(candidate) && n_tries < MOST_TRIES;
            n_tries += usize::from(is_worth_it);
            is_worth_it && shows(candidate)
        });
        match lighter {
            Some(lighter) => case = lighter,
            None => return case,
        }
    }
}

/// Whether the jobs of a case can run on its nodes.
fn is_sound(case: &Case) -> bool {
    let has_nodes =
        !case.groups.is_empty() && case.groups.iter().all(|group| group.nodes > 0 && group.gpus > 0);
    let is_curve = |need: &Need| match need {
        Need::Plain(_) => true,
        Need::Curve(points) => {
            let ascends = points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
            points.len() > 1 && ascends && points.iter().all(|point| point.0 > 0 && point.1 > 0)
        }
    };
    let can_run = |job: &Job| {
        job.work_s > 0
            && job.gpus > 0
            && job.gpus <= case.n_gpus()
            && is_curve(&job.cpus)
            && is_curve(&job.mem_gb)
    };
    has_nodes && !case.jobs.is_empty() && case.jobs.iter().all(can_run)
}

/// What may be tried next, the largest steps first.
fn candidates(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    without_jobs(case, &mut found);
    smaller_clusters(case, &mut found);
    at_once(case, &mut found);
    for index in 0..case.jobs.len() {
        let with = |job: Job| with_job(case, index, job);
        found.extend(simpler_jobs(&case.jobs[index]).into_iter().map(with));
    }
    rounder_clusters(case, &mut found);
    found
}

fn without_jobs(case: &Case, found: &mut Vec<Case>) {
    let n = case.jobs.len();
    let mut keep = |range: &dyn Fn(usize) -> bool| {
        let jobs = (0..n).filter(|index| range(*index)).map(|index| case.jobs[index].clone()).collect();
        found.push(Case { jobs, ..case.clone() });
    };
    keep(&|index| index < n / 2);
    keep(&|index| index >= n / 2);
    for gone in (0..n).rev() {
        keep(&|index| index != gone);
    }
}

fn smaller_clusters(case: &Case, found: &mut Vec<Case>) {
    let nodes = case.groups.iter().map(|group| group.nodes).sum();
    let alike =
        case.groups.iter().map(|group| Case { groups: vec![Group { nodes, ..*group }], ..case.clone() });
    found.extend(alike.filter(|_| case.groups.len() > 1));
    for at in 0..case.groups.len() {
        let mut fewer = case.clone();
        fewer.groups.remove(at);
        found.push(fewer);
        let group = case.groups[at];
        let half = |amount: u32| amount.div_ceil(2);
        let smaller = [
            Group { nodes: 1, ..group },
            Group { nodes: group.nodes - 1, ..group },
            Group { racks: 1, ..group },
            Group { gpus: half(group.gpus), cpus: half(group.cpus), mem_gb: half(group.mem_gb), ..group },
            Group { gpus: group.gpus - 1, ..group },
        ];
        found.extend(smaller.into_iter().map(|smaller| with_group(case, at, smaller)));
    }
}

fn rounder_clusters(case: &Case, found: &mut Vec<Case>) {
    for (at, group) in case.groups.iter().enumerate() {
        for per_gpu in [1, 2, 3, 4] {
            found.push(with_group(case, at, Group { cpus: per_gpu * group.gpus, ..*group }));
        }
        for mem_gb in [10, 20, 40, 100].map(|per_gpu| per_gpu * group.gpus).into_iter().chain([100, 1000]) {
            found.push(with_group(case, at, Group { mem_gb, ..*group }));
        }
    }
}

/// All jobs, or one of them, arrive at the beginning, at a round, or earlier.
fn at_once(case: &Case, found: &mut Vec<Case>) {
    let rounded = |at_s: u32| at_s / ROUND_S * ROUND_S;
    let changes: [fn(u32) -> u32; 2] = [|_| 0, |at_s| at_s / 2];
    for change in changes {
        let jobs = case.jobs.iter().map(|job| Job { at_s: rounded(change(job.at_s)), ..job.clone() });
        found.push(Case { jobs: jobs.collect(), ..case.clone() });
    }
    for (index, job) in case.jobs.iter().enumerate() {
        let at_s = job.at_s;
        for at_s in
            [0, rounded(at_s), rounded(at_s / 2), rounded(at_s).saturating_sub(ROUND_S), at_s / 100 * 100]
        {
            found.push(with_job(case, index, Job { at_s, ..job.clone() }));
        }
    }
}

fn simpler_jobs(job: &Job) -> Vec<Job> {
    let with_cpus = |cpus: Need| Job { cpus, ..job.clone() };
    let with_mem = |mem_gb: Need| Job { mem_gb, ..job.clone() };
    let with_work = |work_s: u32| Job { work_s, ..job.clone() };
    let mut found = vec![
        Job { gpus: 1, ..job.clone() },
        Job { gpus: job.gpus / 2, ..job.clone() },
        Job { restart_s: 0, ..job.clone() },
        Job { spread: 100, ..job.clone() },
        Job { cpus: Need::Plain(1), mem_gb: Need::Plain(1), ..job.clone() },
    ];
    found.extend(simpler_needs(&job.cpus).into_iter().map(with_cpus));
    found.extend(simpler_needs(&job.mem_gb).into_iter().map(with_mem));
    let lengths =
        [ROUND_S, 2 * ROUND_S, job.work_s / 2, job.work_s / 1000 * 1000, job.work_s / ROUND_S * ROUND_S];
    found.extend(lengths.map(with_work));
    found
}

fn simpler_needs(need: &Need) -> Vec<Need> {
    let mut found = vec![Need::Plain(1), Need::Plain(10), Need::Plain(need.demand())];
    let Need::Curve(points) = need else { return found };
    for gone in 0..points.len() {
        let mut fewer = points.clone();
        fewer.remove(gone);
        found.push(Need::Curve(fewer));
    }
    for step in [100, 50, 10] {
        let round = |(amount, speed): &(u32, u32)| (*amount, (speed + step / 2) / step * step);
        found.push(Need::Curve(points.iter().map(round).collect()));
    }
    for index in 0..points.len() {
        let amount = points[index].0;
        for amount in [amount / 2, amount.saturating_sub(1), amount / 10 * 10] {
            let mut changed = points.clone();
            changed[index].0 = amount;
            found.push(Need::Curve(changed));
        }
    }
    found
}

/// The case with another job in place of one; jobs stay in the order of their arrival.
fn with_job(case: &Case, index: usize, job: Job) -> Case {
    let mut changed = case.clone();
    changed.jobs[index] = job;
    changed.jobs.sort_by_key(|job| job.at_s);
    changed
}

fn with_group(case: &Case, at: usize, group: Group) -> Case {
    let mut changed = case.clone();
    changed.groups[at] = group;
    changed
}

#[cfg(test)]
mod tests {
    use super::super::draw::{Sizes, draw};
    use super::*;

    #[test]
    fn what_does_not_matter_goes() {
        let is_hungry = |job: &Job| matches!(&job.cpus, Need::Curve(points) if points.len() > 1);
        let mut shows = |case: &Case| case.jobs.iter().filter(|job| is_hungry(job)).count() >= 2;
        let large = (0..100).map(|index| draw(3, index, &Sizes::default())).find(|case| shows(case));
        let small = shrink(large.expect("one of them has two hungry jobs"), &mut shows);
        assert_eq!(small.jobs.len(), 2, "{small:?}");
        assert_eq!((small.groups.len(), small.n_gpus()), (1, 1), "{small:?}");
        for job in &small.jobs {
            let Need::Curve(points) = &job.cpus else { panic!("{small:?}") };
            assert_eq!((points.len(), job.at_s, job.spread), (2, 0, 100), "{small:?}");
            assert!(job.work_s <= 500, "{small:?}");
        }
    }

    #[test]
    fn every_case_on_the_way_can_be_run() {
        let mut n_seen = 0;
        let mut shows = |case: &Case| {
            case.setting().unwrap_or_else(|error| panic!("{case:?}: {error}"));
            n_seen += 1;
            n_seen % 3 == 0
        };
        for index in 0..20 {
            shrink(draw(5, index, &Sizes::default()), &mut shows);
        }
    }
}
