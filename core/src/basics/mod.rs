//! What things are: time, amounts, nodes, jobs, and what can happen to them. No state, no decisions.

pub mod allocation;
pub mod cluster;
pub mod event;
pub mod fault;
pub mod ids;
pub mod job;
pub mod profile;
pub mod resources;
pub mod time;
pub mod workload;
