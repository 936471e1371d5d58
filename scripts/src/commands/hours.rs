//! A policy over some hours of a small cluster: what it remembers, what becomes of jobs that end, and whether it keeps its promise
//! to be steady show only over several rounds.

use std::sync::Arc;

use rota_core::ledger::Ledger;
use rota_core::simulation::{RunSettings, Simulation, SimulationError};

use super::error::TryError;
use crate::commands::sample;
use crate::language::error::{LoadError, at};
use crate::language::limits::Limits;
use crate::language::names::habits::changing;
use crate::language::trace::Trace;
use crate::policy::ScriptPolicy;
use crate::policy::part::Stage;

/// More decisions than any shipped policy needs for the jobs of this world.
const MOST_DECISIONS: u64 = 200;

const INSTANT: &str = "a small cluster over some hours";

/// Lets a policy run; an error where it fails, or where passing rounds over changes what it does although it says that it is steady.
pub(super) fn try_for_hours(policy: &ScriptPolicy, trace: &Arc<Trace>) -> Result<(), TryError> {
    let mut watched = policy.watched_copy(Limits::default(), trace)?;
    let every_round = match run(&mut watched, false) {
        Ok(ledger) => ledger,
        // A copy that is not watched says where it was at a limit.
        Err(error) => return Err(failed(run(&mut plain(policy)?, false).err().unwrap_or(error))),
    };
    let Some(every_round) = every_round.filter(|_| policy.is_steady()) else { return Ok(()) };
    let skipping = run(&mut plain(policy)?, true).map_err(failed)?;
    match skipping {
        Some(skipping) if skipping.digest != every_round.digest => Err(unsteady(policy)),
        _ => Ok(()),
    }
}

fn plain(policy: &ScriptPolicy) -> Result<ScriptPolicy, LoadError> {
    ScriptPolicy::from_sources(policy.name(), &policy.texts(), Limits::default())
}

/// What came of the run; nothing where the policy leaves jobs behind.
fn run(policy: &mut ScriptPolicy, skips_rounds: bool) -> Result<Option<Ledger>, SimulationError> {
    let (cluster, workload) = sample::hours();
    let settings = RunSettings { skips_rounds, ..RunSettings::default() };
    let n_jobs = workload.jobs.len();
    let mut simulation = Simulation::new(cluster, workload, Vec::new(), policy, &settings);
    while simulation.progress().n_decisions < MOST_DECISIONS && simulation.step()? {}
    let is_over = simulation.progress().n_ended == n_jobs;
    let ledger = simulation.close();
    Ok(is_over.then_some(ledger))
}

fn failed(error: SimulationError) -> TryError {
    match error {
        SimulationError::Policy { now, error, .. } => {
            TryError::Failed { instant: INSTANT, setting: format!(", at {now} s"), error }
        }
        SimulationError::Violation { now, violation, .. } => {
            TryError::Impossible { instant: INSTANT, setting: format!(", at {now} s"), violation }
        }
    }
}

/// Who is to blame: the first part with something that changes with time, else the first.
fn unsteady(policy: &ScriptPolicy) -> TryError {
    let mut parts = policy.parts.iter().filter(|part| part.stages != [Stage::Admit]);
    let guilty = parts.find_map(|part| changing(part).map(|what| (part, what)));
    let what = guilty.as_ref().and_then(|(_, (name, position))| Some((name, position.line()?)));
    let hint = match what {
        Some((name, line)) => format!("`{name}` in line {line} changes with time: leave `steady();` out"),
        None => "leave `steady();` out".to_owned(),
    };
    let part = guilty.map_or(&policy.parts[0], |(part, _)| part);
    let message = "`steady()` promises that time alone changes nothing, and a run in which such rounds are passed over ends \
                   otherwise than one in which all are asked";
    let position = part.position_of_text("steady()");
    LoadError::Script(at(part, position, message.to_owned(), Some(hint), None)).into()
}
