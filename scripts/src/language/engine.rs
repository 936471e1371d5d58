//! The Rhai engine: no clock, no files, no modules, no `eval`; limits on everything; our verbs.

use std::sync::Arc;

use rhai::module_resolvers::DummyModuleResolver;
use rhai::packages::{
    ArithmeticPackage, BasicArrayPackage, BasicFnPackage, BasicIteratorPackage, BasicMapPackage,
    BasicMathPackage, BasicStringPackage, LanguageCorePackage, LogicPackage, MoreStringPackage, Package,
};
use rhai::{Engine, OptimizationLevel};

use crate::language::limits::Limits;
use crate::language::reference::{Entry, Registrar};
use crate::language::session::{Outcome, Shared, fail};
use crate::language::{arrays, operators, parameters, texts};
use crate::policy::variant;
use crate::values;

/// An engine with everything a policy may use, and the table of it.
pub(crate) fn build(limits: Limits) -> (Engine, Arc<Shared>, Vec<Entry>) {
    build_with(limits, |_| {})
}

/// The same with verbs of its own, which no other script can use.
pub(crate) fn build_with(
    limits: Limits,
    own_verbs: impl FnOnce(&mut Registrar<'_>),
) -> (Engine, Arc<Shared>, Vec<Entry>) {
    let shared = Shared::new(limits);
    let mut engine = Engine::new_raw();
    add_packages(&mut engine);
    replace_builtins(&mut engine, &shared);
    set_limits(&mut engine, &shared);
    let mut registrar = Registrar::new(&mut engine);
    values::register(&mut registrar, &shared);
    parameters::register(&mut registrar, &shared);
    variant::register(&mut registrar, &shared);
    own_verbs(&mut registrar);
    let notes = Arc::clone(&shared);
    registrar
        .function("print(value)", "A line for the record of this round (`debug` too); nothing is printed.")
        .on_print(move |line| notes.note(line));
    let notes = Arc::clone(&shared);
    registrar.engine().on_debug(move |line, _, position| notes.note(&format!("{position}: {line}")));
    let entries = registrar.into_entries();
    (engine, shared, entries)
}

/// An engine that only reads: it takes variables for granted, and neither folds nor runs anything.
pub(crate) fn reader() -> Engine {
    let mut engine = Engine::new_raw();
    operators::register(&mut engine);
    engine.set_optimization_level(OptimizationLevel::None).set_max_expr_depths(64, 64);
    engine
}

pub(crate) fn add_packages(engine: &mut Engine) {
    // The time package is left out, and blobs and bit fields, which no policy needs.
    LanguageCorePackage::new().register_into_engine(engine);
    ArithmeticPackage::new().register_into_engine(engine);
    LogicPackage::new().register_into_engine(engine);
    BasicMathPackage::new().register_into_engine(engine);
    BasicStringPackage::new().register_into_engine(engine);
    MoreStringPackage::new().register_into_engine(engine);
    BasicIteratorPackage::new().register_into_engine(engine);
    BasicFnPackage::new().register_into_engine(engine);
    BasicArrayPackage::new().register_into_engine(engine);
    BasicMapPackage::new().register_into_engine(engine);
    for symbol in ["eval", "import", "export"] {
        engine.disable_symbol(symbol);
    }
    engine.set_module_resolver(DummyModuleResolver::new());
    // The language package can put the thread to sleep; a policy has no clock.
    engine.register_fn("sleep", |_: i64| -> Outcome<()> { fail("a script cannot sleep: it has no clock") });
    engine.register_fn("sleep", |_: f64| -> Outcome<()> { fail("a script cannot sleep: it has no clock") });
}

/// Puts operators and functions of ours in the place of Rhai's where those are silently wrong.
pub(crate) fn replace_builtins(engine: &mut Engine, shared: &Arc<Shared>) {
    operators::register(engine);
    arrays::register(engine, shared);
    texts::register(engine, shared);
}

pub(crate) fn set_limits(engine: &mut Engine, shared: &Arc<Shared>) {
    let limits = shared.meter.limits().clone();
    engine
        .set_strict_variables(true)
        .set_optimization_level(OptimizationLevel::Simple)
        .set_max_modules(0)
        .set_max_functions(500)
        .set_max_expr_depths(64, 64)
        .set_max_call_levels(limits.call_depth)
        .set_max_variables(limits.variables)
        .set_max_string_size(limits.string_bytes)
        .set_max_array_size(limits.array_items)
        .set_max_map_size(limits.map_entries);
    let meter = Arc::clone(shared);
    engine.on_progress(move |_| meter.meter.tick());
}
