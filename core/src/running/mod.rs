//! What runs: the simulated world, a run from its first event to its last, and the records it leaves.

pub mod cache;
pub mod digest;
pub mod ledger;
pub mod losses;
mod mates;
pub mod queue;
pub mod recorder;
pub mod simulation;
mod slow_nodes;
pub mod world;
