//! The originals as they are: drivers that keep their clocks, their progress and their mistakes.
//!
//! A driver stands beside the engine, not inside it: the originals credit work before it is done and notice ends
//! late, which the engine's invariants forbid. What carries the ideas is shared with the shipped policies: the walk
//! ([`rota_core::fill`]), its answers, the placements ([`rota_core::place`]), and the script host with its orders.
//! So a case that comes out equal speaks for them too. No shipped script knows that this folder exists.

//!
//! Every mistake that can be taken out by itself has a name ([`Defect`]); a run says which of them it shall have.

pub mod chronus;
mod defects;
pub mod elasticflow;
pub mod synergy;
mod track;

pub use defects::{Defect, DefectError, Defects, System};
