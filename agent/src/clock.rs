//! The one clock of leases: milliseconds since the machine started, sleep included.
//!
//! All processes of a machine read the same, so a lease travels from agent to shim as the moment at which it ends, and
//! a message that lay around does not prolong it. The wall clock may jump; nothing here looks at it.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since the machine started.
pub fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}
