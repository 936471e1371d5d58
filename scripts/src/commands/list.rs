//! `list` and `show`: which policies there are, and what one is made of.

use std::fmt::Write as _;

use crate::language::error::LoadError;
use crate::language::limits::Limits;
use crate::policy::ScriptPolicy;
use crate::policy::shipped::{self, Role};

/// Every shipped script with its first sentence, by what it is for.
pub fn list() -> String {
    let mut text = String::new();
    let widest = shipped::ALL.iter().map(|script| script.name.len()).max().unwrap_or(0);
    for role in [Role::Policy, Role::Admission, Role::Allocation, Role::Placement] {
        let scripts: Vec<_> = shipped::ALL.iter().filter(|script| script.role == role).collect();
        if !scripts.is_empty() {
            let _ = writeln!(text, "{}", role.folder());
        }
        for script in scripts {
            let _ = writeln!(text, "  {:widest$}  {}", script.name, script.summary());
        }
    }
    text.push_str("\nJoin them by `+`, with files of your own among them: las+tune, srtf+greedy+consolidate, ./mine.rhai+tune\n");
    text
}

/// The header, stages and parameters of every part of a policy.
pub fn show(name: &str) -> Result<String, LoadError> {
    let policy = ScriptPolicy::load(name, Limits::default())?;
    let params = policy.params();
    let mut text = String::new();
    for ((part, file, stages), header) in policy.stages().into_iter().zip(policy.headers()) {
        let stages: Vec<&str> = stages.iter().map(|stage| stage.name()).collect();
        let _ = writeln!(text, "{part} ({file})\n  stages: {}", stages.join(", "));
        for line in header.lines() {
            let _ = writeln!(text, "  {line}");
        }
        for (_, parameter) in params.iter().filter(|(of, _)| *of == part) {
            let (name, value, domain, about) =
                (&parameter.name, &parameter.default, &parameter.domain, &parameter.about);
            let _ = writeln!(text, "  --set {name}={value}  ({domain}) {about}");
        }
        text.push('\n');
    }
    let steady = if policy.is_steady() {
        "Rounds in which nothing changed are skipped."
    } else {
        "It is asked at every round."
    };
    let _ = writeln!(text, "{steady}");
    Ok(text)
}
