//! Who may speak for a node: one agent at a time for each identity, and none that knows a later state than this head.

use rota_core::ids::{Incarnation, JobId};
use rota_transport::message::{Hello, InstanceId, Lineage, PROTOCOL_VERSION};
use rota_transport::value::Name;

use super::{Moment, State};
use crate::ancestry::{AncestryError, Kinship};
use crate::record::Record;

/// The most numbers that are left out because an agent says that it has seen them: an agent is not to use them up.
const MOST_SKIPPED: u32 = 1_000_000;

/// An agent whose greeting is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdmissionError {
    /// Another agent with its identity is alive, or may be.
    #[error(
        "another agent with the identity {name} is connected, or its lease is not over; this one has another run directory. It is \
         taken in when that lease is over"
    )]
    SecondAgent {
        /// The name in both certificates.
        name: Name,
    },
    /// A copy of its run directory is in use.
    #[error(
        "another agent with the identity {name} and a copy of the same run directory has taken the place of this one. Give each \
         machine a certificate and a run directory of its own"
    )]
    Superseded {
        /// The name in both certificates.
        name: Name,
    },
    /// Jobs of its predecessor may be alive.
    #[error(
        "this agent has a new run directory, and jobs of {name} that outlive its lease may still run there: {jobs}"
    )]
    JobsMayLive {
        /// The name in both certificates.
        name: Name,
        /// Their numbers.
        jobs: String,
    },
    /// It knows a later state, or serves another one.
    #[error(transparent)]
    Ancestry(#[from] AncestryError),
}

impl State {
    /// Lets an agent that greets take up its session, if it may.
    pub(crate) fn admit(&mut self, moment: Moment, name: &Name, hello: &Hello) -> Result<(), AdmissionError> {
        // The session refuses it, with a text of its own.
        if hello.protocol != PROTOCOL_VERSION || hello.name != *name {
            self.connected(name);
            return Ok(());
        }
        let admitted =
            self.check_identity(moment, name, hello).and_then(|()| Ok(self.ancestry.judge(hello)?));
        let kinship = match admitted {
            Ok(kinship) => kinship,
            Err(error) => {
                self.refuse(moment, name, &error);
                return Err(error);
            }
        };
        let replaces = match kinship {
            Kinship::Own => Lineage::NONE,
            Kinship::Replaced(lineage) => lineage,
            Kinship::NewlyReplaced(lineage) => {
                self.ancestry.replace(lineage);
                self.outbox.replaced(lineage);
                lineage
            }
        };
        if replaces != Lineage::NONE {
            self.skip_numbers(
                moment,
                JobId(hello.knows.n_jobs),
                Incarnation(hello.knows.last_launch.saturating_add(1)),
            );
        }
        self.refused.remove(name);
        self.connected(name);
        let former = self.agents.take_over(name, hello, self.ancestry.mark(), replaces);
        if former != hello.instance {
            self.outbox.instance(name, hello.instance);
        }
        if former != hello.instance && former != InstanceId::default() {
            let text = format!("{name} has a new run directory: the lease of the agent before it is over");
            tracing::warn!("{text}");
            self.record(moment, Record::Noted { text });
        }
        Ok(())
    }

    /// Why this head gives no orders: an agent knows a later state.
    pub(crate) fn later_state(&self) -> Option<&str> {
        self.later_state.as_deref()
    }

    /// Leaves out numbers of jobs and launches that a lost state may have given.
    pub(super) fn skip_numbers(&mut self, moment: Moment, first_job: JobId, first_launch: Incarnation) {
        let (next_job, next_launch) = (self.cluster.next_job(), self.cluster.first_launch());
        let (first_job, first_launch) = (first_job.max(next_job), first_launch.max(next_launch));
        let is_sane =
            first_job.0 - next_job.0 <= MOST_SKIPPED && first_launch.0 - next_launch.0 <= MOST_SKIPPED;
        if (first_job, first_launch) != (next_job, next_launch) && is_sane {
            self.record(moment, Record::NumbersSkipped { first_job, first_launch });
        }
    }

    /// One agent at a time for each identity: a restarted one is known by its run directory, another one has to wait until
    /// what the first runs can no longer be alive.
    fn check_identity(&self, moment: Moment, name: &Name, hello: &Hello) -> Result<(), AdmissionError> {
        let Some(agent) = self.agents.get(name) else { return Ok(()) };
        let has_lease = agent.lease_until().is_some_and(|until| until > moment.real);
        if has_lease && agent.is_superseded(hello.boot) {
            return Err(AdmissionError::Superseded { name: name.clone() });
        }
        if agent.instance() == InstanceId::default() || agent.instance() == hello.instance {
            return Ok(());
        }
        if has_lease {
            return Err(AdmissionError::SecondAgent { name: name.clone() });
        }
        let alive = agent.node().map(|node| self.launches.on_node(node)).unwrap_or_default();
        if alive.is_empty() {
            return Ok(());
        }
        let jobs: Vec<_> = alive.iter().map(|attempt| attempt.job.to_string()).collect();
        Err(AdmissionError::JobsMayLive { name: name.clone(), jobs: jobs.join(", ") })
    }

    /// Tells the operator once, not at every try of the agent.
    fn refuse(&mut self, moment: Moment, name: &Name, error: &AdmissionError) {
        let text = error.to_string();
        if self.refused.insert(name.clone(), text.clone()).as_ref() == Some(&text) {
            return;
        }
        tracing::error!("{name} is refused: {text}");
        if matches!(error, AdmissionError::Ancestry(AncestryError::Later { .. }))
            && self.later_state.is_none()
        {
            tracing::error!("this head gives no orders until it is started again");
            self.later_state = Some(text.clone());
        }
        self.record(moment, Record::Noted { text: format!("{name} was refused: {text}") });
    }
}
