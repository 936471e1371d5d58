//! The topology by hwloc. The only file that knows it.

use hwlocality::Topology as Hwloc;
use hwlocality::object::TopologyObject;
use hwlocality::object::types::ObjectType;

use super::topology::{NumaNode, Topology};
use crate::ranges::Ranges;

/// Asks hwloc; none when it fails, and then /sys is read.
pub(super) fn read() -> Option<Topology> {
    let hwloc = Hwloc::new().ok()?;
    let groups = |object_type| {
        let mut groups: Vec<Ranges> = hwloc.objects_with_type(object_type).map(cpus).collect();
        groups.sort_unstable_by(|a, b| a.as_slice().cmp(b.as_slice()));
        groups
    };
    let mut numa: Vec<NumaNode> = hwloc
        .objects_with_type(ObjectType::NUMANode)
        .filter_map(|node| {
            let number = u32::try_from(node.os_index()?).ok()?;
            let cpus = cpus(node);
            (!cpus.is_empty()).then_some(NumaNode { number, cpus, mem_bytes: node.total_memory() })
        })
        .collect();
    numa.sort_unstable_by_key(|node| node.number);
    Some(Topology {
        numa,
        sockets: groups(ObjectType::Package),
        caches: groups(ObjectType::L3Cache),
        cores: groups(ObjectType::Core),
    })
}

fn cpus(object: &TopologyObject) -> Ranges {
    let set = object.cpuset();
    set.iter().flat_map(|set| set.iter_set()).filter_map(|cpu| u32::try_from(usize::from(cpu)).ok()).collect()
}
