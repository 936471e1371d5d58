//! Free GPUs over future time, for scripts: plan jobs ahead, see which still fit, hand out what is left.
//!
//! The planning is `rota_core::timeline`; here it gets its names in scripts. Every verb returns a new timeline: a script
//! can try a plan and go back to the one before.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use rhai::{Dynamic, ImmutableString};
use rota_core::snapshot::Snapshot;
use rota_core::table::{Field, JobPhase};
use rota_core::time::{Span, Time};
use rota_core::timeline::{Ahead, Planned, Refusal, Way};

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, fail};
use crate::values::{Column, JobValue, Jobs, Queue, VerdictValue, View};

/// Operations that planning one job counts for: it walks the steps of the timeline, which the grid keeps few.
pub(super) const ROWS_PER_PLAN: usize = 64;

/// Plans are made anew after this time at the latest: estimates may have been wrong.
const LONGEST_PLAN: Span = Span::from_secs(86_400);

/// Plans on a timeline.
#[derive(Clone, Debug)]
pub(crate) struct TimelineValue {
    pub(super) session: Arc<Session>,
    plans: Plans,
    /// How newcomers are planned: as the last jobs were.
    way: Way,
}

/// Plans that are made, or that will be at the first look. Admission asks for the same plans and one job more each
/// time, and its verdicts are reached for all that ask at once.
#[derive(Clone, Debug)]
enum Plans {
    Made(Arc<Ahead>),
    Due(Arc<Due>),
}

/// A set of jobs to be planned by deadline on a timeline that is all free.
#[derive(Debug)]
struct Due {
    jobs: Jobs,
    made: OnceLock<Arc<Ahead>>,
}

impl TimelineValue {
    fn new(view: &View) -> Outcome<TimelineValue> {
        view.0.meter().charge(view.0.snapshot.cluster.nodes().len())?;
        let ahead = Arc::new(Ahead::new(&view.0.snapshot));
        Ok(TimelineValue { session: Arc::clone(&view.0), plans: Plans::Made(ahead), way: Way::LeastShare })
    }

    fn reserve(mut self, jobs: Dynamic, way: Way) -> Outcome<TimelineValue> {
        self.way = way;
        let is_empty = matches!(&self.plans, Plans::Made(ahead) if ahead.is_unplanned());
        if is_empty && let Some(jobs) = jobs.clone().try_cast::<Jobs>() {
            if !Arc::ptr_eq(&jobs.session, &self.session) {
                return fail("these jobs belong to another round");
            }
            self.session.meter().charge(jobs.len())?;
            self.plans = Plans::Due(Arc::new(Due { jobs, made: OnceLock::new() }));
            return Ok(self);
        }
        let rows = self.rows(jobs)?;
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
        Ok(rows)
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
        let rows = self.rows(Dynamic::from(due.jobs.clone()))?;
        self.session.meter().charge(rows.len() * ROWS_PER_PLAN)?;
        let mut ahead = Ahead::new(&self.session.snapshot);
        ahead.reserve(&self.session.snapshot, &rows, self.way);
        Ok(Arc::clone(due.made.get_or_init(|| Arc::new(ahead))))
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

    fn grow(self) -> Outcome<TimelineValue> {
        let mut ahead = self.ahead()?;
        self.session.meter().charge(ahead.planned().len() + ahead.timeline().n_gpus() as usize)?;
        Arc::make_mut(&mut ahead).grow();
        Ok(TimelineValue { plans: Plans::Made(ahead), ..self })
    }

    fn gpus(&self) -> Outcome<Column> {
        let mut by_row = vec![0.0; self.session.snapshot.jobs.len()];
        for planned in self.ahead()?.planned() {
            by_row[planned.row as usize] = f64::from(planned.gpus);
        }
        let jobs = View(Arc::clone(&self.session)).jobs();
        Column::compute(&jobs, jobs.rows().map(|row| by_row[row]))
    }

    fn fit(&self, job: &JobValue) -> Outcome<Result<(), Refusal>> {
        let ahead = self.ahead()?;
        self.session.meter().charge(ahead.planned().len() * ROWS_PER_PLAN)?;
        Ok(ahead.fits(&self.session.snapshot, job.row() as u32, self.way))
    }

    fn verdict(&self, job: JobValue) -> Outcome<VerdictValue> {
        let row = job.row() as u32;
        if let Plans::Due(due) = &self.plans
            && self.session.snapshot.jobs.phase(job.row()) == JobPhase::Asking
        {
            let known =
                self.session.stage().judged.take().filter(|known| known.is_for(&due.jobs, self.way, row));
            let mut judged = match known {
                Some(judged) => judged,
                None => self.judged(&due.jobs, row)?,
            };
            let verdict = judged.next(&self.session.snapshot);
            self.session.stage().judged = Some(judged);
            return Ok(verdict);
        }
        if !has_deadline(&self.session.snapshot, row) {
            return Ok(VerdictValue::Accept);
        }
        Ok(self
            .fit(&job)?
            .map_or_else(|refusal| VerdictValue::Decline(self.reason(&refusal)), |()| VerdictValue::Accept))
    }

    /// Verdicts on this job and on all that ask after it, each given those accepted before.
    fn judged(&self, jobs: &Jobs, row: u32) -> Outcome<Judged> {
        let snapshot = &self.session.snapshot;
        let first = snapshot.jobs.id(row as usize);
        let mut asking = self.session.rows_in(JobPhase::Asking);
        asking.retain(|row| snapshot.jobs.id(*row as usize) >= first);
        let with_deadline: Vec<u32> =
            asking.iter().copied().filter(|row| has_deadline(snapshot, *row)).collect();
        let ahead = self.ahead()?;
        self.session.meter().charge((ahead.planned().len() + with_deadline.len()) * ROWS_PER_PLAN)?;
        let mut judged = ahead.judge(snapshot, &with_deadline, self.way).into_iter();
        let verdicts = asking.into_iter().map(|row| {
            let verdict = if has_deadline(snapshot, row) { judged.next().unwrap_or(Ok(())) } else { Ok(()) };
            let verdict = verdict.map_or_else(
                |refusal| VerdictValue::Decline(self.reason(&refusal)),
                |()| VerdictValue::Accept,
            );
            (row, verdict)
        });
        Ok(Judged {
            way: self.way,
            inside: jobs.rows().map(|row| row as u32).collect(),
            verdicts: verdicts.collect(),
        })
    }

    fn reason(&self, refusal: &Refusal) -> String {
        const MOST_NAMED: usize = 3;
        let name = |row: u32| &*self.session.snapshot.jobs.spec(row as usize).name;
        let whose = refusal.whose.map(|row| format!("with it, job {} ", name(row))).unwrap_or_default();
        let named: Vec<String> = refusal
            .in_the_way
            .iter()
            .filter(|_| refusal.shortfall.share.is_some())
            .map(|(row, gpus)| format!("{} ({gpus} GPU{})", name(*row), if *gpus == 1 { "" } else { "s" }))
            .collect();
        let in_the_way = match (named.len(), named.len().saturating_sub(MOST_NAMED)) {
            (0, _) => String::new(),
            (_, 0) => format!("; in the way: {}", named.join(", ")),
            (_, more) => format!("; in the way: {} and {more} more", named[..MOST_NAMED].join(", ")),
        };
        format!("{whose}{}{in_the_way}", refusal.shortfall)
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
                Arc::make_mut(&mut ahead).block(gpus, Time::from_secs_f64(from), Time::from_secs_f64(to));
                Ok(TimelineValue { plans: Plans::Made(ahead), ..self })
            }
            _ => fail(format!("block: {gpus} GPUs from {from} s to {to} s cannot be reserved")),
        }
    }
}

/// Verdicts reached ahead of the questions: they hold as long as the questions come in the order of ids, each given
/// those accepted before.
#[derive(Debug)]
pub(crate) struct Judged {
    way: Way,
    /// Jobs that are admitted when the next question comes, by ascending id.
    inside: Vec<u32>,
    verdicts: VecDeque<(u32, VerdictValue)>,
}

impl Judged {
    fn is_for(&self, jobs: &Jobs, way: Way, row: u32) -> bool {
        let is_next = self.verdicts.front().is_some_and(|next| next.0 == row);
        is_next && way == self.way && jobs.rows().eq(self.inside.iter().map(|row| *row as usize))
    }

    fn next(&mut self, snapshot: &Snapshot) -> VerdictValue {
        let Some((row, verdict)) = self.verdicts.pop_front() else { return VerdictValue::Wait };
        if verdict == VerdictValue::Accept {
            let id = |row: u32| snapshot.jobs.id(row as usize);
            self.inside.insert(self.inside.partition_point(|other| id(*other) < id(row)), row);
        }
        verdict
    }
}

fn has_deadline(snapshot: &Snapshot, row: u32) -> bool {
    snapshot.jobs.spec(row as usize).deadline.first().is_some()
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
        "Takes GPUs for something other than a job, from one time to another.",
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
    let engine = registrar.method(
        OWNER,
        "verdict(job: Job) -> Verdict",
        "Whether a job may enter: `accept()` if it has no deadline, or meets it without making a planned job late (jobs that \
         are late already do not count); else `decline` with what is missing, when, and which jobs hold it.",
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
        "Why a job does not fit: window, share needed, the jobs in the way; empty when it fits.",
    );
    engine.register_fn("shortfall", |t: TimelineValue, job: JobValue| -> Outcome<ImmutableString> {
        Ok(t.fit(&job)?.err().map(|refusal| t.reason(&refusal)).unwrap_or_default().into())
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
        Ok(i64::from(t.ahead()?.timeline().least_free(from, to)))
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
