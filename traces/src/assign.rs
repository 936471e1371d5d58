//! Traces whose jobs get new models, batch sizes, deadlines and more: some cells of Rota's own table are replaced, and the table is read
//! again, so that whatever is said of a job is judged like any other trace. Who says it is not known here.

use std::collections::BTreeMap;

use rand::RngExt;
use rota_core::cluster::Cluster;
use rota_core::job::JobSpec;
use rota_core::profile::Profile;
use rota_core::time::Time;
use rota_core::workload::Workload;

use crate::error::InputError;
use crate::format::{Setting, rota, write_rota_changed};
use crate::generate::draws::{self, Purpose};
use crate::jobs::JobList;
use crate::profile::{ProfileEntry, ProfileSet};
use crate::source::Source;
use crate::speeds::Speeds;

/// Cells of one job by the names of their columns; an empty one removes what was there.
pub type Cells = BTreeMap<String, String>;

/// Columns that can be replaced.
pub const COLUMNS: &[&str] = &[
    "gpus",
    "iterations",
    "duration_s",
    "model",
    "batch",
    "tenant",
    "priority",
    "gpu_levels",
    "gpu_type",
    "deadline_s",
    "restart_s",
    "checkpoint_s",
    "checkpoint_every_s",
    "ended",
];

/// The workload with the cells of its jobs replaced. A job takes as long as before unless its cells say otherwise: with another model
/// it has other iterations.
pub fn assign(workload: &Workload, cells: &[Cells], setting: &Setting<'_>) -> Result<Workload, InputError> {
    let mut speeds = Speeds::new(setting.cluster);
    let durations_s: Vec<String> = workload
        .jobs
        .iter()
        .zip(&workload.truths)
        .map(|(job, truth)| (truth.work / speeds.fair_rate(job)).to_string())
        .collect();
    let estimates_s: Vec<f64> =
        workload.jobs.iter().map(|job| job.estimated_work / speeds.fair_rate(job)).collect();
    let none = Cells::new();
    let text = write_rota_changed(workload, setting.cluster, |column, index, own| {
        let new = cells.get(index).unwrap_or(&none);
        // Iterations of another model, or of another number of GPUs, are others: the time stays, not they.
        let keeps_time =
            ["model", "batch", "gpus", "gpu_type"].iter().any(|column| new.contains_key(*column));
        let says_work = new.contains_key("iterations") || new.contains_key("duration_s");
        match column {
            _ if new.contains_key(column) => new[column].clone(),
            // Those of another model say nothing of this one.
            "batch" | "gpu_levels" if new.contains_key("model") => String::new(),
            "iterations" if keeps_time || says_work => String::new(),
            "duration_s" if keeps_time && !says_work => durations_s[index].clone(),
            // An estimate is in the unit of the work.
            "estimate" if says_work => String::new(),
            "estimate" if keeps_time && !own.is_empty() => estimates_s[index].to_string(),
            _ => own,
        }
    });
    let read = rota::read(&Source::new("the trace with what the rules say", text), setting)?;
    Ok(read.workload)
}

/// What rules may want to know of a model on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOnCluster<'p> {
    /// Its entry in the profile set.
    pub entry: &'p ProfileEntry,
    /// Batch sizes it was measured with on the GPUs of the cluster; none when any will do.
    pub batches: Vec<u32>,
    /// How many times as fast as at the proportional share it is with all the CPUs of a node that it can use.
    pub cpu_gain: f64,
    /// The same with memory.
    pub mem_gain: f64,
}

/// The models of a set that workloads draw and whose speed on the cluster is known.
pub fn models<'p>(profiles: &'p ProfileSet, cluster: &Cluster) -> Vec<ModelOnCluster<'p>> {
    let mut speeds = Speeds::new(cluster);
    let mut found: Vec<ModelOnCluster<'p>> = Vec::new();
    for (entry, batch) in profiles.templates() {
        let plain = JobList::plain("", entry.profile.clone(), 1, 0.0, Time::ZERO);
        if !speeds.is_measured(&JobSpec { batch, ..plain }) {
            continue;
        }
        match found.last_mut().filter(|last| last.entry.profile.name == entry.profile.name) {
            Some(last) => last.batches.push(batch),
            None => {
                let (cpu_gain, mem_gain) = gains(&entry.profile, cluster);
                let batches = if batch == 0 { Vec::new() } else { vec![batch] };
                found.push(ModelOnCluster { entry, batches, cpu_gain, mem_gain });
            }
        }
    }
    found
}

/// How much faster than at the proportional share more CPUs, and more memory, make a model on one GPU.
fn gains(profile: &Profile, cluster: &Cluster) -> (f64, f64) {
    let (Some(curve), Some(node)) = (&profile.host, cluster.largest_node(None)) else { return (1.0, 1.0) };
    let share = node.share_per_gpu();
    let (cpus, mem_gb) = (share.cpus(), share.mem_gb());
    let fair = curve.at(cpus, mem_gb);
    let most = |levels: &[f64], limit: f64, at: &dyn Fn(f64) -> f64| {
        let within = levels.iter().filter(|level| **level <= limit).map(|level| at(*level));
        within.fold(fair, f64::max) / fair
    };
    (
        most(curve.cpus(), node.host.cpus(), &|cpus| curve.at(cpus, mem_gb)),
        most(curve.mem_gb(), node.host.mem_gb(), &|mem_gb| curve.at(cpus, mem_gb)),
    )
}

/// Random numbers for the rules of one job: other jobs, or rules that draw more, do not change them.
pub fn numbers(seed: u64, job: usize) -> impl FnMut() -> f64 + Send + 'static {
    let mut rng = draws::branched_stream(seed, Purpose::Models, 1, job as u32);
    move || rng.random::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::built_in;

    fn cells(pairs: &[(&str, &str)]) -> Cells {
        pairs.iter().map(|(column, cell)| ((*column).to_owned(), (*cell).to_owned())).collect()
    }

    fn jobs() -> &'static str {
        "job_id,arrival_s,gpus,iterations,estimate,model,deadline_s\na,0,1,1000,900,gnmt,5000\nb,10,4,60,,,\n"
    }

    #[test]
    fn another_model_takes_as_long_and_what_is_not_named_stays() {
        let (cluster, profiles) = built_in("default", "synergy");
        let setting = Setting::new(&cluster, &profiles);
        let before = rota::read(&Source::new("t.csv", jobs()), &setting).expect("sound").workload;
        let new = [cells(&[("model", "alexnet"), ("deadline_s", "")]), cells(&[("priority", "3")])];
        let after = assign(&before, &new, &setting).expect("sound");
        let mut speeds = Speeds::new(&cluster);
        let mut time = |workload: &Workload| workload.truths[0].work / speeds.fair_rate(&workload.jobs[0]);
        assert!((time(&before) / time(&after) - 1.0).abs() < 1e-9);
        let ratio = |w: &Workload| w.jobs[0].estimated_work / w.truths[0].work;
        assert!((ratio(&after) - 0.9).abs() < 1e-9, "{}", ratio(&after));
        assert_eq!((after.jobs[0].profile.name.as_str(), after.jobs[0].deadline.first()), ("alexnet", None));
        assert_eq!((after.truths[1], after.jobs[1].priority), (before.truths[1], 3));
        let untouched = assign(&before, &[], &setting).expect("sound");
        assert_eq!((&untouched.jobs, &untouched.truths), (&before.jobs, &before.truths));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_the_reader_of_traces() {
        let (cluster, profiles) = built_in("default", "synergy");
        let setting = Setting::new(&cluster, &profiles);
        let before = rota::read(&Source::new("t.csv", jobs()), &setting).expect("sound").workload;
        let error = assign(&before, &[cells(&[("gpu_levels", "4-2")])], &setting).expect_err("falling");
        assert!(
            error.to_string().contains("(gpu_levels): got \"4-2\", expected ascending GPU counts"),
            "{error}"
        );
    }

    #[test]
    fn models_are_those_measured_on_the_cluster_and_know_what_they_gain() {
        let (cluster, profiles) = built_in("default", "synergy");
        let known = models(&profiles, &cluster);
        assert_eq!(known.len(), 10, "bert and vae are not drawn");
        let of = |name: &str| known.iter().find(|model| model.entry.profile.name == name).expect(name);
        assert!(of("alexnet").cpu_gain >= 1.99 && of("gnmt").cpu_gain == 1.0, "{known:#?}");
        let (cluster, profiles) = built_in("a100", "elasticflow-a100");
        let known = models(&profiles, &cluster);
        assert_eq!(known.iter().map(|model| model.batches.len()).sum::<usize>(), 14);
    }
}
