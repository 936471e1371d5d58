//! GPEmu's Synergy run again: its forty jobs on emulated GPUs, deployed on a local cluster, compared with its points and the paper's.
//!
//! ```text
//! rota up + rota deploy (commands/reproduce) ─▶ Cell: completion times, deployed and simulated
//! points: synergy_cdf.csv                    ─▶ Cell: GPEmu's and the paper's
//! Cells ─▶ claims ─▶ verdicts;  ─▶ table, picture
//! ```
//!
//! GPEmu publishes the completion times of its forty jobs and not the jobs. What follows from the times is in [`JOBS`].

mod claims;
mod curve;
mod page;
mod picture;
mod points;
mod table;

pub use claims::{Answer, CLAIMS, answers};
pub use curve::Curve;
pub use points::{PointsError, Published};

use serde::Serialize;

/// The heading of the run in lists of figures.
pub const TITLE: &str = "GPEmu's Synergy run, deployed on emulated agents";
/// The orders that GPEmu and the paper's figure have.
pub const ORDERS: [&str; 2] = ["las", "srtf"];
/// The allocations that they compare.
pub const ALLOCATIONS: [&str; 2] = ["proportional", "tune"];
/// Where the points lie below a folder of public material.
pub const POINTS: &str = "golden/gpemu/synergy_cdf.csv";
/// Where they were published.
pub const ORIGIN: &str = "github.com/mengwanguc/gpemu, plots/rep/synergy";

/// What is deployed, and why it is comparable to GPEmu's run.
pub const JOBS: &str = "GPEmu publishes the completion times of its jobs, not the jobs. These are drawn as Synergy's short \
    mix (half an hour to eight hours: the range of GPEmu's times), a third each of vision, language and speech, for the two \
    servers of eight GPUs and 24 CPUs in the cluster file that GPEmu's fork of Synergy deploys on, at a load at which the \
    simulator's average times over twenty seeds are nearest to GPEmu's.";

/// One order with one allocation.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The policy's order, `las` or `srtf`.
    pub order: &'static str,
    /// The policy's allocation, `proportional` or `tune`.
    pub allocation: &'static str,
    /// Completion times on the live cluster of emulated agents.
    pub deployed: Curve,
    /// The simulator's of the same jobs.
    pub simulated: Curve,
    /// GPEmu's.
    pub gpemu: Option<Curve>,
    /// The paper's, as GPEmu's authors read them off its figure.
    pub paper: Option<Curve>,
}

/// Where completion times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The live cluster.
    Deployed,
    /// The same jobs in Rota's simulator.
    Simulated,
    /// GPEmu's emulated deployment.
    Gpemu,
    /// The paper's figure.
    Paper,
}

impl Column {
    /// All of them, ours first.
    pub const ALL: [Column; 4] = [Column::Deployed, Column::Simulated, Column::Gpemu, Column::Paper];

    /// Its name in tables and legends.
    pub fn name(self) -> &'static str {
        match self {
            Column::Deployed => "deployed",
            Column::Simulated => "simulated",
            Column::Gpemu => "GPEmu",
            Column::Paper => "the paper",
        }
    }
}

impl Cell {
    /// The policy as Rota calls it.
    pub fn policy(&self) -> String {
        format!("{}+{}", self.order, self.allocation)
    }

    /// The completion times of one column; nothing where its points are missing.
    pub fn curve(&self, column: Column) -> Option<&Curve> {
        match column {
            Column::Deployed => Some(&self.deployed),
            Column::Simulated => Some(&self.simulated),
            Column::Gpemu => self.gpemu.as_ref(),
            Column::Paper => self.paper.as_ref(),
        }
    }
}

/// The whole figure.
#[derive(Clone, Debug, Serialize)]
pub struct Study {
    /// What was run, in a sentence.
    pub what: String,
    /// Whether it is the small form.
    pub is_quick: bool,
    /// What a reader must know, a sentence each.
    pub notes: Vec<String>,
    /// Orders with allocations.
    pub cells: Vec<Cell>,
}
