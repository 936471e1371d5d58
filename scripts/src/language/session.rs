//! What script values share: the instant being decided, the meter, and the state of the decision under way.
//!
//! Rhai values must own what they refer to, so everything a script holds carries a counted reference to the
//! [`Session`] of its decision. The session ends with the decision: nothing of it may be kept in private memory.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rhai::{AST, Dynamic, Engine, EvalAltResult, FnPtr, FuncArgs, ImmutableString, Position};
use rota_core::ids::TenantId;
use rota_core::room::Room;
use rota_core::snapshot::Snapshot;
use rota_core::table::{Field, JobPhase};
use rota_core::timeline::{Ahead, SpeedTable};

use crate::language::limits::{Limits, Meter};
use crate::language::parameters::{Declarations, Parameter};
use crate::models::leases::LeaseBook;
use crate::policy::account::Notes;
use crate::policy::asking::AskedModel;
use crate::policy::solving::Solving;
use crate::values::{AskedBefore, Judged, Kept, Placement, Rows};

/// The result of anything a script calls.
pub(crate) type Outcome<T> = Result<T, Box<EvalAltResult>>;

/// An error with a message; Rhai adds the position of the call.
#[cold]
pub(crate) fn fail<T>(message: impl Into<String>) -> Outcome<T> {
    Err(Box::new(EvalAltResult::ErrorRuntime(Dynamic::from(message.into()), Position::NONE)))
}

/// What lives as long as an engine: registered verbs hold it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) meter: Meter,
    /// The solver of models.
    pub(crate) solving: Solving,
    call_state: Mutex<CallState>,
    /// The last answer of a closure of `place_by`.
    asked_before: Mutex<Option<AskedBefore>>,
    /// The last lease book with the text it was remembered as: reading that text again would give the same.
    book: Mutex<Option<(ImmutableString, Arc<LeaseBook>)>>,
}

/// State of the engine that changes while scripts are loaded and called.
#[derive(Debug, Default)]
pub(crate) struct CallState {
    /// The decision under way.
    pub(crate) session: Option<Arc<Session>>,
    /// The part whose code runs.
    pub(crate) part: usize,
    /// Compiled parts; closures run in the one they were written in.
    pub(crate) scripts: Vec<Arc<AST>>,
    /// Models that verbs ask for.
    pub(crate) models: Vec<AskedModel>,
    /// Parameters of each part.
    pub(crate) parameters: Vec<Vec<Parameter>>,
    /// Set while the top level of a part is run to see what it declares.
    pub(crate) declarations: Option<Declarations>,
    /// Lines of `print`.
    pub(crate) notes: Vec<String>,
    /// Job ids as the last decision's `rank` calls left them, one list for each call.
    pub(crate) rank_hints: Vec<Vec<u32>>,
    /// `rank` calls of this decision so far.
    pub(crate) n_rank_calls: usize,
    /// How the decision comes about, where somebody looks.
    pub(crate) account: Option<Notes>,
}

impl Shared {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Shared {
            meter: Meter::new(limits),
            solving: Solving::default(),
            call_state: Mutex::default(),
            asked_before: Mutex::default(),
            book: Mutex::default(),
        })
    }

    /// Never held while script code runs, so that it cannot deadlock.
    pub(crate) fn call_state(&self) -> MutexGuard<'_, CallState> {
        self.call_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The placement that a closure of `place_by` returned last, if it would return the same now.
    pub(crate) fn placed_before(&self, closure: &Closure) -> Outcome<Option<Placement>> {
        let kept = self.asked_before.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map_or(Ok(None), |before| before.answer(&self.meter, closure))
    }

    pub(crate) fn keep_placement(&self, answer: Option<AskedBefore>) {
        *self.asked_before.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    /// Keeps a lease book with the text that a script remembers it by.
    pub(crate) fn keep_book(&self, text: ImmutableString, book: Arc<LeaseBook>) {
        *self.book.lock().unwrap_or_else(PoisonError::into_inner) = Some((text, book));
    }

    /// The book kept last, if it was remembered as this text.
    pub(crate) fn kept_book(&self, text: &ImmutableString) -> Option<Arc<LeaseBook>> {
        let kept = self.book.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.filter(|(kept, _)| kept == text).map(|(_, book)| book)
    }

    /// The decision under way.
    pub(crate) fn session(&self) -> Outcome<Arc<Session>> {
        match &self.call_state().session {
            Some(session) => Ok(Arc::clone(session)),
            None => fail("this works only inside a stage function, not at the top level of a script"),
        }
    }

    pub(crate) fn note(&self, line: &str) {
        const MAX_CHARS: usize = 400;
        let most = self.meter.limits().note_lines;
        let mut state = self.call_state();
        match state.notes.len() {
            n if n < most => state.notes.push(line.chars().take(MAX_CHARS).collect()),
            n if n == most => {
                state.notes.push(format!("(more than {most} lines printed, the rest is left out)"))
            }
            _ => {}
        }
    }

    /// A closure with the script it was written in.
    pub(crate) fn closure(&self, pointer: FnPtr) -> Closure {
        let state = self.call_state();
        Closure { pointer, script: state.scripts.get(state.part).cloned() }
    }
}

/// One decision.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) snapshot: Snapshot,
    pub(crate) shared: Arc<Shared>,
    stage: Mutex<StageState>,
    by_id: OnceLock<Arc<Vec<u32>>>,
    by_deadline: OnceLock<Arc<Vec<u32>>>,
    speeds: OnceLock<Arc<SpeedTable>>,
}

/// What one stage leaves for the next.
#[derive(Debug)]
pub(crate) struct StageState {
    /// Jobs that may run.
    pub(crate) admitted: Rows,
    /// The job that `admit` is asked about now; those that ask after it have greater ids.
    pub(crate) asked: Option<u32>,
    /// The order, once its stage has run.
    pub(crate) queue: Option<Arc<Vec<u32>>>,
    /// The strategy, once its stage has run.
    pub(crate) placement: Placement,
    /// Free capacity, lent to one walk at a time.
    pub(crate) room: Option<Room>,
    /// Verdicts of a timeline on jobs that have not been asked for yet.
    pub(crate) judged: Option<Judged>,
    /// The plans made last for jobs in an order.
    pub(crate) kept: Option<Kept>,
}

impl Session {
    pub(crate) fn new(snapshot: &Snapshot, shared: &Arc<Shared>, room: Option<Room>) -> Arc<Self> {
        Arc::new(Session {
            snapshot: snapshot.clone(),
            shared: Arc::clone(shared),
            stage: Mutex::new(StageState {
                admitted: Rows::All,
                asked: None,
                queue: None,
                placement: Placement::FirstFit,
                room,
                judged: None,
                kept: None,
            }),
            by_id: OnceLock::new(),
            by_deadline: OnceLock::new(),
            speeds: OnceLock::new(),
        })
    }

    pub(crate) fn stage(&self) -> MutexGuard<'_, StageState> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.shared.meter
    }

    /// All rows by ascending job id.
    pub(crate) fn rows_by_id(&self) -> &Arc<Vec<u32>> {
        self.by_id.get_or_init(|| {
            let mut rows: Vec<u32> = (0..self.snapshot.jobs.len() as u32).collect();
            rows.sort_by_cached_key(|row| self.snapshot.jobs.id(*row as usize));
            Arc::new(rows)
        })
    }

    /// All rows by deadline, then by id.
    pub(crate) fn rows_by_deadline(&self) -> &Arc<Vec<u32>> {
        self.by_deadline.get_or_init(|| {
            let deadlines = self.snapshot.jobs.column(Field::Deadline);
            let mut rows = self.rows_by_id().to_vec();
            rows.sort_by(|a, b| deadlines[*a as usize].total_cmp(&deadlines[*b as usize]));
            Arc::new(rows)
        })
    }

    /// Speeds of all jobs at all their levels.
    pub(crate) fn speeds(&self) -> &Arc<SpeedTable> {
        self.speeds.get_or_init(|| Arc::new(SpeedTable::new(&self.snapshot)))
    }

    /// A timeline on which all is free.
    pub(crate) fn nothing_planned(&self) -> Ahead {
        Ahead::sharing(&self.snapshot, Arc::clone(self.speeds()))
    }

    /// Rows in one phase, by ascending job id.
    pub(crate) fn rows_in(&self, phase: JobPhase) -> Vec<u32> {
        let phases = self.snapshot.jobs.phases().iter().enumerate();
        let mut rows: Vec<u32> = phases.filter(|(_, p)| **p == phase).map(|(row, _)| row as u32).collect();
        rows.sort_by_cached_key(|row| self.snapshot.jobs.id(*row as usize));
        rows
    }

    /// What a tenant is called.
    pub(crate) fn tenant_name(&self, tenant: TenantId) -> String {
        let names = &self.snapshot.tenants;
        names.get(tenant.index()).cloned().unwrap_or_else(|| format!("tenant {}", tenant.0))
    }

    /// Lends the room, all free.
    pub(crate) fn take_room(&self) -> Room {
        match self.stage().room.take() {
            Some(mut room) => {
                room.reset(&self.snapshot);
                room
            }
            None => Room::new(&self.snapshot),
        }
    }

    pub(crate) fn give_room(&self, room: Room) {
        self.stage().room = Some(room);
    }
}

/// A function a script wrote and handed to a verb.
#[derive(Clone, Debug)]
pub(crate) struct Closure {
    pointer: FnPtr,
    script: Option<Arc<AST>>,
}

impl Closure {
    /// Calls it in the script it was written in, whatever runs now.
    pub(crate) fn call(&self, engine: &Engine, meter: &Meter, args: impl FuncArgs) -> Outcome<Dynamic> {
        let _nested = meter.enter()?;
        match &self.script {
            Some(script) => self.pointer.call(engine, script, args).map_err(|error| self.blame(error)),
            None => fail("a closure works only inside a stage function"),
        }
    }

    /// An error with the file of the closure, which Rhai loses when the host calls.
    pub(crate) fn blame(&self, error: Box<EvalAltResult>) -> Box<EvalAltResult> {
        if error.is_system_exception() {
            return error;
        }
        let file = self.script.as_ref().and_then(|script| script.source()).unwrap_or_default();
        let name = self.pointer.fn_name().to_owned();
        Box::new(EvalAltResult::ErrorInFunctionCall(name, file.to_owned(), error, Position::NONE))
    }

    /// What it captured from around it.
    pub(crate) fn captured(&self) -> &[Dynamic] {
        self.pointer.curry()
    }

    /// The same function, without the values that it captured.
    pub(crate) fn without_captured(&self) -> Closure {
        let mut pointer = self.pointer.clone();
        pointer.set_curry(Vec::new());
        Closure { pointer, script: self.script.clone() }
    }

    /// Whether it is the same text of the same script.
    pub(crate) fn is_same_function(&self, other: &Closure) -> bool {
        let is_same_script = match (&self.script, &other.script) {
            (Some(script), Some(other)) => Arc::ptr_eq(script, other),
            _ => false,
        };
        is_same_script && self.pointer.fn_name() == other.pointer.fn_name()
    }

    /// How many arguments it takes.
    pub(crate) fn n_arguments(&self) -> usize {
        let name = self.pointer.fn_name();
        let written = self.script.as_ref().and_then(|s| s.iter_functions().find(|f| f.name == name));
        written.map_or(0, |f| f.params.len().saturating_sub(self.pointer.curry().len()))
    }
}
