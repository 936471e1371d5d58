//! Placement by data: a job starts where its data set is.

use super::{Ask, Place, Spots, fullest_node};
use crate::room::Room;

/// The fullest node that already has the job's data; else whatever the other strategy finds.
#[derive(Clone, Debug, Default)]
pub struct LocalData<P>(pub P);

impl<P: Place> Place for LocalData<P> {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        let near =
            ask.snapshot.jobs.spec(ask.row).dataset.and_then(|dataset| {
                fullest_node(room, ask, |node| ask.snapshot.nodes.has_data(node, dataset))
            });
        near.or_else(|| self.0.place(room, ask))
    }
}
