//! Same inputs, seed and version: the same bytes and the same digest, wherever it runs, however often, on how many
//! threads, and whether or not rounds are passed over.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Gangs, faults and wrong estimates: everything that is drawn is in play.
const WORKLOAD: &str = "--workload multi --jobs 300 --mtbf 20d --estimate-noise 0.5 --restart-cost 1m";
const POLICIES: [&str; 5] =
    ["fifo+tune", "srtf+greedy+consolidate", "las+tune", "drf+proportional", "tetris+tune"];

/// The files of a run that depend on no clock, and the digest of each run.
#[derive(Debug, PartialEq, Eq)]
struct Kept {
    files: Vec<(String, Vec<u8>)>,
    digests: Vec<String>,
    n_skipped: u64,
}

fn run(threads: &str, more: &str) -> Kept {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("out");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(["compare", "-q", "-p", &POLICIES.join(","), "--out"]).arg(&out);
    command.args(WORKLOAD.split_whitespace()).args(more.split_whitespace());
    let output = command.env("RAYON_NUM_THREADS", threads).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    read(&out)
}

fn read(out: &Path) -> Kept {
    let mut names: Vec<_> = fs::read_dir(out)
        .expect("a result folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("jobs") || name.starts_with("timeline"))
        .collect();
    names.sort_unstable();
    let summary = fs::read(out.join("summary.json")).expect("summary.json");
    let summary: serde_json::Value = serde_json::from_slice(&summary).expect("JSON");
    let runs = summary["runs"].as_array().expect("runs");
    Kept {
        files: names
            .into_iter()
            .map(|name| (name.clone(), fs::read(out.join(name)).expect("a table")))
            .collect(),
        digests: runs.iter().map(|run| run["digest"].as_str().expect("a digest").to_owned()).collect(),
        n_skipped: runs.iter().filter_map(|run| run["rounds_skipped"].as_u64()).sum(),
    }
}

#[test]
fn a_second_run_gives_the_same_bytes_on_any_number_of_threads() {
    let first = run("2", "");
    assert_eq!(first.files.len(), 2, "jobs and a timeline, of all policies");
    let mut digests = first.digests.clone();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), POLICIES.len(), "different policies decide differently");
    assert_eq!(run("2", ""), first);
    assert_eq!(run("1", ""), first);
}

#[test]
fn another_seed_gives_other_bytes() {
    let (one, other) = (run("2", "--seed 1"), run("2", "--seed 2"));
    assert_ne!(one.files, other.files);
    assert_ne!(one.digests, other.digests);
}

#[test]
fn passing_rounds_over_changes_nothing() {
    let skipping = run("2", "");
    let every_round = run("2", "--every-round");
    assert_eq!(skipping.files, every_round.files);
    assert_eq!(skipping.digests, every_round.digests);
    assert!(skipping.n_skipped > 1_000, "only {} rounds were passed over", skipping.n_skipped);
    assert_eq!(every_round.n_skipped, 0);
}
