//! GPEmu's Synergy run on a real head and real agents with emulated GPUs.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Runs the figure with this folder of public material; its JSON, and the folder it wrote.
fn reproduced(folder: &Path, shared: &Path, more: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(["reproduce", "gpemu", "synergy", "--json", "--out", "out"]).args(more);
    let output = command.current_dir(folder).env("ROTA_SHARED", shared).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn outcome<'v>(study: &'v Value, claim: &str, of: &str) -> &'v str {
    let verdicts = study["verdicts"].as_array().expect("verdicts");
    let found = verdicts.iter().find(|verdict| verdict["claim"] == claim && verdict["of"] == of);
    found
        .and_then(|verdict| verdict["outcome"].as_str())
        .unwrap_or_else(|| panic!("{claim} of {of}: {verdicts:#?}"))
}

fn assert_whole(study: &Value, n_jobs: u64) {
    let cells = study["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 4, "las and srtf, proportional and tuned");
    for cell in cells {
        for column in ["deployed", "simulated"] {
            assert_eq!(cell[column]["n_jobs"].as_u64(), Some(n_jobs), "{column}: {cell}");
        }
    }
}

#[test]
fn a_few_of_gpemus_jobs_are_deployed_under_four_policies_and_end_as_simulated() {
    let folder = tempfile::tempdir().expect("a folder");
    // A point for each curve: what is far from our times is told apart.
    let points = folder.path().join("golden/gpemu");
    std::fs::create_dir_all(&points).expect("made");
    let mut table = String::from("order,source,allocation,jct_h,cdf\n");
    for order in ["las", "srtf"] {
        for allocation in ["proportional", "tune"] {
            for n in 1..=40 {
                table += &format!("{order},gpemu,{allocation},{},{}\n", 100 + n, f64::from(n) / 40.0);
            }
        }
    }
    std::fs::write(points.join("synergy_cdf.csv"), table).expect("written");
    let study = reproduced(folder.path(), folder.path(), &["--quick"]);
    assert_whole(&study, 8);
    assert_eq!(outcome(&study, "as-simulated", "deployed"), "holds", "{:#}", study["verdicts"]);
    assert_eq!(outcome(&study, "times-as-gpemu", "deployed"), "does-not-hold");
    assert_eq!(outcome(&study, "tune-ahead", "GPEmu"), "tie");
    assert_eq!(outcome(&study, "times-as-the-paper", "deployed"), "not-comparable");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).expect("a page");
    assert!(page.contains("four accounts") && page.contains("not comparable"), "the page shows both");
    let times = std::fs::read_to_string(folder.path().join("out/times.csv")).expect("times");
    assert_eq!(times.lines().count(), 1 + 4 * 2 * 8);
    for name in ["las-allocations", "srtf-allocations", "las-tune", "srtf-proportional"] {
        assert!(folder.path().join(format!("out/plots/{name}.png")).is_file(), "{name}");
    }
}

/// All forty jobs, with time that runs and is never passed over.
#[test]
fn gpemus_forty_jobs_end_as_simulated_and_tuning_is_ahead() {
    if !rota_test_support::need::long_tier("a quarter of an hour") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let study = reproduced(folder.path(), folder.path(), &[]);
    assert_whole(&study, 40);
    for of in ["deployed", "simulated"] {
        assert_eq!(outcome(&study, "tune-ahead", of), "holds", "{:#}", study["verdicts"]);
    }
    assert_eq!(outcome(&study, "as-simulated", "deployed"), "holds", "{:#}", study["verdicts"]);
    assert_eq!(outcome(&study, "times-as-gpemu", "deployed"), "not-comparable", "no points are there");
}

#[test]
fn an_interrupted_reproduction_leaves_nothing_running() {
    rota_test_support::need::agent(env!("CARGO_BIN_EXE_rota"));
    for signal in ["-TERM", "-INT", "-KILL"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
        command.args(["reproduce", "gpemu", "synergy", "--quick", "--out", "out"]).current_dir(&folder);
        command.env("TMPDIR", folder.path()).env("ROTA_SHARED", folder.path()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let is_deploying = |line: std::io::Result<String>| line.expect("text").starts_with("deploying");
        assert!(lines.any(is_deploying), "the cluster is up and has jobs");
        let home = home_in(folder.path()).expect("a home while it runs");
        let pids = std::fs::read_to_string(home.join("pids")).expect("a head and two agents");
        assert_eq!(pids.lines().filter(|pid| is_alive(pid)).count(), 3, "{pids}");
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
        // The sweeper holds the other end of stderr until it is done.
        lines.for_each(drop);
        assert!(!child.wait().expect("an end").success(), "{signal}");
        assert_eq!(pids.lines().filter(|pid| is_alive(pid)).count(), 0, "{signal}: {pids}");
        assert_eq!(home_in(folder.path()), None, "{signal}");
    }
}

fn home_in(folder: &Path) -> Option<PathBuf> {
    let mut entries =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.find(|path| path.display().to_string().contains("rota-reproduce-"))
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
