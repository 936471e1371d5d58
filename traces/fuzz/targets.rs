//! What a fuzz target does with bytes: one name for each reader. A reader may refuse anything; it may not panic, and what it accepts the
//! engine can take.

use std::sync::OnceLock;

use rota_core::cluster::Cluster;
use rota_traces::cluster;
use rota_traces::faults::FaultPlan;
use rota_traces::format::{self, ColumnMap, Format, Setting};
use rota_traces::generate;
use rota_traces::profile::{self, ProfileSet};
use rota_traces::rows::BadRows;
use rota_traces::source::Source;

/// Targets besides the names of the formats.
pub const OTHERS: [&str; 7] = ["detect", "mapped", "cluster", "profile", "workload", "faults", "packed"];

/// Every target.
pub fn names() -> Vec<&'static str> {
    Format::ALL.iter().map(|entry| entry.name).chain(OTHERS).collect()
}

/// Gives bytes to a reader.
pub fn run(target: &str, bytes: &[u8]) {
    let Setup { cluster, synergy, elastic } = setup();
    if target == "packed" {
        return packed(bytes);
    }
    // Extensions decide some things: JSON by `.json`, blanks between cells by `.txt`.
    let (name, bytes) = match bytes.split_first() {
        Some((0, rest)) => ("f.txt", rest),
        Some((1, rest)) => ("f.json", rest),
        Some((2, rest)) => ("f.toml", rest),
        _ => ("f.csv", bytes),
    };
    let Ok(source) = Source::from_bytes(name, bytes.to_vec()) else { return };
    match target {
        "detect" => drop(format::detect(&source)),
        "mapped" => {
            let map = "job_id=id,arrival_s=submit_time:min,gpus=num_gpu,duration_s=hours:h";
            let mapped = map.parse::<ColumnMap>().map(|map| map.apply(source));
            let setting = Setting { bad_rows: BadRows::Skip, ..Setting::new(cluster, synergy) };
            if let Ok(mapped) = mapped {
                drop(format::read(&mapped, None, &setting));
            }
        }
        "cluster" => {
            drop(cluster::read(&source));
            drop(cluster::ini::read(&source));
            drop(cluster::spec::read(&source, "A100"));
        }
        "profile" => drop(profile::read(&source)),
        "workload" => drop(generate::read(&source)),
        "faults" => {
            if let Ok(plan) = FaultPlan::read(&source, cluster) {
                let day = rota_core::time::Time(86_400_000_000);
                drop(plan.faults(cluster, day, 1));
            }
        }
        _ => {
            let Ok(known) = target.parse::<Format>() else { panic!("no target {target}") };
            for (bad_rows, profiles) in [(BadRows::Skip, synergy), (BadRows::Refuse, elastic)] {
                let setting = Setting { bad_rows, ..Setting::new(cluster, profiles) };
                if let Ok(read) = format::read(&source, Some(known), &setting) {
                    assert_eq!(read.workload.check(), Ok(()), "{target}");
                }
            }
        }
    }
}

/// gzip, Zstandard, zip and Parquet are known by how a file begins, so this needs a file.
fn packed(bytes: &[u8]) {
    let path = std::env::temp_dir().join(format!(
        "rota-fuzz-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    if std::fs::write(&path, bytes).is_ok() {
        drop(Source::open(&path));
        drop(Source::open_trace(&path));
        drop(std::fs::remove_file(&path));
    }
}

struct Setup {
    cluster: Cluster,
    synergy: ProfileSet,
    elastic: ProfileSet,
}

fn setup() -> &'static Setup {
    static SETUP: OnceLock<Setup> = OnceLock::new();
    SETUP.get_or_init(|| Setup {
        cluster: cluster::load("small").expect("built in"),
        synergy: profile::load("synergy").expect("built in"),
        elastic: profile::load("elasticflow-a100")
            .expect("built in")
            .and(&profile::load("pollux-t4").expect("built in"))
            .on_any_gpu_type(),
    })
}
