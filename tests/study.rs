//! `rota study` as its users meet it: every shipped study, killed and resumed, split and merged, with failures in it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rota_scripts::shipped;
use tempfile::TempDir;

/// Enough runs, each long enough, that a kill finds some done and some not.
const BATCH: &str = r#"
    title("a batch");
    sweep(#{ policy: ["fifo+proportional", "las+tune"], jobs_per_hour: [6, 9], jobs: 400, seed: 1..=8 });
"#;
const N_RUNS: usize = 32;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn command(dir: &Path, args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(args.split_whitespace()).current_dir(dir);
    command
}

fn rota(dir: &Path, args: &str) -> Output {
    command(dir, args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn accepted(dir: &Path, args: &str) -> String {
    let output = rota(dir, args);
    assert!(output.status.success(), "rota {args}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn batch(dir: &Path) {
    fs::write(dir.join("batch.rhai"), BATCH).expect("a script");
}

/// Every table of a study that no clock has a part in.
fn tables(dir: &Path) -> Vec<Vec<u8>> {
    ["runs.csv", "runs.parquet", "groups.csv", "groups.parquet", "pairs.csv", "pairs.parquet"]
        .map(|name| fs::read(dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}")))
        .to_vec()
}

fn n_kept(dir: &Path) -> usize {
    let Ok(entries) = fs::read_dir(dir.join("cache")) else { return 0 };
    entries
        .filter(|entry| entry.as_ref().is_ok_and(|e| e.path().extension().is_some_and(|x| x == "json")))
        .count()
}

/// Waits until more than `n` results are kept or the program is over; says whether it still runs.
fn wait_for_more(child: &mut Child, dir: &Path, n: usize) -> bool {
    let began = Instant::now();
    while n_kept(dir) <= n {
        if child.try_wait().expect("a child").is_some() {
            return false;
        }
        assert!(began.elapsed() < Duration::from_secs(300), "no result for minutes");
        std::thread::yield_now();
    }
    child.try_wait().expect("a child").is_none()
}

/// Studies of traces that are not shipped; `rota reproduce` runs them where the files are.
const OF_PUBLIC_TRACES: [&str; 8] = [
    "synergy-6",
    "elasticflow-6a",
    "elasticflow-6b",
    "elasticflow-7",
    "elasticflow-8a",
    "elasticflow-8b",
    "elasticflow-10",
    "elasticflow-order",
];

#[test]
fn every_shipped_study_runs_in_its_quick_form() {
    for script in shipped::STUDIES.iter().filter(|script| !OF_PUBLIC_TRACES.contains(&script.name)) {
        let dir = folder();
        let said = accepted(dir.path(), &format!("study {} --quick --out s", script.name));
        assert!(said.contains("results in s"), "{said}");
        let runs = fs::read_to_string(dir.path().join("s/runs.csv")).expect("runs.csv");
        let is_done = |line: &str| line.contains(",done,");
        assert!(runs.lines().count() > 4 && runs.lines().skip(1).all(is_done), "{}: {runs}", script.name);
        let page = fs::read_to_string(dir.path().join("s/report.html")).expect("a page");
        assert!(page.contains("<figure>"), "{}: nothing is drawn", script.name);
    }
}

#[test]
fn a_study_killed_again_and_again_ends_with_the_same_tables() {
    let n_kills = std::env::var("ROTA_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let dir = folder();
    batch(dir.path());
    accepted(dir.path(), "study batch.rhai --out whole -q");
    let killed = dir.path().join("killed");
    let mut n_done = 0;
    for _ in 0..n_kills {
        let mut run = command(dir.path(), "study batch.rhai --out killed -q");
        let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
        if wait_for_more(&mut child, &killed, n_done) {
            child.kill().expect("killed");
        }
        child.wait().expect("over");
        assert!(n_kept(&killed) > n_done, "a kill lost what was done");
        n_done = n_kept(&killed);
    }
    assert!(n_done < N_RUNS, "the last kill came too late to mean anything");
    let said = accepted(dir.path(), "study batch.rhai --out killed");
    assert!(said.contains(&format!("{} runs in", N_RUNS - n_done)), "work was done again: {said}");
    assert!(said.contains(&format!("{n_done} were there already")), "{said}");
    assert_eq!(tables(&killed), tables(&dir.path().join("whole")));
}

#[test]
fn shards_merge_to_the_same_tables_without_a_run() {
    let dir = folder();
    batch(dir.path());
    accepted(dir.path(), "study batch.rhai --out whole -q");
    for shard in ["1/2", "2/2"] {
        let out = format!("part{}", &shard[..1]);
        let output = rota(dir.path(), &format!("study batch.rhai --shard {shard} --out {out}"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("are not of shard"), "{}", text(&output.stderr));
    }
    assert_eq!(n_kept(&dir.path().join("part1")) + n_kept(&dir.path().join("part2")), N_RUNS);
    let said = accepted(dir.path(), "study merge batch.rhai --out merged --from part1 part2");
    assert!(said.contains("0 runs in") && said.contains("32 were there already"), "{said}");
    assert_eq!(tables(&dir.path().join("merged")), tables(&dir.path().join("whole")));
}

#[test]
fn one_failure_is_named_and_the_rest_goes_on() {
    let dir = folder();
    fs::write(dir.path().join("late.rhai"), "fn order(jobs, now) { throw \"too late\" }").expect("a policy");
    let study = r#"sweep(#{ policy: ["fifo", "./late.rhai"], workload: "small", seed: [1, 2] });"#;
    fs::write(dir.path().join("s.rhai"), study).expect("a script");
    let output = rota(dir.path(), "study s.rhai");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("2 of 4 runs failed:") && said.contains("too late"), "{said}");
    let runs = fs::read_to_string(dir.path().join("s-study/runs.csv")).expect("runs.csv");
    assert_eq!(runs.lines().filter(|line| line.contains(",done,")).count(), 2, "{runs}");
    assert_eq!(runs.matches(",failed,,").count(), 2, "{runs}");
}

#[test]
fn a_wrong_script_is_shown_with_its_line_and_what_was_run_is_kept() {
    let dir = folder();
    let study =
        "run(#{ policy: \"fifo\", workload: \"small\" });\nrun(#{ policy: \"fifo\", jobs_per_hr: 3 });\n";
    fs::write(dir.path().join("s.rhai"), study).expect("a script");
    let output = rota(dir.path(), "study s.rhai");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("s.rhai:2:1: ") && said.contains("--jobs-per-hour"), "{said}");
    let runs = fs::read_to_string(dir.path().join("s-study/runs.csv")).expect("runs.csv");
    assert_eq!(runs.lines().count(), 2, "{runs}");
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_runs() {
    let dir = folder();
    batch(dir.path());
    fs::create_dir(dir.path().join("thesis")).expect("a folder");
    fs::write(dir.path().join("thesis/chapter1.tex"), "years of work").expect("a file");
    for (args, part) in [
        ("study nothing.rhai", "no such file"),
        ("study batch.rhai --out thesis", "chapter1.tex"),
        ("study batch.rhai --threads 0", "--threads 0"),
        ("study batch.rhai --set seeds=3", "this study has no parameters"),
        ("study merge batch.rhai --out m --from thesis", "does not hold a study"),
    ] {
        let output = rota(dir.path(), args);
        assert!(!output.status.success(), "rota {args}");
        assert!(text(&output.stderr).contains(part), "rota {args}: {}", text(&output.stderr));
    }
    assert_eq!(rota(dir.path(), "study batch.rhai --shard 3/2").status.code(), Some(2));
}

#[test]
fn the_load_that_saturates_is_found_by_asking() {
    let dir = folder();
    let said =
        accepted(dir.path(), "study saturation --quick --set policies=fifo+proportional --set step=4.0");
    let line = said.lines().find(|line| line.starts_with("fifo+proportional keeps")).expect("an answer");
    let load: f64 =
        line.split("up to ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).expect("a load");
    assert!((0.0..=32.0).contains(&load), "{line}");
}

/// A Slurm of a few lines: what `sbatch --wait --array=1-N … SCRIPT` means, one task after another.
const SBATCH: &str = r#"#!/bin/sh
for word in "$@"; do
    case "$word" in --array=1-*) n="${word#--array=1-}" ;; esac
    script="$word"
done
task=1
while [ "$task" -le "$n" ]; do
    SLURM_ARRAY_TASK_ID=$task sh "$script" || exit 1
    task=$((task + 1))
done
"#;

#[test]
#[cfg(unix)]
fn shards_go_through_slurm_and_come_back_as_one() {
    use std::os::unix::fs::PermissionsExt;
    let dir = folder();
    batch(dir.path());
    let bin = dir.path().join("bin");
    fs::create_dir(&bin).expect("a folder");
    fs::write(bin.join("sbatch"), SBATCH).expect("a script");
    fs::set_permissions(bin.join("sbatch"), fs::Permissions::from_mode(0o755)).expect("it may be run");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let output = command(dir.path(), "study batch.rhai --on slurm --shards 3 --out cluster")
        .env("PATH", path)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("32 were there already"), "{}", text(&output.stdout));
    accepted(dir.path(), "study batch.rhai --out whole -q");
    assert_eq!(tables(&dir.path().join("cluster")), tables(&dir.path().join("whole")));
}

#[test]
fn a_machine_without_slurm_is_said_to_be_one() {
    let dir = folder();
    batch(dir.path());
    let output = command(dir.path(), "study batch.rhai --on slurm")
        .env("PATH", "")
        .output()
        .expect("the program starts");
    assert!(text(&output.stderr).contains("is Slurm installed here?"), "{}", text(&output.stderr));
}
