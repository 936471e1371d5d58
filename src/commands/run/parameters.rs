//! `--set` with several policies: each gets the parameters that it has; a parameter that none has is refused.

use anyhow::{Context, Result, anyhow};
use rota_scripts::{Limits, ScriptPolicy, SetError};

/// The only key that is not a parameter of a script.
const COMPAT: &str = "compat";

/// `--set` options as pairs.
pub(crate) fn parse_set(set: &[String]) -> Result<Vec<(String, String)>> {
    let pair = |text: &String| {
        let (key, value) = text.split_once('=').ok_or_else(|| anyhow!("--set {text}: write KEY=VALUE"))?;
        Ok((key.trim().to_owned(), value.trim().to_owned()))
    };
    set.iter().map(pair).collect()
}

/// A policy with those of the parameters set that it has; the others belong to other policies.
pub(crate) fn load_policy(name: &str, set: &[String]) -> Result<ScriptPolicy> {
    Ok(load(name, set)?.0)
}

/// Those of the options that a policy has a parameter for.
pub(crate) fn own(policy: &str, set: &[String]) -> Result<Vec<String>> {
    let (_, foreign) = load(policy, set)?;
    let is_own = |(at, _): &(usize, &String)| !foreign.contains(at);
    Ok(set.iter().enumerate().filter(is_own).map(|(_, option)| option.clone()).collect())
}

/// Every policy compiles, and every option is a parameter of at least one of them. What is to be said against them.
pub(crate) fn check(policies: &[String], set: &[String]) -> Result<Vec<String>> {
    let loaded: Vec<_> = policies.iter().map(|policy| load(policy, set)).collect::<Result<_>>()?;
    for (at, (key, value)) in parse_set(set)?.into_iter().enumerate() {
        if !loaded.is_empty() && loaded.iter().all(|(_, foreign)| foreign.contains(&at)) {
            let parameters: Vec<_> = loaded.iter().flat_map(|(policy, _)| policy.params()).collect();
            let mut known: Vec<&str> = parameters.iter().map(|(_, p)| p.name.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            let error = SetError::unknown(&key, policies.join(" or "), &known);
            return Err(error).with_context(|| format!("--set {key}={value}"));
        }
    }
    let warnings = loaded.iter().zip(policies);
    Ok(warnings
        .flat_map(|((policy, _), name)| policy.warnings().into_iter().map(move |w| format!("{name}: {w}")))
        .collect())
}

/// A policy with its own parameters set, and the positions of the options that it does not know.
fn load(name: &str, set: &[String]) -> Result<(ScriptPolicy, Vec<usize>)> {
    let mut policy = ScriptPolicy::load(name, Limits::default())?;
    let mut foreign = Vec::new();
    for (at, (key, value)) in parse_set(set)?.into_iter().enumerate().filter(|(_, (key, _))| key != COMPAT) {
        match policy.set(&key, &value) {
            Err(SetError::Unknown { .. }) => foreign.push(at),
            set => set.with_context(|| format!("--set {key}={value}"))?,
        }
    }
    Ok((policy, foreign))
}
