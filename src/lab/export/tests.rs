use std::fs;

use super::*;
use crate::results::samples::{results, run};

fn exported(system: System) -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().expect("a folder");
    let files =
        export(&results(vec![run("las+tune", 1, Some(4.0))]), system, dir.path(), false).expect("written");
    (dir, files)
}

fn lines(dir: &tempfile::TempDir, name: &str) -> Vec<String> {
    let text = fs::read_to_string(dir.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    text.lines().map(str::to_owned).collect()
}

/// Every row has as many cells as the heading.
fn assert_even(lines: &[String]) {
    let n = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == n), "{lines:#?}");
}

#[test]
fn elasticflows_job_csv_has_a_row_for_each_completion_in_their_order() {
    let (dir, _) = exported(System::Elasticflow);
    let lines = lines(&dir, "job.csv");
    assert_even(&lines);
    let sample = run("las+tune", 1, None);
    assert_eq!(lines.len(), 1 + sample.summary.finished as usize);
    let times: Vec<f64> =
        lines[1..].iter().map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn elasticflows_events_name_who_is_on_each_gpu() {
    let (dir, _) = exported(System::Elasticflow);
    let lines = lines(&dir, "scheduling_events.csv");
    assert_even(&lines);
    let sample = run("las+tune", 1, None);
    assert_eq!(lines.len(), 1 + sample.samples.len());
    assert!(lines[0].starts_with("time,gpu0-0,") && lines[0].ends_with(",ce"), "{}", lines[0]);
    let n_gpus = lines[0].split(',').count() - 2;
    let mut n_busy = 0;
    for (line, sample) in lines[1..].iter().zip(&sample.samples) {
        let cells: Vec<&str> = line.split(',').collect();
        n_busy += cells[1..=n_gpus].iter().filter(|cell| !cell.is_empty()).count();
        assert_eq!(cells[n_gpus + 1].parse(), Ok(sample.efficiency()), "{line}");
    }
    assert!(n_busy > 0, "no job is on any GPU");
}

#[test]
fn synergys_distribution_ends_at_one_and_its_averages_are_hours() {
    let (dir, _) = exported(System::Synergy);
    let distribution = lines(&dir, "las+tune_4.0.csv");
    assert_even(&distribution);
    assert!(distribution.last().is_some_and(|line| line.ends_with(",1")), "{distribution:?}");
    let hours = run("las+tune", 1, None).summary.avg_jct_s.expect("an average") / 3_600.0;
    assert_eq!(lines(&dir, "las+tune_avg_jct.csv"), [format!("4,{hours}")]);
}

#[test]
fn chronus_has_a_row_for_each_job_and_each_round() {
    let (dir, files) = exported(System::Chronus);
    assert_eq!(files.len(), 3);
    let sample = run("las+tune", 1, None);
    let jobs = lines(&dir, "las+tune.csv");
    assert_even(&jobs);
    assert_eq!(jobs.len(), 1 + sample.jobs.len());
    let rounds = lines(&dir, "las+tune_resource.csv");
    assert_even(&rounds);
    assert_eq!(rounds.len(), 1 + sample.samples.len());
}

#[test]
fn a_run_without_a_timeline_is_told_how_to_get_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut run = run("las", 1, None);
    run.timeline.clear();
    let error = export(&results(vec![run]), System::Elasticflow, dir.path(), false).expect_err("no timeline");
    assert!(error.to_string().contains("--timeline"), "{error}");
}

#[test]
fn logs_of_another_result_are_replaced_only_on_request() {
    let (dir, files) = exported(System::Synergy);
    let again = |load, overwrite| {
        let results = results(vec![run("las+tune", 2, load)]);
        export(&results, System::Synergy, dir.path(), overwrite)
    };
    let same = results(vec![run("las+tune", 1, Some(4.0))]);
    assert_eq!(export(&same, System::Synergy, dir.path(), false).expect("the same logs"), files);
    std::fs::write(&files[0], "of another result").expect("written");
    let error = again(Some(4.0), false).expect_err("it would be lost").to_string();
    assert!(error.contains(&files[0].display().to_string()) && error.contains("--overwrite"), "{error}");
    assert_eq!(std::fs::read(&files[0]).expect("there"), b"of another result");
    again(Some(4.0), true).expect("replaced");
    assert_ne!(std::fs::read(&files[0]).expect("there"), b"of another result");
}
