//! Where skips are recorded, and which are not allowed.

use std::fs::OpenOptions;
use std::io::Write;

use crate::need::Thing;

/// Whether `ROTA_REQUIRE` asks for a thing.
pub(crate) fn is_required(thing: Thing) -> bool {
    std::env::var("ROTA_REQUIRE").is_ok_and(|list| requires(&list, thing))
}

/// A list of names, in which `all` means everything but time, and `-name` takes one away again.
fn requires(list: &str, thing: Thing) -> bool {
    let mut is_required = false;
    for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let (name, wanted) = word.strip_prefix('-').map_or((word, true), |name| (name, false));
        if name == "all" {
            is_required = wanted && thing != Thing::Time;
            continue;
        }
        let names = || Thing::ALL.map(Thing::name).join(", ");
        assert!(
            Thing::ALL.iter().any(|known| known.name() == name),
            "ROTA_REQUIRE: `{name}` is not one of all, {}",
            names()
        );
        if name == thing.name() {
            is_required = wanted;
        }
    }
    is_required
}

/// Appends the reason and the test to the file that `ROTA_SKIPS` names; without one, prints them.
pub(crate) fn record(why: &str) {
    let thread = std::thread::current();
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_stem()).unwrap_or_default().to_string_lossy();
    // Cargo appends a hash to the name of a test's program.
    let binary = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    let test = format!("{binary}::{}", thread.name().unwrap_or("main"));
    // One write for a line: tests of several processes append at the same time.
    match std::env::var_os("ROTA_SKIPS") {
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(&path);
            let written = file.and_then(|mut file| file.write_all(format!("{why}\t{test}\n").as_bytes()));
            written.unwrap_or_else(|error| panic!("ROTA_SKIPS={}: {error}", path.display()));
        }
        // Not `eprintln`: its text is not shown for a test that passes.
        None => drop(std::io::stderr().write_all(format!("{test} did not run: {why}\n").as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_everything_but_time_and_single_things_are_added_or_taken_away() {
        assert!(requires("all", Thing::Podman) && requires("all", Thing::Shared));
        assert!(!requires("all", Thing::Time) && requires("all,time", Thing::Time));
        assert!(!requires("all,-shared", Thing::Shared) && requires("all,-shared", Thing::Podman));
        assert!(requires("numpy, slurm", Thing::Slurm) && !requires("numpy, slurm", Thing::Podman));
        assert!(!requires("", Thing::Podman));
    }

    #[test]
    #[should_panic(expected = "`podmann` is not one of all, shared, podman")]
    fn an_unknown_name_is_refused() {
        requires("podmann", Thing::Podman);
    }
}
