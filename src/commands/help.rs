//! What `rota --help` looks like: the commands in groups, built from the commands' own descriptions, and lists that help texts
//! share with error messages.

use std::fmt::Write as _;

use clap::Command;
use rota_scripts::shipped::{self, Role};

/// The groups in the order they are shown; every command that is not hidden is in one of them.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Simulate and study",
        &[
            "simulate",
            "compare",
            "play",
            "study",
            "reproduce",
            "report",
            "explain",
            "diff",
            "export",
            "conform",
        ],
    ),
    ("Policies", &["policy"]),
    ("Traces and profiles", &["trace", "profile"]),
    (
        "Live cluster",
        &[
            "up", "head", "pki", "join", "submit", "jobs", "logs", "cancel", "hold", "release", "requeue",
            "priority", "nodes", "drain", "give-up", "top", "events", "history", "whatif", "deploy",
            "replay", "web",
        ],
    ),
    ("Solver", &["solve"]),
    ("This installation", &["doctor", "completions", "man"]),
];

const EXAMPLES: &str = "\
Try:
  rota compare                         the shipped policies on 128 GPUs
  rota simulate -p las+tune --out out  one policy, with a report
  rota play --open                     edit a policy in the browser
  rota policy new mine.rhai            a policy of your own, ready to run
  rota compare -p fifo+tune,./mine.rhai+tune
  rota trace stats traces/data/synergy-100.csv
  rota up 2                            a live cluster of emulated GPUs
  rota doctor                          what works on this machine

`rota COMMAND --help` describes a command and all of its options.";

/// The command line with its commands in groups. Clap knows one list only, so the groups are text.
pub(super) fn grouped(command: Command) -> Command {
    let mut template = "{about}\n\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        let _ = writeln!(template, "\n{title}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(template, "  {name:<12} {about}");
        }
    }
    template.push_str("\nOptions:\n{options}\n\n");
    template.push_str(EXAMPLES);
    command.help_template(template)
}

/// The names of built-in things, as their error messages list them.
pub(super) fn names(built_in: &[(&str, &str)]) -> String {
    built_in.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The shipped scripts of a role.
pub(super) fn scripts(role: Role) -> String {
    let of_role = shipped::ALL.iter().filter(|script| script.role == role);
    of_role.map(|script| script.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
