//! Chronus (SoCC'21): deadlines missed and completion times of best-effort jobs, compared with the baselines it names.
//!
//! Its artifact ships no baseline that runs, and its abstract states only the largest factors. So the shipped baselines are
//! run on the published traces; [`CAVEATS`] lists how that differs from the paper's setting.

mod study;

pub use study::{ChronusOptions, n_runs, study};

use rota_core::time::Span;

/// Chronus, also with spare GPUs for deadlines first, the schedulers its paper compares with, and Rota's own policy for
/// deadlines, in the order of every table. Behind the name of a policy stand its settings.
pub const POLICIES: [&str; 9] =
    ["chronus", "chronus-deadlines", "fifo", "srtf", "edf", "tiresias", "themis", "gandiva", "just-in-time"];

/// The published traces, by the end of their file names, in the order of the files that the comparison needs.
pub const TRACES: [&str; 3] = ["SLO", "MIX1", "MIX2"];

/// Time between rounds: the original admits and fills every five minutes.
const ROUND: Span = Span::from_secs(300);

/// What is different from the paper's setting, and why its factors cannot be expected.
pub const CAVEATS: [&str; 6] = [
    "chronus gives GPUs outside leases to the shortest job without a promised deadline, best-effort jobs among them, as the \
     artifact does; chronus-deadlines gives them first to jobs that can still meet their deadline.",
    "The paper states only the largest factors over all its workloads and baselines, and not where they were; it measured a \
     prototype of 120 GPUs and simulated traces of which only Philly's are published.",
    "The baselines are the shipped ones, with the rules of their own papers: the artifact names them and ships none that runs. The \
     original's Chronus is compared with them.",
    "Placement does not change a job's speed here, as in the artifact, where the penalty is behind an early return.",
    "A start costs the shipped policies nothing; the artifact adds half a minute and more for each.",
    "edf gives a job as many GPUs as it can use, but these traces have fixed gangs: here it is a plain order by deadline.",
];
