//! What head, agents and users say to each other.
//!
//! `message` holds what is said, `value` the checked values it is made of, `frame` how it lies on a stream,
//! `session` the conversation without sockets or clocks, `measure` how one run of a command is
//! ordered and watched, `identity` who is who, `quic` the wire itself, `logging` where the log of a head or an agent goes. Nothing a
//! peer sends can make this crate panic: no `unwrap`, no indexing, no assertion on a value that came from outside.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod frame;
pub mod identity;
pub mod logging;
pub mod measure;
pub mod message;
pub mod quic;
pub mod session;
pub mod value;
