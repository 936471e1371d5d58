//! A snapshot for another process: what differs from the one sent before, so that a cluster with ten thousand waiting jobs
//! costs a round no more than the jobs that changed.
//!
//! [`Sent`] is the sender's end, [`Received`] the receiver's. Both begin empty: the first difference is the whole snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::job::JobSpec;
use crate::profile::Profile;
use crate::snapshot::{Guards, NodeStates, Snapshot};
use crate::table::JobTable;
use crate::table::rows::Row;
use crate::time::{Span, Time};

/// More profiles than this, and than twice the jobs, are sent anew: most of them are of jobs that have ended.
const MOST_PROFILES: usize = 1_000;

/// What has to be changed in the receiver's last snapshot to get the next one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Difference {
    /// Whether the receiver is to forget what it has.
    is_whole: bool,
    now: Time,
    round: Span,
    n_jobs: u32,
    rows: Vec<(u32, Row)>,
    /// Profiles that were not sent before; they are numbered in the order of sending.
    profiles: Vec<Profile>,
    cluster: Option<Cluster>,
    nodes: Option<NodeStates>,
    guards: Option<Guards>,
    tenants: Option<Vec<String>>,
}

/// A difference that does not fit what was received before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a snapshot does not fit the one before it: {0}")]
pub struct DifferenceError(&'static str);

/// What was sent to a receiver.
#[derive(Debug, Default)]
pub struct Sent {
    last: Option<Snapshot>,
    /// Kept alive, so that an address is not used for another profile.
    profiles: Vec<Arc<Profile>>,
    number_of: BTreeMap<usize, u32>,
}

impl Sent {
    /// What the receiver needs to know of a snapshot.
    pub fn difference(&mut self, snapshot: &Snapshot) -> Difference {
        if self.profiles.len() > MOST_PROFILES.max(2 * snapshot.jobs.len()) {
            *self = Sent::default();
        }
        let last = self.last.take();
        let nothing = JobTable::default();
        let before = last.as_ref().map_or(&nothing, |last| &*last.jobs);
        let n_known = self.profiles.len();
        let rows = snapshot.jobs.rows_since(before, |spec| {
            let address = Arc::as_ptr(&spec.profile) as usize;
            *self.number_of.entry(address).or_insert_with(|| {
                self.profiles.push(Arc::clone(&spec.profile));
                self.profiles.len() as u32 - 1
            })
        });
        fn changed<T: Clone + PartialEq>(last: Option<&Arc<T>>, now: &Arc<T>) -> Option<T> {
            let is_same = last.is_some_and(|last| Arc::ptr_eq(last, now) || last == now);
            (!is_same).then(|| T::clone(now))
        }
        let difference = Difference {
            is_whole: last.is_none(),
            now: snapshot.now,
            round: snapshot.round,
            n_jobs: snapshot.jobs.len() as u32,
            rows,
            profiles: self.profiles[n_known..].iter().map(|profile| Profile::clone(profile)).collect(),
            cluster: changed(last.as_ref().map(|last| &last.cluster), &snapshot.cluster),
            nodes: changed(last.as_ref().map(|last| &last.nodes), &snapshot.nodes),
            guards: changed(last.as_ref().map(|last| &last.guards), &snapshot.guards),
            tenants: changed(last.as_ref().map(|last| &last.tenants), &snapshot.tenants),
        };
        self.last = Some(snapshot.clone());
        difference
    }
}

/// What was received.
#[derive(Debug, Default)]
pub struct Received {
    jobs: Arc<JobTable>,
    profiles: Vec<Arc<Profile>>,
    cluster: Option<Arc<Cluster>>,
    nodes: Option<Arc<NodeStates>>,
    guards: Option<Arc<Guards>>,
    tenants: Option<Arc<Vec<String>>>,
}

impl Received {
    /// The snapshot that was sent.
    pub fn apply(&mut self, difference: Difference) -> Result<Snapshot, DifferenceError> {
        if difference.is_whole {
            *self = Received::default();
        }
        self.profiles.extend(difference.profiles.into_iter().map(Arc::new));
        let profiles = &self.profiles;
        let spec_of = |profile: u32, spec: JobSpec| {
            let profile = Arc::clone(profiles.get(profile as usize)?);
            Some(JobSpec { profile, ..spec })
        };
        Arc::make_mut(&mut self.jobs)
            .put_rows(difference.n_jobs as usize, difference.rows, spec_of)
            .map_err(DifferenceError)?;
        fn updated<T>(mine: &mut Option<Arc<T>>, sent: Option<T>) -> Result<Arc<T>, DifferenceError> {
            if let Some(sent) = sent {
                *mine = Some(Arc::new(sent));
            }
            mine.clone().ok_or(DifferenceError("it begins in the middle"))
        }
        Ok(Snapshot {
            now: difference.now,
            round: difference.round,
            jobs: Arc::clone(&self.jobs),
            cluster: updated(&mut self.cluster, difference.cluster)?,
            nodes: updated(&mut self.nodes, difference.nodes)?,
            guards: updated(&mut self.guards, difference.guards)?,
            tenants: updated(&mut self.tenants, difference.tenants)?,
        })
    }
}
