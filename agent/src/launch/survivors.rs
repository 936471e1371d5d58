//! Finding and ending processes that would outlive their launch.
//!
//! A shim is a subreaper: whatever its ranks started and left, sessions of their own included, becomes its child. So
//! killing its children until there are none leaves nothing. Where the shim itself is gone, the mark that every process
//! of a launch carries in its environment finds the rest.

use std::fs;

use rustix::process::{Pid, Signal};

use super::environment::ATTEMPT_VARIABLE;

/// The children of this process, those included that it inherited.
pub fn children() -> Vec<Pid> {
    let me = rustix::process::getpid().as_raw_nonzero();
    match fs::read_to_string(format!("/proc/{me}/task/{me}/children")) {
        Ok(text) => text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect(),
        // Kernels without that list.
        Err(_) => all().filter(|pid| parent_of(*pid) == Some(me.get())).collect(),
    }
}

/// Kills all children of this process. What they leave behind becomes a child in turn: repeat until none is left.
pub fn kill_children() {
    for child in children() {
        // It is no error if one has ended meanwhile.
        let _ = rustix::process::kill_process(child, Signal::KILL);
    }
}

/// Processes that carry a launch's mark in their environment.
pub fn marked(mark: &str) -> Vec<Pid> {
    let variable = format!("{ATTEMPT_VARIABLE}={mark}");
    let carries = |pid: &Pid| {
        fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()))
            .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes()))
    };
    all().filter(carries).collect()
}

/// A variable in the environment that a process was started with.
pub fn variable(pid: Pid, name: &str) -> Option<String> {
    let environ = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
    let value = |entry: &[u8]| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
    String::from_utf8(environ.split(|byte| *byte == 0).find_map(value)?).ok()
}

/// When a process was started, in ticks since the machine was: with its number it is unique until the next boot.
pub fn start_time(pid: Pid) -> Option<u64> {
    fields_after_name(pid)?.split_whitespace().nth(19)?.parse().ok()
}

/// Whether a process lives: one that has ended and was not yet waited for does not.
pub fn is_alive(pid: Pid, started: u64) -> bool {
    let lives = |fields: String| !matches!(fields.split_whitespace().next(), Some("Z" | "X") | None);
    start_time(pid) == Some(started) && fields_after_name(pid).is_some_and(lives)
}

fn parent_of(pid: Pid) -> Option<i32> {
    fields_after_name(pid)?.split_whitespace().nth(1)?.parse().ok()
}

/// The fields of `stat` from the state on: the name before them may hold anything.
fn fields_after_name(pid: Pid) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    stat.rsplit_once(')').map(|(_, fields)| fields.to_owned())
}

fn all() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_known_by_number_and_start() {
        let me = rustix::process::getpid();
        let started = start_time(me).expect("of this process");
        assert!(is_alive(me, started));
        assert!(!is_alive(me, started + 1), "another process with that number");
    }

    #[test]
    fn a_mark_finds_exactly_its_processes() {
        let mark = format!("1.1@/marked/{}", std::process::id());
        let mut child =
            Command::new("sleep").arg("60").env(ATTEMPT_VARIABLE, &mark).spawn().expect("sleep starts");
        // A process shows its environment a moment after it has started.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let mut found = marked(&mark);
        while found.is_empty() && std::time::Instant::now() < until {
            found = marked(&mark);
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        let pids: Vec<u32> = found.iter().map(|pid| pid.as_raw_nonzero().get() as u32).collect();
        assert_eq!(pids, [child.id()]);
        assert_eq!(marked(&mark), []);
    }
}
