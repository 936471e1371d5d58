//! Alibaba's openb cluster (2023), the list of pods, made public with FGD (ATC'23).
//!
//! | column | meaning |
//! |---|---|
//! | `name` | the pod's name |
//! | `num_gpu`, `gpu_milli` | GPUs, and for one GPU the thousandths of it; a part of a GPU is rounded up to a whole one |
//! | `gpu_spec` | GPU types it may use, `V100M16\|V100M32`; kept where the cluster has exactly one of them |
//! | `qos` | the tenant: `LS`, `BE`, … |
//! | `pod_phase` | `Succeeded`, `Running`, `Failed`, `Pending` |
//! | `creation_time`, `scheduled_time`, `deletion_time` | seconds; it ran from the second to the third |

use rota_core::workload::RecordedEnd;

use super::accounts::{Account, Accounts};
use super::{Head, Imported, Setting};
use crate::error::InputError;
use crate::rows::{Row, Rows, UniqueNames};
use crate::source::Source;

/// Thousandths of GPUs and their types.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    head.has(&["name", "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time"])
}

/// Reads the list of pods.
pub(crate) fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let rows = Rows::with_header(source)?;
    let [name, gpus, milli, spec, created, deleted, scheduled] =
        ["name", "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time", "scheduled_time"]
            .map(|heading| rows.need(&[heading]));
    let (name, gpus, milli, spec) = (name?, gpus?, milli?, spec?);
    let (created, deleted, scheduled) = (created?, deleted?, scheduled?);
    let (qos, phase) = (rows.find(&["qos"]), rows.find(&["pod_phase"]));
    let mut names = UniqueNames::default();
    let mut accounts = Accounts::default();
    let mut n_unbound = 0_u64;
    let dropped = rows.each(setting.bad_rows, |row| {
        let ended_s = row.maybe(Some(deleted)).map_or(Ok(0.0), |(column, _)| row.seconds(column))?;
        let began_s = row.maybe(Some(scheduled)).map_or(Ok(ended_s), |(column, _)| row.seconds(column))?;
        let types: Vec<_> = row.text(spec).split('|').filter(|name| !name.is_empty()).collect();
        let known: Vec<_> = types.iter().filter_map(|name| setting.cluster.gpu_type_id(name)).collect();
        let gpu_type = if let [only] = known[..] { Some(only) } else { None };
        n_unbound += u64::from(!types.is_empty() && gpu_type.is_none());
        accounts.add(&Account {
            name: names.take(row, name)?,
            tenant: row.maybe(qos).map_or("", |(_, qos)| qos),
            submitted_s: row.seconds(created)?,
            duration_s: ended_s - began_s,
            gpus: parts_of_gpus(row, gpus, milli)?,
            gpu_type,
            ended: match row.maybe(phase) {
                Some((_, "Succeeded")) => RecordedEnd::Passed,
                Some((_, "Failed")) => RecordedEnd::Failed,
                _ => RecordedEnd::Unknown,
            },
            line: row.line,
        });
        Ok(())
    })?;
    let mut imported = accounts.finish(setting, dropped)?;
    if n_unbound > 0 {
        imported.remarks.push(format!(
            "{n_unbound} rows name GPU types of which the cluster has none or several: these jobs may use any"
        ));
    }
    Ok(imported)
}

fn parts_of_gpus(row: &Row<'_>, gpus: usize, milli: usize) -> Result<f64, InputError> {
    let count = row.number_of_gpus(gpus)?;
    if count != 1.0 {
        return Ok(count);
    }
    let part = row.maybe(Some(milli)).map_or(Ok(1_000.0), |(column, _)| row.number_of_gpus(column))?;
    if part > 1_000.0 {
        Err(row.expected(milli, "at most 1000 thousandths of a GPU"))
    } else {
        Ok(part / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};
    use rota_test_support::need;

    const HEAD: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";

    #[test]
    fn parts_of_gpus_become_whole_ones_and_pods_without_gpus_are_left_out() {
        let (cluster, profiles) = built_in("default", "synergy");
        let rows = "a,12000,16384,1,460,,LS,Running,10,110,30\nb,1,1,0,0,,BE,Succeeded,11,20,12\nc,1,1,8,1000,V100,LS,Failed,12,20,12\nd,1,1,1,1000,T4|P4,LS,Pending,13,,\n";
        let read = read(&Source::new("o.csv", format!("{HEAD}{rows}")), &Setting::new(&cluster, &profiles))
            .expect("sound");
        let jobs = &read.workload.jobs;
        assert_eq!(jobs.iter().map(|job| job.gpus.asked).collect::<Vec<_>>(), [1, 8]);
        assert!((jobs[0].estimated_work / jobs[0].fair_rate(&cluster) - 80.0).abs() < 1e-6);
        assert!(jobs[0].gpu_type.is_none() && jobs[1].gpu_type.is_some());
        assert_eq!(read.filtered.n_rows(), 2, "one without a GPU, one that never ran");
        assert_eq!(read.remarks.len(), 4, "{:?}", read.remarks);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            message(read, "o.csv", &format!("{HEAD}a,1,1,1,4600,,LS,Running,10,110,30\n")),
            "o.csv:2, column 5 (gpu_milli): got \"4600\", expected at most 1000 thousandths of a GPU"
        );
    }

    #[test]
    fn the_public_lists_have_the_published_counts() {
        let Some(folder) = need::shared_path("traces/alibaba-gpu-v2023-openb") else { return };
        let (cluster, profiles) = built_in("philly", "synergy");
        let source = Source::open(&folder.join("openb_pod_list_default.csv")).expect("readable");
        let read = read(&source, &Setting::new(&cluster, &profiles)).expect("sound");
        assert_eq!(read.workload.jobs.len() as u64 + read.filtered.n_rows(), 8_152);
    }
}
