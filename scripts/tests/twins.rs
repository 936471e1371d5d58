//! Shipped policies against their twins in plain Rhai (`scripts/tests/twins`), decision by decision on random small worlds: the
//! proof that the language suffices to write them, and that what the native verbs decide is what the twins say. Placements are
//! scripts over columns of nodes; their twins are the native verbs.

use std::fmt::Write as _;
use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rota_core::allocation::Allocation;
use rota_core::ids::JobId;
use rota_core::plan::{Hold, Plan, Verdict};
use rota_core::policy::{Policy, PolicyError};
use rota_core::simulation::{RunSettings, simulate};
use rota_core::snapshot::{Guards, Snapshot};
use rota_core::time::Span;
use rota_scripts::scenario::parse;
use rota_scripts::{Limits, ScriptPolicy, Source, shipped};

const EDF: &str = include_str!("twins/edf.rhai");
const ELASTICFLOW: &str = include_str!("twins/elasticflow.rhai");
const TUNE: &str = include_str!("twins/tune.rhai");

/// Worlds drawn for each policy.
const N_WORLDS: u64 = 150;

/// Two policies that are asked the same; the answer of the first is carried out.
struct Both {
    shipped: ScriptPolicy,
    twin: ScriptPolicy,
    n_decisions: usize,
    n_declined: usize,
    n_stopped: usize,
}

/// What a plan comes to: who runs with exactly what, who may enter.
#[derive(Debug, PartialEq)]
struct Decision {
    runs: Vec<(JobId, Allocation)>,
    verdicts: Vec<(JobId, bool)>,
    wake: rota_core::plan::Wake,
}

impl Decision {
    fn of(snapshot: &Snapshot, plan: &Plan) -> Decision {
        let held = |job: &JobId| snapshot.jobs.row(*job).map(|row| snapshot.jobs.allocation(row).clone());
        let run = |run: &rota_core::plan::Run| match &run.what {
            Hold::Keep => (run.job, held(&run.job).unwrap_or_default()),
            Hold::Take(what) => (run.job, what.clone()),
        };
        let mut runs: Vec<_> = plan.run.iter().map(run).collect();
        runs.sort_by_key(|(job, _)| *job);
        let mut verdicts: Vec<_> =
            plan.verdicts.iter().map(|(job, verdict)| (*job, *verdict == Verdict::Admit)).collect();
        verdicts.sort_by_key(|(job, _)| *job);
        Decision { runs, verdicts, wake: plan.wake }
    }
}

impl Policy for Both {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let plan = self.shipped.decide(snapshot)?;
        let twin = self.twin.decide(snapshot)?;
        let (ours, theirs) = (Decision::of(snapshot, &plan), Decision::of(snapshot, &twin));
        if ours != theirs {
            let message = format!("at {} s they differ\nshipped {ours:?}\ntwin    {theirs:?}", snapshot.now);
            return Err(PolicyError { message });
        }
        self.n_decisions += 1;
        self.n_declined += ours.verdicts.iter().filter(|(_, is_in)| !is_in).count();
        let running = (0..snapshot.jobs.len()).filter(|row| !snapshot.jobs.allocation(*row).is_empty());
        self.n_stopped +=
            running.filter(|row| !ours.runs.iter().any(|run| run.0 == snapshot.jobs.id(*row))).count();
        Ok(plan)
    }
}

fn shipped_source(name: &str) -> Source {
    let script = shipped::find(name).unwrap_or_else(|| panic!("{name} is shipped"));
    Source { name: name.into(), file: script.file.into(), text: script.source.into() }
}

fn policy(sources: &[Source]) -> ScriptPolicy {
    let limits = Limits { operations: 1_000_000_000, ..Limits::default() };
    ScriptPolicy::from_sources("twin", sources, limits).unwrap_or_else(|error| panic!("{error}"))
}

/// A world in the language of scenarios.
struct World {
    rng: ChaCha8Rng,
    text: String,
    /// When the last job arrives.
    at_s: u32,
}

impl World {
    fn new(seed: u64) -> World {
        World { rng: ChaCha8Rng::seed_from_u64(seed), text: "scenario: drawn\n".into(), at_s: 0 }
    }

    fn between(&mut self, low: u32, high: u32) -> u32 {
        self.rng.random_range(low..=high)
    }

    fn of(&mut self, values: &[u32]) -> u32 {
        values[self.rng.random_range(0..values.len())]
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.between(1, n) == 1
    }

    fn cluster(&mut self) {
        let n_kinds = if self.one_in(3) { 2 } else { 1 };
        for _ in 0..n_kinds {
            let (nodes, gpus) = (self.between(1, 3), self.of(&[1, 2, 4, 4, 8]));
            let (cpus, mem) = (gpus * self.between(2, 6) + self.between(0, 1), gpus * self.of(&[20, 40, 60]));
            writeln!(self.text, "cluster {nodes} nodes, {gpus} gpus, {cpus} cpus, {mem} GB").expect("text");
        }
    }

    /// When the next job arrives; with a pause of 0 all are there at once.
    fn arrival(&mut self, most_pause_s: u32) -> u32 {
        self.at_s += self.between(0, most_pause_s);
        self.at_s
    }

    fn elastic_job(&mut self, name: usize, most_pause_s: u32) {
        let mut speeds = String::from("1:1");
        let mut speed = 10;
        for gpus in [2, 4, 8].into_iter().take(self.between(0, 3) as usize) {
            speed += self.between(1, speed);
            write!(speeds, ",{gpus}:{}.{}", speed / 10, speed % 10).expect("text");
        }
        // Some jobs are so long that plans reach beyond the rounds of full precision.
        let longest = if self.one_in(4) { 40_000 } else { 6_000 };
        let (at, work) = (self.arrival(most_pause_s), self.between(100, longest));
        write!(self.text, "job j{name} speeds={speeds} work={work} at={at}").expect("text");
        if !self.one_in(5) {
            let deadline = at + work * self.between(3, 30) / 10 + self.between(0, 300);
            write!(self.text, " deadline={deadline}").expect("text");
        }
        if self.one_in(2) {
            let restart = self.between(1, 200);
            write!(self.text, " restart={restart}").expect("text");
        }
        self.text.push('\n');
    }
}

/// Runs a world with both; what was seen, as numbers of decisions, refusals and stops.
fn compare(world: &World, shipped: &[Source], twin: &[Source], min_run: Span) -> Result<[usize; 3], String> {
    let scenarios =
        parse(&format!("{}policy fifo\n----\n", world.text)).unwrap_or_else(|error| panic!("{error}"));
    let scenario = &scenarios[0];
    let mut both =
        Both { shipped: policy(shipped), twin: policy(twin), n_decisions: 0, n_declined: 0, n_stopped: 0 };
    let guards = Guards { min_run, ..Guards::default() };
    let settings = RunSettings { round: scenario.round, guards, ..RunSettings::default() };
    let (cluster, workload) = (Arc::clone(&scenario.cluster), Arc::clone(&scenario.workload));
    simulate(cluster, workload, Vec::new(), &mut both, &settings, &mut |_| {})
        .map_err(|error| format!("{error}\n{}", world.text))?;
    Ok([both.n_decisions, both.n_declined, both.n_stopped])
}

fn twin(name: &str, text: &str) -> Source {
    Source { name: name.into(), file: format!("twins/{name}.rhai"), text: text.into() }
}

fn elastic_worlds(name: &str, text: &str) -> Result<[usize; 3], String> {
    let mut seen = [0; 3];
    for seed in 0..N_WORLDS {
        let mut world = World::new(seed);
        world.cluster();
        let (n_jobs, pause_s) = (world.between(1, 14) as usize, world.of(&[0, 300, 1200]));
        (0..n_jobs).for_each(|job| world.elastic_job(job, pause_s));
        let of_world = compare(&world, &[shipped_source(name)], &[twin(name, text)], Span::ZERO)?;
        seen.iter_mut().zip(of_world).for_each(|(sum, n)| *sum += n);
    }
    Ok(seen)
}

/// How a job's speed depends on a resource: 1 at the share, more with more, or not at all.
fn need(world: &mut World, share: u32) -> String {
    if world.one_in(2) {
        return world.between(1, share.max(1)).to_string();
    }
    let demand = share + world.between(1, 3 * share.max(1));
    let gain = world.between(1, 20);
    format!("{share}:1,{demand}:{}.{}", 1 + gain / 10, gain % 10)
}

impl World {
    fn gang(&mut self, name: usize, most_pause_s: u32) {
        let (gpus, at, work) =
            (self.of(&[1, 1, 1, 2, 2, 3, 4]), self.arrival(most_pause_s), self.between(100, 6000));
        let (cpus, mem) = (self.between(1, 5), self.of(&[10, 20, 40]));
        let (cpus, mem) = (need(self, cpus), need(self, mem));
        write!(self.text, "job j{name} gpus={gpus} work={work} at={at} cpus={cpus} mem={mem}").expect("text");
        if self.one_in(3) {
            let restart = self.between(1, 60);
            write!(self.text, " restart={restart}").expect("text");
        }
        if self.one_in(4) {
            self.text.push_str(" spread=0.8,0.5");
        }
        self.text.push('\n');
    }
}

fn tune_worlds(text: &str) -> Result<[usize; 3], String> {
    let mut seen = [0; 3];
    for seed in 0..N_WORLDS {
        let mut world = World::new(1_000_000 + seed);
        world.cluster();
        let (n_jobs, pause_s) = (world.between(2, 16) as usize, world.of(&[0, 300, 1200]));
        (0..n_jobs).for_each(|job| world.gang(job, pause_s));
        let order = ["fifo", "srtf", "las"][seed as usize % 3];
        let place = ["first-fit", "consolidate", "local-search", "switch-consolidate"][seed as usize / 3 % 4];
        let others = [shipped_source(order), shipped_source(place)];
        let ours = [&others[..], &[shipped_source("tune")]].concat();
        let theirs = [&others[..], &[twin("tune", text)]].concat();
        let min_run = if seed % 5 == 0 { Span::from_secs(700) } else { Span::ZERO };
        let of_world = compare(&world, &ours, &theirs, min_run)?;
        seen.iter_mut().zip(of_world).for_each(|(sum, n)| *sum += n);
    }
    Ok(seen)
}

/// Shipped placements, and the native verbs that they were before they were scripts.
const PLACEMENTS: [(&str, &str); 7] = [
    ("first-fit", "first_fit()"),
    ("consolidate", "consolidate()"),
    ("local-data", "local_data(consolidate())"),
    ("switch-consolidate", "switch_consolidate()"),
    ("switch-splits", "switch_splits()"),
    ("random", "random_nodes(0)"),
    ("local-search", "local_search()"),
];

impl World {
    /// Nodes below several switches, with caches.
    fn racks(&mut self) {
        let n_kinds = if self.one_in(3) { 2 } else { 1 };
        for _ in 0..n_kinds {
            let (racks, gpus) = (self.between(1, 3), self.of(&[1, 2, 3, 4, 4, 8]));
            let nodes = racks * self.between(1, 3);
            let (cpus, mem) = (gpus * self.between(2, 5) + self.between(0, 1), gpus * self.of(&[20, 40]));
            let kind =
                format!("{nodes} nodes, {gpus} gpus, {cpus} cpus, {mem} GB, 60 GB cache, {racks} racks");
            writeln!(self.text, "cluster {kind}").expect("text");
        }
        self.text.push_str("data small 20 GB\ndata large 45 GB\n");
    }

    /// A gang of up to twelve, perhaps with a data set.
    fn wide_gang(&mut self, name: usize, most_pause_s: u32) {
        let gpus = self.of(&[1, 1, 1, 2, 2, 3, 4, 5, 6, 8, 12]);
        let (at, work) = (self.arrival(most_pause_s), self.between(100, 4000));
        let (cpus, mem) = (self.between(1, 4), self.of(&[10, 20]));
        let (cpus, mem) = (need(self, cpus), need(self, mem));
        write!(self.text, "job j{name} gpus={gpus} work={work} at={at} cpus={cpus} mem={mem}").expect("text");
        if self.one_in(2) {
            let data = ["small", "large"][self.between(0, 1) as usize];
            write!(self.text, " data={data}").expect("text");
        }
        self.text.push('\n');
    }
}

/// A placement of one line against a native verb.
fn placement_worlds(name: &str, ours: &Source, native: &str) -> Result<[usize; 3], String> {
    let theirs = twin(name, &format!("steady();\nfn place(view) {{ {native} }}"));
    let mut seen = [0; 3];
    for seed in 0..N_WORLDS {
        let mut world = World::new(2_000_000 + seed);
        world.racks();
        let (n_jobs, pause_s) = (world.between(4, 30) as usize, world.of(&[0, 100, 400]));
        (0..n_jobs).for_each(|job| world.wide_gang(job, pause_s));
        let order = ["fifo", "srtf", "las"][seed as usize % 3];
        let allocation = ["proportional", "greedy", "tune"][seed as usize / 3 % 3];
        let others = [shipped_source(order), shipped_source(allocation)];
        let ours = [&others[..], std::slice::from_ref(ours)].concat();
        let theirs = [&others[..], std::slice::from_ref(&theirs)].concat();
        let of_world = compare(&world, &ours, &theirs, Span::ZERO)?;
        seen.iter_mut().zip(of_world).for_each(|(sum, n)| *sum += n);
    }
    Ok(seen)
}

/// That the worlds are ones in which something is decided: so many decisions, refusals and stops at least.
#[track_caller]
fn assert_alike(seen: Result<[usize; 3], String>, least: [usize; 3]) {
    let seen = seen.unwrap_or_else(|error| panic!("{error}"));
    assert!(seen.iter().zip(&least).all(|(n, least)| n >= least), "{seen:?} are fewer than {least:?}");
}

#[test]
fn edf_in_plain_rhai_decides_as_edf_does() {
    assert_alike(elastic_worlds("edf", EDF), [2_000, 0, 100]);
}

#[test]
fn elasticflow_in_plain_rhai_decides_as_elasticflow_does() {
    assert_alike(elastic_worlds("elasticflow", ELASTICFLOW), [1_500, 100, 50]);
}

#[test]
fn tune_in_plain_rhai_decides_as_tune_does() {
    assert_alike(tune_worlds(TUNE), [3_500, 0, 500]);
}

/// Each of these changes one rule of a twin as text: were a rule of no consequence in these worlds, nothing would be compared.
#[test]
fn a_twin_with_another_rule_is_found_out() {
    let edited = |text: &str, old: &str, new: &str| {
        assert_eq!(text.matches(old).count(), 1, "`{old}` is there once");
        text.replace(old, new)
    };
    for (name, text, old, new) in [
        ("edf", EDF, "rank(view.jobs.deadline)", "rank(view.jobs.arrival)"),
        ("elasticflow", ELASTICFLOW, "let reach = 64 * width;", "let reach = 2 * width;"),
        ("elasticflow", ELASTICFLOW, "worth > best.worth ||", "worth < best.worth ||"),
        ("elasticflow", ELASTICFLOW, "- 1.0 + kept", "- 1.0"),
        ("elasticflow", ELASTICFLOW, "if planned.is_late { return false; }", ""),
        ("elasticflow", ELASTICFLOW, "        below = level;\n", ""),
    ] {
        assert!(elastic_worlds(name, &edited(text, old, new)).is_err(), "{name} without `{old}`");
    }
    for (old, new) in [
        ("[given.places.len, -each.cpus, -each.mem_gb]", "[given.places.len, each.cpus]"),
        ("        walk.top_up(chosen);\n", ""),
        ("for job in stayers { this.serve(job, true); }\n    for job in others {", "for job in others {"),
        ("if this.exchange(wish) { return true; }", ""),
        ("claims: !was_there", "claims: true"),
        ("if several != () { several } else { this.gang_to_shift(wish, node, gpus, host) }", "several"),
        ("            } else {\n                this.claim_in_place(number);\n", ""),
    ] {
        assert!(tune_worlds(&edited(TUNE, old, new)).is_err(), "tune without `{old}`");
    }
}

#[test]
fn placements_over_columns_of_nodes_decide_as_the_native_verbs_do() {
    for (name, native) in PLACEMENTS {
        let seen = placement_worlds(name, &shipped_source(name), native);
        assert_alike(seen.map_err(|error| format!("{name}: {error}")), [2_000, 0, 100]);
    }
}

/// Each of these changes one rule of a shipped placement as text.
#[test]
fn a_placement_with_another_rule_is_found_out() {
    for (name, old, new) in [
        ("first-fit", "rank(nodes.id)", "rank(-nodes.id)"),
        ("consolidate", "-nodes.holds, ", ""),
        ("consolidate", "nodes.free_gpus", "-nodes.free_gpus"),
        ("consolidate", " | (job.gpus == 1)", ""),
        ("local-data", "nodes.has_data & nodes.holds", "nodes.has_data & 0"),
        ("local-data", "rank(-is_near, ", "rank("),
        ("switch-consolidate", ".compact()", ""),
        ("switch-consolidate", "\n        .within(nodes.rack)", ""),
        ("switch-consolidate", ".or_else(over_several)", ""),
        ("switch-consolidate", "\n        .only(nodes.widest_rack < job.gpus)", ""),
        ("switch-splits", "[[4], [2, 2]]", "[[4]]"),
        ("random", ".one_by_one()", ""),
        ("random", "nodes.drawn(param(\"place_seed\"))", "nodes.id"),
        ("random", "param(\"place_seed\"))", "1)"),
        ("local-search", "[[4], [2, 2]]", "[[4]]"),
        // Speeds do not depend on the nodes here; scripts/tests/placement.rs has a world in which they do.
        ("local-search", ", \"tightest\"", ""),
        ("switch-splits", "where(is_narrow, nodes.holds * nodes.fits, -nodes.fits)", "nodes.id"),
    ] {
        let shipped = shipped_source(name);
        assert_eq!(shipped.text.matches(old).count(), 1, "`{old}` is once in {name}");
        let edited = Source { text: shipped.text.replace(old, new), ..shipped };
        let native = PLACEMENTS.iter().find(|(of, _)| *of == name).expect("it has a twin").1;
        assert!(placement_worlds(name, &edited, native).is_err(), "{name} without `{old}`");
    }
}
