//! `rota profile` as its user runs it, with real processes under the agent's shim.

use std::path::Path;
use std::process::{Command, Output};

use rota_core::profile::Shape;
use rota_core::resources::Host;
use rota_traces::profile::load;

pub(super) fn rota(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.current_dir(folder).env("XDG_CACHE_HOME", folder.join("cache"));
    command.arg("profile").args(words).output().expect("runs")
}

/// What it said, and whether it succeeded.
pub(super) fn said(output: &Output) -> (bool, String) {
    let text = [&output.stderr[..], &output.stdout[..]].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Processes of runs whose folder is below a test's temporary folder; a run's environment names it.
fn n_left(marker: &str) -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let environments = entries.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
    let needle = format!("PROFILE_TEST={marker}");
    environments.filter(|text| text.split(|byte| *byte == 0).any(|word| word == needle.as_bytes())).count()
}

#[test]
fn an_emulated_job_profiled_for_real_returns_its_profile() {
    let folder = tempfile::tempdir().expect("a folder");
    // 25 iterations of up to 2 s of the job's time, a hundred times as fast.
    let output = rota(
        folder.path(),
        &[
            "run",
            "--name",
            "res18",
            "--out",
            "out",
            "--pretend",
            "--environment-only",
            "--cpus",
            "1,3,9,12,24",
            "--memory",
            "20.83GB,62.5GB,125GB",
            "--measure-memory",
            "--time-scale",
            "100",
            "--iterations",
            "25",
            "--within",
            "3%",
            "--gpu-type",
            "V100",
            "--",
            "rota-agent",
            "emulate",
            "--profile",
            "synergy",
            "--model",
            "res18",
            "--time-scale",
            "100",
        ],
    );
    let (is_good, text) = said(&output);
    assert!(is_good, "{text}");
    assert!(text.contains("request 9 CPUs for each GPU") && text.contains("request 62.5 GB"), "{text}");
    let file = folder.path().join("out/profile.toml");
    let mine = load(file.to_str().expect("a path")).expect("a profile");
    let (mine, shipped) = (mine.entry("res18").expect("there").clone(), load("synergy").expect("built in"));
    let shipped = shipped.get("res18").expect("there");
    let measured = mine.measured.expect("provenance");
    assert!(
        measured.command.contains("emulate --profile synergy") && !measured.points.is_empty(),
        "{measured:?}"
    );
    for cpus in [1.0, 3.0, 9.0, 24.0] {
        for mem in [20.83, 62.5, 125.0] {
            let per_gpu = Host::from_units(cpus, mem, 1e6);
            let shape = Shape { gpus: 1, n_nodes: 1, per_gpu, gpu_type: "V100", batch: 0 };
            let (is, was) = (mine.profile.rate(&shape), shipped.rate(&shape));
            assert!((is / was - 1.0).abs() < 0.05, "{cpus} CPUs, {mem} GB: {is} instead of {was}\n{text}");
        }
    }
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).expect("a page");
    assert!(page.contains("What to ask for") && page.contains("<svg"));
    // Everything is known: the same command again runs nothing and says so.
    let runs = std::fs::read_to_string(folder.path().join("out/runs.jsonl")).expect("runs");
    assert!(runs.lines().count() - 1 <= 12, "{runs}");
}

#[test]
fn commands_that_go_wrong_say_how_and_leave_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let hog = "x=$(head -c 300000000 /dev/zero | tr '\\0' a); sleep 60";
    let cases: [(&str, &[&str], &str, &str); 6] = [
        (
            "fails",
            &[],
            "echo no such data >&2; exit 3",
            "it failed with code 3; its last lines:\n    no such data",
        ),
        ("hangs", &["--run-limit", "1s"], "while true; do echo .; sleep 0.1; done", "did not end within 1 s"),
        ("is-silent", &["--silence", "1s"], "sleep 1000", "wrote no output for 1 s"),
        ("says-nothing", &[], "true", "did not report its iterations: use the job protocol"),
        (
            "says-other",
            &["--pattern", "(?<iteration>\\d+)"],
            "echo hello",
            "no line of its output matches --pattern",
        ),
        ("needs-more", &["--memory", "0.1GB"], hog, "it needed more than the 0.1 GB it was given"),
    ];
    for (name, options, script, expected) in cases {
        let mark = format!("{name}-{}", std::process::id());
        let variable = format!("PROFILE_TEST={mark}");
        let mut words =
            vec!["run", "--name", name, "--environment-only", "--max-cpus", "1", "--no-warm-up-run", "--env"];
        words.push(&variable);
        words.extend(options);
        words.extend(["--", "/bin/sh", "-c", script]);
        let (is_good, text) = said(&rota(folder.path(), &words));
        assert!(!is_good && text.contains(expected), "{name}: {text}");
        assert!(folder.path().join(format!("profile-{name}/runs.jsonl")).exists(), "{name}: runs are kept");
        assert_eq!(n_left(&mark), 0, "{name} left processes behind");
    }
    let (is_good, text) =
        said(&rota(folder.path(), &["run", "--name", "x", "--max-cpus", "1", "--", "/no/such/program"]));
    assert!(!is_good && text.contains("it did not start: cannot start `/no/such/program`"), "{text}");
    let (is_good, text) = said(&rota(folder.path(), &["run", "--name", "y", "--cpus", "900", "--", "true"]));
    assert!(!is_good && text.contains("900 CPUs are asked for and this machine has"), "{text}");
}

#[test]
fn partial_results_are_kept_when_the_budget_is_spent_and_the_sweep_goes_on_later() {
    let folder = tempfile::tempdir().expect("a folder");
    // Each iteration prints its number; more CPUs do nothing.
    let script = "for i in $(seq 1 $ROTA_ITERATIONS); do echo step $i; sleep 0.02; done";
    let run = |budget: &str| {
        said(&rota(
            folder.path(),
            &[
                "run",
                "--name",
                "steps",
                "--pretend",
                "--environment-only",
                "--cpus",
                "1,2",
                "--iterations",
                "12",
                "--within",
                "90%",
                "--pattern",
                "step (?<iteration>\\d+)",
                "--budget",
                budget,
                "--",
                "/bin/sh",
                "-c",
                script,
            ],
        ))
    };
    let (is_good, text) = run("0.001s");
    assert!(!is_good && text.contains("budget of 0.001 s is spent"), "{text}");
    let (is_good, text) = run("10m");
    assert!(is_good, "{text}");
    assert!(text.contains("continuing after 1 runs"), "{text}");
    assert!(folder.path().join("profile-steps/profile.toml").exists());
}

#[test]
fn a_dry_run_says_what_it_costs_and_runs_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (is_good, text) = said(&rota(
        folder.path(),
        &[
            "run",
            "--dry-run",
            "--name",
            "dry",
            "--cpus",
            "1,2,4,8",
            "--gpus",
            "1,2",
            "--batch",
            "32,64",
            "--",
            "python",
            "train.py",
            "-b",
            "8",
        ],
    ));
    assert!(is_good, "{text}");
    for part in [
        "python train.py --batch-size 32 --workers 8 --max-iterations 50",
        "its own `-b 8` is replaced by the profiler's",
        "6 to 8 runs of 50 iterations (the full grid has 16)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn profiles_are_shown_imported_and_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let go = |words: &[&str]| said(&rota(folder.path(), words));
    let (is_good, text) = go(&["show"]);
    assert!(is_good && text.contains("elasticflow-a100"), "{text}");
    let (is_good, text) = go(&["show", "synergy", "alexnet"]);
    assert!(
        is_good && text.contains("demand for each GPU: 12 CPUs, 125 GB") && text.contains("2.940"),
        "{text}"
    );
    let (is_good, text) = go(&["show", "synergy", "nobody"]);
    assert!(!is_good && text.contains("`nobody` is not in synergy"), "{text}");
    std::fs::create_dir(folder.path().join("T4")).expect("made");
    let table = "global_batch_size,1,2,4\n384,0.03,0.07,0.20\n";
    std::fs::write(folder.path().join("T4/bert.csv"), table).expect("written");
    let (is_good, text) = go(&["import", "T4", "-o", "mine.toml"]);
    assert!(is_good && text.contains("1 models written to mine.toml"), "{text}");
    let (is_good, text) = go(&["compare", "elasticflow-t4", "mine.toml", "--page", "difference.html"]);
    assert!(is_good && text.contains("bert") && text.contains("4 GPUs, batch 384"), "{text}");
    let page = std::fs::read_to_string(folder.path().join("difference.html")).expect("a page");
    assert!(page.contains("<svg"));
    let (is_good, text) = go(&["import", "difference.html"]);
    assert!(!is_good && text.contains("not recognised"), "{text}");
}
