//! Random cases from a seed: clusters of a few nodes, and jobs like Synergy's models, from those that do not benefit from
//! CPUs and memory to those that run three times as fast with four times their share.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::case::{Case, Group, Job, Need, ROUND_S};

/// How large cases are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Sizes {
    /// The most nodes.
    pub nodes: u32,
    /// The most GPUs of a node.
    pub gpus: u32,
    /// The most jobs.
    pub jobs: u32,
    /// Whether all jobs arrive at once; if not, they still do in one case of three.
    pub is_static: bool,
    /// Whether nodes may differ and gangs lose speed on several nodes.
    pub is_plain: bool,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes { nodes: 4, gpus: 4, jobs: 10, is_static: false, is_plain: false }
    }
}

/// Case number `index` of a seed: the same on every thread, whatever was drawn before.
pub fn draw(seed: u64, index: u64, sizes: &Sizes) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(index);
    let mut dice = Dice { rng };
    let groups = groups(&mut dice, sizes);
    let mut case = Case { groups, jobs: Vec::new() };
    let is_static = dice.one_in(3) || sizes.is_static;
    let restart_s = if dice.one_in(3) { 30 * dice.between(1, 4) } else { 0 };
    let n_jobs = dice.between(1, sizes.jobs.max(1));
    for _ in 0..n_jobs {
        let mut job = job(&mut dice, &case);
        job.restart_s = restart_s;
        if sizes.is_plain {
            job.spread = 100;
        }
        case.jobs.push(job);
    }
    let load = dice.between(3, 20);
    if !is_static {
        arrive(&mut dice, &mut case, load);
    }
    case
}

/// Random numbers with the distributions needed here.
struct Dice {
    rng: ChaCha8Rng,
}

impl Dice {
    /// A number from `low` to `high`, both included.
    fn between(&mut self, low: u32, high: u32) -> u32 {
        self.rng.random_range(low..=high.max(low))
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.between(1, n) == 1
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.rng.random_range(0..values.len())]
    }
}

fn groups(dice: &mut Dice, sizes: &Sizes) -> Vec<Group> {
    let first = group(dice, sizes, sizes.nodes.max(1));
    let mut groups = vec![first];
    let left = sizes.nodes.saturating_sub(first.nodes);
    let second = group(dice, sizes, left.max(1));
    if dice.one_in(6) && left > 0 && !sizes.is_plain {
        groups.push(second);
    }
    groups
}

fn group(dice: &mut Dice, sizes: &Sizes, most: u32) -> Group {
    let counts: Vec<u32> = [1, 2, 4, 8, 16].into_iter().filter(|gpus| *gpus <= sizes.gpus.max(1)).collect();
    let (nodes, gpus) = (dice.between(1, most), dice.of(&counts));
    let racks = if nodes > 1 && dice.one_in(4) { 2 } else { 1 };
    let (cpus, mem_gb) = (gpus * dice.between(2, 6), gpus * dice.of(&[20, 40, 60]));
    Group { nodes, racks, gpus, cpus, mem_gb }
}

fn job(dice: &mut Dice, case: &Case) -> Job {
    let node = dice.of(&case.groups);
    let gangs: Vec<u32> = [1, 1, 1, 1, 2, 2, 3, 4, 8].into_iter().filter(|n| *n <= case.n_gpus()).collect();
    let gpus = dice.of(&gangs);
    let most = |whole: u32| whole / gpus.min(node.gpus);
    let (cpu_share, mem_share) = (node.cpus / node.gpus, node.mem_gb / node.gpus);
    // A third each: neither matters, CPUs do, memory or both do.
    let kind = dice.between(1, 6);
    let cpus = match kind {
        3..=5 => hungry(dice, cpu_share, most(node.cpus)),
        _ => Need::Plain(dice.between(1, cpu_share)),
    };
    let mem_gb = match kind {
        5..=6 => hungry(dice, mem_share, most(node.mem_gb)),
        _ => Need::Plain(5 * dice.between(1, (mem_share / 5).max(1))),
    };
    let rounds = f64::from(dice.between(0, 55)) / 10.0;
    let work_s = (2f64.powf(rounds) * f64::from(ROUND_S) / 100.0).round() as u32 * 100;
    let spread = if dice.one_in(3) { 5 * dice.between(10, 19) } else { 100 };
    Job { gpus, work_s, at_s: 0, cpus, mem_gb, spread, restart_s: 0 }
}

/// Speed 1 at the share, less below it, up to three times as much with up to `most`; each step pays less than the last.
fn hungry(dice: &mut Dice, share: u32, most: u32) -> Need {
    let demand = dice.between(share + 1, (4 * share).min(most.max(share + 1)));
    let gain = dice.between(1, 20) * 10;
    let half = (share / 2).max(1);
    let middle = (share + demand) / 2;
    let mut points = Vec::new();
    if half < share {
        points.push((half, 10 * dice.between(1, 10 * half / share + 2).min(9)));
    }
    points.push((share, 100));
    if middle > share && middle < demand {
        points.push((middle, 100 + gain * dice.between(5, 8) / 10));
    }
    points.push((demand, 100 + gain));
    Need::Curve(points)
}

/// Spreads the arrivals so that the cluster is loaded to about `load` tenths.
fn arrive(dice: &mut Dice, case: &mut Case, load: u32) {
    let work: u64 = case.jobs.iter().map(|job| u64::from(job.gpus) * u64::from(job.work_s)).sum();
    let all_s = (work * 10 / u64::from(case.n_gpus() * load)).max(1) as u32;
    let mean_gap_s = all_s / case.jobs.len().max(1) as u32;
    let mut now_s = 0;
    for job in &mut case.jobs {
        job.at_s = now_s;
        now_s += (dice.between(0, 2 * mean_gap_s) + 30) / 60 * 60;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_can_be_run_and_is_as_small_as_asked() {
        let sizes = Sizes { nodes: 3, gpus: 8, jobs: 5, ..Sizes::default() };
        for index in 0..500 {
            let case = draw(7, index, &sizes);
            let setting = case.setting().unwrap_or_else(|error| panic!("case {index}: {error}"));
            assert!(setting.cluster.nodes().len() <= 3 && setting.workload.jobs.len() <= 5, "{case:?}");
            assert!(case.jobs.iter().all(|job| job.gpus <= case.n_gpus()), "{case:?}");
        }
    }

    #[test]
    fn a_case_depends_on_seed_and_number_alone() {
        let sizes = Sizes::default();
        assert_eq!(draw(1, 5, &sizes), draw(1, 5, &sizes));
        assert_ne!(draw(1, 5, &sizes), draw(1, 6, &sizes));
        assert_ne!(draw(1, 5, &sizes), draw(2, 5, &sizes));
    }

    #[test]
    fn cases_are_of_all_kinds() {
        let cases: Vec<Case> = (0..300).map(|index| draw(0, index, &Sizes::default())).collect();
        let count = |is: &dyn Fn(&Case) -> bool| cases.iter().filter(|case| is(case)).count();
        let is_hungry = |job: &Job| matches!(job.cpus, Need::Curve(_));
        assert!((50..250).contains(&count(&|case| case.jobs.iter().all(|job| job.at_s == 0))));
        assert!(count(&|case| case.jobs.iter().any(is_hungry)) > 150);
        assert!(count(&|case| case.groups.len() > 1) > 10);
        assert!(count(&|case| case.jobs.iter().any(|job| job.gpus > case.groups[0].gpus)) > 10);
        assert!(count(&|case| case.jobs.iter().any(|job| job.restart_s > 0)) > 50);
    }
}
