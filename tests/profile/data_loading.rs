//! Real work: a Python data loader, unpacking and tokenising with as many workers as it has CPUs.

use rota_test_support::need;
use rota_traces::profile::load;

use super::commands::{rota, said};

#[test]
fn a_data_loader_is_profiled_with_a_worker_for_each_cpu_and_two_are_faster_than_one() {
    let (Some(python), Some(_)) = (need::python(), need::two_cpus()) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/agent/python/examples/load_data.py");
    let words = [
        "run",
        "--name",
        "text",
        "--out",
        "out",
        "--cpus",
        "1,2",
        "--iterations",
        "30",
        "--no-warm-up-run",
        "--within",
        "50%",
        "--repeats",
        "1",
        "--",
        &python,
        // No compiled modules in the checkout.
        "-B",
        script,
        "--batch-size",
        "6",
    ];
    let (is_good, text) = said(&rota(folder.path(), &words));
    assert!(is_good, "{text}");
    let set = load(folder.path().join("out/profile.toml").to_str().expect("a path")).expect("a profile");
    let curve = set.get("text").and_then(|profile| profile.host.clone()).expect("a curve");
    assert_eq!(curve.cpus(), [1.0, 2.0]);
    assert!(text.contains("--workers 2"), "a worker for each CPU: {text}");
    // How fast is a matter of what else the machine does: asked in the long tier, which has it for itself.
    if need::is_long_tier() {
        let gain = curve.at(2.0, 0.0) / curve.at(1.0, 0.0);
        assert!(gain > 1.15, "two CPUs are {gain:.2} times as fast as one\n{text}");
    }
}
