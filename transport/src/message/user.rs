//! Requests of users to the head, and its answers: one stream for each request, answers until `End` or `Failed`.

use rota_core::ids::{Incarnation, JobId};
use rota_core::time::Time;
use serde::{Deserialize, Serialize};

use super::{
    EndedJobView, Epoch, ExpectedStart, HistoryFilter, JobChange, JobConditions, JobSelection, Launcher,
    LogLimits, NodeService, OnHeadLost, SignIn, SignInBy,
};
use crate::value::{Iterations, LogBytes, LongText, Name, Text, TimeScale, Wait};

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromUser {
    /// The state of the cluster in a few numbers. The first message says which protocol the program speaks.
    Status {
        /// That protocol.
        protocol: u32,
    },
    /// Submit these jobs, all or none. Answered when they are in the journal.
    Submit {
        /// In the order in which they get their numbers.
        jobs: Vec<JobRequest>,
        /// A random number drawn by the sender: the same request sent again gets the same answer and makes no second job.
        key: u64,
    },
    /// Cancel jobs.
    Cancel {
        /// Jobs that have not ended; if one of them has, or is unknown, none is cancelled.
        jobs: Vec<JobId>,
    },
    /// Show jobs.
    Jobs {
        /// A selection; the answer has them by ascending number.
        which: WhichJobs,
    },
    /// Show nodes.
    Nodes,
    /// Show a job's output.
    Logs {
        /// The job; its last launch is read.
        job: JobId,
        /// From which byte.
        offset: u64,
    },
    /// Drain a node (nothing new is started there, and its jobs are moved away), or put it back into service.
    Drain {
        /// The name of the node's agent.
        node: Name,
        /// Whether it is to be drained.
        is_drained: bool,
    },
    /// Show what happened.
    Events {
        /// From which record.
        from: u64,
    },
    /// Decide by another policy from the next round on.
    SetPolicy {
        /// Its name: shipped scripts, and files of the head's folder of policies; no paths.
        policy: Text,
        /// Parameters of the script and their values, as `--set` takes them.
        set: Vec<(Text, Text)>,
    },
    /// Read the policy's scripts again.
    ReloadPolicy,
    /// Why a job waits, and what would let it run.
    Explain {
        /// Any job the head knows; of one that has ended, how it ended.
        job: JobId,
    },
    /// What another policy would do now.
    WhatIf {
        /// Its name: shipped scripts, and files of the head's folder of policies; no paths.
        policy: Text,
        /// Parameters of the script and their values, as `--set` takes them.
        set: Vec<(Text, Text)>,
    },
    /// The whole journal, as lines of JSON.
    Journal,
    /// End the head; what runs goes on for its lease.
    Shutdown,
    /// What decisions depend on besides events, as recorded at the head's last start: JSON.
    Rules,
    /// Skip time in which nothing happens, once every launch has done some iterations; answered with the status.
    FastForward {
        /// At most until then.
        until: Time,
        /// The iterations that each launch must have done itself.
        n_iterations: u32,
    },
    /// Stop what runs, after a checkpoint, and end the head; jobs go on when it starts again.
    StopAll,
    /// Decide by another policy from the next round on, some of whose scripts come with the request.
    SetPolicyText {
        /// Its name; a script that is sent is called by the name of its file.
        policy: Text,
        /// Parameters of the script and their values, as `--set` takes them.
        set: Vec<(Text, Text)>,
        /// Names and texts of the scripts that are sent.
        texts: Vec<(Text, LongText)>,
    },
    /// What another policy would do now, some of whose scripts come with the request.
    WhatIfText {
        /// Its name; a script that is sent is called by the name of its file.
        policy: Text,
        /// Parameters of the script and their values, as `--set` takes them.
        set: Vec<(Text, Text)>,
        /// Names and texts of the scripts that are sent.
        texts: Vec<(Text, LongText)>,
    },
    /// Change what is to become of jobs; answered with their numbers.
    Change {
        /// Which jobs.
        jobs: JobSelection,
        /// What is to happen to them.
        change: JobChange,
    },
    /// Take a node out of service, or back into it.
    ServiceNode {
        /// The name of the node's agent.
        node: Name,
        /// Whether it is closed, drained or in service again.
        service: NodeService,
        /// Why, for people; may be empty.
        reason: Text,
    },
    /// Show jobs that have ended, at most a page of them.
    History {
        /// Which of them.
        filter: HistoryFilter,
    },
    /// Give up a node that cannot be reached: its jobs are started elsewhere at once. The sender knows that nothing runs
    /// there any more.
    GiveUp {
        /// The name of the node's agent.
        node: Name,
    },
    /// Sign in to the head's page, or have a program sign in to its API.
    SignIn {
        /// Which of the two.
        by: SignInBy,
    },
    /// When jobs that wait are expected to start.
    Forecast {
        /// Which jobs; empty is all that wait.
        jobs: Vec<JobId>,
    },
}

/// Which jobs are shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhichJobs {
    /// Those that have not ended.
    Active,
    /// Those that have ended, too.
    All,
    /// The jobs with these numbers.
    These(Vec<JobId>),
}

/// A job as it is submitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRequest {
    /// A name for people; need not be unique.
    pub name: Text,
    /// Who pays; empty is the user.
    pub tenant: Text,
    /// Larger is more important, in policies that use priorities.
    pub priority: i32,
    /// The profile it runs by; empty is none.
    pub model: Text,
    /// Global batch size; 0 takes the profile's.
    pub batch: u32,
    /// GPUs: the gang of a job that is not elastic.
    pub gpus: u32,
    /// Counts an elastic job can run with, ascending; empty when it is not.
    pub levels: Vec<u32>,
    /// The only GPU type it may run on; empty is any.
    pub gpu_type: Text,
    /// Iterations it is thought to need; for a job without a profile, seconds.
    pub work: Iterations,
    /// When it should be done, counted from its submission.
    pub deadline: Option<Wait>,
    /// How it is started.
    pub start: JobStart,
    /// When it may begin, and for how long it may run; absent in journals of earlier versions.
    #[serde(default)]
    pub conditions: JobConditions,
}

impl JobRequest {
    /// The smallest request: an emulated job without a profile, a deadline or work. Tests and benchmarks change the fields
    /// that they need.
    pub fn emulated(gpus: u32) -> Self {
        let none = || Text::cut("");
        JobRequest {
            name: Text::cut("job"),
            tenant: none(),
            priority: 0,
            model: none(),
            batch: 0,
            gpus,
            levels: Vec::new(),
            gpu_type: none(),
            work: Iterations::NONE,
            deadline: None,
            start: JobStart {
                launcher: Launcher::Emulated,
                argv: Vec::new(),
                env: Vec::new(),
                working_directory: none(),
                checkpoint_directory: none(),
                processes: Processes::PerNode,
                on_head_lost: OnHeadLost::Stop,
                log: LogLimits { file_bytes: 1 << 20, n_files: 1 },
                grace: Wait::NONE,
                restart: Wait::NONE,
                checkpoint_every: Wait::NONE,
                most_failures: 1,
            },
            conditions: JobConditions::default(),
        }
    }
}

/// How a job is started, on any node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobStart {
    /// As what.
    pub launcher: Launcher,
    /// The program and its arguments.
    pub argv: Vec<Text>,
    /// Variables besides those the agent sets.
    pub env: Vec<(Text, Text)>,
    /// Where it runs; empty is the agent's run directory.
    pub working_directory: Text,
    /// Where it keeps checkpoints; empty is a folder of its own below the agent's checkpoint directory.
    pub checkpoint_directory: Text,
    /// How many processes.
    pub processes: Processes,
    /// What happens to it when its node loses the head.
    pub on_head_lost: OnHeadLost,
    /// How much output is kept.
    pub log: LogLimits,
    /// Time between asking it to stop and killing it.
    pub grace: Wait,
    /// Time lost at each start after the first.
    pub restart: Wait,
    /// Time between checkpoints it writes by itself; none loses no work at a failure.
    pub checkpoint_every: Wait,
    /// With how many failures it is given up: one more than the retries that were asked for.
    pub most_failures: u32,
}

/// How many processes a job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Processes {
    /// One for each node, whatever its GPUs.
    PerNode,
    /// One for each GPU.
    PerGpu,
}

/// What the head answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToUser {
    /// Nothing more follows.
    End,
    /// The request was refused, and why; nothing was changed.
    Failed(LongText),
    /// The state of the cluster in a few numbers.
    Status(Status),
    /// The jobs are in the journal under these numbers.
    Submitted(Vec<JobId>),
    /// Some of the jobs asked for.
    Jobs(Vec<JobView>),
    /// Some of the nodes.
    Nodes(Vec<NodeView>),
    /// A piece of output.
    Log {
        /// Where it begins.
        offset: u64,
        /// The output from `offset` on.
        bytes: LogBytes,
        /// Whether the job has ended and nothing follows.
        is_end: bool,
    },
    /// Some of what happened.
    Events(Vec<EventView>),
    /// An answer for people.
    Text(LongText),
    /// The jobs that a change was made to.
    Changed(Vec<JobId>),
    /// Some of the jobs that have ended, by ascending number.
    History(Vec<EndedJobView>),
    /// Where the page is, and what opens it.
    SignIn(SignIn),
    /// When jobs are expected to start, by ascending number; those that seldom do within the forecast's horizon are left out.
    Forecast(Vec<ExpectedStart>),
}

/// The state of the cluster in a few numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The head's version, for people.
    pub version: Text,
    /// How often the head has started.
    pub epoch: Epoch,
    /// The head's time.
    pub now: Time,
    /// Whether enough agents are there and rounds are held.
    pub is_ready: bool,
    /// The policy that decides.
    pub policy: Text,
    /// What is wrong with it, if anything is; running jobs are kept meanwhile.
    pub trouble: Text,
    /// Time between rounds.
    pub round: Wait,
    /// Seconds of the head's time in a real one.
    pub time_scale: TimeScale,
    /// Decisions taken since the head started.
    pub n_rounds: u64,
    /// Nodes that are up.
    pub n_nodes_up: u32,
    /// Nodes that the head knows.
    pub n_nodes: u32,
    /// GPUs held by jobs.
    pub n_gpus_busy: u32,
    /// GPUs of nodes that are up.
    pub n_gpus_up: u32,
    /// Jobs that wait for admission or GPUs.
    pub n_waiting: u32,
    /// Jobs that run.
    pub n_running: u32,
}

/// A job as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    /// The number that the head gave it when it was submitted.
    pub id: JobId,
    /// The name it was submitted with.
    pub name: Text,
    /// Who submitted it.
    pub user: Name,
    /// Name of the profile it runs by; empty when it has none.
    pub model: Text,
    /// Its state, as far as the head knows.
    pub state: JobStateView,
    /// The reason for its state; empty if there is nothing to add.
    pub reason: Text,
    /// GPUs asked for.
    pub gpus_asked: u32,
    /// GPUs held.
    pub gpus_held: u32,
    /// Names of the nodes it runs on.
    pub nodes: Vec<Text>,
    /// Iterations done.
    pub done: Iterations,
    /// Iterations in all.
    pub work: Iterations,
    /// When it was submitted.
    pub arrival: Time,
    /// When it first started.
    pub started: Option<Time>,
    /// When it ended.
    pub ended: Option<Time>,
    /// When it should be done.
    pub deadline: Option<Time>,
    /// How often it was launched.
    pub incarnation: Incarnation,
    /// How often it failed.
    pub n_failures: u32,
    /// How often it was stopped in favour of others.
    pub n_preemptions: u32,
    /// Larger is more important, in policies that use priorities.
    pub priority: i32,
    /// The most time that it may run, over all its launches.
    pub time_limit: Option<Wait>,
    /// What its last launch that failed by itself ended with: its exit code, or 128 and the number of the signal.
    pub exit_code: Option<i32>,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobStateView {
    /// Not yet admitted.
    Asking,
    /// Admitted, without GPUs.
    Waiting,
    /// Given GPUs, not yet up everywhere.
    Starting,
    /// All its ranks run.
    Running,
    /// Told to stop, not yet gone.
    Stopping,
    /// Its work is done.
    Finished,
    /// Refused by the policy, or too large for the cluster.
    Declined,
    /// Cancelled by a user.
    Cancelled,
    /// Given up after too many failures.
    Failed,
    /// Kept back: until it is released, or until other jobs have ended.
    Held,
    /// Stopped because it had run for as long as it may.
    #[serde(rename = "time-limit")]
    TimeLimit,
}

impl JobStateView {
    /// Whether it has ended.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Declined | Self::Cancelled | Self::Failed | Self::TimeLimit)
    }

    /// Its name, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asking => "asking",
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Finished => "finished",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Held => "held",
            Self::TimeLimit => "time-limit",
        }
    }
}

/// A node as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeView {
    /// Its name, which is its agent's.
    pub name: Name,
    /// Its state, as far as the head knows.
    pub state: NodeStateView,
    /// Its GPU type.
    pub gpu_type: Text,
    /// Its GPUs.
    pub n_gpus: u32,
    /// GPUs held by jobs.
    pub n_busy: u32,
    /// CPUs.
    pub cpus: f64,
    /// Memory in bytes.
    pub mem_bytes: u64,
    /// Its agent's version.
    pub version: Text,
    /// Since when it is in its state.
    pub since: Time,
    /// Jobs there.
    pub jobs: Vec<JobId>,
    /// The reason for its state; empty if there is nothing to add.
    pub reason: Text,
}

/// The state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeStateView {
    /// In service.
    Up,
    /// Its heartbeats have stopped, but its lease is not over: its jobs are left alone.
    Silent,
    /// Lost: its lease is over.
    Lost,
    /// Taken out of service by an operator.
    Drained,
    /// Takes no new jobs, and is out of service when those that run there have ended.
    Draining,
    /// Its lease is over, and its jobs may run: they are not started elsewhere until it is back or given up.
    Unreachable,
}

impl NodeStateView {
    /// Its name, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Silent => "silent",
            Self::Lost => "lost",
            Self::Drained => "drained",
            Self::Draining => "draining",
            Self::Unreachable => "unreachable",
        }
    }
}

/// Something that happened, as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventView {
    /// Its position in the journal, from 0.
    pub index: u64,
    /// When it was recorded, in the head's time.
    pub time: Time,
    /// Kind of the record, in one word.
    pub kind: Text,
    /// The record as a sentence.
    pub text: Text,
}
