//! The originals as they are: drivers that keep their clocks, their progress and their mistakes.
//!
//! A driver runs without the engine: the originals credit work before it is done and notice ends late, which the
//! engine's invariants forbid. What carries the ideas is shared with the shipped policies: the walk
//! ([`rota_core::fill`]), its answers, the placements ([`rota_core::place`]), and the script host with its orders.
//! So a case with equal results is evidence for them too. No shipped script uses this folder.
//!
//! Every mistake that can be taken out by itself has a name ([`Defect`]); a run's settings say which of them it has.

pub mod chronus;
mod defects;
pub mod elasticflow;
#[cfg(test)]
mod fixtures;
pub mod gavel;
pub mod synergy;
mod track;

pub use defects::{Defect, DefectError, Defects, System};
