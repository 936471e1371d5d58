//! The protocol between a job and its node, and a client of it. The serving side is in the shim.

mod client;
pub mod protocol;

pub use client::JobClient;
