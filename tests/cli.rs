//! The program as its users meet it: what it prints, what it refuses and how it says so, what it leaves on disk.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rota_test_support::need;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn rota(dir: &Path, args: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(args.split_whitespace()).current_dir(dir).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text on standard output")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text on standard error")
}

/// What a command prints when it succeeds.
fn accepted(dir: &Path, args: &str) -> String {
    let output = rota(dir, args);
    assert!(output.status.success(), "rota {args}\n{}", stderr(&output));
    stdout(&output)
}

/// What a command says when it refuses: `code` is 1 for what cannot be done, 2 for what cannot be meant.
fn refused(dir: &Path, args: &str, code: i32) -> String {
    let output = rota(dir, args);
    assert_eq!(output.status.code(), Some(code), "rota {args}\n{}{}", stdout(&output), stderr(&output));
    assert_eq!(stdout(&output), "", "rota {args}: a refusal is no result");
    stderr(&output)
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("the folder can be listed");
    let mut names: Vec<_> =
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// Figures of the only run of a command that prints JSON.
fn only_run(dir: &Path, args: &str) -> serde_json::Value {
    let value: serde_json::Value = serde_json::from_str(&accepted(dir, args)).expect("JSON");
    assert_eq!(value["runs"].as_array().map(Vec::len), Some(1), "{value}");
    value["runs"][0].clone()
}

/// On a thread's usual stack, freeing them ended the program.
#[test]
fn closures_that_hold_closures_are_an_error_of_the_script() {
    let dir = folder();
    let script = "fn order(jobs, now) {\n    let a = 0;\n    loop { let b = a; let f = |x| b; a = f; }\n}";
    fs::write(dir.path().join("chain.rhai"), script).expect("a script");
    for args in ["simulate -q -p ./chain.rhai --jobs 5", "compare -q -p fifo,./chain.rhai --jobs 5"] {
        let said = refused(dir.path(), args, 1);
        assert!(
            said.contains("chain.rhai:") && said.contains("used more than 10000000 operations"),
            "{said}"
        );
    }
}

#[test]
fn the_program_alone_says_what_it_can_do() {
    let help = refused(folder().path(), "", 2);
    for word in ["Usage: rota", "compare", "simulate", "trace", "conform", "rota compare  "] {
        assert!(help.contains(word), "{word} is missing in\n{help}");
    }
}

#[test]
fn compare_and_simulate_run_without_arguments() {
    let dir = folder();
    let table = accepted(dir.path(), "compare");
    for policy in ["fifo+proportional", "fifo+tune", "srtf+tune", "las+tune"] {
        assert!(table.contains(policy), "{policy} is missing in\n{table}");
    }
    assert!(accepted(dir.path(), "simulate").contains("avg JCT"));
    assert_eq!(names(dir.path()), [""; 0], "nothing is written that nobody asked for");
}

#[test]
fn json_is_json_and_holds_the_figures() {
    let run = only_run(folder().path(), "simulate -p las+tune --workload small --json");
    assert_eq!(
        (run["policy"].as_str(), run["jobs"].as_u64(), run["finished"].as_u64()),
        (Some("las+tune"), Some(200), Some(200))
    );
    assert!(run["avg_jct_s"].as_f64().is_some_and(|jct| jct > 0.0), "{run}");
    assert_eq!(run["digest"].as_str().map(str::len), Some(32));
}

#[test]
fn quiet_says_nothing() {
    assert_eq!(accepted(folder().path(), "simulate -p fifo --workload small -q"), "");
}

#[test]
fn a_result_folder_holds_every_file_and_is_replaced_by_the_next() {
    let dir = folder();
    let run = "simulate -p fifo+tune --workload small --out results";
    accepted(dir.path(), run);
    let files = ["config.toml", "jobs.csv", "report.html", "rounds.csv", "summary.json", "timeline.csv"];
    assert_eq!(names(&dir.path().join("results")), files);
    accepted(dir.path(), "simulate -p fifo,las --workload small --out results --overwrite");
    assert_eq!(names(&dir.path().join("results")), files, "the same files for two policies as for one");
    let jobs = fs::read_to_string(dir.path().join("results/jobs.csv")).expect("jobs.csv");
    assert!(jobs.starts_with("run,policy,jobs_per_hour,seed,job_id,"), "{jobs}");
    assert!(jobs.contains("\n1,fifo,") && jobs.contains("\n2,las,"), "{jobs}");
    assert_eq!(names(dir.path()), ["results"], "no half-written folder is left next to it");
}

#[test]
fn the_configuration_names_every_script_with_its_checksum() {
    let dir = folder();
    fs::write(dir.path().join("mine.rhai"), "fn order(jobs, now) { rank(jobs.gpus) }").expect("a script");
    accepted(dir.path(), "simulate -p ./mine.rhai+tune --workload small --multi-gpu --out results -q");
    let config = fs::read_to_string(dir.path().join("results/config.toml")).expect("config.toml");
    let config: toml::Table = config.parse().expect("TOML");
    let inputs = config["inputs"].as_array().expect("inputs");
    let of_policies: Vec<_> = inputs
        .iter()
        .filter(|input| input["role"].as_str() == Some("policy"))
        .map(|input| (input["name"].as_str().unwrap_or(""), input["sha256"].as_str().map_or(0, str::len)))
        .collect();
    assert_eq!(of_policies, [("./mine.rhai", 64), ("allocation/tune.rhai", 64)]);
    assert_eq!(config["settings"]["multi_gpu"].as_bool(), Some(true));
}

#[test]
fn a_folder_of_other_things_is_refused_before_anything_runs() {
    let dir = folder();
    fs::create_dir(dir.path().join("thesis")).expect("a folder");
    fs::write(dir.path().join("thesis/chapter1.tex"), "years of work").expect("a file");
    fs::write(dir.path().join("late.rhai"), "fn order(jobs, now) { throw \"too late\" }").expect("a script");
    let why = refused(dir.path(), "simulate -p ./late.rhai --workload small --out thesis", 1);
    assert!(why.contains("not a Rota result folder") && why.contains("chapter1.tex"), "{why}");
    assert_eq!(names(&dir.path().join("thesis")), ["chapter1.tex"]);
    assert_eq!(names(dir.path()), ["late.rhai", "thesis"]);
}

#[test]
fn a_path_that_cannot_be_is_refused_and_leaves_nothing() {
    let dir = folder();
    fs::write(dir.path().join("file"), "a file").expect("a file");
    for out in ["file", "file/below"] {
        let why = refused(dir.path(), &format!("simulate -p fifo --workload small --out {out}"), 1);
        assert!(why.contains("file"), "{why}");
    }
    assert_eq!(names(dir.path()), ["file"]);
    assert_eq!(fs::read_to_string(dir.path().join("file")).expect("the file"), "a file");
}

#[test]
fn a_failed_conversion_leaves_the_old_file() {
    let dir = folder();
    fs::write(dir.path().join("bad.csv"), "job_id,arrival_s,gpus,duration_s\na,0,1,60\nb,5,x,60\n")
        .expect("a trace");
    fs::write(dir.path().join("old.csv"), "as it was").expect("a file");
    refused(dir.path(), "trace import bad.csv -o old.csv", 1);
    assert_eq!(fs::read_to_string(dir.path().join("old.csv")).expect("the file"), "as it was");
    assert_eq!(names(dir.path()), ["bad.csv", "old.csv"]);
}

/// Command, exit code, and what the refusal must name.
const REFUSALS: &[(&str, i32, &[&str])] = &[
    ("dance", 2, &["dance"]),
    ("compare --cluster nowhere", 1, &["\"nowhere\"", "default, philly"]),
    ("compare --cluster bad.toml", 1, &["bad.toml:5", "gpuz", "`gpus`"]),
    ("compare --cluster bad.ini", 1, &["bad.ini:2", "racks", "\"two\"", "a whole number"]),
    ("compare --trace nowhere.csv", 1, &["nowhere.csv", "No such file"]),
    ("compare --trace bad.csv", 1, &["bad.csv:3", "column 3 (gpus)", "\"x\"", "a whole number of GPUs"]),
    ("compare --workload nowhere", 1, &["\"nowhere\"", "static"]),
    ("compare --profiles nowhere", 1, &["\"nowhere\"", "synergy"]),
    ("compare --trace good.csv --format tarot", 1, &["`tarot`", "pollux"]),
    ("compare --trace good.csv --jobs-per-hour 4", 1, &["--arrivals drawn", "good.csv"]),
    ("compare -p lass+tune", 1, &["`lass`", "did you mean `las`"]),
    ("compare -p las+tune+greedy", 1, &["`allocate`", "tune.rhai", "greedy.rhai"]),
    ("compare -p ./nowhere.rhai", 1, &["nowhere.rhai"]),
    ("compare -p ./broken.rhai", 1, &["broken.rhai:1:", "fn order(jobs, now) { rank(jobs.gpsu) }", "gpus"]),
    ("simulate -p drf --set userz=jobs", 1, &["--set userz=jobs", "drf", "did you mean `users`"]),
    ("simulate -p drf --set users=nobody", 1, &["`nobody`", "tenants, jobs"]),
    ("simulate -p drf --set users", 1, &["--set users", "KEY=VALUE"]),
    ("compare -p las,drf --set userz=jobs", 1, &["--set userz=jobs", "las or drf", "did you mean `users`"]),
    ("compare -p las,drf --set users=nobody", 1, &["`nobody`", "tenants, jobs"]),
    ("simulate --set compat=perhaps", 1, &["compat=perhaps", "`artifact`"]),
    ("simulate -p srsf --set compat=artifact", 1, &["`srsf`", "the original"]),
    ("simulate -p las --set compat=artifact --min-run 1h", 1, &["--min-run", "the original"]),
    ("simulate -p edf --defect edf-width", 1, &["--defect edf-width", "--set compat=artifact"]),
    (
        "simulate -p edf --set compat=artifact --defect edf-widht",
        1,
        &["`edf-widht`", "did you mean `edf-width`", "--defect list"],
    ),
    (
        "simulate -p las+tune --set compat=artifact --defect edf-width",
        1,
        &["--defect edf-width", "a defect of ElasticFlow", "las+tune is a policy of Synergy"],
    ),
    (
        "simulate -p las --set compat=artifact --defect none,late-ends",
        1,
        &["`none` cannot be combined with other names"],
    ),
    ("simulate -p las --set compat=artifact --set lease=1h", 1, &["--set lease=1h", "no parameters"]),
    (
        "simulate -p chronus --set compat=artifact --set lease=90s",
        1,
        &["--set lease=90", "whole units of 60 s", "unit=1s"],
    ),
    ("simulate --window 5..3", 2, &["5..3", "LO..HI"]),
    ("simulate --window 0..900 --workload small", 1, &["--window 0..900", "200 jobs"]),
    ("simulate --quota bob=8", 1, &["--quota bob=8", "no tenant `bob`", "default"]),
    ("simulate --quota default=many", 1, &["--quota default=many", "`many`"]),
    ("simulate --quota bob", 1, &["--quota bob", "TENANT=GPUS"]),
    ("simulate --round 0", 1, &["--round 0"]),
    ("simulate --round 5x", 2, &["5x", "`5m`"]),
    ("simulate --jobs 0", 2, &["--jobs", "at least 1"]),
    ("simulate --split 50,50", 2, &["50,50", "20,70,10"]),
    ("simulate --jobs-per-hour -3", 1, &["jobs per hour", "-3", "greater than 0"]),
    ("simulate --estimate-bias 0", 1, &["bias", "\"0\"", "greater than 0"]),
    ("simulate --mtbf 0", 1, &["failures", "\"0\""]),
    ("report .", 1, &["summary.json"]),
    ("conform --golden nowhere", 1, &["nowhere", "synergy"]),
    ("conform cooking", 2, &["cooking", "elasticflow"]),
    ("trace slice good.csv --jobs-range 1", 1, &["--jobs-range 1", "0..1000"]),
    ("trace generate good.csv", 1, &["rota trace import"]),
    ("trace generate --pattern lumpy", 2, &["lumpy", "bursty"]),
    ("trace sample good.csv --part 2", 1, &["--part 2", "from 0 to 1"]),
    ("trace faults nothing", 1, &["\"nothing\"", "philly, philly-jobs, fleet"]),
    ("simulate --faults nothing", 1, &["\"nothing\"", "philly, philly-jobs, fleet"]),
    ("simulate --faults fleet --mtbf 5d", 2, &["--mtbf"]),
];

#[test]
fn refusals_name_the_place_the_value_and_what_was_expected() {
    let dir = folder();
    let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect(name);
    put("bad.toml", "format = 1\nname = \"x\"\n[[nodes]]\ncount = 2\ngpuz = 3\n");
    put("bad.ini", "[CLUSTER]\nracks = two\n");
    put("bad.csv", "job_id,arrival_s,gpus,duration_s\na,0,1,60\nb,5,x,60\n");
    put("good.csv", "job_id,arrival_s,gpus,duration_s\na,0,1,60\nb,5,2,60\n");
    put("broken.rhai", "fn order(jobs, now) { rank(jobs.gpsu) }\n");
    let before = names(dir.path());
    for (args, code, named) in REFUSALS {
        let why = refused(dir.path(), args, *code);
        for part in *named {
            assert!(why.contains(part), "rota {args}\nis refused without {part:?}:\n{why}");
        }
        assert!(!why.contains("panicked"), "rota {args}\n{why}");
    }
    assert_eq!(names(dir.path()), before, "refusals leave nothing behind");
}

#[test]
fn a_cause_is_not_told_twice() {
    let why = refused(folder().path(), "compare --trace nowhere.csv", 1);
    assert_eq!(why.matches("No such file").count(), 1, "{why}");
}

#[test]
fn changing_a_line_of_a_script_changes_the_result() {
    let dir = folder();
    let run = |script: &str| {
        fs::write(dir.path().join("mine.rhai"), script).expect("a script");
        let run = only_run(dir.path(), "simulate -p ./mine.rhai --workload static --json");
        run["avg_jct_s"].as_f64().expect("an average")
    };
    let shortest_first = run("fn order(jobs, now) { rank(jobs.remaining) }");
    let longest_first = run("fn order(jobs, now) { rank(-jobs.remaining) }");
    assert!(longest_first > 1.1 * shortest_first, "{longest_first} s against {shortest_first} s");
}

#[test]
fn the_original_can_be_run_beside_the_shipped_policy() {
    let dir = folder();
    let ours = only_run(dir.path(), "simulate -p fifo+proportional --workload small --json");
    let theirs = only_run(dir.path(), "simulate -p FIFO+fair --set compat=artifact --workload small --json");
    let jct = |run: &serde_json::Value| run["avg_jct_s"].as_f64().expect("an average");
    // The original notices ends at round ends: later, by less than a round.
    assert!(jct(&theirs) > jct(&ours) && jct(&theirs) < jct(&ours) + 300.0, "{theirs}\n{ours}");
}

#[test]
fn a_parameter_is_set_where_a_policy_has_it_and_passes_over_the_others() {
    let dir = folder();
    let digests = |set: &str| -> Vec<String> {
        let text = accepted(dir.path(), &format!("compare -p las,drf --workload small --json{set}"));
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let runs = value["runs"].as_array().expect("runs").iter();
        runs.map(|run| run["digest"].as_str().expect("a digest").to_owned()).collect()
    };
    let (plain, set) = (digests(""), digests(" --set users=jobs"));
    assert_eq!(plain[0], set[0], "las has no such parameter");
    assert_ne!(plain[1], set[1], "drf has");
    // What is simulated again knows whose parameter it was, too.
    accepted(dir.path(), "compare -q -p las,drf --workload small --jobs 20 --set users=jobs --out out");
    let config = fs::read_to_string(dir.path().join("out/config.toml")).expect("config.toml");
    let config: toml::Table = config.parse().expect("TOML");
    assert_eq!(config["runs"][0]["parameters"].as_table().map(toml::Table::len), Some(0));
    assert_eq!(config["runs"][1]["parameters"]["users"].as_str(), Some("jobs"));
    for policy in ["las", "drf"] {
        let text = accepted(dir.path(), &format!("solve --at 1 --policy {policy} out"));
        assert!(text.contains(&format!("{policy} at ")), "{text}");
    }
}

#[test]
fn a_recorded_workload_runs_like_the_drawn_one() {
    let dir = folder();
    accepted(dir.path(), "trace record --workload small -o recorded.trace");
    let drawn = only_run(dir.path(), "simulate -p las+tune --workload small --json");
    let replayed = only_run(dir.path(), "simulate -p las+tune --trace recorded.trace --cluster small --json");
    assert_eq!(drawn["digest"], replayed["digest"]);
}

#[test]
fn every_option_that_the_mapping_from_other_programs_names_is_there() {
    let dir = folder();
    let text = include_str!("../docs/coming-from.md");
    let commands = [
        "simulate",
        "compare",
        "trace import",
        "trace slice",
        "trace check",
        "conform",
        "report",
        "profile run",
        "profile overhead",
        "deploy",
        "head",
    ];
    let help: String = commands.map(|command| accepted(dir.path(), &format!("{command} --help"))).concat();
    let agent = need::agent(env!("CARGO_BIN_EXE_rota"));
    let agent_help = stdout(&Command::new(agent).arg("--help").output().expect("the agent starts"));
    let mut n_options = 0;
    for row in text.lines().filter(|line| line.starts_with('|')) {
        let here = row.split('|').nth(2).unwrap_or("");
        for span in here.split('`').skip(1).step_by(2) {
            let help = if span.starts_with("rota-agent") { &agent_help } else { &help };
            for option in span.split([' ', '=', ',']).filter(|word| word.starts_with("--")) {
                assert!(help.contains(option), "{option} is in no help text, but in\n{row}");
                n_options += 1;
            }
        }
    }
    assert!(n_options > 20, "only {n_options} options were found: is it still a table of theirs and ours?");
}

#[test]
fn a_policy_is_shown_copied_checked_and_profiled() {
    let dir = folder();
    let source = accepted(dir.path(), "policy show las");
    assert!(
        source.starts_with("// las: least attained service.") && source.contains("fn order(jobs, now) {"),
        "{source}"
    );
    assert!(accepted(dir.path(), "policy show --about las").contains("stages: order"));
    accepted(dir.path(), "policy new --from las mine.rhai");
    let copy = fs::read_to_string(dir.path().join("mine.rhai")).expect("the copy");
    assert!(copy.ends_with(&source), "{copy}");
    assert!(accepted(dir.path(), "policy check ./mine.rhai").starts_with("./mine.rhai: good\n"));
    let profile = accepted(dir.path(), "policy profile ./mine.rhai --jobs 100 --nodes 4 --folded stacks.txt");
    assert!(
        profile.contains("rank(-jobs.priority, jobs.service)") && profile.contains("stacks, by operations"),
        "{profile}"
    );
    let stacks = fs::read_to_string(dir.path().join("stacks.txt")).expect("the stacks");
    assert!(
        stacks.lines().all(|line| line.rsplit_once(' ').is_some_and(|(_, n)| n.parse::<u64>().is_ok())),
        "{stacks}"
    );
    fs::write(
        dir.path().join("wrong.rhai"),
        "fn order(jobs, now) {\n    if now < 0.0 { return rank(jobs.gpu); }\n    rank(jobs.arrival)\n}",
    )
    .expect("a script");
    let message = refused(dir.path(), "policy check wrong.rhai", 1);
    assert!(message.contains("wrong.rhai:2:") && message.contains("Jobs has no field `gpu`"), "{message}");
}
