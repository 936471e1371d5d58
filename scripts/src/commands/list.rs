//! `list` and `show`: which policies there are, and what one is made of.

use std::fmt::Write as _;

use crate::language::error::LoadError;
use crate::language::limits::Limits;
use crate::policy::ScriptPolicy;
use crate::policy::compose;
use crate::policy::part::Stage;
use crate::policy::shipped::{self, Shipped};

/// The groups of the list: a heading, and the stages that its scripts define; `None` for all others.
const GROUPS: [(&str, Option<&[Stage]>); 8] = [
    ("order: which job goes first", Some(&[Stage::Order])),
    ("admit: which jobs are taken on", Some(&[Stage::Admit])),
    ("allocate: how much each job gets", Some(&[Stage::Allocate])),
    ("place: on which GPUs jobs run", Some(&[Stage::Place])),
    ("level_model: which CPU and memory levels jobs get, asked for by opt", Some(&[Stage::LevelModel])),
    ("lease_model: which jobs hold which leases, asked for by chronus", Some(&[Stage::LeaseModel])),
    ("no stage: what holds for the whole policy", Some(&[])),
    ("several stages at once", None),
];

/// Every shipped script with its first sentence, by the stages it defines.
pub fn list() -> String {
    let mut text = String::new();
    let widest = shipped::ALL.iter().map(|script| script.name.len()).max().unwrap_or(0);
    let scripts: Vec<(&Shipped, Vec<Stage>)> =
        shipped::ALL.iter().map(|script| (script, stages(script))).collect();
    for (heading, wanted) in GROUPS {
        let is_here = |of: &[Stage]| match wanted {
            Some(wanted) => of == wanted,
            None => !GROUPS.iter().any(|(_, other)| *other == Some(of)),
        };
        let here: Vec<_> = scripts.iter().filter(|(_, of)| is_here(of)).collect();
        if !here.is_empty() {
            let _ = writeln!(text, "{}{heading}", if text.is_empty() { "" } else { "\n" });
        }
        for (script, of) in here {
            let several = match wanted {
                Some(_) => String::new(),
                None => format!(" ({})", of.iter().map(|stage| stage.name()).collect::<Vec<_>>().join(", ")),
            };
            let _ = writeln!(text, "  {:widest$}  {}{several}", script.name, script.summary());
        }
    }
    text.push_str(
        "\nJoin them by `+`, one for each stage, with files of your own among them: las+tune, srtf+greedy+consolidate, \
         fifo+no-preempt, ./mine.rhai+tune\n`rota policy show NAME` prints the source, `rota policy new --from NAME mine.rhai` \
         copies it.\n",
    );
    text
}

/// The stages of a script itself, not of the parts it is joined to by default.
fn stages(script: &Shipped) -> Vec<Stage> {
    let policy = ScriptPolicy::load(script.name, Limits::default());
    policy
        .map(|policy| policy.stages().into_iter().next().map(|(_, _, stages)| stages).unwrap_or_default())
        .unwrap_or_default()
}

/// The source of every part of a policy, header included: of one part exactly its text, of several each below a line with
/// its name, and below a variant the script that it is like.
pub fn show(name: &str) -> Result<String, LoadError> {
    let policy = ScriptPolicy::load(name, Limits::default())?;
    let mut shown: Vec<(String, String)> = Vec::new();
    for (source, (part, file, _)) in compose::sources(name)?.into_iter().zip(policy.stages()) {
        let is_variant = source.file != file;
        shown.push((format!("{part} ({})", source.file), source.text));
        if let Some(of) = shipped::ALL.iter().find(|script| is_variant && script.file == file) {
            shown.push((format!("what {part} is like: {} ({file})", of.name), of.source.to_owned()));
        }
    }
    if let [(_, text)] = shown.as_slice() {
        return Ok(text.clone());
    }
    let blocks: Vec<String> = shown.iter().map(|(title, text)| format!("// ==== {title}\n{text}")).collect();
    Ok(blocks.join("\n"))
}

/// The header, stages and parameters of every part of a policy.
pub fn about(name: &str) -> Result<String, LoadError> {
    let policy = ScriptPolicy::load(name, Limits::default())?;
    let params = policy.params();
    let mut text = String::new();
    for ((part, file, stages), header) in policy.stages().into_iter().zip(policy.headers()) {
        let stages: Vec<&str> = stages.iter().map(|stage| stage.name()).collect();
        let stages = if stages.is_empty() { "none".to_owned() } else { stages.join(", ") };
        let _ = writeln!(text, "{part} ({file})\n  stages: {stages}");
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
    if policy.keeps_running() {
        text.push_str("A job that runs goes on until it ends.\n");
    }
    let steady = if policy.is_steady() {
        "Rounds in which nothing changed are skipped."
    } else {
        "It is asked at every round."
    };
    let _ = writeln!(text, "{steady}");
    Ok(text)
}
