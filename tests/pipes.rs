//! The program among others in a pipeline: readers that leave early, traces from standard input; and result folders that
//! must not be lost.

mod common;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{refused, rota, said};

const TRACE: &str = "job_id,arrival_s,gpus,duration_s\na,0,1,3600\nb,60,2,1800\n";

/// Runs the program with a text on its standard input.
fn fed(args: &str, input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(args.split_whitespace()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(input).expect("it reads");
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_reader_that_leaves_early_ends_every_command_quietly() {
    let commands = [
        "compare -p fifo,las --workload small",
        "compare -p fifo --workload small --json",
        "trace generate --jobs 2000",
        "trace stats --workload small",
        "trace formats",
        "policy list",
        "policy defs",
        "policy show tune",
        "profile show synergy",
        "completions bash",
        "doctor",
        "conform milp",
        "--help",
    ];
    for line in commands {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
        command.args(line.split_whitespace()).stdin(Stdio::null()).stdout(writer);
        let output = command.output().expect("the program starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains("panicked") && !errors.contains("Broken pipe"), "{line}: {errors}");
        // Clap prints help itself, and does not mind.
        let expected = if line == "--help" { 0 } else { 141 };
        assert_eq!(output.status.code(), Some(expected), "{line}: {errors}");
    }
}

#[test]
fn a_trace_is_read_from_standard_input_in_any_format() {
    let stats = said(&fed("trace stats -", TRACE.as_bytes()));
    assert!(stats.starts_with("standard input: 2 jobs"), "{stats}");
    let table = said(&fed("simulate -p fifo --trace -", TRACE.as_bytes()));
    assert!(table.contains("2 jobs in"), "{table}");
    let replay = fed("trace convert - --to rota", b"0,alexnet,8.0,23349,1\n");
    assert!(said(&replay).contains("alexnet"));
    let blanks = "job_id submit_time iteration model_name ddl batch_size num_gpu duration\n\
                  a 5 100 resnet50 900 64 2 50\n";
    let elasticflow = said(&fed("trace stats -", blanks.as_bytes()));
    assert!(
        elasticflow.starts_with("standard input: 1 job over") && elasticflow.contains("resnet50"),
        "{elasticflow}"
    );
}

#[test]
fn errors_in_standard_input_name_it_with_the_line() {
    let why = refused(&fed("simulate -p fifo --trace -", TRACE.replace("60,2,", "60,two,").as_bytes()));
    assert!(why.contains("standard input:3") && why.contains("two"), "{why}");
    let why = refused(&fed("simulate -p fifo --trace -", b"what,is,this\n"));
    assert!(why.contains("standard input:1"), "{why}");
    let why = refused(&fed("trace check -", b""));
    assert!(why.contains("standard input"), "{why}");
}

#[test]
fn a_run_of_standard_input_cannot_be_simulated_again_and_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("out");
    said(&fed(&format!("simulate -q -p fifo --trace - --out {}", out.display()), TRACE.as_bytes()));
    let why = refused(&rota(dir.path(), "solve --at 0 out"));
    assert!(why.contains("standard input"), "{why}");
}

fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let read = |entry: fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap_or_default())
    };
    let mut files: Vec<_> =
        fs::read_dir(dir).expect("a folder").map(|e| read(e.expect("an entry"))).collect();
    files.sort();
    files
}

#[test]
fn results_of_another_run_are_kept_unless_told_otherwise() {
    let dir = tempfile::tempdir().expect("a folder");
    let run = |args: &str| rota(dir.path(), &format!("simulate -q --workload small --out out {args}"));
    fs::create_dir(dir.path().join("out")).expect("an empty folder");
    said(&run("-p fifo"));
    let before = files(&dir.path().join("out"));
    fs::write(dir.path().join("late.rhai"), "fn order(jobs, now) { throw \"too late\" }").expect("a script");
    for other in ["-p las", "-p fifo,las", "-p fifo --seed 3", "-p fifo --window 0..5", "-p ./late.rhai"] {
        let why = refused(&run(other));
        assert!(
            why.contains("out holds results of another run") && why.contains("--overwrite"),
            "{other}: {why}"
        );
        assert_eq!(files(&dir.path().join("out")), before, "{other}");
    }
    // Its own results may be replaced: they come out equal, but for the time it took.
    said(&run("-p fifo"));
    let jobs = |files: &[(String, Vec<u8>)]| files.iter().find(|(name, _)| name == "jobs.csv").cloned();
    assert_eq!(jobs(&files(&dir.path().join("out"))), jobs(&before));
    said(&run("-p fifo,las --overwrite"));
    let jobs = fs::read_to_string(dir.path().join("out/jobs.csv")).expect("jobs.csv");
    assert!(jobs.contains("\n1,fifo,") && jobs.contains("\n2,las,"), "{jobs}");
}

#[test]
fn overwriting_still_spares_what_is_no_result() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("thesis")).expect("a folder");
    fs::write(dir.path().join("thesis/chapter1.tex"), "years of work").expect("a file");
    let why = refused(&rota(dir.path(), "simulate -q -p fifo --workload small --out thesis --overwrite"));
    assert!(why.contains("chapter1.tex"), "{why}");
    assert!(dir.path().join("thesis/chapter1.tex").exists());
}
