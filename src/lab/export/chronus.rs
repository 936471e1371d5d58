//! Chronus' CSVs as ElasticFlow's port of it writes them, in seconds: a row for each job, a row for each round, and
//! what was placed at each round.
//!
//! The run time that the user gave for a job is not in a result: `duration` is the time that the job ran. `ce` is
//! empty. `queue_priority` is 0 for jobs with a deadline that were taken, 1 for those that were declined, 2 for the rest.

use std::collections::BTreeMap;

use rota_core::ledger::Status;
use rota_core::time::{Span, Time};

use super::{Files, seconds};
use crate::results::{JobRow, RunResult};

const JOB_COLUMNS: &str = "job_id,pending_time,total_executed_time,progress,submit_time,end_time,preempt,resume,num_gpu,expect_time,expect_time_list,expect_value_list,miss_ddl,gt_miss_ddl,gt_expect_time,best_effort,duration,queue_priority";

pub(super) fn write(run: &RunResult, name: &str, files: &mut Files) {
    files.add(
        &format!("{name}.csv"),
        [JOB_COLUMNS.to_owned()].into_iter().chain(run.jobs.iter().map(job_row)),
    );
    files.add(&format!("{name}_resource.csv"), round_rows(run));
    if !run.timeline.is_empty() {
        files.add(&format!("{name}_batch_placement_info.csv"), placement_rows(run));
    }
}

fn job_row(job: &JobRow) -> String {
    // A gang holds its GPUs together, so what it held over its GPUs is how long it ran.
    let ran = Span(job.service.0 / i64::from(job.gpus.max(1)));
    let pending =
        job.finish.map_or(Span::ZERO, |finish| Span((finish - job.arrival).0 - ran.0).max(Span::ZERO));
    let is_best_effort = job.deadline.is_none();
    let expect =
        job.deadline.map_or_else(|| "inf".to_owned(), |deadline| (deadline - job.arrival).to_string());
    let value = if is_best_effort { "0" } else { "10" };
    let is_missed = u8::from(job.met == Some(false));
    let priority = match (job.status, is_best_effort) {
        (Status::Declined, _) => 1,
        (_, true) => 2,
        (_, false) => 0,
    };
    format!(
        "{},{pending},{ran},{ran},{},{},{},{},{},{expect},{expect},{value},{is_missed},{is_missed},{expect},{},{ran},{priority}",
        job.job_id,
        seconds(job.arrival),
        job.finish.map(seconds).unwrap_or_default(),
        job.preemptions,
        job.preemptions,
        job.gpus,
        u8::from(is_best_effort)
    )
}

fn round_rows(run: &RunResult) -> Vec<String> {
    let mut arrivals: Vec<Time> = run.jobs.iter().map(|job| job.arrival).collect();
    arrivals.sort_unstable();
    let mut rows = vec!["time,full_resource,free_resource,pending_num,running_num,submit_num,ce".to_owned()];
    for sample in &run.samples {
        let submitted = arrivals.partition_point(|arrival| *arrival <= sample.time);
        let free = sample.gpus_up.saturating_sub(sample.gpus_held);
        rows.push(format!(
            "{},{},{free},{},{},{submitted},",
            seconds(sample.time),
            sample.gpus_up,
            sample.waiting,
            sample.running
        ));
    }
    rows
}

/// Jobs and GPUs that were newly given at each time.
fn placement_rows(run: &RunResult) -> Vec<String> {
    let mut placed: BTreeMap<Time, (Vec<usize>, u32)> = BTreeMap::new();
    for stretch in &run.timeline {
        let entry = placed.entry(stretch.from).or_default();
        if !entry.0.contains(&stretch.job.index()) {
            entry.0.push(stretch.job.index());
        }
        entry.1 += stretch.slice.gpus.len();
    }
    let rows = placed.iter().map(|(time, (jobs, gpus))| format!("{},{},{gpus}", seconds(*time), jobs.len()));
    ["time,job_num,gpu_num".to_owned()].into_iter().chain(rows).collect()
}
