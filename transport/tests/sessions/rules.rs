//! Who is refused, and what is not obeyed.

use rota_core::allocation::GpuSet;
use rota_core::ids::{Incarnation, JobId};
use rota_core::resources::Host;
use rota_core::time::{Span, Time};
use rota_transport::message::*;
use rota_transport::session::*;
use rota_transport::value::*;

fn text(text: &str) -> Text {
    Text::new(text).expect("short")
}

fn name(name: &str) -> Name {
    Name::new(name).expect("a name")
}

fn launch(incarnation: u32) -> Task {
    Task::Launch(Box::new(Launch {
        attempt: Attempt { job: JobId(7), incarnation: Incarnation(incarnation) },
        id: 1,
        name: text("j"),
        user: name("ada"),
        launcher: Launcher::Emulated,
        argv: Vec::new(),
        env: Vec::new(),
        working_directory: text(""),
        gpus: Gpus::new(GpuSet(1)).expect("one"),
        share: GpuShare::WHOLE,
        host: HostAmount::new(Host::NONE).expect("nothing"),
        gang: Gang::ALONE,
        start: Start::AtOnce,
        work: Work {
            to_do: Iterations::NONE,
            done: Iterations::NONE,
            rate: Rate::new(1.0).expect("one"),
            delay: Wait::NONE,
            checkpoint_every: Wait::NONE,
        },
        checkpoint_directory: text(""),
        on_head_lost: OnHeadLost::Stop,
        log: LogLimits { file_bytes: 1, n_files: 1 },
        grace: Wait::NONE,
        time_scale: TimeScale::REAL,
        request: None,
    }))
}

fn agent(memory: AgentMemory) -> AgentSession {
    let (boot, instance) = (BootId(1), InstanceId(1));
    let identity =
        AgentIdentity { name: name("node0"), version: text("1"), address: text("here"), boot, instance };
    AgentSession::new(identity, memory)
}

fn head(epoch: u64) -> HeadSession {
    let mut head =
        HeadSession::new(name("node0"), Epoch(epoch), Terms::default(), SeenReports::default(), None);
    head.connected();
    head
}

fn welcome(epoch: u64) -> ToAgent {
    welcome_of(epoch, StateMark::default(), Lineage::NONE)
}

fn welcome_of(epoch: u64, mark: StateMark, replaces: Lineage) -> ToAgent {
    ToAgent::Welcome(Welcome {
        epoch: Epoch(epoch),
        lease: Wait::cut(Span::from_secs(20)),
        heartbeat: Wait::cut(Span::from_secs(2)),
        reports_seen: Sequence(0),
        mark,
        replaces,
        stop_after: None,
    })
}

fn order(id: u64, epoch: u64, task: Task) -> ToAgent {
    ToAgent::Order(Order { id: OrderId(id), epoch: Epoch(epoch), task, journal: 0 })
}

fn hello(protocol: u32, who: &str) -> ToHead {
    ToHead::Hello(Hello {
        protocol,
        name: name(who),
        version: text("1"),
        boot: BootId(1),
        epoch: Epoch(1),
        address: text("here"),
        instance: InstanceId(1),
        knows: Knowledge::default(),
        acknowledged: Sequence(0),
    })
}

fn opened(epoch: u64) -> AgentSession {
    let mut agent = agent(AgentMemory::default());
    let mut out = Vec::new();
    agent.connected(Time::ZERO, &mut out);
    agent.handle(Time::ZERO, welcome(epoch), &mut out).expect("welcome");
    agent
}

#[test]
fn another_protocol_is_refused_with_what_to_do() {
    let mut out = Vec::new();
    let error = head(1).handle(Time::ZERO, hello(99, "node0"), &mut out).expect_err("refused");
    assert_eq!(error, SessionError::VersionSkew { theirs: 99, ours: PROTOCOL_VERSION });
    let [HeadOutput::Send(ToAgent::Refused(why))] = &out[..] else { panic!("{out:?}") };
    assert_eq!(
        why.as_str(),
        "this agent speaks protocol 99, the head 2: update the head, or install the older agent"
    );
    let mut out = Vec::new();
    head(1).handle(Time::ZERO, hello(0, "node0"), &mut out).expect_err("refused");
    let [HeadOutput::Send(ToAgent::Refused(why))] = &out[..] else { panic!("{out:?}") };
    assert!(why.as_str().ends_with("update this agent"), "{why}");
}

#[test]
fn an_agent_cannot_take_the_name_of_another() {
    let error =
        head(1).handle(Time::ZERO, hello(PROTOCOL_VERSION, "node1"), &mut Vec::new()).expect_err("refused");
    assert_eq!(error.to_string(), "the agent calls itself node1, its certificate says node0");
}

#[test]
fn nothing_is_taken_before_a_greeting() {
    let beat = ToHead::Heartbeat(Heartbeat { beat: Beat(1), next_order: OrderId(1), n_unacknowledged: 0 });
    assert!(head(1).handle(Time::ZERO, beat, &mut Vec::new()).is_err());
}

#[test]
fn an_older_head_is_not_obeyed() {
    let mut young = agent(AgentMemory { epoch: Epoch(5), ..AgentMemory::default() });
    young.connected(Time::ZERO, &mut Vec::new());
    let error = young.handle(Time::ZERO, welcome(4), &mut Vec::new()).expect_err("refused");
    assert_eq!(error, SessionError::OldHead { theirs: Epoch(4), seen: Epoch(5) });
    let mut open = opened(5);
    assert!(open.handle(Time::ZERO, order(1, 4, launch(1)), &mut Vec::new()).is_err());
    let mut out = Vec::new();
    let ahead = Hello {
        epoch: Epoch(9),
        ..match hello(PROTOCOL_VERSION, "node0") {
            ToHead::Hello(hello) => hello,
            _ => unreachable!("a hello was made"),
        }
    };
    assert!(head(4).handle(Time::ZERO, ToHead::Hello(ahead), &mut out).is_err(), "the head steps back too");
}

#[test]
fn a_launch_that_is_not_newer_is_refused_even_under_another_number() {
    let mut agent = opened(1);
    let mut out = Vec::new();
    agent.handle(Time::ZERO, order(1, 1, launch(2)), &mut out).expect("taken");
    agent.handle(Time::ZERO, order(2, 1, launch(2)), &mut out).expect("answered");
    agent.handle(Time::ZERO, order(3, 1, launch(1)), &mut out).expect("answered");
    let executed = out.iter().filter(|o| matches!(o, AgentOutput::Execute { .. })).count();
    let failed = out.iter().filter(|o| {
        matches!(o, AgentOutput::Send(ToHead::OrderDone(OrderDone { outcome: Outcome::Failed(_), .. })))
    });
    assert_eq!((executed, failed.count()), (1, 2));
}

#[test]
fn an_order_ahead_of_its_turn_waits() {
    let mut agent = opened(1);
    let mut out = Vec::new();
    let checkpoint = Task::Checkpoint { attempt: Attempt { job: JobId(1), incarnation: Incarnation(1) } };
    agent.handle(Time::ZERO, order(2, 1, checkpoint.clone()), &mut out).expect("kept");
    assert_eq!(out, []);
    agent.handle(Time::ZERO, order(1, 1, launch(1)), &mut out).expect("taken");
    let orders: Vec<_> = out
        .iter()
        .filter_map(|o| match o {
            AgentOutput::Execute { order, .. } => Some(order.0),
            _ => None,
        })
        .collect();
    assert_eq!(orders, [1, 2]);
}

#[test]
fn a_lease_counts_from_the_heartbeat_that_was_answered() {
    let mut agent = opened(1);
    assert_eq!(agent.lease_until(), Some(Time::from_secs_f64(20.0)));
    let mut out = Vec::new();
    agent.tick(Time::from_secs_f64(2.0), &mut out);
    let renew = ToAgent::Renew { beat: Beat(2), settled_before: OrderId(1), journal: 0 };
    agent.handle(Time::from_secs_f64(9.0), renew, &mut out).expect("renewed");
    assert_eq!(agent.lease_until(), Some(Time::from_secs_f64(22.0)), "sent at 2 s, whenever answered");
    agent.disconnected();
    out.clear();
    agent.tick(Time::from_secs_f64(22.0), &mut out);
    assert_eq!(out, [AgentOutput::LeaseOver]);
    agent.tick(Time::from_secs_f64(23.0), &mut out);
    assert_eq!(out.len(), 1, "it is said once");
}

#[test]
fn a_silent_agent_is_noticed_before_its_lease_is_over() {
    let mut head = head(1);
    let mut out = Vec::new();
    head.handle(Time::ZERO, hello(PROTOCOL_VERSION, "node0"), &mut out).expect("welcome");
    out.clear();
    head.tick(Time::from_secs_f64(5.9), &mut out);
    assert_eq!(out, []);
    head.tick(Time::from_secs_f64(6.0), &mut out);
    head.tick(Time::from_secs_f64(21.9), &mut out);
    assert_eq!(out, [HeadOutput::Silent]);
    head.tick(Time::from_secs_f64(22.0), &mut out);
    assert_eq!(out, [HeadOutput::Silent, HeadOutput::LeaseOver]);
}

#[test]
fn orders_without_an_outcome_are_handed_back_when_the_agent_forgot_them() {
    let mut head = head(1);
    let mut out = Vec::new();
    head.handle(Time::ZERO, hello(PROTOCOL_VERSION, "node0"), &mut out).expect("welcome");
    head.order(Time::ZERO, launch(1), &mut out);
    head.disconnected();
    head.connected();
    out.clear();
    let ToHead::Hello(again) = hello(PROTOCOL_VERSION, "node0") else { unreachable!("a hello was made") };
    head.handle(Time::ZERO, ToHead::Hello(Hello { boot: BootId(2), ..again }), &mut out).expect("welcome");
    let Some(HeadOutput::Joined { forgotten, .. }) =
        out.iter().find(|o| matches!(o, HeadOutput::Joined { .. }))
    else {
        panic!("{out:?}")
    };
    assert_eq!(forgotten, &[launch(1)]);
    assert_eq!(head.n_outstanding(), 0);
}

#[test]
fn a_head_that_was_restored_from_an_older_copy_is_not_obeyed_until_it_says_that_an_operator_accepted_it() {
    let seen = StateMark { lineage: Lineage(7), start: StartId(3), journal: 100 };
    let memory = AgentMemory { epoch: Epoch(5), mark: seen, ..AgentMemory::default() };
    let greeted = |welcome: ToAgent| {
        let mut agent = agent(memory.clone());
        agent.connected(Time::ZERO, &mut Vec::new());
        agent.handle(Time::ZERO, welcome, &mut Vec::new()).map(|()| agent)
    };
    let shorter = StateMark { start: StartId(4), journal: 99, ..seen };
    let error = greeted(welcome_of(6, shorter, Lineage::NONE)).expect_err("an older copy").to_string();
    assert!(error.contains("99 lines, 100 were seen") && error.contains("--accept-restore"), "{error}");
    let twin = StateMark { start: StartId(4), journal: 200, ..seen };
    assert!(greeted(welcome_of(5, twin, Lineage::NONE)).is_err(), "another start of the same epoch");
    let other = StateMark { lineage: Lineage(8), start: StartId(4), journal: 200 };
    let error = greeted(welcome_of(9, other, Lineage::NONE)).expect_err("another state").to_string();
    assert!(error.contains("--accept-restore"), "{error}");
    // Accepted: whatever its numbers are, they count from now on, and orders are counted anew.
    let agent = greeted(welcome_of(2, other, Lineage(7))).expect("obeyed");
    assert_eq!((agent.memory().epoch, agent.memory().mark), (Epoch(2), other));
    greeted(welcome_of(5, StateMark { journal: 100, ..seen }, Lineage::NONE)).expect("the same head");
}

#[test]
fn how_far_the_journal_is_comes_with_orders_and_renewals() {
    let mut agent = opened(1);
    let renew = ToAgent::Renew { beat: Beat(1), settled_before: OrderId(1), journal: 40 };
    agent.handle(Time::ZERO, renew, &mut Vec::new()).expect("renewed");
    let mut order = order(1, 1, launch(1));
    order.stamp(44);
    agent.handle(Time::ZERO, order, &mut Vec::new()).expect("taken");
    assert_eq!(agent.memory().mark.journal, 44);
    let mut out = Vec::new();
    agent.connected(Time::ZERO, &mut out);
    let [AgentOutput::Send(ToHead::Hello(hello))] = &out[..] else { panic!("{out:?}") };
    assert_eq!((hello.knows.mark.journal, hello.knows.n_jobs, hello.knows.last_launch), (44, 8, 1));
}

#[test]
fn reports_go_on_where_an_agent_has_forgotten_what_a_restored_head_never_saw() {
    let mut head = head(1);
    let ToHead::Hello(hello) = hello(PROTOCOL_VERSION, "node0") else { unreachable!("a hello was made") };
    let mut out = Vec::new();
    let hello = Hello { acknowledged: Sequence(50), ..hello };
    head.handle(Time::ZERO, ToHead::Hello(hello), &mut out).expect("welcome");
    out.clear();
    let fact = Fact::Warning(text("news"));
    let report = ToHead::Report(Report { sequence: Sequence(51), fact: fact.clone() });
    head.handle(Time::ZERO, report, &mut out).expect("taken");
    let seen = SeenReports { boot: BootId(1), last: Sequence(51) };
    assert_eq!(out, [HeadOutput::Fact { seen, fact }]);
}

#[test]
fn a_launch_that_was_not_confirmed_does_not_begin_after_its_node_was_lost() {
    let mut head = head(1);
    let mut out = Vec::new();
    head.handle(Time::ZERO, hello(PROTOCOL_VERSION, "node0"), &mut out).expect("welcome");
    head.disconnected();
    head.order(Time::ZERO, launch(1), &mut out);
    head.tick(Time::from_secs_f64(30.0), &mut out);
    assert!(out.contains(&HeadOutput::LeaseOver), "{out:?}");
    out.clear();
    head.connected();
    head.handle(Time::from_secs_f64(31.0), hello(PROTOCOL_VERSION, "node0"), &mut out).expect("welcome");
    let tasks: Vec<_> = out
        .iter()
        .filter_map(|output| match output {
            HeadOutput::Send(ToAgent::Order(order)) => Some((order.id, &order.task)),
            _ => None,
        })
        .collect();
    assert!(matches!(&tasks[..], [(OrderId(1), Task::Stop { .. })]), "{tasks:?}");
}
