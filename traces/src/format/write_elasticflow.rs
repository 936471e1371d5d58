//! Writes ElasticFlow's trace, from jobs of any origin.
//!
//! Its programs compute with iterations of measured models: a job of another model becomes the one they take for
//! unknown ones, and one without a batch size takes the smallest that was measured with its GPUs. Run times stay: the
//! iterations are those that the measured speed makes of them. Best-effort jobs stay best-effort.

use std::fmt::Write as _;

use rota_core::cluster::Cluster;
use rota_core::job::{Deadline, JobSpec};
use rota_core::workload::Workload;

use super::PLAIN;
use crate::error::InputError;
use crate::profile::{ProfileEntry, ProfileSet};

/// What ElasticFlow takes a model for that it does not know.
pub const UNKNOWN: &str = "resnet50";

/// Writes a trace, and counts the jobs that were given another model.
pub fn write(
    workload: &Workload,
    cluster: &Cluster,
    profiles: &ProfileSet,
) -> Result<(String, usize), InputError> {
    let mut text =
        "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration,best_effort\n".to_owned();
    let gpu_type = profiles.gpu_type().unwrap_or("").to_owned();
    let mut n_replaced = 0;
    for (job, truth) in workload.jobs.iter().zip(&workload.truths) {
        let rate = job.fair_rate(cluster) * truth.pace;
        let duration_s = if rate > 0.0 { truth.work / rate } else { 0.0 };
        let (entry, is_replaced) = model(job, profiles)?;
        n_replaced += usize::from(is_replaced);
        let (batch, speed) = measured(job, entry, &gpu_type)?;
        let iterations = (duration_s * speed).round().max(1.0);
        let submit = job.arrival.as_secs_f64().floor() as i64;
        let deadline = job.deadline.first().map(|time| time.as_secs_f64().floor() as i64);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{},{submit},{iterations},{},{},{batch},{},{},{}",
            job.name,
            entry.profile.name,
            deadline.map_or_else(|| (submit + duration_s.ceil() as i64).to_string(), |time| time.to_string()),
            job.gpus.asked,
            duration_s.round().max(1.0),
            u8::from(job.deadline == Deadline::None),
        );
    }
    Ok((text, n_replaced))
}

fn model<'p>(job: &JobSpec, profiles: &'p ProfileSet) -> Result<(&'p ProfileEntry, bool), InputError> {
    let name =
        job.profile.name.strip_prefix(PLAIN).map_or(&*job.profile.name, |rest| rest.trim_start_matches(':'));
    if let Some(entry) = profiles.entry(name) {
        return Ok((entry, false));
    }
    let unknown =
        || InputError::expected(&profiles.name, format!("the model {UNKNOWN}, which replaces unknown ones"));
    profiles.entry(UNKNOWN).map(|entry| (entry, true)).ok_or_else(unknown)
}

/// The job's batch, or the smallest measured with its GPUs, and the iterations per second with it.
fn measured(job: &JobSpec, entry: &ProfileEntry, gpu_type: &str) -> Result<(u32, f64), InputError> {
    let of_type =
        entry.profile.scale.iter().filter(|curve| curve.gpu_type.is_empty() || curve.gpu_type == gpu_type);
    let speed = |points: &[(u32, f64)]| points.iter().find(|(gpus, _)| *gpus == job.gpus.asked).map(|p| p.1);
    let mut found: Vec<(u32, f64)> =
        of_type.filter_map(|curve| Some((curve.batch, speed(&curve.points)?))).collect();
    found.sort_by_key(|(batch, _)| (*batch != job.batch, *batch));
    found.first().copied().ok_or_else(|| {
        let what = format!("GPUs that {} was measured with", entry.profile.name);
        InputError::expected(&format!("job {}", job.name), what).got(job.gpus.asked.to_string())
    })
}
