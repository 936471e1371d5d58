//! The papers' figures again, with the published numbers beside ours.
//!
//! ```text
//! chronus/       study       every published trace under Chronus and its baselines, `table` beside the paper's factors
//! elasticflow/   functional  the original's own test: five schedulers, one server, ten jobs
//!                figures     which traces, clusters and schedulers; `published` holds what the paper says of them
//!                study       runs all of a figure in parallel, `table` shows it beside the paper
//! gpemu/         claims      GPEmu's Synergy run, deployed: what must hold of its completion times, and `table`, `picture` of it
//! picture        a comparison of several traces as bars and a page
//! papers/        figures that are studies or comparisons: what they need, what is published, what must hold
//! ```
//!
//! How the originals behave is in `rota_scripts::artifact`, what the shipped policies decide in their scripts.

pub mod chronus;
pub mod elasticflow;
pub mod gpemu;
pub mod papers;
mod picture;

pub use picture::{Picture, PictureError};
