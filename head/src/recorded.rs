//! A journal as a trace: the jobs that were submitted, with what they turned out to need, for a simulation or another
//! deployment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rota_core::cluster::Cluster;
use rota_core::ids::JobId;
use rota_core::job::{Deadline, JobSpec};
use rota_core::time::{Span, Time};
use rota_core::workload::{Truth, Workload};

use crate::cluster_state::{ClusterState, ImageError, JobRecord, Standing};
use crate::record::Record;
use crate::rules::Rules;

/// The jobs of a journal, the first arriving at 0, and the nodes that were there.
pub fn recorded(journal: &[(Time, Record)], rules: &Rules) -> Result<(Workload, Arc<Cluster>), ImageError> {
    let mut cluster = ClusterState::at_start_of(journal, rules)?;
    let mut running = Running::default();
    for (time, record) in journal {
        cluster.apply(*time, record);
        running.note(*time, record);
    }
    let origin = cluster.jobs().values().next().map_or(Time::ZERO, |job| job.spec.arrival);
    let names: BTreeSet<_> = cluster.jobs().values().map(|job| job.spec.name.clone()).collect();
    let has_own_names = names.len() == cluster.jobs().len();
    let mut workload = Workload { tenants: cluster.tenants().to_vec(), ..Workload::default() };
    for (index, (id, job)) in cluster.jobs().iter().enumerate() {
        let ran = running.total.get(id).copied().unwrap_or(Span::ZERO);
        // A journal may leave numbers out, a trace does not.
        let spec = JobSpec { id: JobId::from(index), ..spec(job, origin, has_own_names) };
        workload.jobs.push(Arc::new(spec));
        workload.truths.push(Truth::of(work(job, ran)));
    }
    Ok((workload, Arc::clone(cluster.scheduler().cluster())))
}

fn spec(job: &JobRecord, origin: Time, has_own_names: bool) -> JobSpec {
    let mut spec = JobSpec::clone(&job.spec);
    let moved = |time: Time| Time((time - origin).0);
    spec.arrival = moved(spec.arrival);
    if let Deadline::Strict(time) = &mut spec.deadline {
        *time = moved(*time);
    }
    if !has_own_names {
        spec.name = spec.id.to_string().into();
    }
    spec
}

/// What a job needed: the iterations it did, or the seconds it ran if it has no profile. For a job that did not finish,
/// what its request says.
fn work(job: &JobRecord, ran: Span) -> f64 {
    let needed = match (job.standing, job.request.model.as_str()) {
        (Standing::Finished, "") => ran.as_secs_f64(),
        (Standing::Finished, _) => job.done,
        _ => 0.0,
    };
    if needed > 0.0 { needed } else { job.spec.estimated_work }
}

/// How long jobs ran, over all their launches.
#[derive(Default)]
struct Running {
    since: BTreeMap<JobId, Time>,
    total: BTreeMap<JobId, Span>,
}

impl Running {
    fn note(&mut self, now: Time, record: &Record) {
        match record {
            Record::JobStarted { job, .. } => {
                self.since.insert(*job, now);
            }
            Record::JobStopped { job, .. }
            | Record::JobRequeued { job, .. }
            | Record::JobFinished { job, .. }
            | Record::JobCancelled { job, .. }
            | Record::JobFailed { job, .. }
            | Record::JobTimedOut { job, .. } => {
                if let Some(since) = self.since.remove(job) {
                    *self.total.entry(*job).or_insert(Span::ZERO) += now - since;
                }
            }
            _ => {}
        }
    }
}
