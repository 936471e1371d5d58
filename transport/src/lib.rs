//! What head, agents and users send each other.
//!
//! `access` says who may ask the head for what, `message` has the messages, `value` the checked values in them, `frame` their form on a stream, `session` the protocol
//! between head and agent without sockets or clocks, `measure` how one run of a command is ordered and watched, `identity`
//! the certificates, `quic` the wire itself, `https` TLS for the head's page, `logging` the log of a head or an agent, `private` folders that
//! only their owner may read. Nothing a peer sends can make this
//! crate panic: no `unwrap`, no indexing, no assertion on a value that came from outside.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod access;
pub mod frame;
pub mod https;
pub mod identity;
pub mod logging;
pub mod measure;
pub mod message;
pub mod private;
pub mod quic;
pub mod session;
pub mod value;
