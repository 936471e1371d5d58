//! `check` against an independent judge: it accepts exactly the plans that a brute-force count accepts. And the guards
//! together: whatever plan they mend, no protected job is stopped and no tenant's other jobs exceed its quota.

#[expect(dead_code, reason = "shared with the other tests of this crate")]
mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::{Answers, Dice, Key, Walker, group, job, random_cluster, random_workload};
use rota_core::allocation::{Allocation, GpuSet, Slice, WHOLE_GPU};
use rota_core::check::check;
use rota_core::cluster::Cluster;
use rota_core::event::Event;
use rota_core::fill::{Misfit, Walk};
use rota_core::guards::mend;
use rota_core::ids::{JobId, NodeId, TenantId};
use rota_core::plan::{Hold, Plan, Run, Verdict};
use rota_core::policy::{Policy, PolicyError};
use rota_core::resources::Host;
use rota_core::round::{self, RoundError};
use rota_core::scheduler::Scheduler;
use rota_core::snapshot::{Guards, Snapshot};
use rota_core::table::JobPhase;
use rota_core::time::{Span, Time};

/// A cluster in the middle of its work: jobs that run, wait and ask, a node that is down, a GPU that is bad.
fn busy_cluster(dice: &mut Dice) -> Snapshot {
    let cluster = random_cluster(dice);
    let workload = random_workload(dice, &cluster, false);
    let mut scheduler =
        Scheduler::new(Arc::clone(&cluster), Guards::default(), Span::from_secs(300), Vec::new());
    let mut orders = Vec::new();
    let n_first = workload.jobs.len() / 2;
    let submit = |scheduler: &mut Scheduler, some: &[Arc<rota_core::job::JobSpec>]| {
        for spec in some {
            scheduler.handle(Time(1), &Event::JobSubmitted(Arc::clone(spec)), &mut Vec::new());
        }
    };
    submit(&mut scheduler, &workload.jobs[..n_first]);
    let snapshot = scheduler.snapshot(Time(2));
    let plan = Walker::random(dice).decide(&snapshot).expect("a walk decides");
    let checked = check(&snapshot, plan).expect("a walk's plan is sound");
    drop(snapshot);
    scheduler.commit(Time(2), checked);
    let node = NodeId(dice.roll(cluster.nodes().len() as u64) as u32);
    if dice.one_in(2) {
        scheduler.handle(Time(3), &Event::NodeLost { node }, &mut orders);
    } else if dice.one_in(2) {
        let gpu = dice.roll(cluster.nodes()[node.index()].n_gpus.into()) as u32;
        scheduler.handle(Time(3), &Event::GpuLost { node, gpu }, &mut orders);
    }
    submit(&mut scheduler, &workload.jobs[n_first..]);
    scheduler.snapshot(Time(4))
}

/// A sound plan with up to four things changed, most of them for the worse.
fn damaged_plan(dice: &mut Dice, snapshot: &Snapshot) -> Plan {
    let mut plan = Walker::random(dice).decide(snapshot).expect("a walk decides");
    for _ in 0..dice.roll(5) {
        damage(dice, snapshot, &mut plan);
    }
    plan
}

fn damage(dice: &mut Dice, snapshot: &Snapshot, plan: &mut Plan) {
    let any_job = |dice: &mut Dice| JobId(dice.roll(snapshot.jobs.len() as u64 + 3) as u32);
    match dice.roll(6) {
        0 if !plan.verdicts.is_empty() => {
            let which = dice.roll(plan.verdicts.len() as u64) as usize;
            match dice.roll(3) {
                0 => drop(plan.verdicts.remove(which)),
                1 => plan.verdicts[which].1 = Verdict::Decline("no".into()),
                _ => plan.verdicts.push(plan.verdicts[which].clone()),
            }
        }
        1 => plan.verdicts.push((any_job(dice), Verdict::Admit)),
        2 => {
            let what = if dice.one_in(2) { Hold::Keep } else { Hold::Take(Allocation::default()) };
            plan.run.push(Run { job: any_job(dice), what });
        }
        _ if plan.run.is_empty() => {}
        3 => {
            let which = dice.roll(plan.run.len() as u64) as usize;
            match dice.roll(4) {
                0 => drop(plan.run.remove(which)),
                1 => plan.run.push(plan.run[which].clone()),
                2 => plan.run[which].job = any_job(dice),
                _ => plan.run[which].what = Hold::Keep,
            }
        }
        _ => {
            let which = dice.roll(plan.run.len() as u64) as usize;
            if let Hold::Take(allocation) = &mut plan.run[which].what {
                damage_allocation(dice, snapshot, allocation);
            }
        }
    }
}

fn damage_allocation(dice: &mut Dice, snapshot: &Snapshot, allocation: &mut Allocation) {
    let n_nodes = snapshot.cluster.nodes().len() as u64;
    let any_slice = Slice {
        node: NodeId(dice.roll(n_nodes + 1) as u32),
        gpus: GpuSet(dice.roll(256)),
        share: WHOLE_GPU,
        host: Host::NONE,
    };
    if allocation.slices.is_empty() || dice.one_in(6) {
        return allocation.slices.push(any_slice);
    }
    let which = dice.roll(allocation.slices.len() as u64) as usize;
    let slice = &mut allocation.slices[which];
    match dice.roll(7) {
        0 => slice.node = any_slice.node,
        1 => slice.gpus = any_slice.gpus,
        // The same number of GPUs elsewhere on the node: often taken already.
        2 => slice.gpus = GpuSet(slice.gpus.0 << 1),
        3 => slice.share = [0, 1, 400, 500, 600, 999, 1001, u16::MAX][dice.roll(8) as usize],
        4 => slice.host = slice.host.times(1 + dice.roll(4) as u32),
        5 => slice.host.mem_bytes = [0, u64::MAX, u64::MAX / 2][dice.roll(3) as usize],
        _ => allocation.slices.reverse(),
    }
}

/// The rules, each written as a count over the whole plan; knows nothing of how `check` goes about it.
fn is_sound(snapshot: &Snapshot, plan: &Plan) -> bool {
    let phases: BTreeMap<JobId, JobPhase> =
        (0..snapshot.jobs.len()).map(|row| (snapshot.jobs.id(row), snapshot.jobs.phase(row))).collect();
    let judged: BTreeSet<JobId> = plan.verdicts.iter().map(|(job, _)| *job).collect();
    let run: BTreeSet<JobId> = plan.run.iter().map(|run| run.job).collect();
    let is_admitted = |job: JobId| plan.verdicts.contains(&(job, Verdict::Admit));
    let mut thousandths: BTreeMap<(NodeId, u32), u64> = BTreeMap::new();
    let mut hosts: BTreeMap<NodeId, [u128; 3]> = BTreeMap::new();
    let mut is_sound = judged.len() == plan.verdicts.len()
        && judged.iter().all(|job| phases.get(job) == Some(&JobPhase::Asking))
        && run.len() == plan.run.len()
        && run.iter().all(|job| match phases.get(job) {
            Some(JobPhase::Asking) => is_admitted(*job),
            Some(_) => true,
            None => false,
        });
    for run in &plan.run {
        let Some(row) = snapshot.jobs.row(run.job) else { return false };
        let spec = snapshot.jobs.spec(row);
        let allocation = match &run.what {
            Hold::Keep => {
                is_sound &= phases[&run.job] == JobPhase::Running;
                snapshot.jobs.allocation(row)
            }
            Hold::Take(allocation) => {
                let n_gpus: u32 =
                    allocation.slices.iter().map(|slice| slice.gpus.iter().count() as u32).sum();
                is_sound &= n_gpus == spec.gpus.asked || spec.gpus.levels.contains(&n_gpus);
                is_sound &= allocation.slices.windows(2).all(|pair| pair[0].node < pair[1].node);
                allocation
            }
        };
        for slice in &allocation.slices {
            let Some(node) = snapshot.cluster.nodes().get(slice.node.index()) else { return false };
            is_sound &= snapshot.nodes.is_up[slice.node.index()];
            is_sound &= spec.gpu_type.is_none_or(|wanted| wanted == node.gpu_type);
            is_sound &= slice.gpus.iter().count() > 0 && (1..=1000).contains(&slice.share);
            for gpu in slice.gpus.iter() {
                is_sound &= gpu < node.n_gpus;
                is_sound &= !snapshot.nodes.bad_gpus.get(&slice.node).is_some_and(|bad| bad.contains(gpu));
                *thousandths.entry((slice.node, gpu)).or_default() += u64::from(slice.share);
            }
            let sums = hosts.entry(slice.node).or_default();
            for (sum, more) in sums.iter_mut().zip(amounts(&slice.host)) {
                *sum += more;
            }
        }
    }
    let fits = |(node, sums): (&NodeId, &[u128; 3])| {
        let has = amounts(&snapshot.cluster.nodes()[node.index()].host);
        sums.iter().zip(has).all(|(sum, has)| *sum <= has)
    };
    is_sound && thousandths.values().all(|sum| *sum <= 1000) && hosts.iter().all(fits)
}

fn amounts(host: &Host) -> [u128; 3] {
    [host.cpu_micro.into(), host.mem_bytes.into(), host.storage_bps.into()]
}

#[test]
fn check_accepts_exactly_the_plans_that_a_brute_force_count_accepts() {
    let (mut n_accepted, mut n_refused) = (0, BTreeMap::<String, u32>::new());
    for seed in 0..6_000 {
        let mut dice = Dice(seed);
        let snapshot = busy_cluster(&mut dice);
        let plan = damaged_plan(&mut dice, &snapshot);
        let expected = is_sound(&snapshot, &plan);
        match check(&snapshot, plan.clone()) {
            Ok(_) => {
                assert!(expected, "seed {seed}: accepted {plan:#?}");
                n_accepted += 1;
            }
            Err(violation) => {
                assert!(!expected, "seed {seed}: refused with `{violation}` {plan:#?}");
                let kind = format!("{violation:?}");
                *n_refused.entry(kind.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
    }
    // Every rule was broken by some plan, and many plans were sound: the comparison above is not empty.
    assert!(n_accepted > 1_000, "{n_accepted} accepted");
    assert_eq!(n_refused.len(), 10, "{n_refused:?}");
    assert!(n_refused.values().all(|count| *count >= 5), "{n_refused:?}");
}

/// One node of four GPUs on which job 0 of tenant 1 holds two, since time 0; jobs 1 and 2 of the same tenant wait.
fn tenant_with_three_jobs(guards: Guards) -> Scheduler {
    let cluster = Arc::new(Cluster::new("test", &[group(1, 4, 12.0)]).expect("a cluster"));
    let mut scheduler = Scheduler::new(cluster, guards, Span::from_secs(300), Vec::new());
    let submit = |scheduler: &mut Scheduler, id| {
        let spec = rota_core::job::JobSpec { tenant: TenantId(1), ..job(id, 0, 2, 1e6) };
        scheduler.handle(Time::ZERO, &Event::JobSubmitted(Arc::new(spec)), &mut Vec::new());
    };
    (0..3).for_each(|id| submit(&mut scheduler, id));
    let snapshot = scheduler.snapshot(Time::ZERO);
    let verdicts = (0..3).map(|id| (JobId(id), Verdict::Admit)).collect();
    let plan = Plan { verdicts, run: vec![take(0, 0b0011)], ..Plan::default() };
    let checked = check(&snapshot, plan).expect("sound");
    drop(snapshot);
    scheduler.commit(Time::ZERO, checked);
    scheduler
}

fn take(job: u32, gpus: u64) -> Run {
    let slice = Slice { node: NodeId(0), gpus: GpuSet(gpus), share: WHOLE_GPU, host: Host::NONE };
    Run { job: JobId(job), what: Hold::Take(Allocation { slices: [slice].into_iter().collect() }) }
}

fn guards(min_run_s: i64, quota: u32) -> Guards {
    Guards { min_run: Span::from_secs(min_run_s), quota_gpus: [(TenantId(1), quota)].into() }
}

#[test]
fn a_protected_job_uses_its_tenants_quota_before_the_jobs_that_a_plan_names_first() {
    let mut scheduler = tenant_with_three_jobs(guards(600, 2));
    let keep = Run { job: JobId(0), what: Hold::Keep };
    for run in [vec![take(1, 0b1100)], vec![take(1, 0b1100), keep.clone()], vec![take(1, 0b0011)]] {
        let mut plan = Plan { run, ..Plan::default() };
        let snapshot = scheduler.snapshot(Time::from_secs_f64(300.0));
        mend(&snapshot, &mut plan);
        assert_eq!(plan.run, std::slice::from_ref(&keep), "{:?}", plan.notes);
        check(&snapshot, plan).expect("sound");
    }
    // Later nothing protects it: the order of the plan says who uses the quota.
    let mut plan = Plan { run: vec![take(1, 0b1100), keep], ..Plan::default() };
    mend(&scheduler.snapshot(Time::from_secs_f64(600.0)), &mut plan);
    assert_eq!(plan.run, [take(1, 0b1100)]);
    assert_eq!(plan.notes, ["guard: job 0 waits, its tenant's quota is used up"]);
}

#[test]
fn a_quota_that_was_lowered_stops_no_protected_job_and_starts_no_other() {
    let mut scheduler = tenant_with_three_jobs(guards(600, 1));
    let mut plan = Plan { run: vec![take(2, 0b1100)], ..Plan::default() };
    mend(&scheduler.snapshot(Time::from_secs_f64(300.0)), &mut plan);
    assert_eq!(plan.run, [Run { job: JobId(0), what: Hold::Keep }]);
    let notes = [
        "guard: job 0 has run for less than the minimum and goes on",
        "guard: job 2 waits, its tenant's quota is used up",
    ];
    assert_eq!(plan.notes, notes);
}

#[test]
fn both_guards_hold_for_random_plans_whatever_their_order() {
    let mut n_mended = 0;
    for seed in 0..2_000 {
        let mut dice = Dice(seed);
        let mut snapshot = busy_cluster(&mut dice);
        let quota_gpus = (0..3).map(|tenant| (TenantId(tenant), dice.roll(6) as u32)).collect();
        // Everything that runs began at time 2: all of it is protected, or none.
        let min_run = Span(dice.roll(4) as i64);
        snapshot.guards = Arc::new(Guards { min_run, quota_gpus });
        let mut plan = Walker::random(&mut dice).decide(&snapshot).expect("a walk decides");
        plan.run.retain(|_| !dice.one_in(3));
        plan.run.reverse();
        mend(&snapshot, &mut plan);
        n_mended += u32::from(!plan.notes.is_empty());
        let runs = |job: JobId| plan.run.iter().any(|run| run.job == job);
        let mut held: BTreeMap<TenantId, (u32, u32)> = BTreeMap::new();
        for row in 0..snapshot.jobs.len() {
            let (id, tenant) = (snapshot.jobs.id(row), snapshot.jobs.spec(row).tenant);
            let is_protected = snapshot.is_protected(row);
            assert!(!is_protected || runs(id), "seed {seed}: protected job {id} was stopped");
            let gpus = match plan.run.iter().find(|run| run.job == id).map(|run| &run.what) {
                None => 0,
                Some(Hold::Keep) => snapshot.jobs.allocation(row).n_gpus(),
                Some(Hold::Take(allocation)) => allocation.n_gpus(),
            };
            let sums = held.entry(tenant).or_default();
            *(if is_protected { &mut sums.0 } else { &mut sums.1 }) += gpus;
        }
        for (tenant, (protected, others)) in held {
            let quota = snapshot.guards.quota_gpus[&tenant];
            assert!(
                others <= quota.saturating_sub(protected),
                "seed {seed}: tenant {tenant} exceeds {quota}"
            );
        }
        check(&snapshot, plan).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
    }
    assert!(n_mended > 200, "{n_mended}");
}

/// A policy whose answer is known.
struct Fixed(Plan);

impl Policy for Fixed {
    fn decide(&mut self, _: &Snapshot) -> Result<Plan, PolicyError> {
        Ok(self.0.clone())
    }
}

#[test]
fn a_plan_that_gives_gpus_to_three_jobs_is_refused_as_a_whole_and_not_mended() {
    // Job 0 runs and is protected: a guard would put it back, and drop the two others from its GPUs.
    let mut scheduler = tenant_with_three_jobs(guards(600, 4));
    let snapshot = scheduler.snapshot(Time::from_secs_f64(300.0));
    for run in [
        vec![take(0, 0b0011), take(1, 0b0011), take(2, 0b0011)],
        vec![take(1, 0b0011), take(2, 0b0011)],
        vec![take(1, 0b0011), take(1, 0b1100)],
    ] {
        let plan = Plan { run, ..Plan::default() };
        let refused = round::decide(&snapshot, &mut Fixed(plan)).expect_err("refused");
        assert!(matches!(refused, RoundError::Violation(_)), "{refused}");
    }
    let sound = Plan { run: vec![take(1, 0b0011)], ..Plan::default() };
    let decision = round::decide(&snapshot, &mut Fixed(sound)).expect("a sound plan is mended");
    assert_eq!(decision.checked.plan().run, [Run { job: JobId(0), what: Hold::Keep }]);
    assert_eq!(decision.notes.len(), 1);
}

#[test]
fn a_job_beyond_its_tenants_quota_holds_no_gpu_from_the_jobs_behind_it() {
    let cluster = Arc::new(Cluster::new("test", &[group(1, 4, 12.0)]).expect("a cluster"));
    let mut scheduler = Scheduler::new(cluster, guards(0, 3), Span::from_secs(300), Vec::new());
    for (id, tenant, gpus) in [(0, 1, 2), (1, 1, 2), (2, 1, 1), (3, 2, 1)] {
        let spec = rota_core::job::JobSpec { tenant: TenantId(tenant), ..job(id, 0, gpus, 1e6) };
        scheduler.handle(Time::ZERO, &Event::JobSubmitted(Arc::new(spec)), &mut Vec::new());
    }
    let snapshot = scheduler.snapshot(Time::ZERO);
    for misfit in [Misfit::Skip, Misfit::Stop] {
        let walk = Walk { misfit, ..Walk::default() };
        let mut fifo = Walker::new(Key::Arrival, walk, Answers::Fair);
        let decision = round::decide(&snapshot, &mut fifo).expect("decides");
        let ids: Vec<u32> = decision.checked.plan().run.iter().map(|run| run.job.0).collect();
        assert_eq!(ids, [0, 2, 3], "{misfit:?}: {:?}", decision.notes);
        assert_eq!(decision.notes, Vec::<String>::new(), "no guard had to act");
    }
}

#[test]
fn walks_leave_nothing_to_the_guard_of_quotas() {
    let mut n_limited = 0;
    for seed in 0..2_000 {
        let mut dice = Dice(seed);
        let mut snapshot = busy_cluster(&mut dice);
        let quota_gpus: BTreeMap<_, _> =
            (0..3).map(|tenant| (TenantId(tenant), dice.roll(6) as u32)).collect();
        let mut walker = Walker::random(&mut dice);
        walker.elastic = dice.one_in(3).then_some(seed);
        let free = walker.decide(&snapshot).expect("a walk decides");
        snapshot.guards = Arc::new(Guards { min_run: Span::ZERO, quota_gpus });
        let plan = walker.decide(&snapshot).expect("a walk decides");
        n_limited += u32::from(plan.run != free.run);
        let mut mended = plan.clone();
        assert!(!mend(&snapshot, &mut mended), "seed {seed}: {:?}", mended.notes);
        assert_eq!(mended, plan, "seed {seed}");
        check(&snapshot, plan).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
    }
    assert!(n_limited > 500, "{n_limited}");
}
