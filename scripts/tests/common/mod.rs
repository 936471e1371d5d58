//! What the tests of scripts share.

use rota_scripts::{Limits, ScriptPolicy, Source};

/// A policy of one script, `mine.rhai`, which compiles.
pub(crate) fn policy(text: &str, limits: Limits) -> ScriptPolicy {
    let source = Source { name: "mine".into(), file: "mine.rhai".into(), text: text.into() };
    ScriptPolicy::from_sources("mine", &[source], limits).unwrap_or_else(|error| panic!("{error}"))
}
