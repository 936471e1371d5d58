//! The order of jobs: the driver calls the scripts of `scripts/artifact/synergy`.

use std::sync::Arc;

use rhai::{CallFnOptions, Dynamic, Engine, EvalAltResult, Scope};
use rota_core::policy::PolicyError;
use rota_core::snapshot::Snapshot;
use rota_core::table::Field;

use super::scheme::OrderName;
use crate::artifact::{Defect, Defects};
use crate::language::engine;
use crate::language::error::{Explainer, LoadError};
use crate::language::limits::Limits;
use crate::language::reference::{Entry, Registrar};
use crate::language::session::{Session, Shared};
use crate::policy::part::{Part, Stage};
use crate::policy::shipped;
use crate::values::{Queue, View, register_column};

/// One of the original's orders as a script, with the verbs and limits of every policy script, and the column `last_rank`.
pub(super) struct ScriptedOrder {
    engine: Engine,
    shared: Arc<Shared>,
    entries: Vec<Entry>,
    part: Part,
}

macro_rules! scripts {
    ($($variant:ident => $name:literal),* $(,)?) => {
        /// Where an order is written, from the folder `scripts/`, and its text.
        fn script(order: OrderName) -> (&'static str, &'static str) {
            match order {
                $(OrderName::$variant => (
                    concat!("artifact/synergy/", $name, ".rhai"),
                    include_str!(concat!("../../../artifact/synergy/", $name, ".rhai")),
                )),*
            }
        }
    };
}

/// The script of the shipped policy, where the original's own has a defect that the run does not have.
fn mended(order: OrderName, defects: Defects) -> Option<(&'static str, &'static str)> {
    let defect = match order {
        OrderName::Ftf => Defect::FtfAscending,
        OrderName::Drf => Defect::DrfSort,
        OrderName::Tetris => Defect::TetrisProduct,
        OrderName::Fifo | OrderName::Srtf | OrderName::Las => return None,
    };
    let shipped = shipped::find(order.name()).filter(|_| !defects.has(defect))?;
    Some((shipped.file, shipped.source))
}

scripts! {
    Fifo => "fifo",
    Srtf => "srtf",
    Las => "las",
    Ftf => "ftf",
    Drf => "drf",
    Tetris => "tetris",
}

/// The column by which the original's stable sorts break ties: the position in the last round's order.
fn register_last_rank(registrar: &mut Registrar<'_>) {
    register_column(registrar, Field::LastRank, "last_rank", "Position in the last round's order.");
}

impl ScriptedOrder {
    /// The script of an order of the original.
    pub(super) fn new(order: OrderName, defects: Defects) -> Result<Self, LoadError> {
        let (file, text) = mended(order, defects).unwrap_or_else(|| script(order));
        let (engine, shared, entries) = engine::build_with(Limits::default(), register_last_rank);
        let (part, parameters) = Part::compile(&engine, &shared, &entries, order.name(), file, text)?;
        let mut state = shared.call_state();
        state.scripts.push(Arc::clone(&part.script));
        state.parameters.push(parameters);
        drop(state);
        Ok(ScriptedOrder { engine, shared, entries, part })
    }

    /// The rows of all jobs, most important first.
    pub(super) fn rows(&mut self, snapshot: &Snapshot) -> Result<Vec<u32>, PolicyError> {
        let session = Session::new(snapshot, &self.shared, None);
        self.shared.meter.start();
        {
            let mut state = self.shared.call_state();
            state.session = Some(Arc::clone(&session));
            state.n_rank_calls = 0;
        }
        let rows = self.call(&session);
        self.shared.call_state().session = None;
        rows.map_err(|error| self.explain(*error))
    }

    fn call(&self, session: &Arc<Session>) -> Result<Vec<u32>, Box<EvalAltResult>> {
        let arguments = (View(Arc::clone(session)).jobs(), session.snapshot.now.as_secs_f64());
        let options = CallFnOptions::new().eval_ast(self.part.has_constants);
        let stage = Stage::Order.name();
        let value: Dynamic = self.engine.call_fn_with_options(
            options,
            &mut Scope::new(),
            &self.part.script,
            stage,
            arguments,
        )?;
        Queue::from_value(session, value).map(|queue| Arc::unwrap_or_clone(queue.rows))
    }

    fn explain(&self, error: EvalAltResult) -> PolicyError {
        let parts = std::slice::from_ref(&self.part);
        let explainer = Explainer { parts, entries: &self.entries, meter: &self.shared.meter };
        PolicyError { message: explainer.explain(error, &self.part, Some(Stage::Order.name())).to_string() }
    }
}
