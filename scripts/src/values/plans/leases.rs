//! Leases for scripts: `view.leases(this.book, …)`. The algorithm is in `crate::models::leases`; here it gets its names in scripts.

use std::sync::Arc;

use rhai::{Dynamic, Engine, ImmutableString, Map, NativeCallContext};
use rota_core::ids::JobId;
use rota_core::table::Field;
use rota_core::time::Span;
use rota_solvers::FormulationError;
use rota_solvers::chronus_leases::{LeaseGoal, LeasePlan, LeaseProblem, Unsettled, settle};

use crate::language::nearest;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, fail};
use crate::models::leases::{LeaseBook, LeaseRules, Saving, TermOptions};
use crate::policy::part::Stage;
use crate::policy::solving;
use crate::values::plans::lease_problem;
use crate::values::{Column, JobValue, Jobs, Queue, View, number};

/// Operations that one promise counts for: plans are walked lease by lease.
const STEPS_PER_PROMISE: usize = 32;

/// The book of leases in one decision.
#[derive(Clone, Debug)]
pub(crate) struct LeasesValue {
    session: Arc<Session>,
    /// Shared: script values are copied when they are handed on.
    book: Arc<LeaseBook>,
}

impl LeasesValue {
    fn new(view: &View, memory: &Dynamic, options: &Map) -> Outcome<LeasesValue> {
        let session = Arc::clone(&view.0);
        session.meter().charge(session.snapshot.jobs.len() * STEPS_PER_PROMISE)?;
        let rules = LeaseRules {
            lease: Span::from_secs_f64(amount("leases", options, "lease", 1200.0, 1.0..=1e9)?),
            caution: amount("leases", options, "caution", 1.1, 1.0..=100.0)?,
        };
        known("leases", options, &["lease", "caution"])?;
        let mut book = remembered(&session, rules, memory)?;
        Arc::make_mut(&mut book).forget_the_past(&session.snapshot);
        Ok(LeasesValue { session, book })
    }

    fn admit(&mut self, jobs: Dynamic, n_steps: i64) -> Outcome<()> {
        let queue = Queue::from_value(&self.session, jobs)?;
        self.session.meter().charge(queue.rows.len() * STEPS_PER_PROMISE)?;
        let book = Arc::make_mut(&mut self.book);
        book.admit(&self.session.snapshot, &queue.rows, usize::try_from(n_steps).unwrap_or(0));
        Ok(())
    }

    fn term(&mut self, engine: &Engine, goal: &str, options: &Map) -> Outcome<()> {
        let goal = match goal {
            "minimize" => LeaseGoal::Minimize,
            "maximize" => LeaseGoal::Maximize,
            "random" => LeaseGoal::Random,
            other => {
                return fail(format!("term: knows \"minimize\", \"maximize\", \"random\", not \"{other}\""));
            }
        };
        known("term", options, &["rows", "nodes", "gap"])?;
        let nodes = amount("term", options, "nodes", 1000.0, 1.0..=1e9)? as u64;
        let gap = amount("term", options, "gap", 0.0, 0.0..=1.0)?;
        let most_rows = amount("term", options, "rows", 400.0, 1.0..=1e9)? as usize;
        let session = Arc::clone(&self.session);
        let limits = solving::limits(session.meter(), gap, nodes);
        let options = TermOptions { goal, most_rows };
        let mut solver = solving::OneByOne(&session.shared.solving);
        let (model, mut refused) = (session.shared.model(Stage::LeaseModel), None);
        let mut find = |problem: &LeaseProblem, known: &dyn Fn() -> Option<LeasePlan>, most_rows| {
            let Some(model) = &model else {
                return settle(problem, known, most_rows, &mut solver, &limits).map(Into::into);
            };
            if problem.rows.len() > most_rows {
                return Err(Unsettled::TooLarge { rows: problem.rows.len() });
            }
            lease_problem::ask(&session, engine, model, problem, known(), &limits).unwrap_or_else(|error| {
                // What ends the term; the error itself is returned below.
                refused = Some(error);
                Err(FormulationError::NoValues { status: "an error".to_owned() }.into())
            })
        };
        let solved = Arc::make_mut(&mut self.book).term(&session.snapshot, &options, &mut find);
        if let Some(error) = refused {
            return Err(error);
        }
        match solved {
            Ok(note) => session.shared.note(&note),
            Err(error) => return fail(format!("term: {error}")),
        }
        Ok(())
    }

    fn save_power(&mut self, how: &str, until: f64, keep_nodes: i64) -> Outcome<()> {
        let saving = match how {
            "aggressive" => Saving::Aggressive,
            "conservative" => Saving::Conservative,
            other => {
                return fail(format!("save_power: knows \"aggressive\", \"conservative\", not \"{other}\""));
            }
        };
        let snapshot = &self.session.snapshot;
        let lease_s = self.book.lease().as_secs_f64();
        let n_leases = ((until - snapshot.now.as_secs_f64()) / lease_s).floor().clamp(0.0, 10_000.0) as usize;
        let keep = u32::try_from(keep_nodes).unwrap_or(0);
        Arc::make_mut(&mut self.book).plan_night(&self.session.snapshot, saving, n_leases, keep);
        Ok(())
    }

    fn column(&self, jobs: &Jobs, value: impl Fn(usize) -> bool) -> Outcome<Column> {
        Column::compute(jobs, jobs.rows().map(|row| f64::from(u8::from(value(row)))))
    }

    /// 1 for these, 0 for all others.
    fn flags(&self, jobs: &Jobs, these: impl Iterator<Item = JobId>) -> Outcome<Column> {
        let table = &self.session.snapshot.jobs;
        let mut is_one = vec![false; table.len()];
        these.filter_map(|job| table.row(job)).for_each(|row| is_one[row] = true);
        self.column(jobs, |row| is_one[row])
    }

    /// The book as text; the next decision need not read it again.
    fn memory(&self) -> ImmutableString {
        let text = ImmutableString::from(self.book.to_text());
        self.session.shared.keep_book(text.clone(), Arc::clone(&self.book));
        text
    }

    /// Jobs that cannot meet the last step of their deadline even if they ran from now on.
    fn late(&self, jobs: &Jobs) -> Outcome<Column> {
        let snapshot = &self.session.snapshot;
        let remaining = snapshot.jobs.column(Field::Remaining);
        let now_s = snapshot.now.as_secs_f64();
        self.column(jobs, |row| {
            let last = snapshot.jobs.spec(row).deadline.last();
            last.is_some_and(|last| last.as_secs_f64() < now_s + remaining[row])
        })
    }
}

fn remembered(session: &Session, rules: LeaseRules, memory: &Dynamic) -> Outcome<Arc<LeaseBook>> {
    if memory.is_unit() {
        return Ok(Arc::new(LeaseBook::new(rules)));
    }
    let Some(text) = memory.read_lock::<ImmutableString>() else {
        return fail("leases: the memory does not come from `memory` of an earlier decision");
    };
    if let Some(book) = session.shared.kept_book(&text).filter(|book| book.rules() == rules) {
        return Ok(book);
    }
    match LeaseBook::from_text(rules, &text) {
        Some(book) => Ok(Arc::new(book)),
        None => fail("leases: the memory does not come from `memory` of an earlier decision"),
    }
}

fn known(verb: &str, options: &Map, keys: &[&str]) -> Outcome<()> {
    match options.keys().find(|key| !keys.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let hint = nearest::hint(key, keys.iter().copied());
            let hint = hint.unwrap_or_else(|| format!("use one of {}", keys.join(", ")));
            fail(format!("{verb}: `{key}` is not an option: {hint}"))
        }
    }
}

fn amount(
    verb: &str,
    options: &Map,
    key: &str,
    otherwise: f64,
    range: std::ops::RangeInclusive<f64>,
) -> Outcome<f64> {
    let Some(value) = options.get(key) else { return Ok(otherwise) };
    match number(value) {
        Some(amount) if range.contains(&amount) => Ok(amount),
        _ => fail(format!(
            "{verb}: `{key}` must be a number from {} to {}, got {value}",
            range.start(),
            range.end()
        )),
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Leases";
    registrar.class::<LeasesValue>(
        OWNER,
        "The book of leases (Chronus): GPUs are given out for stretches of equal length, and deadlines are promised by packing these.",
    );
    let engine = registrar.method(
        "View",
        "leases(memory, options: Map) -> Leases",
        "The book as an earlier decision left it (`this.book`, filled from `Leases.memory`; nothing at first). Options: \
         `lease`, the length in seconds, and `caution`, the factor by which estimates are stretched.",
    );
    engine.register_fn("leases", |view: View, memory: Dynamic, options: Map| {
        LeasesValue::new(&view, &memory, &options)
    });
    verbs(registrar);
    answers(registrar);
    registrar.unknown_field::<LeasesValue>(OWNER);
}

fn verbs(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Leases";
    let engine = registrar.method(
        OWNER,
        "promise(jobs, steps: int)",
        "Promises each newcomer the first of the first `steps` steps of its deadline for which its leases fit in with all \
         promises. Newcomers for which none fits are in `refused` and reserve nothing. Jobs without a deadline are skipped. \
         Its other name is `admit`, which a script with a stage of that name cannot call.",
    );
    engine
        .register_fn("promise", |book: &mut LeasesValue, jobs: Dynamic, steps: i64| book.admit(jobs, steps));
    engine.register_fn("admit", |book: &mut LeasesValue, jobs: Dynamic, steps: i64| book.admit(jobs, steps));
    let engine = registrar.method(
        OWNER,
        "term(goal: String, options: Map)",
        "Gives out the lease that begins now by the lease model: `\"minimize\"` or `\"maximize\"` its GPUs among plans \
         that meet the most deadlines, or `\"random\"`. Options: `rows` (the most rows of the model; beyond it jobs keep \
         their plans), `nodes` and `gap` of the solve. A packed plan that is proved optimal needs no solve; a solve \
         without an answer leaves the packed plan. Either is noted in the record of the round. A part of the policy that \
         defines `fn lease_model(problem)` plans the leases.",
    );
    engine.register_fn(
        "term",
        |ctx: NativeCallContext, book: &mut LeasesValue, goal: ImmutableString, options: Map| {
            book.term(ctx.engine(), &goal, &options)
        },
    );
    let engine = registrar.method(
        OWNER,
        "save_power(how: String, until: float, keep_nodes: int)",
        "Leaves nodes off until a time: in each lease all that plans do not need (`\"aggressive\"`), or fewer \
         (`\"conservative\"`: jobs without a plan and those planned in most leases keep their GPUs throughout).",
    );
    engine.register_fn(
        "save_power",
        |book: &mut LeasesValue, how: ImmutableString, until: f64, keep_nodes: i64| {
            book.save_power(&how, until, keep_nodes)
        },
    );
    let engine = registrar.method(
        OWNER,
        "reason(job: Job) -> String",
        "Why a newcomer was not promised its deadline.",
    );
    engine.register_fn("reason", |book: &mut LeasesValue, job: JobValue| {
        ImmutableString::from(book.book.refusal(job.id()).unwrap_or_default())
    });
}

fn answers(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Leases";
    let engine =
        registrar.field(OWNER, "is_due: bool", "Whether a lease begins now that has not been given out.");
    engine.register_get("is_due", |book: &mut LeasesValue| book.book.is_due(book.session.snapshot.now));
    let engine = registrar.field(OWNER, "next: float", "When the next lease begins, seconds.");
    engine.register_get("next", |book: &mut LeasesValue| {
        book.book.next_boundary(book.session.snapshot.now).as_secs_f64()
    });
    let engine = registrar.field(OWNER, "nodes_on: int", "Nodes that are on in this lease.");
    engine.register_get("nodes_on", |book: &mut LeasesValue| {
        let snapshot = &book.session.snapshot;
        let all = snapshot.cluster.nodes().len() as u32;
        i64::from(book.book.nodes_on_now(snapshot).unwrap_or(all))
    });
    let engine = registrar.field(OWNER, "memory: String", "The book as text, to be kept in `this`.");
    engine.register_get("memory", |book: &mut LeasesValue| book.memory());
    let engine =
        registrar.method(OWNER, "leased(jobs: Jobs) -> Column", "1 for jobs that hold the lease, else 0.");
    engine.register_fn("leased", |book: &mut LeasesValue, jobs: Jobs| book.flags(&jobs, book.book.leased()));
    let engine = registrar.method(
        OWNER,
        "promised(jobs: Jobs) -> Column",
        "1 for jobs whose deadline is promised, else 0.",
    );
    engine.register_fn("promised", |book: &mut LeasesValue, jobs: Jobs| {
        book.flags(&jobs, book.book.promised())
    });
    let engine = registrar.method(
        OWNER,
        "refused(jobs: Jobs) -> Column",
        "1 for newcomers of this decision whose deadline could not be promised, else 0.",
    );
    engine
        .register_fn("refused", |book: &mut LeasesValue, jobs: Jobs| book.flags(&jobs, book.book.refused()));
    let engine = registrar.method(
        OWNER,
        "late(jobs: Jobs) -> Column",
        "1 for jobs that would miss the last step of their deadline even if they ran from now on, else 0.",
    );
    engine.register_fn("late", |book: &mut LeasesValue, jobs: Jobs| book.late(&jobs));
}
