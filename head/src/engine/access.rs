//! Whether a person may ask for something, and what of it is theirs.

use std::path::PathBuf;
use std::sync::Arc;

use rota_core::ids::{Incarnation, JobId, NodeId};
use rota_transport::access::RequestKind;

use super::Engine;
use super::refusal::Refusal;
use crate::cluster_state::{JobRecord, Standing};
use crate::record::Record;
use crate::roles::{Person, Roles, RolesError};
use crate::settings::PersonLimits;
use crate::state::Moment;
use crate::store::history::EndedJob;
use crate::web::Sessions;

/// What the head's operator says about people.
#[derive(Debug, Default)]
pub(crate) struct Access {
    pub(crate) roles: Roles,
    /// The folder of scripts that people may choose by name.
    pub(crate) policies: Option<PathBuf>,
    /// What one person may ask for at most.
    pub(crate) limits: PersonLimits,
    /// Who is signed in to the page, if there is one.
    pub(crate) sessions: Option<Arc<Sessions>>,
}

/// Whether a person's role is enough for a kind of request. Every request passes here before anything else of it is read.
pub(super) fn check(person: &Person, kind: RequestKind) -> Result<(), Refusal> {
    let rule = kind.rule();
    if person.role >= Some(rule.least) {
        return Ok(());
    }
    let has = person.role.map_or("no role", |role| role.as_str());
    let (user, action, needs) = (person.name.clone(), rule.action, rule.least);
    tracing::warn!("{user} may not {action}: the role {needs} is needed, {user} has {has}");
    Err(Refusal::Role { user, action, needs, has })
}

/// Whether a kind of request changes nothing that would have to be written, or ends the head: it is answered while the disk
/// refuses.
pub(super) fn needs_no_disk(kind: RequestKind) -> bool {
    matches!(
        kind,
        RequestKind::Status
            | RequestKind::Jobs
            | RequestKind::Nodes
            | RequestKind::Logs
            | RequestKind::Events
            | RequestKind::Explain
            | RequestKind::WhatIf
            | RequestKind::WhatIfText
            | RequestKind::Journal
            | RequestKind::Rules
            | RequestKind::History
            | RequestKind::SignIn
            | RequestKind::Forecast
            | RequestKind::Shutdown
    )
}

/// A job that somebody asks about: one that the head has at hand, or one of the history.
pub(super) enum Found<'a> {
    Here(&'a JobRecord),
    Ended(Box<EndedJob>),
}

impl Found<'_> {
    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.standing().is_over()
    }

    /// How far it has come.
    pub(super) fn standing(&self) -> Standing {
        match self {
            Found::Here(job) => job.standing,
            Found::Ended(job) => job.standing,
        }
    }

    /// Its last launch and the nodes that it was on.
    pub(super) fn last_launch(&self) -> (Incarnation, &[NodeId]) {
        match self {
            Found::Here(job) => (job.last_launch.0, &job.last_launch.1),
            Found::Ended(job) => (job.last_launch, &job.nodes),
        }
    }
}

/// A job, if it is there and the person's to see. People are not told which numbers others have.
pub(super) fn job<'a>(engine: &'a Engine, person: &Person, id: JobId) -> Result<Found<'a>, Refusal> {
    let found = match engine.state.cluster().job(id) {
        Some(job) => Some(Found::Here(job)),
        None => engine.store.ended_job(id)?.map(|job| Found::Ended(Box::new(job))),
    };
    let is_theirs = |found: &Found<'_>| match found {
        Found::Here(job) => person.may_touch(&job.user),
        Found::Ended(job) => person.may_touch(&job.user),
    };
    match found.filter(is_theirs) {
        Some(job) => Ok(job),
        None if person.operates() => Err(Refusal::NoSuchJob(id)),
        None => Err(Refusal::NotYourJob(id)),
    }
}

/// Whether a person may see a job that the head has at hand.
pub(super) fn may_see(engine: &Engine, person: &Person, id: JobId) -> bool {
    engine.state.cluster().job(id).is_some_and(|job| person.may_touch(&job.user))
}

impl Engine {
    /// Records what a person did that leaves no other record.
    pub(super) fn note_act(&mut self, moment: Moment, person: &Person, action: &str) {
        let acted = self.act(person, action);
        self.state.record(moment, acted);
    }

    /// The record of what a person does; it is also logged.
    pub(super) fn act(&self, person: &Person, action: &str) -> Record {
        let role = person.role.map_or("", |role| role.as_str()).to_owned();
        let (user, action) = (person.name.to_string(), action.to_owned());
        tracing::info!("{user} ({role}) {action}");
        Record::Acted { user, role, action }
    }

    /// The file of roles changed: it is used, or its error is told and the roles before stay in force.
    pub(super) fn roles_changed(&mut self, moment: Moment, found: Result<Roles, RolesError>) {
        self.access.sessions.iter().for_each(|sessions| sessions.roles_changed());
        let text = match found {
            Ok(roles) => {
                let text = format!("the file of roles was read again: it names {} people", roles.len());
                self.access.roles = roles;
                tracing::info!("{text}");
                text
            }
            Err(error) => {
                let text =
                    format!("the file of roles cannot be used, the roles before stay in force: {error}");
                tracing::error!("{text}");
                text
            }
        };
        self.state.record(moment, Record::Noted { text });
    }
}
