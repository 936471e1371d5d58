//! `check`: compile a policy and let it decide made-up instants, before anyone depends on it.

use rota_core::round::{self, RoundError};

use super::error::TryError;
use crate::commands::sample::{Size, snapshot};
use crate::language::limits::Limits;
use crate::policy::ScriptPolicy;

/// Compiles a policy and tries it on an empty, a half full and an overfull cluster.
pub fn check(name: &str) -> Result<String, TryError> {
    let mut policy = ScriptPolicy::load(name, Limits::default())?;
    let mut decided = Vec::new();
    for (instant_name, n_old, n_new) in [("nothing to do", 0, 0), ("half full", 8, 8), ("overfull", 60, 20)] {
        let instant = snapshot(Size { n_nodes: 4, n_old, n_new });
        let decision = round::decide(&instant, &mut policy).map_err(|error| match error {
            RoundError::Policy(error) => TryError::Failed { instant: instant_name, error },
            RoundError::Violation(violation) => TryError::Impossible { instant: instant_name, violation },
        })?;
        let n_runs = decision.checked.plan().run.len();
        decided.push(format!(
            "{instant_name}: {n_runs} of {} jobs run, {} operations",
            n_old + n_new,
            policy.operations()
        ));
    }
    Ok(format!("{name}: good\n  {}\n", decided.join("\n  ")))
}
