//! One message of every variant, with numbers that show their place in the bytes.

use rota_core::allocation::GpuSet;
use rota_core::ids::{Incarnation, JobId};
use rota_core::resources::Host;
use rota_core::time::{Span, Time};
use rota_transport::frame;
use rota_transport::message::*;
use rota_transport::value::*;

/// Every sample with its name and its frame.
pub(crate) fn all() -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut add = |kind: &str, debug: String, frame: Vec<u8>| {
        let variant: String = debug.chars().take_while(|c| c.is_alphanumeric()).collect();
        found.push((format!("{kind}::{variant}"), frame));
    };
    for message in to_head() {
        let kind = match &message {
            ToHead::Report(report) => Some(format!("{:?}", report.fact)),
            _ => None,
        };
        add("ToHead", format!("{message:?}"), encode(&message));
        if let Some(fact) = kind {
            add("Fact", fact, encode(&message));
        }
    }
    for message in to_agent() {
        if let ToAgent::Order(order) = &message {
            add("Task", format!("{:?}", order.task), encode(&message));
        }
        add("ToAgent", format!("{message:?}"), encode(&message));
    }
    for message in from_user() {
        add("FromUser", format!("{message:?}"), encode(&message));
    }
    for message in to_user() {
        add("ToUser", format!("{message:?}"), encode(&message));
    }
    for message in from_joiner() {
        add("FromJoiner", format!("{message:?}"), encode(&message));
    }
    for message in to_joiner() {
        add("ToJoiner", format!("{message:?}"), encode(&message));
    }
    found
}

/// Encoding and decoding changes nothing.
pub(crate) fn assert_round_trips() {
    fn check<M: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(all: Vec<M>) {
        for message in all {
            let frame = encode(&message);
            let back: M = frame::decode(&frame[4..]).expect("decodes");
            assert_eq!(back, message);
        }
    }
    check(to_head());
    check(to_agent());
    check(from_user());
    check(to_user());
    check(from_joiner());
    check(to_joiner());
}

fn from_joiner() -> Vec<FromJoiner> {
    // Two bytes of a key, three of a signature.
    let request = || frame::decode(&[2, 4, 5, 3, 6, 7, 8]).expect("a request");
    vec![FromJoiner::Join { secret: [9; 16], request: request() }, FromJoiner::Renew { request: request() }]
}

fn to_joiner() -> Vec<ToJoiner> {
    let (certificate, authority) = (long("certificate"), long("authority"));
    vec![ToJoiner::Issued { certificate, authority }, ToJoiner::Refused(text("it was used before"))]
}

fn encode<M: serde::Serialize>(message: &M) -> Vec<u8> {
    frame::encode(message).expect("encodes")
}

fn text(text: &str) -> Text {
    Text::new(text).expect("short")
}

fn long(text: &str) -> LongText {
    LongText::new(text).expect("short")
}

fn name(name: &str) -> Name {
    Name::new(name).expect("a name")
}

fn count(count: f64) -> Iterations {
    Iterations::new(count).expect("a count")
}

fn wait(seconds: i64) -> Wait {
    Wait::new(Span::from_secs(seconds)).expect("not long")
}

fn host() -> HostAmount {
    HostAmount::new(Host::from_units(12.0, 250.0, 500.0)).expect("a server")
}

fn attempt() -> Attempt {
    Attempt { job: JobId(17), incarnation: Incarnation(3) }
}

fn mark() -> StateMark {
    StateMark { lineage: Lineage(0x11e1), start: StartId(0x57a7), journal: 499 }
}

fn exit() -> Exit {
    Exit { how: ExitHow::Signal(9), cause: ExitCause::LeaseOver }
}

pub(crate) fn to_head() -> Vec<ToHead> {
    let facts = [
        Fact::Started(attempt()),
        Fact::Progressed { attempt: attempt(), iterations: count(1.5) },
        Fact::Checkpointed { attempt: attempt(), iterations: count(2.0) },
        Fact::Exited(Exited {
            attempt: attempt(),
            exit: exit(),
            iterations: count(3.0),
            checkpointed: count(2.0),
            tail: long("bye"),
        }),
        Fact::GpuUnhealthy { index: 5, reason: text("xid 79") },
        Fact::GpuHealthy { index: 5 },
        Fact::Warning(text("disk is 95 % full")),
    ];
    let mut all = vec![
        ToHead::Hello(Hello {
            protocol: PROTOCOL_VERSION,
            name: name("node0"),
            version: text("0.1.0"),
            boot: BootId(0xb007),
            epoch: Epoch(4),
            address: text("10.0.0.7"),
            instance: InstanceId(0x1257),
            knows: Knowledge { mark: mark(), n_jobs: 18, last_launch: 3 },
            acknowledged: Sequence(9),
        }),
        ToHead::Inventory(Inventory {
            gpus: vec![GpuInfo {
                index: 0,
                uuid: text("GPU-1"),
                model: text("A100"),
                mem_bytes: 80_000_000_000,
                numa: 1,
                is_healthy: true,
            }],
            host: Some(host()),
            numa: vec![NumaInfo { index: 1, cpus: vec![4, 5], mem_bytes: 7 }],
            attempts: vec![AttemptInfo {
                attempt: attempt(),
                epoch: Epoch(4),
                gpus: Gpus::new(GpuSet(0b1010)).expect("two"),
                share: GpuShare::WHOLE,
                host: host(),
                state: AttemptState::Exited(exit()),
                iterations: count(9.0),
                checkpointed: count(8.0),
                launch: 77,
                n_nodes: 1,
            }],
            rack: 2,
            is_emulated: true,
        }),
        ToHead::Heartbeat(Heartbeat { beat: Beat(12), next_order: OrderId(9), n_unacknowledged: 1 }),
        ToHead::OrderDone(OrderDone {
            order: OrderId(9),
            epoch: Epoch(4),
            outcome: Outcome::Prepared { port: 23_456 },
        }),
        ToHead::OrderDone(OrderDone {
            order: OrderId(11),
            epoch: Epoch(4),
            outcome: Outcome::Piece { bytes: Piece::new(b"model".to_vec()).expect("short"), is_end: false },
        }),
        ToHead::LogChunk(LogChunk {
            order: OrderId(10),
            epoch: Epoch(4),
            offset: 100,
            bytes: LogBytes::new(vec![1, 2, 3]).expect("three"),
            is_end: true,
        }),
        ToHead::Recalled(vec![RecalledJob { job: JobId(17), launch: 3, end: JobEnd::Cancelled }]),
        ToHead::Origin(Box::new(Origin {
            attempt: attempt(),
            user: name("ada"),
            request: job_request(),
            n_nodes: 2,
        })),
    ];
    let report = |(index, fact)| ToHead::Report(Report { sequence: Sequence(index as u64 + 1), fact });
    all.extend(facts.into_iter().enumerate().map(report));
    all
}

fn launch() -> Launch {
    Launch {
        attempt: attempt(),
        id: 77,
        name: text("train"),
        user: name("ada"),
        launcher: Launcher::Container(Container {
            image: text("pytorch:2"),
            pull: Pull::Always,
            mounts: vec![Mount { source: text("/data"), target: text("/in"), is_read_only: true }],
            network: text("host"),
            gpu_flag: text("--gpus=all"),
        }),
        argv: vec![text("python"), text("train.py")],
        env: vec![(text("A"), text("1"))],
        working_directory: text("/home/ada"),
        gpus: Gpus::new(GpuSet(0b11)).expect("two"),
        share: GpuShare::new(500_u16).expect("half"),
        host: host(),
        gang: Gang::new(GangNumbers { node_rank: 1, n_nodes: 2, first_rank: 2, n_ranks: 2, world_size: 4 })
            .expect("whole"),
        start: Start::WhenTold,
        work: Work {
            to_do: count(1000.0),
            done: count(10.0),
            rate: Rate::new(2.5).expect("a rate"),
            delay: wait(3),
            checkpoint_every: wait(60),
        },
        checkpoint_directory: text("/ckpt"),
        on_head_lost: OnHeadLost::Keep,
        log: LogLimits { file_bytes: 1 << 20, n_files: 3 },
        grace: wait(30),
        time_scale: TimeScale::new(60.0).expect("fast"),
        request: Some(Box::new(job_request())),
    }
}

pub(crate) fn to_agent() -> Vec<ToAgent> {
    let rendezvous = Rendezvous { address: text("10.0.0.7"), port: 23_456 };
    let tasks = [
        Task::Launch(Box::new(launch())),
        Task::Go { attempt: attempt(), rendezvous },
        Task::Stop { attempt: attempt(), grace: wait(30), keep_work: KeepWork::No },
        Task::Checkpoint { attempt: attempt() },
        Task::Resize { attempt: attempt(), host: host(), rate: Rate::new(3.0).expect("a rate") },
        Task::Forget { attempt: attempt(), end: JobEnd::Finished },
        Task::ReadLog { attempt: attempt(), offset: 5, n_bytes: 4096 },
        Task::Rescale { attempt: attempt(), n_gpus: 16, world_size: 2 },
        Task::ReadCheckpoint { attempt: attempt(), offset: 524_288 },
        Task::WriteCheckpoint {
            attempt: attempt(),
            offset: 0,
            bytes: Piece::new(b"model".to_vec()).expect("short"),
            is_end: true,
        },
    ];
    let mut all = vec![
        ToAgent::Welcome(Welcome {
            epoch: Epoch(4),
            lease: wait(20),
            heartbeat: wait(2),
            reports_seen: Sequence(6),
            mark: mark(),
            replaces: Lineage(0x11e0),
            stop_after: None,
        }),
        ToAgent::Refused(text("protocol 2, this head speaks 1")),
        ToAgent::Acknowledge(Sequence(7)),
        ToAgent::Renew { beat: Beat(12), settled_before: OrderId(8), journal: 500 },
    ];
    let order = |(index, task)| {
        let id = OrderId(index as u64 + 1);
        ToAgent::Order(Order { id, epoch: Epoch(4), task, journal: 500 })
    };
    all.extend(tasks.into_iter().enumerate().map(order));
    all
}

fn job_request() -> JobRequest {
    JobRequest {
        name: text("train"),
        tenant: text("vision"),
        priority: -1,
        model: text("resnet50"),
        batch: 256,
        gpus: 4,
        levels: vec![1, 2, 4],
        gpu_type: text("A100"),
        work: count(1000.0),
        deadline: Some(wait(3600)),
        start: JobStart {
            launcher: Launcher::Process,
            argv: vec![text("true")],
            env: vec![(text("A"), text("1"))],
            working_directory: text("/w"),
            checkpoint_directory: text("/c"),
            processes: Processes::PerGpu,
            on_head_lost: OnHeadLost::Stop,
            log: LogLimits { file_bytes: 1000, n_files: 2 },
            grace: wait(5),
            restart: wait(6),
            checkpoint_every: wait(7),
            most_failures: 5,
        },
        conditions: JobConditions {
            time_limit: Some(wait(120)),
            after: vec![Dependency { job: JobId(9), needs: Needs::Finished }],
            is_held: true,
        },
    }
}

pub(crate) fn from_user() -> Vec<FromUser> {
    let set = vec![(text("key"), text("value"))];
    let selection = JobSelection {
        ranges: vec![(JobId(5), JobId(9))],
        arrays: vec![JobId(20)],
        name: text("train"),
        user: text("ada"),
    };
    vec![
        FromUser::Status { protocol: PROTOCOL_VERSION },
        FromUser::Submit { jobs: vec![job_request()], key: 99 },
        FromUser::Cancel { jobs: vec![JobId(1), JobId(2)] },
        FromUser::Jobs { which: WhichJobs::These(vec![JobId(3)]) },
        FromUser::Nodes,
        FromUser::Logs { job: JobId(17), offset: 5 },
        FromUser::Drain { node: name("node0"), is_drained: true },
        FromUser::Events { from: 12 },
        FromUser::SetPolicy { policy: text("las+tune"), set: set.clone() },
        FromUser::ReloadPolicy,
        FromUser::Explain { job: JobId(17) },
        FromUser::WhatIf { policy: text("elasticflow"), set: set.clone() },
        FromUser::Journal,
        FromUser::Shutdown,
        FromUser::Rules,
        FromUser::FastForward { until: Time(7_200_000_000), n_iterations: 5 },
        FromUser::StopAll,
        FromUser::SetPolicyText {
            policy: text("mine.rhai+tune"),
            set: set.clone(),
            texts: vec![(text("mine.rhai"), long("fn order(jobs, now) { rank(jobs.arrival) }"))],
        },
        FromUser::WhatIfText { policy: text("mine.rhai"), set, texts: vec![(text("mine.rhai"), long(""))] },
        FromUser::Change { jobs: selection.clone(), change: JobChange::Cancel },
        FromUser::Change { jobs: JobSelection::these([JobId(17)]), change: JobChange::Hold },
        FromUser::Change { jobs: JobSelection::these([JobId(17)]), change: JobChange::Release },
        FromUser::Change { jobs: JobSelection::these([JobId(17)]), change: JobChange::Requeue },
        FromUser::Change { jobs: selection, change: JobChange::Priority(-3) },
        FromUser::ServiceNode {
            node: name("node0"),
            service: NodeService::OutWhenIdle,
            reason: text("a new fan"),
        },
        FromUser::History {
            filter: HistoryFilter {
                user: text("ada"),
                tenant: text("vision"),
                model: text("resnet50"),
                name: text("train"),
                state: Some(JobStateView::TimeLimit),
                from_us: Some(1_000_000),
                until_us: Some(2_000_000),
                after: Some(JobId(17)),
            },
        },
        FromUser::GiveUp { node: name("node0") },
        FromUser::SignIn { by: SignInBy::Token },
        FromUser::Forecast { jobs: vec![JobId(17)] },
    ]
}

pub(crate) fn to_user() -> Vec<ToUser> {
    vec![
        ToUser::End,
        ToUser::Failed(long("job 17: no such job")),
        ToUser::Status(Status {
            version: text("0.1.0"),
            epoch: Epoch(4),
            now: Time(5_000_000),
            is_ready: true,
            policy: text("las+tune"),
            trouble: text(""),
            round: wait(60),
            time_scale: TimeScale::REAL,
            n_rounds: 8,
            n_nodes_up: 7,
            n_nodes: 8,
            n_gpus_busy: 50,
            n_gpus_up: 56,
            n_waiting: 3,
            n_running: 20,
        }),
        ToUser::Submitted(vec![JobId(17), JobId(18)]),
        ToUser::Jobs(vec![JobView {
            id: JobId(17),
            name: text("train"),
            user: name("ada"),
            model: text("resnet50"),
            state: JobStateView::Stopping,
            reason: text("preempted"),
            gpus_asked: 4,
            gpus_held: 4,
            nodes: vec![text("node0")],
            done: count(10.0),
            work: count(1000.0),
            arrival: Time(1_000_000),
            started: Some(Time(2_000_000)),
            ended: None,
            deadline: Some(Time(9_000_000)),
            incarnation: Incarnation(3),
            n_failures: 1,
            n_preemptions: 2,
            priority: -1,
            time_limit: Some(wait(120)),
            exit_code: Some(137),
        }]),
        ToUser::Nodes(vec![NodeView {
            name: name("node0"),
            state: NodeStateView::Silent,
            gpu_type: text("A100"),
            n_gpus: 8,
            n_busy: 4,
            cpus: 96.0,
            mem_bytes: 1 << 40,
            version: text("0.1.0"),
            since: Time(3_000_000),
            jobs: vec![JobId(17)],
            reason: text("no heartbeat"),
        }]),
        ToUser::Log { offset: 5, bytes: LogBytes::new(vec![104, 105]).expect("two"), is_end: true },
        ToUser::Events(vec![EventView {
            index: 12,
            time: Time(4_000_000),
            kind: text("lost"),
            text: text("node0 is lost"),
        }]),
        ToUser::Text(long("because")),
        ToUser::Changed(vec![JobId(17)]),
        ToUser::History(vec![EndedJobView {
            id: JobId(17),
            name: text("train"),
            user: name("ada"),
            tenant: text("vision"),
            model: text("resnet50"),
            state: JobStateView::Finished,
            reason: text(""),
            gpus: 4,
            submitted_us: 1_700_000_000_000_000,
            started_us: Some(1_700_000_001_000_000),
            ended_us: 1_700_000_002_000_000,
            gpu_s: 4.5,
            done: count(10.0),
            work: count(1000.0),
            launches: Incarnation(3),
            n_failures: 1,
            n_preemptions: 2,
            nodes: vec![text("node0")],
        }]),
        ToUser::SignIn(SignIn {
            is_tls: true,
            host: text("head.example.org"),
            port: 8443,
            secret: text("0123"),
            valid_s: 60,
        }),
        ToUser::Forecast(vec![ExpectedStart {
            job: JobId(17),
            median: Time(3_000_000),
            low: Time(2_000_000),
            high: Some(Time(4_000_000)),
        }]),
    ]
}
