//! `rota solve` as its users see it: answers, hostile models, and a solver that overruns its time and is killed.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rota::solve::{ChildSolver, Fate};
use rota_solvers::{Limits, Model, Sense, SolveStatus, Solver, Start, Variable, check, write_model};
use serde_json::Value;

fn rota() -> Command {
    Command::new(env!("CARGO_BIN_EXE_rota"))
}

fn solve(path: &Path, options: &[&str]) -> Output {
    rota().arg("solve").arg(path).args(options).output().expect("rota runs")
}

fn json(path: &Path, options: &[&str]) -> Value {
    let output = solve(path, &[&["--json"], options].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    })
}

fn file(dir: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).expect("a file can be written");
    path
}

const KNAPSACK: &str = "Maximize\n value: 10 a + 6 b + 4 c\nSubject To\n weight: 5 a + 4 b + 3 c <= 9\nBinaries\n a b c\nEnd\n";

#[test]
fn the_table_shows_status_objective_bound_and_what_is_not_zero() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = file(&dir, "knapsack.lp", KNAPSACK);
    let output = solve(&path, &[]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}");
    for line in ["status     optimal", "objective  16", "bound      16", "gap        0.0000 %", "2 of 3 variables are not zero"] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
    assert!(text.contains("a         1\nb         1\n"), "{text}");
}

#[test]
fn json_has_the_same_answer_and_the_child_gives_the_answer_of_this_process() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = file(&dir, "knapsack.lp", KNAPSACK);
    let mut here = json(&path, &["--in-process"]);
    let mut child = json(&path, &[]);
    for answer in [&mut here, &mut child] {
        answer["wall_s"] = Value::Null;
    }
    assert_eq!(here, child);
    assert_eq!((&here["status"], &here["objective"]), (&"optimal".into(), &16.0.into()));
    assert_eq!(here["values"], serde_json::json!({ "a": 1.0, "b": 1.0 }));
}

#[test]
fn a_model_is_written_back_in_the_other_format_and_packed() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = file(&dir, "knapsack.lp", KNAPSACK);
    let copy = dir.path().join("copy.mps.gz");
    json(&path, &["--write", copy.to_str().expect("a plain path")]);
    assert_eq!(json(&copy, &[])["objective"], 16.0);
}

#[test]
fn hostile_models_end_in_a_status_or_a_message_with_a_place() {
    let dir = tempfile::tempdir().expect("a folder");
    for (text, status) in [
        ("Maximize\n x\nSubject To\n r: x >= 1\nEnd\n", "unbounded"),
        ("Minimize\n x\nSubject To\n r: x >= 2\nBounds\n x <= 1\nEnd\n", "infeasible"),
        ("Maximize\n 1e15 x + 1e-15 y\nSubject To\n r: 1e12 x + 1e-12 y <= 1\nBounds\n x <= 1\n y <= 1\nEnd\n", "optimal"),
    ] {
        assert_eq!(json(&file(&dir, "hostile.lp", text), &[])["status"], status, "{text}");
    }
    for (text, message) in [
        ("Maximize\n nan x\nSubject To\n r: x <= 1\nEnd\n", "hostile.lp: line"),
        ("Maximize\n x\nSubject To\n r: x <= 1\n r: x <= 2\nEnd\n", "hostile.lp: line"),
        ("what is this", "hostile.lp: line 1"),
    ] {
        let output = solve(&file(&dir, "hostile.lp", text), &[]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(message), "{text}: {error}");
    }
}

/// 50,000 binaries in 40 dense knapsack rows: HiGHS looks at its clock too rarely in there.
fn overrunning() -> Model {
    let mut state = 1_u64;
    let mut draw = |low: f64, high: f64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (high - low) * (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut model = Model::new(Sense::Maximize);
    let variables: Vec<Variable> =
        (0..50_000).map(|i| model.binary(&format!("x{i}")).expect("a variable")).collect();
    for &x in &variables {
        model.set_cost(x, draw(1.0, 2.0)).expect("a cost");
    }
    for r in 0..40 {
        let terms: Vec<_> = variables.iter().map(|&x| (x, draw(1.0, 100.0).round())).collect();
        model.row(&format!("knapsack{r}"), f64::NEG_INFINITY, 25_000.0, terms).expect("a row");
    }
    model
}

fn is_gone(pid: u32) -> bool {
    !Path::new("/proc").is_dir() || !Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_solve_that_overruns_is_killed_keeps_its_start_and_leaves_no_process() {
    let model = overrunning();
    let limits = Limits { wall: Duration::from_secs(2), ..Limits::default() };
    let mut solver = ChildSolver::new(env!("CARGO_BIN_EXE_rota").into());
    let start = vec![0.0; 50_000];
    let solution = solver.solve(&model, &limits, Start::Values(&start));
    println!("{} after {:?}, {:?}", solution.status, solution.wall, solver.fate());
    let Fate::Killed { pid } = solver.fate() else { panic!("expected it to be killed, got {:?}", solver.fate()) };
    assert!(is_gone(pid), "process {pid} is left behind");
    assert_eq!(solution.status, SolveStatus::LimitWithIncumbent);
    assert!(check(&model, &solution.values).is_ok());
    let cold = solver.solve(&model, &limits, Start::Cold);
    assert_eq!((cold.status, cold.values.len()), (SolveStatus::LimitWithout, 0));
}

#[test]
fn a_child_ends_when_its_parent_is_killed() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("overruns.mps");
    write_model(&path, &overrunning()).expect("a model can be written");
    // The child inherits the error stream: it ends when the last of the two processes has.
    let mut parent = rota().arg("solve").arg(&path).args(["--wall", "1h"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("rota runs");
    let child = first_child_of(&mut parent);
    parent.kill().expect("it runs");
    parent.wait().expect("it was started");
    let mut rest = String::new();
    parent.stderr.take().expect("piped").read_to_string(&mut rest).expect("text");
    if let Some(child) = child {
        assert!(is_gone(child), "process {child} outlived its parent: {rest}");
    }
}

/// Waits until a process has a child; `None` where `/proc` does not say, or it ended first.
fn first_child_of(parent: &mut std::process::Child) -> Option<u32> {
    let children = format!("/proc/{0}/task/{0}/children", parent.id());
    loop {
        let text = std::fs::read_to_string(&children).ok()?;
        if let Some(child) = text.split_whitespace().next() {
            return child.parse().ok();
        }
        if parent.try_wait().ok()?.is_some() {
            return None;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_program_that_is_no_solver_is_a_failed_status() {
    let mut model = Model::new(Sense::Maximize);
    model.binary("x").expect("a variable");
    for program in ["/bin/true", "/nonexistent/rota"] {
        let solution = ChildSolver::new(program.into()).solve(&model, &Limits::default(), Start::Cold);
        assert!(matches!(solution.status, SolveStatus::Failed { .. }), "{program}: {}", solution.status);
    }
}

#[test]
fn a_large_answer_comes_through_whole() {
    let mut text = String::from("Maximize\n");
    for i in 0..20_000 {
        write!(text, " + x{i}").expect("a string");
        if i % 10 == 9 {
            text.push('\n');
        }
    }
    text.push_str("\nSubject To\n r: x0 <= 1\nBinaries\n");
    for i in 0..20_000 {
        writeln!(text, " x{i}").expect("a string");
    }
    text.push_str("End\n");
    let dir = tempfile::tempdir().expect("a folder");
    let answer = json(&file(&dir, "large.lp", &text), &[]);
    assert_eq!(answer["objective"], 20_000.0);
    assert_eq!(answer["values"].as_object().map(serde_json::Map::len), Some(20_000));
}
