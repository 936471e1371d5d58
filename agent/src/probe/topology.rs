//! CPUs, NUMA nodes, sockets and caches of a machine, from hwloc or from /sys.

use crate::ranges::Ranges;

/// How CPUs are grouped. CPUs are the numbers the kernel gives to hardware threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// NUMA nodes with CPUs, by number.
    pub numa: Vec<NumaNode>,
    /// CPUs of each socket.
    pub sockets: Vec<Ranges>,
    /// CPUs that share a last-level cache.
    pub caches: Vec<Ranges>,
    /// CPUs of each core.
    pub cores: Vec<Ranges>,
}

/// A NUMA node that has CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumaNode {
    /// The kernel's number for it.
    pub number: u32,
    /// The CPUs whose memory is local to this node.
    pub cpus: Ranges,
    /// Its memory in bytes.
    pub mem_bytes: u64,
}

impl Topology {
    /// The CPUs of all NUMA nodes.
    pub fn cpus(&self) -> Ranges {
        self.numa.iter().flat_map(|node| node.cpus.as_slice().iter().copied()).collect()
    }

    /// The memory of all NUMA nodes, in bytes.
    pub fn mem_bytes(&self) -> u64 {
        self.numa.iter().map(|node| node.mem_bytes).sum()
    }

    /// The NUMA node most of these CPUs are on, if they are on any.
    pub fn numa_near(&self, cpus: &Ranges) -> Option<u32> {
        let nodes = self.numa.iter().map(|node| (node.cpus.and(cpus).len(), node.number));
        nodes
            .filter(|(n_cpus, _)| *n_cpus > 0)
            .max_by_key(|(n, number)| (*n, u32::MAX - number))
            .map(|(_, n)| n)
    }
}

/// Where the topology is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// hwloc, when it is built in.
    Hwloc,
    /// The files in /sys.
    Sysfs,
}

/// The topology, by hwloc if it is built in and works, else from /sys.
pub fn read() -> Topology {
    read_by(Reader::Hwloc).or_else(|| read_by(Reader::Sysfs)).unwrap_or_default()
}

/// The topology as one reader sees it; none when it cannot.
pub fn read_by(reader: Reader) -> Option<Topology> {
    match reader {
        #[cfg(feature = "hwloc")]
        Reader::Hwloc => super::hwloc::read(),
        #[cfg(not(feature = "hwloc"))]
        Reader::Hwloc => None,
        Reader::Sysfs => super::sysfs::read(std::path::Path::new("/sys/devices/system")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_readers_see_the_same_machine() {
        let sysfs = read_by(Reader::Sysfs).expect("a Linux machine");
        assert!(!sysfs.cpus().is_empty() && sysfs.mem_bytes() > 0, "{sysfs:?}");
        match read_by(Reader::Hwloc) {
            Some(hwloc) => assert_eq!(hwloc, sysfs),
            None if cfg!(feature = "hwloc") => panic!("hwloc is built in and reads nothing"),
            None => {}
        }
    }
}
