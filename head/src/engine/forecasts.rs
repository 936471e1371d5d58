//! Forecasts as the engine has them made: the last one under the policy in use, who waits for the next one, and how long jobs take
//! to start. Making one is the decider's business.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rota_core::ids::JobId;
use rota_core::time::{Span, Time};
use rota_transport::message::{ExpectedStart, ToUser};
use rota_transport::value::{LongText, Name};

use super::refusal::Refusal;
use super::replies::{Reply, Said, failed};
use super::{Engine, access, explain, policies};
use crate::decider::{Ask, ForecastFrom, PolicyUseError, Scripts, Waiting};
use crate::forecast::{AheadRules, COVERAGE, Errors, Forecast, ForecastSettings, JobForecast, Point, Spread};
use crate::record::Record;
use crate::roles::Person;
use crate::state::Moment;
use crate::store::Write;
use crate::store::history::pages::PastQuery;
use crate::web::shapes::{Expected, ForecastJob, ForecastQuestion, ForecastShape, seconds};

/// The ticket of the head's own forecasts.
pub(super) const OWN_TICKET: u64 = u64::MAX;
/// Runs of a forecast, unless somebody asks for another number.
const SEEDS: u32 = 24;
/// A forecast of the very same state is good for so long, ...
const GOOD_FOR: Span = Span::from_secs(10);
/// ... of a state that has changed since for so long.
const GOOD_AFTER_CHANGE: Span = Span(500_000);
/// One that is older than this is not shown.
const SHOWN_FOR: Span = Span::from_secs(120);
/// While people look at the page, making forecasts may take this part of a processor at most.
const SHARE: u32 = 40;
/// How far ahead, unless somebody asks for another horizon: time of the head's clock.
const HORIZON: Span = Span::from_secs(30 * 86_400);
/// Delays that are remembered.
const MOST_DELAYS: usize = 64;
/// How far estimates are off where too few jobs have ended to tell.
const UNKNOWN: Errors = Errors { profiled: 0.05, guessed: 0.3 };
/// So few.
const FEW: usize = 12;
/// Jobs that have ended, from which errors are estimated.
const MOST_PAST: usize = 300;

/// What is known of the time ahead.
#[derive(Default)]
pub(crate) struct Forecasts {
    last: Option<Made>,
    /// The state of which one is being made.
    asked: Option<Stamp>,
    waiting: Vec<Waiter>,
    /// None is made for viewers before this real time.
    not_before: Time,
    delays: Delays,
    errors: Option<(Errors, Time)>,
}

/// A forecast, and of what.
struct Made {
    forecast: Arc<Forecast>,
    policy: String,
    stamp: Stamp,
    real: Time,
    took: Duration,
}

/// What tells one state from another.
type Stamp = (u64, JobId, usize, usize, String);

/// Somebody who waits for a forecast.
enum Waiter {
    /// With the reason why a job waits.
    Explain { job: JobId, person: Person, reply: Reply },
    /// For when jobs start; all that wait, if none is named.
    Starts { jobs: Vec<JobId>, person: Person, reply: Reply },
    /// For all of it.
    Whole { person: Person, reply: Reply },
}

/// How long it took lately from a decision until a job ran.
#[derive(Default)]
struct Delays {
    ordered: BTreeMap<JobId, Time>,
    last: VecDeque<Span>,
}

impl Delays {
    fn mean(&self) -> Span {
        let sum: i64 = self.last.iter().map(|delay| delay.0).sum();
        Span(sum / (self.last.len().max(1) as i64))
    }

    fn most(&self) -> Span {
        self.last.iter().copied().max().unwrap_or(Span::ZERO)
    }
}

impl Forecasts {
    /// When a job may start, by the last forecast.
    pub(crate) fn start_of(&self, job: JobId) -> Option<Expected> {
        let found = self.last.as_ref()?.forecast.jobs.get(&job)?;
        found.start.map(expected)
    }

    /// The same in words, as the end of a sentence; empty if there is no forecast.
    pub(super) fn words(&self, now: Time, job: JobId) -> String {
        let Some(found) = self.last.as_ref().and_then(|made| made.forecast.jobs.get(&job)) else {
            return String::new();
        };
        let in_s = |at: Time| (at - now).as_secs_f64().max(0.0);
        match found.start {
            Some(Spread { median, low, high: Some(high) }) => format!(
                "; by the forecast it starts in about {:.0} s ({:.0} to {:.0} s)",
                in_s(median),
                in_s(low),
                in_s(high)
            ),
            Some(Spread { median, low, high: None }) => format!(
                "; by the forecast it starts in about {:.0} s (from {:.0} s on, perhaps much later)",
                in_s(median),
                in_s(low)
            ),
            None => "; by the forecast it does not start while the jobs that are here run".to_owned(),
        }
    }

    /// Notes what was written: decisions, and when jobs ran.
    pub(super) fn note(&mut self, writes: &[Write]) {
        for write in writes {
            match write {
                Write::Record(at, Record::Planned { plan, .. }) => {
                    let started = plan.run.iter().filter(|(_, held)| held.is_some());
                    for (job, _) in started {
                        self.delays.ordered.insert(*job, *at);
                    }
                }
                Write::Record(at, Record::JobStarted { job, .. }) => {
                    if let Some(ordered) = self.delays.ordered.remove(job) {
                        self.delays.last.push_back(*at - ordered);
                        if self.delays.last.len() > MOST_DELAYS {
                            self.delays.last.pop_front();
                        }
                    }
                }
                Write::Ended(job) => {
                    self.delays.ordered.remove(&job.id);
                }
                _ => {}
            }
        }
    }

    fn forget_old(&mut self, real: Time) {
        self.last.take_if(|made| real - made.real > SHOWN_FOR);
    }
}

/// Answers why a job waits as soon as there is a forecast that is good enough.
pub(super) fn explain(engine: &mut Engine, moment: Moment, person: &Person, job: JobId, reply: Reply) {
    let waiter = Waiter::Explain { job, person: person.clone(), reply };
    want(engine, moment, waiter);
}

/// Answers when jobs start.
pub(super) fn starts(engine: &mut Engine, moment: Moment, person: &Person, jobs: Vec<JobId>, reply: Reply) {
    want(engine, moment, Waiter::Starts { jobs, person: person.clone(), reply });
}

/// Answers with the forecast under the policy in use.
pub(crate) fn whole(engine: &mut Engine, moment: Moment, person: &Person, reply: Reply) {
    want(engine, moment, Waiter::Whole { person: person.clone(), reply });
}

/// Answers with a forecast as somebody wants it.
pub(crate) fn as_asked(
    engine: &mut Engine,
    moment: Moment,
    person: &Person,
    asked: ForecastQuestion,
    reply: Reply,
) -> Result<(), Refusal> {
    let in_use = engine.state.cluster().policy().clone();
    let is_in_use =
        asked.policy.as_ref().is_none_or(|policy| *policy == in_use.name && asked.texts.is_empty());
    let policy = asked.policy.unwrap_or(in_use.name);
    let set = if asked.set.is_empty() && is_in_use { in_use.set } else { asked.set };
    let scripts = match is_in_use {
        true => scripts_in_use(engine),
        false => {
            policies::check(&policy, &asked.texts)?;
            Scripts { sent: asked.texts, folder: engine.access.policies.clone(), ..Scripts::default() }
        }
    };
    let mut settings = settings(engine, moment);
    settings.n_seeds = asked.seeds.unwrap_or(SEEDS);
    if let Some(noise) = asked.noise {
        settings.errors = Errors { profiled: noise, guessed: noise };
    }
    if let Some(horizon_s) = asked.horizon_s {
        settings.rules.horizon = Span::from_secs_f64(horizon_s);
    }
    let memory = if is_in_use { in_use.memory } else { String::new() };
    let from = ForecastFrom { snapshot: snapshot(engine, moment), memory, settings };
    let user = person.name.clone();
    let waiting = Waiting { user: user.clone(), reply };
    engine.decider.ask_for(waiting, |ticket| Ask::Foresee { ticket, user, policy, set, scripts, from });
    Ok(())
}

fn want(engine: &mut Engine, moment: Moment, waiter: Waiter) {
    engine.forecasts.forget_old(moment.real);
    let stamp = stamp(engine);
    let is_good = engine.forecasts.last.as_ref().is_some_and(|made| {
        let age = moment.real - made.real;
        age < if made.stamp == stamp { GOOD_FOR } else { GOOD_AFTER_CHANGE }
    });
    if is_good {
        return answer(engine, moment, waiter, "");
    }
    engine.forecasts.waiting.push(waiter);
    ask(engine, moment, stamp);
}

/// Has a forecast made, unless one is being made.
fn ask(engine: &mut Engine, moment: Moment, stamp: Stamp) {
    if engine.forecasts.asked.is_some() {
        return;
    }
    let in_use = engine.state.cluster().policy();
    let (policy, set, memory) = (in_use.name.clone(), in_use.set.clone(), in_use.memory.clone());
    let from =
        ForecastFrom { snapshot: snapshot(engine, moment), memory, settings: settings(engine, moment) };
    let (user, scripts) = (Name::new("head").expect("a name"), scripts_in_use(engine));
    engine.forecasts.asked = Some(stamp);
    engine.decider.foresee(Ask::Foresee { ticket: OWN_TICKET, user, policy, set, scripts, from });
}

/// The texts that the policy in use was loaded from.
fn scripts_in_use(engine: &Engine) -> Scripts {
    let in_use = engine.state.cluster().policy();
    Scripts {
        sent: in_use.texts.clone(),
        kept: in_use.files.clone(),
        prefers_kept: true,
        ..Scripts::default()
    }
}

/// The state, with jobs that are not to be tried again yet among those that wait.
fn snapshot(engine: &mut Engine, moment: Moment) -> rota_core::snapshot::Snapshot {
    if engine.state.cluster().scheduler().parked().is_empty() {
        return engine.state.snapshot(moment);
    }
    let mut scheduler = engine.state.cluster().scheduler().clone();
    let parked: Vec<JobId> = (0..scheduler.parked().len()).map(|row| scheduler.parked().id(row)).collect();
    for job in parked {
        scheduler.resume(job);
    }
    scheduler.snapshot(moment.now)
}

fn settings(engine: &mut Engine, moment: Moment) -> ForecastSettings {
    let scale = engine.state.time_scale().factor();
    let timer = engine.timer.settings();
    let next_round = match engine.timer.is_deciding() {
        true => Some(moment.now),
        false => engine.next_round(moment),
    };
    let least_gap = Span((timer.least_gap.0 as f64 * scale) as i64);
    let rules = AheadRules {
        round: timer.round,
        is_on_grid: !timer.wakes_early,
        min_run: timer.min_run,
        gap: least_gap,
        next_round,
        start_delay: engine.forecasts.delays.mean(),
        most_delay: engine.forecasts.delays.most(),
        horizon: HORIZON,
    };
    ForecastSettings { rules, errors: errors(engine, moment), n_seeds: SEEDS }
}

/// How far estimates were off, by the jobs that finished lately; looked up once a minute.
fn errors(engine: &mut Engine, moment: Moment) -> Errors {
    if let Some((errors, at)) = engine.forecasts.errors
        && moment.real - at < Span::from_secs(60)
    {
        return errors;
    }
    let finished = vec![("state", vec![rusqlite::types::Value::Text("finished".into())])];
    let query = PastQuery {
        one_of: finished,
        text: None,
        key: "id",
        is_descending: true,
        after: None,
        most: MOST_PAST,
    };
    let past = engine.store.reader().and_then(|reader| reader.past_jobs(&query));
    let past = past.map(|(jobs, _)| jobs).unwrap_or_default();
    // Of jobs that somebody guessed, the work is their run time; one that was launched once was not slowed by others.
    let guessed: Vec<f64> = past
        .iter()
        .filter(|job| job.model.is_empty() && job.work > 0.0 && job.last_launch.0 == 1)
        .filter_map(|job| Some(((job.ended - job.started?).as_secs_f64() / job.work).ln()))
        .filter(|error| error.is_finite())
        .collect();
    let paces: Vec<f64> = engine
        .state
        .cluster()
        .jobs()
        .values()
        .filter(|job| job.pace != 1.0 && !job.request.model.as_str().is_empty())
        .map(|job| job.pace.ln())
        .collect();
    let found = Errors {
        profiled: deviation(&paces).map_or(UNKNOWN.profiled, |found| found.clamp(0.02, 1.0)),
        guessed: deviation(&guessed).map_or(UNKNOWN.guessed, |found| found.clamp(0.02, 2.0)),
    };
    engine.forecasts.errors = Some((found, moment.real));
    found
}

/// How far these are from 0, as a standard deviation; none of too few.
fn deviation(errors: &[f64]) -> Option<f64> {
    let sum: f64 = errors.iter().map(|error| error * error).sum();
    (errors.len() >= FEW).then(|| (sum / errors.len() as f64).sqrt())
}

fn stamp(engine: &Engine) -> Stamp {
    let cluster = engine.state.cluster();
    let scheduler = cluster.scheduler();
    let (active, running) = (scheduler.jobs().len() + scheduler.parked().len(), scheduler.jobs().n_running());
    (cluster.n_rounds(), cluster.next_job(), active, running, cluster.policy().name.clone())
}

impl Engine {
    /// A forecast is there, or could not be made.
    pub(super) fn take_forecast(
        &mut self,
        moment: Moment,
        ticket: u64,
        result: Result<Box<Forecast>, PolicyUseError>,
        took: Duration,
    ) {
        if ticket != OWN_TICKET {
            let Some(waiting) = self.decider.redeem(ticket) else { return };
            let answers = match result {
                Ok(forecast) => {
                    let shape = shape(&forecast, "", took, |_| true);
                    vec![Said::Forecast(Box::new(shape)), ToUser::End.into()]
                }
                Err(error) => vec![super::rounds::said_of(&error)],
            };
            return self.replies.push_free(waiting.reply, answers);
        }
        let Some(stamp) = self.forecasts.asked.take() else { return };
        let pause = Span::from_secs_f64((took * SHARE).as_secs_f64().clamp(2.0, 600.0));
        self.forecasts.not_before = moment.real + pause;
        let why = match result {
            Ok(forecast) => {
                let policy = stamp.4.clone();
                let made = Made { forecast: Arc::new(*forecast), policy, stamp, real: moment.real, took };
                self.forecasts.last = Some(made);
                String::new()
            }
            Err(error) => {
                tracing::warn!("there is no forecast: {error}");
                self.forecasts.last = None;
                error.to_string()
            }
        };
        for waiter in std::mem::take(&mut self.forecasts.waiting) {
            answer(self, moment, waiter, &why);
        }
    }

    /// While people look at the page, jobs that wait have a forecast that is not much older than the state.
    pub(super) fn forecast_for_viewers(&mut self, moment: Moment) {
        let jobs = self.state.cluster().scheduler().jobs();
        let is_wanted = self.watch.is_watched() && jobs.len() > jobs.n_running();
        if !is_wanted || moment.real < self.forecasts.not_before || self.forecasts.asked.is_some() {
            return;
        }
        let stamp = stamp(self);
        if self.forecasts.last.as_ref().is_none_or(|made| made.stamp != stamp) {
            ask(self, moment, stamp);
        }
    }
}

/// Answers somebody who waited; `why` there is no forecast, if there is none.
fn answer(engine: &mut Engine, moment: Moment, waiter: Waiter, why: &str) {
    match waiter {
        Waiter::Explain { job, person, reply } => {
            // It may have ended or become somebody else's business meanwhile.
            let text = access::job(engine, &person, job).map(drop);
            let text = text.and_then(|()| explain::explain(engine, moment, job));
            match text {
                Ok(text) => {
                    let answers = vec![ToUser::Text(LongText::cut(&text)), ToUser::End];
                    engine.replies.push_free(reply, answers);
                }
                Err(refusal) => engine.replies.refuse(reply, &refusal),
            }
        }
        Waiter::Starts { jobs, person, reply } => {
            let forecast = engine.forecasts.last.as_ref().map(|made| Arc::clone(&made.forecast));
            let found = forecast.iter().flat_map(|forecast| &forecast.jobs);
            let found = found.filter(|(job, _)| jobs.is_empty() || jobs.contains(job));
            let starts = found.filter(|(job, _)| access::may_see(engine, &person, **job)).filter_map(
                |(job, JobForecast { start, .. })| {
                    let Spread { median, low, high } = (*start)?;
                    Some(ExpectedStart { job: *job, median, low, high })
                },
            );
            let starts: Vec<_> = starts.collect();
            let mut answers: Vec<_> =
                starts.chunks(1_000).map(|some| ToUser::Forecast(some.to_vec())).collect();
            answers.push(ToUser::End);
            engine.replies.push_free(reply, answers);
        }
        Waiter::Whole { person, reply } => {
            let Some(made) = &engine.forecasts.last else {
                return engine
                    .replies
                    .push_free(reply, vec![failed(&format!("there is no forecast: {why}"))]);
            };
            let (forecast, policy, took) = (Arc::clone(&made.forecast), made.policy.clone(), made.took);
            let shape = shape(&forecast, &policy, took, |job| access::may_see(engine, &person, job));
            let answers = vec![Said::Forecast(Box::new(shape)), ToUser::End.into()];
            engine.replies.push_free(reply, answers);
        }
    }
}

fn shape(forecast: &Forecast, policy: &str, took: Duration, sees: impl Fn(JobId) -> bool) -> ForecastShape {
    let point = |(at, median, low, high): &Point| {
        [seconds(*at), f64::from(*median), f64::from(*low), f64::from(*high)]
    };
    let jobs = forecast.jobs.iter().filter(|(job, _)| sees(**job)).map(|(job, found)| ForecastJob {
        job: job.0,
        start: found.start.map(expected),
        end: found.end.map(expected),
        n_started: found.n_started,
    });
    ForecastShape {
        policy: policy.to_owned(),
        made_at_s: seconds(forecast.made_at),
        seeds: forecast.n_seeds,
        noise: forecast.errors.guessed,
        horizon_s: (forecast.until - forecast.made_at).as_secs_f64(),
        took_ms: took.as_millis() as u64,
        coverage: COVERAGE,
        jobs: jobs.collect(),
        gpus_busy: forecast.busy.iter().map(point).collect(),
        n_waiting: forecast.waiting.iter().map(point).collect(),
    }
}

fn expected(spread: Spread) -> Expected {
    Expected {
        median_s: seconds(spread.median),
        low_s: seconds(spread.low),
        high_s: spread.high.map(seconds),
    }
}
