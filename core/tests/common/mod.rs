//! Random clusters, workloads and policies from a seed, for the property tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_core::allocation::{Allocation, GpuSet, Slice, WHOLE_GPU};
use rota_core::artifact::{self, Givers, Kept};
use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::fault::Fault;
use rota_core::fill::{Answer, Counts, Demand, Fill, Misfit, Sequence, Walk, plan_of};
use rota_core::ids::{DatasetId, GpuTypeId, JobId, NodeId, TenantId};
use rota_core::job::{Costs, Deadline, GpuRequest, JobSpec};
use rota_core::place::{Consolidate, FirstFit, LocalData, Place};
use rota_core::plan::{Hold, Plan, Run, Wake};
use rota_core::policy::{Policy, PolicyError};
use rota_core::profile::{HostCurve, Profile};
use rota_core::reclaim::Reclaim;
use rota_core::resources::Host;
use rota_core::room::Room;
use rota_core::simulation::admit_all;
use rota_core::snapshot::Snapshot;
use rota_core::table::{Field, JobPhase};
use rota_core::time::{Span, Time};
use rota_core::workload::{Dataset, Truth, Workload};

/// SplitMix64: small, seedable, the same everywhere.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below.max(1)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.roll(n) == 0
    }
}

pub(crate) fn group(count: u32, n_gpus: u32, cpus: f64) -> NodeGroup {
    NodeGroup {
        count,
        racks: 1,
        gpu_type: "V100".into(),
        n_gpus,
        gpu_mem_bytes: 0,
        host: Host::from_units(cpus, 500.0, 500.0),
        cache_bytes: 0,
        fetch_bps: 0,
    }
}

pub(crate) fn random_cluster(dice: &mut Dice) -> Arc<Cluster> {
    let mut groups =
        vec![group(1 + dice.roll(5) as u32, 1 + dice.roll(8) as u32, 4.0 + dice.roll(30) as f64)];
    if dice.one_in(2) {
        let cache_bytes = 3_000_000_000 * dice.roll(2);
        groups.push(NodeGroup {
            gpu_type: "T4".into(),
            cache_bytes,
            fetch_bps: 10_000_000,
            ..group(1 + dice.roll(3) as u32, 1 + dice.roll(5) as u32, 8.0)
        });
    }
    Arc::new(Cluster::new("random", &groups).expect("a cluster"))
}

/// A profile whose rate is 1 whatever it is given, or one that depends on CPUs.
pub(crate) fn profile(is_sensitive: bool) -> Arc<Profile> {
    let curve = HostCurve::new(vec![1.0, 12.0], vec![10.0, 125.0], vec![vec![0.3, 0.4], vec![0.5, 2.5]])
        .expect("a grid");
    Arc::new(Profile {
        host: is_sensitive.then_some(curve),
        demand_per_gpu: Host::from_units(
            if is_sensitive { 9.0 } else { 1.0 },
            if is_sensitive { 100.0 } else { 5.0 },
            40.0,
        ),
        ..Profile::plain(if is_sensitive { "hungry" } else { "modest" }, 1.0)
    })
}

pub(crate) fn job(id: u32, arrival_s: i64, gpus: u32, work_s: f64) -> JobSpec {
    JobSpec {
        id: JobId(id),
        name: id.to_string().into(),
        tenant: TenantId(0),
        priority: 0,
        profile: profile(false),
        batch: 0,
        gpus: GpuRequest::fixed(gpus),
        gpu_type: None,
        estimated_work: work_s,
        arrival: Time(arrival_s * 1_000_000),
        deadline: Deadline::None,
        dataset: None,
        costs: None,
    }
}

pub(crate) fn workload(jobs: Vec<JobSpec>) -> Arc<Workload> {
    let truths = jobs.iter().map(|j| Truth::of(j.estimated_work)).collect();
    Arc::new(Workload {
        jobs: jobs.into_iter().map(Arc::new).collect(),
        truths,
        tenants: vec!["all".into()],
        datasets: Vec::new(),
    })
}

/// Jobs of all kinds; `is_plain` leaves out costs, data and sensitivity, so that run times are known exactly.
pub(crate) fn random_workload(dice: &mut Dice, cluster: &Cluster, is_plain: bool) -> Arc<Workload> {
    let mut now = 0;
    let mut jobs = Vec::new();
    for id in 0..1 + dice.roll(60) as u32 {
        now += dice.roll(900) as i64;
        let gpus = 1 + dice.roll(u64::from(cluster.n_gpus()) + 1) as u32;
        let mut spec = job(id, now, if dice.one_in(3) { gpus } else { 1 }, 1.0 + dice.roll(5_000) as f64);
        spec.tenant = TenantId(dice.roll(3) as u32);
        spec.priority = dice.roll(2) as i32;
        if !is_plain {
            spec.profile = profile(dice.one_in(2));
            spec.dataset = dice.one_in(3).then(|| DatasetId(dice.roll(2) as u32));
            let cost = |dice: &mut Dice| Span::from_secs(dice.roll(60) as i64);
            spec.costs = dice.one_in(2).then(|| Costs {
                restart: cost(dice),
                checkpoint: cost(dice),
                checkpoint_every: cost(dice),
            });
        }
        jobs.push(spec);
    }
    let mut workload = Arc::unwrap_or_clone(workload(jobs));
    if !is_plain {
        for truth in &mut workload.truths {
            truth.pace = [1.0, 0.8, 1.3][dice.roll(3) as usize];
            truth.work *= [1.0, 0.5, 1.7][dice.roll(3) as usize];
        }
        let dataset = |name: &str, bytes, home| Dataset { name: name.into(), bytes, home };
        workload.datasets =
            vec![dataset("a", 1_000_000_000, None), dataset("b", 2_500_000_000, Some(NodeId(0)))];
    }
    workload.tenants = vec!["a".into(), "b".into(), "c".into()];
    Arc::new(workload)
}

pub(crate) fn random_faults(dice: &mut Dice, cluster: &Cluster) -> Vec<Fault> {
    let mut faults = Vec::new();
    for _ in 0..dice.roll(6) {
        let node = NodeId(dice.roll(cluster.nodes().len() as u64) as u32);
        let down = dice.roll(20_000) as i64 * 1_000_000;
        faults.push(Fault::down(Time(down), node));
        faults.push(Fault::up(Time(down + 1 + dice.roll(5_000) as i64 * 1_000_000), node));
    }
    faults.sort_by_key(|f| f.time);
    faults
}

/// A world with all that clusters and jobs can have: racks, jobs that are bound to a GPU type or elastic, models that are
/// slower when spread over nodes or on another type, large data, and faults. Apart from
/// `random_cluster`, whose worlds the seeds of failures found before stand for.
pub(crate) fn random_world(dice: &mut Dice) -> (Arc<Cluster>, Arc<Workload>, Vec<Fault>) {
    let mut groups = vec![NodeGroup {
        racks: 1 + dice.roll(2) as u32,
        ..group(2 + dice.roll(4) as u32, 1 + dice.roll(8) as u32, 4.0 + dice.roll(30) as f64)
    }];
    if dice.one_in(2) {
        groups.push(NodeGroup {
            gpu_type: "T4".into(),
            racks: 1 + dice.roll(2) as u32,
            cache_bytes: 3_000_000_000 * dice.roll(2),
            fetch_bps: 10_000_000,
            ..group(2 + dice.roll(2) as u32, 1 + dice.roll(5) as u32, 8.0)
        });
    }
    let cluster = Arc::new(Cluster::new("random", &groups).expect("a cluster"));
    let mut workload = Arc::unwrap_or_clone(random_workload(dice, &cluster, false));
    for spec in &mut workload.jobs {
        let spec = Arc::make_mut(spec);
        if dice.one_in(3) {
            let n_types = cluster.gpu_types().len() as u64;
            spec.gpu_type = Some(GpuTypeId::from(dice.roll(n_types) as usize));
        }
        if dice.one_in(2) {
            let first = 1 + dice.roll(3) as u32;
            spec.gpus.levels = (0..1 + dice.roll(3)).map(|power| first << power).collect();
            spec.gpus.asked = spec.gpus.levels[dice.roll(spec.gpus.levels.len() as u64) as usize];
        }
        if dice.one_in(3) {
            let profile = Arc::make_mut(&mut spec.profile);
            profile.spread = vec![0.8, 0.5];
            profile.gpu_speed = vec![("T4".into(), 0.4)];
            profile.restart = Span::from_secs(dice.roll(90) as i64);
        }
    }
    let faults = random_faults(dice, &cluster);
    (cluster, Arc::new(workload), faults)
}

/// A policy that orders by a key and fills by the verbs; everything about it comes from a seed.
pub(crate) struct Walker {
    pub(crate) key: Key,
    pub(crate) walk: Walk,
    pub(crate) answers: Answers,
    pub(crate) placement: Box<dyn Place>,
    pub(crate) is_steady: bool,
    /// Elastic jobs get a level that changes from round to round, drawn with this seed; `None` gives what was asked for.
    pub(crate) elastic: Option<u64>,
    room: Option<Room>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Key {
    Arrival,
    Attained,
    Remaining,
    Scrambled(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answers {
    None,
    Fair,
    Tune,
    Whole,
}

impl Walker {
    pub(crate) fn new(key: Key, walk: Walk, answers: Answers) -> Self {
        Walker {
            key,
            walk,
            answers,
            placement: Box::new(FirstFit),
            is_steady: false,
            elastic: None,
            room: None,
        }
    }

    pub(crate) fn random(dice: &mut Dice) -> Self {
        let scramble = dice.roll(1_000);
        let key =
            [Key::Arrival, Key::Attained, Key::Remaining, Key::Scrambled(scramble)][dice.roll(4) as usize];
        let walk = Walk {
            demand: if dice.one_in(2) { Demand::Best } else { Demand::FairShare },
            misfit: if dice.one_in(4) { Misfit::Stop } else { Misfit::Skip },
            only_selected: dice.one_in(2),
            packs: if dice.one_in(2) { Sequence::LargestFirst } else { Sequence::Queue },
            stayers_first: dice.one_in(2),
            rearranges: dice.one_in(2).then_some(Sequence::Queue),
            tops_up: dice.one_in(2).then_some(Sequence::Queue),
            keep_places: !dice.one_in(3),
            ..Walk::default()
        };
        let answers = [Answers::None, Answers::Fair, Answers::Tune, Answers::Whole][dice.roll(4) as usize];
        let placement: Box<dyn Place> = match dice.roll(3) {
            0 => Box::new(FirstFit),
            1 => Box::new(Consolidate::default()),
            _ => Box::new(LocalData(Consolidate::default())),
        };
        Walker { placement, ..Walker::new(key, walk, answers) }
    }

    /// A level for each row; one in four keeps what it asked for, and a job is sometimes left out.
    fn counts(&self, snapshot: &Snapshot) -> Counts {
        let Some(seed) = self.elastic else { return Counts::Asked };
        let jobs = &snapshot.jobs;
        let level = |row: usize| {
            let dice =
                &mut Dice(seed ^ (snapshot.now.0 / 900_000_000) as u64 ^ u64::from(jobs.id(row).0) << 32);
            let request = &jobs.spec(row).gpus;
            match dice.roll(8) {
                0 => 0,
                1 | 2 => request.asked,
                _ if request.levels.is_empty() => request.asked,
                _ => request.levels[dice.roll(request.levels.len() as u64) as usize],
            }
        };
        Counts::PerRow((0..jobs.len()).map(level).collect())
    }

    fn keys(&self, snapshot: &Snapshot) -> Vec<f64> {
        let jobs = &snapshot.jobs;
        match self.key {
            Key::Arrival => jobs.column(Field::Arrival).to_vec(),
            Key::Attained => jobs.column(Field::Service).to_vec(),
            Key::Remaining => jobs.column(Field::Remaining).to_vec(),
            Key::Scrambled(seed) => {
                let round = (snapshot.now.0 / 1_000_000) as u64;
                (0..jobs.len())
                    .map(|row| Dice(seed ^ round ^ u64::from(jobs.id(row).0) << 32).roll(1_000) as f64)
                    .collect()
            }
        }
    }
}

impl Policy for Walker {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let keys = self.keys(snapshot);
        let mut order: Vec<u32> = (0..snapshot.jobs.len() as u32).collect();
        order.sort_by(|a, b| {
            let id = |row: &u32| snapshot.jobs.id(*row as usize);
            keys[*a as usize].total_cmp(&keys[*b as usize]).then(id(a).cmp(&id(b)))
        });
        let walk = Walk { counts: self.counts(snapshot), ..self.walk.clone() };
        let room = self.room.get_or_insert_with(|| Room::new(snapshot));
        room.reset(snapshot);
        let tune = || Answer::Reclaim(Reclaim::default());
        let mut whole_share = |row: usize, room: &Room| {
            let fair = room.fair_share(snapshot.jobs.spec(row).gpu_type.unwrap_or(GpuTypeId(0)));
            let demand = *snapshot.jobs.demand_per_gpu(row);
            Some(if demand.fits_in(&fair) { demand } else { fair })
        };
        let mut answers = match self.answers {
            Answers::None => vec![],
            Answers::Fair => vec![Answer::FairShare],
            Answers::Tune => vec![Answer::FairShare, tune()],
            Answers::Whole => vec![
                Answer::Ask(&mut whole_share),
                Answer::Reclaim(artifact::reclaim(Kept::WholeShare, Givers::Anyone)),
            ],
        };
        let granted = Fill::new(snapshot, room, &mut *self.placement).run(&order, &walk, &mut answers);
        let mut plan = plan_of(snapshot, granted);
        plan.wake = if self.is_steady { snapshot.steady_wake() } else { Wake::NextRound };
        admit_all(snapshot, &mut plan);
        Ok(plan)
    }
}

/// A policy that shares GPUs: every job gets thousandths of the first GPUs that have them left, and a job that runs
/// sometimes stays as it is. Everything comes from a seed and the time.
pub(crate) struct Sharer(pub(crate) u64);

impl Policy for Sharer {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let jobs = &snapshot.jobs;
        let dice = &mut Dice(self.0 ^ snapshot.now.0 as u64);
        let mut left: BTreeMap<(NodeId, u32), u16> = BTreeMap::new();
        for node in snapshot.cluster.nodes().iter().filter(|node| snapshot.nodes.is_up[node.id.index()]) {
            left.extend(snapshot.nodes.usable(node).iter().map(|gpu| ((node.id, gpu), WHOLE_GPU)));
        }
        let mut rows: Vec<usize> = (0..jobs.len()).collect();
        rows.sort_by_key(|row| jobs.id(*row));
        let mut plan = Plan::default();
        let (stay, move_about): (Vec<usize>, Vec<usize>) =
            rows.into_iter().partition(|row| jobs.phase(*row) == JobPhase::Running && !dice.one_in(3));
        for row in stay {
            for slice in &jobs.allocation(row).slices {
                for gpu in slice.gpus.iter() {
                    *left.get_mut(&(slice.node, gpu)).expect("a GPU that is up") -= slice.share;
                }
            }
            plan.run.push(Run { job: jobs.id(row), what: Hold::Keep });
        }
        for row in move_about {
            let share = [250, 333, 500, WHOLE_GPU][dice.roll(4) as usize];
            let count = jobs.gpus()[row] as usize;
            let taken: Vec<_> =
                left.iter().filter(|(_, left)| **left >= share).map(|(gpu, _)| *gpu).take(count).collect();
            if taken.len() < count {
                continue;
            }
            let mut by_node: BTreeMap<NodeId, GpuSet> = BTreeMap::new();
            for (node, gpu) in taken {
                *left.get_mut(&(node, gpu)).expect("found just now") -= share;
                let set = by_node.entry(node).or_insert(GpuSet::NONE);
                *set = set.or(GpuSet::one(gpu));
            }
            let slice = |(node, gpus)| Slice { node, gpus, share, host: Host::NONE };
            let allocation = Allocation { slices: by_node.into_iter().map(slice).collect() };
            plan.run.push(Run { job: jobs.id(row), what: Hold::Take(allocation) });
        }
        admit_all(snapshot, &mut plan);
        Ok(plan)
    }
}
