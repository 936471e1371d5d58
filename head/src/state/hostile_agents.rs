//! Agents that send any well-formed message in any order, however absurd: the head does not panic, its state stays
//! consistent, and the records it wrote add up to that state.

use proptest::prelude::*;
use proptest::sample::select;
use rota_core::allocation::GpuSet;
use rota_core::ids::{Incarnation, JobId, NodeId};
use rota_core::policy::Policy as _;
use rota_core::resources::Host;
use rota_core::round;
use rota_core::time::{Span, Time};
use rota_transport::message::*;
use rota_transport::session::Terms;
use rota_transport::value::*;

use super::{Moment, Past, State, StateSettings};
use crate::cluster_state::{ClusterState, Standing};
use crate::decider;
use crate::record::Record;
use crate::rules::{ProfileText, Rules};
use crate::store::Write;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// An agent says something.
    Says(usize, ToHead),
    /// A job arrives that wants so many GPUs.
    Arrives(u32),
    /// The policy is asked, something happens while it decides, and its plan is accepted or not.
    Round(Option<Box<Step>>),
    /// Time passes.
    Passes(i64),
    /// A person or the head itself does something, by its number in [`World::happens`], to a job and a node.
    Happens(u32, JobId, NodeId),
}

const AGENTS: [&str; 2] = ["node0", "node1"];
/// How many things [`World::happens`] knows.
const N_HAPPENINGS: u32 = 16;

fn numbers() -> impl Strategy<Value = u64> {
    select(vec![0, 1, 2, 3, 63, 64, 1 << 32, u64::MAX - 1, u64::MAX])
}

fn small() -> impl Strategy<Value = u32> {
    select(vec![0, 1, 2, 7, 64, u32::MAX])
}

fn attempt() -> impl Strategy<Value = Attempt> {
    (small(), small()).prop_map(|(job, launch)| Attempt { job: JobId(job), incarnation: Incarnation(launch) })
}

fn iterations() -> impl Strategy<Value = Iterations> {
    select(vec![0.0, 0.5, 1e3, 1e12]).prop_map(|count| Iterations::new(count).expect("in range"))
}

fn host() -> impl Strategy<Value = HostAmount> {
    (select(vec![0, 1, 24_000_000, 100_000_000_000]), select(vec![0, 1, 1 << 40, 1 << 50])).prop_map(
        |(cpu_micro, mem_bytes)| {
            HostAmount::new(Host { cpu_micro, mem_bytes, storage_bps: mem_bytes }).expect("in range")
        },
    )
}

fn exit() -> impl Strategy<Value = Exit> {
    let how = select(vec![ExitHow::Code(0), ExitHow::Code(i32::MIN), ExitHow::Signal(i32::MAX)]);
    let cause = select(vec![ExitCause::Itself, ExitCause::Ordered, ExitCause::LeaseOver, ExitCause::Done]);
    (how, cause).prop_map(|(how, cause)| Exit { how, cause })
}

fn info() -> impl Strategy<Value = AttemptInfo> {
    let state = prop_oneof![
        select(vec![AttemptState::Prepared, AttemptState::Running, AttemptState::Stopping]),
        exit().prop_map(AttemptState::Exited),
    ];
    let gpus = select(vec![1, 3, 1 << 63, u64::MAX]).prop_map(|set| Gpus::new(GpuSet(set)).expect("some"));
    (attempt(), numbers(), gpus, host(), state, iterations()).prop_map(
        |(attempt, epoch, gpus, host, state, iterations)| AttemptInfo {
            attempt,
            epoch: Epoch(epoch),
            gpus,
            share: GpuShare::WHOLE,
            host,
            state,
            iterations,
            checkpointed: iterations,
            launch: epoch,
            n_nodes: 1,
        },
    )
}

fn inventory() -> impl Strategy<Value = Inventory> {
    let gpu = |(index, mem_bytes, is_healthy)| GpuInfo {
        index,
        uuid: Text::cut(""),
        model: Text::cut("V100"),
        mem_bytes,
        numa: index,
        is_healthy,
    };
    let gpus = proptest::collection::vec((small(), numbers(), any::<bool>()).prop_map(gpu), 0..5);
    let gpus = (gpus, select(vec![0, 60, 300])).prop_map(|(mut gpus, n_more)| {
        gpus.extend(std::iter::repeat_n(gpus.first().cloned(), n_more).flatten());
        gpus
    });
    (gpus, proptest::option::of(host()), proptest::collection::vec(info(), 0..4), small()).prop_map(
        |(gpus, host, attempts, rack)| Inventory { gpus, host, attempts, rack, ..Inventory::default() },
    )
}

fn fact() -> impl Strategy<Value = Fact> {
    prop_oneof![
        attempt().prop_map(Fact::Started),
        (attempt(), iterations()).prop_map(|(attempt, iterations)| Fact::Progressed { attempt, iterations }),
        (attempt(), iterations())
            .prop_map(|(attempt, iterations)| Fact::Checkpointed { attempt, iterations }),
        (attempt(), exit(), iterations()).prop_map(|(attempt, exit, iterations)| Fact::Exited(Exited {
            attempt,
            exit,
            iterations,
            checkpointed: iterations,
            tail: LongText::cut(""),
        })),
        small().prop_map(|index| Fact::GpuUnhealthy { index, reason: Text::cut("bad") }),
        small().prop_map(|index| Fact::GpuHealthy { index }),
        Just(Fact::Warning(Text::cut("beware"))),
    ]
}

fn message() -> impl Strategy<Value = ToHead> {
    let outcome =
        select(vec![Outcome::Done, Outcome::Prepared { port: 0 }, Outcome::Failed(Text::cut("no"))]);
    prop_oneof![
        2 => inventory().prop_map(ToHead::Inventory),
        // Mostly in sequence: others are kept for later or ignored.
        6 => (1_u64..12, fact()).prop_map(|(n, fact)| ToHead::Report(Report { sequence: Sequence(n), fact })),
        1 => (numbers(), fact()).prop_map(|(n, fact)| ToHead::Report(Report { sequence: Sequence(n), fact })),
        3 => (1_u64..8, outcome.clone())
            .prop_map(|(n, outcome)| ToHead::OrderDone(OrderDone { order: OrderId(n), epoch: Epoch(1), outcome })),
        1 => (numbers(), numbers(), outcome)
            .prop_map(|(n, e, outcome)| ToHead::OrderDone(OrderDone { order: OrderId(n), epoch: Epoch(e), outcome })),
        1 => (numbers(), numbers()).prop_map(|(beat, next)| ToHead::Heartbeat(Heartbeat {
            beat: Beat(beat),
            next_order: OrderId(next),
            n_unacknowledged: u32::MAX,
        })),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let event = || {
        prop_oneof![
            8 => (0..AGENTS.len(), message()).prop_map(|(agent, message)| Step::Says(agent, message)),
            2 => select(vec![1, 2, 9]).prop_map(Step::Arrives),
            1 => select(vec![1, 5_000_000, 40_000_000]).prop_map(Step::Passes),
            3 => (0..N_HAPPENINGS, 0_u32..4, 0_u32..2)
                .prop_map(|(what, job, node)| Step::Happens(what, JobId(job), NodeId(node))),
        ]
    };
    let round = proptest::option::of(event()).prop_map(|meanwhile| Step::Round(meanwhile.map(Box::new)));
    prop_oneof![4 => event(), 1 => round]
}

/// A head's state with two agents that have greeted, each with four good GPUs.
struct World {
    state: State,
    policy: rota_scripts::ScriptPolicy,
    moment: Moment,
    rules: Rules,
    /// All records that were to be written.
    journal: Vec<(Time, Record)>,
}

impl World {
    fn new() -> Self {
        let rules = Rules::plain(ProfileText::load("synergy").expect("built in"));
        let cluster = ClusterState::new(&rules).expect("good rules");
        let moment = Moment { now: Time(1), real: Time(1) };
        let (terms, time_scale) = (Terms::default(), TimeScale::REAL);
        let settings = StateSettings { epoch: Epoch(1), terms, time_scale, copies_checkpoints: true };
        let state = State::new(settings, cluster, Vec::new(), moment, Past::of_test());
        let policy = decider::load_script("las+tune", &[], &decider::Scripts::default()).expect("shipped");
        let mut world = World { state, policy, moment, rules, journal: Vec::new() };
        for agent in 0..AGENTS.len() {
            world.greet(agent);
            let gpu = |index| GpuInfo {
                index,
                uuid: Text::cut(""),
                model: Text::cut("V100"),
                mem_bytes: 1,
                numa: 0,
                is_healthy: true,
            };
            let host = HostAmount::new(Host::from_units(24.0, 500.0, 500.0)).expect("a host");
            let gpus = (0..4).map(gpu).collect();
            world
                .says(agent, ToHead::Inventory(Inventory { gpus, host: Some(host), ..Inventory::default() }));
        }
        world
    }

    fn greet(&mut self, agent: usize) {
        let name = Name::new(AGENTS[agent]).expect("a name");
        let hello = Hello {
            protocol: PROTOCOL_VERSION,
            name,
            version: Text::cut("1"),
            boot: BootId(1),
            epoch: Epoch(0),
            address: Text::cut("here"),
            instance: InstanceId(1),
            knows: Knowledge::default(),
            acknowledged: Sequence(0),
        };
        self.state.admit(self.moment, &hello.name.clone(), &hello).expect("it may speak");
        self.says(agent, ToHead::Hello(hello));
    }

    fn says(&mut self, agent: usize, message: ToHead) {
        let name = Name::new(AGENTS[agent]).expect("a name");
        if self.state.receive(self.moment, &name, message).is_err() {
            // It is disconnected, and connects again.
            self.state.disconnected(&name);
            self.greet(agent);
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Says(agent, message) => self.says(agent, message),
            Step::Arrives(gpus) => self.submit(gpus),
            Step::Round(meanwhile) => self.round(meanwhile.map(|step| *step)),
            Step::Passes(span) => {
                let span = Span(span);
                self.moment = Moment { now: self.moment.now + span, real: self.moment.real + span };
                self.state.tick(self.moment);
                self.state.end_over_time(self.moment);
            }
            Step::Happens(what, job, node) => self.happens(what, job, node),
        }
        self.state.launch_what_can(self.moment);
        let writes = self.state.outbox.take_writes();
        self.state.written(&writes);
        self.state.outbox.take_sends();
        self.journal.extend(writes.into_iter().filter_map(|write| match write {
            Write::Record(time, record) => Some((time, record)),
            Write::Seen(..) | Write::Ended(_) | Write::Instance(..) | Write::Replaced(..) => None,
            Write::Image(_) | Write::DropImage(_) | Write::Prune(_) => None,
        }));
        self.state.cluster.scheduler().assert_sane();
    }

    fn submit(&mut self, gpus: u32) {
        let job = self.state.cluster.next_job();
        let request = Box::new(JobRequest {
            name: Text::cut("j"),
            tenant: Text::cut(""),
            priority: 0,
            model: Text::cut(""),
            batch: 0,
            gpus,
            levels: Vec::new(),
            gpu_type: Text::cut(""),
            work: Iterations::new(1000.0).expect("a count"),
            deadline: None,
            start: JobStart {
                launcher: Launcher::Emulated,
                argv: Vec::new(),
                env: Vec::new(),
                working_directory: Text::cut(""),
                checkpoint_directory: Text::cut(""),
                processes: Processes::PerNode,
                on_head_lost: OnHeadLost::Stop,
                log: LogLimits { file_bytes: 1, n_files: 1 },
                grace: Wait::NONE,
                restart: Wait::NONE,
                checkpoint_every: Wait::NONE,
                most_failures: 3,
            },
            conditions: JobConditions::default(),
        });
        let received = Record::JobReceived { job, user: "ada".into(), key: job.0.into(), request };
        self.state.record(self.moment, received);
        self.state.record(self.moment, Record::JobSubmitted { job });
    }

    /// Records that do not follow from what agents say, where a live head would write them.
    fn happens(&mut self, what: u32, job: JobId, node: NodeId) {
        let (user, reason) = ("ada".to_owned(), "because".to_owned());
        let cluster = &self.state.cluster;
        let standing = cluster.job(job).map(|job| job.standing);
        let is_active = standing == Some(Standing::Active);
        let is_open = standing.is_some_and(|standing| !standing.is_over());
        let record = match what {
            0 if is_open => Record::JobHeld { job, user, by_operator: true },
            1 if is_open => Record::JobReleased { job, user },
            2 if is_active => Record::JobSentBack { job, user },
            3 if is_open => Record::JobPrioritized { job, priority: 7, user },
            4 if is_open => Record::JobCancelled { job, user },
            5 => Record::NodeClosed { node, user, reason },
            6 => Record::NodeOpened { node, user },
            7 => Record::NodeDrained { node, is_drained: true, user, reason },
            8 => Record::NodeDrained { node, is_drained: false, user, reason },
            9 => {
                let text = |name: &str| vec![(name.to_owned(), "a text".to_owned())];
                let (policy, set, digest) = ("mine.rhai".into(), Vec::new(), "0".into());
                Record::PolicySet { policy, set, user, digest, texts: text("a"), files: text("b") }
            }
            10 => Record::PolicyRefused { reason },
            11 => {
                let first_job = JobId(cluster.next_job().0 + 2);
                Record::NumbersSkipped { first_job, first_launch: Incarnation(5) }
            }
            12 => {
                let quotas = vec![("tenant".to_owned(), 3), ("ada".to_owned(), 5)];
                let rules = Rules { quotas, round: Span::from_secs(7), ..self.rules.clone() };
                Record::HeadStarted { epoch: Epoch(1), version: "1".into(), rules: Some(Box::new(rules)) }
            }
            13 if is_open && self.state.launches.newest(job).is_none() => {
                Record::JobRecalled { job, incarnation: Incarnation(1), end: JobEnd::Finished }
            }
            14 if is_active => {
                let incarnation = cluster.incarnation(job).unwrap_or(Incarnation(1));
                Record::TimeJumped { jobs: vec![(job, incarnation, 10.0)], user }
            }
            15 => {
                let after = vec![Dependency { job, needs: Needs::Finished }];
                let time_limit = Some(Wait::cut(Span::from_secs(5)));
                let after = if is_open { after } else { Vec::new() };
                let conditions = JobConditions { after, time_limit, is_held: !is_open };
                let job = cluster.next_job();
                let request = Box::new(JobRequest { conditions, ..JobRequest::emulated(1) });
                Record::JobReceived { job, user, key: job.0.into(), request }
            }
            _ => return,
        };
        self.state.record(self.moment, record);
        let (ready, broken) = self.state.cluster.settled();
        for job in ready {
            self.state.record(self.moment, Record::JobSubmitted { job });
        }
        for (job, reason) in broken {
            self.state.record(self.moment, Record::JobDeclined { job, reason });
        }
    }

    /// A round as the engine holds it; `meanwhile` happens while the policy decides.
    fn round(&mut self, meanwhile: Option<Step>) {
        self.state.note_progress(self.moment);
        let round = self.state.cluster.n_rounds() + 1;
        self.state.record(self.moment, Record::RoundBegan { round, protects: Some(Span::ZERO) });
        let decision =
            round::decide(&self.state.snapshot(self.moment), &mut self.policy).expect("it decides");
        if let Some(step) = meanwhile {
            self.take(step);
        }
        let accepted = round::accept(&self.state.snapshot(self.moment), decision);
        match accepted {
            Ok(decision) => self.state.plan(self.moment, round, decision, self.policy.memory()),
            Err(violation) => {
                let reason = violation.to_string();
                self.state.record(self.moment, Record::PlanOvertaken { round, reason });
            }
        }
    }

    /// The state folded from the journal as it would be read from the disk.
    fn folded(&self) -> ClusterState {
        let mut cluster = ClusterState::new(&self.rules).expect("good rules");
        for (time, record) in &self.journal {
            let text = serde_json::to_string(record).expect("JSON");
            let record: Record = serde_json::from_str(&text).expect("a record");
            let refused = cluster.apply(*time, &record).refused;
            assert!(refused.is_none(), "{record:?}: {refused:?}");
        }
        cluster
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn whatever_agents_say_the_state_is_sound_and_its_records_add_up_to_it(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new();
        for step in steps {
            world.take(step);
        }
        let mut folded = world.folded();
        // Progress is extrapolated when a snapshot is taken: both take one now.
        folded.snapshot(world.moment.now);
        world.state.snapshot(world.moment);
        prop_assert_eq!(format!("{folded:#?}"), format!("{:#?}", world.state.cluster));
    }

    #[test]
    fn an_image_at_any_line_and_the_lines_after_it_add_up_to_the_same_state(
        steps in proptest::collection::vec(step(), 1..60),
        part in 0.0..1.0_f64,
    ) {
        let mut world = World::new();
        for step in steps {
            world.take(step);
        }
        let at = (part * world.journal.len() as f64) as usize;
        let mut first = ClusterState::new(&world.rules).expect("good rules");
        for (time, record) in &world.journal[..at] {
            first.apply(*time, record);
        }
        let body = crate::store::images::pack(&first.image()).expect("packed");
        let image = crate::store::images::unpack(&body).expect("unpacked");
        prop_assert_eq!(&image, &first.image());
        let mut second = ClusterState::restore(image).expect("restored");
        prop_assert_eq!(format!("{second:#?}"), format!("{first:#?}"), "at the image");
        // A third one goes on without the jobs that have ended, as a head does.
        let mut third = first.clone();
        third.retire(|_| false);
        for (time, record) in &world.journal[at..] {
            let whole = second.apply(*time, record);
            prop_assert!(whole.refused.is_none());
            prop_assert_eq!(&third.apply(*time, record).orders, &whole.orders);
        }
        let mut folded = world.folded();
        folded.snapshot(world.moment.now);
        second.snapshot(world.moment.now);
        third.snapshot(world.moment.now);
        prop_assert_eq!(format!("{second:#?}"), format!("{folded:#?}"), "after the image");
        prop_assert_eq!(third.image().without_ended(), folded.image().without_ended());
    }
}

#[test]
fn a_plan_that_was_overtaken_wakes_the_head_and_is_in_the_journal() {
    let mut world = World::new();
    world.take(Step::Arrives(2));
    // Both agents' leases run out while the policy decides: the nodes that it chose are gone.
    world.take(Step::Round(Some(Box::new(Step::Passes(3_600_000_000)))));
    assert!(world.journal.iter().any(|(_, record)| record.kind() == "plan-overtaken"), "{:?}", world.journal);
    assert!(world.state.cluster.is_woken() && world.state.cluster.changed().is_some());
    assert_eq!(format!("{:?}", world.folded().changed()), format!("{:?}", world.state.cluster.changed()));
}

#[test]
fn a_success_that_is_reported_late_ends_the_job_and_stops_its_next_launch() {
    let mut world = World::new();
    world.take(Step::Arrives(1));
    world.take(Step::Round(None));
    let (first, node) = {
        let (attempt, live) = world.state.launches.newest(JobId(0)).expect("it was launched");
        (*attempt, live.alive_on()[0].index())
    };
    let other = 1 - node;
    let beat = Heartbeat { beat: Beat(1), next_order: OrderId(1), n_unacknowledged: 0 };
    // Its node is silent for longer than its lease: the job is launched on the other one.
    for _ in 0..8 {
        world.take(Step::Passes(5_000_000));
        world.take(Step::Says(other, ToHead::Heartbeat(beat)));
    }
    world.take(Step::Round(None));
    let second = *world.state.launches.newest(JobId(0)).expect("launched again").0;
    assert!(second.incarnation > first.incarnation, "{:?}", world.journal);
    world.state.outbox.take_sends();
    // It comes back, and the first launch has succeeded.
    let info = AttemptInfo {
        attempt: first,
        epoch: Epoch(1),
        gpus: Gpus::new(GpuSet(1)).expect("some"),
        share: GpuShare::WHOLE,
        host: HostAmount::new(Host::NONE).expect("in range"),
        state: AttemptState::Exited(Exit { how: ExitHow::Code(0), cause: ExitCause::Done }),
        iterations: Iterations::new(1000.0).expect("in range"),
        checkpointed: Iterations::NONE,
        launch: 0,
        n_nodes: 1,
    };
    let gpu = |index| GpuInfo {
        index,
        uuid: Text::cut(""),
        model: Text::cut("V100"),
        mem_bytes: 1,
        numa: 0,
        is_healthy: true,
    };
    world.state.disconnected(&Name::new(AGENTS[node]).expect("a name"));
    world.greet(node);
    let gpus = (0..4).map(gpu).collect();
    let inventory = Inventory { gpus, attempts: vec![info], ..Inventory::default() };
    world.says(node, ToHead::Inventory(inventory));
    let sends = world.state.outbox.take_sends();
    let is_stop = |message: &ToAgent| match message {
        ToAgent::Order(order) => matches!(&order.task, Task::Stop { attempt, .. } if *attempt == second),
        _ => false,
    };
    assert!(sends.iter().any(|(name, message)| name.as_str() == AGENTS[other] && is_stop(message)));
    world.take(Step::Passes(1));
    let finished = world.journal.iter().filter(|(_, record)| record.kind() == "job-finished").count();
    assert_eq!(finished, 1, "{:?}", world.journal);
}
