//! The small traces that come with Rota: able to run, and exactly what the generators draw.

use std::path::PathBuf;

use rota_traces::check::{Severity, check};
use rota_traces::format::{self, Setting, write_rota};
use rota_traces::generate::{DeadlineOptions, Recipe, WorkloadOptions, generate};
use rota_traces::source::Source;
use rota_traces::{cluster, profile};

fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/data")).join(name)
}

/// Compares with a file of `data/`; `UPDATE_EXPECT=1` writes it instead.
fn assert_is_file(name: &str, text: &str) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path(name), text).expect("a file of ours");
    }
    let file = Source::open(&path(name)).expect("a file of ours").text;
    assert!(
        file == text,
        "data/{name} is not what is drawn now, which begins {:?}",
        text.lines().take(4).collect::<Vec<_>>()
    );
}

fn drawn(cluster: &str, profiles: &str, options: &WorkloadOptions) -> String {
    let (cluster, profiles) =
        (cluster::load(cluster).expect("built in"), profile::load(profiles).expect("built in"));
    write_rota(&generate(&cluster, &profiles, options).expect("sound"), &cluster)
}

/// The same seed gives the same bytes, on every machine and in every version: these files are the proof.
#[test]
fn the_generators_draw_what_they_always_drew() {
    let synergy = WorkloadOptions {
        jobs: Some(100),
        multi_gpu: true,
        jobs_per_hour: 4.0,
        ..WorkloadOptions::default()
    };
    assert_is_file("synergy-100.csv", &drawn("default", "synergy", &synergy));
    let elastic = WorkloadOptions {
        recipe: Recipe::Elasticflow,
        jobs: Some(50),
        multi_gpu: true,
        jobs_per_hour: 4.0,
        deadlines: DeadlineOptions { best_effort: 0.2, ..DeadlineOptions::default() },
        ..WorkloadOptions::default()
    };
    assert_is_file("elasticflow-50.csv", &drawn("a100", "elasticflow-a100", &elastic));
}

#[test]
fn every_canonical_trace_can_run_on_its_cluster() {
    let cases = [
        ("features.csv", "mixed", "synergy"),
        ("synergy-100.csv", "default", "synergy"),
        ("elasticflow-50.csv", "a100", "elasticflow-a100"),
        ("short-deadlines-30.csv", "a100-4", "elasticflow-a100"),
    ];
    for (name, cluster, profiles) in cases {
        let (cluster, profiles) =
            (cluster::load(cluster).expect("built in"), profile::load(profiles).expect("built in"));
        let read =
            format::read(&Source::open(&path(name)).expect(name), None, &Setting::new(&cluster, &profiles))
                .expect(name);
        let odd: Vec<String> = check(&read.workload, &read.dropped, &read.lines, &cluster)
            .iter()
            .filter(|f| f.severity() == Severity::Error)
            .map(ToString::to_string)
            .collect();
        assert_eq!(odd, Vec::<String>::new(), "{name}");
        assert_eq!(read.workload.check(), Ok(()), "{name}");
    }
}

#[test]
fn every_file_under_configs_is_read() {
    let configs = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs");
    let mut n_read = 0;
    for (folder, known) in [
        ("clusters", cluster::BUILT_IN.len()),
        ("profiles", profile::BUILT_IN.len()),
        ("workloads", rota_traces::generate::BUILT_IN.len()),
    ] {
        let files = std::fs::read_dir(format!("{configs}/{folder}")).expect("a folder of configs");
        let mut n_files = 0;
        for file in files {
            let source = Source::open(&file.expect("an entry").path()).expect("readable");
            match folder {
                "clusters" => drop(cluster::read(&source).expect("a cluster")),
                "profiles" => drop(profile::read(&source).expect("a profile set")),
                _ => drop(rota_traces::generate::read(&source).expect("a workload")),
            }
            n_files += 1;
        }
        assert_eq!(n_files, known, "every file in {folder} is built in");
        n_read += n_files;
    }
    assert!(n_read > 15);
}
