//! The Python side: the module's own tests, and the example, which really trains, under real shims.

mod common;

use std::path::PathBuf;
use std::process::Command;

use common::{Launched, eventually, spec};
use rota_agent::launch::spec::{LaunchSpec, Work};
use rota_agent::shim::control::ToShim;
use rota_agent::shim::record::{ExitHow, ShimPhase};
use rota_test_support::need;

fn python_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("python")
}

#[test]
fn the_modules_own_tests_pass() {
    let Some(python) = need::python() else { return };
    let output = Command::new(python)
        .args(["-m", "unittest", "test_rota_job"])
        .current_dir(python_folder())
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The example with so many ranks, in a folder of checkpoints that launches share.
fn training(
    python: &str,
    n_ranks: u32,
    incarnation: u32,
    done: f64,
    checkpoints: &std::path::Path,
) -> LaunchSpec {
    let mut launch = spec("");
    let script = python_folder().join("examples/train.py");
    launch.command = vec![python.to_owned(), script.display().to_string(), "--pause=0.01".to_owned()];
    launch.attempt.incarnation = incarnation;
    launch.gang.n_ranks = n_ranks;
    launch.gang.world_size = n_ranks;
    launch.work = Work { iterations: 300.0, done, rate: 0.0, delay_s: 0.0, time_scale: 1.0 };
    launch.checkpoint_dir = checkpoints.to_owned();
    launch.grace_ms = 60_000;
    launch.environment.insert("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned());
    launch
}

/// The losses a launch printed, by step.
fn losses(log: &str) -> Vec<(u32, f64)> {
    let line = |line: &str| {
        let mut words = line.strip_prefix("step ")?.split(" loss ");
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    log.lines().filter_map(line).collect()
}

#[test]
fn the_example_scales_from_one_rank_to_four_and_its_loss_goes_on() {
    let Some(python) = need::numpy() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut alone = Launched::new(training(&python, 1, 1, 0.0, &folder.path().join("alone")));
    assert_eq!(alone.end().0.how, ExitHow::Code(0), "{}", alone.log());
    let expected = losses(&alone.log());
    assert_eq!(expected.last().map(|(step, _)| *step), Some(300), "{}", alone.log());

    let shared = folder.path().join("scaled");
    let (mut seen, mut done) = (Vec::new(), 0.0);
    for (incarnation, n_ranks) in [(1, 1), (2, 2), (3, 4)] {
        let mut launched = Launched::new(training(&python, n_ranks, incarnation, done, &shared));
        if n_ranks < 4 {
            let enough = done + 60.0;
            let mut control = launched.control();
            control
                .hear_until(|state| state.iterations >= enough || matches!(state.phase, ShimPhase::Ended(_)));
            control.send(&ToShim::Stop { grace_ms: 60_000, keep_work: true });
        }
        let (exit, state) = launched.end();
        assert_eq!(exit.how, ExitHow::Code(0), "{}", launched.log());
        assert_eq!(state.iterations, state.checkpointed, "everything done is in the checkpoint");
        assert!(state.checkpointed > done, "{n_ranks} ranks did something");
        done = state.checkpointed;
        seen.extend(losses(&launched.log()));
    }
    assert_eq!(done, 300.0);
    assert_eq!(seen.len(), expected.len(), "every step was done once: {seen:?}");
    for ((step, loss), (as_step, as_loss)) in seen.iter().zip(&expected) {
        assert_eq!(step, as_step);
        assert!((loss - as_loss).abs() < 1e-4, "step {step}: loss {loss}, with one rank {as_loss}");
    }
    let (first, last) = (expected[0].1, expected[expected.len() - 1].1);
    assert!(last < first / 2.0, "it really trains: {first} to {last}");
}

#[test]
fn a_rank_that_is_killed_takes_the_training_down_and_it_resumes() {
    let Some(python) = need::numpy() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = Launched::new(training(&python, 2, 1, 0.0, folder.path()));
    let mut control = first.control();
    control.hear_until(|state| state.iterations >= 20.0);
    control.send(&ToShim::Checkpoint);
    control.hear_until(|state| state.checkpointed > 0.0);
    let mark = format!("7.1@{}", first.run_dir.path().display());
    let ranks = eventually("both ranks", || {
        Some(rota_agent::launch::survivors::marked(&mark)).filter(|ranks| ranks.len() == 2)
    });
    rustix::process::kill_process(ranks[1], rustix::process::Signal::KILL).expect("killed");
    let (_, state) = first.end();
    let mut second = Launched::new(training(&python, 1, 2, state.checkpointed, folder.path()));
    assert_eq!(second.end().0.how, ExitHow::Code(0), "{}", second.log());
    assert!(second.log().contains(&format!("begins at step {}", state.checkpointed)), "{}", second.log());
}
