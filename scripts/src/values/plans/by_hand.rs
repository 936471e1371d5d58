//! Plans written by hand, for scripts: a job's GPUs from one time to another, gangs that wait for a gap, and plans as text.
//! The arithmetic is `rota_core::timeline`.

use std::fmt::Write as _;
use std::sync::Arc;

use rhai::{Dynamic, ImmutableString};
use rota_core::time::Time;
use rota_core::timeline::{Course, Need};

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::timeline::{ROWS_PER_PLAN, TimelineValue};
use crate::values::{JobValue, number, type_label};

/// Bytes of private memory that plans leave to whatever else a script keeps.
const LEFT_FOR_OTHERS: usize = 8 << 10;

impl TimelineValue {
    fn reserve_piece(self, job: &JobValue, gpus: i64, from: f64, to: f64) -> Outcome<TimelineValue> {
        let (Ok(count), true) = (u32::try_from(gpus), from.is_finite() && to.is_finite() && from < to) else {
            return fail(format!("reserve: {gpus} GPUs from {from} s to {to} s cannot be reserved"));
        };
        let mut made = self.ahead()?;
        self.session.meter().charge(ROWS_PER_PLAN + made.planned().len())?;
        let (begin, end) = (Time::from_secs_f64(from), Time::from_secs_f64(to));
        let row = job.row() as u32;
        match Arc::make_mut(&mut made).reserve_piece(&self.session.snapshot, row, count, begin, end) {
            Ok(()) => Ok(self.with_plans(made)),
            Err(why) => fail(format!(
                "reserve: job {} cannot have {gpus} GPUs from {from} s to {to} s: {why}",
                job.id()
            )),
        }
    }

    fn release(self, job: &JobValue) -> Outcome<TimelineValue> {
        let row = job.row() as u32;
        let mut made = self.ahead()?;
        self.session.meter().charge(ROWS_PER_PLAN + made.planned().len())?;
        if made.of(row).is_none() {
            return fail(format!("release: job {} is not planned on this timeline", job.id()));
        }
        Arc::make_mut(&mut made).forget(&[row]);
        Ok(self.with_plans(made))
    }

    fn share_until(&self, job: &JobValue, by: f64) -> Outcome<Dynamic> {
        if by.is_nan() {
            return fail("share_until: the time is not a number (NaN)");
        }
        self.session.meter().charge(ROWS_PER_PLAN)?;
        let by = if by < Need::NEVER.as_secs_f64() { Time::from_secs_f64(by) } else { Need::NEVER };
        let share = self.ahead()?.share_until(&self.session.snapshot, job.row() as u32, by);
        Ok(share.map_or(Dynamic::UNIT, |gpus| Dynamic::from(i64::from(gpus))))
    }

    fn reserve_gangs(self, jobs: Dynamic, most_waiting: &Dynamic) -> Outcome<TimelineValue> {
        let most = match number(most_waiting) {
            Some(most) if most >= 0.0 && most.fract() == 0.0 => most as usize,
            _ if most_waiting.is_unit() => usize::MAX,
            _ => {
                let got = match number(most_waiting) {
                    Some(most) => most.to_string(),
                    None => type_label(most_waiting).to_owned(),
                };
                return fail(format!(
                    "reserve_gangs: how many may wait is a whole number from 0 on, or () for all, got {got}"
                ));
            }
        };
        let rows = self.unplanned(jobs)?;
        // A job that waits looks for a gap among the plans of all before it.
        let n_looking = rows.len().min(most);
        let n_steps = self.ahead()?.timeline().steps().len() + rows.len();
        self.session.meter().charge(n_looking.saturating_mul(n_steps))?;
        let mut made = self.ahead()?;
        Arc::make_mut(&mut made).reserve_gangs(&self.session.snapshot, &rows, most);
        Ok(self.with_plans(made))
    }

    /// Plans of jobs that make their deadline as text, earlier planned ones first, as many as private memory can hold.
    fn memory(&self) -> Outcome<ImmutableString> {
        let ahead = self.ahead()?;
        let planned = ahead.planned();
        let meter = self.session.meter();
        meter.charge(planned.len() * 4)?;
        let most_bytes = meter.limits().memory_text_bytes.min(meter.limits().string_bytes);
        let most_bytes = most_bytes.saturating_sub(LEFT_FOR_OTHERS);
        let mut text = String::new();
        let (mut n_jobs, mut n_kept) = (0, 0);
        for planned in planned.iter().filter(|planned| planned.deadline != Need::NEVER && !planned.is_late) {
            n_jobs += 1;
            let before = text.len();
            let id = self.session.snapshot.jobs.id(planned.row as usize);
            write_course(&mut text, id.0, planned.plan.steps(), planned.plan.end());
            if text.len() > most_bytes {
                text.truncate(before);
            } else {
                n_kept += 1;
            }
        }
        if n_kept < n_jobs {
            let note = format!("plans of {n_kept} of {n_jobs} jobs are kept: private memory holds no more");
            self.session.shared.note(&note);
        }
        Ok(text.into())
    }
}

/// `17=0:2,600:4,5400:0`: from 0 s on 2 GPUs, from 600 s on 4, none from 5400 s on. Entries end with a blank.
fn write_course(text: &mut String, id: u32, steps: &[(Time, u32)], end: Time) {
    write!(text, "{id}=").expect("text takes it");
    for (time, gpus) in steps.iter().copied().chain([(end, 0)]) {
        let (seconds, rest) = (time.0.div_euclid(1_000_000), time.0.rem_euclid(1_000_000));
        match rest {
            0 => write!(text, "{seconds}:{gpus},"),
            rest => write!(text, "{seconds}.{rest:06}:{gpus},"),
        }
        .expect("text takes it");
    }
    text.pop();
    text.push(' ');
}

/// The courses of a text by job number; `None` for a text that was not written here.
pub(super) fn read_courses(text: &str) -> Option<Vec<(u32, Course)>> {
    let course = |entry: &str| {
        let (id, steps) = entry.split_once('=')?;
        let course: Course = steps.split(',').map(read_step).collect::<Option<_>>()?;
        let ascends = course.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        ascends.then_some((id.parse().ok()?, course))
    };
    text.split_ascii_whitespace().map(course).collect()
}

fn read_step(step: &str) -> Option<(Time, u32)> {
    let (time, gpus) = step.split_once(':')?;
    let (seconds, rest) = time.split_once('.').unwrap_or((time, "000000"));
    let micros = seconds.parse::<i64>().ok()?.checked_mul(1_000_000)?;
    let rest = (rest.len() == 6).then(|| rest.parse::<u32>().ok()).flatten()?;
    Some((Time(micros.checked_add(i64::from(rest))?), gpus.parse().ok()?))
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Timeline";
    let engine = registrar.method(
        OWNER,
        "reserve(job: Job, gpus: int, from: float, to: float) -> Timeline",
        "Reserves GPUs for a job from one time to another, after what it has already; an error where they are not free. Its \
         `finish` and `is_late` count all its pieces and the restarts between them.",
    );
    engine.register_fn("reserve", |t: TimelineValue, job: JobValue, gpus: i64, from: f64, to: f64| {
        t.reserve_piece(&job, gpus, from, to)
    });
    let engine = registrar.method(
        OWNER,
        "release(job: Job) -> Timeline",
        "Gives back all that is reserved for a job: it is not planned any more.",
    );
    engine.register_fn("release", |t: TimelineValue, job: JobValue| t.release(&job));
    let engine = registrar.method(
        OWNER,
        "share_until(job: Job, time: float) -> int",
        "The fewest GPUs with which a job is done by a time if it holds them from now on, where they are free that long; `()` \
         when no number is enough.",
    );
    engine.register_fn("share_until", |t: TimelineValue, job: JobValue, by: f64| t.share_until(&job, by));
    let engine = registrar.method(
        OWNER,
        "reserve_gangs(queue, waiting) -> Timeline",
        "Plans jobs one after another in one piece with the GPUs they ask for (running ones with those they hold), each at the \
         first time at which they are free for its estimated time left. At most `waiting` of the jobs that cannot begin now \
         reserve that time, `()` lets all; a job behind them is planned only if it can begin now.",
    );
    engine.register_fn("reserve_gangs", |t: TimelineValue, jobs: Dynamic, waiting: Dynamic| {
        t.reserve_gangs(jobs, &waiting)
    });
    let engine = registrar.field(
        OWNER,
        "memory: String",
        "The plans of all jobs that make their deadline as text, to be kept in `this`; for `follow`. Where there are more than \
         private memory can hold, those planned last are left out, which is noted in the record of the round.",
    );
    engine.register_get("memory", |t: &mut TimelineValue| t.memory());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn courses_are_read_as_they_were_written() {
        let mut text = String::new();
        write_course(&mut text, 17, &[(Time(0), 2), (Time(600_000_000), 4)], Time(5_400_000_001));
        write_course(&mut text, 3, &[(Time(-1_500_000), 1)], Time(7));
        assert_eq!(text, "17=0:2,600:4,5400.000001:0 3=-2.500000:1,0.000007:0 ");
        let first = vec![(Time(0), 2), (Time(600_000_000), 4), (Time(5_400_000_001), 0)];
        let second = vec![(Time(-1_500_000), 1), (Time(7), 0)];
        assert_eq!(read_courses(&text), Some(vec![(17, first), (3, second)]));
        for odd in ["17", "x=0:1", "1=0", "1=5:1,4:0", "1=0.5:1", "1=99999999999999999:1"] {
            assert_eq!(read_courses(odd), None, "{odd}");
        }
    }
}
