//! Emulated jobs as their user runs them: times, GPU memory, shares, mistakes.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn profiles(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../configs/profiles").join(name)
}

fn emulate(options: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota-agent"));
    command.arg("emulate").args(options).env_remove("ROTA_JOB_SOCKET").envs(environment.iter().copied());
    command.output().expect("runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_job_takes_as_long_as_its_profile_says() {
    let profile = profiles("synergy.toml");
    // 0.2 s an iteration at the proportional share: 60 iterations are 12 s, and a fiftieth of that in real time.
    let options = ["--profile", profile.to_str().expect("a path"), "--model", "gnmt", "--iterations", "60"];
    let around = [("ROTA_CPUS", "3"), ("ROTA_MEMORY_BYTES", "62500000000"), ("ROTA_GPU_TYPE", "V100")];
    let began = Instant::now();
    let output = emulate(&[&options[..], &["--time-scale", "50"]].concat(), &around);
    let took = began.elapsed();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("done: 60 iterations"), "{said}");
    let rate: f64 = said
        .split(" at ")
        .nth(1)
        .and_then(|rest| rest.split("/s").next())
        .expect("a rate")
        .parse()
        .expect("a number");
    let expected = Duration::from_secs_f64(60.0 / rate / 50.0);
    assert!(took >= expected, "{took:?} for {expected:?}");
}

#[test]
fn a_job_goes_on_where_it_was() {
    let output = emulate(&["--rate", "1000", "--iterations", "100"], &[("ROTA_ITERATIONS_DONE", "60")]);
    assert!(text(&output.stdout).contains("emulating 100 iterations from 60 at"), "{output:?}");
}

#[test]
fn gpu_memory_that_does_not_fit_ends_the_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let around = [
        ("ROTA_GPU_MEMORY_BYTES", "16000000000"),
        ("ROTA_RUN_DIR", folder.path().to_str().expect("a path")),
        ("CUDA_VISIBLE_DEVICES", "2"),
    ];
    let options = ["--rate", "1000", "--iterations", "10", "--gpu-memory", "20GB"];
    let output = emulate(&options, &around);
    assert!(!output.status.success());
    let said = text(&output.stderr);
    assert_eq!(said, "rota-agent: out of GPU memory on GPU 2: 20 GB needed, 0 B of 16 GB taken\n");
}

#[test]
fn half_a_gpu_is_half_as_fast_as_its_profile_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = profiles("synergy.toml");
    let options = ["--profile", profile.to_str().expect("a path"), "--model", "gnmt", "--iterations", "10"];
    let rate = |share: &str| {
        let around = [
            ("ROTA_GPU_SHARE", share),
            ("ROTA_CPUS", "3"),
            ("ROTA_MEMORY_BYTES", "62500000000"),
            ("ROTA_RUN_DIR", folder.path().to_str().expect("a path")),
        ];
        let output = emulate(&[&options[..], &["--time-scale", "50"]].concat(), &around);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        said.split(" at ")
            .nth(1)
            .and_then(|rest| rest.split("/s").next()?.parse::<f64>().ok())
            .expect("a rate")
    };
    assert!((rate("0.5") * 2.0 - rate("1")).abs() < 0.001);
}

#[test]
fn mistakes_are_explained() {
    let profile = profiles("synergy.toml");
    let path = profile.to_str().expect("a path");
    for (options, part) in [
        (vec!["--rate", "10"], "the number of iterations is not given"),
        (vec!["--iterations", "10"], "--profile"),
        (vec!["--profile", path, "--iterations", "10"], "several models, name one with --model: alexnet"),
        (vec!["--profile", "/no/file", "--iterations", "10"], "\"/no/file\", expected a profile file"),
        (vec!["--rate=-3", "--iterations", "10"], "a number greater than 0"),
        (
            vec!["--rate", "3", "--iterations", "1", "--gpu-memory", "much"],
            "expected an amount of data such as \"500GB\"",
        ),
    ] {
        let output = emulate(&options, &[]);
        assert!(!output.status.success(), "{options:?}");
        assert!(text(&output.stderr).contains(part), "{options:?}: {}", text(&output.stderr));
    }
}
