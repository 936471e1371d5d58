//! What jobs were given.

use smallvec::SmallVec;

use crate::allocation::{Allocation, Slice};
use crate::plan::{Hold, Plan, Run};
use crate::snapshot::Snapshot;

/// At which of its demands a job was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// The demand it came with.
    Asked,
    /// An answer after that.
    Lowered,
    /// It gave its excess to a neighbour.
    Reclaimed,
}

/// What a job was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// Its row in the job table of the snapshot.
    pub row: u32,
    /// What it holds now, by ascending node.
    pub slices: SmallVec<[Slice; 1]>,
    /// At which of its demands it was served.
    pub grade: Grade,
    /// Whether it stays on the GPUs it had.
    pub is_kept: bool,
    /// Whether it also keeps exactly the host resources it had.
    pub(crate) is_unchanged: bool,
}

impl Granted {
    /// As a line of a plan.
    pub fn into_run(self, snapshot: &Snapshot) -> Run {
        let row = self.row as usize;
        let job = snapshot.jobs.id(row);
        let what =
            if self.is_unchanged { Hold::Keep } else { Hold::Take(Allocation { slices: self.slices }) };
        Run { job, what }
    }
}

/// A plan in which exactly these jobs run.
pub fn plan_of(snapshot: &Snapshot, granted: Vec<Granted>) -> Plan {
    Plan { run: granted.into_iter().map(|g| g.into_run(snapshot)).collect(), ..Plan::default() }
}
