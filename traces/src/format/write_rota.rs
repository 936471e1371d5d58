//! Writes Rota's trace, with those columns that say something. Reading it back gives the same workload.

use rota_core::cluster::Cluster;
use rota_core::job::{Deadline, JobSpec};
use rota_core::workload::{Truth, Workload};

use super::PLAIN;
use super::rota::COLUMNS;
use crate::jobs::NO_TENANT;

/// Writes Rota's trace.
pub fn write(workload: &Workload, cluster: &Cluster) -> String {
    table(workload, cluster, None, |_, _, cell| cell)
}

/// The same with a remark about the whole of it: the heading of a last column, without cells.
pub fn write_remarked(workload: &Workload, cluster: &Cluster, remark: &str) -> String {
    table(workload, cluster, Some(remark), |_, _, cell| cell)
}

/// The same with cells changed: `change` is given the column, the position of the job and its cell.
pub(crate) fn write_changed(
    workload: &Workload,
    cluster: &Cluster,
    change: impl Fn(&str, usize, String) -> String,
) -> String {
    table(workload, cluster, None, change)
}

fn table(
    workload: &Workload,
    cluster: &Cluster,
    remark: Option<&str>,
    change: impl Fn(&str, usize, String) -> String,
) -> String {
    let jobs = || workload.jobs.iter().zip(&workload.truths).enumerate();
    let cell = |column: &str, (index, (job, truth)): (usize, (&std::sync::Arc<JobSpec>, &Truth))| {
        change(column, index, cell(workload, cluster, column, job, truth))
    };
    let is_needed = |column: &&&str| {
        let always = ["job_id", "arrival_s", "gpus", "iterations"];
        always.contains(*column) || jobs().any(|job| !cell(column, job).is_empty())
    };
    let columns: Vec<&str> = COLUMNS.iter().filter(is_needed).copied().collect();
    let remarked = remark.map(|remark| format!("#{remark}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = || -> Result<(), csv::Error> {
        writer.write_record(columns.iter().copied().chain(remarked.as_deref()))?;
        for job in jobs() {
            let cells = columns.iter().map(|column| cell(column, job));
            writer.write_record(cells.chain(remarked.iter().map(|_| String::new())))?;
        }
        Ok(writer.flush()?)
    };
    write().expect("memory takes whatever is written");
    let bytes = writer.into_inner().expect("memory takes whatever is written");
    String::from_utf8(bytes).expect("text was written")
}

fn cell(workload: &Workload, cluster: &Cluster, column: &str, job: &JobSpec, truth: &Truth) -> String {
    let unless = |usual: bool, text: String| if usual { String::new() } else { text };
    match column {
        "job_id" => job.name.to_string(),
        "arrival_s" => job.arrival.to_string(),
        "gpus" => job.gpus.asked.to_string(),
        "iterations" => truth.work.to_string(),
        "estimate" => unless(job.estimated_work == truth.work, job.estimated_work.to_string()),
        "pace" => unless(truth.pace == 1.0, truth.pace.to_string()),
        "model" => unless(job.profile.name == PLAIN, job.profile.name.clone()),
        "batch" => unless(job.batch == 0, job.batch.to_string()),
        "tenant" => {
            let name = workload.tenants.get(job.tenant.index()).map_or(NO_TENANT, String::as_str);
            unless(name == NO_TENANT, name.to_owned())
        }
        "priority" => unless(job.priority == 0, job.priority.to_string()),
        "gpu_levels" => job.gpus.levels.iter().map(u32::to_string).collect::<Vec<_>>().join("-"),
        "gpu_type" => {
            let name = job.gpu_type.and_then(|id| cluster.gpu_types().get(id.index()));
            name.cloned().unwrap_or_default()
        }
        "deadline_s" => deadline(&job.deadline),
        "dataset" => dataset(workload, job),
        "restart_s" => job.costs.map(|c| c.restart.to_string()).unwrap_or_default(),
        "checkpoint_s" => job.costs.map(|c| c.checkpoint.to_string()).unwrap_or_default(),
        "checkpoint_every_s" => job.costs.map(|c| c.checkpoint_every.to_string()).unwrap_or_default(),
        "ended" => truth.end.word().to_owned(),
        "attempts" => unless(truth.attempts == 0, truth.attempts.to_string()),
        // Durations are written as the iterations they came to.
        _ => String::new(),
    }
}

fn deadline(deadline: &Deadline) -> String {
    match deadline {
        Deadline::None => String::new(),
        Deadline::Strict(time) => time.to_string(),
        Deadline::Soft(steps) => {
            steps.iter().map(|(time, value)| format!("{time}:{value}")).collect::<Vec<_>>().join("|")
        }
    }
}

fn dataset(workload: &Workload, job: &JobSpec) -> String {
    let Some(dataset) = job.dataset.and_then(|id| workload.datasets.get(id.index())) else {
        return String::new();
    };
    let home = dataset.home.map(|node| format!("@{node}")).unwrap_or_default();
    format!("{}:{}{home}", dataset.name, dataset.bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rota_core::time::Time;

    use super::*;
    use crate::format::tests::built_in;
    use crate::format::{Setting, rota};
    use crate::generate::{Recipe, WorkloadOptions, generate};
    use crate::source::Source;

    fn round_trip(text: &str, cluster: &str, profiles: &str) -> (Workload, Workload) {
        let (cluster, profiles) = built_in(cluster, profiles);
        let setting = Setting::new(&cluster, &profiles);
        let first = rota::read(&Source::new("a.csv", text), &setting).expect("sound").workload;
        let again = rota::read(&Source::new("b.csv", write(&first, &cluster)), &setting)
            .expect("our own file")
            .workload;
        (first, again)
    }

    fn assert_same(a: &Workload, b: &Workload) {
        assert_eq!(a.jobs, b.jobs);
        assert_eq!((&a.truths, &a.tenants, &a.datasets), (&b.truths, &b.tenants, &b.datasets));
    }

    #[test]
    fn a_trace_that_uses_every_column_reads_back_the_same() {
        let text = "job_id,arrival_s,gpus,iterations,estimate,pace,model,batch,tenant,priority,gpu_levels,gpu_type,deadline_s,dataset,restart_s,checkpoint_s,checkpoint_every_s,ended,attempts\n\
            \"a,b\",0.000001,4,1000.5,900,0.9,bert,64,\"team \"\"x\"\"\",-3,1-2-4-8,A100,99.5,images:150GB@3,30,5.5,600,failed,3\n\
            c,7,1,10,,,,,,,,,100:10|200:5.5|300:-1,images,,,,killed,\n\
            d,7,1,10,,,plain:mine,,,,,T4,,text:1MB,,0,,,1\n";
        let (first, again) = round_trip(text, "mixed", "elasticflow-a100");
        assert_same(&first, &again);
        assert_eq!(
            first.jobs[1].deadline,
            Deadline::Soft(vec![
                (Time(100_000_000), 10.0),
                (Time(200_000_000), 5.5),
                (Time(300_000_000), -1.0)
            ])
        );
        assert_eq!((first.datasets.len(), first.tenants.len()), (2, 2));
    }

    #[test]
    fn columns_that_say_nothing_are_not_written() {
        let (cluster, _) = built_in("default", "synergy");
        let (first, _) = round_trip("job_id,arrival_s,gpus,iterations\na,0,1,10\n", "default", "synergy");
        assert_eq!(write(&first, &cluster), "job_id,arrival_s,gpus,iterations\na,0,1,10\n");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn generated_workloads_read_back_the_same(seed in any::<u64>(), is_elastic in any::<bool>()) {
            let (cluster, profiles) = if is_elastic { built_in("a100", "elasticflow-a100") } else { built_in("default", "synergy") };
            let recipe = if is_elastic { Recipe::Elasticflow } else { Recipe::Synergy };
            let options = WorkloadOptions { recipe, jobs: Some(40), multi_gpu: true, seed, ..WorkloadOptions::default() };
            let drawn = generate(&cluster, &profiles, &options).expect("sound");
            let text = write(&drawn, &cluster);
            let again = rota::read(&Source::new("b.csv", text), &Setting::new(&cluster, &profiles)).expect("our own file").workload;
            assert_same(&drawn, &again);
        }
    }
}
