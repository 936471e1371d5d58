//! Placements that mind switches: gangs below one switch on the fewest nodes (Chronus, SoCC'21).

use super::{Ask, Place, Spots};
use crate::room::Room;
use crate::switches::{Part, Spare, fewest_nodes, is_allowed_split, is_consolidated, take_in_order};

/// Gangs up to this size may be split in the listed ways.
const SMALL_GANG: u32 = 8;

/// The fewest nodes below one switch, the fullest that hold the gang first; a gang waits rather than be spread over
/// more nodes than it needs. Only a gang wider than every switch spans several.
#[derive(Clone, Copy, Debug, Default)]
pub struct SwitchConsolidate;

/// The same, but gangs of up to eight may be split in the ways of a short list.
#[derive(Clone, Copy, Debug, Default)]
pub struct SwitchSplits;

impl Place for SwitchConsolidate {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        let spares = spares(room, ask);
        let parts = below_one_switch(room, ask, &spares)?;
        is_consolidated(&parts, ask.gpus).then(|| spots(room, &parts))
    }
}

impl Place for SwitchSplits {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        if ask.gpus > SMALL_GANG {
            return SwitchConsolidate.place(room, ask);
        }
        let spares = spares(room, ask);
        let parts = below_one_switch(room, ask, &spares)?;
        is_allowed_split(&parts, ask.gpus).then(|| spots(room, &parts))
    }
}

fn below_one_switch(room: &Room, ask: &Ask<'_>, spares: &[Spare]) -> Option<Vec<Part>> {
    fewest_nodes(spares, ask.gpus).or_else(|| over_switches(room, ask, spares))
}

/// The emptiest switches and nodes first, for a gang that no switch could hold if it were empty.
fn over_switches(room: &Room, ask: &Ask<'_>, spares: &[Spare]) -> Option<Vec<Part>> {
    let nodes = room.cluster().nodes();
    let widest =
        nodes.chunk_by(|a, b| a.rack == b.rack).map(|below| below.iter().map(|n| n.n_gpus).sum::<u32>());
    if widest.max().unwrap_or(0) >= ask.gpus {
        return None;
    }
    let mut switches: Vec<&[Spare]> = spares.chunk_by(|a, b| a.switch == b.switch).collect();
    let free = |below: &[Spare]| below.iter().map(|spare| spare.free).sum::<u32>();
    switches.sort_by_key(|below| std::cmp::Reverse(free(below)));
    let emptiest = |below: &[Spare]| {
        let mut nodes = below.to_vec();
        nodes.sort_by_key(|spare| std::cmp::Reverse(spare.free));
        nodes
    };
    let order: Vec<Spare> = switches.into_iter().flat_map(emptiest).collect();
    let parts = take_in_order(order.iter(), ask.gpus);
    (parts.iter().map(|part| part.gpus).sum::<u32>() == ask.gpus).then_some(parts)
}

/// Nodes the job may use, with the GPUs for which there are host resources.
pub(super) fn spares(room: &Room, ask: &Ask<'_>) -> Vec<Spare> {
    let candidates = room.candidates(&ask.per_gpu).filter(|(node, ..)| ask.allows(node));
    let spare = |(node, free, host): (&crate::cluster::Node, _, _)| Spare {
        node: node.id,
        switch: node.rack,
        free: ask.fitting(free, &host, u32::MAX),
        total: node.n_gpus,
    };
    candidates.map(spare).filter(|spare| spare.free > 0).collect()
}

/// The lowest free GPUs of each part, by node.
pub(super) fn spots(room: &Room, parts: &[Part]) -> Spots {
    let spot = |part: &Part| (part.spare.node, room.free_on(part.spare.node).0.lowest(part.gpus));
    let mut spots: Spots = parts.iter().map(spot).collect();
    spots.sort_unstable_by_key(|(node, _)| *node);
    spots
}
