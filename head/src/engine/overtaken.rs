//! The real engine, decider and store without a network: a round overtaken by an event, after which the policy's memory goes
//! back to what it was before and a replay of the journal finds no difference; and a person who reads slowly.

use std::sync::{Arc, mpsc as std_mpsc};
use std::time::Duration;

use rota_core::ids::{JobId, NodeId};
use rota_core::resources::Host;
use rota_core::time::{Span, Time};
use rota_transport::identity::UserRole;
use rota_transport::message::{Epoch, FromUser, JobRequest, PROTOCOL_VERSION, ToUser};
use rota_transport::session::Terms;
use rota_transport::value::{Iterations, Name, TimeScale};
use tokio::sync::mpsc;

use super::{Access, Engine, Input, Reply, RoundSettings, RoundTimer, Said};
use crate::clock::Clock;
use crate::cluster_state::ClusterState;
use crate::decider::{self, Answer, Ask, ChildSettings, DeciderLink, Program, Scripts, Waiting};
use crate::record::{NodeHas, Record};
use crate::replay::replay;
use crate::rules::{ProfileText, Rules};
use crate::state::{Past, State, StateSettings};
use crate::store::Store;
use crate::upkeep::Upkeep;

/// A policy that counts its decisions: in odd ones the lowest priority goes first, in even ones the highest.
const COUNTING: &str = "fn order(jobs, now) {
    this.n = (this.n ?? 0) + 1;
    if this.n % 2 == 1 { rank(jobs.priority) } else { rank(-jobs.priority) }
}
";

/// A head without a network: one node for one job at a time, and a second one that comes and goes.
struct Head {
    engine: Engine,
    rules: Rules,
    answers: std_mpsc::Receiver<Answer>,
}

impl Head {
    fn new(folder: &std::path::Path, policy: &str) -> Self {
        let profiles = ProfileText::load("synergy").expect("built in");
        let rules = Rules { round: Span::from_secs(60), ..Rules::plain(profiles) };
        let cluster = ClusterState::new(&rules).expect("good rules");
        let store = Store::open(folder).expect("opened");
        let clock = Clock::new(Time::ZERO, 1.0);
        let (terms, time_scale) = (Terms::default(), TimeScale::REAL);
        let settings = StateSettings { epoch: Epoch(1), terms, time_scale, copies_checkpoints: false };
        let state = State::new(settings, cluster, Vec::new(), clock.moment(), Past::of_test());
        let timer = RoundTimer::new(RoundSettings {
            round: rules.round,
            wakes_early: true,
            least_gap: Span::ZERO,
            wait_for: 0,
            min_run: Span::ZERO,
        });
        let (answer, answers) = std_mpsc::channel();
        let limit = Duration::from_secs(60);
        let settings = ChildSettings { program: Program::Thread, limit, memory_bytes: 0 };
        let tell = Arc::new(move |found| answer.send(found).unwrap_or_default());
        let decider = decider::start(settings, tell).expect("threads");
        let choose = Ask::Choose {
            ticket: 0,
            policy: policy.into(),
            set: Vec::new(),
            memory: Some(String::new()),
            scripts: Scripts::of_this_machine(Vec::new()),
            snapshot: None,
        };
        let link = DeciderLink::new(decider, Some(choose), None);
        let (access, upkeep) = (Access::default(), Upkeep::default());
        let engine = Engine::new(state, store, clock, rules.clone(), timer, link, access, upkeep);
        let mut head = Head { engine, rules, answers };
        head.take_answer();
        head
    }

    fn record(&mut self, record: Record) {
        let moment = self.engine.clock.moment();
        self.engine.state.record(moment, record);
    }

    fn node_joins(&mut self, node: u32) {
        let host = Host::from_units(24.0, 500.0, 500.0);
        let has = NodeHas { gpu_type: "V100".into(), n_gpus: 4, gpu_mem_bytes: 0, host };
        self.record(Record::NodeJoined { node: NodeId(node), name: format!("node{node}"), rack: 0, has });
    }

    /// A job that fills a node; its priority is its number.
    fn submit(&mut self, job: u32) {
        let mut request = JobRequest::emulated(4);
        request.priority = job as i32;
        request.work = Iterations::new(1e9).expect("a count");
        let (job, user, request) = (JobId(job), "ada".to_owned(), Box::new(request));
        self.record(Record::JobReceived { job, user, key: job.0.into(), request });
        self.record(Record::JobSubmitted { job });
    }

    /// Holds a round; `meanwhile` happens after the policy was asked and before its answer is taken.
    fn round(&mut self, meanwhile: impl FnOnce(&mut Self)) {
        self.engine.begin_round_if_due(self.engine.clock.moment());
        assert!(self.engine.timer.is_deciding(), "a round is due");
        meanwhile(self);
        self.take_answer();
    }

    fn take_answer(&mut self) {
        let answer = self.answers.recv().expect("the decider answers");
        self.engine.take(Input::Decider(answer));
        self.engine.write_and_send();
    }

    fn journal(&self) -> Vec<(Time, Record)> {
        let lines = self.engine.store.journal(0, 1000).expect("readable");
        lines.into_iter().map(|(_, time, record)| (time, record)).collect()
    }
}

#[test]
fn a_policy_forgets_the_decision_that_was_overtaken_and_a_replay_agrees() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counting.rhai");
    std::fs::write(&file, COUNTING).expect("written");
    let policy = format!("{}+proportional", file.display());
    let mut head = Head::new(&folder.path().join("state"), &policy);
    (0..2).for_each(|node| head.node_joins(node));
    (0..3).for_each(|job| head.submit(job));
    head.round(|head| head.record(Record::NodeLost { node: NodeId(1), reason: "gone".into() }));
    let journal = head.journal();
    assert!(matches!(journal.last(), Some((_, Record::PlanOvertaken { round: 1, .. }))), "{journal:?}");
    assert_eq!(head.engine.state.cluster().policy().memory, "", "no decision was accepted yet");

    head.round(|_| {});
    head.submit(3);
    head.round(|_| {});
    let journal = head.journal();
    let plans: Vec<_> = journal
        .iter()
        .filter_map(|(_, record)| match record {
            Record::Planned { round, plan, memory, .. } => {
                Some((*round, plan.run.first().map(|run| run.0), memory.as_str()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(plans.len(), 2, "{journal:?}");
    assert_eq!((plans[0].0, plans[0].1), (2, Some(JobId(0))), "its first decision that counts: lowest first");
    assert!(plans[0].2.contains(":1") && plans[1].2.contains(":2"), "{plans:?}");
    let replayed = replay(&journal, &head.rules, None).expect("replays");
    assert_eq!(replayed.first_difference, None);
    assert_eq!((replayed.n_plans, replayed.n_equal, replayed.n_without), (2, 2, 1));
}

#[test]
fn a_policy_that_is_set_again_while_it_decides_keeps_what_it_remembers() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counting.rhai");
    std::fs::write(&file, COUNTING).expect("written");
    let policy = format!("{}+proportional", file.display());
    let mut head = Head::new(&folder.path().join("state"), &policy);
    head.node_joins(0);
    (0..2).for_each(|job| head.submit(job));
    head.round(|_| {});
    head.submit(2);
    // Set again after the policy was asked: the memory that the engine knows of is that of the plan before.
    head.round(|head| {
        let known = head.engine.state.cluster().policy().clone();
        let waiting = Waiting { user: Name::new("ada").expect("a name"), reply: mpsc::channel(9).0 };
        head.engine.decider.ask_for(waiting, |ticket| Ask::Choose {
            ticket,
            policy: known.name,
            set: known.set,
            memory: None,
            scripts: Scripts::of_this_machine(Vec::new()),
            snapshot: None,
        });
    });
    head.take_answer();
    head.submit(3);
    head.round(|_| {});
    let journal = head.journal();
    let memories: Vec<_> = journal
        .iter()
        .filter_map(|(_, record)| match record {
            Record::Planned { memory, .. } => Some(memory.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(memories.len(), 3, "{journal:?}");
    assert!(memories[2].contains(":3"), "it counted on: {memories:?}");
    let replayed = replay(&journal, &head.rules, None).expect("replays");
    assert_eq!((replayed.n_plans, replayed.n_equal), (3, 3), "{replayed:?}");
}

#[test]
fn a_person_who_reads_the_journal_slowly_holds_nobody_up_and_gets_all_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut head = Head::new(folder.path(), "fifo");
    for _ in 0..3000 {
        head.record(Record::Noted { text: "something that fills a line of the journal ".repeat(10) });
    }
    head.engine.write_and_send();
    let ask = |head: &mut Head, request: FromUser, reply: Reply| {
        let (user, role) = (Name::new("ada").expect("a name"), UserRole::Admin);
        head.engine.take(Input::User { user, role, left: None, request, reply });
        head.engine.write_and_send();
    };
    let (slow, mut journal) = mpsc::channel(1);
    ask(&mut head, FromUser::Journal, slow);
    // Nobody takes it yet, and others are answered; what is written meanwhile is written.
    let (other, mut status) = mpsc::channel(9);
    ask(&mut head, FromUser::Status { protocol: PROTOCOL_VERSION }, other);
    assert!(matches!(status.try_recv(), Ok(Said::Message(ToUser::Status(_)))));
    let n_lines = head.engine.store.position() as usize;
    let mut text = String::new();
    loop {
        match journal.blocking_recv() {
            Some(Said::Message(ToUser::Text(piece))) => text.push_str(piece.as_str()),
            Some(Said::Message(ToUser::End)) => break,
            other => panic!("after {} bytes: {other:?}", text.len()),
        }
    }
    assert_eq!(text.lines().count(), n_lines);
}
