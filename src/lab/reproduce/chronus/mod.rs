//! Chronus (SoCC'21): deadlines missed and completion times of best-effort jobs, compared with the baselines it names.
//!
//! Its artifact ships no baseline that runs, and its abstract says only by how much Chronus is better at most; so what
//! can be shown is who is better on the published traces, and by which factor. The differences in setting are part of the
//! answer ([`CAVEATS`]).

mod study;

pub use study::{ChronusError, ChronusOptions, n_runs, study};

use rota_core::time::Span;

/// Chronus, also with spare GPUs for deadlines first, the schedulers its paper compares with, and Rota's own policy for
/// deadlines, in the order of every table. Behind the name of a policy stand its settings.
pub const POLICIES: [&str; 9] =
    ["chronus", "chronus-deadlines", "fifo", "srtf", "edf", "tiresias", "themis", "gandiva", "just-in-time"];

/// The published traces, by the end of their file names, in the order of the files that the comparison needs.
pub const TRACES: [&str; 3] = ["SLO", "MIX1", "MIX2"];

/// Time between rounds: the original admits and fills every five minutes.
const ROUND: Span = Span::from_secs(300);

/// What is different from the paper's setting, and why no factor can be expected to be met.
pub const CAVEATS: [&str; 6] = [
    "chronus gives GPUs of no lease to the shortest job without a promise, best-effort jobs among them, as the artifact does; \
     chronus-deadlines gives them to deadlines within reach first",
    "published are only the largest factors over all its workloads and baselines, without saying which; measured on a \
     prototype of 120 GPUs and in simulation on traces of which only Philly's are published",
    "the baselines are Rota's, with their own papers' rules: the artifact names them and ships none that runs",
    "placement does not change a job's speed here, as in the artifact, where the penalty is behind an early return",
    "a start costs nothing unless --restart-cost says so; the artifact adds half a minute and more for each",
    "edf gives a job as many GPUs as it can use, but these traces have fixed gangs: it is a plain order by deadline here",
];
