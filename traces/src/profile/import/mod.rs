//! Profiles of other systems: Synergy's profiler, ElasticFlow's throughput tables, Gavel's throughputs, GPEmu's times.
//!
//! Readers take texts with names and return a set and what a reader of it must know: what was left out, and what had
//! to be assumed. Which files are read is decided by the command.

mod elasticflow;
mod gavel;
mod gpemu;
mod synergy;

use super::ProfileSet;
use crate::error::InputError;
use crate::source::Source;

/// A system whose profiles are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `profile.json` of Synergy's offline profiler.
    Synergy,
    /// A table for each model: iterations per second by batch and GPU count.
    ElasticFlow,
    /// `*_throughputs.json`: steps per second by GPU type, model and scale factor.
    Gavel,
    /// Forward, backward and transfer times and memory by batch size, a folder for each GPU and model.
    Gpemu,
}

impl Origin {
    /// All of them with their names.
    pub const ALL: [(Origin, &'static str); 4] = [
        (Origin::Synergy, "synergy"),
        (Origin::ElasticFlow, "elasticflow"),
        (Origin::Gavel, "gavel"),
        (Origin::Gpemu, "gpemu"),
    ];

    /// What a file is, by its name and its first words.
    pub fn of(source: &Source) -> Option<Self> {
        let file = source.name.rsplit(['/', '\\']).next().unwrap_or_default();
        let text = source.text.trim_start();
        match () {
            () if gpemu::knows(file) => Some(Origin::Gpemu),
            () if text.starts_with("global_batch_size,") => Some(Origin::ElasticFlow),
            () if text.starts_with('[') => Some(Origin::Synergy),
            () if text.starts_with('{') => Some(Origin::Gavel),
            () => None,
        }
    }
}

/// What the files do not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportOptions {
    /// Name of the model, where a file holds one.
    pub model: Option<String>,
    /// The GPU type measured on, where files do not say.
    pub gpu_type: Option<String>,
    /// Size of the data set: Synergy's memory is in percent of it.
    pub dataset_bytes: Option<u64>,
    /// GPUs that Synergy's profiler ran with.
    pub gpus: u32,
    /// Batch size that Synergy's profiler ran with, or that GPEmu's models have unless a job names one; 0 is unknown.
    pub batch: u32,
}

/// What came of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The models that were read.
    pub set: ProfileSet,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// Reads the profiles of another system.
pub fn import(origin: Origin, sources: &[Source], options: &ImportOptions) -> Result<Imported, InputError> {
    let Some(first) = sources.first() else {
        return Err(InputError::expected("profiles", "at least one file to import"));
    };
    let imported = match origin {
        Origin::Synergy => synergy::read(first, options),
        Origin::ElasticFlow => elasticflow::read(sources, options),
        Origin::Gavel => gavel::read(first),
        Origin::Gpemu => gpemu::read(sources, options),
    }?;
    if imported.set.entries().is_empty() {
        return Err(InputError::expected(&first.name, "at least one model with a speed"));
    }
    Ok(imported)
}

/// A number that can be a speed or a time.
fn is_sound(number: f64) -> bool {
    number.is_finite() && (1e-9..=1e9).contains(&number)
}

#[cfg(test)]
mod tests;
