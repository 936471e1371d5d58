//! Choosing nodes below one switch: the fewest that hold a gang, and the splits of a gang that are allowed.
//!
//! Plain numbers only, so that strategies over a room ([`crate::place`]) and drivers that keep their own state can share
//! it. Chronus (SoCC'21) calls these placements `consolidate` and `consolidate_random`.

use crate::ids::NodeId;

/// A node with what is free on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// Not used here: identifies the node to the caller.
    pub node: NodeId,
    /// The switch it is connected to.
    pub switch: u32,
    /// GPUs that can be taken.
    pub free: u32,
    /// GPUs it has.
    pub total: u32,
}

/// GPUs chosen on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The node, with what was free before.
    pub spare: Spare,
    /// How many of its GPUs.
    pub gpus: u32,
}

/// The fewest nodes below one switch that hold the gang; of several switches the first with as few. Nodes that hold it
/// whole are taken by best fit; a gang wider than a node takes the emptiest first. `nodes` are grouped by switch.
pub fn fewest_nodes(nodes: &[Spare], gpus: u32) -> Option<Vec<Part>> {
    let mut best: Option<Vec<Part>> = None;
    for below in nodes.chunk_by(|a, b| a.switch == b.switch) {
        let free: u64 = below.iter().map(|spare| u64::from(spare.free)).sum();
        if free < u64::from(gpus) {
            continue;
        }
        let fits_a_node = below.iter().any(|spare| spare.total >= gpus);
        let mut order: Vec<&Spare> = below.iter().filter(|spare| spare.free > 0).collect();
        if fits_a_node {
            order.sort_by_key(|spare| if spare.free >= gpus { spare.free } else { u32::MAX });
        } else {
            order.sort_by_key(|spare| std::cmp::Reverse(spare.free));
        }
        let parts = take_in_order(order.into_iter(), gpus);
        if best.as_ref().is_none_or(|best| parts.len() < best.len()) {
            best = Some(parts);
        }
    }
    best
}

/// Everything a node has, node after node, until the gang is whole.
pub fn take_in_order<'a>(order: impl Iterator<Item = &'a Spare>, gpus: u32) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut left = gpus;
    for spare in order {
        if left == 0 {
            break;
        }
        let part = Part { spare: *spare, gpus: spare.free.min(left) };
        left -= part.gpus;
        parts.push(part);
    }
    parts
}

/// Whether every node is needed: a gang on more nodes than it needs is not consolidated.
pub fn is_consolidated(parts: &[Part], gpus: u32) -> bool {
    let total: u64 = parts.iter().map(|part| u64::from(part.spare.total)).sum();
    let least = parts.iter().map(|part| part.spare.total).min().unwrap_or(0);
    total - u64::from(least) < u64::from(gpus)
}

/// How gangs of up to eight may be split, widest part first. Wider gangs have no list.
const SPLITS: [&[&[u32]]; 8] = [
    &[&[1]],
    &[&[2], &[1, 1]],
    &[&[3], &[2, 1]],
    &[&[4], &[2, 2]],
    &[&[5], &[3, 2], &[2, 2, 1]],
    &[&[6], &[4, 2], &[2, 2, 2]],
    &[&[7], &[6, 1], &[4, 3], &[3, 2, 2]],
    &[&[8], &[4, 4], &[6, 2], &[4, 2, 2], &[2, 2, 2, 2]],
];

/// The splits allowed for a gang, fewest parts first; `None` for gangs without a list.
pub fn allowed_splits(gpus: u32) -> Option<&'static [&'static [u32]]> {
    SPLITS.get((gpus as usize).checked_sub(1)?).copied()
}

/// Whether these parts are an allowed split of the gang.
pub fn is_allowed_split(parts: &[Part], gpus: u32) -> bool {
    let mut sizes: Vec<u32> = parts.iter().map(|part| part.gpus).collect();
    sizes.sort_unstable_by_key(|size| std::cmp::Reverse(*size));
    allowed_splits(gpus).is_some_and(|splits| splits.contains(&sizes.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(free: &[(u32, u32)]) -> Vec<Spare> {
        let spare = |(n, (switch, free)): (usize, &(u32, u32))| Spare {
            node: NodeId::from(n),
            switch: *switch,
            free: *free,
            total: 8,
        };
        free.iter().enumerate().map(spare).collect()
    }

    fn chosen(free: &[(u32, u32)], gpus: u32) -> Vec<(u32, u32)> {
        let parts = fewest_nodes(&nodes(free), gpus).expect("enough below one switch");
        parts.iter().map(|part| (part.spare.node.0, part.gpus)).collect()
    }

    #[test]
    fn a_gang_that_fits_takes_the_fullest_node_that_holds_it() {
        assert_eq!(chosen(&[(0, 8), (0, 5), (0, 4), (0, 5)], 5), [(1, 5)]);
        assert_eq!(chosen(&[(0, 3), (0, 2), (0, 3)], 4), [(0, 3), (1, 1)], "in order where none holds it");
    }

    #[test]
    fn a_wide_gang_takes_the_emptiest_nodes_below_the_switch_with_fewest() {
        assert_eq!(chosen(&[(0, 4), (0, 8), (0, 8)], 16), [(1, 8), (2, 8)]);
        assert_eq!(chosen(&[(0, 4), (0, 4), (0, 4), (1, 6), (1, 6)], 12), [(3, 6), (4, 6)]);
        assert_eq!(fewest_nodes(&nodes(&[(0, 4), (1, 4)]), 8), None, "no switch has eight");
    }

    #[test]
    fn spreading_is_seen() {
        let parts = |free: &[(u32, u32)], gpus| fewest_nodes(&nodes(free), gpus).expect("enough");
        assert!(is_consolidated(&parts(&[(0, 8), (0, 8)], 16), 16));
        assert!(!is_consolidated(&parts(&[(0, 3), (0, 3)], 4), 4));
        assert!(is_allowed_split(&parts(&[(0, 2), (0, 2)], 4), 4));
        assert!(!is_allowed_split(&parts(&[(0, 3), (0, 2)], 4), 4));
        assert_eq!(allowed_splits(9), None);
        assert!(
            (1..=8).all(|g| allowed_splits(g).is_some_and(|s| s.iter().all(|p| p.iter().sum::<u32>() == g)))
        );
    }
}
