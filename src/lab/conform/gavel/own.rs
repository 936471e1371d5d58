//! What a run with our own answers comes to, against one with the original's. The optimum is rarely unique, so two solvers lead to
//! different runs; how far apart they are was measured with the original's own solvers (docs/fidelity.md), and twice that is allowed.

use rota_scripts::artifact::gavel::{GavelJob, Run};

/// Most relative change of mean completion time and of makespan between solvers, in the original's runs.
const APART: [(&str, f64, f64); 8] = [
    ("max_min_fairness_perf", 0.029, 0.021),
    ("max_min_fairness_packed", 0.015, 0.004),
    ("max_min_fairness", 0.19, 0.10),
    ("finish_time_fairness_perf", 0.014, 0.056),
    ("finish_time_fairness", 0.014, 0.05),
    ("min_total_duration_perf", 0.18, 0.023),
    ("min_total_duration", 0.20, 0.22),
    ("max_sum_throughput_perf", 0.087, 0.045),
];

/// What differs by more than that.
pub(super) fn compare_outcome(policy: &str, jobs: &[GavelJob], expected: &Run, got: &Run) -> Option<String> {
    let (_, jct, makespan) = APART.iter().find(|(name, _, _)| *name == policy)?;
    let numbers = [
        ("mean completion time", mean_jct(jobs, expected), mean_jct(jobs, got), jct),
        ("makespan", expected.makespan_s, got.makespan_s, makespan),
    ];
    let apart = |(what, expected, got, most): (&str, f64, f64, &f64)| {
        let change = got / expected - 1.0;
        (change.abs() > 2.0 * most).then(|| {
            format!(
                "with our own answers, expected a {what} of {expected:.0} s to within {:.0} %, got {got:.0} s",
                200.0 * most
            )
        })
    };
    numbers.into_iter().find_map(apart)
}

/// Over the jobs that ended.
fn mean_jct(jobs: &[GavelJob], run: &Run) -> f64 {
    let times =
        jobs.iter().zip(&run.outcomes).filter_map(|(job, outcome)| Some(outcome.finish_s? - job.arrival_s));
    let times: Vec<f64> = times.collect();
    times.iter().sum::<f64>() / times.len().max(1) as f64
}
