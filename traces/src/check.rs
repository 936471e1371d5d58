//! What is odd about a workload on a cluster: jobs that can never run, deadlines that cannot be met, names used twice.
//!
//! A workload the engine cannot take at all is refused by `Workload::check`; here is what a person wants to know
//! before believing a result.

use std::collections::BTreeMap;
use std::fmt;

use rota_core::cluster::Cluster;
use rota_core::ids::JobId;
use rota_core::job::JobSpec;
use rota_core::workload::{Truth, Workload};

use crate::speeds::Speeds;

/// Something odd about one job.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The job's number in the workload.
    pub job: JobId,
    /// Its name in the trace.
    pub name: Box<str>,
    /// What is odd about it.
    pub oddity: Oddity,
}

/// What can be odd about a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Oddity {
    /// It can never run: it asks for more GPUs than there are of its type.
    TooManyGpus {
        /// The fewest it runs with.
        asked: u32,
        /// GPUs of the types it may use, on all nodes.
        available: u32,
    },
    /// It can never run: its GPUs need more memory than those of the cluster have.
    TooMuchGpuMemory {
        /// Bytes one worker needs.
        needed: u64,
        /// Bytes of the largest GPU it may use.
        available: u64,
    },
    /// Its deadline is over before it arrives.
    DeadlineBeforeArrival,
    /// Even at once and with all it can use it would be late.
    DeadlineTooTight {
        /// Seconds from its arrival to its last deadline.
        slack_s: f64,
        /// Seconds it needs at best.
        needed_s: f64,
    },
    /// It has nothing to do.
    NoWork,
    /// It arrives before the job in front of it.
    OutOfOrder,
    /// Another job has the same name.
    SameName {
        /// The first with this name.
        first: JobId,
    },
    /// Its model was not measured with its batch on the cluster's GPUs: its speed is a guess.
    NotMeasured {
        /// The model's name in its profile set.
        model: String,
        /// The job's global batch size.
        batch: u32,
    },
}

impl Oddity {
    /// Whether the job can never end.
    pub fn is_impossible(&self) -> bool {
        matches!(self, Oddity::TooManyGpus { .. } | Oddity::TooMuchGpuMemory { .. } | Oddity::NoWork)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {}: ", self.name)?;
        match &self.oddity {
            Oddity::TooManyGpus { asked, available } => {
                write!(f, "asks for {asked} GPUs, the cluster has {available} for it")
            }
            Oddity::TooMuchGpuMemory { needed, available } => {
                write!(
                    f,
                    "needs {:.1} GB of GPU memory, the largest GPU has {:.1} GB",
                    *needed as f64 / 1e9,
                    *available as f64 / 1e9
                )
            }
            Oddity::DeadlineBeforeArrival => f.write_str("its deadline is over when it arrives"),
            Oddity::DeadlineTooTight { slack_s, needed_s } => {
                write!(f, "its deadline leaves {slack_s:.0} s, alone on the cluster it needs {needed_s:.0} s")
            }
            Oddity::NoWork => f.write_str("has nothing to do"),
            Oddity::OutOfOrder => f.write_str("arrives before the job in front of it"),
            Oddity::SameName { first } => write!(f, "has the name of job number {first}"),
            Oddity::NotMeasured { model, batch } => {
                write!(f, "{model} with batch {batch} was not measured on the cluster's GPUs")
            }
        }
    }
}

/// Everything odd, job by job.
pub fn check(workload: &Workload, cluster: &Cluster) -> Vec<Finding> {
    let mut speeds = Speeds::new(cluster);
    let mut names: BTreeMap<&str, JobId> = BTreeMap::new();
    let mut findings = Vec::new();
    let largest_gpu_bytes = cluster.nodes().iter().map(|n| n.gpu_mem_bytes).max().unwrap_or(0);
    for (index, (job, truth)) in workload.jobs.iter().zip(&workload.truths).enumerate() {
        let mut found = |oddity| findings.push(Finding { job: job.id, name: job.name.clone(), oddity });
        let available = speeds.reach(job.gpu_type).n_gpus;
        if job.gpus.min() > available {
            found(Oddity::TooManyGpus { asked: job.gpus.min(), available });
        }
        if largest_gpu_bytes > 0 && job.profile.gpu_mem_bytes > largest_gpu_bytes {
            found(Oddity::TooMuchGpuMemory {
                needed: job.profile.gpu_mem_bytes,
                available: largest_gpu_bytes,
            });
        }
        if !(truth.work.is_finite() && truth.work > 0.0) {
            found(Oddity::NoWork);
        }
        if index > 0 && job.arrival < workload.jobs[index - 1].arrival {
            found(Oddity::OutOfOrder);
        }
        if !speeds.is_measured(job) {
            found(Oddity::NotMeasured { model: job.profile.name.clone(), batch: job.batch });
        }
        if let Some(oddity) = odd_deadline(job, truth, &mut speeds) {
            found(oddity);
        }
        match names.get(&*job.name) {
            Some(first) => found(Oddity::SameName { first: *first }),
            None => drop(names.insert(&job.name, job.id)),
        }
    }
    findings
}

/// The last moment counts: until then a soft deadline is worth something.
fn odd_deadline(job: &JobSpec, truth: &Truth, speeds: &mut Speeds<'_>) -> Option<Oddity> {
    let deadline = job.deadline.last()?;
    if deadline <= job.arrival {
        return Some(Oddity::DeadlineBeforeArrival);
    }
    let slack_s = (deadline - job.arrival).as_secs_f64();
    let needed_s = truth.work / (speeds.best_rate(job) * truth.pace);
    (needed_s > slack_s).then_some(Oddity::DeadlineTooTight { slack_s, needed_s })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::built_in;
    use crate::format::{Setting, rota};
    use crate::source::Source;

    fn messages(rows: &str) -> Vec<String> {
        let (cluster, profiles) = built_in("small", "elasticflow-a100");
        let text = format!("job_id,arrival_s,gpus,iterations,deadline_s,model,batch,gpu_levels\n{rows}");
        let workload = rota::read(&Source::new("t.csv", text), &Setting::new(&cluster, &profiles))
            .expect("readable")
            .workload;
        check(&workload, &cluster).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn oddities_are_found_and_named() {
        assert_eq!(messages("a,0,33,10,,,,\n"), ["job a: asks for 33 GPUs, the cluster has 32 for it"]);
        assert_eq!(messages("a,0,64,10,,,,1-64\n"), Vec::<String>::new(), "an elastic job can do with one");
        assert_eq!(messages("a,10,1,10,5,,,\n"), ["job a: its deadline is over when it arrives"]);
        assert_eq!(
            messages("a,10,1,100,60,,,\n"),
            ["job a: its deadline leaves 50 s, alone on the cluster it needs 100 s"]
        );
        assert_eq!(
            messages("a,0,1,10,,bert,64,\n"),
            ["job a: bert with batch 64 was not measured on the cluster's GPUs"]
        );
    }

    #[test]
    fn only_what_can_never_end_is_impossible() {
        assert!(Oddity::TooManyGpus { asked: 2, available: 1 }.is_impossible());
        assert!(!Oddity::DeadlineBeforeArrival.is_impossible());
    }
}
