//! What a job held over time: the rows of the timeline joined across nodes, and the gaps between them.

use rota_core::allocation::WHOLE_GPU;
use rota_core::ids::JobId;
use rota_core::ledger::Stretch;
use rota_core::time::Time;

use crate::results::RunResult;

/// A time in which a job held the same GPUs.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct HeldPeriod {
    /// When it begins, in seconds of simulated time.
    pub from_s: f64,
    /// When it ends, in the same seconds.
    pub to_s: f64,
    /// GPUs, a shared one as the part it has of it.
    pub gpus: f64,
    /// The nodes they are on.
    pub nodes: Vec<String>,
    #[serde(skip)]
    pub(super) from: Time,
    #[serde(skip)]
    pub(super) to: Time,
}

/// GPUs of a stretch, a shared one as the part that is held of it.
pub(super) fn gpus(stretch: &Stretch) -> f64 {
    f64::from(stretch.slice.gpus.len()) * f64::from(stretch.slice.share) / f64::from(WHOLE_GPU)
}

/// All a job held, in the order of time; neighbours that are alike are one.
pub(super) fn phases(run: &RunResult, id: JobId) -> Vec<HeldPeriod> {
    let mine: Vec<&Stretch> = run.timeline.iter().filter(|stretch| stretch.job == id).collect();
    let mut times: Vec<Time> = mine.iter().flat_map(|stretch| [stretch.from, stretch.to]).collect();
    times.sort_unstable();
    times.dedup();
    let mut phases: Vec<HeldPeriod> = Vec::new();
    for pair in times.windows(2) {
        let &[from, to] = pair else { continue };
        let now: Vec<&&Stretch> = mine.iter().filter(|s| s.from <= from && to <= s.to).collect();
        if now.is_empty() {
            continue;
        }
        let gpus = now.iter().map(|stretch| gpus(stretch)).sum();
        let mut nodes: Vec<String> = now.iter().map(|stretch| node_name(run, stretch)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        match phases.last_mut() {
            Some(last) if last.to == from && last.gpus == gpus && last.nodes == nodes => {
                (last.to, last.to_s) = (to, to.as_secs_f64());
            }
            _ => phases.push(HeldPeriod {
                from_s: from.as_secs_f64(),
                to_s: to.as_secs_f64(),
                gpus,
                nodes,
                from,
                to,
            }),
        }
    }
    phases
}

fn node_name(run: &RunResult, stretch: &Stretch) -> String {
    let node = stretch.slice.node;
    run.nodes.get(node.index()).cloned().unwrap_or_else(|| node.to_string())
}

/// The times between `from` and `to` that no phase covers.
pub(super) fn gaps(from: Time, to: Time, phases: &[HeldPeriod]) -> Vec<(Time, Time)> {
    let mut gaps = Vec::new();
    let mut free_since = from;
    for phase in phases {
        if phase.from > free_since {
            gaps.push((free_since, phase.from));
        }
        free_since = free_since.max(phase.to);
    }
    if to > free_since {
        gaps.push((free_since, to));
    }
    gaps
}
