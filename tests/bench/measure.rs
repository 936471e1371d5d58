//! What the kernel knows of this process: CPU time of a thread, peak memory.

use std::time::Duration;

/// CPU time of this thread so far.
pub(crate) fn cpu_now() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux keeps this file");
    let nanos = text
        .split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .expect("nanoseconds on the CPU come first");
    Duration::from_nanos(nanos)
}

/// CPU time of all threads of this process so far, to a hundredth of a second.
pub(crate) fn process_cpu_now() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").expect("Linux keeps this file");
    let fields = text.rsplit(')').next().expect("fields follow the name in brackets");
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
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
