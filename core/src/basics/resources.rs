//! What a server has besides its GPUs: CPUs, memory and storage rate, in fixed point with checked arithmetic.
//!
//! GPUs are not here: they are held as sets (`allocation`), because which one matters.

use crate::allocation::WHOLE_GPU;

/// Millionths of a CPU: fractions of CPUs are shared out exactly.
pub const CPU: u64 = 1_000_000;
/// One gigabyte (10^9 bytes), the unit of memory in files.
pub const GB: u64 = 1_000_000_000;
/// One megabyte per second, the unit of storage rates in files.
pub const MB_PER_S: u64 = 1_000_000;

/// CPUs, memory and storage rate: of a node, of a demand, or of what a job holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Host {
    /// CPUs in millionths.
    pub cpu_micro: u64,
    /// Memory in bytes.
    pub mem_bytes: u64,
    /// Storage rate in bytes per second.
    pub storage_bps: u64,
}

impl Host {
    /// Zero of every resource.
    pub const NONE: Host = Host { cpu_micro: 0, mem_bytes: 0, storage_bps: 0 };

    /// From the units of files: CPUs, gigabytes, megabytes per second. Negative or huge values saturate.
    pub fn from_units(cpus: f64, mem_gb: f64, storage_mb_per_s: f64) -> Self {
        Host {
            cpu_micro: (cpus * CPU as f64).round() as u64,
            mem_bytes: (mem_gb * GB as f64).round() as u64,
            storage_bps: (storage_mb_per_s * MB_PER_S as f64).round() as u64,
        }
    }

    /// CPUs as a number.
    pub fn cpus(&self) -> f64 {
        self.cpu_micro as f64 / CPU as f64
    }

    /// Memory in gigabytes.
    pub fn mem_gb(&self) -> f64 {
        self.mem_bytes as f64 / GB as f64
    }

    /// Storage rate in megabytes per second.
    pub fn storage_mb_per_s(&self) -> f64 {
        self.storage_bps as f64 / MB_PER_S as f64
    }

    /// Whether every component of `self` fits into `room`.
    #[inline]
    pub fn fits_in(&self, room: &Host) -> bool {
        self.cpu_micro <= room.cpu_micro
            && self.mem_bytes <= room.mem_bytes
            && self.storage_bps <= room.storage_bps
    }

    /// Both together, or `None` past the end of the numbers.
    pub fn checked_add(&self, other: &Host) -> Option<Host> {
        Some(Host {
            cpu_micro: self.cpu_micro.checked_add(other.cpu_micro)?,
            mem_bytes: self.mem_bytes.checked_add(other.mem_bytes)?,
            storage_bps: self.storage_bps.checked_add(other.storage_bps)?,
        })
    }

    /// What is left, or `None` when `other` does not fit.
    pub fn checked_sub(&self, other: &Host) -> Option<Host> {
        Some(Host {
            cpu_micro: self.cpu_micro.checked_sub(other.cpu_micro)?,
            mem_bytes: self.mem_bytes.checked_sub(other.mem_bytes)?,
            storage_bps: self.storage_bps.checked_sub(other.storage_bps)?,
        })
    }

    /// What is left, nothing where `other` is larger.
    #[inline]
    pub fn saturating_sub(&self, other: &Host) -> Host {
        self.zip(other, u64::saturating_sub)
    }

    /// The smaller of each component.
    #[inline]
    pub fn min(&self, other: &Host) -> Host {
        self.zip(other, u64::min)
    }

    /// The larger of each component.
    #[inline]
    pub fn max(&self, other: &Host) -> Host {
        self.zip(other, u64::max)
    }

    /// As much for `n` GPUs as `self` is for one; saturates.
    #[inline]
    pub fn times(&self, n: u32) -> Host {
        let n = u64::from(n);
        Host {
            cpu_micro: self.cpu_micro.saturating_mul(n),
            mem_bytes: self.mem_bytes.saturating_mul(n),
            storage_bps: self.storage_bps.saturating_mul(n),
        }
    }

    /// The share of one of `n`, rounded down so that `n` shares never exceed the whole.
    #[inline]
    pub fn per(&self, n: u32) -> Host {
        let n = u64::from(n.max(1));
        Host {
            cpu_micro: self.cpu_micro / n,
            mem_bytes: self.mem_bytes / n,
            storage_bps: self.storage_bps / n,
        }
    }

    /// What a job has while its turn lasts, if `self` is what it has on average with a share of the time (in thousandths): it
    /// uses CPUs and storage in its turns only, and keeps its memory between them.
    #[inline]
    pub fn in_turn(&self, share: u16) -> Host {
        let whole = u64::from(WHOLE_GPU);
        let share = u64::from(share.clamp(1, WHOLE_GPU));
        let at_once =
            |average: u64| if share == whole { average } else { average.saturating_mul(whole) / share };
        Host {
            cpu_micro: at_once(self.cpu_micro),
            mem_bytes: self.mem_bytes,
            storage_bps: at_once(self.storage_bps),
        }
    }

    /// How many times `unit` fits (components that `unit` does not ask for do not count), `cap` at most.
    #[inline]
    pub fn times_fits(&self, unit: &Host, cap: u32) -> u32 {
        let count = |room: u64, ask: u64| room.checked_div(ask).unwrap_or(u64::MAX);
        let fits = count(self.cpu_micro, unit.cpu_micro)
            .min(count(self.mem_bytes, unit.mem_bytes))
            .min(count(self.storage_bps, unit.storage_bps));
        fits.min(u64::from(cap)) as u32
    }

    /// Whether nothing is asked for or left.
    pub fn is_none(&self) -> bool {
        *self == Host::NONE
    }

    /// Whether every component is more than nothing.
    pub fn is_all_some(&self) -> bool {
        self.cpu_micro > 0 && self.mem_bytes > 0 && self.storage_bps > 0
    }

    #[inline]
    fn zip(&self, other: &Host, f: impl Fn(u64, u64) -> u64) -> Host {
        Host {
            cpu_micro: f(self.cpu_micro, other.cpu_micro),
            mem_bytes: f(self.mem_bytes, other.mem_bytes),
            storage_bps: f(self.storage_bps, other.storage_bps),
        }
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} CPUs, {} GB, {} MB/s", self.cpus(), self.mem_gb(), self.storage_mb_per_s())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_node_never_exceed_it() {
        let node = Host::from_units(25.0, 500.0, 500.0);
        for n in 1..=64 {
            assert!(node.per(n).times(n).fits_in(&node), "{n} shares");
        }
    }

    #[test]
    fn a_job_uses_cpus_and_storage_in_its_turns_and_memory_all_the_time() {
        let average = Host::from_units(2.0, 40.0, 100.0);
        assert_eq!(average.in_turn(250), Host::from_units(8.0, 40.0, 400.0));
        assert_eq!(average.in_turn(WHOLE_GPU), average);
    }

    #[test]
    fn a_component_nobody_asks_for_does_not_limit() {
        let room = Host::from_units(8.0, 0.0, 0.0);
        assert_eq!(room.times_fits(&Host::from_units(3.0, 0.0, 0.0), 64), 2);
        assert_eq!(room.times_fits(&Host::NONE, 5), 5);
        assert_eq!(room.times_fits(&Host::from_units(1.0, 1.0, 0.0), 64), 0);
    }
}
