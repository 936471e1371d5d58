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
use rota_core::time::Time;
use rota_scripts::sample::{Size, snapshot};
use rota_scripts::scenario::parse;
use rota_scripts::{Limits, ScriptPolicy, Source, commands, shipped};

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
                let slices = held
                    .slices
                    .iter()
                    .map(|s| format!("{}{:?}", s.node.0, s.gpus.iter().collect::<Vec<_>>()));
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
    assert_eq!(
        placed(&format!("{world}job d gpus=2\n"), compact),
        "a:0[0, 1, 2] b:0[3]+1[0, 1, 2, 3] c:2[0, 1] d:2[2, 3]"
    );
    let whole = "rank(nodes.id).splits([[[1]], [[2]], [[3]], [[4]], [[5], [4, 1]]])";
    assert_eq!(placed(&world, whole), "a:0[0, 1, 2] b:0[3]+1[0, 1, 2, 3] c:2[0, 1]");
    let halves = "rank(nodes.id).splits([[[1]], [[2]], [[3]], [[4]], [[3, 2]]])";
    assert_eq!(
        placed(&world, halves),
        "a:0[0, 1, 2]",
        "a job that may not be split so waits, and those behind are tried"
    );
}

#[test]
fn gpus_that_are_placed_one_by_one_see_what_those_before_leave() {
    let world = format!("{TWO_RACKS}job a gpus=3\njob b gpus=6\n");
    assert_eq!(
        placed(&world, "rank(-nodes.free_gpus).one_by_one()"),
        "a:0[0]+1[0]+2[0] b:0[1, 2]+1[1]+2[1]+3[0, 1]",
        "always on the emptiest node"
    );
    assert_eq!(
        placed(&world, "rank(-nodes.fits).only(nodes.rack == 1).from_top(nodes.id == 2).one_by_one()"),
        "a:2[2, 3]+3[0]",
        "five GPUs are left below that switch, so the other job waits"
    );
}

#[test]
fn a_drawn_node_depends_on_the_seed() {
    let world = format!("{TWO_RACKS}job a gpus=1\n");
    let drawn = |seed: u32| placed(&world, &format!("rank(nodes.drawn({seed}))"));
    let all: std::collections::BTreeSet<String> = (0..24).map(drawn).collect();
    assert_eq!(all.into_iter().collect::<Vec<_>>(), ["a:0[0]", "a:1[0]", "a:2[0]", "a:3[0]"]);
    assert_eq!(drawn(5), drawn(5));
}

#[test]
fn what_makes_a_split_better_is_said_in_words() {
    // The first two leave one GPU on each of two nodes: the third fills these gaps, or stays together.
    let world = format!("{TWO_RACKS}job a gpus=3\njob b gpus=3\njob c gpus=2\n");
    let c = |options: &str| placed(&world, &format!("local_search({options})")).split_off(26);
    for gaps in ["", "#{}", "#{ prefer: [\"fastest\", \"tightest\"] }", "#{ prefer: [\"tightest\"] }"] {
        assert_eq!(c(gaps), "c:0[3]+1[3]", "{gaps}");
    }
    let together = "c:2[0, 1]";
    assert_eq!(c("#{ prefer: [\"fewest_nodes\", \"tightest\"] }"), together);
    assert_eq!(c("#{ splits: [[[1]], [[2]], [[3]]] }"), together);
    let world = world.replace("c gpus=2", "c gpus=2 spread=0.8,0.5");
    let c = |options: &str| placed(&world, &format!("local_search({options})")).split_off(26);
    assert_eq!(c(""), together, "it is faster on one node");
    assert_eq!(c("#{ prefer: [\"tightest\"] }"), "c:0[3]+1[3]");
    // A gang of four whose parts would be below two switches, or below one.
    let world = format!("{TWO_RACKS}job a gpus=2\njob b gpus=4\njob c gpus=2\njob d gpus=4\n");
    let d = |options: &str| placed(&world, &format!("local_search({options})"));
    assert!(d("#{ prefer: [\"fewest_switches\", \"fewest_nodes\"] }").ends_with(" d:2[0, 1, 2, 3]"));
}

#[test]
fn wrong_words_of_a_search_are_named() {
    fails("local_search(#{ prefers: [] })", "local_search: `prefers` is not an option");
    fails("local_search(#{ prefer: [\"fastes\"] })", "`prefer` does not know \"fastes\"");
    fails("local_search(#{ prefer: \"fastest\" })", "`prefer` is an array, got a String");
    fails("local_search(#{ splits: [[[2]]] })", "local_search: entry 0 must be an array of splits of 1 GPU");
    fails("first_fit().one_by_one()", "one_by_one: only what `rank` returns has nodes to choose from");
    fails("rank(nodes.id).within(nodes.rack).one_by_one()", "leave one out");
    fails("rank(nodes.id).one_by_one().within(nodes.rack)", "leave one out");
}

#[test]
fn a_search_and_single_gpus_count_their_work() {
    let instant = snapshot(Size { n_nodes: 64, n_old: 0, n_new: 60 });
    let splits = format!("[{}]", ["[[1]]", "[[2], [1, 1]]"].join(", "));
    for place in
        [format!("local_search(#{{ splits: {splits} }})"), "rank(nodes.free_gpus).one_by_one()".into()]
    {
        let text = format!("fn place(job, nodes) {{ {place} }}");
        let source = Source { name: "mine".into(), file: "mine.rhai".into(), text };
        let limits = Limits { operations: 400, ..Limits::default() };
        let mut few = ScriptPolicy::from_sources("mine", &[source], limits).expect("it compiles");
        let error = few.decide(&instant).expect_err("60 jobs on 64 nodes are more than that");
        assert!(error.message.contains("operations"), "{place}: {error}");
    }
}

/// How often the closure of `place_by` was asked in two decisions.
fn n_asked(body: &str, between: impl FnOnce(&mut ScriptPolicy)) -> usize {
    let text = format!("param(\"side\", 1, 0..=9, \"A number.\");\nfn place(view) {{\n    {body}\n}}");
    let instant = snapshot(Size { n_nodes: 4, n_old: 4, n_new: 3 });
    let mut policy = policy(&text);
    let first = policy.decide(&instant).expect("a plan");
    between(&mut policy);
    let second = policy.decide(&instant).expect("a plan");
    assert_eq!(first.run, second.run, "whether it is asked or not");
    first.notes.iter().chain(&second.notes).filter(|note| *note == "asked").count()
}

#[test]
fn a_rule_that_uses_the_same_numbers_is_not_asked_again() {
    let closure =
        |uses: &str| format!("place_by(|job, nodes| {{ print(\"asked\"); rank(nodes.id * {uses}) }})");
    let same = format!("let mix = [#{{ a: 1.5, b: \"x\" }}];\n{}", closure("mix[0].a"));
    assert_eq!(n_asked(&same, |_| {}), 1);
    let other = format!("this.n = (this.n ?? 0) + 1;\nlet n = this.n;\n{}", closure("n"));
    assert_eq!(n_asked(&other, |_| {}), 2, "another number");
    assert_eq!(n_asked(&closure("max(view.round, 1)"), |_| {}), 2, "a view is not compared");
    assert_eq!(n_asked(&closure("max(param(\"side\"), 1)"), |_| {}), 1);
    let set = |policy: &mut ScriptPolicy| policy.set("side", "2").expect("a parameter");
    assert_eq!(n_asked(&closure("max(param(\"side\"), 1)"), set), 2, "a parameter was set");
}

#[test]
fn the_other_placement_is_asked_where_the_first_finds_nothing() {
    let world = format!("{TWO_RACKS}job a gpus=3\njob b gpus=2\n");
    let place =
        "rank(nodes.id).only(nodes.holds & (nodes.rack == 0) & (job.gpus > 2)).or_else(rank(-nodes.id))";
    assert_eq!(placed(&world, place), "a:0[0, 1, 2] b:3[0, 1]");
}

/// Formulas in columns and the same as a closure, in which plain Rhai computes.
#[test]
fn columns_of_nodes_are_what_a_closure_computes_for_each_node() {
    let formulas = [
        ("nodes.free_gpus", "node.free_gpus"),
        ("(nodes.id - 3).abs()", "abs(node.id - 3)"),
        (
            "where(nodes.free_gpus >= job.gpus, nodes.free_gpus, 100 - nodes.id)",
            "if node.free_gpus >= job.gpus { node.free_gpus } else { 100 - node.id }",
        ),
        (
            "min(nodes.free_gpus, job.gpus) * nodes.free_mem",
            "min(node.free_gpus, job.gpus) * node.free.mem_gb",
        ),
        ("max(nodes.id, 2) ** 2 - nodes.free_cpus", "max(node.id, 2) * max(node.id, 2) - node.free.cpus"),
        (
            "(nodes.id > 2) & !(nodes.id == 5) | (nodes.free_gpus < 2)",
            "if node.id > 2 && node.id != 5 || node.free_gpus < 2 { 1 } else { 0 }",
        ),
        (
            "clamp(nodes.id, 1, 4) + floor(nodes.free_cpus / 7)",
            "max(1, min(4, node.id)) + floor(node.free.cpus / 7.0)",
        ),
        ("sqrt(nodes.free_gpus + job.remaining / 3600)", "sqrt(node.free_gpus + job.remaining / 3600)"),
        (
            "nodes.rack * 10 - nodes.mem / nodes.gpus + nodes.cpus",
            "node.rack * 10 - node.share.mem_gb / node.gpus + node.share.cpus",
        ),
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
    fails(
        "if job.gpus > 1 { rank(nodes.id) } else { rank(-nodes.id) }",
        "expected true or false, got NodeColumn",
    );
    fails("rank((nodes.id - nodes.id) / 0)", "mine.rhai:2:5: rank: key 1 of node 1 for job");
    fails("rank(nodes.id).only((nodes.id - nodes.id) / 0)", "rank: a condition of node 1 for job");
    fails(
        "rank(nodes.id, \"x\")",
        "rank: key 2 must be a column of nodes or a number like the other keys, got a String",
    );
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
        let text =
            format!("// mine: a placement.\n// Source: ours.\nfn place(job, nodes) {{\n    {body}\n}}\n");
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
    check("rank(min(nodes.fits, 3).total_by(nodes.rack)).within(nodes.rack).compact()")
        .expect("all names exist");
}

/// Free GPUs that a job drawn from those of a run cannot use, on average over its decisions while jobs arrive.
struct Watched {
    policy: ScriptPolicy,
    demands: Vec<(u32, Host)>,
    last_arrival: Time,
    fragments: f64,
    n_decisions: u32,
}

impl Policy for Watched {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let plan = self.policy.decide(snapshot)?;
        if snapshot.now > self.last_arrival {
            return Ok(plan);
        }
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

/// As in the paper's experiments: jobs of many kinds arrive and stay, until all GPUs of the cluster and some more are asked for.
fn filling_world(sizes: &[u32], seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut text = String::from("scenario: filling\ncluster 24 nodes, 8 gpus, 48 cpus, 400 GB\n");
    let mut n_asked = 0;
    let mut job = 0;
    while n_asked < 230 {
        let gpus = sizes[rng.random_range(0..sizes.len())];
        let cpus = [2, 4, 6, 6, 9, 12][rng.random_range(0..6)];
        text += &format!("job j{job} gpus={gpus} work=10000000 at={} cpus={cpus} mem=10\n", job * 300);
        n_asked += gpus;
        job += 1;
    }
    text
}

fn fragments(world: &str, placement: &str) -> f64 {
    let scenario =
        &parse(&format!("{world}policy fifo\n----\n")).unwrap_or_else(|error| panic!("{error}"))[0];
    let place = Source { name: "place".into(), file: "place.rhai".into(), text: placement.into() };
    let sources = [shipped_source("no-preempt"), shipped_source("fifo"), shipped_source("greedy"), place];
    let policy = ScriptPolicy::from_sources("filling", &sources, Limits::default());
    let jobs = &scenario.workload.jobs;
    let mut watched = Watched {
        policy: policy.unwrap_or_else(|error| panic!("{error}")),
        demands: jobs.iter().map(|job| (job.gpus.asked, job.demand_per_gpu(&scenario.cluster))).collect(),
        last_arrival: jobs.last().expect("a job").arrival,
        fragments: 0.0,
        n_decisions: 0,
    };
    let settings = RunSettings { round: scenario.round, ..RunSettings::default() };
    let (cluster, workload) = (Arc::clone(&scenario.cluster), Arc::clone(&scenario.workload));
    simulate(cluster, workload, Vec::new(), &mut watched, &settings, &mut |_| {})
        .unwrap_or_else(|error| panic!("{error}"));
    watched.fragments / f64::from(watched.n_decisions)
}

fn shipped_source(name: &str) -> Source {
    let script = shipped::find(name).unwrap_or_else(|| panic!("{name} is shipped"));
    Source { name: name.into(), file: script.file.into(), text: script.source.into() }
}

/// Where CPUs run out too. Jobs go to one node or wait, as in the paper; with GPUs alone, best fit is as good.
#[test]
fn fgd_leaves_fewer_gpus_that_the_usual_jobs_cannot_use() {
    let whole = |rank: &str| format!("steady();\nfn place(job, nodes) {{ {rank}.only(nodes.holds) }}");
    let ranked = "rank(-nodes.holds, after - before, nodes.free_gpus)";
    let fgd = shipped_source("fgd").text;
    assert_eq!(fgd.matches(ranked).count(), 1);
    let placements = [
        fgd.replace(ranked, &format!("{ranked}.only(nodes.holds)")),
        whole("rank(nodes.free_gpus)"),
        whole("rank(nodes.id)"),
        whole("rank(-nodes.free_gpus)"),
    ];
    for (sizes, less) in [(&[1, 1, 1, 1, 2, 2, 4, 4, 8][..], 0.9), (&[1, 1, 1, 2, 2, 3, 4, 5, 6, 8], 1.0)] {
        let mean = |placement: &String| {
            let worlds = (0..8).map(|seed| filling_world(sizes, seed));
            worlds.map(|world| fragments(&world, placement)).sum::<f64>() / 8.0
        };
        let [fgd, best_fit, first_fit, worst_fit] = placements.each_ref().map(mean);
        let all = format!(
            "fgd {fgd:.2}, best fit {best_fit:.2}, first fit {first_fit:.2}, worst fit {worst_fit:.2}"
        );
        assert!(
            fgd < less * best_fit && fgd < less * first_fit && fgd < less * worst_fit,
            "{sizes:?}: {all}"
        );
    }
}

#[test]
fn a_key_of_rank_can_be_used_again() {
    let text = "fn order(jobs, now) {\n    let key = jobs.remaining;\n    rank(key);\n    rank(key)\n}";
    let once = "fn order(jobs, now) { rank(jobs.remaining) }";
    let instant = snapshot(Size { n_nodes: 4, n_old: 20, n_new: 10 });
    assert_eq!(decide(text, &instant).run, decide(once, &instant).run);
}
