//! The order of jobs: the driver calls the scripts of `scripts/artifact/synergy`.

use std::sync::{Arc, Mutex, PoisonError};

use rhai::{CallFnOptions, Dynamic, Engine, EvalAltResult, Scope};
use rota_core::policy::PolicyError;
use rota_core::snapshot::Snapshot;

use super::scheme::OrderName;
use crate::artifact::{Defect, Defects};
use crate::language::engine;
use crate::language::error::{Explainer, LoadError};
use crate::language::limits::Limits;
use crate::language::reference::{Entry, Registrar};
use crate::language::session::{Session, Shared};
use crate::policy::part::{Part, Stage};
use crate::policy::shipped;
use crate::values::{Column, Jobs, Queue, View};

/// One of the original's orders as a script, with the verbs and limits of every policy script, and the column `last_rank`.
pub(super) struct ScriptedOrder {
    engine: Engine,
    shared: Arc<Shared>,
    entries: Vec<Entry>,
    part: Part,
    ranks: LastRanks,
}

/// The position of every job, by id, in the last round's order. The original appends new jobs to the list that it sorts
/// in place: until they have been sorted once, they come after all others.
#[derive(Clone)]
struct LastRanks(Arc<Mutex<Vec<f64>>>);

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

impl LastRanks {
    fn new(n_jobs: usize) -> Self {
        LastRanks(Arc::new(Mutex::new((n_jobs..2 * n_jobs).map(|rank| rank as f64).collect())))
    }

    /// Gives scripts the column by which the original's stable sorts break ties.
    fn register(&self, registrar: &mut Registrar<'_>) {
        let LastRanks(ranks) = self.clone();
        registrar.field("Jobs", "last_rank: Column", "Position in the last round's order.").register_get(
            "last_rank",
            move |jobs: &mut Jobs| {
                let ranks = ranks.lock().unwrap_or_else(PoisonError::into_inner);
                let table = &jobs.session.snapshot.jobs;
                Column::compute(jobs, jobs.rows().map(|row| ranks[table.id(row).index()]))
            },
        );
    }

    fn keep(&self, snapshot: &Snapshot, order: &[u32]) {
        let mut ranks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (rank, row) in order.iter().enumerate() {
            ranks[snapshot.jobs.id(*row as usize).index()] = rank as f64;
        }
    }
}

impl ScriptedOrder {
    /// The script of an order of the original, for a workload of so many jobs.
    pub(super) fn new(order: OrderName, defects: Defects, n_jobs: usize) -> Result<Self, LoadError> {
        let (file, text) = mended(order, defects).unwrap_or_else(|| script(order));
        let ranks = LastRanks::new(n_jobs);
        let (engine, shared, entries) =
            engine::build_with(Limits::default(), |registrar| ranks.register(registrar));
        let (part, parameters) = Part::compile(&engine, &shared, &entries, order.name(), file, text)?;
        let mut state = shared.call_state();
        state.scripts.push(Arc::clone(&part.script));
        state.parameters.push(parameters);
        drop(state);
        Ok(ScriptedOrder { engine, shared, entries, part, ranks })
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
        let rows = rows.map_err(|error| self.explain(*error))?;
        self.ranks.keep(snapshot, &rows);
        Ok(rows)
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
