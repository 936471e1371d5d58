//! Measurements of the live cluster: real heads, agents and jobs on loopback. Prints the tables of docs/benchmarks.md.
//!
//! `cargo bench --bench live [-- latency calls starts grpc memory rounds restart viewers jobs year]`; the first eight together take about ten
//! minutes, the last two write a past of a million jobs and of a year first.
//! Promises are printed next to what was measured, and the reader judges: a busy machine fails no test here.

mod age;
#[path = "../../play/browser.rs"]
#[expect(dead_code, reason = "the tests' browser can do more than is measured")]
mod browser;
#[path = "../../fleet/cluster.rs"]
#[expect(dead_code, reason = "the tests' cluster can do more than is measured")]
mod cluster;
mod driver;
mod grpc;
mod latency;
#[path = "../measure.rs"]
#[expect(dead_code, reason = "CPU time means little when several processes work")]
mod measure;
mod memory;
mod named;
#[path = "../../fleet/relay.rs"]
#[expect(dead_code, reason = "nothing is cut while it is measured")]
mod relay;
mod restart;
mod rounds;
mod starts;
mod viewers;

/// A section by its name.
const SECTIONS: [(&str, fn()); 10] = [
    ("latency", latency::measure),
    ("calls", latency::calls),
    ("starts", starts::measure),
    ("grpc", grpc::measure),
    ("memory", memory::measure),
    ("rounds", rounds::measure),
    ("restart", restart::measure),
    ("viewers", viewers::measure),
    ("jobs", age::jobs),
    ("year", age::year),
];

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let Some(unknown) = asked.iter().find(|word| SECTIONS.iter().all(|(name, _)| name != word)) {
        eprintln!("{unknown}: no such section; there are {}", SECTIONS.map(|(name, _)| name).join(" "));
        std::process::exit(2);
    }
    for (name, section) in SECTIONS {
        if asked.is_empty() || asked.iter().any(|word| word == name) {
            section();
        }
    }
}
