//! Probing against a stand-in for NVIDIA's library, compiled here in several states: an old driver, none, no GPU, a bad one.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use rota_agent::probe::{Driver, DriverError, Gpu, find_gpus_by};
use rota_test_support::need;

const STUB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nvml/stub.c");

/// What the agent finds.
type Found = (Result<Vec<Gpu>, DriverError>, Result<Driver, DriverError>);

/// What the agent finds by a library that was compiled so; nothing where there is no C compiler.
fn probed(traits: &[&str]) -> Option<Found> {
    let folder = tempfile::tempdir().expect("a folder");
    let library = compiled(folder.path(), traits)?;
    Some((find_gpus_by(&library), Driver::find_by(&library)))
}

fn compiled(folder: &Path, traits: &[&str]) -> Option<OsString> {
    let library = folder.join("libnvidia-ml.so.1");
    let mut compiler = Command::new(need::compiler()?);
    compiler.args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&library).arg(STUB);
    compiler.args(traits.iter().map(|one| format!("-D{one}")));
    let output = compiler.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(library.into_os_string())
}

fn usable(gpus: &[Gpu]) -> Vec<(u32, u64)> {
    gpus.iter().filter(|gpu| gpu.trouble.is_none()).map(|gpu| (gpu.number, gpu.mem_bytes)).collect()
}

#[test]
fn a_current_driver_says_everything() {
    let Some((gpus, driver)) = probed(&[]) else { return };
    let gpus = gpus.expect("two");
    assert_eq!(usable(&gpus), [(0, 17_000_000_000), (1, 17_000_000_000)]);
    assert_eq!((gpus[1].uuid.as_str(), gpus[1].model.as_str()), ("GPU-1", "V100-SXM2-16GB"));
    let driver = driver.expect("there");
    assert_eq!((driver.version.as_str(), driver.cuda.as_str()), ("450.80.02", "unknown"));
}

#[test]
fn a_driver_without_the_second_version_is_asked_by_the_first() {
    for traits in [&["WITHOUT_V2"], &["REFUSES_V2"]] {
        let Some((gpus, _)) = probed(traits) else { return };
        let gpus = gpus.expect("two");
        assert_eq!(usable(&gpus), [(0, 16_000_000_000), (1, 16_000_000_000)], "{traits:?}: {gpus:?}");
    }
}

#[test]
fn gpus_whose_memory_nobody_tells_can_be_used() {
    let Some((gpus, _)) = probed(&["WITHOUT_V1", "WITHOUT_V2"]) else { return };
    assert_eq!(usable(&gpus.expect("two")), [(0, 0), (1, 0)]);
}

#[test]
fn a_driver_without_gpus_has_none_and_one_that_is_not_loaded_says_so() {
    let Some((gpus, driver)) = probed(&["N_GPUS=0"]) else { return };
    assert_eq!(gpus, Ok(Vec::new()));
    assert!(driver.is_ok());
    let Some((gpus, driver)) = probed(&["NOT_LOADED"]) else { return };
    let (gpus, driver) = (gpus.expect_err("no driver"), driver.expect_err("no driver"));
    assert!(gpus.to_string().contains("driver") && gpus == driver, "{gpus} / {driver}");
}

#[test]
fn a_gpu_in_error_is_named_and_the_others_are_used() {
    let Some((gpus, _)) = probed(&["N_GPUS=4", "LOST=1", "WORN=2", "WITHOUT_V2"]) else { return };
    let gpus = gpus.expect("four");
    assert_eq!(usable(&gpus), [(0, 16_000_000_000), (3, 16_000_000_000)]);
    let trouble = |number: usize| gpus[number].trouble.clone().unwrap_or_default();
    assert!(trouble(1).contains("fell off the bus"), "{}", trouble(1));
    assert_eq!(trouble(2), "7 uncorrected memory errors since the driver started");
}

#[test]
fn a_library_that_is_not_there_is_no_driver() {
    let why = find_gpus_by("/nowhere/libnvidia-ml.so.1".as_ref()).expect_err("none");
    assert_eq!(why, DriverError::Missing);
}
