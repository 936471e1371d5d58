//! Jobs that have ended, as people ask for them: from the tables of the store, a page at a time, with wall-clock times.

use rota_core::time::Time;
use rota_transport::message::{EndedJobView, HistoryFilter, JobStateView, ToUser};
use rota_transport::value::{Iterations, Name, Text};

use super::refusal::Refusal;
use super::{Engine, views};
use crate::cluster_state::Standing;
use crate::roles::Person;
use crate::store::history;

/// The most jobs in one answer: the client asks for the next page.
const MOST_JOBS: usize = 1_000;
/// The most jobs in one message.
const PER_MESSAGE: usize = 200;

/// A page of the jobs that have ended; people who do not operate the cluster get their own.
pub(super) fn history(
    engine: &Engine,
    person: &Person,
    filter: &HistoryFilter,
) -> Result<Vec<ToUser>, Refusal> {
    let user = filter.user.as_str();
    if !user.is_empty() && !person.may_touch(user) {
        return Err(Refusal::OthersJobs(filter.user.clone()));
    }
    let born_us = engine.store.meta("born_us")?.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    let scale = engine.state.time_scale().factor();
    let to_head = |us: i64| Time(((us - born_us) as f64 * scale) as i64);
    let to_calendar = |time: Time| born_us + (time.0 as f64 / scale) as i64;
    let text = |text: &Text| Some(text.to_string()).filter(|text| !text.is_empty());
    let standing = match filter.state {
        None => None,
        Some(JobStateView::Finished) => Some(Standing::Finished),
        Some(JobStateView::Declined) => Some(Standing::Declined),
        Some(JobStateView::Cancelled) => Some(Standing::Cancelled),
        Some(JobStateView::Failed) => Some(Standing::Failed),
        Some(JobStateView::TimeLimit) => Some(Standing::TimeLimit),
        Some(_) => return Err(Refusal::NotAnEnd),
    };
    let own = (!person.operates()).then(|| person.name.to_string());
    let wanted = history::HistoryFilter {
        from: filter.from_us.map(to_head),
        until: filter.until_us.map(to_head),
        user: own.or_else(|| text(&filter.user)),
        tenant: text(&filter.tenant),
        model: text(&filter.model),
        name: text(&filter.name),
        standing,
        after: filter.after,
        most: MOST_JOBS,
    };
    let cluster = engine.state.cluster();
    let count = |count: f64| Iterations::new(count.clamp(0.0, 1e15)).unwrap_or(Iterations::NONE);
    let view = |job: &history::EndedJob| {
        Some(EndedJobView {
            id: job.id,
            name: Text::cut(&job.name),
            user: Name::new(job.user.as_str()).ok()?,
            tenant: Text::cut(&job.tenant),
            model: Text::cut(&job.model),
            state: views::state_of_ended(job.standing),
            reason: Text::cut(&job.reason),
            gpus: job.gpus,
            submitted_us: to_calendar(job.arrival),
            started_us: job.started.map(to_calendar),
            ended_us: to_calendar(job.ended),
            gpu_s: job.gpu_s,
            done: count(job.done),
            work: count(job.work),
            launches: job.last_launch,
            n_failures: job.n_failures,
            n_preemptions: job.n_preemptions,
            nodes: job.nodes.iter().map(|node| Text::cut(cluster.node_name(*node))).collect(),
        })
    };
    let found: Vec<_> = engine.store.history(&wanted)?.iter().filter_map(view).collect();
    let mut answers: Vec<_> = found.chunks(PER_MESSAGE).map(|some| ToUser::History(some.to_vec())).collect();
    answers.push(ToUser::End);
    Ok(answers)
}
