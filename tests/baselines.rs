//! ElasticFlow's baselines as shipped, compared with the original's rules: as many deadlines met, and no longer completion times.
//!
//! Margins are stated where they are used; docs/fidelity.md says where the shipped ones are behind, and why.

mod common;

use std::fmt::Write as _;
use std::path::Path;

use common::{refused, rota, said};
use rota_test_support::need;
use serde_json::Value;

const BASELINES: [&str; 3] = ["gandiva", "themis", "tiresias"];

/// Deadlines met, as a ratio, and mean completion time in seconds.
type Outcome = (f64, f64);

/// One outcome for each baseline.
fn outcomes(folder: &Path, inputs: &str) -> Vec<Outcome> {
    let json = said(&rota(folder, &format!("compare -q --json -p {} {inputs}", BASELINES.join(","))));
    let file: Value = serde_json::from_str(&json).expect("JSON");
    let runs = file["runs"].as_array().expect("runs");
    let outcome = |run: &Value| {
        assert_eq!(run["unfinished"], 0, "{inputs}: {run}");
        (run["deadline_ratio"].as_f64().expect("a ratio"), run["avg_jct_s"].as_f64().expect("a time"))
    };
    runs.iter().map(outcome).collect()
}

fn original_and_shipped(folder: &Path, inputs: &str) -> (Vec<Outcome>, Vec<Outcome>) {
    (outcomes(folder, &format!("{inputs} --set compat=artifact")), outcomes(folder, inputs))
}

/// The trace with every arrival at the next multiple of the slot, when original and engine alike hold a round.
fn at_rounds(trace: &str, slot_s: i64) -> String {
    let mut lines = trace.lines();
    let head = lines.next().expect("a heading");
    let column = |names: [&str; 2]| head.split(',').position(|name| names.contains(&name)).expect("a column");
    let arrival = column(["submission_time", "submit_time"]);
    let deadline = column(["deadline", "ddl"]);
    let mut text = format!("{head}\n");
    for line in lines.filter(|line| !line.is_empty()) {
        let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        let number = |cell: &String| cell.parse::<i64>().expect("a whole number");
        let moved = (number(&cells[arrival]) + slot_s - 1) / slot_s * slot_s;
        // A deadline that has passed by then is missed all the same.
        cells[deadline] = number(&cells[deadline]).max(moved + 1).to_string();
        cells[arrival] = moved.to_string();
        writeln!(text, "{}", cells.join(",")).expect("text");
    }
    text
}

#[test]
fn on_drawn_jobs_the_shipped_baselines_meet_as_many_deadlines() {
    let here = Path::new(".");
    for jobs_per_hour in [2, 8] {
        let mut sums = vec![[0.0; 4]; BASELINES.len()];
        for seed in 1..=5 {
            let inputs = format!(
                "--workload elasticflow --cluster a100-4 --jobs 100 --jobs-per-hour {jobs_per_hour} --round 1m --seed {seed}"
            );
            let (original, shipped) = original_and_shipped(here, &inputs);
            for (sum, (original, shipped)) in sums.iter_mut().zip(original.iter().zip(&shipped)) {
                for (sum, value) in sum.iter_mut().zip([original.0, shipped.0, original.1, shipped.1]) {
                    *sum += value / 5.0;
                }
            }
        }
        for (policy, [met_there, met, jct_there, jct]) in BASELINES.iter().zip(sums) {
            let what = format!(
                "{policy} at {jobs_per_hour} jobs/h: {met:.3} of deadlines met, originally {met_there:.3}; {jct:.0} s, {jct_there:.0} s"
            );
            assert!(met >= met_there, "{what}");
            assert!(jct <= jct_there * 1.02, "{what}");
        }
    }
}

/// A figure's trace: file, jobs of it, cluster and profiles, slot in seconds.
const FIGURES: [(&str, &str, i64); 4] = [
    ("traces/elasticflow-itp/elasticflow/195job.csv", "--jobs 25 --cluster a100-4", 240),
    ("traces/elasticflow-itp/elasticflow/195job.csv", "--cluster a100", 240),
    ("traces/philly-elasticflow/elasticVpollux_e.csv", "--cluster t4 --profiles elasticflow-t4", 60),
    ("traces/elasticflow-itp/elasticflow/cluster10.csv", "--cluster a100-32", 60),
];

#[test]
fn on_the_figures_traces_the_shipped_baselines_meet_as_many_deadlines() {
    // The original is asked when a job comes, if a slot has passed; the engine at multiples of the slot. Tiresias, which
    // meets most deadlines of short jobs, loses up to one in forty of all by that wait. With arrivals at rounds none does.
    const BETWEEN_ROUNDS: [f64; 3] = [0.005, 0.005, 0.025];
    for (file, inputs, slot_s) in FIGURES {
        let Some(path) = need::shared_path(file) else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let trace = std::fs::read_to_string(&path).expect("the trace");
        std::fs::write(folder.path().join("at-rounds.csv"), at_rounds(&trace, slot_s)).expect("a file");
        for (trace, margins) in
            [(path.display().to_string(), BETWEEN_ROUNDS), ("at-rounds.csv".into(), [0.0; 3])]
        {
            let inputs = format!("--trace {trace} {inputs} --round {slot_s}s");
            let (original, shipped) = original_and_shipped(folder.path(), &inputs);
            for (index, policy) in BASELINES.iter().enumerate() {
                let ((met_there, jct_there), (met, jct)) = (original[index], shipped[index]);
                let what = format!(
                    "{policy}, {inputs}: {met:.3} of deadlines met, originally {met_there:.3}; {jct:.0} s, {jct_there:.0} s"
                );
                assert!(met >= met_there - margins[index], "{what}");
                assert!(jct <= jct_there * 1.01, "{what}");
            }
        }
    }
}

#[test]
fn a_limit_that_lets_no_gang_onto_a_gpu_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = refused(&rota(dir.path(), "simulate -q -p gandiva --set most=0 --jobs 5"));
    assert!(text.contains("most") && text.contains('0'), "{text}");
}
