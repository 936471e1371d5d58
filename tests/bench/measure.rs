//! What the kernel knows of this process: CPU time of a thread, peak memory.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this thread so far.
pub(crate) fn cpu_now() -> Duration {
    time_of(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process so far.
pub(crate) fn process_cpu_now() -> Duration {
    time_of(ClockId::ProcessCPUTime)
}

fn time_of(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// The most memory this process has had, in megabytes.
pub(crate) fn peak_memory_mb() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux keeps this file");
    let line = text.lines().find(|l| l.starts_with("VmHWM")).expect("a line for the peak");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).expect("kilobytes") / 1e3
}

/// Linear between neighbours.
pub(crate) fn quantile(ascending: &[f64], q: f64) -> f64 {
    let place = q * (ascending.len() - 1) as f64;
    let (below, above) = (ascending[place.floor() as usize], ascending[place.ceil() as usize]);
    below + (above - below) * place.fract()
}
