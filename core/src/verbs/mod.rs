//! What policies decide with: the walk over the queue, placements, reclaiming, plans over future time.

pub mod buddy;
pub mod by_share;
pub mod fill;
pub mod place;
pub mod reclaim;
pub mod room;
pub mod switches;
pub mod timeline;
pub mod turns;
