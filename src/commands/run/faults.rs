//! What fails in a run, and how its jobs end: `--faults`, `--mtbf` and `--ends-as-recorded`.

use std::sync::Arc;

use anyhow::Result;
use rota_core::cluster::Cluster;
use rota_core::fault::Fault;
use rota_core::time::{Span, Time};
use rota_core::workload::{RecordedEnd, Workload};
use rota_traces::faults::{self, FaultPlan};

use super::RunArgs;
use crate::commands::help::names;
use crate::commands::inputs::{Inputs, input};

pub(super) fn faults_help() -> String {
    format!("{} [default: nothing fails]", what_fails())
}

/// What a fault file says, and which are built in.
pub(crate) fn what_fails() -> String {
    format!(
        "What fails, and when: a .toml of distributions, a .csv of outages, or a built-in name\n\n\
         Nodes, GPUs, racks and switches fail and are repaired, nodes become slow, checkpoints are lost, jobs fail. Built in: {}. \
         `docs/faults.md` has the formats.",
        names(&faults::BUILT_IN)
    )
}

/// What fails: by the file of --faults, by --mtbf, or nothing.
fn fault_plan(args: &RunArgs, cluster: &Cluster) -> Result<FaultPlan> {
    match (&args.faults, args.mtbf) {
        (Some(name), _) => Ok(FaultPlan::load(name, cluster)?),
        (None, Some(between)) => Ok(FaultPlan::of_nodes(between, args.mttr)?),
        (None, None) => Ok(FaultPlan::default()),
    }
}

/// Takes in the fault file: it is one of the inputs, and may say how jobs end. How they ended where the trace comes from counts
/// only when that is asked for.
pub(super) fn let_jobs_fail(args: &RunArgs, inputs: &mut Inputs) -> Result<()> {
    let plan = fault_plan(args, &inputs.cluster)?;
    if let Some(name) = &args.faults {
        inputs.files.push(input("faults", name, &faults::BUILT_IN)?);
    }
    for load in &mut inputs.loads {
        let is_recorded = load.workload.truths.iter().any(|truth| truth.end != RecordedEnd::Unknown);
        if is_recorded && !args.ends_as_recorded {
            let truths = &mut Arc::make_mut(&mut load.workload).truths;
            truths.iter_mut().for_each(|truth| truth.end = RecordedEnd::Unknown);
        }
        if let Some(ends) = plan.ends {
            ends.apply(Arc::make_mut(&mut load.workload), plan.seed.unwrap_or(inputs.seed));
        }
    }
    Ok(())
}

/// Faults until well after the last job could have ended: as long again as the jobs arrive, and all their work in a row.
pub(crate) fn drawn_faults(args: &RunArgs, inputs: &Inputs, workload: &Workload) -> Result<Vec<Fault>> {
    let last = workload.jobs.last().map_or(Time::ZERO, |j| j.arrival);
    let longest = workload
        .jobs
        .iter()
        .map(|j| j.estimated_work / j.fair_rate(&inputs.cluster).max(f64::MIN_POSITIVE))
        .fold(0.0, f64::max);
    let end = last + (last - Time::ZERO) + Span::from_secs_f64(longest * 4.0);
    Ok(fault_plan(args, &inputs.cluster)?.faults(&inputs.cluster, end, inputs.seed)?)
}
