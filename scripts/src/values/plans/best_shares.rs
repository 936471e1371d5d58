//! Plans by a model instead of one job after another, for scripts, and plans that are kept from round to round.
//! The algorithm is in `crate::models::shares`; here it gets its names in scripts.

use std::collections::BTreeMap;
use std::sync::Arc;

use rhai::{Array, Dynamic, ImmutableString, Map};
use rota_core::ids::JobId;
use rota_core::time::Time;
use rota_core::timeline::{Course, Need, Way};
use rota_solvers::elasticflow_shares::Pace;

use crate::language::nearest;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::models::shares::{self, Newcomer, ShareSettings};
use crate::policy::solving;
use crate::values::by_hand;
use crate::values::timeline::{ROWS_PER_PLAN, TimelineValue};
use crate::values::{Column, number, type_label};

/// The most slots a model may have.
const MOST_SLOTS: f64 = 1000.0;

impl TimelineValue {
    /// Plans as many of some jobs as possible, in the order in which they asked.
    fn reserve_best(self, jobs: Dynamic, options: &Map) -> Outcome<TimelineValue> {
        let mut rows = self.unplanned(jobs)?;
        let deadline = |row: &u32| self.session.snapshot.jobs.spec(*row as usize).deadline.first();
        rows.retain(|row| deadline(row).is_some());
        rows.sort_by_key(|row| self.session.snapshot.jobs.id(*row as usize));
        self.by_model(&rows, options)
    }

    /// Looks for plans that meet the deadlines of late jobs too.
    fn mend(self, options: &Map) -> Outcome<TimelineValue> {
        let ahead = self.ahead()?;
        let late = ahead.planned().iter().filter(|planned| planned.is_late);
        let rows: Vec<u32> = late.map(|planned| planned.row).collect();
        self.by_model(&rows, options)
    }

    fn by_model(self, rows: &[u32], options: &Map) -> Outcome<TimelineValue> {
        let snapshot = &self.session.snapshot;
        let (settings, worths) = self.settings(options)?;
        let worth = |row: u32| worths.as_ref().map_or(Some(1.0), |worths| worths[row as usize]);
        let mut newcomers = Vec::with_capacity(rows.len());
        for &row in rows {
            match worth(row) {
                Some(worth) if worth.is_finite() && worth >= 0.0 => newcomers.push(Newcomer { row, worth }),
                Some(worth) => {
                    let id = snapshot.jobs.id(row as usize);
                    return fail(format!("worth: job {id} has {worth}, expected a number of at least 0"));
                }
                None => {
                    let id = snapshot.jobs.id(row as usize);
                    return fail(format!("worth: job {id} is not among the jobs of this column"));
                }
            }
        }
        let ahead = self.ahead()?;
        let n_planned = ahead.planned().len() + rows.len();
        self.session.meter().charge(n_planned * (ROWS_PER_PLAN + settings.n_slots))?;
        let found = {
            let mut solver = self.session.shared.solving.solver("the solver of `shares`");
            shares::most(snapshot, &ahead, &newcomers, &mut **solver, &settings)
        };
        let found = match found {
            Ok(found) => found,
            Err(error) => return fail(format!("shares: {error}")),
        };
        if found.needed_a_model() {
            self.session.shared.note(&found.note());
        }
        Ok(self.with_plans(Arc::new(found.ahead)))
    }

    /// Limits and form of the model, and the worth of each row if the script gives one.
    fn settings(&self, options: &Map) -> Outcome<(ShareSettings, Option<Vec<Option<f64>>>)> {
        const KEYS: [&str; 5] = ["gap", "nodes", "slots", "pace", "worth"];
        let mut settings = ShareSettings::default();
        settings.limits = solving::limits(self.session.meter(), settings.limits.gap, settings.limits.nodes);
        let mut worths = None;
        for (key, value) in options {
            let amount = |least: f64, most: f64| match number(value) {
                Some(amount) if (least..=most).contains(&amount) => Ok(amount),
                _ => fail(format!("shares: `{key}` must be a number from {least} to {most}, got {value}")),
            };
            match key.as_str() {
                "gap" => settings.limits.gap = amount(0.0, 1.0)?,
                "nodes" => settings.limits.nodes = amount(1.0, 1e9)? as u64,
                "slots" => settings.n_slots = amount(1.0, MOST_SLOTS)? as usize,
                "pace" => settings.pace = pace(value)?,
                "worth" => worths = Some(self.worths(value)?),
                other => {
                    let hint = nearest::hint(other, KEYS)
                        .unwrap_or_else(|| format!("use one of {}", KEYS.join(", ")));
                    return fail(format!("shares: `{other}` is not an option: {hint}"));
                }
            }
        }
        Ok((settings, worths))
    }

    fn worths(&self, value: &Dynamic) -> Outcome<Vec<Option<f64>>> {
        let Some(column) = value.read_lock::<Column>() else {
            return fail(format!(
                "shares: `worth` must be a Column of the jobs that enter, got {}",
                type_label(value)
            ));
        };
        let mut worths = vec![None; self.session.snapshot.jobs.len()];
        for (row, worth) in column.jobs.rows().zip(column.values().iter()) {
            worths[row] = Some(*worth);
        }
        Ok(worths)
    }

    /// Plans jobs as they were planned before; those whose plan no longer works, or that have none, with the least share.
    fn follow(self, jobs: Dynamic, courses: &BTreeMap<JobId, Course>) -> Outcome<TimelineValue> {
        let rows = self.unplanned(jobs)?;
        let session = Arc::clone(&self.session);
        let mut made = self.ahead()?;
        let ahead = Arc::make_mut(&mut made);
        let mut rest = Vec::new();
        for row in rows {
            let course = courses.get(&session.snapshot.jobs.id(row as usize));
            if !course.is_some_and(|course| ahead.follow(&session.snapshot, row, course)) {
                rest.push(row);
            }
        }
        ahead.reserve(&session.snapshot, &rest, Way::LeastShare);
        Ok(self.with_plans(made))
    }

    /// What `plans` made, by job.
    fn courses_of_map(&self, plans: &Map) -> Outcome<BTreeMap<JobId, Course>> {
        self.session.meter().charge(plans.len() * 16)?;
        let mut courses = BTreeMap::new();
        for (id, plan) in plans {
            match (id.parse(), course(plan)) {
                (Ok(number), Some(course)) => courses.insert(JobId(number), course),
                _ => return fail(format!("follow: the plan of job {id} was not made by `plans`")),
            };
        }
        Ok(courses)
    }

    /// What `memory` wrote, by job.
    fn courses_of_text(&self, text: &str) -> Outcome<BTreeMap<JobId, Course>> {
        self.session.meter().charge(text.len())?;
        match by_hand::read_courses(text) {
            Some(courses) => Ok(courses.into_iter().map(|(id, course)| (JobId(id), course)).collect()),
            None => fail("follow: this text was not made by `memory` of a Timeline"),
        }
    }

    /// Plans of jobs that make their deadline, as plain data: times and GPUs in turn.
    fn plans(&self) -> Outcome<Map> {
        let ahead = self.ahead()?;
        let planned = ahead.planned();
        let meter = self.session.meter();
        meter.charge(planned.len() * 16)?;
        let most = meter.limits().map_entries;
        if planned.len() > most {
            return fail(format!("plans: {} jobs, a map may have {most} entries", planned.len()));
        }
        let in_time = planned.iter().filter(|planned| planned.deadline != Need::NEVER && !planned.is_late);
        let plan = |course: Course| -> Array {
            let step = |(time, gpus): (Time, u32)| {
                [Dynamic::from(time.as_secs_f64()), Dynamic::from(i64::from(gpus))]
            };
            course.into_iter().flat_map(step).collect()
        };
        let id = |row: u32| self.session.snapshot.jobs.id(row as usize).to_string().into();
        Ok(in_time.map(|planned| (id(planned.row), Dynamic::from(plan(planned.course())))).collect())
    }
}

fn pace(value: &Dynamic) -> Outcome<Pace> {
    match value.clone().into_immutable_string().ok().as_deref() {
        Some("parts") => Ok(Pace::Parts),
        Some("whole") => Ok(Pace::Whole),
        _ => fail(format!("shares: `pace` knows \"parts\" and \"whole\", not {value}")),
    }
}

/// A course from what `plans` made; `None` for anything else.
fn course(plan: &Dynamic) -> Option<Course> {
    let plan = plan.read_lock::<Array>()?;
    let step = |pair: &[Dynamic]| {
        let (time, gpus) = (number(&pair[0])?, number(&pair[1])?);
        let gpus =
            (gpus.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&gpus)).then_some(gpus as u32)?;
        time.is_finite().then(|| (Time::from_secs_f64(time), gpus))
    };
    let course: Course =
        plan.chunks(2).map(|pair| if pair.len() == 2 { step(pair) } else { None }).collect::<Option<_>>()?;
    course.windows(2).all(|pair| pair[0].0 <= pair[1].0).then_some(course)
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Timeline";
    let engine = registrar.method(
        OWNER,
        "reserve_best(jobs, options: Map) -> Timeline",
        "Plans as many of these jobs as possible without making a planned job late; the others are not planned. A model is \
         solved only where planning one job after another leaves some out, and never plans fewer. Its plan is used only \
         after all restarts are counted. Options: `worth` (a Column, else jobs count 1), `slots`, `pace` (`\"parts\"` \
         or `\"whole\"` slots), `gap`, `nodes`.",
    );
    engine.register_fn("reserve_best", |t: TimelineValue, jobs: Dynamic| t.reserve_best(jobs, &Map::new()));
    engine.register_fn("reserve_best", |t: TimelineValue, jobs: Dynamic, options: Map| {
        t.reserve_best(jobs, &options)
    });
    let engine = registrar.method(
        OWNER,
        "mend(options: Map) -> Timeline",
        "Looks, by the same model, for plans that meet the deadlines of late jobs too. No job that is in time becomes late.",
    );
    engine.register_fn("mend", |t: TimelineValue| t.mend(&Map::new()));
    engine.register_fn("mend", |t: TimelineValue, options: Map| t.mend(&options));
    let engine = registrar.method(
        OWNER,
        "follow(queue, plans) -> Timeline",
        "Plans jobs as in the `memory` or the `plans` of an earlier round where these still meet the deadline; the other jobs get the \
         least share of what is left.",
    );
    engine.register_fn("follow", |t: TimelineValue, jobs: Dynamic, plans: Map| {
        let courses = t.courses_of_map(&plans)?;
        t.follow(jobs, &courses)
    });
    engine.register_fn("follow", |t: TimelineValue, jobs: Dynamic, memory: ImmutableString| {
        let courses = t.courses_of_text(&memory)?;
        t.follow(jobs, &courses)
    });
    let engine = registrar.field(
        OWNER,
        "plans: Map",
        "The plans of all jobs that make their deadline, by job number, as private memory can hold them; for `follow`.",
    );
    engine.register_get("plans", |t: &mut TimelineValue| t.plans());
    let engine = registrar.field(OWNER, "late: int", "How many planned jobs cannot meet their deadline.");
    engine.register_get("late", |t: &mut TimelineValue| t.ahead().map(|ahead| ahead.n_late() as i64));
}
