//! Why golden cases cannot be run.

use std::path::PathBuf;

use rota_scripts::artifact::{chronus, elasticflow, gavel, synergy};
use rota_solvers::{FileError, FormulationError, SolveStatus};
use rota_traces::error::InputError;

use crate::results::ResultsError;

/// Golden cases that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ConformError {
    /// The folder has none of the systems.
    #[error("{} has no golden cases: expected a folder named after a system ({})", dir.display(), names())]
    NoGolden {
        /// The folder that was searched.
        dir: PathBuf,
    },
    /// The folder lacks a system that was asked for.
    #[error("{} has no cases of {name}: expected a folder {name} in it", dir.display())]
    NoSystem {
        /// The system's name on the command line.
        name: String,
        /// The folder that was searched.
        dir: PathBuf,
    },
    /// A name that is not a system's.
    #[error("`{name}` is not a system with golden cases: expected one of {}", names())]
    UnknownSystem {
        /// The system's name on the command line.
        name: String,
    },
    /// A case table that cannot be read.
    #[error(transparent)]
    Table(#[from] InputError),
}

/// A single case that cannot be run: it fails, and the others go on.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// A file of the case that cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A model that cannot be read.
    #[error(transparent)]
    Model(#[from] FileError),
    /// Synergy's driver refused the case.
    #[error(transparent)]
    Synergy(#[from] synergy::ArtifactError),
    /// ElasticFlow's driver refused the case.
    #[error(transparent)]
    Elasticflow(#[from] elasticflow::ArtifactError),
    /// Chronus' driver refused the case.
    #[error(transparent)]
    Chronus(#[from] chronus::ArtifactError),
    /// Gavel's driver refused the case.
    #[error(transparent)]
    Gavel(#[from] gavel::ArtifactError),
    /// A job set of the log that makes no model.
    #[error(transparent)]
    Formulation(#[from] FormulationError),
    /// A solve without a proven optimum.
    #[error("{n_jobs} jobs: the solve ended {status}")]
    Unsolved {
        /// Size of the job set.
        n_jobs: usize,
        /// How the solve ended.
        status: SolveStatus,
    },
    /// The result folder under `--out` cannot be written.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

fn names() -> String {
    super::SYSTEMS.map(|system| system.name).join(", ")
}
