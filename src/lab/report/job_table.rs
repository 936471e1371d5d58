//! The jobs as data for the page's table: small enough to open anywhere, and safe inside a script element.

use maud::Markup;
use serde_json::{Value, json};

use super::html;
use crate::results::{HostShare, JobRow, Results, RunResult};

/// Rows that a page carries at most, over all runs; about two megabytes.
const MAX_ROWS: usize = 20_000;

/// Headings of the table. The page's script sorts numbers as numbers and the rest as text.
pub(super) const HEADINGS: [&str; 15] = [
    "job",
    "tenant",
    "model",
    "GPUs",
    "arrival (s)",
    "start (s)",
    "JCT (s)",
    "queue (s)",
    "status",
    "deadline met",
    "preemptions",
    "speed (% of best)",
    "CPUs (% of wanted)",
    "memory (% of wanted)",
    "reason",
];

/// The data of the table, as an element of the page.
pub(super) struct JobTable {
    pub(super) data: Markup,
    /// Every how manyth job is listed; 1 unless there are too many.
    pub(super) every: usize,
}

/// All jobs of all runs, or every nth of them when there are too many.
pub(super) fn job_table(results: &Results) -> JobTable {
    let n_jobs: usize = results.runs.iter().map(|run| run.jobs.len()).sum();
    let every = n_jobs.div_ceil(MAX_ROWS).max(1);
    let runs: Vec<Value> = results.runs.iter().map(|run| rows(run, every)).collect();
    JobTable { data: html::data("job-data", &json!({ "headings": HEADINGS, "runs": runs })), every }
}

fn rows(run: &RunResult, every: usize) -> Value {
    run.jobs.iter().step_by(every).map(row).collect()
}

fn row(job: &JobRow) -> Value {
    let seconds = |micros: i64| (micros as f64 / 1e3).round() / 1e3;
    let met = job.met.map(|met| if met { "yes" } else { "no" });
    let percent = |part: u64, whole: u64| (whole > 0).then(|| (100.0 * part as f64 / whole as f64).round());
    let share = |part: fn(&HostShare) -> (u64, u64)| {
        job.share.as_ref().map(part).and_then(|(part, whole)| percent(part, whole))
    };
    json!([
        &*job.job_id,
        &*job.tenant,
        &*job.model,
        job.gpus,
        seconds(job.arrival.0),
        job.start.map(|t| seconds(t.0)),
        job.jct().map(|s| seconds(s.0)),
        job.queue().map(|s| seconds(s.0)),
        job.status_name(),
        met,
        job.preemptions,
        share(|share| (share.of_best_micro, 1_000_000)),
        share(|share| (share.held.cpu_micro, share.wanted.cpu_micro)),
        share(|share| (share.held.mem_bytes, share.wanted.mem_bytes)),
        job.reason,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::samples::{results, run};

    /// The data as the page's script reads it.
    fn read(table: &JobTable) -> Value {
        let text = table.data.0.split_once('>').and_then(|(_, rest)| rest.split_once("</script>"));
        serde_json::from_str(text.expect("one element").0).expect("JSON")
    }

    #[test]
    fn what_a_job_says_of_itself_arrives_as_it_is() {
        let mut run = run("las", 1, None);
        run.jobs[0].reason = "</script><script>alert(1)</script>".into();
        let table = job_table(&results(vec![run.clone()]));
        assert_eq!(read(&table)["runs"][0][0][14], run.jobs[0].reason.as_str());
    }

    #[test]
    fn very_many_jobs_are_thinned_evenly() {
        let mut run = run("las", 1, None);
        run.jobs = vec![run.jobs[0].clone(); 3 * MAX_ROWS];
        let table = job_table(&results(vec![run]));
        let data = read(&table);
        assert_eq!((table.every, data["runs"][0].as_array().map(Vec::len)), (3, Some(MAX_ROWS)));
    }
}
