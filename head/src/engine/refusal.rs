//! Why a user's request is refused.

use rota_core::ids::JobId;
use rota_core::time::Span;
use rota_transport::identity::UserRole;
use rota_transport::message::ContainerFault;
use rota_transport::value::{Name, Text};

use crate::store::StoreError;

/// What kind of thing a refusal is, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// The person may not.
    Forbidden,
    /// It is not there, or not theirs.
    NotFound,
    /// The thing is not in a state for that.
    Conflict,
    /// It cannot be done as it was asked for.
    Refused,
    /// Somebody asks more than is answered.
    TooMany,
    /// The head cannot do anything of the kind at present.
    Unavailable,
}

/// A request that is not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("this program speaks protocol {theirs}, the head {ours}: install the same version of both")]
    Protocol { theirs: u32, ours: u32 },
    #[error("{user} may not {action}: the role {needs} is needed, {user} has {has}")]
    Role { user: Name, action: &'static str, needs: UserRole, has: &'static str },
    #[error("job {0}: there is no such job")]
    NoSuchJob(JobId),
    #[error("job {0}: you have no job of this number")]
    NotYourJob(JobId),
    #[error(
        "the head reads no paths: give the file to `rota`, which sends its text, or the name of a script in the head's folder of policies"
    )]
    PolicyPath,
    #[error("a policy's name is made of letters, digits, -, _, . and :, its parts joined by +")]
    PolicyName,
    #[error(
        "a script that is sent must be called as a part of the policy, by the name of a file that ends in .rhai"
    )]
    PolicyText,
    #[error("{0}: there is no such node")]
    NoSuchNode(Name),
    #[error("job {0} has ended")]
    JobHasEnded(JobId),
    #[error("job {0} has not started yet")]
    JobHasNotStarted(JobId),
    #[error("job {job}: its output is on {node}, which is not connected")]
    OutputOutOfReach { job: JobId, node: String },
    #[error("{0} pieces of output are being fetched for you: wait for one of them")]
    TooManyReaders(usize),
    #[error("{0} is drained already")]
    IsDrained(Name),
    #[error("{0} is not drained")]
    IsNotDrained(Name),
    #[error("{0} takes no new jobs already")]
    IsClosed(Name),
    #[error("the reason has control characters")]
    ReasonControlCharacter,
    #[error("no job was named: give numbers, a range, an array, a name or a user")]
    NoSelection,
    #[error("{0} to {1} is not a range of jobs")]
    Range(JobId, JobId),
    #[error("no job that has not ended is among those named")]
    NothingSelected,
    #[error("none of the jobs named {0}")]
    NothingToChange(&'static str),
    #[error("job {0} was held by an operator, who has to release it")]
    HeldByOperator(JobId),
    #[error("jobs of `{0}`: only operators may name other users")]
    OthersJobs(Text),
    #[error("priority {0}: only operators may give jobs one above 0")]
    Priority(i32),
    #[error("a job ends as finished, failed, cancelled, declined or time-limit")]
    NotAnEnd,
    #[error("{0} is connected and cannot be given up; take it out of service with `rota drain {0}`")]
    IsConnected(Name),
    #[error("{0} jobs: 1 to {1} can be submitted at once")]
    NumberOfJobs(usize, usize),
    #[error(
        "{n_new} more jobs: {n_open} of yours have not ended, and this head keeps at most {most} of one person (--most-jobs)"
    )]
    TooManyJobs { n_open: usize, n_new: usize, most: usize },
    #[error("{0} numbers, ranges and arrays: at most {1} can be named at once")]
    LongSelection(usize, usize),
    #[error("job `{name}`: {fault}")]
    Job { name: Text, fault: JobFault },
    #[error("the head cannot write its journal and changes nothing until it can: {0}")]
    Disk(String),
    #[error("this head does not skip time: start it with --fast-forward")]
    NoFastForward,
    #[error(transparent)]
    Journal(#[from] StoreError),
    #[error("the rules cannot be written as JSON: {0}")]
    Rules(#[from] serde_json::Error),
    #[error("this head has no web page: start it with --web ADDRESS:PORT")]
    NoWeb,
}

impl Refusal {
    /// What kind of refusal it is.
    pub(crate) fn kind(&self) -> RefusalKind {
        match self {
            Refusal::Role { .. }
            | Refusal::Priority(_)
            | Refusal::OthersJobs(_)
            | Refusal::HeldByOperator(_)
            | Refusal::Job { fault: JobFault::Tenant { .. } | JobFault::Priority(_), .. } => {
                RefusalKind::Forbidden
            }
            Refusal::NoSuchJob(_) | Refusal::NotYourJob(_) | Refusal::NoSuchNode(_) | Refusal::NoWeb => {
                RefusalKind::NotFound
            }
            Refusal::JobHasEnded(_)
            | Refusal::JobHasNotStarted(_)
            | Refusal::IsDrained(_)
            | Refusal::IsNotDrained(_)
            | Refusal::IsClosed(_)
            | Refusal::IsConnected(_)
            | Refusal::NothingSelected
            | Refusal::NothingToChange(_)
            | Refusal::NoFastForward => RefusalKind::Conflict,
            Refusal::OutputOutOfReach { .. } | Refusal::Disk(_) | Refusal::Journal(_) => {
                RefusalKind::Unavailable
            }
            Refusal::TooManyReaders(_) | Refusal::TooManyJobs { .. } => RefusalKind::TooMany,
            Refusal::Protocol { .. }
            | Refusal::PolicyPath
            | Refusal::PolicyName
            | Refusal::PolicyText
            | Refusal::ReasonControlCharacter
            | Refusal::NoSelection
            | Refusal::Range(..)
            | Refusal::NotAnEnd
            | Refusal::NumberOfJobs(..)
            | Refusal::LongSelection(..)
            | Refusal::Job { .. }
            | Refusal::Rules(_) => RefusalKind::Refused,
        }
    }
}

/// What is wrong with a job that was submitted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobFault {
    #[error("no model `{model}` in the head's profiles: there are {known}")]
    UnknownModel { model: String, known: String },
    #[error("asks for {0} GPUs")]
    NumberOfGpus(u32),
    #[error("GPU levels must ascend from 1, got {0:?}")]
    Levels(Vec<u32>),
    #[error("asks for no work: give its iterations, or its time")]
    NoWork,
    #[error("{user} may not submit for the tenant `{tenant}`, only for {known}")]
    Tenant { tenant: String, user: Name, known: String },
    #[error("priority {0}: only operators may give jobs one above 0")]
    Priority(i32),
    #[error("waits for {0} jobs, at most {1} are possible")]
    Dependencies(usize, usize),
    #[error("waits for job {job} to finish, which has ended otherwise: {how}")]
    Broken { job: JobId, how: &'static str },
    #[error("its time limit is 0")]
    NoTime,
    #[error("its {0} has control characters")]
    ControlCharacter(&'static str),
    #[error("has no command")]
    NoCommand,
    #[error(
        "its grace of {} s is longer than the {} s that this head allows (--most-grace)", asked.as_secs_f64(), most.as_secs_f64()
    )]
    Grace { asked: Span, most: Span },
    #[error(transparent)]
    Container(#[from] ContainerFault),
}
