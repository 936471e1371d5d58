//! Memory of all processes of a launch, where no control group counts it.

use std::fs;

use rustix::process::Pid;

use crate::launch::survivors;

/// Bytes that the processes with a launch's mark hold now; shared pages count by their share where the kernel
/// reports it.
pub(super) fn in_use(mark: &str) -> u64 {
    survivors::marked(mark).into_iter().map(of_process).sum()
}

fn of_process(pid: Pid) -> u64 {
    let folder = format!("/proc/{}", pid.as_raw_nonzero());
    let proportional = fs::read_to_string(format!("{folder}/smaps_rollup")).ok();
    let proportional = proportional.as_deref().and_then(|text| kilobytes(text, "Pss:"));
    let resident = || kilobytes(&fs::read_to_string(format!("{folder}/status")).ok()?, "VmRSS:");
    proportional.or_else(resident).unwrap_or(0) * 1024
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory() {
        let own = of_process(rustix::process::getpid());
        assert!(own > 100_000, "{own} bytes");
        assert_eq!(kilobytes("Rss: 7 kB\nPss:    12 kB\n", "Pss:"), Some(12));
    }
}
