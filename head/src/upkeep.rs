//! Upkeep of the journal: images of the state are made, and lines that are not needed any more leave, while the head runs.
//!
//! The work is done in a thread of its own, on a copy of the state that shares everything with the original, and on a
//! connection that only reads. What comes out of it is written by the engine with its batches, a little at a time.

use std::collections::BTreeSet;
use std::sync::mpsc;

use rota_core::time::{Span, Time};

use crate::cluster_state::{ClusterState, Image, ImageError};
use crate::store::history::Reader;
use crate::store::images::{self, ImageAt, KeepJournal, NewImage, Prune};
use crate::store::{Store, StoreError, UnreadableImage, Write};

/// Of a large record, so many bytes count as a line.
const BYTES_PER_LINE: u64 = 1_000;
/// How long upkeep rests after the disk refused something of it, or no image could be made.
const REST: Span = Span::from_secs(60);

/// A piece of work.
#[derive(Debug)]
pub(crate) enum Chore {
    /// Make an image of this state, which is that after a line.
    Image { cluster: Box<ClusterState>, at: ImageAt },
    /// Look for lines up to this one that can leave the journal; what stays of them names nodes by these names.
    Prune { up_to: u64, nodes: Vec<String> },
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum ChoreDone {
    /// An image, or why there is none.
    Image(Result<Box<NewImage>, UselessImage>),
    /// Lines to remove; none when all up to the line asked for are gone.
    Prune { up_to: u64, result: Result<Option<Box<Prune>>, StoreError> },
}

/// Why an image is not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UselessImage {
    /// The state cannot be written as one.
    #[error("{0}")]
    Written(#[from] std::io::Error),
    /// It cannot be read again.
    #[error("{0}")]
    Read(#[from] UnreadableImage),
    /// It is read as another state.
    #[error("what was written down is read as something else")]
    Changed,
    /// It is read, and is no state that a head can go on from.
    #[error("{0}")]
    Restored(#[from] ImageError),
}

/// Does chores until all their senders are gone.
pub(crate) fn run(chores: &mpsc::Receiver<Chore>, reader: &Reader, done: impl Fn(ChoreDone)) {
    while let Ok(chore) = chores.recv() {
        done(chore.carry_out(reader));
    }
}

impl Chore {
    /// Does it, in whatever thread.
    pub(crate) fn carry_out(self, reader: &Reader) -> ChoreDone {
        match self {
            Chore::Image { cluster, at } => {
                let ImageAt { line, time, bytes } = at;
                let body = checked(cluster.image());
                ChoreDone::Image(body.map(|body| Box::new(NewImage { line, time, bytes, body })))
            }
            Chore::Prune { up_to, nodes } => {
                let result = Prune::read(reader, up_to, &nodes).map(|found| found.map(Box::new));
                ChoreDone::Prune { up_to, result }
            }
        }
    }
}

/// An image as bytes, if they can be read again to the same state: lines leave the journal on the strength of it.
fn checked(image: Image) -> Result<Vec<u8>, UselessImage> {
    let body = images::pack(&image)?;
    if images::unpack(&body)? != image {
        return Err(UselessImage::Changed);
    }
    ClusterState::restore(image)?;
    Ok(body)
}

/// The engine's side: what is due, and what is under way.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    chores: Option<mpsc::Sender<Chore>>,
    keep: KeepJournal,
    images: Vec<ImageAt>,
    is_busy: bool,
    /// All lines up to here are gone.
    pruned_to: u64,
    /// Nothing is due before: the disk refused, or no image could be made.
    rests_until: Option<Time>,
}

impl Upkeep {
    /// The upkeep of a store; without anybody who does the chores, nothing is ever due.
    pub(crate) fn new(
        chores: mpsc::Sender<Chore>,
        keep: KeepJournal,
        store: &Store,
    ) -> Result<Self, StoreError> {
        let images = store.images()?;
        let chores = Some(chores);
        Ok(Upkeep { chores, keep, images, is_busy: false, pruned_to: 0, rests_until: None })
    }

    /// Whether an image of the present state should be made.
    pub(crate) fn is_image_due(&self, store: &Store, now: Time) -> bool {
        let (line, bytes) = self.images.last().map_or((0, 0), |at| (at.line, at.bytes));
        let since = store.position().saturating_sub(line);
        let cost = since + store.bytes().saturating_sub(bytes) / BYTES_PER_LINE;
        self.is_free(now) && cost >= self.keep.image_every
    }

    fn is_free(&self, now: Time) -> bool {
        self.chores.is_some() && !self.is_busy && self.rests_until.is_none_or(|until| now >= until)
    }

    /// Asks for an image of the state after the last line of the store.
    pub(crate) fn ask_for_image(&mut self, cluster: &ClusterState, store: &Store, now: Time) {
        let at = ImageAt { line: store.position(), time: now, bytes: store.bytes() };
        self.send(Chore::Image { cluster: Box::new(cluster.clone()), at });
    }

    /// Asks for lines that can leave the journal, if there may be some.
    pub(crate) fn prune_if_due(&mut self, cluster: &ClusterState, store: &Store, now: Time) {
        let up_to = self.keep.prune_to(&self.images, now, store.bytes());
        if let Some(up_to) = up_to.filter(|line| self.is_free(now) && *line > self.pruned_to) {
            self.send(Chore::Prune { up_to, nodes: cluster.nodes().to_vec() });
        }
    }

    /// Takes what came of a chore, and returns what is to be written.
    pub(crate) fn take(&mut self, done: ChoreDone, now: Time) -> Vec<Write> {
        self.is_busy = false;
        match done {
            ChoreDone::Image(Ok(image)) => {
                let NewImage { line, time, bytes, .. } = *image;
                self.images.push(ImageAt { line, time, bytes });
                let mut writes = vec![Write::Image(image)];
                let mut dropped = BTreeSet::new();
                while let Some(line) = self.keep.thin_out(&self.images) {
                    self.images.retain(|at| at.line != line);
                    dropped.insert(line);
                }
                writes.extend(dropped.into_iter().map(Write::DropImage));
                writes
            }
            ChoreDone::Image(Err(error)) => {
                tracing::error!("no image of the state was made: {error}");
                self.rests_until = Some(now + REST);
                Vec::new()
            }
            ChoreDone::Prune { result: Ok(Some(prune)), .. } => vec![Write::Prune(prune)],
            ChoreDone::Prune { up_to, result: Ok(None) } => {
                self.pruned_to = up_to;
                self.images.retain(|at| at.line >= up_to);
                Vec::new()
            }
            ChoreDone::Prune { up_to, result: Err(error) } => {
                tracing::error!("the journal is not pruned: {error}");
                // Not tried again before there is another image.
                self.pruned_to = up_to;
                Vec::new()
            }
        }
    }

    /// What it wanted written was left out, because the disk refused: images are what the disk has.
    pub(crate) fn start_over(&mut self, store: &Store, now: Time) {
        match store.images() {
            Ok(images) => self.images = images,
            Err(error) => {
                tracing::error!("the journal is not kept short any more: {error}");
                self.chores = None;
            }
        }
        self.rests_until = Some(now + REST);
    }

    fn send(&mut self, chore: Chore) {
        self.is_busy = self.chores.as_ref().is_some_and(|chores| chores.send(chore).is_ok());
    }
}

#[cfg(test)]
mod tests {
    use rota_core::ids::{Incarnation, JobId};
    use rota_transport::message::JobRequest;

    use super::*;
    use crate::record::Record;
    use crate::rules::{ProfileText, Rules};

    #[test]
    fn an_image_that_cannot_be_read_again_is_not_written_and_not_tried_again_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path()).expect("opened");
        let mut cluster =
            ClusterState::new(&Rules::plain(ProfileText::load("synergy").expect("built in"))).expect("good");
        let request = Box::new(JobRequest::emulated(1));
        let received = Record::JobReceived { job: JobId(0), user: "ada".into(), key: 1, request };
        cluster.apply(Time(1), &received);
        store.commit(&[Write::Record(Time(1), received)]).expect("written");
        let keep = KeepJournal { image_every: 1, ..KeepJournal::default() };
        let (sender, chores) = mpsc::channel();
        let mut upkeep = Upkeep::new(sender, keep, &store).expect("made");
        let mut image = |cluster: &ClusterState, now: Time| {
            assert!(upkeep.is_image_due(&store, now));
            upkeep.ask_for_image(cluster, &store, now);
            let done = chores.try_recv().expect("a chore").carry_out(&store.reader().expect("opened"));
            let writes = upkeep.take(done, now);
            (writes.len(), upkeep.is_image_due(&store, now))
        };
        let mut broken = cluster.clone();
        let (job, incarnation) = (JobId(0), Incarnation(1));
        broken.apply(Time(2), &Record::JobFinished { job, incarnation, done: f64::NAN });
        assert_eq!(image(&broken, Time(3)), (0, false), "JSON has no such number");
        assert_eq!(image(&cluster, Time(3) + REST), (1, false));
    }
}
