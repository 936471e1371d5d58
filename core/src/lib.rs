//! Rota's core: the scheduler is a function from facts to orders.
//!
//! Facts are [`Event`](event::Event)s, orders are [`Command`](event::Command)s, time is an argument. The simulator,
//! the live head and a replay differ only in who produces the events. Nothing here reads a clock or a file, runs a
//! script, calls a solver or opens a socket.
//!
//! The folders are the architecture; from outside, every module is one step from the root (`rota_core::plan`).

pub mod artifact;
mod basics;
mod decision;
mod running;
mod state;
mod verbs;

pub use basics::{allocation, cluster, event, fault, ids, job, profile, resources, time, workload};
pub use decision::{check, guards, plan, policy, reconcile, round};
pub use running::{cache, digest, ledger, losses, queue, recorder, simulation, world};
pub use state::{difference, scheduler, snapshot, table};
pub use verbs::{buddy, by_share, fill, place, reclaim, room, switches, timeline, turns};
