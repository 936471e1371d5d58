//! Where a job that was stopped returns to: the nodes that have its data. Jobs that take turns would otherwise spend them
//! fetching. This decides where; the caller decides which resources a job accepts there.

use super::{Ask, Place};
use crate::ids::NodeId;
use crate::resources::Host;
use crate::room::Room;
use crate::snapshot::Snapshot;

/// How a job gets back to its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WayBack {
    /// There is none, or none is needed: the strategy takes it there with all it asks for.
    None,
    /// With its share, the strategy takes it there.
    AtShare,
    /// This node has its data and GPUs for it; its jobs would have to give something back.
    IfFreed(NodeId),
}

/// Whether the job of a row has somewhere to return to: it was stopped, and reads a data set.
pub(crate) fn may_return(snapshot: &Snapshot, row: usize) -> bool {
    snapshot.resumes_with_data(row)
}

/// Whether a job that was stopped is back on these nodes, and stays there.
pub(crate) fn has_returned(snapshot: &Snapshot, row: usize, nodes: impl Iterator<Item = NodeId>) -> bool {
    may_return(snapshot, row) && snapshot.nodes_have_data(row, nodes)
}

/// Whether the strategy takes a job where its data is.
pub(crate) fn is_there(placement: &mut dyn Place, room: &Room, ask: &Ask<'_>) -> bool {
    let spots = placement.place(room, ask);
    spots.is_some_and(|spots| ask.snapshot.nodes_have_data(ask.row, spots.iter().map(|(node, _)| *node)))
}

/// How the job of `ask`, which may return, gets back to its data; `share` is the least that it accepts.
pub(crate) fn way_back(placement: &mut dyn Place, room: &Room, ask: &Ask<'_>, share: &Host) -> WayBack {
    if is_there(placement, room, ask) {
        return WayBack::None;
    }
    if is_there(placement, room, &Ask { per_gpu: *share, ..*ask }) {
        return WayBack::AtShare;
    }
    let has_room = |(node, _): &(NodeId, u32)| {
        ask.gpu_type.is_none_or(|gpu_type| room.cluster().gpu_type_of(*node) == gpu_type)
            && ask.snapshot.nodes_have_data(ask.row, [*node])
    };
    let nodes = room.nodes_with(ask.gpus).filter(has_room);
    nodes.min_by_key(|(node, free)| (*free, *node)).map_or(WayBack::None, |(node, _)| WayBack::IfFreed(node))
}
