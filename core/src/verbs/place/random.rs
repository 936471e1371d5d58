//! GPUs drawn from a seed, one by one: what any placement should beat.

use super::switch::{spares, spots};
use super::{Ask, Place, Spots};
use crate::room::Room;
use crate::switches::Part;

/// Each GPU on the first node with room from a drawn one on. The draw depends on seed, time, job and GPU only, so that
/// a run repeats.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomNodes {
    /// Equal seeds draw equal nodes.
    pub seed: u64,
}

impl Place for RandomNodes {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        let nodes = spares(room, ask);
        let free: u64 = nodes.iter().map(|spare| u64::from(spare.free)).sum();
        if free < u64::from(ask.gpus) {
            return None;
        }
        let mut parts: Vec<Part> = nodes.iter().map(|spare| Part { spare: *spare, gpus: 0 }).collect();
        let n_nodes = parts.len();
        for n_placed in 0..ask.gpus {
            let first = draw(self.seed, ask, n_placed, n_nodes);
            let has_room = |n: &usize| parts[*n].gpus < parts[*n].spare.free;
            let node = (0..n_nodes).map(|step| (first + step) % n_nodes).find(has_room)?;
            parts[node].gpus += 1;
        }
        parts.retain(|part| part.gpus > 0);
        Some(spots(room, &parts))
    }
}

/// One of so many nodes, for the GPU of a job that is placed after `n_placed` others.
pub(super) fn draw(seed: u64, ask: &Ask<'_>, n_placed: u32, n_nodes: usize) -> usize {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let job = u64::from(ask.snapshot.jobs.id(ask.row).0);
    let of_job = seed ^ mix(ask.snapshot.now.0 as u64) ^ mix(job.rotate_left(32));
    let state = of_job.wrapping_add(STEP.wrapping_mul(u64::from(n_placed) + 1));
    (mix(state) % n_nodes.max(1) as u64) as usize
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA'14).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
