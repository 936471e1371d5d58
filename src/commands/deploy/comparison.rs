//! A deployment compared with its simulation: the same jobs on the same nodes under the same rules.

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Result;
use rota_core::cluster::Cluster;

use super::super::inputs::{Inputs, Load};
use super::super::run::{self, RunArgs};
use rota_head::Rules;
use rota_lab::results::RunResult;

/// Simulates what was deployed.
pub(super) fn simulated(
    args: &RunArgs,
    rules: &Rules,
    inputs: &Inputs,
    load: &Load,
    policy: &str,
    cluster: &Arc<Cluster>,
) -> Result<RunResult> {
    let args = RunArgs {
        round: rules.round,
        min_run: Some(rules.min_run),
        policies: vec![policy.to_owned()],
        set: run::own_set(policy, &args.set)?,
        ..args.clone()
    };
    let inputs = on(inputs, load, cluster);
    let mut result = run::single(&args, &inputs)?;
    result.meta.policy = format!("{policy} simulated");
    result.summary.policy.clone_from(&result.meta.policy);
    Ok(result)
}

/// One load of the inputs, on another cluster.
pub(super) fn on(inputs: &Inputs, load: &Load, cluster: &Arc<Cluster>) -> Inputs {
    Inputs {
        cluster: Arc::clone(cluster),
        loads: vec![Load {
            jobs_per_hour: load.jobs_per_hour,
            workload: Arc::clone(&load.workload),
            dropped: Vec::new(),
            reading: None,
            durations: None,
        }],
        profiles: inputs.profiles.clone(),
        options: inputs.options.clone(),
        seed: inputs.seed,
        files: inputs.files.clone(),
        name: inputs.name.clone(),
    }
}

/// Figures of a deployment and of its simulation.
pub(super) struct Comparison {
    policy: String,
    /// Average completion time and makespan in seconds, deployed and simulated.
    jct_s: (Option<f64>, Option<f64>),
    makespan_s: (Option<f64>, Option<f64>),
    finished: (u64, u64),
    declined: (u64, u64),
}

impl Comparison {
    pub(super) fn of(deployed: &RunResult, simulated: &RunResult) -> Self {
        let (live, ours) = (&deployed.summary, &simulated.summary);
        Comparison {
            policy: deployed.meta.policy.clone(),
            jct_s: (live.avg_jct_s, ours.avg_jct_s),
            makespan_s: (live.makespan_s, ours.makespan_s),
            finished: (live.finished, ours.finished),
            declined: (live.declined, ours.declined),
        }
    }
}

/// One line for each comparison.
pub(super) fn to_text(comparisons: &[Comparison]) -> String {
    let mut text = String::new();
    for Comparison { policy, jct_s, makespan_s, finished, declined } in comparisons {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{policy}: average JCT {} deployed, {} simulated ({}); makespan {}, {} ({}); finished {}, {}; declined {}, {}",
            hours(jct_s.0),
            hours(jct_s.1),
            apart(*jct_s),
            hours(makespan_s.0),
            hours(makespan_s.1),
            apart(*makespan_s),
            finished.0,
            finished.1,
            declined.0,
            declined.1,
        );
    }
    text
}

fn hours(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "none".to_owned(), |seconds| format!("{:.3} h", seconds / 3_600.0))
}

fn apart(both: (Option<f64>, Option<f64>)) -> String {
    match both {
        (Some(deployed), Some(simulated)) => format!("{:+.2} %", 100.0 * (deployed / simulated - 1.0)),
        _ => "not comparable".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_counted_from_the_simulation() {
        let comparison = Comparison {
            policy: "fifo".into(),
            jct_s: (Some(3_636.0), Some(3_600.0)),
            makespan_s: (Some(7_128.0), Some(7_200.0)),
            finished: (3, 3),
            declined: (1, 0),
        };
        assert_eq!(
            to_text(&[comparison]),
            "fifo: average JCT 1.010 h deployed, 1.000 h simulated (+1.00 %); makespan 1.980 h, 2.000 h (-1.00 %); \
             finished 3, 3; declined 1, 0\n"
        );
    }
}
