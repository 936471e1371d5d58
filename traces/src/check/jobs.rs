//! What is wrong or odd about single jobs: those that can never run, deadlines that cannot be met, names that are there twice.

use std::collections::HashMap;

use rota_core::cluster::Cluster;
use rota_core::ids::JobId;
use rota_core::job::JobSpec;
use rota_core::workload::{Truth, Workload};

use super::{Finding, FoundAt, Rule};
use crate::speeds::Speeds;

/// Everything about single jobs, in their order.
pub(super) fn check(workload: &Workload, cluster: &Cluster) -> Vec<Finding> {
    let mut speeds = Speeds::new(cluster);
    let mut names: HashMap<&str, JobId> = HashMap::with_capacity(workload.jobs.len());
    let largest_gpu_bytes = cluster.nodes().iter().map(|n| n.gpu_mem_bytes).max().unwrap_or(0);
    let mut findings = Vec::new();
    for (job, truth) in workload.jobs.iter().zip(&workload.truths) {
        let mut found = |rule, column: &str, value: String, message: String| {
            findings.push(of_job(job, rule, column, value, message));
        };
        let available = speeds.reach(job.gpu_type).n_gpus;
        if job.gpus.min() > available {
            let message = format!("the cluster has {available} GPUs for it");
            found(Rule::TooManyGpus, "gpus", job.gpus.min().to_string(), message);
        }
        let needed = job.profile.gpu_mem_bytes;
        if largest_gpu_bytes > 0 && needed > largest_gpu_bytes {
            let [needed, largest] = [needed, largest_gpu_bytes].map(|bytes| bytes as f64 / 1e9);
            let message = format!("needs {needed:.1} GB of GPU memory, the largest GPU has {largest:.1} GB");
            found(Rule::TooMuchGpuMemory, "model", job.profile.name.clone(), message);
        }
        if !(truth.work.is_finite() && truth.work > 0.0) {
            found(Rule::NoWork, "iterations", truth.work.to_string(), "has nothing to do".into());
        }
        if !speeds.is_measured(job) {
            let message = format!("was not measured with batch {} on the cluster's GPUs", job.batch);
            found(Rule::NotMeasured, "model", job.profile.name.clone(), message);
        }
        findings.extend(odd_deadline(job, truth, &mut speeds));
        if let Some(first) = names.insert(&job.name, job.id) {
            let message = format!("is also the name of job number {first}");
            findings.push(of_job(job, Rule::SameName, "job_id", job.name.to_string(), message));
            names.insert(&job.name, first);
        }
    }
    findings
}

fn of_job(job: &JobSpec, rule: Rule, column: &str, value: String, message: String) -> Finding {
    let at = FoundAt {
        line: None,
        column: Some(column.into()),
        job: Some(job.name.to_string()),
        id: Some(job.id),
    };
    Finding { rule, at, value: Some(value), message }
}

/// The last moment counts: until then a soft deadline is worth something.
fn odd_deadline(job: &JobSpec, truth: &Truth, speeds: &mut Speeds<'_>) -> Option<Finding> {
    let deadline = job.deadline.last()?;
    let found = |rule, message| Some(of_job(job, rule, "deadline_s", deadline.to_string(), message));
    if deadline <= job.arrival {
        return found(Rule::DeadlineBeforeArrival, format!("the job arrives at {}", job.arrival));
    }
    let slack_s = (deadline - job.arrival).as_secs_f64();
    let needed_s = truth.work / (speeds.best_rate(job) * truth.pace);
    let message = format!("leaves {slack_s:.0} s, alone on the cluster the job needs {needed_s:.0} s");
    if needed_s > slack_s { found(Rule::DeadlineTooTight, message) } else { None }
}

#[cfg(test)]
mod tests {
    use crate::check::check;
    use crate::format::tests::built_in;
    use crate::format::{Setting, rota};
    use crate::source::Source;

    fn messages(rows: &str) -> Vec<String> {
        let (cluster, profiles) = built_in("small", "elasticflow-a100");
        let text = format!("job_id,arrival_s,gpus,iterations,deadline_s,model,batch,gpu_levels\n{rows}");
        let imported =
            rota::read(&Source::new("t.csv", text), &Setting::new(&cluster, &profiles)).expect("readable");
        check(&imported.workload, &imported.dropped, &imported.lines, &cluster)
            .iter()
            .map(|finding| finding.to_string())
            .collect()
    }

    #[test]
    fn findings_have_line_column_value_and_rule() {
        assert_eq!(
            messages("b,5,1,10,,,,\na,0,33,10,,,,\n"),
            ["error: line 3, column gpus, job a: got \"33\", the cluster has 32 GPUs for it [too-many-gpus]"]
        );
        assert_eq!(messages("a,0,64,10,,,,1-64\n"), Vec::<String>::new(), "an elastic job can do with one");
        assert_eq!(
            messages("a,10,1,10,5,,,\n"),
            [
                "warning: line 2, column deadline_s, job a: got \"5\", the job arrives at 10 [deadline-before-arrival]"
            ]
        );
        assert_eq!(
            messages("a,10,1,100,60,,,\n"),
            [
                "warning: line 2, column deadline_s, job a: got \"60\", leaves 50 s, alone on the cluster the job needs 100 s [deadline-too-tight]"
            ]
        );
        assert_eq!(
            messages("a,0,1,10,,bert,64,\n"),
            [
                "warning: line 2, column model, job a: got \"bert\", was not measured with batch 64 on the cluster's GPUs [not-measured]"
            ]
        );
    }
}
