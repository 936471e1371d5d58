//! Placements over columns of nodes: what `rank` and its verbs mean, when the script is asked, what its errors say, and what
//! the placements `spread` and `fgd` do.

use std::path::Path;
use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rota_core::allocation::Allocation;
use rota_core::check::check;
use rota_core::plan::{Hold, Plan};
use rota_core::policy::{Policy, PolicyError};
use rota_core::resources::Host;
use rota_core::simulation::{RunSettings, simulate};
use rota_core::snapshot::Snapshot;
use rota_scripts::sample::{Size, snapshot};
use rota_scripts::scenario::parse;
use rota_scripts::{Limits, ScriptPolicy, Source, commands};

fn policy(text: &str) -> ScriptPolicy {
    let source = Source { name: "mine".into(), file: "mine.rhai".into(), text: text.into() };
    ScriptPolicy::from_sources("mine", &[source], Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn decide(text: &str, instant: &Snapshot) -> Plan {
    let plan = policy(text).decide(instant).unwrap_or_else(|error| panic!("{error}"));
    check(instant, plan.clone()).unwrap_or_else(|violation| panic!("{violation}"));
    plan
}

#[track_caller]
fn error_of(body: &str) -> String {
    let instant = snapshot(Size { n_nodes: 4, n_old: 4, n_new: 3 });
    let error = policy(&format!("fn place(job, nodes) {{\n    {body}\n}}")).decide(&instant);
    error.expect_err("it fails").message
}

#[track_caller]
fn fails(body: &str, expected: &str) {
    let error = error_of(body);
    assert!(error.contains(expected), "{error}\nshould contain\n{expected}");
}

/// What each job of a world holds after its first decision, `job:node[gpus]`.
#[track_caller]
fn placed(world: &str, place: &str) -> String {
    let scenario = &parse(&format!("scenario: s\n{world}policy fifo\n----\n")).expect("a world")[0];
    struct First(ScriptPolicy, Option<String>);
    impl Policy for First {
        fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
            let plan = self.0.decide(snapshot)?;
            let held = |(row, held): (usize, &Allocation)| {
                let slices = held.slices.iter().map(|s| format!("{}{:?}", s.node.0, s.gpus.iter().collect::<Vec<_>>()));
                format!("{}:{}", snapshot.jobs.spec(row).name, slices.collect::<Vec<_>>().join("+"))
            };
            let runs = plan.run.iter().filter_map(|run| match &run.what {
                Hold::Take(what) => Some((snapshot.jobs.row(run.job)?, what)),
                Hold::Keep => None,
            });
            self.1.get_or_insert_with(|| runs.map(held).collect::<Vec<_>>().join(" "));
            Ok(plan)
        }
    }
    let mut first = First(policy(&format!("fn place(job, nodes) {{ {place} }}")), None);
    let (cluster, workload) = (Arc::clone(&scenario.cluster), Arc::clone(&scenario.workload));
    let settings = RunSettings { round: scenario.round, ..RunSettings::default() };
    simulate(cluster, workload, Vec::new(), &mut first, &settings, &mut |_| {})
        .unwrap_or_else(|error| panic!("{error}"));
    first.1.unwrap_or_default()
}

const TWO_RACKS: &str = "cluster 4 nodes, 4 gpus, 12 cpus, 100 GB, 2 racks\n";

#[test]
fn a_job_takes_all_it_can_of_the_first_node_then_of_the_next() {
    let world = format!("{TWO_RACKS}job a gpus=3\njob b gpus=6\njob c gpus=2\n");
    assert_eq!(placed(&world, "rank(nodes.id)"), "a:0[0, 1, 2] b:0[3]+1[0, 1, 2, 3]+2[0] c:2[1, 2]");
    assert_eq!(placed(&world, "rank(-nodes.id)"), "a:3[0, 1, 2] b:1[0]+2[0, 1, 2, 3]+3[3] c:1[1, 2]");
    let fullest = "rank(nodes.free_gpus).from_top(nodes.id == 0)";
    assert_eq!(placed(&world, fullest), "a:0[1, 2, 3] b:0[0]+1[0, 1, 2, 3]+2[0] c:2[1, 2]");
}

#[test]
fn conditions_groups_and_splits_are_kept() {
    let world = format!("{TWO_RACKS}job a gpus=3\njob b gpus=5\njob c gpus=2\n");
    assert_eq!(placed(&world, "rank(nodes.id).only(nodes.rack == 1)"), "a:2[0, 1, 2] b:2[3]+3[0, 1, 2, 3]");
    let below_one = "rank(-nodes.free_gpus).within(nodes.rack)";
    assert_eq!(placed(&world, below_one), "a:0[0, 1, 2] b:0[3]+1[0, 1, 2, 3] c:2[0, 1]");
    // Five GPUs need two nodes of four, also where one of them is partly taken; two need one.
    let compact = "rank(nodes.free_gpus).compact()";
    assert_eq!(placed(&format!("{world}job d gpus=2\n"), compact), "a:0[0, 1, 2] b:0[3]+1[0, 1, 2, 3] c:2[0, 1] d:2[2, 3]");
    let whole = "rank(nodes.id).splits([[[1]], [[2]], [[3]], [[4]], [[5], [4, 1]]])";
    assert_eq!(placed(&world, whole), "a:0[0, 1, 2] b:0[3]+1[0, 1, 2, 3] c:2[0, 1]");
    let halves = "rank(nodes.id).splits([[[1]], [[2]], [[3]], [[4]], [[3, 2]]])";
    assert_eq!(placed(&world, halves), "a:0[0, 1, 2]", "a job that may not be split so waits, and those behind are tried");
}

#[test]
fn the_other_placement_is_asked_where_the_first_finds_nothing() {
    let world = format!("{TWO_RACKS}job a gpus=3\njob b gpus=2\n");
    let place = "rank(nodes.id).only(nodes.holds & (nodes.rack == 0) & (job.gpus > 2)).or_else(rank(-nodes.id))";
    assert_eq!(placed(&world, place), "a:0[0, 1, 2] b:3[0, 1]");
}

/// Formulas in columns and the same as a closure, in which plain Rhai computes.
#[test]
fn columns_of_nodes_are_what_a_closure_computes_for_each_node() {
    let formulas = [
        ("nodes.free_gpus", "node.free_gpus"),
        ("(nodes.id - 3).abs()", "abs(node.id - 3)"),
        ("where(nodes.free_gpus >= job.gpus, nodes.free_gpus, 100 - nodes.id)", "if node.free_gpus >= job.gpus { node.free_gpus } else { 100 - node.id }"),
        ("min(nodes.free_gpus, job.gpus) * nodes.free_mem", "min(node.free_gpus, job.gpus) * node.free.mem_gb"),
        ("max(nodes.id, 2) ** 2 - nodes.free_cpus", "max(node.id, 2) * max(node.id, 2) - node.free.cpus"),
        ("(nodes.id > 2) & !(nodes.id == 5) | (nodes.free_gpus < 2)", "if node.id > 2 && node.id != 5 || node.free_gpus < 2 { 1 } else { 0 }"),
        ("clamp(nodes.id, 1, 4) + floor(nodes.free_cpus / 7)", "max(1, min(4, node.id)) + floor(node.free.cpus / 7.0)"),
        ("sqrt(nodes.free_gpus + job.remaining / 3600)", "sqrt(node.free_gpus + job.remaining / 3600)"),
        ("nodes.rack * 10 - nodes.mem / nodes.gpus + nodes.cpus", "node.rack * 10 - node.share.mem_gb / node.gpus + node.share.cpus"),
    ];
    for (column, closure) in formulas {
        for (n_old, n_new) in [(0, 40), (30, 20), (60, 10)] {
            let instant = snapshot(Size { n_nodes: 8, n_old, n_new });
            let fast = format!("fn place(job, nodes) {{ rank({column}).from_top(nodes.id >= 0) }}");
            let slow = format!("fn place(view) {{ by_score(|node, job| -1.0 * ({closure})) }}");
            assert_eq!(decide(&fast, &instant).run, decide(&slow, &instant).run, "{column}");
        }
    }
}

#[test]
fn the_script_is_asked_once_and_again_when_a_parameter_is_set() {
    let text = "param(\"sign\", 1, -1..=1, \"Which end first.\");\nfn place(job, nodes) { print(\"asked\"); rank(param(\"sign\") * nodes.id) }";
    let instant = snapshot(Size { n_nodes: 4, n_old: 0, n_new: 1 });
    let mut policy = policy(text);
    let node = |plan: &Plan| match &plan.run[0].what {
        Hold::Take(held) => held.slices[0].node.0,
        Hold::Keep => panic!("{plan:?}"),
    };
    let first = policy.decide(&instant).expect("it decides");
    let second = policy.decide(&instant).expect("it decides");
    assert_eq!((first.notes.len(), second.notes.len(), node(&first)), (1, 0, 0));
    assert_eq!(first.run, second.run);
    policy.set("sign", "-1").expect("a parameter");
    let third = policy.decide(&instant).expect("it decides");
    assert_eq!((third.notes.len(), node(&third)), (1, 3));
}

#[test]
fn a_placement_of_this_round_is_made_with_a_view() {
    let text = "fn place(view) {
        let is_odd = view.jobs.len % 2 == 1;
        place_by(|job, nodes| rank(if is_odd { nodes.id } else { -nodes.id }))
    }";
    for (n_new, expected) in [(1, 0), (2, 3)] {
        let plan = decide(text, &snapshot(Size { n_nodes: 4, n_old: 0, n_new }));
        let Hold::Take(held) = &plan.run[0].what else { panic!("{plan:?}") };
        assert_eq!(held.slices[0].node.0, expected);
    }
}

#[test]
fn mistakes_are_explained_in_the_scripts_words() {
    fails("rank(nodes.fre_gpus)", "Nodes has no field `fre_gpus`");
    fails("rank(job.gpu)", "Gang has no field `gpu`");
    fails("if job.gpus > 1 { rank(nodes.id) } else { rank(-nodes.id) }", "expected true or false, got NodeColumn");
    fails("rank((nodes.id - nodes.id) / 0)", "rank: key 1 of node 0 for job");
    fails("rank(nodes.id).only((nodes.id - nodes.id) / 0)", "rank: a condition of node 0 for job");
    fails("rank(nodes.id, \"x\")", "rank: key 2 must be a column of nodes or a number like the other keys, got a String");
    fails("nodes.id", "`place` must return a Placement, such as rank(nodes.id), got a NodeColumn");
    fails("this.n = 1; rank(nodes.id)", "`this` is not kept here");
    fails("first_fit().within(nodes.rack)", "within: only what `rank` returns has nodes to choose from");
    fails("rank(nodes.id).splits([[[1]], [[1]]])", "splits: entry 1 must be an array of splits of 2 GPUs");
    let twice = "fn place(view) { first_fit() }\nfn place(job, nodes) { rank(nodes.id) }";
    let source = Source { name: "mine".into(), file: "mine.rhai".into(), text: twice.into() };
    let error = ScriptPolicy::from_sources("mine", &[source], Limits::default()).err().expect("ambiguous");
    assert!(error.to_string().contains("a stage that is written twice"), "{error}");
}

#[test]
fn the_names_of_a_placement_are_checked_without_running_it() {
    let check = |body: &str| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("placement-names");
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let file = folder.join("mine.rhai");
        let text = format!("// mine: a placement.\n// Source: ours.\nfn place(job, nodes) {{\n    {body}\n}}\n");
        std::fs::write(&file, text).expect("it is written");
        commands::check(file.to_str().expect("a plain path")).map_err(|error| error.to_string())
    };
    let never = "if nodes.id != () { return rank(nodes.id); }";
    for (wrong, expected) in [
        ("rank(nodes.free)", "Nodes has no field `free`"),
        ("rank(nodes.fits * job.width)", "Gang has no field `width`"),
        ("rank(min(nodes.fits, 3).total(nodes.rack))", "NodeColumn has no verb `total`"),
        ("rank(nodes.id + 1).first(3)", "Placement has no verb `first`"),
        ("if nodes.holds { rank(nodes.id) } else { rank(nodes.rack) }", "a NodeColumn is not a condition"),
    ] {
        let error = check(&format!("{never}\n    {wrong}")).expect_err("a wrong name");
        assert!(error.contains(expected), "{error}\nshould contain\n{expected}");
    }
    check("rank(min(nodes.fits, 3).total_by(nodes.rack)).within(nodes.rack).compact()").expect("all names exist");
}

/// Free GPUs that a job drawn from those of the run cannot use, on average over the decisions of a run, in GPUs.
struct Watched {
    policy: ScriptPolicy,
    demands: Vec<(u32, Host)>,
    fragments: f64,
    n_decisions: u32,
}

impl Policy for Watched {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let plan = self.policy.decide(snapshot)?;
        let nodes = snapshot.cluster.nodes();
        let mut free: Vec<(u32, Host)> = nodes.iter().map(|node| (node.n_gpus, node.host)).collect();
        for run in &plan.run {
            let row = snapshot.jobs.row(run.job).expect("it is there");
            let held = match &run.what {
                Hold::Keep => snapshot.jobs.allocation(row),
                Hold::Take(what) => what,
            };
            for slice in &held.slices {
                let (gpus, host) = &mut free[slice.node.index()];
                *gpus -= slice.gpus.len();
                *host = host.saturating_sub(&slice.host);
            }
        }
        let useless = |(gpus, host): &(u32, Host)| {
            let cannot = self.demands.iter().filter(|(n, each)| gpus < n || !each.times(*n).fits_in(host));
            f64::from(*gpus) * cannot.count() as f64 / self.demands.len() as f64
        };
        self.fragments += free.iter().map(useless).sum::<f64>();
        self.n_decisions += 1;
        Ok(plan)
    }
}

/// A cluster of twelve nodes under load, with jobs of many sizes of which some want many CPUs.
fn mixed_world(seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut text = String::from("scenario: mixed\ncluster 12 nodes, 8 gpus, 48 cpus, 400 GB\n");
    let mut at = 0;
    for job in 0..400 {
        at += rng.random_range(0..=130);
        let gpus = [1, 1, 1, 2, 2, 3, 4, 5, 6, 8][rng.random_range(0..10)];
        let cpus = [2, 4, 6, 6, 9, 12][rng.random_range(0..6)];
        let work = rng.random_range(300..=3000);
        text += &format!("job j{job} gpus={gpus} work={work} at={at} cpus={cpus} mem=10\n");
    }
    text
}

/// Fragments of a run by a placement, in GPUs.
fn fragmentation(placement: &str, seed: u64) -> f64 {
    let text = format!("{}policy fifo\n----\n", mixed_world(seed));
    let scenario = &parse(&text).unwrap_or_else(|error| panic!("{error}"))[0];
    let name = format!("no-preempt+fifo+greedy+{placement}");
    let policy = ScriptPolicy::load(&name, Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    let jobs = scenario.workload.jobs.iter();
    let demands = jobs.map(|job| (job.gpus.asked, job.demand_per_gpu(&scenario.cluster))).collect();
    let mut watched = Watched { policy, demands, fragments: 0.0, n_decisions: 0 };
    let settings = RunSettings { round: scenario.round, ..RunSettings::default() };
    let (cluster, workload) = (Arc::clone(&scenario.cluster), Arc::clone(&scenario.workload));
    simulate(cluster, workload, Vec::new(), &mut watched, &settings, &mut |_| {})
        .unwrap_or_else(|error| panic!("{error}"));
    watched.fragments / f64::from(watched.n_decisions)
}

#[test]
fn fgd_leaves_fewer_gpus_that_the_usual_jobs_cannot_use() {
    let mean = |placement: &str| (0..6).map(|seed| fragmentation(placement, seed)).sum::<f64>() / 6.0;
    let [fgd, best_fit, first_fit, spread] = ["fgd", "consolidate", "first-fit", "spread"].map(mean);
    eprintln!("fragments: fgd {fgd:.2}, best fit {best_fit:.2}, first fit {first_fit:.2}, spread {spread:.2}");
    assert!(fgd < best_fit && fgd < first_fit && fgd < spread);
}
