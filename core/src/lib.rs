//! Rota's core: the scheduler is a function from facts to orders.
//!
//! Facts are [`Event`](event::Event)s, orders are [`Command`](event::Command)s, time is an argument. The simulator,
//! the live head and a replay differ only in who produces the events. Nothing here reads a clock or a file, runs a
//! script, calls a solver or opens a socket.

pub mod allocation;
pub mod buddy;
pub mod cache;
pub mod check;
pub mod cluster;
pub mod event;
pub mod fill;
pub mod guards;
pub mod ids;
pub mod job;
pub mod journal;
pub mod ledger;
pub mod place;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod queue;
pub mod reclaim;
pub mod reconcile;
pub mod recorder;
pub mod resources;
pub mod room;
pub mod scheduler;
pub mod simulation;
pub mod snapshot;
pub mod switches;
pub mod table;
pub mod time;
pub mod timeline;
pub mod workload;
pub mod world;
