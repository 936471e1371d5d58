//! A trace with durations or arrivals drawn again, cut or repeated to a number of jobs.
//!
//! Repeated jobs are new jobs with names of their own; Synergy's original reuses the finished ones.

use std::sync::Arc;

use rota_core::cluster::Cluster;
use rota_core::ids::JobId;
use rota_core::job::{Deadline, JobSpec};
use rota_core::workload::{Truth, Workload};

use super::draws::{self, Purpose};
use super::options::{Origin, WorkloadOptions};
use super::synergy::{self, Arrivals};
use crate::error::InputError;
use crate::speeds::Speeds;

/// Applies `jobs`, `durations`, `arrivals` and `is_static` of the options to a workload that was read.
pub fn redraw(
    workload: &mut Workload,
    cluster: &Cluster,
    options: &WorkloadOptions,
) -> Result<(), InputError> {
    let is_new = options.arrivals == Origin::Drawn || options.is_static;
    if let Some(n_jobs) = options.jobs {
        // Without new arrivals a repetition would come before what it repeats.
        let n_jobs = if is_new { n_jobs } else { n_jobs.min(workload.jobs.len()) };
        resize(workload, n_jobs);
    }
    if options.durations == Origin::Drawn {
        redraw_durations(workload, cluster, options)?;
    }
    if is_new {
        let mut arrivals = Arrivals::new(options);
        for job in &mut workload.jobs {
            arrive(Arc::make_mut(job), arrivals.next());
        }
    }
    Ok(())
}

fn resize(workload: &mut Workload, n_jobs: usize) {
    let n_read = workload.jobs.len();
    workload.jobs.truncate(n_jobs);
    workload.truths.truncate(n_jobs);
    if n_read == 0 {
        return;
    }
    for index in n_read..n_jobs {
        let mut job = JobSpec::clone(&workload.jobs[index % n_read]);
        job.name = format!("{}#{}", job.name, index / n_read + 1).into();
        job.id = JobId::from(index);
        workload.jobs.push(Arc::new(job));
        workload.truths.push(workload.truths[index % n_read]);
    }
}

fn redraw_durations(
    workload: &mut Workload,
    cluster: &Cluster,
    options: &WorkloadOptions,
) -> Result<(), InputError> {
    let mut rng = draws::stream(options.seed, Purpose::Durations);
    let mut speeds = Speeds::new(cluster);
    for (job, truth) in workload.jobs.iter_mut().zip(&mut workload.truths) {
        let job = Arc::make_mut(job);
        let work = speeds.whole_iterations(job, synergy::duration_s(&mut rng, options.lengths))?;
        job.estimated_work = work;
        *truth = Truth { work, ..*truth };
    }
    Ok(())
}

/// Moves a job in time, and its deadline with it.
fn arrive(job: &mut JobSpec, arrival: rota_core::time::Time) {
    let moved = arrival - job.arrival;
    job.arrival = arrival;
    match &mut job.deadline {
        Deadline::None => {}
        Deadline::Strict(time) => *time = *time + moved,
        Deadline::Soft(steps) => steps.iter_mut().for_each(|(time, _)| *time = *time + moved),
    }
}

#[cfg(test)]
mod tests {
    use rota_core::time::Time;

    use super::*;
    use crate::format::tests::built_in;
    use crate::format::{Setting, rota};
    use crate::source::Source;

    fn three() -> (Workload, Cluster) {
        let (cluster, profiles) = built_in("default", "synergy");
        let text = "job_id,arrival_s,gpus,iterations,deadline_s\na,100,1,10,150\nb,200,2,20,\nc,300,4,30,\n";
        let workload = rota::read(&Source::new("t.csv", text), &Setting::new(&cluster, &profiles))
            .expect("sound")
            .workload;
        (workload, cluster)
    }

    #[test]
    fn a_trace_is_repeated_with_new_arrivals_only() {
        let (mut workload, cluster) = three();
        redraw(
            &mut workload,
            &cluster,
            &WorkloadOptions { jobs: Some(7), arrivals: Origin::Drawn, ..WorkloadOptions::default() },
        )
        .expect("sound");
        let names: Vec<_> = workload.jobs.iter().map(|j| &*j.name).collect();
        assert_eq!(names, ["a", "b", "c", "a#2", "b#2", "c#2", "a#3"]);
        assert_eq!(workload.check(), Ok(()));
        let (mut workload, cluster) = three();
        redraw(&mut workload, &cluster, &WorkloadOptions { jobs: Some(7), ..WorkloadOptions::default() })
            .expect("sound");
        assert_eq!(workload.jobs.len(), 3);
        redraw(&mut workload, &cluster, &WorkloadOptions { jobs: Some(2), ..WorkloadOptions::default() })
            .expect("sound");
        assert_eq!(workload.jobs.len(), 2);
    }

    #[test]
    fn deadlines_move_with_their_jobs() {
        let (mut workload, cluster) = three();
        redraw(&mut workload, &cluster, &WorkloadOptions { is_static: true, ..WorkloadOptions::default() })
            .expect("sound");
        assert_eq!(
            (workload.jobs[0].arrival, &workload.jobs[0].deadline),
            (Time::ZERO, &Deadline::Strict(Time(50_000_000)))
        );
        assert_eq!(workload.jobs[2].arrival, Time(2_000));
    }

    #[test]
    fn drawn_durations_keep_everything_else() {
        let (mut workload, cluster) = three();
        redraw(
            &mut workload,
            &cluster,
            &WorkloadOptions { durations: Origin::Drawn, ..WorkloadOptions::default() },
        )
        .expect("sound");
        assert!(workload.truths.iter().all(|t| t.work >= 1_800.0), "{:?}", workload.truths);
        assert_eq!(workload.jobs[1].arrival, Time(200_000_000));
        assert_eq!(workload.jobs[1].estimated_work, workload.truths[1].work);
    }
}
