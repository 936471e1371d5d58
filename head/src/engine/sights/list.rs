//! Lists of jobs: filtered, in some order, a page at a time. Jobs that have not ended come from the engine, the others from the
//! history, which is read by whoever asked; both in the same order, so that one list can be made of the two.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use rota_core::ids::JobId;
use rota_core::time::Time;

use super::super::refusal::Refusal;
use super::super::{Engine, views};
use super::jobs::{line, tenant};
use super::newest_launches;
use crate::cluster_state::JobRecord;
use crate::roles::Person;
use crate::state::{LiveLaunch, Moment};
use crate::store::history::Reader;
use crate::web::shapes::Job;

/// Which jobs are wanted; what is absent does not narrow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JobQuery {
    /// Names of states.
    pub(crate) states: Option<Vec<String>>,
    pub(crate) user: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) name: Option<String>,
    /// A part of the name, user, tenant or model in any case, or the number.
    pub(crate) text: Option<String>,
}

/// What a list is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SortKey {
    Id,
    Name,
    User,
    Tenant,
    Model,
    State,
    Gpus,
    Priority,
    Submitted,
    Started,
    Ended,
}

/// An order of jobs; ties are broken by number in the same direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobOrder {
    pub(crate) key: SortKey,
    pub(crate) is_descending: bool,
}

/// A value that jobs are sorted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum KeyValue {
    Number(i64),
    Word(String),
}

/// A position in an order: after this job.
pub(crate) type SortPosition = (KeyValue, u32);

/// A page of a list.
#[derive(Clone, Debug)]
pub(crate) struct JobRange {
    pub(crate) order: JobOrder,
    pub(crate) after: Option<SortPosition>,
    pub(crate) most: usize,
}

/// Lines with their positions, and how many jobs fit the query in all.
pub(crate) struct Found {
    pub(crate) lines: Vec<(SortPosition, Job)>,
    pub(crate) n_all: u64,
}

impl JobOrder {
    /// Which of two positions comes first.
    pub(crate) fn compare(self, a: &SortPosition, b: &SortPosition) -> Ordering {
        if self.is_descending { b.cmp(a) } else { a.cmp(b) }
    }
}

impl JobRange {
    /// Whether a position is on this page or a later one.
    fn is_after(&self, position: &SortPosition) -> bool {
        self.after.as_ref().is_none_or(|after| self.order.compare(after, position) == Ordering::Less)
    }
}

/// Jobs that have not ended.
pub(crate) fn active_jobs(
    engine: &Engine,
    moment: Moment,
    person: &Person,
    query: &JobQuery,
    range: &JobRange,
) -> Found {
    let launches = newest_launches(engine);
    let cluster = engine.state.cluster();
    let mut found: Vec<(SortPosition, &JobRecord)> = Vec::new();
    let mut n_all = 0;
    for (id, job) in cluster.jobs() {
        let is_meant = !job.standing.is_over()
            && person.may_touch(&job.user)
            && fits(engine, query, *id, job, &launches);
        if !is_meant {
            continue;
        }
        n_all += 1;
        let position = (value(engine, range.order.key, *id, job, &launches), id.0);
        if range.is_after(&position) {
            found.push((position, job));
        }
    }
    // Only the jobs of the page are sorted.
    let order = range.order;
    if found.len() > range.most {
        found.select_nth_unstable_by(range.most, |a, b| order.compare(&a.0, &b.0));
        found.truncate(range.most);
    }
    found.sort_unstable_by(|a, b| order.compare(&a.0, &b.0));
    let to_line = |(position, job): (SortPosition, &JobRecord)| {
        let id = JobId(position.1);
        (position, line(engine, moment.now, id, job, launches.get(&id).copied()))
    };
    Found { lines: found.into_iter().map(to_line).collect(), n_all }
}

/// A reader for the jobs that have ended, whose they may be if not everybody's, and the names of the nodes.
pub(crate) fn past_jobs_reader(
    engine: &Engine,
    person: &Person,
) -> Result<(Reader, Option<String>, Vec<String>), Refusal> {
    let own = (!person.operates()).then(|| person.name.to_string());
    Ok((engine.store.reader()?, own, engine.state.cluster().nodes().to_vec()))
}

/// A reader for events, with whose jobs they may be about if not everybody's, and the names of the nodes.
pub(crate) fn events_reader(engine: &Engine, person: &Person) -> Result<EventsOf, Refusal> {
    let jobs = engine.state.cluster().jobs().iter();
    let own = jobs.filter(|(_, job)| job.user == person.name.as_str()).map(|(id, _)| *id);
    let own = (!person.operates()).then(|| (person.name.to_string(), own.collect()));
    Ok((engine.store.reader()?, own, engine.state.cluster().nodes().to_vec()))
}

/// A reader, whose events, and the names of the nodes.
type EventsOf = (Reader, Option<(String, BTreeSet<JobId>)>, Vec<String>);

/// How fast the head's clock runs, and when it began, in microseconds since 1970.
pub(crate) fn calendar(engine: &Engine) -> Result<(f64, i64), Refusal> {
    let born_us = engine.store.meta("born_us")?.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    Ok((engine.state.time_scale().factor(), born_us))
}

fn fits(
    engine: &Engine,
    query: &JobQuery,
    id: JobId,
    job: &JobRecord,
    launches: &BTreeMap<JobId, &LiveLaunch>,
) -> bool {
    let JobQuery { states, user, tenant: of_tenant, model, name, text } = query;
    let cluster = engine.state.cluster();
    let is = |wanted: &Option<String>, it: &str| wanted.as_ref().is_none_or(|wanted| wanted == it);
    if !is(user, &job.user) || !is(model, job.request.model.as_str()) || !is(name, job.request.name.as_str())
    {
        return false;
    }
    if of_tenant.is_some() && !is(of_tenant, &tenant(cluster, job)) {
        return false;
    }
    if let Some(text) = text {
        let wanted = text.to_lowercase();
        let own = [job.request.name.as_str(), &job.user, &tenant(cluster, job), job.request.model.as_str()];
        if !own.iter().any(|own| own.to_lowercase().contains(&wanted)) && id.to_string() != wanted {
            return false;
        }
    }
    states.as_ref().is_none_or(|states| {
        let state = views::job_state(cluster, id, job, launches.get(&id).map(|live| &live.phase));
        states.iter().any(|wanted| wanted == state.as_str())
    })
}

fn value(
    engine: &Engine,
    key: SortKey,
    id: JobId,
    job: &JobRecord,
    launches: &BTreeMap<JobId, &LiveLaunch>,
) -> KeyValue {
    let cluster = engine.state.cluster();
    let time = |time: Option<Time>| KeyValue::Number(time.map_or(-1, |time| time.0));
    match key {
        SortKey::Id => KeyValue::Number(i64::from(id.0)),
        SortKey::Name => KeyValue::Word(job.request.name.to_string()),
        SortKey::User => KeyValue::Word(job.user.clone()),
        SortKey::Tenant => KeyValue::Word(tenant(cluster, job)),
        SortKey::Model => KeyValue::Word(job.request.model.to_string()),
        SortKey::State => {
            let state = views::job_state(cluster, id, job, launches.get(&id).map(|live| &live.phase));
            KeyValue::Word(state.as_str().to_owned())
        }
        SortKey::Gpus => KeyValue::Number(i64::from(job.request.gpus)),
        SortKey::Priority => KeyValue::Number(i64::from(job.spec.priority)),
        SortKey::Submitted => KeyValue::Number(job.spec.arrival.0),
        SortKey::Started => time(job.started),
        SortKey::Ended => time(job.ended),
    }
}
