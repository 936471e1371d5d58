//! How much, in order: the walk over jobs that gives each its GPUs and host resources, with native answers to
//! "does not fit". Synergy's greedy, proportional and tune allocations are this walk with different options.
//!
//! Jobs that run and are chosen again keep their GPUs (unless told otherwise): their GPUs are set aside before
//! any job is placed, and only their host shares are assigned again. Where to place is decided by the strategy (`place`).
//! A job whose tenant has its quota is passed over (`quotas`): it takes no GPU from those behind it.

mod granted;
mod quotas;
mod rearrange;
mod select;
mod serve;
mod top_up;
mod words;

use std::borrow::Cow;

pub use self::granted::{Grade, Granted, plan_of};
pub use self::quotas::Quotas;
use self::rearrange::Rearrange;
pub use self::words::{Answer, Counts, Demand, Givers, Misfit, Sequence, Walk};
use crate::place::Place;
use crate::room::Room;
use crate::snapshot::Snapshot;

/// A walk in progress.
pub struct Fill<'a> {
    snapshot: &'a Snapshot,
    room: &'a mut Room,
    placement: &'a mut dyn Place,
    granted: Vec<Granted>,
    /// Whether jobs may reclaim, so that the jobs on each node must be tracked.
    tracks_occupants: bool,
    first_nodes: Option<u32>,
    /// By row: which job gives back first, `u32::MAX` for those that do not; empty when the richest do.
    giver_place: Vec<u32>,
}

impl<'a> Fill<'a> {
    /// A walk that takes from `room`.
    pub fn new(snapshot: &'a Snapshot, room: &'a mut Room, placement: &'a mut dyn Place) -> Self {
        Fill {
            snapshot,
            room,
            placement,
            granted: Vec::new(),
            tracks_occupants: false,
            first_nodes: None,
            giver_place: Vec::new(),
        }
    }

    /// Walks `order` (rows, most important first) and returns what each job got.
    pub fn run(mut self, order: &[u32], walk: &Walk, answers: &mut [Answer<'_>]) -> Vec<Granted> {
        self.first_nodes = walk.first_nodes;
        let needs_selection = walk.only_selected || walk.keep_places;
        let selected = if needs_selection { self.select(order, &walk.counts) } else { Vec::new() };
        let kept = if walk.keep_places { self.set_aside(&selected, &walk.counts) } else { Vec::new() };
        let chosen: &[u32] = if walk.only_selected { &selected } else { order };
        let mut walked = self.in_sequence(&walk.packs, order, chosen);
        if walk.stayers_first && !kept.is_empty() {
            let (mut first, then): (Vec<u32>, Vec<u32>) = walked.iter().partition(|row| kept[**row as usize]);
            first.extend(then);
            walked = Cow::Owned(first);
        }
        let reclaims = answers.iter().any(|answer| matches!(answer, Answer::Reclaim(_)));
        if let (true, Givers::Rows(rows)) = (reclaims, &walk.givers) {
            self.giver_place = self.places(rows);
        }
        self.tracks_occupants = walk.rearranges.is_some() || reclaims;
        // Jobs that stay were chosen within their quotas; the others have what is left of them.
        let mut quotas = Quotas::new(self.snapshot);
        if !quotas.is_empty() {
            for row in (0..kept.len()).filter(|row| kept[*row]) {
                quotas.take(row, self.gpus_of(row, &walk.counts));
            }
        }
        let mut n_kept_left = kept.iter().filter(|k| **k).count();
        self.granted
            .reserve(walked.len().min(self.snapshot.jobs.n_running() + self.room.free_gpus() as usize));
        for &row in walked.iter() {
            let is_kept = kept.get(row as usize).copied().unwrap_or(false);
            if is_kept {
                n_kept_left -= 1;
            } else if self.room.free_gpus() == 0 {
                if n_kept_left == 0 {
                    break;
                }
                continue;
            }
            let gpus = self.gpus_of(row as usize, &walk.counts);
            // Nothing that is free helps a job whose tenant has its quota, so those behind need not wait for it.
            if !is_kept && !quotas.take(row as usize, gpus) {
                continue;
            }
            if self.serve(row as usize, is_kept, walk, answers) {
                continue;
            }
            quotas.give(row as usize, gpus);
            if walk.misfit == Misfit::Stop && gpus > 0 {
                break;
            }
        }
        self.look_back(order, chosen, walk);
        self.granted
    }

    /// Mends what one pass left, as far as the walk says.
    fn look_back(&mut self, order: &[u32], chosen: &[u32], walk: &Walk) {
        let is_asked = walk.rearranges.is_some() || walk.tops_up.is_some();
        if !is_asked || !self.granted.iter().any(|granted| self.is_short(granted)) {
            return;
        }
        let mut in_order = Vec::new();
        if let Some(sequence) = &walk.rearranges {
            in_order = self.numbers(self.rows_to_raise(sequence, order, chosen).as_ref());
            let mut rearrange = Rearrange::new(self, in_order);
            rearrange.raise_all();
            in_order = rearrange.into_order();
        }
        if let Some(sequence) = &walk.tops_up {
            if walk.rearranges.as_ref() != Some(sequence) {
                in_order = self.numbers(self.rows_to_raise(sequence, order, chosen).as_ref());
            }
            self.top_up(&in_order);
        }
    }

    /// The chosen jobs in a sequence; those that it does not name come last.
    fn in_sequence<'r>(&self, sequence: &Sequence, order: &[u32], chosen: &'r [u32]) -> Cow<'r, [u32]> {
        match sequence {
            Sequence::Queue => Cow::Borrowed(chosen),
            Sequence::LargestFirst => Cow::Owned(self.largest_first(chosen)),
            Sequence::Rows(rows) if std::ptr::eq(rows.as_slice(), order) => Cow::Borrowed(chosen),
            Sequence::Rows(rows) => {
                let place = self.places(rows);
                let mut sorted = chosen.to_vec();
                sorted.sort_by_key(|row| place[*row as usize]);
                Cow::Owned(sorted)
            }
        }
    }

    /// The rows of a sequence by which jobs are raised, with others that were not served.
    fn rows_to_raise<'r>(&self, sequence: &'r Sequence, order: &[u32], chosen: &'r [u32]) -> Cow<'r, [u32]> {
        match sequence {
            Sequence::Rows(rows) if !std::ptr::eq(rows.as_slice(), order) => Cow::Borrowed(rows),
            other => self.in_sequence(other, order, chosen),
        }
    }

    /// By row: its place in a list of rows; `u32::MAX` for rows that are not in it.
    fn places(&self, rows: &[u32]) -> Vec<u32> {
        let mut places = vec![u32::MAX; self.snapshot.jobs.len()];
        for (place, row) in rows.iter().enumerate() {
            places[*row as usize] = place as u32;
        }
        places
    }

    /// The numbers in `granted` of the jobs of these rows that were served.
    fn numbers(&self, rows: &[u32]) -> Vec<u32> {
        let mut number_of = vec![u32::MAX; self.snapshot.jobs.len()];
        for (number, granted) in self.granted.iter().enumerate() {
            number_of[granted.row as usize] = number as u32;
        }
        rows.iter().map(|row| number_of[*row as usize]).filter(|number| *number != u32::MAX).collect()
    }

    fn largest_first(&self, rows: &[u32]) -> Vec<u32> {
        let jobs = &self.snapshot.jobs;
        let mut keyed: Vec<_> =
            rows.iter().map(|row| (std::cmp::Reverse(jobs.size(*row as usize)), *row)).collect();
        keyed.sort_by_key(|(size, _)| *size);
        keyed.into_iter().map(|(_, row)| row).collect()
    }
}
