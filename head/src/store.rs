//! The head's disk: one SQLite file with the journal and what belongs to it. What was committed survives anything
//! short of a lost disk (write-ahead log, full sync); a batch of records is one transaction. `history` is what stays of
//! jobs that have ended, `images` how the journal is kept short, `rows` are the small tables, `sums` is how a changed byte is found.

pub(crate) mod history;
pub(crate) mod images;
pub(crate) mod rows;
pub(crate) mod sums;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use rota_core::ids::JobId;
use rota_core::time::Time;
use rota_transport::message::{BootId, Epoch, InstanceId, Lineage, Sequence};
use rota_transport::private;
use rota_transport::session::SeenReports;
use rota_transport::value::Name;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::cluster_state::Image;
use crate::record::Record;
use history::{EndedJob, HistoryFilter, Reader};
pub use images::UnreadableImage;
use images::{ImageAt, NewImage, Prune};
use rows::Table;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS journal (
        id INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, sum INTEGER
    ) STRICT;
";
const FORMAT: &str = "1";
/// Writes a line with its checksum.
pub(crate) const INSERT_LINE: &str =
    "INSERT INTO journal (id, time_us, kind, body, sum) VALUES (?1, ?2, ?3, ?4, ?5)";

/// A state directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another head runs with it.
    #[error("{}: another head uses this state directory", path.display())]
    Locked {
        /// The state directory.
        path: PathBuf,
    },
    /// A file cannot be used.
    #[error("{}: {error}", path.display())]
    File {
        /// The directory, or the lock file in it.
        path: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// SQLite reports an error.
    #[error("{}: {error}", path.display())]
    Database {
        /// The database file.
        path: PathBuf,
        /// SQLite's error.
        error: rusqlite::Error,
    },
    /// Another version wrote it.
    #[error("{}: written in format {found}, this program reads format {FORMAT}", path.display())]
    Format {
        /// The database file.
        path: PathBuf,
        /// The format's name in the file.
        found: String,
    },
    /// An image of the state that cannot be decoded, and without which the journal is not whole.
    #[error("{}: the image of the state after line {line}: {why}", path.display())]
    Image {
        /// The database of the journal.
        path: PathBuf,
        /// The last line that is folded into it.
        line: u64,
        /// What is wrong with it.
        why: UnreadableImage,
    },
    /// Lines at the beginning of the journal are missing, and there is no image that stands for them.
    #[error("{}: the journal begins with line {line}, and no image stands for the lines before", path.display())]
    NoImage {
        /// The database of the journal.
        path: PathBuf,
        /// Its first line.
        line: u64,
    },
    /// Lines of the journal are missing.
    #[error("{}: the journal ends at line {before} and goes on with line {line} (`rota head fsck` says what can be used)", path.display())]
    Gap {
        /// The database.
        path: PathBuf,
        /// The last line before the gap.
        before: u64,
        /// The first line after it.
        line: u64,
    },
    /// Something else that a head rests on is not what was written.
    #[error("{}: {what} (`rota head fsck` says what can be used)", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A journal row that cannot be decoded.
    #[error("{}: journal line {line}: {why}", path.display())]
    Line {
        /// The database of the journal.
        path: PathBuf,
        /// The row's id; 0 for one that was being written.
        line: i64,
        /// What the decoder found wrong.
        why: String,
    },
}

/// One thing to write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Write {
    /// A line of the journal.
    Record(Time, Record),
    /// Reports of an agent are in the journal up to this one.
    Seen(Name, SeenReports),
    /// An agent is served from this run directory.
    Instance(Name, InstanceId),
    /// This state takes the place of another one.
    Replaced(Lineage),
    /// A job has ended: its row in the history.
    Ended(Box<EndedJob>),
    /// An image of the state.
    Image(Box<NewImage>),
    /// An image is not needed any more.
    DropImage(u64),
    /// Lines leave the journal.
    Prune(Box<Prune>),
}

/// An open state directory.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    database: Connection,
    /// The last line of the journal.
    position: u64,
    /// Bytes written to the journal, over all time, as far as images know.
    bytes: u64,
    /// Held as long as the head lives.
    _lock: File,
}

impl Store {
    /// Opens a state directory, or makes one, and locks it against other heads.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let file_error = |path: &Path, error| StoreError::File { path: path.to_owned(), error };
        let mended = private::folder(folder).map_err(|error| file_error(folder, error))?;
        let lock_path = folder.join("lock");
        let lock = private::file(&lock_path).map_err(|error| file_error(&lock_path, error))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => StoreError::Locked { path: folder.to_owned() },
            TryLockError::Error(error) => file_error(&lock_path, error),
        })?;
        let path = folder.join("head.sqlite");
        // SQLite gives its log and its shared memory the mode of the database.
        private::file(&path).map_err(|error| file_error(&path, error))?;
        for path in mended {
            tracing::warn!("{}: others could read it; now only its owner can", path.display());
        }
        let database =
            open_database(&path).map_err(|error| StoreError::Database { path: path.clone(), error })?;
        let mut store = Store { path, database, position: 0, bytes: 0, _lock: lock };
        let faults = rows::faults(&store.database);
        if !faults.is_empty() {
            return Err(StoreError::Damaged { path: store.path, what: faults.join("; ") });
        }
        let images = store.images()?;
        let last = "SELECT coalesce(max(id), 0) FROM journal";
        let last: i64 = store.database.query_row(last, [], |row| row.get(0)).map_err(|e| store.error(e))?;
        let newest = images.last();
        // Lines are counted on, even if all of them have left the journal.
        store.position = newest.map_or(0, |at| at.line).max(last as u64);
        // Without an image, the size of the file has to do: to look at all lines would take long.
        let since = match newest {
            Some(_) => "SELECT coalesce(sum(length(body)), 0) FROM journal WHERE id > ?1",
            None => "SELECT page_count * page_size * (?1 = 0) FROM pragma_page_count, pragma_page_size",
        };
        let after = newest.map_or(0, |at| at.line as i64);
        let since: i64 =
            store.database.query_row(since, [after], |row| row.get(0)).map_err(|e| store.error(e))?;
        store.bytes = newest.map_or(0, |at| at.bytes) + since as u64;
        match store.meta("format")? {
            Some(found) if found != FORMAT => Err(StoreError::Format { path: store.path, found }),
            Some(_) => Ok(store),
            None => store.set_meta("format", FORMAT).map(|()| store),
        }
    }

    /// A value kept under a key.
    pub fn meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        meta(&self.path, &self.database, key)
    }

    /// Keeps a value under a key.
    pub fn set_meta(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let row = vec![key.to_owned().into(), value.to_owned().into()];
        Table::Meta.put(&self.database, row).map_err(|e| self.error(e))
    }

    /// An epoch higher than any before; it is on the disk before it is used.
    pub fn next_epoch(&self) -> Result<Epoch, StoreError> {
        let last = self.meta("epoch")?.and_then(|text| text.parse().ok()).map_or(Epoch(0), Epoch);
        self.set_meta("epoch", &last.next().to_string())?;
        Ok(last.next())
    }

    /// Writes a batch, all or nothing, and waits until it is on the disk.
    pub(crate) fn commit(&mut self, writes: &[Write]) -> Result<(), StoreError> {
        let path = &self.path;
        let (mut position, mut bytes) = (self.position, self.bytes);
        let wrong = |error| StoreError::Database { path: path.clone(), error };
        let transaction = self.database.transaction().map_err(wrong)?;
        for write in writes {
            match write {
                Write::Record(time, record) => {
                    let body = serde_json::to_string(record).map_err(|error| StoreError::Line {
                        path: path.clone(),
                        line: 0,
                        why: error.to_string(),
                    })?;
                    (position, bytes) = (position + 1, bytes + body.len() as u64);
                    let sum = sums::of_line(position, *time, record.kind(), &body);
                    let values = params![position as i64, time.0, record.kind(), body, sum];
                    transaction
                        .prepare_cached(INSERT_LINE)
                        .and_then(|mut insert| insert.execute(values))
                        .map_err(wrong)?;
                }
                Write::Seen(name, seen) => {
                    // SQLite's integers are signed: the bits are stored, not the number.
                    let (boot, last) = (seen.boot.0 as i64, seen.last.0 as i64);
                    let row = vec![name.to_string().into(), boot.into(), last.into()];
                    Table::Agents.put(&transaction, row).map_err(wrong)?;
                }
                Write::Instance(name, instance) => {
                    let row = vec![name.to_string().into(), (instance.0 as i64).into()];
                    Table::Instances.put(&transaction, row).map_err(wrong)?;
                }
                Write::Replaced(lineage) => {
                    Table::Replaced.put(&transaction, vec![(lineage.0 as i64).into()]).map_err(wrong)?;
                }
                Write::Ended(job) => job.insert(&transaction).map_err(wrong)?,
                Write::Image(image) => image.insert(&transaction).map_err(wrong)?,
                Write::DropImage(line) => transaction
                    .execute("DELETE FROM images WHERE line = ?1", [*line as i64])
                    .map(drop)
                    .map_err(wrong)?,
                Write::Prune(prune) => prune.execute(&transaction).map_err(wrong)?,
            }
        }
        transaction.commit().map_err(wrong)?;
        (self.position, self.bytes) = (position, bytes);
        Ok(())
    }

    /// The last line of the journal that is on the disk, even if it has left it; lines are counted from 1.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The time of the last line, or of the newest image if there is none after it.
    pub(crate) fn last_time(&self) -> Result<Time, StoreError> {
        let query = "SELECT max(coalesce((SELECT max(time_us) FROM images), 0),
                                coalesce((SELECT time_us FROM journal ORDER BY id DESC LIMIT 1), 0))";
        self.database.query_row(query, [], |row| row.get(0)).map(Time).map_err(|e| self.error(e))
    }

    /// Bytes of all lines ever written, as far as is known.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Images of the state, by line.
    pub(crate) fn images(&self) -> Result<Vec<ImageAt>, StoreError> {
        images::images(&self.path, &self.database)
    }

    /// The newest image that can be read and whose following lines are all there, and the last line folded into it; none if
    /// the journal is whole. An image that cannot be read is passed over, if an older one or the whole journal stands for it.
    pub(crate) fn newest_image(&self) -> Result<Option<(u64, Image)>, StoreError> {
        let mut trouble = None;
        for at in images::usable(&self.path, &self.database)?.into_iter().rev() {
            match images::image(&self.path, &self.database, at.line) {
                Ok(image) => return Ok(Some((at.line, image))),
                Err(error) => {
                    tracing::error!("{error}");
                    trouble.get_or_insert(error);
                }
            }
        }
        match (images::first_line(&self.path, &self.database)?, trouble) {
            (Some(1), _) | (None, None) => Ok(None),
            (_, Some(trouble)) => Err(trouble),
            (Some(line), None) => Err(StoreError::NoImage { path: self.path.clone(), line }),
        }
    }

    /// The database, for tables that are kept elsewhere.
    pub(crate) fn database(&self) -> &Connection {
        &self.database
    }

    /// The database's file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reports of agents that are in the journal.
    pub fn seen(&self) -> Result<Vec<(Name, SeenReports)>, StoreError> {
        let wrong = |error| self.error(error);
        let mut query = self.database.prepare("SELECT name, boot, last_report FROM agents").map_err(wrong)?;
        let rows = query
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))
            .map_err(wrong)?;
        let mut found = Vec::new();
        for row in rows {
            let (name, boot, last) = row.map_err(wrong)?;
            let seen = SeenReports { boot: BootId(boot as u64), last: Sequence(last as u64) };
            let name = Name::new(name).map_err(|error| StoreError::Line {
                path: self.path.clone(),
                line: 0,
                why: error.to_string(),
            })?;
            found.push((name, seen));
        }
        Ok(found)
    }

    /// Lines of the journal from one on, with their numbers; at most so many.
    pub fn journal(&self, from: u64, most: usize) -> Result<Vec<(u64, Time, Record)>, StoreError> {
        read_lines(&self.path, &self.database, from, most)
    }

    /// Ended jobs by ascending number; see `history` for how to page through them.
    pub fn history(&self, filter: &HistoryFilter) -> Result<Vec<EndedJob>, StoreError> {
        history::history(&self.path, &self.database, filter)
    }

    /// A job that has ended.
    pub fn ended_job(&self, id: JobId) -> Result<Option<EndedJob>, StoreError> {
        history::ended_job(&self.path, &self.database, id)
    }

    /// A connection for reading in another thread, which does not hold this one up.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(self.path.parent().unwrap_or(Path::new(".")))
    }

    pub(crate) fn error(&self, error: rusqlite::Error) -> StoreError {
        StoreError::Database { path: self.path.clone(), error }
    }
}

fn meta(path: &Path, database: &Connection, key: &str) -> Result<Option<String>, StoreError> {
    let query = "SELECT value FROM meta WHERE key = ?1";
    let found = database.query_row(query, [key], |row| row.get(0)).optional();
    found.map_err(|error| StoreError::Database { path: path.to_owned(), error })
}

/// Whether there is a database at this path, and what keeps this user from knowing.
pub(crate) fn must_exist(path: &Path) -> Result<(), StoreError> {
    std::fs::metadata(path).map(drop).map_err(|error| StoreError::File { path: path.to_owned(), error })
}

/// Reads the journal of a state directory whose head may be running. Of a journal that was pruned, the first record is
/// the image that stands for what is gone.
pub fn read_journal(folder: &Path) -> Result<Vec<(Time, Record)>, StoreError> {
    let mut journal = Vec::new();
    Reader::open(folder)?.read_journal(|_, time, record| {
        journal.push((time, record));
        true
    })?;
    Ok(journal)
}

fn read_lines(
    path: &Path,
    database: &Connection,
    from: u64,
    most: usize,
) -> Result<Vec<(u64, Time, Record)>, StoreError> {
    let wrong = |error| StoreError::Database { path: path.to_owned(), error };
    let query = "SELECT id, time_us, kind, body, sum FROM journal WHERE id >= ?1 ORDER BY id LIMIT ?2";
    let mut query = database.prepare_cached(query).map_err(wrong)?;
    let mut rows = query.query(params![from as i64, most as i64]).map_err(wrong)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(wrong)? {
        found.push(line_of(path, row)?);
    }
    Ok(found)
}

/// A line of the journal, from a row of its number, time, kind, body and checksum.
fn line_of(path: &Path, row: &rusqlite::Row<'_>) -> Result<(u64, Time, Record), StoreError> {
    let wrong = |error| StoreError::Database { path: path.to_owned(), error };
    let (line, time) = (row.get::<_, i64>(0).map_err(wrong)?, Time(row.get(1).map_err(wrong)?));
    let text = |column| row.get_ref(column).and_then(|value| value.as_str().map_err(rusqlite::Error::from));
    let (kind, body) = (text(2).map_err(wrong)?, text(3).map_err(wrong)?);
    let bad = |why: String| StoreError::Line { path: path.to_owned(), line, why };
    let sum = row.get(4).map_err(wrong)?;
    if !sums::fits(sum, sums::of_line(line as u64, time, kind, body)) {
        return Err(bad(sums::WRONG.to_owned()));
    }
    let record = serde_json::from_str(body).map_err(|error| bad(error.to_string()))?;
    Ok((line as u64, time, record))
}

fn open_database(path: &Path) -> Result<Connection, rusqlite::Error> {
    let database = Connection::open(path)?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.busy_timeout(std::time::Duration::from_secs(5))?;
    make_tables(&database)?;
    Ok(database)
}

/// Makes the tables of this version that are not there.
pub(crate) fn make_tables(database: &Connection) -> Result<(), rusqlite::Error> {
    database.execute_batch(SCHEMA)?;
    database.execute_batch(rows::SCHEMA)?;
    history::make_tables(database)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(text: &str) -> Write {
        Write::Record(Time(7), Record::Noted { text: text.into() })
    }

    #[test]
    fn a_second_head_is_refused_until_the_first_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Store::open(folder.path()).expect("opened");
        assert!(matches!(Store::open(folder.path()), Err(StoreError::Locked { .. })));
        drop(first);
        Store::open(folder.path()).expect("opened again");
    }

    #[test]
    fn only_the_owner_can_read_the_state_whatever_its_modes_were_before() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("state");
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let names = ["lock", "head.sqlite", "head.sqlite-wal", "head.sqlite-shm"];
        let mut store = Store::open(&folder).expect("opened");
        store.commit(&[noted("a")]).expect("written");
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(names.map(|name| mode(&folder.join(name))), [0o600; 4]);
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
        };
        names.iter().for_each(|name| set(&folder.join(name), 0o644));
        set(&folder, 0o755);
        // As after a kill: the log is still there, as an earlier version made it.
        std::mem::forget(store);
        let again = home.path().join("again");
        std::fs::create_dir(&again).expect("made");
        for name in names {
            std::fs::copy(folder.join(name), again.join(name)).expect("copied");
        }
        let store = Store::open(&again).expect("opened again");
        assert_eq!(mode(&again), 0o700);
        assert_eq!(names.map(|name| mode(&again.join(name))), [0o600; 4]);
        assert_eq!(store.journal(0, 9).expect("read").len(), 1);
    }

    #[test]
    fn what_was_committed_is_there_after_reopening_and_epochs_rise() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = Name::new("node0").expect("a name");
        let seen = SeenReports { boot: BootId(u64::MAX - 1), last: Sequence(3) };
        let mut store = Store::open(folder.path()).expect("opened");
        assert_eq!(store.next_epoch().expect("an epoch"), Epoch(1));
        store.commit(&[noted("a"), Write::Seen(name.clone(), seen), noted("b")]).expect("written");
        drop(store);
        let store = Store::open(folder.path()).expect("opened");
        assert_eq!(store.next_epoch().expect("an epoch"), Epoch(2));
        let texts: Vec<_> =
            store.journal(1, 100).expect("read").into_iter().map(|(_, _, r)| r.to_text()).collect();
        assert_eq!(texts, ["a", "b"]);
        assert_eq!(store.seen().expect("read"), [(name, seen)]);
        assert_eq!(read_journal(folder.path()).expect("read while open").len(), 2);
    }

    #[test]
    fn a_torn_log_loses_the_tail_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path()).expect("opened");
        for text in ["a", "b", "c"] {
            store.commit(&[noted(text)]).expect("written");
        }
        let (from, to) = (folder.path().join("head.sqlite"), tempfile::tempdir().expect("a folder"));
        let log = std::fs::read(folder.path().join("head.sqlite-wal")).expect("a log");
        for cut in (0..log.len()).step_by(997) {
            std::fs::copy(&from, to.path().join("head.sqlite")).expect("copied");
            std::fs::write(to.path().join("head.sqlite-wal"), &log[..cut]).expect("written");
            let _ = std::fs::remove_file(to.path().join("head.sqlite-shm"));
            let store = Store::open(to.path()).expect("a cut log is opened");
            let texts: Vec<_> =
                store.journal(1, 9).expect("read").into_iter().map(|(_, _, r)| r.to_text()).collect();
            assert!(
                ["a", "b", "c"].starts_with(&texts.iter().map(String::as_str).collect::<Vec<_>>()),
                "{texts:?}"
            );
        }
    }
}
