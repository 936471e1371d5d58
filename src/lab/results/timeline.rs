//! `timeline.csv`: what ran where and when, one row for each stretch in which nothing changed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rota_core::allocation::{GpuSet, Slice};
use rota_core::cluster::MAX_GPUS_PER_NODE;
use rota_core::ids::{JobId, NodeId};
use rota_core::ledger::Stretch;
use rota_core::resources::Host;

use super::{JobRow, ResultsError, RunResult, decimal, table_file};

const COLUMNS: [&str; 8] = ["job_id", "node", "gpus", "gpu_share", "cpus", "mem_gb", "from_s", "to_s"];
const CPU_DIGITS: u32 = 6;
const MEM_DIGITS: u32 = 9;
const SHARE_DIGITS: u32 = 3;

/// What ran where in all runs, in one table.
pub(super) fn write(runs: &[RunResult], path: &Path) -> Result<(), ResultsError> {
    table_file::write(path, &COLUMNS, runs, |writer, run| {
        for stretch in &run.timeline {
            let Slice { node, gpus, share, host } = stretch.slice;
            let gpus: Vec<String> = gpus.iter().map(|gpu| gpu.to_string()).collect();
            let job = run.jobs.get(stretch.job.index());
            writer.cells([
                &job.map_or_else(|| stretch.job.to_string(), |job| job.job_id.to_string()),
                &run.nodes.get(node.index()).cloned().unwrap_or_else(|| node.to_string()),
                &gpus.join(" "),
                &decimal::write(u64::from(share), SHARE_DIGITS),
                &decimal::write(host.cpu_micro, CPU_DIGITS),
                &decimal::write(host.mem_bytes, MEM_DIGITS),
                &stretch.from.to_string(),
                &stretch.to.to_string(),
            ])?;
            writer.end_row()?;
        }
        Ok(())
    })
}

/// What ran where in one run, and the nodes by id.
pub(super) type Timeline = (Vec<Stretch>, Vec<String>);

/// The timeline of each run, of which the jobs are known. Nodes are numbered as they appear; storage rates are not in the
/// file and come back as nothing.
pub(super) fn read(path: &Path, jobs: &[Vec<JobRow>]) -> Result<Vec<Timeline>, ResultsError> {
    let by_name = |jobs: &'_ Vec<JobRow>| -> HashMap<Arc<str>, usize> {
        jobs.iter().enumerate().rev().map(|(at, job)| (Arc::clone(&job.job_id), at)).collect()
    };
    let job_by_name: Vec<HashMap<Arc<str>, usize>> = jobs.iter().map(by_name).collect();
    let mut node_by_name: Vec<HashMap<String, usize>> = vec![HashMap::new(); jobs.len()];
    let mut runs: Vec<Timeline> = vec![Default::default(); jobs.len()];
    table_file::read(path, &COLUMNS, |row| {
        let run = row.run(jobs.len())?;
        let (timeline, nodes) = &mut runs[run];
        let job =
            job_by_name[run].get(row.text("job_id")).ok_or_else(|| row.wrong("job_id", "job of this run"))?;
        let name = row.text("node");
        let node = *node_by_name[run].entry(name.to_owned()).or_insert_with(|| {
            nodes.push(name.to_owned());
            nodes.len() - 1
        });
        timeline.push(Stretch {
            job: JobId::from(*job),
            slice: Slice {
                node: NodeId::from(node),
                gpus: gpu_set(row.text("gpus")).ok_or_else(|| row.wrong("gpus", "list of GPUs"))?,
                share: u16::try_from(row.amount("gpu_share", SHARE_DIGITS)?)
                    .map_err(|_| row.wrong("gpu_share", "share of a GPU"))?,
                host: Host {
                    cpu_micro: row.amount("cpus", CPU_DIGITS)?,
                    mem_bytes: row.amount("mem_gb", MEM_DIGITS)?,
                    storage_bps: 0,
                },
            },
            from: row.known_time("from_s")?,
            to: row.known_time("to_s")?,
        });
        Ok(())
    })?;
    Ok(runs)
}

fn gpu_set(text: &str) -> Option<GpuSet> {
    text.split_whitespace().try_fold(GpuSet::NONE, |set, gpu| {
        let gpu: u32 = gpu.parse().ok().filter(|gpu| *gpu < MAX_GPUS_PER_NODE)?;
        Some(set.or(GpuSet(1 << gpu)))
    })
}
