//! Which jobs may enter, for scripts: the verdict of a timeline on one job, or on all that ask.
//!
//! The judgement is `rota_core::timeline`. Verdicts on all that ask are reached at once, each given those accepted before;
//! a script that asks about one job after another gets them one by one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rhai::{Dynamic, ImmutableString};
use rota_core::snapshot::Snapshot;
use rota_core::table::JobPhase;
use rota_core::timeline::{PlanOrder, Refusal, Way};

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::timeline::{Plans, ROWS_PER_PLAN, TimelineValue};
use crate::values::{JobValue, Queue, VerdictValue};

/// Verdicts on all jobs that ask, by row.
#[derive(Clone, Debug)]
pub(crate) struct VerdictsValue(Arc<BTreeMap<u32, VerdictValue>>);

impl VerdictsValue {
    /// The verdict on a row; one that was not judged waits.
    pub(crate) fn of(&self, row: u32) -> VerdictValue {
        self.0.get(&row).cloned().unwrap_or(VerdictValue::Wait)
    }
}

/// Verdicts reached ahead of the questions: they hold as long as the questions come in the order of ids, each given
/// those accepted before.
#[derive(Debug)]
pub(crate) struct Judged {
    way: Way,
    order: Arc<Vec<u32>>,
    places: PlanOrder,
    /// Jobs that are admitted when the next question comes, in the order in which they are planned.
    inside: Vec<u32>,
    verdicts: VecDeque<(u32, VerdictValue)>,
}

impl Judged {
    fn is_for(&self, inside: &[u32], order: &Arc<Vec<u32>>, way: Way, row: u32) -> bool {
        let is_next = self.verdicts.front().is_some_and(|next| next.0 == row);
        let is_same_order = Arc::ptr_eq(&self.order, order) || self.order == *order;
        is_next && way == self.way && is_same_order && self.inside == inside
    }

    fn next(&mut self) -> VerdictValue {
        let Some((row, verdict)) = self.verdicts.pop_front() else { return VerdictValue::Wait };
        if verdict == VerdictValue::Accept {
            let place = |row: u32| self.places.place(row);
            self.inside.insert(self.inside.partition_point(|other| place(*other) < place(row)), row);
        }
        verdict
    }
}

impl TimelineValue {
    /// The order of an argument; without one, all jobs by deadline, then by id.
    fn order(&self, order: Option<Dynamic>) -> Outcome<Arc<Vec<u32>>> {
        let Some(order) = order else {
            self.session.meter().charge(self.session.snapshot.jobs.len())?;
            return Ok(Arc::clone(self.session.rows_by_deadline()));
        };
        let queue = Queue::from_value(&self.session, order)?;
        if !Arc::ptr_eq(&queue.session, &self.session) {
            return fail("this queue belongs to another round");
        }
        Ok(queue.rows)
    }

    fn places(&self, order: &[u32], newcomers: &[u32]) -> Outcome<PlanOrder> {
        let jobs = &self.session.snapshot.jobs;
        self.session.meter().charge(jobs.len())?;
        let places = PlanOrder::of(order, jobs.len());
        match newcomers.iter().find(|row| places.place(**row) == 0) {
            None => Ok(places),
            Some(row) => fail(format!(
                "job {} is not in the order: take it from `view.everyone`, which has the jobs that ask too",
                jobs.id(*row as usize)
            )),
        }
    }

    fn fit(&self, job: &JobValue, order: Option<Dynamic>) -> Outcome<Result<(), Refusal>> {
        let ahead = self.ahead()?;
        let row = job.row() as u32;
        let places = self.places(&self.order(order)?, &[row])?;
        self.session.meter().charge(ahead.planned().len() * ROWS_PER_PLAN)?;
        Ok(ahead.fits(&self.session.snapshot, row, self.way, &places))
    }

    fn verdict(&self, job: &JobValue, order: Option<Dynamic>) -> Outcome<VerdictValue> {
        let row = job.row() as u32;
        let phase = self.session.snapshot.jobs.phase(job.row());
        if let (Plans::Due(due), JobPhase::Asking) = (&self.plans, phase) {
            let order = self.order(order)?;
            let known = self.session.stage().judged.take();
            let known = known.filter(|known| known.is_for(&due.rows, &order, self.way, row));
            let mut judged = match known {
                Some(judged) => judged,
                None => self.judged(&due.rows, &order, row)?,
            };
            let verdict = judged.next();
            self.session.stage().judged = Some(judged);
            return Ok(verdict);
        }
        if !has_deadline(&self.session.snapshot, row) {
            return Ok(VerdictValue::Accept);
        }
        Ok(self.verdict_of(self.fit(job, order)?))
    }

    fn verdicts(&self, order: Option<Dynamic>) -> Outcome<VerdictsValue> {
        let Some(asked) = self.session.stage().asked else {
            return fail("verdicts: for `admit` only, which is asked about the jobs that these are on");
        };
        let Plans::Due(due) = &self.plans else {
            return fail(
                "verdicts: plan all jobs with one `reserve_least` or `reserve_earliest` first; with other plans, ask \
                 about one job after another with `verdict`",
            );
        };
        let order = self.order(order)?;
        Ok(VerdictsValue(Arc::new(self.judged(&due.rows, &order, asked)?.verdicts.into_iter().collect())))
    }

    fn verdict_of(&self, fit: Result<(), Refusal>) -> VerdictValue {
        fit.map_or_else(|refusal| VerdictValue::Decline(self.reason(&refusal)), |()| VerdictValue::Accept)
    }

    /// Verdicts on this job and on all that ask after it, each given those accepted before. The plans with those that may
    /// enter are kept for whatever plans the same jobs in the same order next.
    fn judged(&self, inside: &[u32], order: &Arc<Vec<u32>>, row: u32) -> Outcome<Judged> {
        let snapshot = &self.session.snapshot;
        let first = snapshot.jobs.id(row as usize);
        let mut asking = self.session.rows_in(JobPhase::Asking);
        asking.retain(|row| snapshot.jobs.id(*row as usize) >= first);
        let (judged, idle): (Vec<u32>, Vec<u32>) =
            asking.iter().partition(|row| has_deadline(snapshot, **row));
        let places = self.places(order, &asking)?;
        let ahead = self.ahead()?;
        self.session.meter().charge((ahead.planned().len() + judged.len()) * ROWS_PER_PLAN)?;
        let judgement = ahead.judge(snapshot, &judged, self.way, &places);
        let mut fits = judgement.verdicts.iter().cloned();
        let verdicts = asking.into_iter().map(|row| {
            let fit = if has_deadline(snapshot, row) { fits.next().unwrap_or(Ok(())) } else { Ok(()) };
            (row, self.verdict_of(fit))
        });
        let verdicts = verdicts.collect();
        if let Some(ahead) = judgement.as_planned_anew(snapshot, &idle, self.way, &places) {
            self.keep(&Arc::new(ahead));
        }
        Ok(Judged { way: self.way, order: Arc::clone(order), places, inside: inside.to_vec(), verdicts })
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
}

fn has_deadline(snapshot: &Snapshot, row: u32) -> bool {
    snapshot.jobs.spec(row as usize).deadline.first().is_some()
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Timeline";
    registrar.class::<VerdictsValue>(
        "Verdicts",
        "A verdict on each job that asks; what `admit` may return instead of one.",
    );
    let engine = registrar.method(
        OWNER,
        "verdict(job: Job, order: Queue) -> Verdict",
        "Whether a job may enter: `accept()` if it has no deadline, or if, planned in its turn, it meets it without making a \
         job behind it late (jobs that are late already do not count); else `decline` with what is missing, when, and which \
         jobs hold it. The order has the job and those planned, as `rank(view.everyone.deadline)` has; jobs that are not in \
         it keep their plans. Without an order: by deadline, then by arrival.",
    );
    engine.register_fn("verdict", |t: TimelineValue, job: JobValue| t.verdict(&job, None));
    engine.register_fn("verdict", |t: TimelineValue, job: JobValue, order: Dynamic| {
        t.verdict(&job, Some(order))
    });
    let engine = registrar.method(
        OWNER,
        "verdicts(order: Queue) -> Verdicts",
        "For `admit`: the verdict on the job in question and on all that ask after it, each given those accepted before. `admit` \
         may return it instead of one verdict; it is then not called again in this round, and planning the same jobs in the same order later costs nothing more.",
    );
    engine.register_fn("verdicts", |t: TimelineValue| t.verdicts(None));
    engine.register_fn("verdicts", |t: TimelineValue, order: Dynamic| t.verdicts(Some(order)));
    let engine = registrar.method(
        OWNER,
        "fits(job: Job, order: Queue) -> bool",
        "Whether `verdict` would accept a job with a deadline.",
    );
    engine.register_fn("fits", |t: TimelineValue, job: JobValue| t.fit(&job, None).map(|fit| fit.is_ok()));
    engine.register_fn("fits", |t: TimelineValue, job: JobValue, order: Dynamic| {
        t.fit(&job, Some(order)).map(|fit| fit.is_ok())
    });
    let engine = registrar.method(
        OWNER,
        "shortfall(job: Job, order: Queue) -> String",
        "Why a job does not fit: window, share needed, the jobs in the way; empty when it fits.",
    );
    let text = |t: &TimelineValue, fit: Result<(), Refusal>| {
        ImmutableString::from(fit.err().map(|refusal| t.reason(&refusal)).unwrap_or_default())
    };
    engine.register_fn("shortfall", move |t: TimelineValue, job: JobValue| -> Outcome<ImmutableString> {
        Ok(text(&t, t.fit(&job, None)?))
    });
    engine.register_fn(
        "shortfall",
        move |t: TimelineValue, job: JobValue, order: Dynamic| -> Outcome<ImmutableString> {
            Ok(text(&t, t.fit(&job, Some(order))?))
        },
    );
}
