//! The first difference between what the original did and what the driver did: admissions, leases, then outcomes.

use rota_core::workload::Workload;
use rota_scripts::artifact::chronus::{Admission, Boundary, Class, Fate, Run, Solve};
use rota_solvers::chronus_leases::LeaseRow;

use super::super::compare::is_close;
use super::golden::{Admitted, Expected, Job, Milp, Plan, Round};

/// The earliest difference in words, if there is one.
pub(super) fn first_difference(expected: &Expected, run: &Run, workload: &Workload) -> Option<String> {
    let names = Names(workload);
    admissions(&expected.admission, &run.admissions, &names)
        .or_else(|| models(&expected.milp, &run.solves))
        .or_else(|| boundaries(&expected.rounds, &run.boundaries, &names))
        .or_else(|| fates(&expected.jobs, &run.fates))
}

/// Misses alone, for solves that may find another optimum.
pub(super) fn miss_difference(expected: &Expected, run: &Run) -> Option<String> {
    let wanted = expected.jobs.iter().filter(|job| job.miss_ddl.is_some_and(|miss| miss >= 1.0)).count();
    let found = run.n_missed();
    (wanted != found)
        .then(|| format!("solving ourselves, {found} jobs miss all their deadlines, expected {wanted}"))
}

/// Objectives of one solve after another.
pub(super) fn objective_difference(expected: &[Milp], run: &Run) -> Option<String> {
    let solves = expected.iter().zip(&run.solves);
    let differs = |(wanted, found): &(&Milp, &Solve)| match (wanted.objective, found.objective) {
        (Some(wanted), Some(found)) => !is_close(wanted, found),
        (wanted, found) => wanted.is_some() != found.is_some(),
    };
    let n_solves = (expected.len() != run.solves.len())
        .then(|| format!("{} models were solved, expected {}", run.solves.len(), expected.len()));
    let mut solves = solves.enumerate();
    let first = solves.find(|(_, pair)| differs(pair));
    first
        .map(|(index, (wanted, found))| {
            format!(
                "solve {index} at {}: objective {:?}, expected {:?}",
                found.time, found.objective, wanted.objective
            )
        })
        .or(n_solves)
}

struct Names<'w>(&'w Workload);

impl Names<'_> {
    fn of(&self, job: usize) -> &str {
        self.0.jobs.get(job).map_or("?", |spec| &spec.name)
    }
}

fn counts(what: &str, found: usize, wanted: usize) -> Option<String> {
    (found != wanted).then(|| format!("{found} {what}, expected {wanted}"))
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Lowest => "LOWEST",
        Class::Accepted => "ACCEPTED",
        Class::Unaccepted => "UNACCEPTED",
        Class::BestEffort => "BEST_EFFORT",
    }
}

fn admissions(expected: &[Admitted], found: &[Admission], names: &Names<'_>) -> Option<String> {
    let differs = |(wanted, found): &(&Admitted, &Admission)| {
        (wanted.time, wanted.job.to_string().as_str(), wanted.class.as_str())
            != (found.time, names.of(found.job), class_name(found.class))
            || (wanted.estimate_duration, wanted.need_leases, wanted.effective_deadline_rel)
                != (found.estimate, found.need, found.deadline)
    };
    let first = expected.iter().zip(found).find(differs);
    first
        .map(|(wanted, found)| {
            format!(
                "at {}: job {} became {} (estimate {}, {} leases, deadline {}), expected {wanted:?}",
                found.time,
                names.of(found.job),
                class_name(found.class),
                found.estimate,
                found.need,
                found.deadline
            )
        })
        .or_else(|| counts("admissions", found.len(), expected.len()))
}

fn models(expected: &[Milp], found: &[Solve]) -> Option<String> {
    let differs = |(wanted, found): &(&Milp, &Solve)| {
        wanted.time != found.time || !wanted.gpus.is_empty() && !is_same_model(wanted, found)
    };
    let first = expected.iter().zip(found).enumerate().find(|(_, pair)| differs(pair));
    first
        .map(|(index, (wanted, found))| {
            format!(
                "solve {index} at {} has other rows than the original's at {}: {:?}, expected gpus {:?}, need {:?}, horizon {:?}",
                found.time, wanted.time, found.problem, wanted.gpus, wanted.need, wanted.horizon
            )
        })
        .or_else(|| counts("models solved", found.len(), expected.len()))
}

fn is_same_model(wanted: &Milp, found: &Solve) -> bool {
    let row = |j: usize| {
        let horizon = *wanted.horizon.get(j)?;
        let (gpus, need) = (*wanted.gpus.get(j)?, *wanted.need.get(j)?);
        Some(LeaseRow { gpus, need, horizon, value: *wanted.value.get(j)?, level: *wanted.level.get(j)? })
    };
    let rows: Option<Vec<LeaseRow>> = (0..wanted.gpus.len()).map(row).collect();
    rows.as_ref() == Some(&found.problem.rows) && wanted.capacity == found.problem.capacity
}

fn boundaries(expected: &[Round], found: &[Boundary], names: &Names<'_>) -> Option<String> {
    let differs = |(wanted, found): &(&Round, &Boundary)| {
        let leased: Vec<String> = wanted.leased.iter().map(i64::to_string).collect();
        let is_other_lease =
            leased.iter().map(String::as_str).ne(found.leased.iter().map(|&job| names.of(job)));
        wanted.time != found.time
            || is_other_lease
            || (wanted.guarantee_gpus, wanted.unaccepted_count) != (found.guaranteed_gpus, found.n_unaccepted)
            || wanted.milp.is_some() != found.solve.is_some()
            || has_other_plans(wanted, found, names)
    };
    let first = expected.iter().zip(found).find(differs);
    first
        .map(|(wanted, found)| {
            let leased: Vec<&str> = found.leased.iter().map(|&job| names.of(job)).collect();
            format!(
                "lease at {}: jobs {} hold {} GPUs with {} unaccepted, expected {wanted:?}",
                found.time,
                leased.join(" "),
                found.guaranteed_gpus,
                found.n_unaccepted
            )
        })
        .or_else(|| counts("leases", found.len(), expected.len()))
}

fn has_other_plans(wanted: &Round, found: &Boundary, names: &Names<'_>) -> bool {
    let Some(wanted) = &wanted.plans else { return false };
    let plan = |name: &str| {
        let plan = found.plans.iter().find(|plan| names.of(plan.job) == name)?;
        let rest = plan.leases.iter().map(|runs| if *runs { '1' } else { '0' }).collect();
        Some(Plan { vid: plan.level as i64, rest, need_after: plan.need })
    };
    wanted.iter().any(|(name, wanted)| plan(name).as_ref() != Some(wanted))
}

fn fates(expected: &[Job], found: &[Fate]) -> Option<String> {
    if let Some(difference) = counts("jobs", found.len(), expected.len()) {
        return Some(difference);
    }
    let differs = |wanted: &&Job| {
        let name = wanted.job_id.to_string();
        found.iter().find(|fate| fate.name == name).is_none_or(|fate| !is_same_fate(wanted, fate))
    };
    let wanted = expected.iter().find(differs)?;
    let name = wanted.job_id.to_string();
    let fate = found.iter().find(|fate| fate.name == name);
    Some(format!("job {name}: {fate:?}, expected {wanted:?}"))
}

fn is_same_fate(wanted: &Job, found: &Fate) -> bool {
    let class = match found.class {
        Class::Lowest => -1,
        Class::Accepted => 0,
        Class::Unaccepted => 1,
        Class::BestEffort => 2,
    };
    let is_same_end = found.end.is_some_and(|end| is_close(end, wanted.end_time));
    is_same_end
        && found.start == Some(wanted.start_time)
        && is_close(wanted.miss_ddl.unwrap_or(-1.0), found.missed_value)
        && (class, found.waited, found.executed)
            == (wanted.queue_priority, wanted.pending_time, wanted.total_executed_time)
        && (wanted.preempt, wanted.resume) == (found.n_preempts, found.n_resumes)
}
