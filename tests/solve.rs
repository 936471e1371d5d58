//! `rota solve` as its users see it: answers, hostile models, and a solver that overruns its time and is killed.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rota_lab::solve::{ChildSolver, Fate};
use rota_solvers::exchange::write_request;
use rota_solvers::{Limits, Model, Sense, SolveStatus, Solver, Start, Variable, check};
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
        panic!(
            "{error}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

fn file(dir: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).expect("a file can be written");
    path
}

const KNAPSACK: &str =
    "Maximize\n value: 10 a + 6 b + 4 c\nSubject To\n weight: 5 a + 4 b + 3 c <= 9\nBinaries\n a b c\nEnd\n";

#[test]
fn the_table_shows_status_objective_bound_and_what_is_not_zero() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = file(&dir, "knapsack.lp", KNAPSACK);
    let output = solve(&path, &[]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}");
    for line in [
        "status     optimal",
        "objective  16",
        "bound      16",
        "gap        0.0000 %",
        "2 of 3 variables are not zero",
    ] {
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
        (
            "Maximize\n 1e15 x + 1e-15 y\nSubject To\n r: 1e12 x + 1e-12 y <= 1\nBounds\n x <= 1\n y <= 1\nEnd\n",
            "optimal",
        ),
    ] {
        assert_eq!(json(&file(&dir, "hostile.lp", text), &[])["status"], status, "{text}");
    }
    for (text, message) in [
        ("Maximize\n 1e999 x\nSubject To\n r: x <= 1\nEnd\n", "hostile.lp: line"),
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
    // So short that no machine is fast enough: reading the model alone takes longer.
    let limits = Limits { wall: Duration::from_millis(50), ..Limits::default() };
    let mut solver = ChildSolver::new(env!("CARGO_BIN_EXE_rota").into());
    let start = vec![0.0; 50_000];
    let solution = solver.solve(&model, &limits, Start::Values(&start));
    println!("{} after {:?}, {:?}", solution.status, solution.wall, solver.fate());
    let Fate::Killed { pid } = solver.fate() else {
        panic!("expected it to be killed, got {:?}", solver.fate())
    };
    assert!(is_gone(pid), "process {pid} is left behind");
    assert_eq!(solution.status, SolveStatus::LimitWithIncumbent);
    assert!(check(&model, &solution.values).is_ok());
    let cold = solver.solve(&model, &limits, Start::Cold);
    assert_eq!((cold.status, cold.values.len()), (SolveStatus::LimitWithout, 0));
}

#[test]
fn a_child_that_never_answers_is_killed() {
    let dir = tempfile::tempdir().expect("a folder");
    let program = file(&dir, "mute.sh", "#!/bin/sh\nexec sleep 600\n");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    let mut model = Model::new(Sense::Maximize);
    model.binary("x").expect("a variable");
    let mut solver = ChildSolver::new(program);
    let limits = Limits { wall: Duration::from_millis(50), ..Limits::default() };
    let solution = solver.solve(&model, &limits, Start::Values(&[1.0]));
    let Fate::Killed { pid } = solver.fate() else { panic!("expected a kill, got {:?}", solver.fate()) };
    assert!(is_gone(pid), "process {pid} is left behind");
    assert_eq!((solution.status, solution.values), (SolveStatus::LimitWithIncumbent, vec![1.0]));
}

#[test]
fn a_child_ends_in_the_middle_of_a_solve_when_its_parent_does() {
    let request = write_request(
        &overrunning(),
        &Limits { wall: Duration::from_secs(3600), ..Limits::default() },
        Start::Cold,
    );
    let mut child =
        rota().arg("solve-child").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("rota runs");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(request.as_bytes()).expect("the child reads");
    // What the kernel does for a parent that was killed.
    drop(input);
    let output = child.wait_with_output().expect("it was started");
    assert!(
        !output.status.success() && output.stdout.is_empty(),
        "it solved to the end: {:?}",
        output.status
    );
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

/// The columns `throughput` and `throughput_bound` of a policy's run in a result folder.
fn bounds(folder: &Path, policy: &str) -> Vec<(f64, f64)> {
    let path = folder.join("rounds.csv");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next().expect("a heading").split(',').collect();
    let at = |name: &str| heads.iter().position(|head| *head == name).expect("a column");
    let (run, reached, bound) = (at("policy"), at("throughput"), at("throughput_bound"));
    let number = |cell: &str| cell.parse::<f64>().expect("a number");
    lines
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|cells| cells[run] == policy)
        .map(|cells| (number(cells[reached]), number(cells[bound])))
        .collect()
}

#[test]
fn no_policy_is_above_the_bound_opt_is_nearest_to_it_and_an_instant_can_be_looked_at() {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("out");
    let run = rota()
        .args([
            "simulate",
            "--jobs",
            "120",
            "-p",
            "srtf+proportional,srtf+tune,srtf+opt",
            "--bound",
            "--quiet",
            "--out",
        ])
        .arg(&out)
        .output()
        .expect("rota runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let unused = |policy: &str| {
        let rounds = bounds(&out, &format!("srtf+{policy}"));
        assert!(rounds.len() > 100, "{policy}: {} decisions", rounds.len());
        let above = rounds.iter().find(|(reached, bound)| *reached > bound + 1e-6);
        assert_eq!(above, None, "{policy} is above its bound");
        1.0 - rounds.iter().map(|r| r.0).sum::<f64>() / rounds.iter().map(|r| r.1).sum::<f64>()
    };
    let (proportional, tune, opt) = (unused("proportional"), unused("tune"), unused("opt"));
    println!("left unused: proportional {proportional:.3}, tune {tune:.3}, opt {opt:.3}");
    assert!(opt <= tune && tune <= proportional && opt < 0.05);
    let page = std::fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(page.contains("Throughput left unused"), "the report draws the gap");
    let look =
        rota().args(["solve", "--at", "40", "--policy", "srtf+tune"]).arg(&out).output().expect("rota runs");
    let text = String::from_utf8_lossy(&look.stdout).into_owned();
    assert!(
        text.contains("decision 40:") && text.contains("at most"),
        "{text}{}",
        String::from_utf8_lossy(&look.stderr)
    );
    let decision = bounds(&out, "srtf+tune")[40];
    assert!(text.contains(&format!("{:.3} with the policy", decision.0)), "{decision:?}\n{text}");
    let wrong = rota()
        .args(["solve", "--at", "999999", "--policy", "srtf+tune"])
        .arg(&out)
        .output()
        .expect("rota runs");
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("--at 999999: the run has"));
    let several = rota().args(["solve", "--at", "1"]).arg(&out).output().expect("rota runs");
    assert!(String::from_utf8_lossy(&several.stderr).contains("choose one with --policy"));
}

#[test]
fn every_form_of_synergys_model_can_be_chosen_and_a_joint_one_too_large_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let notes = |name: &str, set: &[&str]| {
        let out = dir.path().join(name);
        let mut command = rota();
        command.args([
            "simulate",
            "--jobs",
            "14",
            "--static",
            "--multi-gpu",
            "--cluster",
            "small",
            "-p",
            "fifo+opt",
        ]);
        command.args(["--split", "50,0,50", "--quiet", "--out"]).arg(&out);
        for set in set {
            command.args(["--set", set]);
        }
        let run = command.output().expect("rota runs");
        assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
        std::fs::read_to_string(out.join("rounds.csv")).expect("the record of the rounds")
    };
    // Of the second decision: at the first one job has arrived, and later ones follow from what was decided.
    let throughput = |notes: &str| -> f64 {
        let second = notes.split("throughput ").nth(2).and_then(|rest| rest.split(' ').next());
        second
            .and_then(|number| number.parse().ok())
            .unwrap_or_else(|| panic!("no second decision in {notes}"))
    };
    let exact = notes("exact", &[]);
    assert!(!exact.contains("joint model") && throughput(&exact) > 0.0, "{exact}");
    for method in ["pack", "round"] {
        let other = notes(method, &[&format!("placement={method}")]);
        assert!(
            throughput(&other) > 0.0 && throughput(&other) <= throughput(&exact) + 1e-6,
            "{method}: {other}"
        );
    }
    let joint = notes("joint", &["model=joint", "gap=0.01", "nodes=20"]);
    assert!(
        joint.contains("joint model optimal") && throughput(&joint) >= throughput(&exact) - 1e-6,
        "{joint}"
    );
    let large = notes("large", &["model=joint", "exact_spots=1"]);
    assert!(large.contains("joint model too_large"), "{large}");
    assert_eq!(throughput(&large), throughput(&exact));
}
