//! Rooms that a script takes from and gives back to, for plans that it writes job by job: what the walk of `Fill` does
//! natively. A room is a value: a copy of it can be tried and thrown away.

use std::sync::Arc;

use rhai::{Array, Dynamic, Engine, ImmutableString, NativeCallContext};
use rota_core::allocation::{GpuSet, Slice, WHOLE_GPU};
use rota_core::ids::{GpuTypeId, NodeId};
use rota_core::place::Ask;
use rota_core::resources::Host;

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::placement::Failure;
use crate::values::plans::entry;
use crate::values::{JobValue, RoomValue, Strategy, View};

impl RoomValue {
    fn entries(&self, verb: &str, places: Array) -> Outcome<Vec<Slice>> {
        self.session.meter().charge(places.len())?;
        places.into_iter().map(|place| entry::read(verb, &self.session, place)).collect()
    }

    /// What of a place is not free.
    fn lacks(&self, place: &Slice) -> (GpuSet, Host) {
        let (gpus, host) = &self.free[place.node.index()];
        (place.gpus.without(*gpus), place.host.saturating_sub(host))
    }

    fn has(&self, places: Array) -> Outcome<bool> {
        let mut room = self.clone();
        for place in self.entries("has", places)? {
            let (gpus, host) = room.lacks(&place);
            if !gpus.is_empty() || !host.is_none() {
                return Ok(false);
            }
            room.change(&place, true);
        }
        Ok(true)
    }

    fn take(&mut self, places: Array) -> Outcome<()> {
        for place in self.entries("take", places)? {
            let (gpus, host) = self.lacks(&place);
            let node = place.node;
            if let Some(gpu) = gpus.iter().next() {
                return fail(format!("take: GPU {gpu} of node {node} is not free"));
            }
            if !host.is_none() {
                let free = self.free[node.index()].1;
                return fail(format!(
                    "take: {} do not fit on node {node}, which has {free} free",
                    place.host
                ));
            }
            self.change(&place, true);
        }
        Ok(())
    }

    fn give(&mut self, places: Array) -> Outcome<()> {
        for place in self.entries("give", places)? {
            let node = place.node;
            let (gpus, host) = self.free[node.index()];
            if let Some(gpu) = place.gpus.and(gpus).iter().next() {
                return fail(format!("give: GPU {gpu} of node {node} is free already"));
            }
            let all = self.session.snapshot.cluster.nodes()[node.index()].host;
            if !host.checked_add(&place.host).is_some_and(|sum| sum.fits_in(&all)) {
                return fail(format!(
                    "give: node {node} has {all} in all and {host} free: {} were not taken",
                    place.host
                ));
            }
            self.change(&place, false);
        }
        Ok(())
    }

    fn change(&mut self, place: &Slice, takes: bool) {
        let (gpus, host) = &mut Arc::make_mut(&mut self.free)[place.node.index()];
        let before = gpus.len();
        *gpus = if takes { gpus.without(place.gpus) } else { gpus.or(place.gpus) };
        *host = match takes {
            true => host.saturating_sub(&place.host),
            false => host.checked_add(&place.host).unwrap_or(*host),
        };
        self.free_gpus = self.free_gpus + gpus.len() - before;
    }

    /// Where the strategy of the `place` stage has GPUs for a job; nothing is taken.
    fn find(
        &self,
        engine: &Engine,
        job: &JobValue,
        gpus: i64,
        per_gpu: Host,
        gpu_type: &str,
    ) -> Outcome<Dynamic> {
        let session = &self.session;
        let cluster = &session.snapshot.cluster;
        session.meter().charge(cluster.nodes().len() * 2)?;
        let Some(count) = u32::try_from(gpus).ok().filter(|count| *count > 0) else {
            return fail(format!("find: {gpus} GPUs cannot be found"));
        };
        let Some(wanted) = cluster.gpu_types().iter().position(|name| name == gpu_type) else {
            let known = cluster.gpu_types().join(", ");
            return fail(format!("find: there are no GPUs of type \"{gpu_type}\": the cluster has {known}"));
        };
        let failure = Failure::default();
        let placement = session.stage().placement.clone();
        let mut room = session.take_room();
        for (index, (gpus, host)) in self.free.iter().enumerate() {
            let node = NodeId::from(index);
            let (all, all_host) = room.free_on(node);
            room.take_gpus(node, all.without(*gpus));
            room.take_host(node, &all_host.saturating_sub(host));
        }
        let ask = Ask {
            snapshot: &session.snapshot,
            row: job.row(),
            gpus: count,
            per_gpu,
            gpu_type: (cluster.gpu_types().len() > 1).then_some(GpuTypeId::from(wanted)),
            first_nodes: None,
        };
        let spots = Strategy { engine, session, failure: &failure }.build(&placement).place(&room, &ask);
        session.give_room(room);
        if let Some(error) = failure.into_inner() {
            return Err(error);
        }
        let entry = |(node, gpus): &(NodeId, GpuSet)| {
            let host = per_gpu.times(gpus.len());
            entry::written(&Slice { node: *node, gpus: *gpus, share: WHOLE_GPU, host })
        };
        Ok(spots.map_or(Dynamic::UNIT, |spots| Dynamic::from(spots.iter().map(entry).collect::<Array>())))
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Room";
    registrar
        .field(
            "View",
            "empty_room: Room",
            "What would be free if no job ran: plans written by hand take from it.",
        )
        .register_get("empty_room", |view: &mut View| RoomValue::without_jobs(&view.0));
    registrar
        .method(
            OWNER,
            "has(places: Array) -> bool",
            "Whether all of this is free, one entry for each node as in `Plan.run`; an entry with `gpus: []` is about CPUs, \
             memory and storage rate only.",
        )
        .register_fn("has", |room: &mut RoomValue, places: Array| room.has(places));
    registrar
        .method(OWNER, "take(places: Array)", "Takes this from the room; an error where it is not free.")
        .register_fn("take", |room: &mut RoomValue, places: Array| room.take(places));
    registrar
        .method(OWNER, "give(places: Array)", "Gives this back to the room; an error where it was not taken.")
        .register_fn("give", |room: &mut RoomValue, places: Array| room.give(places));
    let engine = registrar.method(
        OWNER,
        "find(job: Job, gpus: int, per_gpu: Share, gpu_type: String) -> Array",
        "Where the strategy of the `place` stage has GPUs of this type for a job, with so much for each of them: entries for \
         `take` and `Plan.run`, or `()` where it has none. Nothing is taken.",
    );
    engine.register_fn(
        "find",
        |ctx: NativeCallContext,
         room: &mut RoomValue,
         job: JobValue,
         gpus: i64,
         per_gpu: Host,
         gpu_type: ImmutableString| room.find(ctx.engine(), &job, gpus, per_gpu, &gpu_type),
    );
    of_jobs(registrar);
}

/// What the walk knows of a job besides its columns.
fn of_jobs(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Job";
    registrar
        .field(
            OWNER,
            "places: Array",
            "What it holds, one entry for each node as in `Plan.run`; empty when it does not run.",
        )
        .register_get("places", |job: &mut JobValue| -> Array {
            let held = job.snapshot().jobs.allocation(job.row());
            held.slices.iter().map(entry::written).collect()
        });
    registrar
        .field(OWNER, "starts: int", "How often it was started.")
        .register_get("starts", |job: &mut JobValue| i64::from(job.snapshot().jobs.incarnation(job.row()).0));
    registrar
        .field(
            OWNER,
            "movable_from: float",
            "From when on it may be moved to a better place while it runs: when no guard protects it and it has run ten times \
             as long as moving costs it, seconds.",
        )
        .register_get("movable_from", |job: &mut JobValue| job.snapshot().movable_from(job.row()).as_secs_f64());
    registrar
        .field(
            OWNER,
            "is_protected: bool",
            "Whether a guard, such as the minimum run time, keeps it from being stopped yet.",
        )
        .register_get("is_protected", |job: &mut JobValue| job.snapshot().is_protected(job.row()));
}
