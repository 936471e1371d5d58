//! What the tuned walk promises on any cluster and workload, looked at in every round. A failure prints its seed.

#[expect(dead_code, reason = "other walks are for the properties")]
mod common;

use std::sync::Arc;

use common::{Answers, Dice, Key, Walker, random_cluster, random_faults, random_workload};
use proptest::prelude::*;
use rota_core::allocation::Slice;
use rota_core::fill::{Sequence, Walk};
use rota_core::place::Consolidate;
use rota_core::plan::{Hold, Plan};
use rota_core::policy::{Policy, PolicyError};
use rota_core::resources::Host;
use rota_core::room::Room;
use rota_core::simulation::{RunSettings, simulate};
use rota_core::snapshot::Snapshot;

/// The walk of `tune`, as the shipped script asks for it.
fn tune() -> Walk {
    Walk {
        only_selected: true,
        stayers_first: true,
        rearranges: Some(Sequence::Queue),
        tops_up: Some(Sequence::Queue),
        ..Walk::default()
    }
}

/// Asks a policy and looks at every plan.
struct Watched<F> {
    walker: Walker,
    look: F,
}

impl<F: FnMut(&Snapshot, &[(usize, Vec<Slice>)])> Policy for Watched<F> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let plan = self.walker.decide(snapshot)?;
        let held = |row: usize, what: &Hold| match what {
            Hold::Keep => snapshot.jobs.allocation(row).slices.to_vec(),
            Hold::Take(allocation) => allocation.slices.to_vec(),
        };
        let rows = plan.run.iter().filter_map(|run| {
            let row = snapshot.jobs.row(run.job)?;
            Some((row, held(row, &run.what)))
        });
        (self.look)(snapshot, &rows.collect::<Vec<_>>());
        Ok(plan)
    }
}

fn watch(seed: u64, look: impl FnMut(&Snapshot, &[(usize, Vec<Slice>)])) {
    let dice = &mut Dice(seed);
    let cluster = random_cluster(dice);
    let workload = random_workload(dice, &cluster, false);
    let faults = random_faults(dice, &cluster);
    let key = [Key::Arrival, Key::Attained, Key::Remaining, Key::Scrambled(seed)][dice.roll(4) as usize];
    let mut walker = Walker::new(key, tune(), Answers::Tune);
    if dice.one_in(2) {
        walker.placement = Box::new(Consolidate::default());
    }
    let settings = RunSettings {
        is_paranoid: true,
        max_idle_rounds: 50,
        max_stalled_rounds: 2_000,
        ..RunSettings::default()
    };
    simulate(cluster, Arc::clone(&workload), faults, &mut Watched { walker, look }, &settings, &mut |_| {})
        .expect("a run without errors");
}

/// What is free when these run.
fn room(snapshot: &Snapshot, runs: &[(usize, Vec<Slice>)]) -> Room {
    let mut room = Room::new(snapshot);
    for slice in runs.iter().flat_map(|(_, slices)| slices) {
        room.take_gpus(slice.node, slice.gpus);
        room.take_host(slice.node, &slice.host);
    }
    room
}

fn lacks(demand: &Host, slice: &Slice) -> Host {
    demand.times(slice.gpus.len()).saturating_sub(&slice.host)
}

fn nobody_is_below_its_share(snapshot: &Snapshot, runs: &[(usize, Vec<Slice>)]) {
    let room = Room::new(snapshot);
    for (row, slices) in runs {
        let demand = snapshot.jobs.demand_per_gpu(*row);
        for slice in slices {
            let share = room.fair_share(snapshot.cluster.gpu_type_of(slice.node)).min(demand);
            let entitled = share.times(slice.gpus.len());
            let id = snapshot.jobs.id(*row);
            assert!(entitled.fits_in(&slice.host), "job {id} has {} of {entitled}", slice.host);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn no_job_runs_below_its_proportional_share(seed in any::<u64>()) {
        watch(seed, nobody_is_below_its_share);
    }

    #[test]
    fn nobody_sits_below_its_demand_while_a_node_could_give_it(seed in any::<u64>()) {
        watch(seed, |snapshot, runs| {
            let room = room(snapshot, runs);
            for (row, slices) in runs {
                let demand = snapshot.jobs.demand_per_gpu(*row);
                if slices.iter().all(|s| lacks(demand, s).is_none()) {
                    continue;
                }
                let id = snapshot.jobs.id(*row);
                let could = |s: &Slice| lacks(demand, s).fits_in(&room.free_on(s.node).1);
                assert!(!slices.iter().all(could), "job {id} could be raised where it is");
                let [slice] = slices[..] else { continue };
                let held = snapshot.jobs.allocation(*row);
                let stays = held.slices.iter().any(|s| (s.node, s.gpus) == (slice.node, slice.gpus));
                let is_bound = stays && snapshot.movable_from(*row) > snapshot.now;
                let is_at_its_data = snapshot.resumes_with_data(*row) && snapshot.nodes_have_data(*row, [slice.node]);
                if is_bound || is_at_its_data || slice.gpus.len() > 1 {
                    continue;
                }
                let gpu_type = snapshot.cluster.gpu_type_of(slice.node);
                let elsewhere = room.candidates(demand).find(|(node, _, _)| node.gpu_type == gpu_type);
                assert!(elsewhere.is_none(), "job {id} could move to node {}", elsewhere.map_or(0, |e| e.0.id.0));
            }
        });
    }

    #[test]
    fn everybody_whose_gpus_fit_runs(seed in any::<u64>()) {
        watch(seed, |snapshot, runs| {
            let room = room(snapshot, runs);
            let running: std::collections::BTreeSet<usize> = runs.iter().map(|(row, _)| *row).collect();
            let n_types = snapshot.cluster.gpu_types().len();
            for row in (0..snapshot.jobs.len()).filter(|row| !running.contains(row)) {
                let gpus = snapshot.jobs.gpus()[row];
                let fits = n_types == 1 && gpus <= room.free_gpus();
                assert!(!fits, "job {} waits for {gpus} of {} free GPUs", snapshot.jobs.id(row), room.free_gpus());
            }
        });
    }
}

/// Excess was once taken back on nodes of another GPU type, down to the share of the job that asked.
#[test]
fn a_share_is_that_of_the_nodes_own_gpu_type() {
    watch(16131122445249920141, nobody_is_below_its_share);
}
