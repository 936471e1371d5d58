//! Sia's and Pollux's workloads (SOSP'23, OSDI'21): `name,time,application,num_replicas,batch_size`.
//!
//! | column | meaning |
//! |---|---|
//! | `name`, `time` | name; arrival in seconds |
//! | `application` | a model of the profile set |
//! | `num_replicas` | GPUs asked for |
//! | `batch_size` | global batch size |
//!
//! Such a table does not say how long a job takes: in the originals that follows from its application, which trains for a fixed
//! number of epochs. Rota's profiles do not have those epochs yet, so the table is recognised and refused with that reason.

use super::{Head, Imported, Setting};
use crate::error::InputError;
use crate::source::Source;

/// Applications with replicas.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    head.has(&["name", "time", "application", "num_replicas", "batch_size"])
}

/// Refuses the table with the reason.
pub(crate) fn read(source: &Source, _: &Setting<'_>) -> Result<Imported, InputError> {
    let problem = "has no durations: how much work a job has follows from its application's epochs, and no profile set has those";
    Err(InputError::problem(&source.name, problem))
}
