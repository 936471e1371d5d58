//! Real launches under real shims: ends, output, stops, leases, and that nothing survives.

mod common;

use std::time::Duration;

use common::{AGENT, Launched, eventually, spec};
use rota_agent::clock::now_ms;
use rota_agent::job::JobClient;
use rota_agent::job::protocol::ToJob;
use rota_agent::launch::spec::{LaunchSpec, Limits, LogCaps, OnHeadLost, Rendezvous, Work};
use rota_agent::launch::survivors;
use rota_agent::shim::control::ToShim;
use rota_agent::shim::record::{ExitCause, ExitHow, ShimPhase};
use rota_test_support::need::{self, Lack, Thing};

/// Processes that carry the mark of a launch.
fn n_alive(launched: &Launched) -> usize {
    survivors::marked(&format!("7.1@{}", launched.run_dir.path().display())).len()
}

#[test]
fn code_and_output_of_a_job_are_kept() {
    let mut launched = Launched::new(spec("echo to stdout; echo to stderr >&2; exit 3"));
    let (exit, _) = launched.end();
    assert_eq!((exit.how, exit.cause), (ExitHow::Code(3), ExitCause::Itself));
    assert_eq!(launched.log(), "to stdout\nto stderr\n");
}

#[test]
fn a_signal_that_ends_a_job_is_kept() {
    let mut launched = Launched::new(spec("kill -11 $$"));
    assert_eq!(launched.end().0.how, ExitHow::Signal(11));
}

#[test]
fn a_program_that_is_not_there_never_started() {
    let mut missing = spec("");
    missing.command = vec!["/no/such/program".to_owned()];
    let mut launched = Launched::new(missing);
    let ExitHow::NotStarted(why) = launched.end().0.how else { panic!("it started") };
    assert!(why.as_str().contains("/no/such/program"), "{why}");
}

#[test]
fn a_job_does_not_inherit_that_the_kernel_spares_the_agent_when_memory_runs_out() {
    if need::spared("-500").is_none() {
        return;
    }
    let under_unit = ["/bin/sh", "-c", "echo -500 > /proc/self/oom_score_adj && exec \"$0\" \"$@\"", AGENT];
    let script = "cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj";
    let mut launched = Launched::under(&under_unit, spec(script));
    assert_eq!(launched.end().0.how, ExitHow::Code(0));
    assert_eq!(launched.log(), "0\n-500\n", "the job may be killed first, its shim is spared");
}

#[test]
fn every_rank_has_its_place_in_its_environment() {
    let mut gang = spec("echo $RANK/$WORLD_SIZE $LOCAL_RANK $MASTER_ADDR $CUDA_VISIBLE_DEVICES $ROTA_CPUS");
    gang.gang.n_ranks = 3;
    gang.gang.first_rank = 2;
    gang.gang.world_size = 5;
    gang.grant.gpus = "4-6".parse().expect("GPUs");
    let mut launched = Launched::new(gang);
    assert_eq!(launched.end().0.how, ExitHow::Code(0));
    let mut lines: Vec<String> = launched.log().lines().map(str::to_owned).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["2/5 0 127.0.0.1 4,5,6 1", "3/5 1 127.0.0.1 4,5,6 1", "4/5 2 127.0.0.1 4,5,6 1"]);
}

#[test]
fn a_rank_that_dies_takes_the_others_with_it() {
    let mut gang = spec("if [ $RANK = 1 ]; then exit 9; fi; sleep 1000");
    gang.gang.n_ranks = 3;
    gang.gang.world_size = 3;
    let mut launched = Launched::new(gang);
    let (exit, _) = launched.end();
    assert_eq!((exit.how, exit.cause), (ExitHow::Code(9), ExitCause::Itself));
    assert_eq!(n_alive(&launched), 0);
}

#[test]
fn nothing_survives_a_stop_whatever_it_does() {
    // One ignores the polite signal, one leaves its session, one forks away from a dead parent.
    let script = "trap '' TERM; setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1001') & (sleep 1002 &) ; \
                  echo up; while true; do sleep 1; done";
    let mut launched = Launched::new(spec(script));
    eventually("all processes", || (n_alive(&launched) >= 6 && launched.log() == "up\n").then_some(()));
    launched.control().send(&ToShim::Stop { grace_ms: 100, keep_work: true });
    let (exit, _) = launched.end();
    assert_eq!((exit.how, exit.cause), (ExitHow::Signal(9), ExitCause::Ordered));
    assert_eq!(n_alive(&launched), 0);
}

#[test]
fn a_job_that_ends_politely_is_not_killed() {
    let mut launched =
        Launched::new(spec("trap 'echo bye; exit 5' TERM; echo up; while true; do sleep 0.05; done"));
    eventually("output", || (launched.log() == "up\n").then_some(()));
    launched.control().send(&ToShim::Stop { grace_ms: 60_000, keep_work: true });
    let (exit, _) = launched.end();
    assert_eq!((exit.how, exit.cause), (ExitHow::Code(5), ExitCause::Ordered));
    assert!(launched.log().ends_with("bye\n"), "{}", launched.log());
}

#[test]
fn children_left_behind_by_a_job_that_ended_are_ended_too() {
    let mut launched = Launched::new(spec("setsid sleep 1000 & exit 0"));
    assert_eq!(launched.end().0.how, ExitHow::Code(0));
    assert_eq!(n_alive(&launched), 0);
}

#[test]
fn a_launch_dies_with_its_lease_even_without_an_agent() {
    let mut leased = spec("sleep 1000");
    leased.lease_until_ms = Some(now_ms() + 300);
    leased.grace_ms = 100;
    let mut launched = Launched::new(leased);
    let (exit, _) = launched.end();
    assert_eq!(exit.cause, ExitCause::LeaseOver);
    assert_eq!(n_alive(&launched), 0);
}

#[test]
fn a_renewed_lease_lasts_longer() {
    let mut leased = spec("sleep 0.8; echo done");
    leased.lease_until_ms = Some(now_ms() + 400);
    let mut launched = Launched::new(leased);
    launched.control().send(&ToShim::Lease(None));
    assert_eq!(launched.end().0.cause, ExitCause::Itself);
    assert_eq!(launched.log(), "done\n");
}

#[test]
fn a_job_may_ask_to_be_kept_without_a_head() {
    let mut leased = spec("sleep 0.5; echo done");
    leased.lease_until_ms = Some(now_ms() + 50);
    leased.on_head_lost = OnHeadLost::Keep;
    let mut launched = Launched::new(leased);
    assert_eq!(launched.end().0.cause, ExitCause::Itself);
    assert_eq!(launched.log(), "done\n");
}

#[test]
fn a_gang_waits_until_it_is_told_to_go() {
    let mut gang = spec("echo $MASTER_ADDR:$MASTER_PORT");
    gang.waits_for_go = true;
    let mut launched = Launched::new(gang);
    let mut control = launched.control();
    let prepared = control.hear_until(|state| state.phase == ShimPhase::Prepared);
    assert!(prepared.port > 0);
    assert_eq!(launched.log(), "");
    let rendezvous = Rendezvous { address: "node3".to_owned(), port: 1234 };
    control.send(&ToShim::Go(rendezvous.clone()));
    control.send(&ToShim::Go(rendezvous));
    assert_eq!(launched.end().0.how, ExitHow::Code(0));
    assert_eq!(launched.log(), "node3:1234\n", "once, though told twice");
}

#[test]
fn what_is_prepared_can_be_dropped() {
    let mut gang = spec("echo never");
    gang.waits_for_go = true;
    let mut launched = Launched::new(gang);
    launched.until(&ShimPhase::Prepared);
    launched.control().send(&ToShim::Stop { grace_ms: 1_000, keep_work: false });
    let (exit, _) = launched.end();
    assert!(matches!(exit.how, ExitHow::NotStarted(_)), "{exit:?}");
    assert_eq!(launched.log(), "");
}

#[test]
fn two_shims_of_one_launch_are_one_too_many() {
    let mut launched = Launched::new(spec("sleep 1000"));
    launched.until(&ShimPhase::Running);
    let second = std::process::Command::new(common::AGENT).arg("shim").arg(launched.dir.path()).output();
    let second = second.expect("runs");
    assert!(!second.status.success());
    assert!(String::from_utf8_lossy(&second.stderr).contains("another shim holds this launch"));
    launched.control().send(&ToShim::Stop { grace_ms: 0, keep_work: false });
    launched.end();
}

#[test]
fn endless_output_stays_within_its_caps() {
    let mut loud = spec("yes | head -c 3000000; echo last");
    loud.log = LogCaps { file_bytes: 10_000, n_files: 2 };
    let mut launched = Launched::new(loud);
    assert_eq!(launched.end().0.how, ExitHow::Code(0));
    assert!(launched.log().ends_with("last\n"));
    let kept: u64 = std::fs::read_dir(launched.dir.path())
        .expect("listed")
        .filter_map(|entry| entry.ok().filter(|entry| entry.file_name().to_string_lossy().starts_with("log")))
        .map(|entry| entry.metadata().expect("metadata").len())
        .sum();
    assert!(kept < 21_000, "{kept} bytes");
}

#[test]
fn progress_and_checkpoints_of_a_job_that_speaks_are_told() {
    let mut launched = Launched::new(spec("sleep 1000"));
    let mut control = launched.control();
    control.hear_until(|state| state.phase == ShimPhase::Running);
    let mut job = JobClient::connect(&launched.dir.path().join("job.sock"), 0).expect("connected");
    let welcome = eventually("a welcome", || job.receive(Duration::from_millis(50)).into_iter().next());
    assert!(matches!(welcome, ToJob::Welcome { job: 7, iterations: 100.0, .. }), "{welcome:?}");
    job.progress(12.0);
    job.checkpointed(10.0);
    let told = control.hear_until(|state| state.iterations == 12.0 && state.checkpointed == 10.0);
    assert!(told.speaks);
    control.send(&ToShim::Checkpoint);
    eventually("a request", || {
        job.receive(Duration::from_millis(50)).contains(&ToJob::Checkpoint).then_some(())
    });
    job.progress(f64::NAN);
    job.progress(-5.0);
    job.progress(13.0);
    control.hear_until(|state| state.iterations == 13.0);
    control.send(&ToShim::Stop { grace_ms: 200, keep_work: true });
    eventually("an order to stop", || {
        job.receive(Duration::from_millis(50)).into_iter().find(|heard| matches!(heard, ToJob::Stop { .. }))
    });
    let (_, state) = launched.end();
    assert_eq!((state.iterations, state.checkpointed), (13.0, 10.0));
}

#[test]
fn progress_of_a_silent_job_is_guessed_by_its_profile() {
    let mut silent = spec("sleep 1000");
    silent.work = Work { iterations: 1e9, done: 50.0, rate: 1000.0, delay_s: 0.0, time_scale: 10.0 };
    let launched = Launched::new(silent);
    let mut control = launched.control();
    let first = control.hear_until(|state| state.iterations > 50.0).iterations;
    control.hear_until(|state| state.iterations > first);
}

#[test]
fn a_silent_job_that_ends_well_has_done_all_its_work() {
    let mut launched = Launched::new(spec("exit 0"));
    assert_eq!(launched.end().1.iterations, 100.0);
}

#[test]
fn when_a_shim_is_killed_its_ranks_end_too() {
    let mut launched = Launched::new(spec("exec sleep 1000"));
    launched.until(&ShimPhase::Running);
    eventually("a process", || (n_alive(&launched) > 0).then_some(()));
    launched.shim.kill().expect("killed");
    launched.shim.wait().expect("ended");
    eventually("no process", || (n_alive(&launched) == 0).then_some(()));
    let state = launched.state().expect("written");
    assert!(state.phase == ShimPhase::Running && !state.shim.is_alive(), "which is how an agent knows");
}

/// Limits of CPUs and memory, where this machine can set them.
fn limited(script: &str) -> Option<LaunchSpec> {
    let support = rota_agent::launch::cgroup::support();
    need::found(Thing::Cgroups, support.map_err(|why| Lack::Refused(format!("no cgroups: {why}"))))?;
    let mut limited = spec(script);
    limited.grant.limits = Limits::Enforced;
    limited.grant.pinned = "0".parse().expect("a CPU");
    limited.grant.mem_bytes = 64 << 20;
    Some(limited)
}

#[test]
fn a_job_is_bound_to_its_cpus() {
    let Some(limited) = limited("grep Cpus_allowed_list /proc/self/status") else { return };
    let mut launched = Launched::new(limited);
    assert_eq!(launched.end().0.how, ExitHow::Code(0), "{}", launched.log());
    assert_eq!(launched.log(), "Cpus_allowed_list:\t0\n");
}

#[test]
fn a_job_that_takes_more_memory_than_it_was_given_is_ended_and_that_is_said() {
    // A line of 300 MB without an end is kept whole by who looks for the last line.
    let Some(limited) = limited("head -c 300000000 /dev/zero | tail -n 1 > /dev/null") else { return };
    let mut launched = Launched::new(limited);
    assert_eq!(launched.end().0.cause, ExitCause::OverLimit, "{}", launched.log());
}

#[test]
fn a_job_that_succeeds_within_its_grace_is_done() {
    let mut launched = Launched::new(spec("trap '' TERM; echo up; sleep 1; exit 0"));
    eventually("it is up", || (launched.log() == "up\n").then_some(()));
    launched.control().send(&ToShim::Stop { grace_ms: 60_000, keep_work: true });
    let (exit, _) = launched.end();
    assert_eq!((exit.how, exit.cause), (ExitHow::Code(0), ExitCause::Done));
}

#[test]
fn a_job_that_promised_to_stop_is_done_when_it_says_so_or_has_done_all_its_iterations() {
    for (reports, says_done, cause) in
        [(40.0, false, ExitCause::Ordered), (100.0, false, ExitCause::Done), (40.0, true, ExitCause::Done)]
    {
        let mut launch = spec("trap '' TERM; while [ ! -e $ROTA_CHECKPOINT_DIR/end ]; do sleep 0.05; done");
        launch.work = Work { iterations: 100.0, done: 0.0, rate: 0.0, delay_s: 0.0, time_scale: 1.0 };
        let folder = tempfile::tempdir().expect("a folder");
        folder.path().clone_into(&mut launch.checkpoint_dir);
        let end = folder.path().join("end");
        let mut launched = Launched::new(launch);
        launched.until(&ShimPhase::Running);
        let mut control = launched.control();
        let socket = launched.run_dir.path().join("attempts/7.1/job.sock");
        let mut job = JobClient::connect(&socket, 0).expect("connected");
        job.progress(reports);
        if says_done {
            job.done();
        }
        control.hear_until(|state| state.iterations == reports && state.said_done == says_done);
        control.send(&ToShim::Stop { grace_ms: 60_000, keep_work: true });
        control.hear_until(|state| state.phase == ShimPhase::Stopping);
        std::fs::write(&end, "").expect("written");
        let (exit, _) = launched.end();
        assert_eq!((exit.how, exit.cause), (ExitHow::Code(0), cause), "{reports} iterations, {says_done}");
    }
}

#[test]
fn a_job_that_said_that_it_is_done_is_done_even_if_it_is_killed() {
    let mut launched = Launched::new(spec("trap '' TERM; echo ready; while true; do sleep 1; done"));
    launched.until(&ShimPhase::Running);
    eventually("it takes no notice of TERM", || launched.log().contains("ready").then_some(()));
    let mut control = launched.control();
    let socket = launched.run_dir.path().join("attempts/7.1/job.sock");
    JobClient::connect(&socket, 0).expect("connected").done();
    control.hear_until(|state| state.said_done);
    control.send(&ToShim::Stop { grace_ms: 100, keep_work: true });
    let (exit, _) = launched.end();
    assert_eq!((exit.how, exit.cause), (ExitHow::Signal(9), ExitCause::Done));
}
