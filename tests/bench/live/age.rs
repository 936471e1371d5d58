//! Heads with a past: how long a restart takes and how much memory and disk it needs after a million jobs, and after a year of
//! rounds. The past is written by the head's own code: real records, images and pruning.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Instant;

use rota_core::allocation::{Allocation, GpuSet, Slice, WHOLE_GPU};
use rota_core::ids::{Incarnation, JobId, NodeId};
use rota_core::resources::Host;
use rota_core::time::{Span, Time};
use rota_head::scribe::Scribe;
use rota_head::{KeepJournal, NodeHas, PlanRecord, ProfileText, Record, Rules, WakeRecord};
use rota_transport::message::{JobRequest, Launcher};
use rota_transport::value::{Iterations, Text};

use crate::cluster::Cluster;

const N_NODES: u32 = 50;
const GPUS_PER_NODE: u32 = 8;
const N_GPUS: u32 = N_NODES * GPUS_PER_NODE;
const MINUTE: Span = Span::from_secs(60);
const ROUNDS_PER_YEAR: u64 = 365 * 24 * 60;
const N_JOBS: u32 = 1_000_000;
/// Jobs that begin in every round of the million: they use all GPUs and run for four minutes.
const JOBS_PER_ROUND: u32 = N_GPUS / 4;

/// A restart after a million jobs.
pub(crate) fn jobs() {
    measure("1,000,000 jobs that have ended", |past| {
        let mut running = VecDeque::new();
        let mut free: Vec<_> = (0..N_GPUS).collect();
        while past.scribe.cluster().next_job().0 < N_JOBS {
            let mut run = Vec::new();
            let mut began: Vec<JobId> = Vec::new();
            for _ in 0..JOBS_PER_ROUND {
                began.push(past.submit());
            }
            if running.len() >= (N_GPUS / JOBS_PER_ROUND) as usize {
                let ended: Vec<(JobId, u32)> = running.pop_front().expect("full");
                for (job, gpu) in ended {
                    past.record(Record::JobFinished { job, incarnation: Incarnation(1), done: 240.0 });
                    free.push(gpu);
                }
            }
            let placed: Vec<_> = began.iter().map(|job| (*job, free.pop().expect("one is free"))).collect();
            run.extend(placed.iter().map(|(job, gpu)| (*job, Some(one_gpu(*gpu)))));
            past.round(run);
            for job in began {
                past.record(Record::JobStarted { job, incarnation: Incarnation(1) });
            }
            running.push_back(placed);
            past.write_now_and_then();
        }
    });
}

/// A restart after a year of rounds a minute apart, in which all jobs report progress that nobody foresaw.
pub(crate) fn year() {
    measure("a year of 1-minute rounds, 400 running jobs, all of which report in every round", |past| {
        let jobs: Vec<JobId> = (0..N_GPUS).map(|_| past.submit()).collect();
        past.round((0..N_GPUS).map(|gpu| (jobs[gpu as usize], Some(one_gpu(gpu)))).collect());
        for job in &jobs {
            past.record(Record::JobStarted { job: *job, incarnation: Incarnation(1) });
        }
        for round in 1..ROUNDS_PER_YEAR {
            let done =
                |job: &JobId| (*job, Incarnation(1), round as f64 * (55.0 + f64::from(job.0 % 89) / 7.0));
            past.record(Record::Progressed { jobs: jobs.iter().map(done).collect() });
            past.round(Vec::new());
            past.write_now_and_then();
        }
    });
}

/// Writes a past, and starts a head with it.
fn measure(what: &str, write: impl FnOnce(&mut Past)) {
    let mut cluster = Cluster::start(0, 1, &[]);
    cluster.kill_head();
    let folder = cluster.folder.path().join("head");
    let rules = Rules::plain(ProfileText::load("synergy").expect("built in"));
    let begun = Instant::now();
    let mut past = Past::begin(&folder, &rules);
    write(&mut past);
    past.scribe.write().expect("written");
    let n_lines = past.scribe.last_line();
    drop(past);
    let written_s = begun.elapsed().as_secs_f64();
    let gigabytes = size_of(&folder) as f64 / 1e9;
    let begun = Instant::now();
    cluster.start_head();
    let listens = wait(|| cluster.head_log().matches("head listens").count() == 2, begun);
    let answers = wait(|| cluster.status()["epoch"] == 2, begun);
    println!("\n**A head with a past**: {what}; {n_lines} lines in {written_s:.0} s.\n");
    println!("| | |\n|---|---|");
    println!("| state folder | {gigabytes:.2} GB |");
    println!("| listens and renews leases after | {listens:.2} s |");
    println!("| answers `rota top` after | {answers:.2} s |");
    println!("| memory | {:.0} MB |", cluster.head_memory_mb());
}

fn wait(mut holds: impl FnMut() -> bool, since: Instant) -> f64 {
    while !holds() {
        assert!(since.elapsed().as_secs() < 600, "the head does not come up");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    since.elapsed().as_secs_f64()
}

fn size_of(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).expect("there");
    files.map(|file| file.and_then(|file| file.metadata()).map_or(0, |meta| meta.len())).sum()
}

/// A journal that is being written, a minute further with every round.
struct Past {
    scribe: Scribe,
    now: Time,
    n_rounds: u64,
}

impl Past {
    fn begin(folder: &Path, rules: &Rules) -> Self {
        let scribe = Scribe::open(folder, rules, KeepJournal::default()).expect("opened");
        let mut past = Past { scribe, now: Time::ZERO, n_rounds: 0 };
        for node in 0..N_NODES {
            let host = Host::from_units(96.0, 1000.0, 1000.0);
            let has =
                NodeHas { gpu_type: "V100".into(), n_gpus: GPUS_PER_NODE, gpu_mem_bytes: 32 << 30, host };
            past.record(Record::NodeJoined {
                node: NodeId(node),
                name: format!("gpu{node}"),
                rack: node / 8,
                has,
            });
        }
        past
    }

    fn record(&mut self, record: Record) {
        self.scribe.record(self.now, record);
    }

    /// A job such as people submit: with a command line and a few variables.
    fn submit(&mut self) -> JobId {
        let job = self.scribe.cluster().next_job();
        let text = |text: &str| Text::new(text).expect("short");
        let mut request = JobRequest::emulated(1);
        request.name = text(&format!("train-{}", job.0 % 977));
        request.model = text("res50");
        request.work = Iterations::new(1e9).expect("a count");
        request.start.launcher = Launcher::Process;
        let words = ["python3", "train.py", "--data", "/data/imagenet", "--epochs", "90", "--lr", "0.1"];
        request.start.argv = words.map(text).into();
        let variables = ["NCCL_DEBUG", "OMP_NUM_THREADS", "PYTHONUNBUFFERED", "WANDB_MODE"];
        request.start.env = variables.map(|name| (text(name), text("some-value"))).into();
        let user = ["ada", "bob", "eve"][job.0 as usize % 3].to_owned();
        self.record(Record::JobReceived { job, user, key: job.0.into(), request: Box::new(request) });
        self.record(Record::JobSubmitted { job });
        job
    }

    /// A round that starts these jobs, and lets all others that run keep what they have.
    fn round(&mut self, run: Vec<(JobId, Option<Allocation>)>) {
        self.n_rounds += 1;
        self.now = self.now + MINUTE;
        let round = self.n_rounds;
        self.record(Record::RoundBegan { round, protects: Some(Span::ZERO) });
        let verdicts = run.iter().map(|(job, _)| (*job, None)).collect();
        let (stopped, wake, notes) = (Some(Vec::new()), WakeRecord::NextRound, Vec::new());
        let plan = PlanRecord { verdicts, run, stopped, wake, notes };
        self.record(Record::Planned { round, plan, memory: String::new(), keeps_memory: true });
    }

    fn write_now_and_then(&mut self) {
        if self.n_rounds.is_multiple_of(20) {
            self.scribe.write().expect("written");
        }
    }
}

fn one_gpu(gpu: u32) -> Allocation {
    let slice = Slice {
        node: NodeId(gpu / GPUS_PER_NODE),
        gpus: GpuSet::one(gpu % GPUS_PER_NODE),
        share: WHOLE_GPU,
        host: Host::from_units(12.0, 125.0, 0.0),
    };
    Allocation { slices: [slice].into_iter().collect() }
}
