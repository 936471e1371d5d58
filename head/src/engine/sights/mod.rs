//! What looks show: jobs, nodes, tenants, the policy, how the head fares. Each is a function of the engine's state and of the
//! person who looks: what is not theirs is left out here, not in the page.

mod board;
mod figures;
mod jobs;
mod list;
mod nodes;

pub(crate) use board::{
    Board, BoardJob, BoardNode, BoardPolicy, Changes, JOB_COLUMNS, JobRow, NODE_COLUMNS, Watch, event,
    start_over,
};
pub(crate) use figures::{Figures, disk_trouble, figures};
pub(crate) use jobs::{job, line_of_ended, start};
pub(crate) use list::{
    JobOrder, JobQuery, JobRange, KeyValue, SortKey, SortPosition, active_jobs, calendar, events_reader,
    past_jobs_reader,
};
pub(crate) use nodes::{node, nodes, tenants};

use std::collections::BTreeMap;

use rota_core::ids::JobId;
use rota_transport::access::RequestKind;
use rota_transport::identity::UserRole;

use super::refusal::Refusal;
use super::{Engine, policies, views};
use crate::decider::Scripts;
use crate::roles::Person;
use crate::state::{LiveLaunch, Moment};
use crate::web::shapes::{ClockShape, PolicyPage, Status};

/// Actions that a page offers or hides, and the requests that they stand for.
const ACTIONS: [(&str, RequestKind); 16] = [
    ("submit", RequestKind::Submit),
    ("cancel", RequestKind::CancelSome),
    ("hold", RequestKind::Hold),
    ("release", RequestKind::Release),
    ("requeue", RequestKind::Requeue),
    ("priority", RequestKind::Priority),
    ("drain", RequestKind::ServiceNode),
    ("give-up", RequestKind::GiveUp),
    ("policy-set", RequestKind::SetPolicyText),
    ("what-if", RequestKind::WhatIfText),
    ("forecast", RequestKind::Forecast),
    ("journal", RequestKind::Journal),
    ("rules", RequestKind::Rules),
    ("shutdown", RequestKind::Shutdown),
    ("stop-all", RequestKind::StopAll),
    ("fast-forward", RequestKind::FastForward),
];

/// Who looks, and what they may do.
pub(crate) struct WhoLooks {
    pub(crate) role: Option<UserRole>,
    pub(crate) tenants: Vec<String>,
    pub(crate) may: Vec<String>,
}

/// Who looks.
pub(crate) fn who(person: &Person) -> WhoLooks {
    let may = |(_, kind): &&(&str, RequestKind)| person.role >= Some(kind.rule().least);
    WhoLooks {
        role: person.role,
        tenants: person.tenants_text().split(", ").map(str::to_owned).collect(),
        may: ACTIONS.iter().filter(may).map(|(word, _)| (*word).to_owned()).collect(),
    }
}

/// The head in a few numbers.
pub(crate) fn status(engine: &Engine, moment: Moment) -> Status {
    let status = views::status(engine, moment);
    let nodes = engine.state.cluster().scheduler().cluster().nodes();
    Status {
        version: status.version.to_string(),
        epoch: status.epoch.0,
        now_s: status.now.as_secs_f64(),
        clock: clock(engine),
        is_ready: status.is_ready,
        policy: status.policy.to_string(),
        trouble: views::trouble(engine),
        round_s: status.round.span().as_secs_f64(),
        n_rounds: status.n_rounds,
        n_nodes: status.n_nodes,
        n_nodes_up: status.n_nodes_up,
        n_gpus: nodes.iter().map(|node| node.n_gpus).sum(),
        n_gpus_up: status.n_gpus_up,
        n_gpus_busy: status.n_gpus_busy,
        n_waiting: status.n_waiting,
        n_running: status.n_running,
    }
}

/// How the head's time becomes time of the calendar: as it is now, because time may have been skipped.
fn clock(engine: &Engine) -> ClockShape {
    let (moment, time_scale) = (engine.clock.moment(), engine.state.time_scale().factor());
    let since_s = moment.now.as_secs_f64() / time_scale;
    // To the second: a status that differs in nothing else is not sent again.
    let born_unix_s = (crate::clock::calendar_us() as f64 / 1e6 - since_s).round();
    ClockShape { born_unix_s, time_scale }
}

/// The policy that decides, and where its texts are; they are for operators, as the journal is.
pub(crate) fn policy(engine: &Engine, person: &Person) -> Result<(PolicyPage, Scripts), Refusal> {
    let policy = engine.state.cluster().policy();
    let page = PolicyPage {
        name: policy.name.clone(),
        set: policy.set.clone(),
        refused: policy.refused.clone(),
        trouble: engine.decider.failure().to_owned(),
        parts: Vec::new(),
    };
    let known = if person.operates() { policy.files.clone() } else { Vec::new() };
    let sent = if person.operates() { policy.texts.clone() } else { Vec::new() };
    let scripts = Scripts {
        sent,
        folder: engine.access.policies.clone().filter(|_| person.operates()),
        kept: known,
        prefers_kept: true,
        ..Scripts::default()
    };
    Ok((page, scripts))
}

/// Where the texts of a policy are that a request names.
pub(crate) fn scripts_for(engine: &Engine, policy: &str) -> Result<Scripts, Refusal> {
    policies::check(policy, &[])?;
    Ok(Scripts { folder: engine.access.policies.clone(), ..Scripts::default() })
}

/// The newest launch that may be alive of each job.
fn newest_launches(engine: &Engine) -> BTreeMap<JobId, &LiveLaunch> {
    engine.state.launches().iter().map(|(attempt, live)| (attempt.job, live)).collect()
}
