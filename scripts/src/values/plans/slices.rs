//! Time slicing: where there are too few GPUs, gangs take turns on them.
//!
//! Time is cut into frames of equal length that repeat for ever; in each frame a GPU belongs to one gang
//! (Ousterhout's matrix). A gang's share of its GPUs is the part of the frames it runs in. How long a frame is does
//! not matter here: the engine counts shares.

use std::sync::Arc;

use rhai::Dynamic;
use rota_core::allocation::{Allocation, GpuSet, Slice, WHOLE_GPU};
use rota_core::buddy::Buddy;
use rota_core::place::{Ask, Place, Spots};
use rota_core::plan::{Hold, Run};
use rota_core::resources::Host;
use rota_core::room::Room;
use rota_core::snapshot::Snapshot;

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::{PlanValue, Queue, View};

/// Where a gang runs: the GPUs that are its own in one frame.
#[derive(Clone, Debug)]
struct FrameSlot {
    row: u32,
    frame: usize,
    spots: Spots,
}

/// The frames, and the slot of every gang that found one.
struct Matrix<'a> {
    snapshot: &'a Snapshot,
    frames: Vec<Room>,
    slots: Vec<FrameSlot>,
    most_frames: usize,
}

impl<'a> Matrix<'a> {
    /// Gives gangs a slot in order, in the first frame that has room; with `keeps_places`, gangs that run come first and
    /// stay on their GPUs.
    fn fill(snapshot: &'a Snapshot, rows: &[u32], most_frames: usize, keeps_places: bool) -> Self {
        let mut matrix = Matrix { snapshot, frames: Vec::new(), slots: Vec::new(), most_frames };
        let runs = |row: &&u32| keeps_places && !snapshot.jobs.allocation(**row as usize).is_empty();
        for &row in rows.iter().filter(runs) {
            let held = &snapshot.jobs.allocation(row as usize).slices;
            let spots: Spots = held.iter().map(|slice| (slice.node, slice.gpus)).collect();
            matrix.assign(row, |room| is_free(room, &spots).then(|| spots.clone()));
        }
        let mut strategy = Buddy::default();
        for &row in rows.iter().filter(|row| !runs(row)) {
            let gpus = snapshot.jobs.gpus()[row as usize];
            let gpu_type = snapshot.jobs.spec(row as usize).gpu_type;
            let ask =
                Ask { snapshot, row: row as usize, gpus, per_gpu: Host::NONE, gpu_type, first_nodes: None };
            matrix
                .assign(row, |room| if room.free_gpus() < gpus { None } else { strategy.place(room, &ask) });
        }
        matrix
    }

    fn assign(&mut self, row: u32, mut find: impl FnMut(&Room) -> Option<Spots>) {
        let mut found = self.frames.iter().enumerate().find_map(|(frame, room)| Some((frame, find(room)?)));
        if found.is_none() && self.frames.len() < self.most_frames {
            let room = Room::new(self.snapshot);
            found = find(&room).map(|spots| (self.frames.len(), spots));
            if found.is_some() {
                self.frames.push(room);
            }
        }
        let Some((frame, spots)) = found else { return };
        take(&mut self.frames[frame], &spots);
        self.slots.push(FrameSlot { row, frame, spots });
    }

    /// Lets gangs also run in frames in which their GPUs are free; returns in how many frames each runs.
    fn spread(&mut self) -> Vec<usize> {
        let mut counts = vec![1; self.slots.len()];
        for (slot, count) in self.slots.iter().zip(&mut counts) {
            for (frame, room) in self.frames.iter_mut().enumerate() {
                if frame != slot.frame && is_free(room, &slot.spots) {
                    take(room, &slot.spots);
                    *count += 1;
                }
            }
        }
        counts
    }
}

fn is_free(room: &Room, spots: &Spots) -> bool {
    spots.iter().all(|(node, gpus)| !gpus.is_empty() && gpus.is_within(room.free_on(*node).0))
}

fn take(room: &mut Room, spots: &Spots) {
    for (node, gpus) in spots {
        room.take_gpus(*node, *gpus);
    }
}

/// The jobs that run, with their GPUs and shares. Running jobs keep their GPUs unless that takes more frames than
/// placing all jobs anew.
fn sliced(snapshot: &Snapshot, rows: &[u32], most_frames: usize) -> Vec<(u32, Allocation)> {
    let mut matrix = Matrix::fill(snapshot, rows, most_frames, true);
    let afresh = Matrix::fill(snapshot, rows, most_frames, false);
    if (afresh.slots.len(), matrix.frames.len()) > (matrix.slots.len(), afresh.frames.len()) {
        matrix = afresh;
    }
    let n_frames = matrix.frames.len().max(1);
    let counts = matrix.spread();
    let slots = matrix.slots.iter().zip(counts);
    slots.map(|(slot, count)| (slot.row, allocation(snapshot, slot, count, n_frames))).collect()
}

fn allocation(snapshot: &Snapshot, slot: &FrameSlot, n_turns: usize, n_frames: usize) -> Allocation {
    let share = (usize::from(WHOLE_GPU) * n_turns / n_frames) as u16;
    let slice = |(node, gpus): &(_, GpuSet)| {
        let per_gpu = snapshot.cluster.node(*node).map_or(Host::NONE, |node| node.share_per_gpu());
        let host = per_gpu.per(n_frames as u32).times(gpus.len());
        Slice { node: *node, gpus: *gpus, share, host }
    };
    let mut slices: smallvec::SmallVec<[Slice; 1]> = slot.spots.iter().map(slice).collect();
    slices.sort_by_key(|slice| slice.node);
    Allocation { slices }
}

impl View {
    fn time_slice(&self, queue: &Queue, most_frames: i64) -> Outcome<PlanValue> {
        if !Arc::ptr_eq(&queue.session, &self.0) {
            return fail("this queue belongs to another round");
        }
        let Some(most_frames) = usize::try_from(most_frames).ok().filter(|n| (1..=1000).contains(n)) else {
            return fail(format!("time_slice: {most_frames} frames: there are 1 to 1000"));
        };
        let n_nodes = self.0.snapshot.cluster.nodes().len();
        self.0.meter().charge(queue.rows.len() * most_frames.min(16) + n_nodes)?;
        let mut value = PlanValue::new(&self.0);
        for (row, allocation) in sliced(&self.0.snapshot, &queue.rows, most_frames) {
            let job = self.0.snapshot.jobs.id(row as usize);
            let is_same = *self.0.snapshot.jobs.allocation(row as usize) == allocation;
            let what = if is_same { Hold::Keep } else { Hold::Take(allocation) };
            value.plan.run.push(Run { job, what });
        }
        Ok(value)
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    let engine = registrar.method(
        "View",
        "time_slice(queue: Queue, most: int) -> Plan",
        "All jobs run with the GPUs they ask for; where there are too few, gangs take turns on them, each with its share of \
         the GPU, at most `most` gangs on one GPU. Jobs for which there is no turn left wait.",
    );
    engine.register_fn("time_slice", |view: View, queue: Queue, most: i64| view.time_slice(&queue, most));
    engine.register_fn("time_slice", |view: View, jobs: Dynamic, most: i64| {
        view.time_slice(&Queue::from_value(&view.0, jobs)?, most)
    });
}
