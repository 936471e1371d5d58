//! Time slicing for scripts: `view.time_slice(view.queue, #{ most: 16, together: view.jobs.gpus })`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use rhai::{Dynamic, Engine, FnPtr, ImmutableString, Map, NativeCallContext};
use rota_core::plan::{Hold, Run};
use rota_core::turns::{Together, TurnRules, take_turns};

use crate::language::nearest;
use crate::language::reference::Registrar;
use crate::language::session::{Closure, Outcome, Session, fail};
use crate::values::placement::Failure;
use crate::values::{Column, JobValue, PlanValue, Queue, View, number, type_label};

/// What a script says about sharing.
#[derive(Debug)]
struct Options {
    most: usize,
    together: Option<Rule>,
}

/// Who shares with whom.
#[derive(Debug)]
enum Rule {
    /// Those with the same key.
    Keys(Column),
    /// The same, and a closure `|job|` gives the key.
    KeyOf(Closure),
    /// Those of which a closure `|job, other|` says so.
    Pairs(Closure),
}

impl Rule {
    fn read(session: &Session, value: &Dynamic) -> Outcome<Rule> {
        if let Some(column) = value.read_lock::<Column>() {
            return Ok(Rule::Keys(column.clone()));
        }
        let Some(pointer) = value.read_lock::<FnPtr>() else {
            let got = type_label(value);
            return fail(format!(
                "time_slice: `together` is a Column, one key for each job, or a closure |job| or |job, other|, got {got}"
            ));
        };
        let closure = session.shared.closure(pointer.clone());
        match closure.n_arguments() {
            1 => Ok(Rule::KeyOf(closure)),
            2 => Ok(Rule::Pairs(closure)),
            n => fail(format!("time_slice: the closure takes `|job|` or `|job, other|`, not {n} arguments")),
        }
    }
}

impl Options {
    fn read(session: &Session, options: &Map) -> Outcome<Options> {
        const KEYS: [&str; 2] = ["most", "together"];
        let mut read = Options { most: 16, together: None };
        for (key, value) in options {
            match key.as_str() {
                "most" => {
                    let most = value.as_int().ok().and_then(|most| usize::try_from(most).ok());
                    let Some(most) = most.filter(|most| (1..=1000).contains(most)) else {
                        return fail(format!(
                            "time_slice: `most` is a whole number from 1 to 1000, got {value}"
                        ));
                    };
                    read.most = most;
                }
                "together" => read.together = Some(Rule::read(session, value)?),
                other => {
                    let hint = nearest::hint(other, KEYS)
                        .unwrap_or_else(|| format!("use one of {}", KEYS.join(", ")));
                    return fail(format!("time_slice: `{other}` is not an option: {hint}"));
                }
            }
        }
        Ok(read)
    }
}

impl View {
    fn time_slice(&self, engine: &Engine, queue: &Queue, options: &Map) -> Outcome<PlanValue> {
        let snapshot = &self.0.snapshot;
        if !Arc::ptr_eq(&queue.session, &self.0) {
            return fail("this queue belongs to another round");
        }
        let options = Options::read(&self.0, options)?;
        let keys = match &options.together {
            Some(Rule::Keys(column)) => Some(self.keys(queue, column)?),
            Some(Rule::KeyOf(closure)) => Some(self.keys_of(engine, queue, closure)?),
            Some(Rule::Pairs(_)) | None => None,
        };
        let n_gpus = snapshot.cluster.n_gpus() as usize;
        self.0.meter().charge(queue.rows.len() * n_gpus.max(16) + n_gpus)?;
        let mut value = PlanValue::new(&self.0);
        let failure = Failure::default();
        let pairs = match &options.together {
            Some(Rule::Pairs(closure)) => Some(Pairs::new(engine, &self.0, closure, &failure)),
            _ => None,
        };
        let suit = |a: u32, b: u32| pairs.as_ref().is_none_or(|pairs| pairs.suit(a, b));
        let together = match (&keys, &pairs) {
            (Some(keys), _) => Together::Keys(keys),
            (None, Some(_)) => Together::Pairs(&suit),
            (None, None) => Together::Any,
        };
        let runs = take_turns(snapshot, &queue.rows, &TurnRules { most: options.most, together });
        if let Some(error) = failure.take() {
            return Err(error);
        }
        for (row, allocation) in runs {
            let job = snapshot.jobs.id(row as usize);
            let is_same = *snapshot.jobs.allocation(row as usize) == allocation;
            let what = if is_same { Hold::Keep } else { Hold::Take(allocation) };
            value.plan.run.push(Run { job, what });
        }
        Ok(value)
    }

    /// The keys by row of the table; every job of the queue must have one.
    fn keys(&self, queue: &Queue, column: &Column) -> Outcome<Vec<f64>> {
        let snapshot = &self.0.snapshot;
        if !Arc::ptr_eq(&column.jobs.session, &self.0) {
            return fail("time_slice: `together` belongs to another round");
        }
        self.0.meter().charge(queue.rows.len())?;
        let mut keys = vec![0.0; snapshot.jobs.gpus().len()];
        for &row in queue.rows.iter() {
            let key = column.jobs.position_of(row as usize).map(|position| column.values()[position]);
            match key {
                Some(key) if !key.is_nan() => keys[row as usize] = key,
                _ => {
                    let name = &snapshot.jobs.spec(row as usize).name;
                    let what = if key.is_some() { "a key that is not a number" } else { "no key" };
                    return fail(format!("time_slice: `together` has {what} for job {name}"));
                }
            }
        }
        Ok(keys)
    }

    /// The keys that a closure gives, by row of the table. Texts become numbers: all that matters is which are the same.
    fn keys_of(&self, engine: &Engine, queue: &Queue, closure: &Closure) -> Outcome<Vec<f64>> {
        let (mut texts, mut n_numbers): (BTreeMap<ImmutableString, f64>, usize) = (BTreeMap::new(), 0);
        let mut keys = vec![0.0; self.0.snapshot.jobs.gpus().len()];
        for &row in queue.rows.iter() {
            let job = JobValue::new(&self.0, row);
            let id = job.id();
            let answer = closure.call(engine, self.0.meter(), (job,))?;
            let n_texts = texts.len() as f64;
            keys[row as usize] = match (number(&answer), answer.read_lock::<ImmutableString>()) {
                (Some(key), _) if !key.is_nan() => {
                    n_numbers += 1;
                    key
                }
                (_, Some(text)) => *texts.entry(text.clone()).or_insert(n_texts),
                _ => {
                    let got = if answer.is_float() { "NaN" } else { type_label(&answer) };
                    let why = format!(
                        "time_slice: the closure |job| must return a number or a text, got {got} for job {id}"
                    );
                    return fail(why).map_err(|error| closure.blame(error));
                }
            };
        }
        match n_numbers > 0 && !texts.is_empty() {
            true => fail("time_slice: the closure |job| returns numbers for some jobs and texts for others")
                .map_err(|error| closure.blame(error)),
            false => Ok(keys),
        }
    }
}

/// What a closure says of pairs of jobs; each pair is asked about once.
struct Pairs<'a> {
    engine: &'a Engine,
    session: &'a Arc<Session>,
    closure: &'a Closure,
    failure: &'a Failure,
    known: RefCell<BTreeMap<(u32, u32), bool>>,
    n_looks: Cell<usize>,
}

impl<'a> Pairs<'a> {
    fn new(
        engine: &'a Engine,
        session: &'a Arc<Session>,
        closure: &'a Closure,
        failure: &'a Failure,
    ) -> Self {
        let (known, n_looks) = (RefCell::default(), Cell::default());
        Pairs { engine, session, closure, failure, known, n_looks }
    }

    /// Whether two jobs suit each other; all do once something has gone wrong.
    fn suit(&self, a: u32, b: u32) -> bool {
        if self.failure.borrow().is_some() {
            return true;
        }
        let jobs = &self.session.snapshot.jobs;
        let (first, second) = if jobs.id(a as usize) < jobs.id(b as usize) { (a, b) } else { (b, a) };
        let answer = match self.known.borrow().get(&(first, second)) {
            Some(answer) => self.look().map(|()| *answer),
            None => self.ask(first, second),
        };
        match answer {
            Ok(answer) => {
                self.known.borrow_mut().insert((first, second), answer);
                answer
            }
            Err(error) => {
                self.failure.borrow_mut().get_or_insert(error);
                true
            }
        }
    }

    /// Counts a look at what is known: as many rows of a native verb cost one operation.
    fn look(&self) -> Outcome<()> {
        const LOOKS_PER_CHARGE: usize = 64;
        self.n_looks.set(self.n_looks.get() + 1);
        match self.n_looks.get().is_multiple_of(LOOKS_PER_CHARGE) {
            true => self.session.meter().charge(LOOKS_PER_CHARGE),
            false => Ok(()),
        }
    }

    fn ask(&self, first: u32, second: u32) -> Outcome<bool> {
        let (job, other) = (JobValue::new(self.session, first), JobValue::new(self.session, second));
        let (id, other_id) = (job.id(), other.id());
        let answer = self.closure.call(self.engine, self.session.meter(), (job, other))?;
        answer.as_bool().or_else(|_| {
            let got = type_label(&answer);
            let why = format!(
                "time_slice: the closure |job, other| must return true or false, got {got} for jobs {id} and {other_id}"
            );
            fail(why).map_err(|error| self.closure.blame(error))
        })
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    let engine = registrar.method(
        "View",
        "time_slice(queue: Queue, options: Map) -> Plan",
        "All jobs run with the GPUs they ask for; where there are too few, gangs take turns on them, each with its share of \
         the GPU. Free GPUs go first, in the order of the queue; then a gang joins gangs that suit it, those with its own key, \
         on the GPUs that have the fewest; then any. Jobs that run stay, unless elsewhere are fewer, or as many that all suit. \
         Options: `together`, who suits whom (without it all are alike): a Column with the keys, a closure `|job|` that returns a key, a \
         number or a text, or a closure `|job, other|` that returns whether the two suit each other, asked once for a pair, the job that arrived \
         first before the other (slow); and `most`, how many gangs may share one GPU (16): jobs for which there is no turn left wait.",
    );
    engine.register_fn("time_slice", |ctx: NativeCallContext, view: View, queue: Queue, options: Map| {
        view.time_slice(ctx.engine(), &queue, &options)
    });
    engine.register_fn("time_slice", |ctx: NativeCallContext, view: View, jobs: Dynamic, options: Map| {
        view.time_slice(ctx.engine(), &Queue::from_value(&view.0, jobs)?, &options)
    });
}
