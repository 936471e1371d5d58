//! Traces made of traces: a part, several together, at another time, without names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::RngExt;
use rota_core::ids::{DatasetId, JobId, TenantId};
use rota_core::job::{Deadline, JobSpec};
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;

use crate::generate::draws::{self, Purpose};

/// The jobs that `is_kept` wants, by position and job.
pub fn select(workload: &Workload, mut is_kept: impl FnMut(usize, &JobSpec) -> bool) -> Workload {
    let mut part = Workload {
        tenants: workload.tenants.clone(),
        datasets: workload.datasets.clone(),
        ..Workload::default()
    };
    for (index, (job, truth)) in workload.jobs.iter().zip(&workload.truths).enumerate() {
        if is_kept(index, job) {
            let id = JobId::from(part.jobs.len());
            part.jobs.push(Arc::new(JobSpec { id, ..JobSpec::clone(job) }));
            part.truths.push(*truth);
        }
    }
    part
}

/// About so large a part of the jobs, each by itself.
pub fn sample(workload: &Workload, part: f64, seed: u64) -> Workload {
    let mut rng = draws::branched_stream(seed, Purpose::Arrivals, 2, 0);
    select(workload, |_, _| rng.random::<f64>() < part)
}

/// All jobs so much later, deadlines too. Nothing arrives before 0: what would, arrives then.
pub fn shift(workload: &Workload, later: Span) -> Workload {
    let mut shifted = select(workload, |_, _| true);
    for job in &mut shifted.jobs {
        let job = Arc::make_mut(job);
        let move_on = |time: Time| (time + later).max(Time::ZERO);
        job.arrival = move_on(job.arrival);
        match &mut job.deadline {
            Deadline::None => {}
            Deadline::Strict(time) => *time = move_on(*time),
            Deadline::Soft(steps) => steps.iter_mut().for_each(|(time, _)| *time = move_on(*time)),
        }
    }
    shifted
}

/// The jobs that arrive from `from` on and before `to`; time begins with the first of them, for deadlines too.
pub fn between(workload: &Workload, from: Time, to: Time) -> Workload {
    let part = select(workload, |_, job| (from..to).contains(&job.arrival));
    let first = part.jobs.first().map_or(Time::ZERO, |job| job.arrival);
    shift(&part, Time::ZERO - first)
}

/// All jobs so many times as close together; deadlines stay as far from the arrivals.
pub fn speed_up(workload: &Workload, times: f64) -> Workload {
    let mut faster = select(workload, |_, _| true);
    for job in &mut faster.jobs {
        let job = Arc::make_mut(job);
        let moved = Time::from_secs_f64(job.arrival.as_secs_f64() / times) - job.arrival;
        job.arrival = job.arrival + moved;
        match &mut job.deadline {
            Deadline::None => {}
            Deadline::Strict(time) => *time = *time + moved,
            Deadline::Soft(steps) => steps.iter_mut().for_each(|(time, _)| *time = *time + moved),
        }
    }
    faster
}

/// All jobs of all traces, by arrival. A name that was taken by an earlier trace gets the number of its trace in front; tenants and
/// data sets of one name are the same.
pub fn merge(workloads: &[Workload]) -> Workload {
    let mut all = Workload::default();
    let mut jobs = Vec::new();
    let mut taken: BTreeSet<Box<str>> = BTreeSet::new();
    for (number, workload) in workloads.iter().enumerate() {
        let tenants: Vec<TenantId> = workload
            .tenants
            .iter()
            .map(|name| TenantId::from(position(&mut all.tenants, name, |t| t)))
            .collect();
        let datasets: Vec<DatasetId> = workload
            .datasets
            .iter()
            .map(|set| DatasetId::from(position(&mut all.datasets, set, |set| &set.name)))
            .collect();
        for (job, truth) in workload.jobs.iter().zip(&workload.truths) {
            let mut job = JobSpec::clone(job);
            job.tenant = tenants.get(job.tenant.index()).copied().unwrap_or(job.tenant);
            job.dataset = job.dataset.and_then(|set| datasets.get(set.index()).copied());
            while taken.contains(&job.name) {
                job.name = format!("{}-{}", number + 1, job.name).into();
            }
            taken.insert(job.name.clone());
            jobs.push((job, *truth));
        }
    }
    jobs.sort_by_key(|(job, _)| job.arrival);
    for (index, (job, truth)) in jobs.into_iter().enumerate() {
        all.jobs.push(Arc::new(JobSpec { id: JobId::from(index), ..job }));
        all.truths.push(truth);
    }
    all
}

/// The place of a thing among those of other names; it is added where it is new.
fn position<T: Clone>(all: &mut Vec<T>, one: &T, name: fn(&T) -> &String) -> usize {
    all.iter().position(|other| name(other) == name(one)).unwrap_or_else(|| {
        all.push(one.clone());
        all.len() - 1
    })
}

/// Without names: jobs, tenants and data sets are numbered, tenants in an order drawn from the seed, and time begins with the first
/// job. What jobs ask for and when they come stays.
pub fn anonymise(workload: &Workload, seed: u64) -> Workload {
    let first = workload.jobs.first().map_or(Time::ZERO, |job| job.arrival);
    let mut bare = shift(workload, Time::ZERO - first);
    for job in &mut bare.jobs {
        let job = Arc::make_mut(job);
        job.name = (job.id.0 + 1).to_string().into();
    }
    let mut rng = draws::branched_stream(seed, Purpose::Arrivals, 3, 0);
    let order: BTreeMap<u64, usize> = (0..bare.tenants.len()).map(|at| (rng.random::<u64>(), at)).collect();
    for (number, at) in order.values().enumerate() {
        bare.tenants[*at] = format!("tenant-{}", number + 1);
    }
    for (number, set) in bare.datasets.iter_mut().enumerate() {
        set.name = format!("data-{}", number + 1);
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::built_in;
    use crate::format::{Setting, rota};
    use crate::source::Source;

    fn jobs() -> Workload {
        let (cluster, profiles) = built_in("small", "synergy");
        let text = "job_id,arrival_s,gpus,duration_s,tenant,deadline_s\n\
            a,10,1,3600,vision,5000\nb,20,4,7200,nlp,\nc,30,1,3600,vision,8000:2|9000:1\n";
        rota::read(&Source::new("t.csv", text), &Setting::new(&cluster, &profiles)).expect("sound").workload
    }

    fn told(workload: &Workload) -> Vec<(String, f64, String)> {
        assert_eq!(workload.check(), Ok(()));
        let tenant = |job: &JobSpec| workload.tenants[job.tenant.index()].clone();
        workload
            .jobs
            .iter()
            .map(|job| (job.name.to_string(), job.arrival.as_secs_f64(), tenant(job)))
            .collect()
    }

    #[test]
    fn merged_traces_have_every_job_once_under_a_name_of_its_own() {
        let merged = merge(&[jobs(), shift(&jobs(), Span::from_secs(5))]);
        let names: Vec<_> = told(&merged).into_iter().map(|(name, at, _)| (name, at)).collect();
        let expected = [("a", 10.0), ("2-a", 15.0), ("b", 20.0), ("2-b", 25.0), ("c", 30.0), ("2-c", 35.0)];
        assert_eq!(names, expected.map(|(name, at)| (name.to_owned(), at)));
        assert_eq!(merged.tenants.len(), 2, "one name is one tenant");
    }

    #[test]
    fn deadlines_move_with_their_jobs_and_nothing_comes_before_the_beginning() {
        let later = shift(&jobs(), Span::from_secs(100));
        assert_eq!(later.jobs[0].deadline.last(), Some(Time(5_100_000_000)));
        assert_eq!(later.jobs[2].deadline.first(), Some(Time(8_100_000_000)));
        assert_eq!(shift(&jobs(), Span::from_secs(-15)).jobs[0].arrival, Time::ZERO);
    }

    #[test]
    fn a_part_in_time_begins_at_0_and_a_faster_trace_keeps_the_distance_of_its_deadlines() {
        let part = between(&jobs(), Time::from_secs_f64(15.0), Time::from_secs_f64(30.0));
        assert_eq!(told(&part), [("b".to_owned(), 0.0, "nlp".to_owned())]);
        let faster = speed_up(&jobs(), 2.0);
        assert_eq!(told(&faster).iter().map(|(_, at, _)| *at).collect::<Vec<_>>(), [5.0, 10.0, 15.0]);
        assert_eq!(faster.jobs[0].deadline.first(), Some(Time(4_995_000_000)));
        assert_eq!(faster.truths, jobs().truths);
    }

    #[test]
    fn an_anonymous_trace_keeps_who_belongs_together_and_no_name() {
        let told = told(&anonymise(&jobs(), 1));
        assert_eq!(told[0].2, told[2].2);
        assert_ne!(told[0].2, told[1].2);
        assert!(
            told.iter()
                .all(|(name, _, tenant)| !"abc".contains(name.as_str()) && tenant.starts_with("tenant-"))
        );
        assert_eq!(told.iter().map(|(_, at, _)| *at).collect::<Vec<_>>(), [0.0, 10.0, 20.0]);
    }

    #[test]
    fn a_sample_has_about_its_part_of_the_jobs_and_depends_on_the_seed_alone() {
        let many = merge(&vec![jobs(); 1_000]);
        let part = sample(&many, 0.2, 1);
        assert!((550..650).contains(&part.jobs.len()), "{}", part.jobs.len());
        assert_eq!(part.jobs, sample(&many, 0.2, 1).jobs);
        assert_eq!(part.check(), Ok(()));
    }
}
