//! `summary.json`: the figures of each run.
//!
//! JCT is finish - arrival of jobs that finished, waiting is JCT - time with GPUs, the time to the first GPU is first
//! start - arrival of jobs that started; all are averaged over the measurement window, if there is one. Counts, deadlines, utilisation and efficiency are of the
//! whole run. Best-effort jobs are those without a deadline in a run where others have one.

use rota_core::ledger::{FaultUse, Ledger, Status};
use rota_core::time::{Span, Time};

use super::{FORMAT, JobRow, Results, RunMeta, Window};
use crate::statistics::{mean, quantile};

/// What only a clock knows of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// Wall-clock seconds of the whole run.
    pub wall_s: f64,
    /// Wall-clock seconds spent in decisions.
    pub decide_s: f64,
}

/// The figures of one run, in the order of the file. A figure of nothing is missing, not zero.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Summary {
    /// As on the command line, its parts joined by `+`.
    pub policy: String,
    /// Seed of the workload and of every random stream.
    pub seed: u64,
    /// Jobs submitted.
    pub jobs: u64,
    /// Jobs whose work was done.
    pub finished: u64,
    /// Jobs that were not refused at admission.
    #[serde(default)]
    pub accepted: u64,
    /// Jobs refused at admission.
    pub declined: u64,
    /// Jobs that had not ended when the run did.
    pub unfinished: u64,
    /// Jobs given up.
    pub failed: u64,
    /// Jobs done by their deadline.
    pub met: u64,
    /// Jobs done after their deadline.
    pub missed: u64,
    /// Average job completion time.
    pub avg_jct_s: Option<f64>,
    /// Median job completion time.
    pub median_jct_s: Option<f64>,
    /// 95th percentile.
    pub p95_jct_s: Option<f64>,
    /// 99th percentile.
    pub p99_jct_s: Option<f64>,
    /// Average completion time of best-effort jobs.
    #[serde(default)]
    pub avg_best_effort_jct_s: Option<f64>,
    /// Last finish - first arrival.
    pub makespan_s: Option<f64>,
    /// Average time that finished jobs spent without GPUs.
    #[serde(default)]
    pub avg_wait_s: Option<f64>,
    /// 99th percentile.
    #[serde(default)]
    pub p99_wait_s: Option<f64>,
    /// Average time until the first start.
    #[serde(alias = "avg_queue_s")]
    pub avg_to_first_gpu_s: Option<f64>,
    /// Average of completion time over the time a job takes alone with the GPUs it asked for.
    #[serde(default)]
    pub avg_slowdown: Option<f64>,
    /// 99th percentile.
    #[serde(default)]
    pub p99_slowdown: Option<f64>,
    /// Average of completion time over the time a job takes with its part of the cluster to itself.
    #[serde(default)]
    pub avg_finish_time_ratio: Option<f64>,
    /// 99th percentile.
    #[serde(default)]
    pub p99_finish_time_ratio: Option<f64>,
    /// Jobs with a deadline.
    pub deadline_jobs: u64,
    /// Of these, done by it.
    pub deadline_met: u64,
    /// The same as a fraction.
    pub deadline_ratio: Option<f64>,
    /// GPU time held, as a fraction of what the cluster had between first arrival and last end.
    pub gpu_util: Option<f64>,
    /// The same between first and last arrival, while work kept coming; missing where all jobs arrive at once.
    #[serde(default)]
    pub gpu_util_loaded: Option<f64>,
    /// From the last arrival to the last end, while the cluster ran empty.
    #[serde(default)]
    pub drain_s: Option<f64>,
    /// Like `gpu_util`, of CPUs.
    pub cpu_util: Option<f64>,
    /// Average over the same time of how fast all jobs run relative to one GPU each, by GPU of the cluster.
    #[serde(default)]
    pub cluster_efficiency: Option<f64>,
    /// How often a job found its data set on a node it came to; missing where no data sets are in play.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_hit_ratio: Option<f64>,
    /// Bytes of data sets that nodes fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_fetched_bytes: Option<u64>,
    /// Average time for which a job held GPUs and waited for its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_wait_s: Option<f64>,
    /// Decisions taken.
    pub rounds: u64,
    /// Rounds skipped because the answer could not have changed.
    pub rounds_skipped: u64,
    /// Jobs stopped before their end, each time counted.
    pub preemptions: u64,
    /// Wall-clock seconds of the whole run.
    pub wall_s: f64,
    /// Wall-clock seconds spent in decisions.
    pub decide_s: f64,
    /// Digest over all events and commands: equal runs have equal ones.
    pub digest: String,
    /// Load of a generated workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs_per_hour: Option<f64>,
    /// Whether estimates were exact.
    pub exact_estimates: bool,
    /// Whether the policy looked at an estimate; with exact ones it is an oracle.
    #[serde(default = "super::config::yes")]
    pub reads_estimates: bool,
    /// Jobs that averages and percentiles are about; all of them when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Jobs behind the averages: finished ones in the window.
    pub measured: u64,
    /// What failed and what that cost; missing where nothing could fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<Faults>,
    /// Speed left on the table, where speed depends on CPUs and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_gap: Option<SpeedGap>,
    /// Who promised deadlines, where admission does so by a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promises: Option<Promises>,
}

/// What failed in a run, and what that cost. Hours are GPU-hours.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Faults {
    /// Failures of nodes, also those of their racks.
    pub node_failures: u64,
    /// Failures of single GPUs.
    pub gpu_failures: u64,
    /// How often a node became slow.
    pub slowdowns: u64,
    /// How often a failure stopped a job.
    pub stops: u64,
    /// GPU time that was down.
    pub down_h: f64,
    /// GPU time whose work was lost: since the last checkpoint, or all of it where the checkpoint was lost too.
    pub lost_h: f64,
    /// GPU time in which jobs held GPUs and did not work yet, restarting or waiting for data.
    pub overhead_h: f64,
    /// GPU time of work by jobs that then failed or were killed.
    pub premature_h: f64,
    /// The part of the GPU time held that was none of the last three; missing where no GPU was held.
    pub goodput: Option<f64>,
    /// The part of the GPU time held whose work was lost.
    pub lost: Option<f64>,
    /// Average time from a failure until the job had again what it had done before it.
    pub avg_recovery_s: Option<f64>,
    /// 99th percentile.
    pub p99_recovery_s: Option<f64>,
    /// Jobs that had not recovered when the run ended.
    pub unrecovered: u64,
}

impl Faults {
    fn of(found: &FaultUse, gpu_time: i128) -> Self {
        let hours = |gpu_micros: i128| gpu_micros as f64 / 3.6e9;
        let mut recoveries = found.recoveries.clone();
        recoveries.sort_unstable();
        let wasted = found.lost + found.overhead + found.premature;
        Faults {
            node_failures: found.node_failures,
            gpu_failures: found.gpu_failures,
            slowdowns: found.slowdowns,
            stops: found.stops,
            down_h: hours(found.down),
            lost_h: hours(found.lost),
            overhead_h: hours(found.overhead),
            premature_h: hours(found.premature),
            goodput: (gpu_time > 0).then(|| 1.0 - wasted as f64 / gpu_time as f64),
            lost: (gpu_time > 0).then(|| found.lost as f64 / gpu_time as f64),
            avg_recovery_s: mean_s(&recoveries),
            p99_recovery_s: quantile(
                &recoveries.into_iter().map(Span::as_secs_f64).collect::<Vec<_>>(),
                0.99,
            ),
            unrecovered: found.unrecovered,
        }
    }
}

/// Deadlines that admission promised by planning for them. How many: all that were met or missed, since it declines the
/// others.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Promises {
    /// The part that admits.
    pub by: String,
    /// The parts that order and allocate.
    pub kept_by: String,
}

/// Speed that running jobs lost against the best they could have had together, at some decisions spread evenly over a
/// run.
///
/// Speed is relative to that at the proportional share, and summed over the jobs that run. The best is a bound that no
/// plan exceeds: the same jobs with the same GPUs, and all CPUs and memory of the cluster in one pool.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SpeedGap {
    /// The part of the best that was not reached; what a real plan could make good is not more.
    pub lost: f64,
    /// Decisions that were looked at, each for the time until the next.
    pub decisions: u64,
    /// The models that lose most, the largest loss first.
    pub models: Vec<ModelLoss>,
}

/// What the jobs of a model lose.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ModelLoss {
    /// Name of the model in the profiles.
    pub model: String,
    /// In parts of what all jobs together lose.
    pub part: f64,
    /// The node on which most of it is lost, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

impl Summary {
    pub(super) fn new(meta: &RunMeta, timing: Timing, jobs: &[JobRow], ledger: &Ledger) -> Self {
        let span = ledger.first.zip(ledger.last).map(|(first, last)| last - first);
        // Drivers of originals that record no decisions do not know what was held either.
        let is_known = !ledger.samples.is_empty() || ledger.gpu_time > 0;
        let span = span.filter(|_| is_known);
        let util = |held_s: f64, capacity: f64| {
            let offered = span.map(|s| s.as_secs_f64() * capacity).filter(|offered| *offered > 0.0);
            offered.map(|offered| held_s / offered)
        };
        let mut summary = Summary {
            policy: meta.policy.clone(),
            seed: meta.seed,
            gpu_util: util(ledger.gpu_time as f64 / 1e6, f64::from(meta.cluster.gpus)),
            cpu_util: util(ledger.cpu_time_s, meta.cluster.cpus),
            cluster_efficiency: util(ledger.worth_time_s, f64::from(meta.cluster.gpus)),
            rounds: ledger.n_decisions,
            rounds_skipped: ledger.n_skipped,
            wall_s: timing.wall_s,
            decide_s: timing.decide_s,
            digest: ledger.digest.clone(),
            jobs_per_hour: meta.jobs_per_hour,
            exact_estimates: meta.exact_estimates,
            reads_estimates: meta.reads_estimates,
            faults: ledger.faults.as_ref().map(|found| Faults::of(found, ledger.gpu_time)),
            ..Summary::default()
        };
        if let (Some(first), Some((last, gpu_time))) = (ledger.first, ledger.loaded) {
            let offered = (last - first).as_secs_f64() * f64::from(meta.cluster.gpus);
            summary.gpu_util_loaded = (offered > 0.0).then(|| gpu_time as f64 / 1e6 / offered);
            summary.drain_s = ledger.last.map(|end| (end - last).max(Span::ZERO).as_secs_f64());
        }
        summary.count(jobs, meta.window);
        if let Some(data) = ledger.data {
            let uses = data.hits + data.fetches;
            summary.data_hit_ratio = (uses > 0).then(|| data.hits as f64 / uses as f64);
            summary.data_fetched_bytes = Some(data.fetched_bytes);
            summary.data_wait_s = (!jobs.is_empty()).then(|| data.waited.as_secs_f64() / jobs.len() as f64);
        }
        summary
    }

    /// Fills in everything that follows from the job rows.
    pub(super) fn count(&mut self, jobs: &[JobRow], window: Option<Window>) {
        let with = |status: Status| jobs.iter().filter(|j| j.status == status).count() as u64;
        self.jobs = jobs.len() as u64;
        self.finished = with(Status::Finished);
        self.declined = with(Status::Declined);
        self.accepted = self.jobs - self.declined;
        self.unfinished = with(Status::Unfinished);
        self.failed = with(Status::Failed);
        self.deadline_jobs = jobs.iter().filter(|j| j.met.is_some()).count() as u64;
        self.deadline_met = jobs.iter().filter(|j| j.met == Some(true)).count() as u64;
        self.met = self.deadline_met;
        self.missed =
            jobs.iter().filter(|j| j.met == Some(false) && j.status == Status::Finished).count() as u64;
        self.deadline_ratio =
            (self.deadline_jobs > 0).then(|| self.deadline_met as f64 / self.deadline_jobs as f64);
        self.preemptions = jobs.iter().map(|j| u64::from(j.preemptions)).sum();
        self.makespan_s = makespan(jobs).map(Span::as_secs_f64);
        self.measure(Window::of(window, jobs));
        self.window = window;
    }

    fn measure(&mut self, jobs: &[JobRow]) {
        let mut jcts: Vec<Span> = jobs.iter().filter_map(JobRow::jct).collect();
        jcts.sort_unstable();
        self.measured = jcts.len() as u64;
        self.avg_jct_s = mean_s(&jcts);
        let jcts: Vec<f64> = jcts.into_iter().map(Span::as_secs_f64).collect();
        self.median_jct_s = quantile(&jcts, 0.5);
        self.p95_jct_s = quantile(&jcts, 0.95);
        self.p99_jct_s = quantile(&jcts, 0.99);
        let mut waits: Vec<Span> = jobs.iter().filter_map(JobRow::wait).collect();
        waits.sort_unstable();
        self.avg_wait_s = mean_s(&waits);
        let waits: Vec<f64> = waits.into_iter().map(Span::as_secs_f64).collect();
        self.p99_wait_s = quantile(&waits, 0.99);
        self.avg_to_first_gpu_s = mean_s(&jobs.iter().filter_map(JobRow::to_first_gpu).collect::<Vec<_>>());
        (self.avg_slowdown, self.p99_slowdown) = mean_and_p99(jobs, JobRow::slowdown);
        (self.avg_finish_time_ratio, self.p99_finish_time_ratio) =
            mean_and_p99(jobs, JobRow::finish_time_ratio);
        let best_effort = jobs.iter().filter(|job| job.met.is_none() && self.deadline_jobs > 0);
        self.avg_best_effort_jct_s = mean_s(&best_effort.filter_map(JobRow::jct).collect::<Vec<_>>());
    }
}

/// Of the jobs that have the ratio; summed in ascending order.
fn mean_and_p99(jobs: &[JobRow], ratio: fn(&JobRow) -> Option<f64>) -> (Option<f64>, Option<f64>) {
    let mut ratios: Vec<f64> = jobs.iter().filter_map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    (mean(&ratios), quantile(&ratios, 0.99))
}

/// The average in seconds; summed as integers, so the order of jobs cannot change a digit.
fn mean_s(values: &[Span]) -> Option<f64> {
    let sum: i128 = values.iter().map(|v| i128::from(v.0)).sum();
    (!values.is_empty()).then(|| sum as f64 / values.len() as f64 / 1e6)
}

fn makespan(jobs: &[JobRow]) -> Option<Span> {
    let first: Time = jobs.iter().map(|j| j.arrival).min()?;
    let last: Time = jobs.iter().filter_map(|j| j.finish).max()?;
    Some(last - first)
}

/// The file as a whole.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct SummaryFile {
    pub(super) format: u32,
    version: String,
    title: String,
    pub(super) runs: Vec<Summary>,
}

impl SummaryFile {
    pub(super) fn of(results: &Results) -> Self {
        SummaryFile {
            format: FORMAT,
            version: results.version.clone(),
            title: results.title.clone(),
            runs: results.runs.iter().map(|run| run.summary.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::samples::{results, run};

    #[test]
    fn figures_of_a_small_run_agree_with_values_computed_by_hand() {
        let summary = run("las+tune", 7, None).summary;
        assert_eq!((summary.jobs, summary.finished, summary.declined, summary.unfinished), (5, 3, 1, 1));
        assert_eq!((summary.met, summary.missed, summary.deadline_jobs), (0, 1, 2));
        assert_eq!(summary.avg_jct_s, Some((50.0 + 90.0 + 150.25) / 3.0));
        assert_eq!(summary.median_jct_s, Some(90.0));
        assert_eq!(summary.p95_jct_s, Some(90.0 + 0.9 * 60.25));
        assert_eq!(summary.p99_jct_s, Some(90.0 + 0.98 * 60.25));
        assert_eq!(summary.makespan_s, Some(160.25));
        assert_eq!((summary.avg_to_first_gpu_s, summary.avg_wait_s), (Some(10.0), Some(10.0)));
        assert_eq!(summary.avg_slowdown, Some((50.0 + 90.0 + 150.25) / 3.0), "each takes a second alone");
        assert_eq!(summary.gpu_util_loaded, Some(0.5), "160 GPU-seconds of 8 GPUs x 40 s");
        assert_eq!(summary.drain_s, Some(120.25));
        assert_eq!(summary.deadline_ratio, Some(0.0));
        assert_eq!(summary.gpu_util, Some(0.5), "641 GPU-seconds of 8 GPUs x 160.25 s");
        assert_eq!(summary.cpu_util, Some(0.25), "961.5 CPU-seconds of 24 CPUs x 160.25 s");
        assert_eq!((summary.preemptions, summary.rounds, summary.rounds_skipped), (3, 3, 4));
    }

    #[test]
    fn a_window_narrows_the_averages_and_nothing_else() {
        let mut run = run("las", 1, None);
        run.meta.window = "1..3".parse().ok();
        run.recount();
        assert_eq!((run.summary.measured, run.summary.avg_jct_s), (2, Some((150.25 + 90.0) / 2.0)));
        assert_eq!(run.summary.avg_to_first_gpu_s, Some(15.0));
        assert_eq!((run.summary.jobs, run.summary.finished, run.summary.makespan_s), (5, 3, Some(160.25)));
    }

    #[test]
    fn a_run_in_which_nothing_finished_has_no_averages() {
        let mut run = run("las", 1, None);
        run.jobs.retain(|job| job.status != Status::Finished);
        run.recount();
        assert_eq!(
            (run.summary.avg_jct_s, run.summary.p99_jct_s, run.summary.makespan_s),
            (None, None, None)
        );
        let json: serde_json::Value = serde_json::from_str(&results(vec![run]).to_json()).expect("JSON");
        assert_eq!(json["runs"][0]["avg_jct_s"], serde_json::Value::Null);
        assert_eq!(json["format"], 2);
    }
}
