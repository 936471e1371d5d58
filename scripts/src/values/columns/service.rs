//! Orders that need more than arithmetic on columns: Gittins indices and finish-time fair shares.

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::models::fairness::{Claim, fair_shares};
use crate::values::Column;

/// Points by which a distribution is represented: more would hardly change the order.
const MOST_POINTS: usize = 256;

/// The Gittins index of each job (Tiresias, NSDI'19, §4.2): over all times ahead, the best ratio of the chance to be
/// done by then to the service that is expected until then. `sizes` is what jobs are known to need in all; only their
/// distribution is used, never which job has which.
fn gittins(service: Column, sizes: Column) -> Outcome<Column> {
    service.jobs.session.meter().charge(service.jobs.len() * 8 + sizes.jobs.len())?;
    if let Some(odd) = sizes.values().iter().find(|size| size.is_nan()) {
        return fail(format!("gittins: a job of size {odd}"));
    }
    let points = quantiles(sizes.values());
    Column::compute(&service.jobs, service.values().iter().map(|attained| index(&points, *attained)))
}

fn quantiles(sizes: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = sizes.iter().copied().filter(|size| size.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    if sorted.len() <= MOST_POINTS {
        return sorted;
    }
    (0..MOST_POINTS).map(|i| sorted[(2 * i + 1) * sorted.len() / (2 * MOST_POINTS)]).collect()
}

/// A job that has received more than any known one is thought to need nothing predictable: it comes last.
fn index(points: &[f64], attained: f64) -> f64 {
    let first = points.partition_point(|size| *size <= attained);
    let rest = &points[first..];
    let (mut best, mut served) = (0.0_f64, 0.0);
    for (n_done, size) in rest.iter().enumerate() {
        served += size - attained;
        let n_left = (rest.len() - n_done - 1) as f64;
        let expected = served + n_left * (size - attained);
        best = best.max((n_done + 1) as f64 / expected);
    }
    best
}

/// The share of its gang's time that each job is due for the worst finish-time ratio to be the best possible.
fn due_shares(gpus: Column, waited: Column, left: Column, alone: Column, n_gpus: f64) -> Outcome<Column> {
    for column in [&waited, &left, &alone] {
        gpus.same_jobs(column)?;
    }
    gpus.jobs.session.meter().charge(gpus.jobs.len() * 64)?;
    let claims: Vec<Claim> = (0..gpus.jobs.len())
        .map(|i| Claim {
            gpus: gpus.values()[i],
            waited: waited.values()[i].max(0.0),
            left: left.values()[i].max(1e-6),
            alone: alone.values()[i].max(1e-6),
        })
        .collect();
    if let Some(claim) =
        claims.iter().find(|c| ![c.gpus, c.waited, c.left, c.alone].iter().all(|x| x.is_finite()))
    {
        return fail(format!("fair_shares: {claim:?} is not finite"));
    }
    let (_, shares) = fair_shares(&claims, n_gpus);
    Column::compute(&gpus.jobs, shares.into_iter())
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    let engine = registrar.function(
        "gittins(service: Column, sizes: Column) -> Column",
        "The Gittins index of each job given what it has received and the distribution of what jobs need in all; larger \
         goes first.",
    );
    engine.register_fn("gittins", gittins);
    let engine = registrar.function(
        "fair_shares(gpus: Column, waited: Column, left: Column, alone: Column, cluster_gpus) -> Column",
        "The part of the coming time each job's gang should run so that the largest (waited + left / share) / alone is as \
         small as it can be: finish-time fairness.",
    );
    engine.register_fn("fair_shares", due_shares);
    engine.register_fn(
        "fair_shares",
        |gpus: Column, waited: Column, left: Column, alone: Column, n_gpus: i64| {
            due_shares(gpus, waited, left, alone, n_gpus as f64)
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_known_sizes_the_index_is_the_inverse_of_what_is_left() {
        assert_eq!(index(&[10.0, 10.0, 10.0], 0.0), 0.1);
        assert_eq!(index(&[10.0, 10.0, 10.0], 6.0), 0.25);
        assert_eq!(index(&[10.0], 10.0), 0.0, "beyond all that is known");
    }

    #[test]
    fn a_job_likely_to_be_short_comes_before_one_that_has_shown_not_to_be() {
        let sizes = [1.0, 1.0, 1.0, 100.0];
        assert_eq!(index(&sizes, 0.0), 3.0 / 4.0, "three of four are done after one unit each");
        assert!(index(&sizes, 2.0) < 0.02);
        assert!(index(&sizes, 99.0) > index(&sizes, 0.0), "almost done is almost done");
    }

    #[test]
    fn many_sizes_are_thinned_out_evenly() {
        let sizes: Vec<f64> = (0..10_000).map(f64::from).collect();
        let points = quantiles(&sizes);
        assert_eq!(points.len(), MOST_POINTS);
        assert!((points[0] - 19.0).abs() < 2.0 && (points[255] - 9_980.0).abs() < 2.0, "{points:?}");
    }
}
