//! Images of the state in the store, and the pruning that they allow: lines before an image are not needed to go on from it.
//!
//! A restart reads the newest image and folds the lines after it. The oldest image is where a replay begins. Both an
//! image and each step of pruning are one transaction, so a head that is killed at any point leaves a store that is read
//! to the same state.

use std::io::{Read as _, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rota_core::ids::JobId;
use rota_core::time::{Span, Time};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use super::history::Reader;
use super::{StoreError, read_lines, sums};
use crate::cluster_state::Image;
use crate::record::Record;

/// The table of images: `bytes` is how much had been written to the journal in all.
pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS images (
        line INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, bytes INTEGER NOT NULL, body BLOB NOT NULL, sum INTEGER
    ) STRICT;
";

/// The most lines that leave the journal in one transaction.
pub(crate) const MOST_PRUNED: usize = 1_000;

/// An image that is to be written.
#[derive(Clone, PartialEq)]
pub(crate) struct NewImage {
    /// The last line that is folded into it.
    pub(crate) line: u64,
    pub(crate) time: Time,
    /// Bytes of the journal up to there, over all time.
    pub(crate) bytes: u64,
    /// Deflated JSON.
    pub(crate) body: Vec<u8>,
}

impl std::fmt::Debug for NewImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewImage {{ line: {}, {} bytes }}", self.line, self.body.len())
    }
}

/// Where an image is in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageAt {
    pub(crate) line: u64,
    pub(crate) time: Time,
    pub(crate) bytes: u64,
}

/// How much of the journal is kept; the history is kept whatever this says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepJournal {
    /// At least this span of the head's time, ...
    pub span: Span,
    /// ... but at most about so many bytes.
    pub bytes: u64,
    /// An image of the state is made after so many lines; a thousand bytes count as a line more. A restart folds at most about
    /// this much.
    pub image_every: u64,
}

impl Default for KeepJournal {
    fn default() -> Self {
        KeepJournal { span: Span::from_secs(30 * 86_400), bytes: 2_000_000_000, image_every: 20_000 }
    }
}

/// Of a span or an amount that is kept, images are this part apart; lines leave between two of them.
const PARTS: i64 = 30;

impl KeepJournal {
    /// The line up to which lines may go: that of the last image that is older than what is kept. It is never the newest: if that
    /// one cannot be read, the one before it and the lines after that stand for it.
    pub(crate) fn prune_to(&self, images: &[ImageAt], now: Time, bytes: u64) -> Option<u64> {
        let is_old = |at: &&ImageAt| now - at.time > self.span || bytes.saturating_sub(at.bytes) > self.bytes;
        let (_newest, older) = images.split_last()?;
        older.iter().filter(is_old).map(|at| at.line).max()
    }

    /// An image that can go, because it lies close to the one before. The newest two stay in any case.
    pub(crate) fn thin_out(&self, images: &[ImageAt]) -> Option<u64> {
        let is_close = |pair: &&[ImageAt]| match pair {
            [one, two, _, ..] => {
                (two.time - one.time).0 < self.span.0 / PARTS
                    && two.bytes.saturating_sub(one.bytes) < self.bytes / PARTS as u64
            }
            _ => false,
        };
        let mut windows = (0..images.len()).filter_map(|from| images.get(from..));
        let found = windows.find(|rest| rest.len() > 3 && is_close(rest));
        found.and_then(|rest| rest.get(1)).map(|at| at.line)
    }
}

/// An event that leaves the journal and stays in the history.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EventRow {
    pub(crate) line: u64,
    pub(crate) time: Time,
    pub(crate) kind: &'static str,
    pub(crate) job: Option<JobId>,
    pub(crate) user: String,
    pub(crate) text: String,
}

/// Lines that are to leave the journal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prune {
    /// Lines up to this one, ...
    pub(crate) to: u64,
    /// ... of which these stay in the history.
    pub(crate) events: Vec<EventRow>,
}

impl Prune {
    /// The next lines that may go, at most [`MOST_PRUNED`], up to a line; none if there are none.
    pub(crate) fn read(reader: &Reader, up_to: u64, nodes: &[String]) -> Result<Option<Self>, StoreError> {
        let lines = read_lines(&reader.path, &reader.database, 0, MOST_PRUNED)?;
        let going: Vec<_> = lines.into_iter().filter(|(line, _, _)| *line <= up_to).collect();
        let Some((to, _, _)) = going.last() else { return Ok(None) };
        let to = *to;
        let row = |(line, time, record): (u64, Time, Record)| EventRow {
            line,
            time,
            kind: record.kind(),
            job: record.job(),
            user: record.user().to_owned(),
            text: record.to_text_with(nodes),
        };
        let events = going.into_iter().filter(|(_, _, record)| record.is_event()).map(row).collect();
        Ok(Some(Prune { to, events }))
    }

    pub(super) fn execute(&self, transaction: &Transaction<'_>) -> Result<(), rusqlite::Error> {
        let mut insert = transaction.prepare_cached(
            "INSERT OR REPLACE INTO events (line, time_us, kind, job, user, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        for row in &self.events {
            let job = row.job.map(|job| job.0);
            insert.execute(params![row.line as i64, row.time.0, row.kind, job, row.user, row.text])?;
        }
        transaction.execute("DELETE FROM journal WHERE id <= ?1", [self.to as i64])?;
        // Images that lie before what is left lead nowhere.
        transaction.execute("DELETE FROM images WHERE line < ?1", [self.to as i64]).map(drop)
    }
}

impl NewImage {
    pub(super) fn insert(&self, transaction: &Transaction<'_>) -> Result<(), rusqlite::Error> {
        let sum = sums::of_image(self.line, self.time, self.bytes, &self.body);
        let values = params![self.line as i64, self.time.0, self.bytes as i64, self.body, sum];
        let query =
            "INSERT OR REPLACE INTO images (line, time_us, bytes, body, sum) VALUES (?1, ?2, ?3, ?4, ?5)";
        transaction.execute(query, values).map(drop)
    }
}

/// An image as bytes.
pub(crate) fn pack(image: &Image) -> std::io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    let mut buffered = std::io::BufWriter::with_capacity(1 << 16, &mut encoder);
    serde_json::to_writer(&mut buffered, image)?;
    buffered.flush()?;
    drop(buffered);
    encoder.finish()
}

/// What is wrong with an image that was written down.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableImage {
    /// The database has something else in its row.
    #[error("{0}")]
    Row(#[from] rusqlite::Error),
    /// It is not what a head wrote.
    #[error("{}", sums::WRONG)]
    Checksum,
    /// It cannot be decompressed.
    #[error("{0}")]
    Bytes(#[from] std::io::Error),
    /// Its text is no state.
    #[error("{0}")]
    Text(#[from] serde_json::Error),
}

/// An image from bytes.
pub(crate) fn unpack(body: &[u8]) -> Result<Image, UnreadableImage> {
    let mut text = Vec::new();
    DeflateDecoder::new(body).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// All images, by line.
pub(super) fn images(path: &Path, database: &Connection) -> Result<Vec<ImageAt>, StoreError> {
    let wrong = |error| StoreError::Database { path: path.to_owned(), error };
    let mut query =
        database.prepare("SELECT line, time_us, bytes FROM images ORDER BY line").map_err(wrong)?;
    let rows = query.query_map([], |row| {
        let (line, bytes) = (row.get::<_, i64>(0)? as u64, row.get::<_, i64>(2)? as u64);
        Ok(ImageAt { line, time: Time(row.get(1)?), bytes })
    });
    rows.map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)
}

/// The image after a line.
pub(super) fn image(path: &Path, database: &Connection, line: u64) -> Result<Image, StoreError> {
    let wrong = |error| StoreError::Database { path: path.to_owned(), error };
    let query = "SELECT line, time_us, bytes, body, sum FROM images WHERE line = ?1";
    let found = database.query_row(query, [line as i64], |row| Ok(read(row)));
    found.map_err(wrong)?.map_err(|why| StoreError::Image { path: path.to_owned(), line, why })
}

/// The image in a row of its line, time, bytes, body and checksum.
pub(crate) fn read(row: &Row<'_>) -> Result<Image, UnreadableImage> {
    let (line, bytes) = (row.get::<_, i64>(0)? as u64, row.get::<_, i64>(2)? as u64);
    let (time, body) = (Time(row.get(1)?), row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?);
    if !sums::fits(row.get(4)?, sums::of_image(line, time, bytes, body)) {
        return Err(UnreadableImage::Checksum);
    }
    unpack(body)
}

/// The first line that is still in the journal.
pub(super) fn first_line(path: &Path, database: &Connection) -> Result<Option<u64>, StoreError> {
    let wrong = |error| StoreError::Database { path: path.to_owned(), error };
    let first = database.query_row("SELECT min(id) FROM journal", [], |row| row.get::<_, Option<i64>>(0));
    Ok(first.optional().map_err(wrong)?.flatten().map(|line| line as u64))
}

/// Images with which the lines that are left make a whole journal.
pub(super) fn usable(path: &Path, database: &Connection) -> Result<Vec<ImageAt>, StoreError> {
    let first = first_line(path, database)?;
    let mut images = images(path, database)?;
    images.retain(|at| first.is_none_or(|first| at.line + 1 >= first));
    Ok(images)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u64, day: i64) -> ImageAt {
        ImageAt { line, time: Time::ZERO + Span::from_secs(day * 86_400), bytes: line * 1000 }
    }

    #[test]
    fn lines_go_when_a_later_image_is_older_than_what_is_kept() {
        let keep = KeepJournal { span: Span::from_secs(10 * 86_400), bytes: 1_000_000, image_every: 1 };
        let images = [at(10, 1), at(20, 5), at(30, 9), at(40, 12)];
        let day = |day: i64| Time::ZERO + Span::from_secs(day * 86_400);
        assert_eq!(keep.prune_to(&images, day(11), 40_000), None, "nothing is older than ten days");
        assert_eq!(keep.prune_to(&images, day(16), 40_000), Some(20));
        assert_eq!(
            keep.prune_to(&images, day(99), 40_000),
            Some(30),
            "the newest has an older one behind it"
        );
        assert_eq!(
            keep.prune_to(&images, day(11), 1_025_000),
            Some(20),
            "more than a million bytes came after it"
        );
    }

    #[test]
    fn images_that_lie_close_together_are_thinned_out_but_not_the_newest_ones() {
        let keep = KeepJournal { span: Span::from_secs(300 * 86_400), bytes: 1_000_000_000, image_every: 1 };
        let mut images: Vec<_> = (0..40).map(|day| at(day as u64 * 10, day)).collect();
        while let Some(line) = keep.thin_out(&images) {
            images.retain(|at| at.line != line);
        }
        let lines: Vec<_> = images.iter().map(|at| at.line).collect();
        assert_eq!(lines, [0, 100, 200, 300, 380, 390]);
    }
}
