//! Tables as notebooks read them: with pandas and with polars, whatever was run.

mod common;

use std::path::Path;
use std::process::Command;

use common::{refused, rota, said};
use rota_test_support::need;

/// Reads every table that is named, with both libraries, and checks that they agree and that no column is there twice.
const READ: &str = r#"
import sys
import pandas, polars
for path in sys.argv[1:]:
    if path.endswith(".parquet"):
        a, b = pandas.read_parquet(path), polars.read_parquet(path)
    else:
        a, b = pandas.read_csv(path), polars.read_csv(path, infer_schema_length=None)
    assert len(set(a.columns)) == len(a.columns), f"{path}: {list(a.columns)}"
    assert list(a.columns) == list(b.columns), f"{path}: {list(a.columns)} and {list(b.columns)}"
    assert len(a) == len(b) > 0, f"{path}: {len(a)} and {len(b)} rows"
    print(path.rsplit("/", 1)[-1], len(a), *a.columns[:4])
"#;

fn read(python: &str, folder: &Path, names: &[&str]) -> String {
    let paths = names.iter().map(|name| folder.join(name));
    let output = Command::new(python).args(["-c", READ]).args(paths).output().expect("Python is started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn results_are_read_the_same_way_whether_one_policy_ran_or_several() {
    let Some(python) = need::dataframes() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let tables = ["jobs.csv", "rounds.csv", "timeline.csv"];
    said(&rota(dir.path(), "simulate -q -p las --workload small --out one"));
    said(&rota(
        dir.path(),
        "compare -q -p las,srtf+tune --workload small --jobs-per-hour 4,8 --jobs 50 --out four",
    ));
    let one = read(&python, &dir.path().join("one"), &tables);
    let four = read(&python, &dir.path().join("four"), &tables);
    assert!(one.starts_with("jobs.csv 200 run policy jobs_per_hour seed\n"), "{one}");
    assert!(four.starts_with("jobs.csv 200 run policy jobs_per_hour seed\n"), "50 jobs in four runs: {four}");
}

#[test]
fn a_study_that_sets_jobs_is_read() {
    let Some(python) = need::dataframes() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let script = "sweep(#{ policy: [\"las\", \"srtf\"], jobs: 40, jobs_per_hour: [4, 8], seed: 1..=2 });";
    std::fs::write(dir.path().join("s.rhai"), script).expect("a script");
    said(&rota(dir.path(), "study s.rhai --out out -q"));
    let names = [
        "runs.csv",
        "runs.parquet",
        "groups.csv",
        "groups.parquet",
        "pairs.csv",
        "pairs.parquet",
        "timing.csv",
    ];
    let read = read(&python, &dir.path().join("out"), &names);
    assert!(read.contains("runs.parquet 8 run policy jobs jobs_per_hour"), "{read}");
}

#[test]
fn plots_come_in_the_size_that_is_asked_for() {
    let dir = tempfile::tempdir().expect("a folder");
    said(&rota(
        dir.path(),
        "simulate -q -p las --workload small --jobs 20 --out out --plot --size 4x3 --font-size 10",
    ));
    let svg = std::fs::read_to_string(dir.path().join("out/plots/jct-cdf.svg")).expect("a plot");
    assert!(svg.contains("width=\"4.0000in\" height=\"3.0000in\""), "{}", &svg[..200]);
    let pdf = std::fs::read(dir.path().join("out/plots/jct-cdf.pdf")).expect("a plot");
    assert!(pdf.starts_with(b"%PDF-"));
    let why =
        refused(&rota(dir.path(), "simulate -q -p las --workload small --out out2 --plot --font-size 0"));
    assert!(why.contains("--font-size 0: points from 3 to 40 are expected"), "{why}");
}
