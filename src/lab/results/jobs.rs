//! `jobs.csv`: what became of each job. The same run gives the same bytes: every number is an integer inside.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use rota_core::cluster::Cluster;
use rota_core::job::JobSpec;
use rota_core::ledger::{Outcome, Sample, Share, Status};
use rota_core::resources::Host;
use rota_core::time::{Span, Time};
use rota_core::workload::{Truth, Workload};

use super::{ResultsError, RunResult, decimal, table_file};

/// Columns that folders of older versions do not have.
const SHARE_COLUMNS: [&str; 5] =
    ["speed_of_best", "cpus_per_gpu", "cpus_wanted", "mem_gb_per_gpu", "mem_gb_wanted"];
/// The same, of how long a job waited and ran. `alone_s` is its run time at the proportional share with the GPUs it asked for,
/// by its real work.
const WAIT_COLUMNS: [&str; 5] = ["run_s", "wait_s", "alone_s", "slowdown", "finish_time_ratio"];

const COLUMNS: [&str; 15] = [
    "job_id",
    "tenant",
    "model",
    "gpus",
    "arrival_s",
    "start_s",
    "finish_s",
    "jct_s",
    "to_first_gpu_s",
    "status",
    "deadline_s",
    "met",
    "service_gpu_s",
    "preemptions",
    "reason",
];

/// One job, joined from what was submitted and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// Its name in the trace, not a number of ours.
    pub job_id: Arc<str>,
    /// Owner in the trace; quotas and fairness are counted by it.
    pub tenant: Arc<str>,
    /// Name of its model in the profiles.
    pub model: Arc<str>,
    /// GPUs it asked for.
    pub gpus: u32,
    /// Submission, from which completion time and queueing are counted.
    pub arrival: Time,
    /// When it first held GPUs.
    pub start: Option<Time>,
    /// When it ended; a declined job has no end.
    pub finish: Option<Time>,
    /// How it ended, or that it had not when the run did.
    pub status: Status,
    /// Its deadline, if it has one; of a soft deadline the last step, up to which the job is worth something.
    pub deadline: Option<Time>,
    /// Whether it was done by then; `None` without a deadline.
    pub met: Option<bool>,
    /// GPU time it held, in GPU-microseconds.
    pub service: Span,
    /// Time for which it held GPUs; `None` in folders of older versions.
    pub ran: Option<Span>,
    /// Time it would have taken at the proportional share with the GPUs it asked for, from its first step on; `None` in
    /// folders of older versions, and where its speed is not known.
    pub alone: Option<Span>,
    /// Its finish-time ratio in millionths: see [`JobRow::finish_time_ratio`].
    pub fairness_micro: Option<u64>,
    /// How often it was stopped before its end.
    pub preemptions: u32,
    /// CPUs and memory it held with its GPUs; `None` where speed does not depend on them, they were not recorded, or it never ran.
    pub share: Option<HostShare>,
    /// Why it was declined, failed, or did not end.
    pub reason: String,
}

/// What a job held with each of its GPUs, averaged over its GPU time, and what it would have liked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostShare {
    /// Its speed in millionths of its best with as many GPUs.
    pub of_best_micro: u64,
    /// CPUs and memory it held with a GPU.
    pub held: Host,
    /// What it asks for with a GPU to run at its best.
    pub wanted: Host,
}

impl JobRow {
    /// Job completion time: from submission to the end of its work.
    pub fn jct(&self) -> Option<Span> {
        self.finish.filter(|_| self.status == Status::Finished).map(|finish| finish - self.arrival)
    }

    /// Time from submission until it first held GPUs.
    pub fn to_first_gpu(&self) -> Option<Span> {
        self.start.map(|start| start - self.arrival)
    }

    /// Time without GPUs between submission and finish. An original that counts whole rounds may say that a job ran for
    /// longer than it was there: then it did not wait.
    pub fn wait(&self) -> Option<Span> {
        Some(Span(self.jct()?.0.saturating_sub(self.ran?.0).max(0)))
    }

    /// Completion time over the time the job takes alone with the GPUs it asked for.
    pub fn slowdown(&self) -> Option<f64> {
        let alone = self.alone.filter(|alone| *alone > Span::ZERO)?;
        Some(self.jct()?.as_secs_f64() / alone.as_secs_f64())
    }

    /// Completion time over the time the job takes with its part of the cluster to itself (Themis, NSDI'20, §3): the GPUs
    /// of the cluster divided by the jobs that were there on average while it was. Above 1 it fared worse than that.
    pub fn finish_time_ratio(&self) -> Option<f64> {
        self.fairness_micro.map(|micro| micro as f64 / 1e6)
    }

    /// The word for how it ended, as in the file.
    pub fn status_name(&self) -> &'static str {
        match self.status {
            Status::Finished => "finished",
            Status::Declined => "declined",
            Status::Unfinished => "unfinished",
            Status::Failed => "failed",
        }
    }
}

/// Joins jobs with outcomes; a job without one did not end.
pub(super) fn join(
    workload: &Workload,
    cluster: &Cluster,
    outcomes: &[Outcome],
    shares: &[Share],
    samples: &[Sample],
) -> Vec<JobRow> {
    let crowd = Crowd::new(samples);
    let mut words = Words::default();
    let tenants: Vec<Arc<str>> = workload.tenants.iter().map(|name| words.word(name)).collect();
    let never = Outcome::unfinished("the run ended before it arrived");
    let rows = workload.jobs.iter().enumerate();
    rows.map(|(index, job)| {
        let outcome = outcomes.get(index).unwrap_or(&never);
        let share = shares.get(index).and_then(|share| host_share(job, cluster, outcome.service, share));
        let alone = workload.truths.get(index).and_then(|truth| alone(job, cluster, truth));
        let row = JobRow { share, alone, ..row(job, outcome, &tenants, &mut words) };
        JobRow { fairness_micro: fairness_micro(&row, cluster, &crowd), ..row }
    })
    .collect()
}

fn alone(job: &JobSpec, cluster: &Cluster, truth: &Truth) -> Option<Span> {
    let rate = job.fair_rate(cluster) * truth.pace;
    (rate > 0.0).then(|| Span::from_secs_f64(truth.work / rate))
}

fn fairness_micro(job: &JobRow, cluster: &Cluster, crowd: &Crowd) -> Option<u64> {
    let n_jobs = crowd.mean(job.arrival, job.finish?)?;
    let part = f64::from(cluster.n_gpus()) / n_jobs.max(1.0);
    let slowdown_there = (f64::from(job.gpus) / part).max(1.0);
    Some((1e6 * job.slowdown()? / slowdown_there).round() as u64)
}

/// How many jobs there were, running or waiting, from each decision to the next.
struct Crowd {
    /// Time of each decision, the jobs from then on, and job-seconds until then.
    steps: Vec<(Time, f64, f64)>,
}

impl Crowd {
    fn new(samples: &[Sample]) -> Self {
        let mut steps: Vec<(Time, f64, f64)> = Vec::with_capacity(samples.len());
        for sample in samples {
            // A round that was passed over must not change the last bit of a sum.
            let n_jobs = f64::from(sample.running + sample.waiting);
            if steps.last().is_some_and(|step| step.1 == n_jobs) {
                continue;
            }
            let before = steps.last().map_or(0.0, |step| area(step, sample.time));
            steps.push((sample.time, n_jobs, before));
        }
        Crowd { steps }
    }

    /// The mean between two times; `None` without decisions, or between a time and itself.
    fn mean(&self, from: Time, to: Time) -> Option<f64> {
        let until = |time: Time| {
            let after = self.steps.partition_point(|step| step.0 <= time);
            after.checked_sub(1).map_or(0.0, |at| area(&self.steps[at], time))
        };
        let length = (to - from).as_secs_f64();
        (!self.steps.is_empty() && length > 0.0).then(|| (until(to) - until(from)) / length)
    }
}

/// Job-seconds up to `time`, which is not before the step.
fn area(step: &(Time, f64, f64), time: Time) -> f64 {
    step.2 + step.1 * (time - step.0).as_secs_f64()
}

fn host_share(job: &JobSpec, cluster: &Cluster, service: Span, share: &Share) -> Option<HostShare> {
    let gpu_s = service.as_secs_f64();
    if job.profile.host.is_none() || gpu_s <= 0.0 {
        return None;
    }
    Some(HostShare {
        of_best_micro: (1e6 * share.best_gpu_s / gpu_s).round() as u64,
        held: Host::from_units(share.cpu_s / gpu_s, share.mem_gb_s / gpu_s, 0.0),
        wanted: Host { storage_bps: 0, ..job.demand_per_gpu(cluster) },
    })
}

fn row(job: &JobSpec, outcome: &Outcome, tenants: &[Arc<str>], words: &mut Words) -> JobRow {
    let finish = outcome.finish.filter(|_| matches!(outcome.status, Status::Finished | Status::Failed));
    let deadline = job.deadline.last();
    let is_done_by =
        |time: Time| outcome.status == Status::Finished && finish.is_some_and(|finish| finish <= time);
    JobRow {
        job_id: Arc::from(&*job.name),
        tenant: tenants
            .get(job.tenant.index())
            .cloned()
            .unwrap_or_else(|| words.word(&job.tenant.to_string())),
        model: words.word(&job.profile.name),
        gpus: job.gpus.asked,
        arrival: job.arrival,
        start: outcome.start,
        finish,
        status: outcome.status,
        deadline,
        met: deadline.map(is_done_by),
        service: outcome.service,
        ran: Some(outcome.ran),
        alone: None,
        fairness_micro: None,
        preemptions: outcome.preemptions,
        share: None,
        reason: outcome.reason.clone(),
    }
}

/// The jobs of all runs in one table.
pub(super) fn write(runs: &[RunResult], path: &Path) -> Result<(), ResultsError> {
    let seconds = |time: Option<Time>| time.map(|t| t.to_string()).unwrap_or_default();
    let length = |span: Option<Span>| span.map(|s| s.to_string()).unwrap_or_default();
    let columns: Vec<&str> = COLUMNS.iter().chain(&WAIT_COLUMNS).chain(&SHARE_COLUMNS).copied().collect();
    table_file::write(path, &columns, runs, |writer, run| {
        for job in &run.jobs {
            writer.cells([
                &*job.job_id,
                &*job.tenant,
                &*job.model,
                &job.gpus.to_string(),
                &job.arrival.to_string(),
                &seconds(job.start),
                &seconds(job.finish),
                &length(job.jct()),
                &length(job.to_first_gpu()),
                job.status_name(),
                &seconds(job.deadline),
                job.met.map_or("", |met| if met { "1" } else { "0" }),
                &job.service.to_string(),
                &job.preemptions.to_string(),
                &job.reason,
            ])?;
            writer.cells(wait_cells(job))?;
            writer.cells(share_cells(job.share.as_ref()))?;
            writer.end_row()?;
        }
        Ok(())
    })
}

fn wait_cells(job: &JobRow) -> [String; 5] {
    let length = |span: Option<Span>| span.map(|s| s.to_string()).unwrap_or_default();
    let micro = |micro: Option<u64>| micro.map(|micro| decimal::write(micro, 6)).unwrap_or_default();
    let slowdown = job.slowdown().map(|slowdown| (slowdown * 1e6).round() as u64);
    [length(job.ran), length(job.wait()), length(job.alone), micro(slowdown), micro(job.fairness_micro)]
}

fn share_cells(share: Option<&HostShare>) -> [String; 5] {
    let Some(share) = share else { return Default::default() };
    [
        decimal::write(share.of_best_micro, 6),
        decimal::write(share.held.cpu_micro, 6),
        decimal::write(share.wanted.cpu_micro, 6),
        decimal::write(share.held.mem_bytes, 9),
        decimal::write(share.wanted.mem_bytes, 9),
    ]
}

fn share_of(row: &table_file::Row<'_>) -> Result<Option<HostShare>, ResultsError> {
    if row.text("speed_of_best").is_empty() {
        return Ok(None);
    }
    let host = |cpus, mem_gb| -> Result<Host, ResultsError> {
        Ok(Host { cpu_micro: row.amount(cpus, 6)?, mem_bytes: row.amount(mem_gb, 9)?, storage_bps: 0 })
    };
    Ok(Some(HostShare {
        of_best_micro: row.amount("speed_of_best", 6)?,
        held: host("cpus_per_gpu", "mem_gb_per_gpu")?,
        wanted: host("cpus_wanted", "mem_gb_wanted")?,
    }))
}

/// The jobs of each of `n_runs` runs.
pub(super) fn read(path: &Path, n_runs: usize) -> Result<Vec<Vec<JobRow>>, ResultsError> {
    let mut words = Words::default();
    let mut jobs = vec![Vec::new(); n_runs];
    let required: Vec<&'static str> =
        COLUMNS.iter().copied().filter(|name| *name != "to_first_gpu_s" && *name != "jct_s").collect();
    let optional: Vec<&'static str> = WAIT_COLUMNS.iter().chain(&SHARE_COLUMNS).copied().collect();
    table_file::read_with(path, &required, &optional, |row| {
        let amount = |column| match row.text(column) {
            "" => Ok(None),
            _ => row.amount(column, 6).map(Some),
        };
        let span = |column| Ok(amount(column)?.map(|micros| Span(micros as i64)));
        jobs[row.run(n_runs)?].push(JobRow {
            job_id: Arc::from(row.text("job_id")),
            tenant: words.word(row.text("tenant")),
            model: words.word(row.text("model")),
            gpus: row.value("gpus", "number of GPUs")?,
            arrival: row.known_time("arrival_s")?,
            start: row.time("start_s")?,
            finish: row.time("finish_s")?,
            status: status(row.text("status")).ok_or_else(|| row.wrong("status", "status of a job"))?,
            deadline: row.time("deadline_s")?,
            met: match row.text("met") {
                "" => None,
                "1" => Some(true),
                "0" => Some(false),
                _ => return Err(row.wrong("met", "1, 0 or empty value")),
            },
            service: Span(row.fixed("service_gpu_s", 6)?),
            ran: span("run_s")?,
            alone: span("alone_s")?,
            fairness_micro: amount("finish_time_ratio")?,
            preemptions: row.value("preemptions", "count")?,
            share: share_of(row)?,
            reason: row.text("reason").to_owned(),
        });
        Ok(())
    })?;
    Ok(jobs)
}

fn status(name: &str) -> Option<Status> {
    Some(match name {
        "finished" => Status::Finished,
        "declined" => Status::Declined,
        "unfinished" => Status::Unfinished,
        "failed" => Status::Failed,
        _ => return None,
    })
}

/// Each word once: a million jobs share a handful of tenants and models.
#[derive(Default)]
struct Words(BTreeSet<Arc<str>>);

impl Words {
    fn word(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new: Arc<str> = Arc::from(text);
        self.0.insert(new.clone());
        new
    }
}

#[cfg(test)]
mod tests {
    use rota_core::ids::{JobId, TenantId};
    use rota_core::job::{Deadline, GpuRequest};
    use rota_core::profile::Profile;

    use super::*;

    #[test]
    fn a_soft_deadline_is_met_up_to_its_last_step() {
        let seconds = |n: i64| Time::ZERO + Span::from_secs(n);
        let spec = JobSpec {
            id: JobId(0),
            name: "soft".into(),
            tenant: TenantId(0),
            priority: 0,
            profile: Arc::new(Profile::plain("plain", 1.0)),
            batch: 0,
            gpus: GpuRequest::fixed(1),
            gpu_type: None,
            estimated_work: 60.0,
            arrival: Time::ZERO,
            deadline: Deadline::Soft(vec![(seconds(100), 10.0), (seconds(200), 5.0)]),
            dataset: None,
            costs: None,
        };
        let workload = Workload {
            jobs: vec![Arc::new(spec)],
            truths: vec![Truth::of(60.0)],
            tenants: vec!["somebody".into()],
            datasets: Vec::new(),
        };
        let met = |finish: i64| {
            let outcome = Outcome {
                status: Status::Finished,
                start: Some(Time::ZERO),
                finish: Some(seconds(finish)),
                service: Span::from_secs(60),
                ran: Span::from_secs(60),
                preemptions: 0,
                reason: String::new(),
            };
            let row = join(&workload, &super::super::samples::cluster(), &[outcome], &[], &[]).remove(0);
            (row.deadline, row.met)
        };
        assert_eq!(met(150), (Some(seconds(200)), Some(true)), "its second step");
        assert_eq!(met(201), (Some(seconds(200)), Some(false)));
    }
}
