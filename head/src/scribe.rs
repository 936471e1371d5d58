//! A journal written without a head: for tests and benchmarks that need a state folder of any age. Records take the way
//! that the head's take: they are applied, written in batches, and the journal is kept short by the same upkeep.

use std::path::Path;
use std::sync::mpsc;

use rota_core::time::Time;

use crate::cluster_state::ClusterState;
use crate::error::HeadError;
use crate::record::Record;
use crate::rules::Rules;
use crate::store::history::{EndedJob, Reader};
use crate::store::images::KeepJournal;
use crate::store::{Store, StoreError, Write};
use crate::upkeep::{Chore, Upkeep};

/// Writes records to a state folder.
#[derive(Debug)]
pub struct Scribe {
    cluster: ClusterState,
    store: Store,
    reader: Reader,
    upkeep: Upkeep,
    chores: mpsc::Receiver<Chore>,
    batch: Vec<Write>,
    last: Time,
}

impl Scribe {
    /// Goes on with the journal of a state folder, or begins one.
    pub fn open(folder: &Path, rules: &Rules, keep: KeepJournal) -> Result<Self, HeadError> {
        let store = Store::open(folder)?;
        let cluster = fold(&store, rules)?;
        let (sender, chores) = mpsc::channel();
        let upkeep = Upkeep::new(sender, keep, &store)?;
        let (reader, last) = (store.reader()?, store.last_time()?);
        Ok(Scribe { cluster, store, reader, upkeep, chores, batch: Vec::new(), last })
    }

    /// What the records so far add up to.
    pub fn cluster(&self) -> &ClusterState {
        &self.cluster
    }

    /// The last line that is on the disk.
    pub fn last_line(&self) -> u64 {
        self.store.position()
    }

    /// Applies a record and puts it into the batch.
    pub fn record(&mut self, now: Time, record: Record) {
        let applied = self.cluster.apply(now, &record);
        self.batch.push(Write::Record(now, record));
        self.last = self.last.max(now);
        for id in applied.ended {
            let row = self.cluster.job(id).and_then(|job| EndedJob::of(id, job, &self.cluster));
            self.batch.extend(row.map(|row| Write::Ended(Box::new(row))));
        }
    }

    /// Writes the batch, and does the upkeep that is due.
    pub fn write(&mut self) -> Result<(), StoreError> {
        self.store.commit(&std::mem::take(&mut self.batch))?;
        loop {
            if self.upkeep.is_image_due(&self.store, self.last) {
                self.cluster.retire(|_| false);
                self.upkeep.ask_for_image(&self.cluster, &self.store, self.last);
            } else {
                self.upkeep.prune_if_due(&self.cluster, &self.store, self.last);
            }
            let Ok(chore) = self.chores.try_recv() else { return Ok(()) };
            let writes = self.upkeep.take(chore.carry_out(&self.reader), self.last);
            self.store.commit(&writes)?;
        }
    }
}

/// The state of a store, as a head that starts with it finds it.
fn fold(store: &Store, rules: &Rules) -> Result<ClusterState, HeadError> {
    Ok(crate::run::fold(store, rules)?.cluster)
}

/// The state of a state folder that no head uses, as a head that starts with it would find it.
pub fn state_of(folder: &Path, rules: &Rules) -> Result<(u64, ClusterState), HeadError> {
    let store = Store::open(folder)?;
    Ok((store.position(), fold(&store, rules)?))
}
