//! What a job holds: which GPUs, CPUs, memory and storage rate on which nodes.

use smallvec::SmallVec;

use crate::ids::NodeId;
use crate::resources::Host;

/// A set of GPUs of one node, by their local numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct GpuSet(pub u64);

impl GpuSet {
    /// No GPU.
    pub const NONE: GpuSet = GpuSet(0);

    /// One GPU; empty if the number is out of range.
    pub const fn one(gpu: u32) -> Self {
        if gpu < u64::BITS { GpuSet(1 << gpu) } else { GpuSet::NONE }
    }

    /// Whether a GPU is in it.
    pub const fn contains(self, gpu: u32) -> bool {
        !GpuSet::one(gpu).and(self).is_empty()
    }

    /// GPUs 0 to `n - 1`.
    pub const fn first(n: u32) -> Self {
        if n >= 64 { GpuSet(u64::MAX) } else { GpuSet((1 << n) - 1) }
    }

    /// How many.
    #[inline]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether none.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `self` are in `other`.
    #[inline]
    pub const fn is_within(self, other: GpuSet) -> bool {
        self.0 & !other.0 == 0
    }

    /// Those in both.
    #[inline]
    pub const fn and(self, other: GpuSet) -> GpuSet {
        GpuSet(self.0 & other.0)
    }

    /// Those in either.
    #[inline]
    pub const fn or(self, other: GpuSet) -> GpuSet {
        GpuSet(self.0 | other.0)
    }

    /// Those not in `other`.
    #[inline]
    pub const fn without(self, other: GpuSet) -> GpuSet {
        GpuSet(self.0 & !other.0)
    }

    /// The `n` lowest (all, when there are fewer).
    pub fn lowest(self, n: u32) -> GpuSet {
        if n >= self.len() {
            return self;
        }
        let mut rest = self.0;
        for _ in 0..n {
            rest &= rest - 1;
        }
        GpuSet(self.0 & !rest)
    }

    /// The `n` highest (all, when there are fewer).
    pub fn highest(self, n: u32) -> GpuSet {
        self.without(self.lowest(self.len().saturating_sub(n)))
    }

    /// The local numbers in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let gpu = rest.trailing_zeros();
                rest &= rest - 1;
                gpu
            })
        })
    }
}

/// A whole GPU, as a share.
pub const WHOLE_GPU: u16 = 1000;

/// In place of a share: all of each GPU all the time, and one other job may have it at the same time (space sharing). How fast two
/// such jobs are is measured ([`crate::profile::Beside`]); one whose mate has left is as fast as alone.
pub const BESIDE: u16 = 2 * WHOLE_GPU;

/// What a job holds on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Slice {
    /// Index into the nodes of the cluster.
    pub node: NodeId,
    /// Which of its GPUs.
    pub gpus: GpuSet,
    /// Share of each of these GPUs in thousandths: [`WHOLE_GPU`], or less when a policy time-slices; [`BESIDE`] when two jobs
    /// have them at the same time.
    pub share: u16,
    /// CPUs, memory and storage rate; on average over time when a policy time-slices.
    pub host: Host,
}

impl Slice {
    /// Whether another job may have the same GPUs at the same time.
    pub const fn is_beside(&self) -> bool {
        self.share == BESIDE
    }

    /// What counts as this job's of each GPU, in thousandths: half of it where two have it at the same time.
    pub const fn thousandths(&self) -> u16 {
        if self.is_beside() { WHOLE_GPU / 2 } else { self.share }
    }
}

/// All a job holds, by ascending node; empty when it does not run.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Allocation {
    /// One slice for each node.
    pub slices: SmallVec<[Slice; 1]>,
}

impl Allocation {
    /// GPUs in all, a shared one counted as one.
    pub fn n_gpus(&self) -> u32 {
        self.slices.iter().map(|s| s.gpus.len()).sum()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// Whether another job may have its GPUs at the same time.
    pub fn is_beside(&self) -> bool {
        self.slices.iter().any(Slice::is_beside)
    }

    /// Host resources in all.
    pub fn host(&self) -> Host {
        self.slices.iter().fold(Host::NONE, |sum, s| Host {
            cpu_micro: sum.cpu_micro.saturating_add(s.host.cpu_micro),
            mem_bytes: sum.mem_bytes.saturating_add(s.host.mem_bytes),
            storage_bps: sum.storage_bps.saturating_add(s.host.storage_bps),
        })
    }

    /// Whether both hold the same GPUs: going from one to the other needs no restart. A share of the time changes without one,
    /// because a job that takes turns is suspended and resumed in any case (Gandiva, OSDI'18, §3.2).
    pub fn same_gpus(&self, other: &Allocation) -> bool {
        self.slices.len() == other.slices.len()
            && self.slices.iter().zip(&other.slices).all(|(a, b)| a.node == b.node && a.gpus == b.gpus)
    }

    /// The least any worker gets per GPU, while it runs: one that takes turns has more in them than on average.
    pub fn least_per_gpu(&self) -> Host {
        self.slices
            .iter()
            .filter(|s| !s.gpus.is_empty())
            .map(|s| s.host.per(s.gpus.len()).in_turn(s.share))
            .reduce(|a, b| a.min(&b))
            .unwrap_or(Host::NONE)
    }

    /// The smallest part of the time any worker has its GPU.
    pub fn least_time(&self) -> f64 {
        let least = self.slices.iter().map(|s| s.share.min(WHOLE_GPU)).min().unwrap_or(0);
        f64::from(least) / f64::from(WHOLE_GPU)
    }

    /// The smallest share any worker has of its GPU, as a fraction: one half where another job has it at the same time.
    pub fn least_share(&self) -> f64 {
        let least = self.slices.iter().map(Slice::thousandths).min().unwrap_or(0);
        f64::from(least) / f64::from(WHOLE_GPU)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_time_changes_without_a_restart_and_lowers_no_cpus_in_a_turn() {
        let held = |share, cpus| {
            let host = Host::from_units(cpus, 10.0, 0.0);
            let slice = Slice { node: NodeId(0), gpus: GpuSet::first(2), share, host };
            Allocation { slices: SmallVec::from_slice(&[slice]) }
        };
        let (whole, half) = (held(WHOLE_GPU, 6.0), held(WHOLE_GPU / 2, 3.0));
        assert!(whole.same_gpus(&half));
        assert_eq!((whole.least_per_gpu().cpus(), half.least_per_gpu().cpus()), (3.0, 3.0));
    }

    #[test]
    fn lowest_and_highest_split_a_set() {
        let set = GpuSet(0b1011_0100);
        assert_eq!(set.lowest(2), GpuSet(0b0001_0100));
        assert_eq!(set.highest(2), GpuSet(0b1010_0000));
        assert_eq!(set.lowest(9), set);
        assert_eq!(set.lowest(1).or(set.highest(3)), set);
        assert_eq!(set.iter().collect::<Vec<_>>(), [2, 4, 5, 7]);
        assert_eq!(GpuSet::first(64).len(), 64);
    }
}
