//! What a script's author reads when something is wrong: each message in full.

mod habits;
mod keys;
mod names;
mod parameters;
mod plans;
mod walls;

use rota_core::policy::Policy;
use rota_scripts::sample::{Size, snapshot};
use rota_scripts::{Limits, ScriptPolicy, Source};

fn policy(text: &str) -> Result<ScriptPolicy, rota_scripts::LoadError> {
    let source = Source { name: "mine".into(), file: "mine.rhai".into(), text: text.into() };
    ScriptPolicy::from_sources("mine", &[source], Limits::default())
}

/// The message of the script's decision on a small instant.
fn error_of(text: &str) -> String {
    let instant = snapshot(Size { n_nodes: 1, n_old: 3, n_new: 2 });
    match policy(text) {
        Err(error) => error.to_string(),
        Ok(mut policy) => match policy.decide(&instant) {
            Err(error) => error.message,
            Ok(plan) => panic!("no error, but {plan:?}"),
        },
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let got = error_of(text);
    assert!(got == expected, "\n--- expected\n{expected}\n--- got\n{got}\n---");
}
