//! What fails in a simulated cluster: nodes, GPUs, racks and jobs, at times that are drawn from laws or given in a table.
//!
//! ```text
//! faults.toml ─▶ file ──▶ FaultPlan { causes, outages, ends } ─▶ draw ─▶ outages ─▶ lay_out ─▶ Vec<Fault>
//! faults.csv ──▶ table ─────────▲            │
//!                               └─ to_table ◀┘
//! ```

mod draw;
mod ends;
mod file;
mod law;
mod lay_out;
mod table;

use rota_core::cluster::Cluster;
use rota_core::fault::Fault;
use rota_core::ids::NodeId;
use rota_core::time::{Span, Time};

use crate::error::InputError;
use crate::source::Source;

pub use ends::DrawnEnds;
pub use law::Law;
pub use table::write as write_table;

/// The built-in fault files: name and text.
pub const BUILT_IN: [(&str, &str); 3] = [
    ("philly", include_str!("../../../configs/faults/philly.toml")),
    ("philly-jobs", include_str!("../../../configs/faults/philly-jobs.toml")),
    ("fleet", include_str!("../../../configs/faults/fleet.toml")),
];

/// All that fails in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPlan {
    /// Failures that are drawn.
    pub causes: Vec<Cause>,
    /// Failures at known times.
    pub outages: Vec<Outage>,
    /// Jobs that fail or are killed, where the trace does not say how jobs end.
    pub ends: Option<DrawnEnds>,
    /// Equal seeds give equal faults; the seed of the run where it is missing.
    pub seed: Option<u64>,
}

/// Why things of one kind fail again and again, each by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cause {
    /// What fails.
    pub of: Kind,
    /// From a return (or the beginning) to the next failure of one of them.
    pub between: Law,
    /// From a failure to the return.
    pub repair: Law,
    /// The chance of each other node of the rack to fail at the same time; its repair is its own.
    pub together: f64,
    /// The chance that a failure takes the checkpoints of the jobs it hits.
    pub loses_checkpoints: f64,
    /// Nothing fails, but nodes work at this part of their speed for that time.
    pub speed: Option<f64>,
}

/// A kind of thing that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A node with all its GPUs.
    Node,
    /// One GPU.
    Gpu,
    /// A rack, or the switch that its nodes are connected to: all its nodes are gone.
    Rack,
}

/// One failure with its repair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    /// When it begins.
    pub from: Time,
    /// When it is over.
    pub to: Time,
    /// What fails.
    pub what: Part,
    /// Nothing fails, but it works at this part of its speed.
    pub speed: Option<f64>,
    /// Whether the checkpoints of the jobs there are lost.
    pub loses_checkpoints: bool,
}

/// A part of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A node.
    Node(NodeId),
    /// A GPU of a node.
    Gpu(NodeId, u32),
    /// All nodes of a rack.
    Rack(u32),
}

/// More outages than this are a typing error.
const MOST_OUTAGES: usize = 5_000_000;

impl FaultPlan {
    /// Nodes fail and are repaired, both without memory: what `--mtbf` and `--mttr` say.
    pub fn of_nodes(between: Span, repair: Span) -> Result<Self, InputError> {
        let law = |name: &str, mean: Span| match mean > Span::ZERO {
            true => Law::exponential(mean),
            false => Err(InputError::expected("faults", "a length of time greater than 0")
                .at_name(name)
                .got(mean.to_string())),
        };
        let cause = Cause {
            of: Kind::Node,
            between: law("mean time between failures", between)?,
            repair: law("mean time to repair", repair)?,
            together: 0.0,
            loses_checkpoints: 0.0,
            speed: None,
        };
        Ok(FaultPlan { causes: vec![cause], ..FaultPlan::default() })
    }

    /// A built-in fault file by name, or a file.
    pub fn load(name_or_path: &str, cluster: &Cluster) -> Result<Self, InputError> {
        let source = Source::find(name_or_path, &BUILT_IN, "fault", "faults", "ones")?;
        match BUILT_IN.iter().any(|(name, _)| *name == name_or_path) {
            true => file::read(&source, cluster),
            false => Self::read(&source, cluster),
        }
    }

    /// Reads a fault file: laws in Rota's `.toml`, or a table of outages.
    pub fn read(source: &Source, cluster: &Cluster) -> Result<Self, InputError> {
        match source.has_extension("toml") {
            true => file::read(source, cluster),
            false => Ok(FaultPlan { outages: table::read(source, cluster)?, ..FaultPlan::default() }),
        }
    }

    /// Every outage that begins before `end`, by time: those that are drawn and those that are given.
    pub fn drawn(&self, cluster: &Cluster, end: Time, seed: u64) -> Result<Vec<Outage>, InputError> {
        let mut outages: Vec<Outage> = self.outages.iter().filter(|o| o.from < end).copied().collect();
        for (index, cause) in self.causes.iter().enumerate() {
            draw::draw(cause, index, cluster, end, self.seed.unwrap_or(seed), &mut outages)?;
        }
        outages.sort_by_key(|outage| (outage.from, outage.what, outage.to));
        Ok(outages)
    }

    /// Failures and returns by time. The return from a failure before `end` is always there, even when it comes later.
    pub fn faults(&self, cluster: &Cluster, end: Time, seed: u64) -> Result<Vec<Fault>, InputError> {
        Ok(lay_out::faults(&self.drawn(cluster, end, seed)?, cluster))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_file_fits_every_cluster() {
        for (cluster, _) in crate::cluster::BUILT_IN {
            let cluster = crate::cluster::load(cluster).expect("built in");
            for (name, _) in BUILT_IN {
                let plan = FaultPlan::load(name, &cluster).expect(name);
                let faults = plan.faults(&cluster, Time(1_000 * 86_400_000_000), 1).expect(name);
                assert!(!faults.is_empty() || plan.ends.is_some(), "{name}");
            }
        }
    }

    #[test]
    fn the_same_jobs_do_not_pass_with_and_without_failures_of_nodes() {
        let cluster = crate::cluster::load("philly").expect("built in");
        let [with, without] =
            ["philly", "philly-jobs"].map(|name| FaultPlan::load(name, &cluster).expect(name));
        assert_eq!(with.ends, without.ends);
        assert!(without.causes.is_empty() && without.ends.is_some());
    }

    #[test]
    fn a_name_that_is_nothing_lists_what_there_is() {
        let cluster = crate::cluster::load("small").expect("built in");
        let error = FaultPlan::load("phily", &cluster).expect_err("typo").to_string();
        assert_eq!(
            error,
            "faults: got \"phily\", expected a fault file or one of the built-in ones philly, philly-jobs, fleet"
        );
    }
}
