//! `check`: compile a policy, compare the names in it with what there is, and let it decide made-up instants, before
//! anyone depends on it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use rota_core::policy::{Policy, PolicyError};
use rota_core::round::{self, RoundError};
use rota_core::snapshot::Snapshot;

use super::error::TryError;
use super::hours;
use crate::commands::sample::{Size, snapshot, varied};
use crate::language::error::LoadError;
use crate::language::limits::Limits;
use crate::language::names;
use crate::language::parameters::{Domain, Value};
use crate::language::trace::Trace;
use crate::policy::ScriptPolicy;
use crate::policy::compose::Source;
use crate::policy::part::Part;

/// Compiles a policy, checks its names, and tries it on several clusters, over some hours of a small one, and with each value of a
/// parameter that is a word or a switch. Lines that none of this ran are listed: of them only the names are known to be right.
pub fn check(name: &str) -> Result<String, TryError> {
    let policy = ScriptPolicy::load(name, Limits::default())?;
    let wrong = wrong_names(&policy);
    if !wrong.is_empty() {
        return Err(TryError::Names(wrong));
    }
    let trace = Arc::new(Trace::default());
    let mut decided = Vec::new();
    let instants = instants();
    for (instant_name, instant) in &instants {
        // What it remembers of one cluster would be wrong on the next.
        let mut watched = policy.watched_copy(Limits::default(), &trace)?;
        let n_runs = decide(&mut watched, &policy, instant_name, instant, None)?;
        let n_jobs = instant.jobs.len();
        decided.push(format!(
            "{instant_name}: {n_runs} of {n_jobs} jobs run, {} operations",
            watched.operations()
        ));
    }
    hours::try_for_hours(&policy, &trace)?;
    let mut n_settings = 0;
    for (key, value) in other_values(&policy) {
        n_settings += 1;
        for (instant_name, instant) in &instants {
            let mut watched = policy.watched_copy(Limits::default(), &trace)?;
            // A parameter is one of a part that the policy has, and the value one of those that it may have.
            let _ = watched.set(&key, &value);
            decide(&mut watched, &policy, instant_name, instant, Some((&key, &value)))?;
        }
    }
    let mut text = format!("{name}: good\n  {}\n", decided.join("\n  "));
    if n_settings > 0 {
        let _ = writeln!(text, "  tried with {n_settings} other values of its parameters");
    }
    text.push_str(&never_run(&policy, &trace));
    Ok(text)
}

/// What is wrong with a policy's texts without running it: why it cannot be made, or every wrong name in it. The policy where
/// nothing is.
pub fn diagnose(name: &str, sources: &[Source], limits: Limits) -> Result<ScriptPolicy, Vec<LoadError>> {
    let policy = ScriptPolicy::from_sources(name, sources, limits).map_err(|error| vec![error])?;
    let wrong = wrong_names(&policy);
    if wrong.is_empty() { Ok(policy) } else { Err(wrong.into_iter().map(LoadError::Script).collect()) }
}

fn instants() -> Vec<(&'static str, Snapshot)> {
    let of = |n_old, n_new| snapshot(Size { n_nodes: 4, n_old, n_new });
    vec![
        ("an empty cluster", of(0, 0)),
        ("a half full one", of(8, 8)),
        ("an overfull one", of(60, 20)),
        ("one with deadlines, elastic jobs, two GPU types and a lost node", varied()),
    ]
}

/// How many jobs the plan runs.
fn decide(
    watched: &mut ScriptPolicy,
    policy: &ScriptPolicy,
    on: &'static str,
    instant: &Snapshot,
    set: Option<(&str, &str)>,
) -> Result<usize, TryError> {
    let setting = set.map_or_else(String::new, |(key, value)| format!(", with --set {key}={value}"));
    let decision = round::decide(instant, watched).map_err(|error| match error {
        RoundError::Policy(error) => {
            let error = explained(policy, instant, set).unwrap_or(error);
            TryError::Failed { instant: on, setting, error }
        }
        RoundError::Violation(violation) => TryError::Impossible { instant: on, setting, violation },
    })?;
    Ok(decision.checked.plan().run.len())
}

/// The error again from a copy that is not watched: at a limit only that one says where it was and where its operations went.
fn explained(policy: &ScriptPolicy, instant: &Snapshot, set: Option<(&str, &str)>) -> Option<PolicyError> {
    let mut plain = ScriptPolicy::from_sources(policy.name(), &policy.texts(), Limits::default()).ok()?;
    if let Some((key, value)) = set {
        plain.set(key, value).ok()?;
    }
    plain.decide(instant).err()
}

/// Every wrong name, in the order of the parts.
fn wrong_names(policy: &ScriptPolicy) -> Vec<crate::ScriptError> {
    wrong_names_of(policy, |_| true)
}

/// Every wrong name in some of the parts.
pub(crate) fn wrong_names_of(
    policy: &ScriptPolicy,
    is_meant: impl Fn(&Part) -> bool,
) -> Vec<crate::ScriptError> {
    let parameters = policy.shared.call_state().parameters.clone();
    let names = |part: usize| -> Vec<String> { parameters[part].iter().map(|p| p.name.clone()).collect() };
    let parts = policy.parts.iter().enumerate().filter(|(_, part)| is_meant(part));
    parts
        .flat_map(|(index, part)| names::check(&policy.engine, &policy.entries, part, &names(index)))
        .collect()
}

/// Parameters that are words or switches with each value besides their own.
fn other_values(policy: &ScriptPolicy) -> Vec<(String, String)> {
    let mut values = Vec::new();
    for (part, parameter) in policy.params() {
        let key = format!("{part}.{}", parameter.name);
        let own = parameter.value.to_string();
        match (&parameter.domain, &parameter.value) {
            (Domain::OneOf(words), _) => {
                values.extend(
                    words.iter().filter(|word| **word != own).map(|word| (key.clone(), word.clone())),
                );
            }
            (Domain::Switch, Value::Switch(is_on)) => values.push((key, (!is_on).to_string())),
            _ => {}
        }
    }
    values
}

/// The lines with code that no run came to.
fn never_run(policy: &ScriptPolicy, trace: &Trace) -> String {
    let watched = trace.watched();
    let mut text = String::new();
    for part in &policy.parts {
        let missed: Vec<usize> = watched.tally.missed(&part.file);
        let source: Vec<&str> = part.source.lines().collect();
        let is_code =
            |line: &&usize| source.get(**line - 1).is_some_and(|text| !text.trim_start().starts_with("fn "));
        let missed: BTreeSet<usize> = missed.iter().filter(is_code).copied().collect();
        if !missed.is_empty() {
            let lines: Vec<String> = missed.iter().map(usize::to_string).collect();
            let _ = writeln!(text, "  {}: not run, names checked only: line {}", part.file, lines.join(", "));
        }
    }
    text
}
