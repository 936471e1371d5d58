//! What time slicing promises on any cluster and workload, looked at in every round. A failure prints its seed.

#[expect(dead_code, reason = "other walks are for the properties")]
mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{Dice, group, job, random_cluster, random_faults, random_workload, workload};
use proptest::prelude::*;
use rota_core::allocation::{Allocation, WHOLE_GPU};
use rota_core::cluster::Cluster;
use rota_core::ids::NodeId;
use rota_core::plan::{Hold, Plan, Run, Wake};
use rota_core::policy::{Policy, PolicyError};
use rota_core::simulation::{RunSettings, admit_all, simulate};
use rota_core::snapshot::Snapshot;
use rota_core::table::JobPhase;
use rota_core::turns::{Together, TurnRules, take_turns};

/// Slices time and looks at every plan.
struct Sliced<K, F> {
    most: usize,
    key: K,
    look: F,
}

impl<K, F> Policy for Sliced<K, F>
where
    K: Fn(&Snapshot, usize) -> f64,
    F: FnMut(&Snapshot, &[(u32, Allocation)]),
{
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let mut rows: Vec<u32> = (0..snapshot.jobs.len() as u32).collect();
        rows.sort_unstable_by_key(|row| snapshot.jobs.id(*row as usize));
        let keys: Vec<f64> = (0..snapshot.jobs.len()).map(|row| (self.key)(snapshot, row)).collect();
        let rules = |together| TurnRules { most: self.most, together };
        let runs = take_turns(snapshot, &rows, &rules(Together::Keys(&keys)));
        let suit = |a: u32, b: u32| keys[a as usize] == keys[b as usize];
        let by_pairs = take_turns(snapshot, &rows, &rules(Together::Pairs(&suit)));
        assert_eq!(runs, by_pairs, "asked about pairs, equal keys are the same rule");
        (self.look)(snapshot, &runs);
        let run = |(row, allocation): &(u32, Allocation)| Run {
            job: snapshot.jobs.id(*row as usize),
            what: Hold::Take(allocation.clone()),
        };
        let mut plan = Plan { run: runs.iter().map(run).collect(), wake: Wake::OnChange, ..Plan::default() };
        admit_all(snapshot, &mut plan);
        Ok(plan)
    }
}

fn by_size(snapshot: &Snapshot, row: usize) -> f64 {
    f64::from(snapshot.jobs.gpus()[row])
}

/// Runs random jobs to their end; the engine refuses plans that give more than there is.
fn watch(seed: u64, most: usize, look: impl FnMut(&Snapshot, &[(u32, Allocation)])) {
    let dice = &mut Dice(seed);
    let cluster = random_cluster(dice);
    let workload = random_workload(dice, &cluster, false);
    let faults = random_faults(dice, &cluster);
    let settings = RunSettings {
        is_paranoid: true,
        max_idle_rounds: 50,
        max_stalled_rounds: 2_000,
        ..RunSettings::default()
    };
    let mut policy = Sliced { most, key: by_size, look };
    simulate(cluster, workload, faults, &mut policy, &settings, &mut |_| {}).expect("a run without errors");
}

/// How many gangs are on each GPU.
fn loads(runs: &[(u32, Allocation)]) -> BTreeMap<(NodeId, u32), usize> {
    let mut loads = BTreeMap::new();
    for slice in runs.iter().flat_map(|(_, allocation)| &allocation.slices) {
        for gpu in slice.gpus.iter() {
            *loads.entry((slice.node, gpu)).or_default() += 1;
        }
    }
    loads
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn no_gang_waits_while_gpus_may_be_shared(seed in any::<u64>()) {
        watch(seed, 1000, |snapshot, runs| {
            let n_types = snapshot.cluster.gpu_types().len();
            let fits = |row: &usize| n_types == 1 && snapshot.jobs.gpus()[*row] <= snapshot.n_gpus_up();
            let n_fit = (0..snapshot.jobs.len()).filter(fits).count();
            assert!(runs.len() >= n_fit, "{} of {n_fit} run", runs.len());
        });
    }

    #[test]
    fn no_gpu_has_more_gangs_than_allowed(seed in any::<u64>()) {
        watch(seed, 2, |_, runs| {
            let most = loads(runs).into_values().max().unwrap_or(0);
            assert!(most <= 2, "{most} gangs on one GPU");
        });
    }

    #[test]
    fn a_gang_that_shares_with_no_other_is_not_slowed(seed in any::<u64>()) {
        watch(seed, 1000, |snapshot, runs| {
            let loads = loads(runs);
            for (row, allocation) in runs {
                let gpus = allocation.slices.iter().flat_map(|s| s.gpus.iter().map(|gpu| (s.node, gpu)));
                let load = gpus.map(|gpu| loads[&gpu]).max().unwrap_or(0);
                let share = allocation.slices[0].share;
                let id = snapshot.jobs.id(*row as usize);
                assert_eq!(share == WHOLE_GPU, load == 1, "job {id}: {share} thousandths, {load} gangs");
            }
        });
    }

    #[test]
    fn a_gang_that_shares_and_may_move_could_not_have_free_gpus_of_one_node(seed in any::<u64>()) {
        watch(seed, 1000, |snapshot, runs| {
            let loads = loads(runs);
            // A gang that runs stays until it has run for long enough to make up for a move.
            let may_move = |row: usize| {
                snapshot.jobs.phase(row) != JobPhase::Running || snapshot.movable_from(row) <= snapshot.now
            };
            let sharing = runs.iter().filter(|(row, a)| a.slices[0].share < WHOLE_GPU && may_move(*row as usize));
            for (row, allocation) in sharing {
                let spec = snapshot.jobs.spec(*row as usize);
                for node in snapshot.cluster.nodes() {
                    let usable = snapshot.nodes.usable(node);
                    let free = usable.iter().filter(|gpu| !loads.contains_key(&(node.id, *gpu))).count();
                    let allowed = spec.gpu_type.is_none_or(|t| t == node.gpu_type)
                        && (node.gpu_mem_bytes == 0 || spec.profile.gpu_mem_bytes <= node.gpu_mem_bytes);
                    let fits = allowed && free as u32 >= allocation.n_gpus();
                    assert!(!fits, "job {} shares, node {} has {free} GPUs free", snapshot.jobs.id(*row as usize), node.id.0);
                }
            }
        });
    }
}

/// The plan of the first round: for each job, its node and its share in thousandths.
fn first_round(n_nodes: u32, gangs: &[u32], key: impl Fn(&Snapshot, usize) -> f64) -> Vec<(u32, u16)> {
    let cluster = Arc::new(Cluster::new("alike", &[group(n_nodes, 8, 64.0)]).expect("a cluster"));
    let jobs = gangs.iter().enumerate().map(|(id, gpus)| job(id as u32, 0, *gpus, 600.0)).collect();
    let mut first = Vec::new();
    let look = |_: &Snapshot, runs: &[(u32, Allocation)]| {
        if first.is_empty() {
            first = runs.iter().map(|(_, a)| (a.slices[0].node.0, a.slices[0].share)).collect();
        }
    };
    let mut policy = Sliced { most: 16, key, look };
    simulate(cluster, workload(jobs), Vec::new(), &mut policy, &RunSettings::default(), &mut |_| {})
        .expect("a run without errors");
    first
}

#[test]
fn small_jobs_keep_their_gpus_when_a_second_gang_comes() {
    // A gang of eight, eight single GPUs, and another gang: by size the gangs share, and no other job is slowed.
    let gangs = [8, 1, 1, 1, 1, 1, 1, 1, 1, 8];
    let mut expected = vec![(1, 1000); 10];
    expected[0] = (0, 500);
    expected[9] = (0, 500);
    assert_eq!(first_round(2, &gangs, by_size), expected);
    // When keys say the contrary, the second gang shares with the small ones.
    let contrary = |snapshot: &Snapshot, row: usize| if snapshot.jobs.id(row).0 == 0 { 1.0 } else { 0.0 };
    let mut expected = vec![(1, 500); 10];
    expected[0] = (0, 1000);
    assert_eq!(first_round(2, &gangs, contrary), expected);
}

#[test]
fn a_gang_of_several_nodes_takes_turns_as_a_whole() {
    assert_eq!(first_round(2, &[16, 16, 8], by_size), [(0, 333), (0, 333), (0, 333)]);
}
