//! The jobs as data for the page's table: small enough to open anywhere, and safe inside a script element.

use maud::Markup;
use serde_json::{Value, json};

use super::{TimeUnit, html};
use crate::results::{HostShare, JobRow, Results, RunResult};

/// Rows that a page carries at most, over all runs; about two megabytes.
const MAX_ROWS: usize = 20_000;

/// Headings of the table, with the unit of its times. The page's script sorts numbers as numbers and the rest as text.
fn headings(unit: TimeUnit) -> Vec<String> {
    let time = |name: &str| format!("{name} ({})", unit.sign);
    let plain = str::to_owned;
    vec![
        plain("job"),
        plain("tenant"),
        plain("model"),
        plain("GPUs"),
        time("arrival"),
        time("start"),
        time("JCT"),
        time("waiting"),
        time("to first GPU"),
        plain("slowdown (x)"),
        plain("finish-time ratio (x)"),
        plain("status"),
        plain("deadline met"),
        plain("preemptions"),
        plain("speed (% of best)"),
        plain("CPUs (% of wanted)"),
        plain("memory (% of wanted)"),
        plain("reason"),
    ]
}

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
    let means = results.runs.iter().filter_map(|run| run.summary.avg_jct_s);
    let unit = TimeUnit::for_table(means.fold(0.0, f64::max));
    let runs: Vec<Value> = results.runs.iter().map(|run| rows(run, every, unit)).collect();
    JobTable { data: html::data("job-data", &json!({ "headings": headings(unit), "runs": runs })), every }
}

fn rows(run: &RunResult, every: usize, unit: TimeUnit) -> Value {
    run.jobs.iter().step_by(every).map(|job| row(job, unit)).collect()
}

fn row(job: &JobRow, unit: TimeUnit) -> Value {
    // Two decimals are as many as a reader can use; the files have all.
    let hundredths = |value: f64| (value * 100.0).round() / 100.0;
    let time = |micros: i64| hundredths(micros as f64 / 1e6 / unit.seconds);
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
        time(job.arrival.0),
        job.start.map(|t| time(t.0)),
        job.jct().map(|s| time(s.0)),
        job.wait().map(|s| time(s.0)),
        job.to_first_gpu().map(|s| time(s.0)),
        job.slowdown().map(hundredths),
        job.finish_time_ratio().map(hundredths),
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
        assert_eq!(read(&table)["runs"][0][0][17], run.jobs[0].reason.as_str());
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
