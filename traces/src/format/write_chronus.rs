//! Writes Chronus' trace and its list of users.
//!
//! Its programs read whole numbers only: arrivals and deadlines are rounded down and durations up, and so no deadline
//! becomes easier to meet. Best-effort jobs stay best-effort; they expect their own duration, as in the published traces.

use std::fmt::Write as _;

use rota_core::cluster::Cluster;
use rota_core::job::{Deadline, JobSpec};
use rota_core::time::Time;
use rota_core::workload::{Truth, Workload};

use super::PLAIN;
use crate::jobs::NO_TENANT;

const HEADING: &str = "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type";

/// What a deadline is worth in the published traces.
const FULL_VALUE: f64 = 10.0;

/// Writes a trace whose unit of time is so many seconds: 60 as published, 1 for ElasticFlow's port. If a job's
/// name is not a number, all jobs are named by their ids, because its programs sort by numbers.
pub fn write(workload: &Workload, cluster: &Cluster, unit_s: f64) -> String {
    let mut text = format!("{HEADING}\n");
    let has_numbers = workload.jobs.iter().all(|job| job.name.parse::<u64>().is_ok());
    for (job, truth) in workload.jobs.iter().zip(&workload.truths) {
        let id = if has_numbers { job.name.to_string() } else { job.id.to_string() };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{id},{}", cells(workload, cluster, job, truth, unit_s));
    }
    text
}

/// The users of a trace, one on each line, in the order in which they first appear: what the original's `name.lst` holds.
pub fn write_names(workload: &Workload) -> String {
    let mut is_listed = vec![false; workload.tenants.len()];
    let mut text = String::new();
    for job in &workload.jobs {
        if is_listed.get_mut(job.tenant.index()).is_some_and(|listed| !std::mem::replace(listed, true)) {
            text.push_str(user(workload, job));
            text.push('\n');
        }
    }
    text
}

/// Names of a list with any line ends: the published one has bare carriage returns.
pub fn read_names(text: &str) -> Vec<&str> {
    text.split(['\r', '\n']).map(str::trim).filter(|name| !name.is_empty()).collect()
}

/// Users of a trace that a list lacks: the original crashes on the first of them.
pub fn missing_names<'w>(workload: &'w Workload, names: &[&str]) -> Vec<&'w str> {
    let mut missing: Vec<&str> = workload.jobs.iter().map(|job| user(workload, job)).collect();
    missing.sort_unstable();
    missing.dedup();
    missing.retain(|name| !names.contains(name));
    missing
}

fn user<'w>(workload: &'w Workload, job: &JobSpec) -> &'w str {
    workload.tenants.get(job.tenant.index()).map_or(NO_TENANT, String::as_str)
}

fn cells(workload: &Workload, cluster: &Cluster, job: &JobSpec, truth: &Truth, unit_s: f64) -> String {
    let rate = job.fair_rate(cluster) * truth.pace;
    let duration = if rate > 0.0 { (truth.work / rate / unit_s).ceil().max(1.0) as i64 } else { 1 };
    let submit = (job.arrival.as_secs_f64() / unit_s).floor() as i64;
    let after = |time: Time| (((time - job.arrival).as_secs_f64() / unit_s).floor() as i64).max(0);
    let (times, values, kind): (Vec<i64>, Vec<f64>, &str) = match &job.deadline {
        Deadline::None => (vec![duration], vec![FULL_VALUE], "best"),
        Deadline::Strict(time) => (vec![after(*time)], vec![FULL_VALUE], "strict"),
        Deadline::Soft(steps) => {
            (steps.iter().map(|s| after(s.0)).collect(), steps.iter().map(|s| s.1).collect(), "soft")
        }
    };
    let best_effort = u8::from(job.deadline == Deadline::None);
    let model =
        job.profile.name.strip_prefix(PLAIN).map_or(&*job.profile.name, |rest| rest.trim_start_matches(':'));
    let model = if model.is_empty() { "resnet50" } else { model };
    let joined = |items: Vec<String>| items.join("-");
    let times = joined(times.iter().map(i64::to_string).collect());
    let values = joined(values.iter().map(f64::to_string).collect());
    let (user, gpus, iterations) = (user(workload, job), job.gpus.asked, truth.work.ceil() as i64);
    format!("{user},{gpus},{submit},{iterations},{model},{duration},0,{times},{values},{best_effort},{kind}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::built_in;
    use crate::format::{Setting, chronus, elasticflow, write_elasticflow};
    use crate::source::Source;

    const ROWS: &str = "0,u,1,10,5530,vgg16,96,0,159-189,10-8,0,soft\n1,v,2,11,760,alexnet,106,0,235,10,0,strict\n2,u,1,12,1,vgg16,5,0,5,10,1,best\n";

    #[test]
    fn a_trace_reads_back_as_it_was_written() {
        let (cluster, profiles) = built_in("default", "synergy");
        let setting = Setting::new(&cluster, &profiles);
        let text = format!("{HEADING}\n{ROWS}");
        let first = chronus::read(&Source::new("a.csv", &*text), &setting).expect("sound").workload;
        let written = write(&first, &cluster, 60.0);
        let again = chronus::read(&Source::new("b.csv", &*written), &setting).expect("our own file").workload;
        assert_eq!(
            (&first.jobs, &first.truths, &first.tenants),
            (&again.jobs, &again.truths, &again.tenants)
        );
        assert_eq!(write_names(&first), "u\nv\n");
        assert_eq!(read_names("u\rv\r"), ["u", "v"]);
        assert_eq!(missing_names(&first, &["u"]), ["v"]);
    }

    #[test]
    fn best_effort_jobs_stay_best_effort_from_elasticflow_and_back() {
        let (cluster, profiles) = built_in("a100", "elasticflow-a100");
        let setting = Setting::new(&cluster, &profiles);
        let text = "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration,best_effort\n\
                    0,5,1000,resnet50,9000,64,1,600,0\n1,65,1000,vgg16,9000,64,1,600,1\n";
        let first = elasticflow::read(&Source::new("e.csv", text), &setting).expect("sound").workload;
        let chronus = chronus::read_seconds(&Source::new("c.csv", write(&first, &cluster, 1.0)), &setting);
        let chronus = chronus.expect("our own file").workload;
        let is_best = |w: &Workload| w.jobs.iter().map(|j| j.deadline == Deadline::None).collect::<Vec<_>>();
        assert_eq!(is_best(&chronus), [false, true]);
        assert_eq!(chronus.jobs[0].deadline.first(), first.jobs[0].deadline.first());
        let (back, n_replaced) =
            write_elasticflow::write(&chronus, &cluster, &profiles).expect("measured models");
        let back = elasticflow::read(&Source::new("d.csv", &*back), &setting).expect("our own file").workload;
        assert_eq!((is_best(&back), n_replaced), (vec![false, true], 0));
        assert_eq!(back.jobs[0].deadline.first(), first.jobs[0].deadline.first());
        assert_eq!(&*back.jobs[1].profile.name, "vgg16");
    }
}
