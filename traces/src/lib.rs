//! Everything Rota reads: clusters, model profiles and traces in many formats, and the generators of workloads.
//!
//! Readers take text with a name ([`source::Source`]) and answer with the core's types or one [`error::InputError`]
//! that says file, line, column, value and what was expected. Only `source` opens files; nothing here prints, reads
//! a clock or draws a number that does not follow from a seed.

pub mod assign;
pub mod check;
pub mod cluster;
mod dates;
pub mod error;
pub mod estimates;
pub mod faults;
pub mod format;
pub mod generate;
mod jobs;
pub mod originals;
mod pack;
mod plain_text;
pub mod profile;
pub mod repair;
pub mod reshape;
pub mod rows;
pub mod source;
mod speeds;
pub mod stats;
pub mod units;
