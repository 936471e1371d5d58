//! Free GPUs over future time, for scripts: plan jobs ahead, see which still fit, hand out what is left.
//!
//! The planning is `rota_core::timeline`; here it gets its names in scripts. Every verb returns a new timeline: a script
//! can try a plan and go back to the one before.

use std::sync::{Arc, OnceLock};

use rhai::{Array, Dynamic, Map};
use rota_core::time::{Span, Time};
use rota_core::timeline::{Ahead, Planned, Way};

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, fail};
use crate::values::{Column, JobValue, Jobs, Queue, View};

/// Operations that planning one job counts for: it walks the steps of the timeline, which the grid keeps few.
pub(super) const ROWS_PER_PLAN: usize = 64;

/// Jobs that a stretch counts for: it becomes a map.
const ROWS_PER_STRETCH: usize = 16;

/// Plans are made anew after this time at the latest: estimates may have been wrong.
const LONGEST_PLAN: Span = Span::from_secs(86_400);

/// Plans on a timeline.
#[derive(Clone, Debug)]
pub(crate) struct TimelineValue {
    pub(super) session: Arc<Session>,
    pub(super) plans: Plans,
    /// How newcomers are planned: as the last jobs were.
    pub(super) way: Way,
}

/// Plans that are made, or that will be at the first look. Admission asks for the same plans and one job more each
/// time, and its verdicts are reached for all that ask at once.
#[derive(Clone, Debug)]
pub(super) enum Plans {
    Made(Arc<Ahead>),
    Due(Arc<Due>),
}

/// Jobs to be planned in this order on a timeline that is all free.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) rows: Arc<Vec<u32>>,
    made: OnceLock<Arc<Ahead>>,
}

/// Plans of a decision for jobs in an order, on a timeline that was all free, for whatever asks for the same again.
#[derive(Debug)]
pub(crate) struct Kept {
    way: Way,
    ahead: Arc<Ahead>,
}

impl TimelineValue {
    fn new(view: &View) -> Outcome<TimelineValue> {
        view.0.meter().charge(view.0.snapshot.cluster.nodes().len())?;
        let ahead = Arc::new(view.0.nothing_planned());
        Ok(TimelineValue { session: Arc::clone(&view.0), plans: Plans::Made(ahead), way: Way::LeastShare })
    }

    fn reserve(mut self, jobs: Dynamic, way: Way) -> Outcome<TimelineValue> {
        self.way = way;
        let rows = self.rows(jobs)?;
        let is_empty = matches!(&self.plans, Plans::Made(ahead) if ahead.is_unplanned());
        if is_empty {
            self.session.meter().charge(rows.len())?;
            self.plans = Plans::Due(Arc::new(Due { rows, made: OnceLock::new() }));
            return Ok(self);
        }
        self.plan(&rows)?;
        Ok(self)
    }

    fn plan(&mut self, rows: &[u32]) -> Outcome<()> {
        let mut ahead = self.ahead()?;
        self.refuse_planned(&ahead, rows)?;
        Arc::make_mut(&mut ahead).reserve(&self.session.snapshot, rows, self.way);
        self.plans = Plans::Made(ahead);
        Ok(())
    }

    /// Rows that nothing was planned for yet.
    pub(super) fn unplanned(&self, jobs: Dynamic) -> Outcome<Vec<u32>> {
        let rows = self.rows(jobs)?;
        self.refuse_planned(&*self.ahead()?, &rows)?;
        Ok(rows.to_vec())
    }

    /// The same with other plans.
    pub(super) fn with_plans(self, ahead: Arc<Ahead>) -> TimelineValue {
        TimelineValue { plans: Plans::Made(ahead), ..self }
    }

    fn refuse_planned(&self, ahead: &Ahead, rows: &[u32]) -> Outcome<()> {
        self.session.meter().charge(rows.len() * ROWS_PER_PLAN)?;
        let mut is_planned = vec![false; self.session.snapshot.jobs.len()];
        ahead.planned().iter().for_each(|planned| is_planned[planned.row as usize] = true);
        if let Some(row) = rows.iter().find(|row| is_planned[**row as usize]) {
            let id = self.session.snapshot.jobs.id(*row as usize);
            return fail(format!("job {id} is planned already: reserve for each job once"));
        }
        Ok(())
    }

    /// The plans, made now if this is the first look at them.
    pub(super) fn ahead(&self) -> Outcome<Arc<Ahead>> {
        let due = match &self.plans {
            Plans::Made(ahead) => return Ok(Arc::clone(ahead)),
            Plans::Due(due) => due,
        };
        if let Some(made) = due.made.get() {
            return Ok(Arc::clone(made));
        }
        let kept = self
            .session
            .stage()
            .kept
            .as_ref()
            .filter(|kept| kept.is_for(&due.rows, self.way))
            .map(Kept::ahead);
        if let Some(kept) = kept {
            self.session.meter().charge(due.rows.len())?;
            return Ok(Arc::clone(due.made.get_or_init(|| kept)));
        }
        self.session.meter().charge(due.rows.len() * ROWS_PER_PLAN)?;
        let mut ahead = self.session.nothing_planned();
        ahead.reserve(&self.session.snapshot, &due.rows, self.way);
        let ahead = Arc::clone(due.made.get_or_init(|| Arc::new(ahead)));
        self.keep(&ahead);
        Ok(ahead)
    }

    /// Keeps plans for whatever asks for the same in this decision.
    pub(super) fn keep(&self, ahead: &Arc<Ahead>) {
        self.session.stage().kept = Some(Kept { way: self.way, ahead: Arc::clone(ahead) });
    }

    /// A queue as it is; a set of jobs by deadline, then by id.
    fn rows(&self, jobs: Dynamic) -> Outcome<Arc<Vec<u32>>> {
        if let Some(jobs) = jobs.read_lock::<Jobs>() {
            if !Arc::ptr_eq(&jobs.session, &self.session) {
                return fail("these jobs belong to another round");
            }
            jobs.refuse_steps("reserve")?;
            return self.by_deadline(&jobs);
        }
        let queue = Queue::from_value(&self.session, jobs)?;
        if !Arc::ptr_eq(&queue.session, &self.session) {
            return fail("this queue belongs to another round");
        }
        Ok(queue.rows)
    }

    fn by_deadline(&self, jobs: &Jobs) -> Outcome<Arc<Vec<u32>>> {
        let n_rows = self.session.snapshot.jobs.len();
        self.session.meter().charge(n_rows)?;
        let all = self.session.rows_by_deadline();
        if jobs.is_all() {
            return Ok(Arc::clone(all));
        }
        let mut is_in = vec![false; n_rows];
        jobs.rows().for_each(|row| is_in[row] = true);
        Ok(Arc::new(all.iter().copied().filter(|row| is_in[*row as usize]).collect()))
    }

    /// GPUs of each planned job of `view.jobs`; 0 for the others.
    fn gpus(&self) -> Outcome<Column> {
        let mut by_row = vec![0.0; self.session.snapshot.jobs.len()];
        for planned in self.ahead()?.planned() {
            by_row[planned.row as usize] = f64::from(planned.gpus);
        }
        let jobs = View(Arc::clone(&self.session)).jobs();
        Column::compute(&jobs, jobs.rows().map(|row| by_row[row]))
    }

    fn of(&self, job: &JobValue) -> Outcome<Planned> {
        match self.ahead()?.of(job.row() as u32) {
            Some(planned) => Ok(planned.clone()),
            None => fail(format!("job {} is not planned on this timeline", job.id())),
        }
    }

    fn block(self, gpus: i64, from: f64, to: f64) -> Outcome<TimelineValue> {
        match u32::try_from(gpus) {
            Ok(gpus) if from.is_finite() && to.is_finite() && from < to => {
                let mut ahead = self.ahead()?;
                self.session.meter().charge(ahead.timeline().steps().len() + ahead.planned().len())?;
                Arc::make_mut(&mut ahead).block(gpus, Time::from_secs_f64(from), Time::from_secs_f64(to));
                Ok(TimelineValue { plans: Plans::Made(ahead), ..self })
            }
            _ => fail(format!("block: {gpus} GPUs from {from} s to {to} s cannot be reserved")),
        }
    }
}

impl TimelineValue {
    fn stretches(self, from: f64, to: f64) -> Outcome<Array> {
        if from.is_nan() || to.is_nan() {
            return fail("stretches: a time is not a number (NaN)");
        }
        let ahead = self.ahead()?;
        self.session.meter().charge(ahead.timeline().steps().len() * ROWS_PER_STRETCH)?;
        let window = ahead.timeline().window(Time::from_secs_f64(from), Time::from_secs_f64(to));
        let stretch = |(from, to, free): (Time, Time, i32)| {
            let to = Some(to).filter(|to| *to < Time::MAX);
            let mut map = Map::new();
            map.insert("from".into(), Dynamic::from(from.as_secs_f64()));
            map.insert("to".into(), Dynamic::from(seconds(to)));
            map.insert("free".into(), Dynamic::from(i64::from(free)));
            Dynamic::from(map)
        };
        Ok(window.map(stretch).collect())
    }
}

impl Kept {
    fn is_for(&self, rows: &[u32], way: Way) -> bool {
        let planned = self.ahead.planned();
        way == self.way
            && planned.len() == rows.len()
            && planned.iter().zip(rows).all(|(p, row)| p.row == *row)
    }

    fn ahead(&self) -> Arc<Ahead> {
        Arc::clone(&self.ahead)
    }
}

fn seconds(time: Option<Time>) -> f64 {
    time.map_or(f64::INFINITY, Time::as_secs_f64)
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Timeline";
    registrar.class::<TimelineValue>(
        OWNER,
        "Free GPUs over future time, and what is planned for each job. Its verbs return a new timeline and leave the old one as it was.",
    );
    let engine = registrar.method(
        "View",
        "timeline() -> Timeline",
        "All GPUs that are up, free from now on: plans are made on it with `reserve_least` and `reserve_earliest`.",
    );
    engine.register_fn("timeline", |view: View| TimelineValue::new(&view));
    plans(registrar);
    answers(registrar);
    registrar.unknown_field::<TimelineValue>(OWNER);
}

fn plans(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Timeline";
    let engine = registrar.method(
        OWNER,
        "reserve_least(queue) -> Timeline",
        "Plans jobs one after another in the order of the queue, as `rank(jobs.deadline)` gives it (a set of jobs is planned by \
         deadline), each with the fewest GPUs that meet its deadline. A job that cannot make it, or has none, reserves nothing.",
    );
    engine.register_fn("reserve_least", |t: TimelineValue, jobs: Dynamic| t.reserve(jobs, Way::LeastShare));
    let engine = registrar.method(
        OWNER,
        "reserve_earliest(queue) -> Timeline",
        "Plans jobs one after another in the order of the queue (a set of jobs by deadline), each as soon as possible and with \
         as many GPUs as are free and it can use.",
    );
    engine.register_fn("reserve_earliest", |t: TimelineValue, jobs: Dynamic| t.reserve(jobs, Way::Earliest));
    let engine = registrar.method(
        OWNER,
        "block(gpus: int, from: float, to: float) -> Timeline",
        "Takes GPUs for something other than a job, from one time to another.",
    );
    engine.register_fn("block", TimelineValue::block);
}

fn answers(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Timeline";
    let engine = registrar.field(
        OWNER,
        "gpus: Column",
        "GPUs that each job of `view.jobs` gets now; for `Fill.gpus`.",
    );
    engine.register_get("gpus", |t: &mut TimelineValue| t.gpus());
    let engine = registrar.field(
        OWNER,
        "stands_until: float",
        "How long the plans hold: until the first of them changes or ends, a day from now at most. For `wake_at`.",
    );
    engine.register_get("stands_until", |t: &mut TimelineValue| -> Outcome<f64> {
        let latest = t.session.snapshot.now + LONGEST_PLAN;
        Ok(t.ahead()?.next_change().map_or(latest, |change| change.min(latest)).as_secs_f64())
    });
    let engine = registrar.method(OWNER, "free(time: float) -> int", "Free GPUs at a time.");
    engine.register_fn("free", |t: TimelineValue, time: f64| -> Outcome<i64> {
        Ok(i64::from(t.ahead()?.timeline().free_at(Time::from_secs_f64(time))))
    });
    let engine = registrar.method(
        OWNER,
        "least_free(from: float, to: float) -> int",
        "The fewest free GPUs between two times.",
    );
    engine.register_fn("least_free", |t: TimelineValue, from: f64, to: f64| -> Outcome<i64> {
        let (from, to) = (Time::from_secs_f64(from), Time::from_secs_f64(to));
        let ahead = t.ahead()?;
        t.session.meter().charge(ahead.timeline().steps().len())?;
        Ok(i64::from(ahead.timeline().least_free(from, to)))
    });
    let engine = registrar.method(
        OWNER,
        "stretches(from: float, to: float) -> Array",
        "The stretches of time between two times over which as many GPUs are free, the earliest first: `#{from, to, free}`. \
         The second time may be infinite, and then the last stretch is.",
    );
    engine.register_fn("stretches", TimelineValue::stretches);
    let engine = registrar.method(
        OWNER,
        "finish(job: Job) -> float",
        "When a planned job will be done, seconds; infinite when nothing is reserved.",
    );
    engine.register_fn("finish", |t: TimelineValue, job: JobValue| -> Outcome<f64> {
        let planned = t.of(&job)?;
        Ok(seconds(planned.plan.start().map(|_| planned.plan.finish())))
    });
    let engine = registrar.method(
        OWNER,
        "start(job: Job) -> float",
        "When a planned job first holds GPUs, seconds; infinite when never.",
    );
    engine.register_fn("start", |t: TimelineValue, job: JobValue| {
        t.of(&job).map(|planned| seconds(planned.plan.start()))
    });
    let engine = registrar.method(
        OWNER,
        "is_late(job: Job) -> bool",
        "Whether a planned job cannot meet its deadline.",
    );
    engine
        .register_fn("is_late", |t: TimelineValue, job: JobValue| t.of(&job).map(|planned| planned.is_late));
}
