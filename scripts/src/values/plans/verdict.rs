//! Verdicts: what an `admit` stage answers.

use rhai::ImmutableString;

use crate::language::reference::Registrar;

/// The answer to a job that asks for admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VerdictValue {
    /// It may run.
    Accept,
    /// It is refused for good.
    Decline(String),
    /// It is asked about again at the next decision.
    Wait,
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    registrar.class::<VerdictValue>("Verdict", "The answer of an `admit` stage: one of the three below.");
    registrar
        .function("accept() -> Verdict", "The job may run.")
        .register_fn("accept", || VerdictValue::Accept);
    registrar
        .function("decline(reason: String) -> Verdict", "The job is refused for good.")
        .register_fn("decline", |reason: ImmutableString| VerdictValue::Decline(reason.to_string()));
    registrar
        .function("wait() -> Verdict", "The job is asked about again at the next decision.")
        .register_fn("wait", || VerdictValue::Wait);
}
