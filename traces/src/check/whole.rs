//! What only all jobs together show: more asked for than there is, gaps, copies, times in the wrong unit.
//!
//! These are guesses from what traces look like, so none of them is an error; each says what it rests on.

use std::collections::HashMap;

use rota_core::cluster::Cluster;
use rota_core::ids::JobId;
use rota_core::job::JobSpec;
use rota_core::workload::Workload;

use super::{Finding, FoundAt, Rule};
use crate::stats::{Demand, Summary, durations_s};

/// Too few jobs to speak of what is usual.
const FEWEST_JOBS: usize = 20;
/// A time without arrivals is a gap from one day on, if it is so many times the mean between arrivals.
const GAP_OF_MEAN: f64 = 20.0;
const DAY_S: f64 = 86_400.0;
/// Times beyond this from 0 (about three years) are dates, not times of a trace.
const LATE_BEGIN_S: f64 = 1e8;
/// Gaps that are named; further ones are counted.
const MOST_GAPS: usize = 5;

/// Everything about all jobs together.
pub(super) fn check(workload: &Workload, cluster: &Cluster) -> Vec<Finding> {
    let durations = durations_s(workload, cluster);
    let mut findings = Vec::new();
    findings.extend(late_begin(workload));
    findings.extend(unit_of_durations(workload, &durations));
    findings.extend(over_capacity(workload, &durations, cluster));
    findings.extend(gaps(workload));
    findings.extend(same_rows(workload));
    findings
}

fn of_all(rule: Rule, column: &str, value: String, message: String) -> Finding {
    let at = FoundAt { column: Some(column.into()), ..FoundAt::default() };
    Finding { rule, at, value: Some(value), message }
}

fn late_begin(workload: &Workload) -> Option<Finding> {
    let first = workload.jobs.first()?;
    let first_s = first.arrival.as_secs_f64();
    if first_s < LATE_BEGIN_S {
        return None;
    }
    let unit = if first_s > 1e11 { "milliseconds" } else { "seconds" };
    let message = format!(
        "is when the first job arrives: these seem to be {unit} since 1970, and time should begin at 0"
    );
    let mut finding = of_all(Rule::LateBegin, "arrival_s", first.arrival.to_string(), message);
    finding.at.id = Some(first.id);
    Some(finding)
}

fn unit_of_durations(workload: &Workload, durations: &[f64]) -> Option<Finding> {
    if durations.len() < FEWEST_JOBS {
        return None;
    }
    let summary = Summary::of(durations.to_vec());
    let span_s = workload.jobs.last()?.arrival.as_secs_f64() - workload.jobs.first()?.arrival.as_secs_f64();
    let guess = if summary.median > 30.0 * DAY_S {
        "half of the jobs run for more than 30 days: are these milliseconds?"
    } else if summary.max < 60.0 && span_s > DAY_S {
        "no job runs for a minute, in a trace of more than a day: are these hours?"
    } else if summary.max < 2_000.0 && summary.median < 60.0 && span_s > DAY_S {
        "half of the jobs run for less than a minute and none for 2,000 s, in a trace of more than a day: are these minutes?"
    } else {
        return None;
    };
    Some(of_all(
        Rule::UnitOfDurations,
        "duration_s",
        format!("{:.1} s", summary.median),
        format!("is the median: {guess}"),
    ))
}

fn over_capacity(workload: &Workload, durations: &[f64], cluster: &Cluster) -> Vec<Finding> {
    let n_gpus = f64::from(cluster.n_gpus());
    // Jobs that are larger than the cluster have findings of their own.
    let can_run = |job: &JobSpec| f64::from(job.gpus.asked) <= n_gpus;
    let jobs = || workload.jobs.iter().zip(durations);
    let ends = jobs().map(|(job, s)| if can_run(job) { *s } else { f64::INFINITY }).collect::<Vec<_>>();
    let demand = Demand::of(workload, &ends);
    let mut findings = Vec::new();
    let (Some(first), Some(last)) = (workload.jobs.first(), workload.jobs.last()) else { return findings };
    let span_s = (last.arrival - first.arrival).as_secs_f64();
    let asked_s: f64 =
        jobs().filter(|(job, _)| can_run(job)).map(|(job, s)| f64::from(job.gpus.asked) * s).sum();
    let load = asked_s / (n_gpus * span_s);
    if workload.jobs.len() >= FEWEST_JOBS && load > 1.0 && load.is_finite() {
        let message = format!(
            "is asked for of the {} GPUs of {} while jobs arrive: the queue grows to the end",
            cluster.n_gpus(),
            cluster.name
        );
        findings.push(of_all(Rule::Overload, "gpus", format!("{:.0} %", load * 100.0), message));
    }
    if let Some(worst) = demand.worst_above(n_gpus) {
        let message = format!(
            "GPUs are asked for at once at {:.1} h, the cluster has {}; more than that from {:.1} h to {:.1} h, and in {:.1} % of the time",
            worst.peak_at_s / 3_600.0,
            cluster.n_gpus(),
            worst.from_s / 3_600.0,
            worst.to_s / 3_600.0,
            worst.share_of_time * 100.0
        );
        findings.push(of_all(Rule::Backlog, "gpus", format!("{:.0}", worst.peak), message));
    }
    findings
}

fn gaps(workload: &Workload) -> Vec<Finding> {
    if workload.jobs.len() < FEWEST_JOBS {
        return Vec::new();
    }
    let times: Vec<f64> = workload.jobs.iter().map(|job| job.arrival.as_secs_f64()).collect();
    let mean = (times[times.len() - 1] - times[0]) / (times.len() - 1) as f64;
    let limit_s = DAY_S.max(GAP_OF_MEAN * mean);
    let wide: Vec<usize> = (1..times.len()).filter(|at| times[*at] - times[at - 1] > limit_s).collect();
    let finding = |at: &usize| {
        let hours = (times[*at] - times[at - 1]) / 3_600.0;
        let message = format!(
            "without an arrival before it, {:.0} times the mean between two{}",
            hours * 3_600.0 / mean,
            if wide.len() > MOST_GAPS { format!("; {} such gaps in all", wide.len()) } else { String::new() }
        );
        let mut finding = of_all(Rule::Gap, "arrival_s", format!("{hours:.1} h"), message);
        let job = &workload.jobs[*at];
        (finding.at.job, finding.at.id) = (Some(job.name.to_string()), Some(job.id));
        finding
    };
    wide.iter().take(MOST_GAPS).map(finding).collect()
}

/// Copies, in one finding: arrays of equal jobs are common, so single ones would drown the rest.
fn same_rows(workload: &Workload) -> Option<Finding> {
    let mut seen: HashMap<_, JobId> = HashMap::with_capacity(workload.jobs.len());
    let (mut n_copies, mut first) = (0_u64, None);
    for (job, truth) in workload.jobs.iter().zip(&workload.truths) {
        let key = (
            job.arrival,
            job.gpus.asked,
            truth.work.to_bits(),
            job.tenant,
            std::sync::Arc::as_ptr(&job.profile),
            job.batch,
        );
        match seen.get(&key) {
            Some(earlier) => {
                n_copies += 1;
                first.get_or_insert((job, *earlier));
            }
            None => drop(seen.insert(key, job.id)),
        }
    }
    let (job, earlier) = first?;
    let message = format!(
        "equals job number {earlier} in arrival, GPUs, work, model and tenant; {n_copies} of {} jobs are such copies",
        workload.jobs.len()
    );
    let mut finding = of_all(Rule::SameRow, "job_id", job.name.to_string(), message);
    finding.at.id = Some(job.id);
    Some(finding)
}

#[cfg(test)]
mod tests {
    use crate::check::{Rule, check};
    use crate::format::tests::built_in;
    use crate::format::{Setting, rota};
    use crate::source::Source;

    fn rules(row: impl Fn(usize) -> String) -> Vec<Rule> {
        let (cluster, profiles) = built_in("small", "synergy");
        let rows: String = (0..30).map(|n| format!("{n},{}\n", row(n))).collect();
        let source = Source::new("t.csv", format!("job_id,arrival_s,gpus,duration_s\n{rows}"));
        let imported = rota::read(&source, &Setting::new(&cluster, &profiles)).expect("readable");
        check(&imported.workload, &imported.dropped, &imported.lines, &cluster)
            .iter()
            .map(|finding| finding.rule)
            .collect()
    }

    #[test]
    fn a_sound_trace_has_no_finding() {
        assert_eq!(rules(|n| format!("{},1,{}", n * 600, 600 + n)), []);
    }

    #[test]
    fn dates_copies_gaps_and_units_are_found() {
        assert_eq!(rules(|n| format!("{},1,{}", 1_600_000_000 + n * 600, 600 + n)), [Rule::LateBegin]);
        assert_eq!(rules(|n| format!("{},1,600", n / 2 * 600)), [Rule::SameRow]);
        let after_a_week = |n: usize| if n < 29 { n * 60 } else { 700_000 };
        assert_eq!(rules(|n| format!("{},1,{}", after_a_week(n), 600 + n)), [Rule::Gap]);
        assert_eq!(rules(|n| format!("{},1,{}", n * 6_000, 1 + n)), [Rule::UnitOfDurations]);
        assert_eq!(rules(|n| format!("{},1,{}", n * 900_000, 3_600_000 + n)), [Rule::UnitOfDurations]);
    }

    #[test]
    fn more_than_there_is_is_found_with_its_time() {
        assert_eq!(rules(|n| format!("{},4,{}", n * 60, 7_200 + n)), [Rule::Overload, Rule::Backlog]);
        let burst = |n: usize| if n < 10 { n } else { n * 8_000 };
        assert_eq!(rules(|n| format!("{},4,{}", burst(n), 3_600 + n)), [Rule::Backlog]);
    }
}
