//! A real agent under a real head's session over QUIC: orders, reports, restarts, leases, fences.

mod head;

use head::{Head, attempt, launch};
use rota_core::time::Span;
use rota_transport::message::*;
use rota_transport::session::HeadOutput;
use rota_transport::value::*;

const EMULATED: [&str; 8] =
    ["--emulate-gpus", "4", "--gpu-type", "A100", "--emulate-cpus", "8", "--memory", "64GB"];
const LEASE: Span = Span::from_secs(20);

fn sh(script: &str) -> [&str; 3] {
    ["/bin/sh", "-c", script]
}

fn stop(attempt: Attempt) -> Task {
    Task::Stop { attempt, grace: Wait::new(Span::from_secs(5)).expect("a time"), keep_work: KeepWork::Yes }
}

async fn log_of(head: &mut Head, attempt: Attempt) -> String {
    let order = head.order(Task::ReadLog { attempt, offset: 0, n_bytes: 60_000 }).await;
    head.until("a piece of a log", |output| match output {
        HeadOutput::Log(chunk) if chunk.order == order => {
            Some(String::from_utf8_lossy(chunk.bytes.as_bytes()).into_owned())
        }
        _ => None,
    })
    .await
}

#[tokio::test]
async fn a_launch_runs_reports_and_is_forgotten() {
    let mut head = Head::new(&EMULATED, LEASE).await;
    let one = attempt(3, 1);
    let script = "echo $GREETING $ROTA_JOB.$ROTA_INCARNATION $ROTA_GPU_TYPE $CUDA_VISIBLE_DEVICES; exit 4";
    let done = head.done(Task::Launch(Box::new(launch(one, &sh(script))))).await;
    assert_eq!(done, Outcome::Done);
    let exited = head.exited(one).await;
    assert_eq!(exited.exit, Exit { how: ExitHow::Code(4), cause: ExitCause::Itself });
    assert_eq!(exited.tail.as_str(), "hello 3.1 A100 0\n");
    assert_eq!(log_of(&mut head, one).await, "hello 3.1 A100 0\n");
    assert_eq!(head.done(Task::Forget { attempt: one, end: JobEnd::None }).await, Outcome::Done);
    assert_eq!(log_of(&mut head, one).await, "hello 3.1 A100 0\n", "output stays");
    let Outcome::Failed(why) = head.done(Task::Launch(Box::new(launch(one, &sh("true"))))).await else {
        panic!("an old launch was started again")
    };
    assert!(why.as_str().contains("was seen here"), "{why}");
}

#[tokio::test]
async fn the_inventory_says_what_the_node_has() {
    let mut head = Head::new(&EMULATED, LEASE).await;
    head.cut();
    let inventory = head.meet().await;
    let gpus: Vec<_> = inventory.gpus.iter().map(|gpu| (gpu.index, gpu.model.as_str())).collect();
    assert_eq!(gpus, [(0, "A100"), (1, "A100"), (2, "A100"), (3, "A100")]);
    let host = inventory.host.expect("said").host();
    assert_eq!((host.cpus(), host.mem_gb(), inventory.is_emulated), (8.0, 64.0, true));
}

#[tokio::test]
async fn a_gpu_that_is_not_there_is_refused() {
    let mut head = Head::new(&EMULATED, LEASE).await;
    let mut bad = launch(attempt(1, 1), &sh("true"));
    bad.gpus = Gpus::new(rota_core::allocation::GpuSet(1 << 5)).expect("a GPU");
    let Outcome::Failed(why) = head.done(Task::Launch(Box::new(bad))).await else {
        panic!("it was launched")
    };
    assert_eq!(why.as_str(), "GPU 5 is asked for, this node has 4, numbered from 0");
}

#[tokio::test]
async fn a_gang_is_prepared_and_goes_when_told() {
    let mut head = Head::new(&EMULATED, LEASE).await;
    let one = attempt(1, 1);
    let mut gang = launch(one, &sh("echo $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT"));
    gang.start = Start::WhenTold;
    let numbers = GangNumbers { node_rank: 1, n_nodes: 2, first_rank: 2, n_ranks: 1, world_size: 3 };
    gang.gang = Gang::new(numbers).expect("a gang");
    let Outcome::Prepared { port } = head.done(Task::Launch(Box::new(gang))).await else {
        panic!("not prepared")
    };
    assert!(port > 0);
    let rendezvous = Rendezvous { address: Text::new("node7").expect("a text"), port: 4321 };
    assert_eq!(head.done(Task::Go { attempt: one, rendezvous }).await, Outcome::Done);
    assert_eq!(head.exited(one).await.tail.as_str(), "2 of 3 at node7:4321\n");
}

#[tokio::test]
async fn a_stop_is_answered_when_everything_is_gone() {
    let mut head = Head::new(&EMULATED, LEASE).await;
    let one = attempt(1, 1);
    head.done(Task::Launch(Box::new(launch(one, &sh("sleep 1000"))))).await;
    head.fact("its start", |fact| (*fact == Fact::Started(one)).then_some(())).await;
    let order = head.order(stop(one)).await;
    let (mut has_exited, mut is_done) = (false, false);
    head.until("both", |output| {
        match output {
            HeadOutput::Fact { fact: Fact::Exited(exited), .. } => {
                has_exited = exited.exit.cause == ExitCause::Ordered;
            }
            HeadOutput::OrderDone { order: done, .. } => is_done = *done == order,
            _ => {}
        }
        (has_exited && is_done).then_some(())
    })
    .await;
    assert_eq!(head.done(stop(one)).await, Outcome::Done, "what is gone is no failure");
    assert_eq!(head.done(stop(attempt(99, 1))).await, Outcome::Done);
}

#[tokio::test]
async fn an_emulated_job_trains_checkpoints_stops_and_resumes() {
    let mut head = Head::new(&EMULATED, LEASE).await;
    let mut job = launch(attempt(5, 1), &[]);
    job.launcher = Launcher::Emulated;
    job.work.to_do = Iterations::new(1_000_000.0).expect("a count");
    job.work.rate = Rate::new(50.0).expect("a rate");
    job.time_scale = TimeScale::new(100.0).expect("a factor");
    head.done(Task::Launch(Box::new(job.clone()))).await;
    head.fact("progress", |fact| match fact {
        Fact::Progressed { iterations, .. } if iterations.count() > 1_000.0 => Some(()),
        _ => None,
    })
    .await;
    head.done(Task::Checkpoint { attempt: attempt(5, 1) }).await;
    head.fact("a checkpoint", |fact| matches!(fact, Fact::Checkpointed { .. }).then_some(())).await;
    head.order(stop(attempt(5, 1))).await;
    let exited = head.exited(attempt(5, 1)).await;
    assert_eq!(exited.exit, Exit { how: ExitHow::Code(0), cause: ExitCause::Ordered });
    assert_eq!(exited.iterations, exited.checkpointed, "nothing is lost by an orderly stop");
    let done = exited.checkpointed.count();
    job.attempt = attempt(5, 2);
    job.work.done = exited.checkpointed;
    job.work.to_do = Iterations::new(done + 100.0).expect("a count");
    head.done(Task::Launch(Box::new(job))).await;
    let exited = head.exited(attempt(5, 2)).await;
    assert_eq!((exited.exit.how, exited.iterations.count()), (ExitHow::Code(0), done + 100.0));
}

#[tokio::test]
async fn a_killed_agent_finds_its_launches_again_and_starts_none_twice() {
    let mut head = Head::new(&EMULATED, LEASE).await;
    let (long, short) = (attempt(1, 1), attempt(2, 1));
    let marks = head.folder.path().join("marks");
    let script = format!("echo x >> {}; sleep 1000", marks.display());
    head.done(Task::Launch(Box::new(launch(long, &sh(&script))))).await;
    head.done(Task::Launch(Box::new(launch(short, &sh("sleep 0.3; echo over; exit 6"))))).await;
    for one in [long, short] {
        head.fact("a start", |fact| (*fact == Fact::Started(one)).then_some(())).await;
    }
    head.kill_agent();
    head.start_agent();
    let inventory = head.meet().await;
    let states: Vec<_> = inventory.attempts.iter().map(|info| (info.attempt, info.launch)).collect();
    assert_eq!(states, [(long, 77), (short, 77)]);
    assert!(matches!(inventory.attempts[0].state, AttemptState::Running), "{:?}", inventory.attempts[0]);
    if !matches!(inventory.attempts[1].state, AttemptState::Exited(_)) {
        assert_eq!(head.exited(short).await.exit.how, ExitHow::Code(6));
    }
    assert_eq!(log_of(&mut head, short).await, "over\n");
    let refused = head.done(Task::Launch(Box::new(launch(long, &sh(&script))))).await;
    assert!(matches!(refused, Outcome::Failed(_)), "{refused:?}");
    head.order(stop(long)).await;
    assert_eq!(head.exited(long).await.exit.cause, ExitCause::Ordered);
    assert_eq!(std::fs::read_to_string(marks).expect("written"), "x\n", "started once");
}

#[tokio::test]
async fn when_a_shim_is_killed_its_launch_is_cleared_away_and_its_end_is_unknown() {
    let mut head = Head::new(&EMULATED, LEASE).await;
    let one = attempt(1, 1);
    head.done(Task::Launch(Box::new(launch(one, &sh("setsid sleep 1000 & sleep 1000"))))).await;
    head.fact("its start", |fact| (*fact == Fact::Started(one)).then_some(())).await;
    let dir = rota_agent::shim::record::AttemptDir::new(head.run_dir().join("attempts/1.1"));
    let shim = dir.state().expect("readable").expect("written").shim;
    let pid = rustix::process::Pid::from_raw(shim.pid).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    let exited = head.exited(one).await;
    assert!(matches!(exited.exit.how, ExitHow::Unknown(_)), "{exited:?}");
    let mark = format!("1.1@{}", head.run_dir().canonicalize().expect("there").display());
    assert_eq!(rota_agent::launch::survivors::marked(&mark), [], "nothing survives");
}

#[tokio::test]
async fn jobs_stop_when_the_lease_is_over_and_not_before() {
    let lease = Span::from_secs(3);
    let mut head = Head::new(&EMULATED, lease).await;
    let (stops, stays) = (attempt(1, 1), attempt(2, 1));
    let mut keep = launch(stays, &sh("sleep 1000"));
    keep.on_head_lost = OnHeadLost::Keep;
    head.done(Task::Launch(Box::new(launch(stops, &sh("sleep 1000"))))).await;
    head.done(Task::Launch(Box::new(keep))).await;
    for one in [stops, stays] {
        head.fact("a start", |fact| (*fact == Fact::Started(one)).then_some(())).await;
    }
    head.cut();
    let cut_at = head::now();
    let inventory = head.meet().await;
    let is_running =
        |inventory: &Inventory, at: usize| matches!(inventory.attempts[at].state, AttemptState::Running);
    // On a machine so busy that reconnecting takes a lease there is nothing to see.
    assert!(
        is_running(&inventory, 0) || head::now() - cut_at >= Span(lease.0 / 2),
        "a short cut is not noticed"
    );
    head.cut();
    let dir = rota_agent::shim::record::AttemptDir::new(head.run_dir().join("attempts/1.1"));
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let state = dir.state().expect("readable").expect("written");
        if let rota_agent::shim::record::ShimPhase::Ended(exit) = state.phase {
            assert_eq!(exit.cause, rota_agent::shim::record::ExitCause::LeaseOver);
            break;
        }
        assert!(std::time::Instant::now() < until, "it outlives its lease");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let inventory = head.meet().await;
    assert!(matches!(inventory.attempts[0].state, AttemptState::Exited(_)));
    assert!(is_running(&inventory, 1), "it asked to be kept");
}

#[tokio::test]
async fn a_head_of_a_lower_epoch_is_not_obeyed_even_after_a_restart() {
    let mut head = Head::new(&EMULATED, LEASE).await;
    head.become_epoch(5, LEASE);
    head.meet().await;
    head.kill_agent();
    head.become_epoch(4, LEASE);
    head.start_agent();
    head.let_in().await;
    assert_eq!(head.hello().await.epoch, Epoch(5), "the agent remembers");
    let terms = Welcome {
        epoch: Epoch(4),
        lease: Wait::new(LEASE).expect("a time"),
        heartbeat: Wait::new(Span::from_secs(1)).expect("a time"),
        reports_seen: Sequence(0),
        mark: StateMark::default(),
        replaces: Lineage::NONE,
        stop_after: None,
    };
    let ghost = launch(attempt(1, 1), &sh("echo obeyed"));
    let order = Order { id: OrderId(1), epoch: Epoch(4), task: Task::Launch(Box::new(ghost)), journal: 0 };
    head.send_all(&[ToAgent::Welcome(terms), ToAgent::Order(order)]).await;
    head.until_hung_up().await;
    assert!(!head.run_dir().join("attempts/1.1").exists(), "the ghost was obeyed");
}
