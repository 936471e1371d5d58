//! Free GPUs over future time, for scripts: plan jobs ahead, see who still fits, hand out what is left.
//!
//! The planning is `rota_core::timeline`; here it gets its names. Every verb returns a timeline of its own, so that a
//! script can try a plan and go back to the one before.

use std::sync::Arc;

use rhai::{Dynamic, ImmutableString};
use rota_core::table::Field;
use rota_core::time::{Span, Time};
use rota_core::timeline::{Ahead, Planned, Refusal, Shortfall, Way};

use super::{Column, JobValue, Jobs, Queue, VerdictValue, View};
use crate::reference::Registrar;
use crate::session::{Outcome, Session, fail};

/// Operations that planning one job counts for: it walks the steps of the timeline, which the grid keeps few.
pub(super) const ROWS_PER_PLAN: usize = 64;

/// Plans are looked at again after this time, whatever they say: estimates may have been wrong.
const LONGEST_STAND: Span = Span::from_secs(86_400);

/// Plans on a timeline.
#[derive(Clone, Debug)]
pub(crate) struct TimelineValue {
    pub(super) session: Arc<Session>,
    pub(super) ahead: Arc<Ahead>,
    /// How newcomers are planned: as the last jobs were.
    way: Way,
}

impl TimelineValue {
    fn new(view: &View) -> Outcome<TimelineValue> {
        view.0.meter().charge(view.0.snapshot.cluster.nodes().len())?;
        let ahead = Arc::new(Ahead::new(&view.0.snapshot));
        Ok(TimelineValue { session: Arc::clone(&view.0), ahead, way: Way::LeastShare })
    }

    fn reserve(mut self, jobs: Dynamic, way: Way) -> Outcome<TimelineValue> {
        let rows = self.unplanned(jobs)?;
        Arc::make_mut(&mut self.ahead).reserve(&self.session.snapshot, &rows, way);
        self.way = way;
        Ok(self)
    }

    /// Rows that nothing was planned for yet.
    pub(super) fn unplanned(&self, jobs: Dynamic) -> Outcome<Vec<u32>> {
        let rows = self.rows(jobs)?;
        self.session.meter().charge(rows.len() * ROWS_PER_PLAN)?;
        let mut is_planned = vec![false; self.session.snapshot.jobs.len()];
        self.ahead.planned().iter().for_each(|planned| is_planned[planned.row as usize] = true);
        if let Some(row) = rows.iter().find(|row| is_planned[**row as usize]) {
            let id = self.session.snapshot.jobs.id(*row as usize);
            return fail(format!("job {id} is planned already: reserve for each job once"));
        }
        Ok(rows)
    }

    /// A queue as it is; a set of jobs by deadline, then by id.
    fn rows(&self, jobs: Dynamic) -> Outcome<Vec<u32>> {
        let is_set = jobs.is::<Jobs>();
        let queue = Queue::from_value(&self.session, jobs)?;
        if !Arc::ptr_eq(&queue.session, &self.session) {
            return fail("this queue belongs to another round");
        }
        let mut rows = queue.rows.to_vec();
        if is_set {
            let deadlines = self.session.snapshot.jobs.column(Field::Deadline);
            rows.sort_by(|a, b| deadlines[*a as usize].total_cmp(&deadlines[*b as usize]));
        }
        Ok(rows)
    }

    fn grow(mut self) -> Outcome<TimelineValue> {
        self.session.meter().charge(self.ahead.planned().len() + self.ahead.timeline().n_gpus() as usize)?;
        Arc::make_mut(&mut self.ahead).grow();
        Ok(self)
    }

    fn gpus(&self) -> Outcome<Column> {
        let mut by_row = vec![0.0; self.session.snapshot.jobs.len()];
        for planned in self.ahead.planned() {
            by_row[planned.row as usize] = f64::from(planned.gpus);
        }
        let jobs = View(Arc::clone(&self.session)).jobs();
        Column::compute(&jobs, jobs.rows().map(|row| by_row[row]))
    }

    fn fit(&self, job: &JobValue) -> Outcome<Result<(), Refusal>> {
        self.session.meter().charge(self.ahead.planned().len() * ROWS_PER_PLAN)?;
        Ok(self.ahead.fits(&self.session.snapshot, job.row() as u32, self.way))
    }

    fn verdict(&self, job: JobValue) -> Outcome<VerdictValue> {
        let has_deadline = self.session.snapshot.jobs.spec(job.row()).deadline.first().is_some();
        if !has_deadline {
            return Ok(VerdictValue::Accept);
        }
        Ok(match self.fit(&job)? {
            Ok(()) => VerdictValue::Accept,
            Err(refusal) => VerdictValue::Decline(self.reason(&refusal)),
        })
    }

    fn reason(&self, refusal: &Refusal) -> String {
        let name = |row: u32| self.session.snapshot.jobs.spec(row as usize).name.to_string();
        let say = |shortfall: &Shortfall| format!("{shortfall}{}", self.in_the_way(shortfall));
        match refusal {
            Refusal::Own(shortfall) => say(shortfall),
            Refusal::Other { row, shortfall } => format!("with it, job {} {shortfall}", name(*row)),
        }
    }

    /// Who holds most GPUs in the scarcest stretch, by name.
    fn in_the_way(&self, shortfall: &Shortfall) -> String {
        const MOST_NAMED: usize = 3;
        let Some((from, _, _)) = shortfall.scarcest.filter(|_| shortfall.share.is_some()) else {
            return String::new();
        };
        let mut holders: Vec<(u32, &Planned)> =
            self.ahead.planned().iter().map(|p| (held_at(p, from), p)).collect();
        holders.retain(|(gpus, planned)| *gpus > 0 && planned.deadline <= shortfall.deadline);
        holders.sort_by_key(|(gpus, planned)| (std::cmp::Reverse(*gpus), planned.row));
        let name = |row: u32| &*self.session.snapshot.jobs.spec(row as usize).name;
        let named: Vec<String> = holders
            .iter()
            .take(MOST_NAMED)
            .map(|(gpus, planned)| format!("{} ({gpus} GPUs)", name(planned.row)))
            .collect();
        match (named.len(), holders.len().saturating_sub(MOST_NAMED)) {
            (0, _) => String::new(),
            (_, 0) => format!("; in the way: {}", named.join(", ")),
            (_, more) => format!("; in the way: {} and {more} more", named.join(", ")),
        }
    }

    fn of(&self, job: &JobValue) -> Outcome<&Planned> {
        match self.ahead.of(job.row() as u32) {
            Some(planned) => Ok(planned),
            None => fail(format!("job {} is not planned on this timeline", job.id())),
        }
    }

    fn block(mut self, gpus: i64, from: f64, to: f64) -> Outcome<TimelineValue> {
        match u32::try_from(gpus) {
            Ok(gpus) if from.is_finite() && to.is_finite() && from < to => {
                Arc::make_mut(&mut self.ahead).block(
                    gpus,
                    Time::from_secs_f64(from),
                    Time::from_secs_f64(to),
                );
                Ok(self)
            }
            _ => fail(format!("block: {gpus} GPUs from {from} s to {to} s cannot be reserved")),
        }
    }
}

fn held_at(planned: &Planned, time: Time) -> u32 {
    let steps = planned.plan.steps();
    let step = steps.iter().rev().find(|step| step.0 <= time);
    step.map_or(0, |step| if time < planned.plan.end() { step.1 } else { 0 })
}

fn seconds(time: Option<Time>) -> f64 {
    time.map_or(f64::INFINITY, Time::as_secs_f64)
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Timeline";
    registrar.class::<TimelineValue>(
        OWNER,
        "Free GPUs over future time, and what is planned for each job. Its verbs return a timeline of their own.",
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
        "reserve_least(jobs) -> Timeline",
        "Plans jobs one after another (a queue in its order, a set of jobs by deadline), each with the fewest GPUs that \
         meet its deadline. A job that cannot make it, or has none, reserves nothing.",
    );
    engine.register_fn("reserve_least", |t: TimelineValue, jobs: Dynamic| t.reserve(jobs, Way::LeastShare));
    let engine = registrar.method(
        OWNER,
        "reserve_earliest(jobs) -> Timeline",
        "Plans jobs one after another, each as soon as possible and with as many GPUs as are free and it can use.",
    );
    engine.register_fn("reserve_earliest", |t: TimelineValue, jobs: Dynamic| t.reserve(jobs, Way::Earliest));
    let engine = registrar.method(
        OWNER,
        "block(gpus: int, from: float, to: float) -> Timeline",
        "Takes GPUs for something that is no job, from one time to another.",
    );
    engine.register_fn("block", TimelineValue::block);
    let engine = registrar.method(
        OWNER,
        "grow() -> Timeline",
        "Gives the GPUs that are free now to planned jobs, level by level, each where it saves most GPU time; changing a \
         job's GPUs is weighed against its restart.",
    );
    engine.register_fn("grow", |t: TimelineValue| t.grow());
}

fn answers(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Timeline";
    let engine = registrar.field(
        OWNER,
        "gpus: Column",
        "GPUs each job of `view.jobs` shall have now; for `Fill.gpus`.",
    );
    engine.register_get("gpus", |t: &mut TimelineValue| t.gpus());
    let engine = registrar.field(
        OWNER,
        "stands_until: float",
        "How long the plans stand: when the first of them changes or ends, a day from now at most. For `wake_at`.",
    );
    engine.register_get("stands_until", |t: &mut TimelineValue| {
        let latest = t.session.snapshot.now + LONGEST_STAND;
        t.ahead.next_change().map_or(latest, |change| change.min(latest)).as_secs_f64()
    });
    let engine = registrar.method(
        OWNER,
        "verdict(job: Job) -> Verdict",
        "Whether a job may enter: `accept()` if it meets its deadline and nobody planned here misses one for it (jobs \
         that are late already do not count) or if it has none, else `decline` with what is missing, when, and who holds it.",
    );
    engine.register_fn("verdict", |t: TimelineValue, job: JobValue| t.verdict(job));
    let engine = registrar.method(
        OWNER,
        "fits(job: Job) -> bool",
        "Whether `verdict` would accept a job with a deadline.",
    );
    engine.register_fn("fits", |t: TimelineValue, job: JobValue| t.fit(&job).map(|fit| fit.is_ok()));
    let engine = registrar.method(
        OWNER,
        "shortfall(job: Job) -> String",
        "Why a job does not fit: window, share needed, who is in the way; empty when it does.",
    );
    engine.register_fn("shortfall", |t: TimelineValue, job: JobValue| -> Outcome<ImmutableString> {
        Ok(t.fit(&job)?.err().map(|refusal| t.reason(&refusal)).unwrap_or_default().into())
    });
    let engine = registrar.method(OWNER, "free(time: float) -> int", "Free GPUs at a time.");
    engine.register_fn("free", |t: TimelineValue, time: f64| {
        i64::from(t.ahead.timeline().free_at(Time::from_secs_f64(time)))
    });
    let engine = registrar.method(
        OWNER,
        "least_free(from: float, to: float) -> int",
        "The fewest free GPUs between two times.",
    );
    engine.register_fn("least_free", |t: TimelineValue, from: f64, to: f64| {
        i64::from(t.ahead.timeline().least_free(Time::from_secs_f64(from), Time::from_secs_f64(to)))
    });
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
