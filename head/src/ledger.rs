//! From a journal to the ledger of a run, so that a deployed trace is reported in the same figures as a simulated one.

use std::ops::Range;
use std::sync::Arc;

use rota_core::cluster::Cluster;
use rota_core::digest::Digest;
use rota_core::event::{Command, Event};
use rota_core::ids::JobId;
use rota_core::ledger::Ledger;
use rota_core::recorder::Recorder;
use rota_core::time::Time;

use crate::cluster_state::{ClusterState, ImageError, Standing};
use crate::record::Record;
use crate::rules::Rules;

/// A stretch of a journal: some jobs, and how its times are counted.
#[derive(Clone, Debug)]
pub struct Stint {
    /// The jobs' numbers.
    pub jobs: Range<u32>,
    /// When it begins, in the head's time: earlier records are not counted.
    pub begin: Time,
    /// The moment from which times are counted.
    pub origin: Time,
}

/// The ledger of jobs that had the cluster to themselves.
pub fn ledger_of(
    journal: &[(Time, Record)],
    rules: &Rules,
    stint: &Stint,
) -> Result<(Ledger, Arc<Cluster>), ImageError> {
    let mut cluster = ClusterState::at_start_of(journal, rules)?;
    let n_received =
        journal.iter().filter(|(_, record)| matches!(record, Record::JobReceived { .. })).count();
    let n_jobs = cluster.next_job().index() + n_received;
    let mut recorder = Recorder::new(n_jobs, true);
    let mut digest = Digest::default();
    let mut last = Time::ZERO;
    for (time, record) in journal {
        let now = Time((*time - stint.origin).0);
        last = last.max(now);
        let applied = cluster.apply(*time, record);
        if *time < stint.begin {
            continue;
        }
        if let Some(event) = &applied.event {
            digest.event(now, event);
            recorder.event(now, event);
            note_left(&mut recorder, &cluster, event);
        }
        for order in &applied.orders {
            digest.command(now, order);
            recorder.command(now, order, cluster.scheduler().jobs(), cluster.scheduler().cluster());
            if let Command::Decline { job, .. } = order {
                leave(&mut recorder, &cluster, *job);
            }
        }
        if let Record::Planned { plan, .. } = record {
            let up = cluster.scheduler().cluster().nodes().iter().zip(&cluster.scheduler().nodes().is_up);
            let gpus_up = up.filter(|(_, up)| **up).map(|(node, _)| node.n_gpus).sum();
            let jobs = cluster.scheduler().jobs();
            recorder.decided(now, jobs, gpus_up, applied.orders.len(), plan.notes.clone());
        }
    }
    let why = |job: JobId| match cluster.job(job).map(|job| job.standing) {
        Some(Standing::Cancelled | Standing::Failed | Standing::TimeLimit) => {
            cluster.job(job).map(|job| job.reason.clone()).unwrap_or_default()
        }
        _ => "had not ended when the journal was read".to_owned(),
    };
    let mut ledger = recorder.close(last, digest.hex(), why);
    let Range { start, end } = stint.jobs.clone();
    ledger.first = cluster.job(JobId(start)).map(|job| Time((job.spec.arrival - stint.origin).0));
    ledger.outcomes.truncate(end as usize);
    ledger.outcomes.drain(..(start as usize).min(ledger.outcomes.len()));
    ledger.timeline.retain(|stretch| stint.jobs.contains(&stretch.job.0));
    for stretch in &mut ledger.timeline {
        stretch.job = JobId(stretch.job.0 - start);
    }
    Ok((ledger, Arc::clone(cluster.scheduler().cluster())))
}

fn note_left(recorder: &mut Recorder, cluster: &ClusterState, event: &Event) {
    if let Event::JobFinished { job, .. } | Event::JobCancelled { job } = event {
        leave(recorder, cluster, *job);
    }
}

fn leave(recorder: &mut Recorder, cluster: &ClusterState, job: JobId) {
    recorder.left(cluster.job(job).map_or(0, |job| job.request.gpus));
}
