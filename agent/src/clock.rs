//! The one clock of leases: milliseconds since the machine started, sleep included.
//!
//! All processes of a machine read the same clock, so a lease is sent from agent to shim as the moment at which it ends, and
//! a message that was delayed does not extend it. The wall clock may jump; leases do not use it.

use rustix::time::{ClockId, clock_gettime};

/// Seconds of the monotonic clock, which jobs read too: `time.monotonic()` in Python.
pub fn monotonic_s() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Milliseconds since the machine started.
pub fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}
