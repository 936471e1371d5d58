//! What keeps cases from being run at all.

use std::path::PathBuf;

use rota_traces::error::InputError;

/// Golden cases that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ConformError {
    /// The folder has none of the systems.
    #[error("{} has no golden cases: expected a folder named after a system ({})", dir.display(), names())]
    NoGolden {
        /// Where was looked.
        dir: PathBuf,
    },
    /// The folder lacks a system that was asked for.
    #[error("{} has no cases of {name}: expected a folder {name} in it", dir.display())]
    NoSystem {
        /// What was asked for.
        name: String,
        /// Where was looked.
        dir: PathBuf,
    },
    /// Nobody knows this system.
    #[error("`{name}` is no system with golden cases: expected one of {}", names())]
    UnknownSystem {
        /// What was asked for.
        name: String,
    },
    /// A case table that cannot be read.
    #[error(transparent)]
    Table(#[from] InputError),
}

fn names() -> String {
    super::SYSTEMS.map(|system| system.name).join(", ")
}
