//! What the kernel knows of this process: CPU time of a thread, peak memory.

use std::time::Duration;

/// CPU time of this thread so far.
pub fn cpu_now() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux keeps this file");
    let nanos = text.split_whitespace().next().and_then(|n| n.parse().ok()).expect("nanoseconds on the CPU come first");
    Duration::from_nanos(nanos)
}

/// The most memory this process has had, in megabytes.
pub fn peak_memory_mb() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux keeps this file");
    let line = text.lines().find(|l| l.starts_with("VmHWM")).expect("a line for the peak");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).expect("kilobytes") / 1e3
}

/// Linear between neighbours.
pub fn quantile(ascending: &[f64], q: f64) -> f64 {
    let place = q * (ascending.len() - 1) as f64;
    let (below, above) = (ascending[place.floor() as usize], ascending[place.ceil() as usize]);
    below + (above - below) * place.fract()
}
