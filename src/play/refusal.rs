//! Why a question of the page has no answer, in the sentence that the page shows.

use rota_core::simulation::SimulationError;
use rota_lab::explain::ExplainError;
use rota_lab::report::ReportError;
use rota_lab::results::ResultsError;

use crate::run::Failure;

/// Choices that the command line cannot resolve, with its sentence about them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unresolved(pub String);

/// A question without an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
    #[error("there is no such run")]
    NoRun,
    #[error("there is no such job")]
    NoJob,
    #[error("the run has no job `{0}`")]
    NotInRun(String),
    #[error("the run has no decision {0}")]
    NoDecision(usize),
    #[error("nothing changes for job {0} any more")]
    NoChange(String),
    #[error("nothing is decided any more after job {0} has ended")]
    NoLaterDecision(String),
    #[error("{0} traces are here already: start rota play again for more")]
    TooManyTraces(usize),
    #[error("the trace cannot be kept: {0}")]
    Trace(std::io::Error),
    #[error("{0}")]
    Policy(Failure),
    #[error(transparent)]
    Run(#[from] SimulationError),
    #[error(transparent)]
    Explain(#[from] ExplainError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Results(#[from] ResultsError),
    #[error("{0}")]
    Folder(#[from] std::io::Error),
    #[error("the results cannot be packed: {0}")]
    Pack(Box<dyn std::error::Error + Send + Sync>),
}
