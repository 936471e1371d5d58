//! How fast inputs are read and drawn: `cargo run --release -p rota-traces --example measure [TRACE]...`.

use std::time::Instant;

use rota_traces::format::{self, Setting};
use rota_traces::generate::{WorkloadOptions, generate};
use rota_traces::source::Source;
use rota_traces::{check, cluster, profile, stats};

fn main() -> Result<(), rota_traces::error::InputError> {
    let (cluster, profiles) = (cluster::load("philly")?, profile::load("synergy")?);
    for path in std::env::args().skip(1) {
        let start = Instant::now();
        let source = Source::open(path.as_ref())?;
        let read = format::read(&source, None, &Setting::new(&cluster, &profiles))?;
        println!("{path}: {} jobs in {:.3} s", read.workload.jobs.len(), start.elapsed().as_secs_f64());
    }
    let text =
        "format = 1\nname = \"vast\"\n[[nodes]]\ncount = 12500\ngpus = 8\ncpus = 24\nmem = \"500GB\"\n";
    let vast = cluster::read(&Source::new("vast.toml", text))?;
    let options = WorkloadOptions {
        jobs: Some(1_000_000),
        jobs_per_hour: 3_000.0,
        multi_gpu: true,
        ..WorkloadOptions::default()
    };
    let start = Instant::now();
    let workload = generate(&vast, &profiles, &options)?;
    println!("{} jobs drawn in {:.3} s", workload.jobs.len(), start.elapsed().as_secs_f64());
    let start = Instant::now();
    let text = format::write_rota(&workload, &vast);
    println!("{} MB written in {:.3} s", text.len() / 1_000_000, start.elapsed().as_secs_f64());
    let start = Instant::now();
    let n_findings = check::check(&workload, &vast).len();
    let load = stats::stats(&workload, &vast).offered_load;
    println!("{n_findings} findings, load {load:.2}, in {:.3} s", start.elapsed().as_secs_f64());
    Ok(())
}
