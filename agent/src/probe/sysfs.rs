//! The topology from the kernel's own files, for machines without hwloc.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use super::topology::{NumaNode, Topology};
use crate::ranges::Ranges;

/// Reads the topology below `/sys/devices/system`, or a copy of it.
pub(super) fn read(system: &Path) -> Option<Topology> {
    let online: Ranges = parsed(&system.join("cpu/online"))?;
    let mut numa: Vec<NumaNode> = numbered(&system.join("node"), "node")
        .into_iter()
        .filter_map(|number| numa_node(system, number, &online))
        .collect();
    if numa.is_empty() {
        // Kernels without NUMA have no such folder: all is one node.
        let mem_bytes = memory(&fs::read_to_string("/proc/meminfo").ok()?)?;
        numa.push(NumaNode { number: 0, cpus: online.clone(), mem_bytes });
    }
    let cpu = |cpu: &u32, file: &str| parsed(&system.join(format!("cpu/cpu{cpu}")).join(file));
    let groups = |file: &str| distinct(online.as_slice().iter().filter_map(|c| cpu(c, file)), &online);
    let last_cache = |c: &u32| {
        let caches = system.join(format!("cpu/cpu{c}/cache"));
        let level = |index: u32| parsed::<u32>(&caches.join(format!("index{index}/level")));
        let last = numbered(&caches, "index").into_iter().max_by_key(|index| level(*index))?;
        (level(last)? >= 3).then(|| parsed(&caches.join(format!("index{last}/shared_cpu_list"))))?
    };
    Some(Topology {
        sockets: groups("topology/package_cpus_list"),
        cores: groups("topology/core_cpus_list"),
        caches: distinct(online.as_slice().iter().filter_map(last_cache), &online),
        numa,
    })
}

fn numa_node(system: &Path, number: u32, online: &Ranges) -> Option<NumaNode> {
    let folder = system.join(format!("node/node{number}"));
    let cpus = parsed::<Ranges>(&folder.join("cpulist"))?.and(online);
    let mem_bytes = memory(&fs::read_to_string(folder.join("meminfo")).ok()?)?;
    // Memory without CPUs (on a GPU, or far away) is nothing a job can be bound to.
    (!cpus.is_empty()).then_some(NumaNode { number, cpus, mem_bytes })
}

fn memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.contains("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().rev().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Each group once, by its first CPU.
fn distinct(groups: impl Iterator<Item = Ranges>, online: &Ranges) -> Vec<Ranges> {
    let mut groups: Vec<Ranges> = groups.map(|group| group.and(online)).collect();
    groups.sort_unstable_by(|a, b| a.as_slice().cmp(b.as_slice()));
    groups.dedup();
    groups
}

fn parsed<T: FromStr>(path: &Path) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The numbers of folders called `name0`, `name1` and so on, ascending.
fn numbered(folder: &Path, name: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix(name)?.parse().ok();
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server with two sockets, a NUMA node and a cache each, two threads for each core, and memory without CPUs.
    fn two_sockets(system: &Path) {
        let write = |path: String, text: &str| {
            let path = system.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("cpu/online".into(), "0-7\n");
        for cpu in 0..8_u32 {
            let (socket, core) = if cpu % 4 < 2 { ("0-1,4-5", cpu % 4) } else { ("2-3,6-7", cpu % 4) };
            write(format!("cpu/cpu{cpu}/topology/package_cpus_list"), socket);
            write(format!("cpu/cpu{cpu}/topology/core_cpus_list"), &format!("{core},{}", core + 4));
            write(format!("cpu/cpu{cpu}/cache/index0/level"), "1");
            write(format!("cpu/cpu{cpu}/cache/index3/level"), "3");
            write(format!("cpu/cpu{cpu}/cache/index3/shared_cpu_list"), socket);
        }
        for (node, cpus) in [(0, "0-1,4-5"), (1, "2-3,6-7"), (2, "")] {
            write(format!("node/node{node}/cpulist"), cpus);
            write(format!("node/node{node}/meminfo"), &format!("Node {node} MemTotal:  1000 kB\n"));
        }
    }

    #[test]
    fn sockets_nodes_caches_and_cores_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        two_sockets(folder.path());
        let topology = read(folder.path()).expect("a topology");
        let written = |groups: &[Ranges]| groups.iter().map(Ranges::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(written(&topology.sockets), "0-1,4-5 2-3,6-7");
        assert_eq!(written(&topology.cores), "0,4 1,5 2,6 3,7");
        assert_eq!(topology.caches, topology.sockets);
        assert_eq!(topology.numa.len(), 2, "memory without CPUs is no node for jobs");
        assert_eq!(topology.mem_bytes(), 2 * 1000 * 1024);
        assert_eq!(topology.numa_near(&"2,3,4".parse().expect("CPUs")), Some(1));
    }
}
