//! A job below its demand looks for another place: a free one, or that of jobs that need less and take its own.

use smallvec::SmallVec;

use super::super::serve::Candidate;
use super::{Rearrange, Slices};
use crate::allocation::Slice;
use crate::fill::Grade;
use crate::ids::NodeId;
use crate::resources::Host;

/// Exchanges tried for one job: a strategy that refuses so many has its reasons.
const MOST_TRADES: u32 = 4;

/// Jobs that change places with another, by their numbers in `granted`.
type Partners = SmallVec<[u32; 4]>;

/// What a job that was taken out left behind, and what it wants.
struct Wish<'s> {
    index: u32,
    before: &'s Slices,
    gpus: u32,
    per_gpu: Host,
    /// Free GPUs and host resources where it was.
    left_gpus: u32,
    left_host: Host,
    /// Whether it may claim what jobs behind it hold beyond their share. A job that runs already may not: it would be stopped
    /// for the sake of the order alone, since what it wins another loses.
    claims: bool,
}

impl Rearrange<'_, '_> {
    /// Looks for another place at which a job has its demand, alone or in exchange; leaves it where it is if there is none.
    pub(super) fn change_places(&mut self, index: u32) -> bool {
        let demand = *self.demand(index);
        let before = self.take_out(index);
        if let Some(slices) = self.find(index, &before, &demand) {
            self.put_in(index, slices, Grade::Asked);
            return true;
        }
        let (left_gpus, left_host) = before.iter().fold((0, Host::NONE), |(gpus, host), slice| {
            let (free, room) = self.fill.room.free_on(slice.node);
            (gpus + free.len(), host.checked_add(&room).unwrap_or(host))
        });
        let gpus = n_gpus(&before);
        let claims = !self.fill.granted[index as usize].is_kept;
        let wish = Wish { index, before: &before, gpus, per_gpu: demand, left_gpus, left_host, claims };
        let is_moved = self.exchange(&wish);
        if !is_moved {
            self.put_back(index, before);
        }
        is_moved
    }

    /// Lets a job have its demand on a node that can spare it, or whose jobs can go where it was. Says whether it did.
    fn exchange(&mut self, wish: &Wish<'_>) -> bool {
        let whole = wish.per_gpu.times(wish.gpus);
        // What a node must spare, since no partner can take along more than has room where the job was.
        let least = whole.saturating_sub(&wish.left_host);
        let gpu_type = self.type_of(wish.before);
        if self.hopeless.of(wish.claims).iter().any(|(of, known)| *of == gpu_type && known.fits_in(&least)) {
            return false;
        }
        let (mut n_tried, mut is_hopeless) = (0, true);
        for n in 0..self.excess_behind.len() {
            let node = NodeId::from(n);
            let spare = if wish.claims { self.spare_on(node) } else { self.fill.room.free_on(node).1 };
            if !least.fits_in(&spare) || self.fill.snapshot.cluster.gpu_type_of(node) != gpu_type {
                continue;
            }
            if wish.before.iter().any(|s| s.node == node) {
                // What a gang cannot use on the richest of its nodes may serve a job elsewhere. Where nodes are alike this
                // is not looked for, so that decisions there are those that docs/tune.md has figures of.
                is_hopeless &= !self.nodes_differ;
                continue;
            }
            is_hopeless = false;
            let lacks_gpus = wish.gpus.saturating_sub(self.fill.room.free_on(node).0.len());
            let lacks_host = whole.saturating_sub(&spare);
            let Some(partners) = self.partners(node, lacks_gpus, lacks_host, wish) else { continue };
            if self.trade(wish, node, &whole, &partners) {
                return true;
            }
            n_tried += 1;
            if n_tried == MOST_TRADES {
                break;
            }
        }
        if is_hopeless {
            self.hopeless.of(wish.claims).push((gpu_type, least));
        }
        false
    }

    /// Jobs of a node that can go where another was, and leave behind what is lacking: none or one if that suffices.
    fn partners(&self, node: NodeId, gpus: u32, host: Host, wish: &Wish<'_>) -> Option<Partners> {
        if gpus == 0 && host.is_none() {
            return Some(Partners::new());
        }
        let offers = |index: &u32| {
            let slices = &self.fill.granted[*index as usize].slices;
            let slice = slices.first().filter(|s| slices.len() == 1 && s.gpus.len() <= wish.left_gpus)?;
            (slice.host.fits_in(&wish.left_host) && self.may_move(*index)).then_some((*index, *slice))
        };
        let there = &self.fill.room.occupants[node.index()];
        let suffices =
            |(index, s): &(u32, Slice)| s.gpus.len() >= gpus && host.fits_in(&self.brings(*index, s));
        if let Some((index, _)) = there.iter().filter_map(offers).find(suffices) {
            return Some(SmallVec::from_slice(&[index]));
        }
        if wish.left_gpus >= 2 {
            let (mut lacks_gpus, mut lacks_host) = (gpus, host);
            let (mut left_gpus, mut left_host) = (wish.left_gpus, wish.left_host);
            let mut partners = Partners::new();
            for (index, slice) in there.iter().filter_map(offers) {
                if slice.gpus.len() > left_gpus || !slice.host.fits_in(&left_host) {
                    continue;
                }
                partners.push(index);
                left_gpus -= slice.gpus.len();
                left_host = left_host.saturating_sub(&slice.host);
                lacks_gpus = lacks_gpus.saturating_sub(slice.gpus.len());
                lacks_host = lacks_host.saturating_sub(&self.brings(index, &slice));
                if lacks_gpus == 0 && lacks_host.is_none() {
                    return Some(partners);
                }
            }
        }
        self.gang_to_shift(node, gpus, &host, wish).map(|index| SmallVec::from_slice(&[index]))
    }

    /// What a job leaves behind on a node; the excess of one behind was counted as spare already.
    fn brings(&self, index: u32, slice: &Slice) -> Host {
        match self.is_behind(index) {
            true => slice.host.saturating_sub(&self.excess(slice)),
            false => slice.host,
        }
    }

    /// A gang on several nodes that can leave so much of this one for as many GPUs where another job was. Asked only on a node
    /// that has more for each GPU than the share: a gang gains nothing there, since all its GPUs get what those on its
    /// poorest node can have. Where nodes are alike, a gang is not stopped for what its neighbours happen to leave over.
    fn gang_to_shift(&self, node: NodeId, gpus: u32, host: &Host, wish: &Wish<'_>) -> Option<u32> {
        if !self.is_richer(node) {
            return None;
        }
        let can_shift = |index: &u32| {
            let slices = &self.fill.granted[*index as usize].slices;
            let Some(slice) = slices.iter().find(|s| s.node == node && slices.len() > 1) else {
                return false;
            };
            let n = slice.gpus.len();
            let (held, brought) = (slice.host.per(n), self.brings(*index, slice).per(n));
            let suffices =
                |count| held.times(count).fits_in(&wish.left_host) && host.fits_in(&brought.times(count));
            (gpus.max(1)..=n.min(wish.left_gpus)).any(suffices) && self.may_move(*index)
        };
        self.fill.room.occupants[node.index()].iter().copied().find(can_shift)
    }

    /// Whether a node has more for each GPU than the share, which is what the poorest of its type has.
    pub(super) fn is_richer(&self, node: NodeId) -> bool {
        let node = &self.fill.snapshot.cluster.nodes()[node.index()];
        node.n_gpus > 0 && node.share_per_gpu() != self.fill.room.fair_share(node.gpu_type)
    }

    /// Carries an exchange out if the placement strategy finds places for all; else leaves the partners where they are.
    fn trade(&mut self, wish: &Wish<'_>, node: NodeId, whole: &Host, partners: &Partners) -> bool {
        let held: SmallVec<[(u32, Slices); 2]> =
            partners.iter().map(|partner| (*partner, self.take_out(*partner))).collect();
        self.cut_behind(node, whole);
        let mut n_placed = 0;
        if let Some(slices) = self.find(wish.index, wish.before, &wish.per_gpu) {
            let grade = self.fill.granted[wish.index as usize].grade;
            self.put_in(wish.index, slices, Grade::Asked);
            n_placed = held.iter().take_while(|(partner, slices)| self.move_along(*partner, slices)).count();
            if n_placed == held.len() {
                return true;
            }
            self.take_out(wish.index);
            self.fill.granted[wish.index as usize].grade = grade;
        }
        for (partner, _) in &held[..n_placed] {
            self.take_out(*partner);
        }
        for (partner, slices) in held {
            self.put_back(partner, slices);
        }
        false
    }

    /// Places a job again with what it held, a gang of several nodes on no more of them than before.
    fn move_along(&mut self, index: u32, held: &Slices) -> bool {
        let per_gpu = held.first().map_or(Host::NONE, |s| s.host.per(s.gpus.len()));
        let grade = self.fill.granted[index as usize].grade;
        let Some(found) = self.find(index, held, &per_gpu) else { return false };
        if held.len() > 1 && found.len() > held.len() {
            for slice in &found {
                self.fill.room.give_gpus(slice.node, slice.gpus);
            }
            return false;
        }
        self.put_in(index, found, grade);
        true
    }

    /// Frees all that a job holds.
    fn take_out(&mut self, index: u32) -> Slices {
        if self.is_behind(index) {
            self.count_excess(index, false);
        }
        let slices = std::mem::take(&mut self.fill.granted[index as usize].slices);
        for slice in &slices {
            self.fill.room.give_gpus(slice.node, slice.gpus);
            self.fill.room.give_host(slice.node, &slice.host);
            self.fill.room.occupants[slice.node.index()].retain(|other| *other != index);
        }
        slices
    }

    /// Where the placement strategy has a place with so much for each GPU; the GPUs are taken, the rest is not.
    fn find(&mut self, index: u32, before: &Slices, per_gpu: &Host) -> Option<Slices> {
        let row = self.fill.granted[index as usize].row as usize;
        let gpu_type = self.type_of(before);
        let job = Candidate { row, gpus: n_gpus(before), is_kept: false, gpu_type };
        self.fill.find(job, per_gpu)
    }

    /// Gives a job a place whose GPUs are taken already.
    fn put_in(&mut self, index: u32, slices: Slices, grade: Grade) {
        for slice in &slices {
            self.fill.room.take_host(slice.node, &slice.host);
            self.fill.room.occupants[slice.node.index()].push(index);
        }
        let granted = &mut self.fill.granted[index as usize];
        granted.slices = slices;
        granted.grade = grade;
        self.fill.settle(index);
        if self.is_behind(index) {
            self.count_excess(index, true);
        }
    }

    fn put_back(&mut self, index: u32, slices: Slices) {
        for slice in &slices {
            self.fill.room.take_gpus(slice.node, slice.gpus);
        }
        let grade = self.fill.granted[index as usize].grade;
        self.put_in(index, slices, grade);
    }
}

fn n_gpus(slices: &Slices) -> u32 {
    slices.iter().map(|s| s.gpus.len()).sum()
}
