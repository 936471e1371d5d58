//! ElasticFlow's `job.csv` (a row for each completion) and `scheduling_events.csv` (a row for each round, a column for
//! each GPU).
//!
//! `promote` is always 0: nothing is demoted here. Jobs without a deadline are best effort and have the original's
//! largest whole number as theirs. `ce` is the cluster's efficiency: the speed of running jobs relative to one GPU each, per GPU. Rounds at
//! which nothing was decided are not in it, as in the original.

use std::collections::BTreeMap;

use rota_core::ledger::Stretch;
use rota_core::time::{Span, Time};

use super::{ExportError, Files, finished, seconds};
use crate::results::RunResult;

const JOB_COLUMNS: &str = "time,job_id,num_gpu,submit_time,start_time,end_time,ddl,executed_time,JCT,pending_time,preempt,promote,best_effort_job";

pub(super) fn write(run: &RunResult, folder: Option<&str>, files: &mut Files) -> Result<(), ExportError> {
    let path = |file: &str| folder.map_or_else(|| file.to_owned(), |folder| format!("{folder}/{file}"));
    files.add(&path("job.csv"), job_rows(run));
    if run.timeline.is_empty() {
        return Err(ExportError::NoTimeline {
            policy: run.meta.policy.clone(),
            file: "scheduling_events.csv",
        });
    }
    files.add(&path("scheduling_events.csv"), event_rows(run));
    Ok(())
}

fn job_rows(run: &RunResult) -> Vec<String> {
    let held = held_by_job(run);
    let mut rows = vec![JOB_COLUMNS.to_owned()];
    for (at, finish) in finished(run) {
        let job = &run.jobs[at];
        let start = job.start.unwrap_or(job.arrival);
        let (last_gpus, ran) = held.get(&at).copied().unwrap_or((job.gpus, finish - start));
        let pending = Span((finish - job.arrival).0 - ran.0);
        let deadline = job.deadline.map_or_else(|| i64::MAX.to_string(), seconds);
        rows.push(format!(
            "{},{},{last_gpus},{},{},{},{deadline},{},{},{},{},0,{}",
            seconds(finish),
            job.job_id,
            seconds(job.arrival),
            seconds(start),
            seconds(finish),
            finish - start,
            whole(finish - job.arrival),
            pending.max(Span::ZERO),
            job.preemptions,
            u8::from(job.deadline.is_none())
        ));
    }
    rows
}

fn whole(span: Span) -> i64 {
    span.0 / 1_000_000
}

/// GPUs of the last stretch and the time run, by job.
fn held_by_job(run: &RunResult) -> BTreeMap<usize, (u32, Span)> {
    let mut stretches: Vec<&Stretch> = run.timeline.iter().collect();
    stretches.sort_by_key(|stretch| (stretch.job, stretch.from, stretch.slice.node));
    let mut held: BTreeMap<usize, (u32, Span)> = BTreeMap::new();
    let mut last: Option<(usize, Time)> = None;
    for stretch in stretches {
        let job = stretch.job.index();
        let gpus = stretch.slice.gpus.len();
        let entry = held.entry(job).or_insert((0, Span::ZERO));
        // Slices of one gang lie on several nodes and run at the same time.
        if last == Some((job, stretch.from)) {
            entry.0 += gpus;
        } else {
            entry.0 = gpus;
            entry.1 += stretch.to - stretch.from;
        }
        last = Some((job, stretch.from));
    }
    held
}

/// Who is on each GPU right after each decision.
fn event_rows(run: &RunResult) -> Vec<String> {
    let n_nodes = run.meta.cluster.nodes.max(run.nodes.len());
    let per_node = (run.meta.cluster.gpus as usize).div_ceil(n_nodes.max(1));
    let columns: Vec<String> =
        (0..n_nodes).flat_map(|node| (0..per_node).map(move |gpu| format!("gpu{node}-{gpu}"))).collect();
    let mut rows = vec![format!("time,{},ce", columns.join(","))];
    let mut stretches: Vec<&Stretch> = run.timeline.iter().collect();
    stretches.sort_by_key(|stretch| stretch.from);
    let mut coming = stretches.into_iter().peekable();
    let mut on: Vec<Option<(usize, Time)>> = vec![None; n_nodes * per_node];
    for sample in &run.samples {
        while let Some(stretch) = coming.next_if(|stretch| stretch.from <= sample.time) {
            for gpu in stretch.slice.gpus.iter() {
                if let Some(cell) = on.get_mut(stretch.slice.node.index() * per_node + gpu as usize) {
                    *cell = Some((stretch.job.index(), stretch.to));
                }
            }
        }
        let cell = |cell: &Option<(usize, Time)>| match cell {
            Some((job, to)) if *to > sample.time => job.to_string(),
            _ => String::new(),
        };
        let cells: Vec<String> = on.iter().map(cell).collect();
        rows.push(format!("{},{},{}", seconds(sample.time), cells.join(","), sample.efficiency()));
    }
    rows
}
