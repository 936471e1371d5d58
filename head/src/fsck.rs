//! Whether a state folder is whole: the database's own check, every line of the journal read, decoded and applied, every image of
//! the state compared with what the lines add up to. A damaged one can be continued from its last good line; what comes after
//! it is kept aside.

mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::TryLockError;
use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use rota_core::time::Time;
use rota_transport::private;
use rusqlite::{Connection, OpenFlags, Row, Statement, params};

use crate::cluster_state::{ClusterState, Image};
use crate::record::Record;
use crate::rules::{ProfileText, Rules};
use crate::store::rows::{self, Table};
use crate::store::{INSERT_LINE, Store, StoreError, images, must_exist, sums};

/// What a state folder looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Lines of the journal that were read.
    pub n_lines: u64,
    /// The line whose image of the state is where the journal can be used from; 0 if it is whole.
    pub begins_after: u64,
    /// The last line up to which the journal can be used.
    pub last_good: u64,
    /// What is wrong, in the order in which it was found.
    pub faults: Vec<Fault>,
    /// Whether a head can start with it as it is.
    pub is_usable: bool,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line of the journal that it is about; none if it is about the file.
    pub line: Option<u64>,
    /// A sentence.
    pub what: String,
}

impl Fault {
    fn at(line: u64, what: impl Into<String>) -> Self {
        Fault { line: Some(line), what: what.into() }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "journal line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// What a repair did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The state before it.
    pub before: Examined,
    /// The damaged database.
    pub aside: PathBuf,
    /// Lines after the last good one that could be read, as JSON; none if there were none.
    pub lines: Option<PathBuf>,
    /// Tables, and rows of small ones, that could not be kept.
    pub lost_tables: Vec<String>,
}

/// Examines a state folder, which a head may be using.
pub fn examine(state: &Path) -> Result<Examined, StoreError> {
    let path = state.join("head.sqlite");
    let database = open(&path)?;
    match schema::fault(&database) {
        None => Ok(look(&database)),
        Some(what) => Ok(Examined { faults: vec![Fault { line: None, what }], ..Examined::default() }),
    }
}

/// Continues a damaged state from its last good line, if it cannot be used as it is. No head may use it.
pub fn repair(state: &Path) -> Result<Option<Repaired>, StoreError> {
    let file_error = |path: &Path, error| StoreError::File { path: path.to_owned(), error };
    let lock_path = state.join("lock");
    let lock = private::file(&lock_path).map_err(|error| file_error(&lock_path, error))?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => StoreError::Locked { path: state.to_owned() },
        TryLockError::Error(error) => file_error(&lock_path, error),
    })?;
    let path = state.join("head.sqlite");
    let mut database = open(&path)?;
    let fault = schema::fault(&database);
    // Held until all is read from it.
    let mut mended = None;
    if fault.is_some() {
        let copy = mended.insert(schema::MendedCopy::make(&path, state.join("head.sqlite.mended"))?);
        database = copy.open()?;
    }
    let mut before = look(&database);
    if let Some(what) = fault {
        before.faults.insert(0, Fault { line: None, what });
        before.is_usable = false;
    }
    if before.is_usable {
        return Ok(None);
    }
    let new_folder = state.join("repaired");
    let _ = std::fs::remove_dir_all(&new_folder);
    let lost_tables = rebuild(&database, &new_folder, &before)?;
    let lines = write_lines(&database, state, before.last_good)?;
    drop((database, mended));
    let rebuilt = new_folder.join("head.sqlite");
    let synced = std::fs::File::open(&rebuilt).and_then(|file| file.sync_all());
    synced.map_err(|error| file_error(&rebuilt, error))?;
    let aside = (1..).map(|n| state.join(format!("head.sqlite.damaged-{n}"))).find(|path| !path.exists());
    let aside = aside.unwrap_or_else(|| state.join("head.sqlite.damaged"));
    let rename = |from: PathBuf, to: PathBuf| match std::fs::rename(&from, &to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(file_error(&from, error)),
        _ => Ok(()),
    };
    for suffix in ["-wal", "-shm", ""] {
        let with = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        rename(with(&path), with(&aside))?;
    }
    rename(rebuilt, path)?;
    let _ = std::fs::remove_dir_all(&new_folder);
    Ok(Some(Repaired { before, aside, lines, lost_tables }))
}

fn open(path: &Path) -> Result<Connection, StoreError> {
    must_exist(path)?;
    let opened = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
    opened.map_err(|error| StoreError::Database { path: path.to_owned(), error })
}

/// A line as the database has it.
struct Line {
    id: u64,
    time: Time,
    kind: String,
    body: String,
    /// The checksum that was written with it; none for one of an earlier version.
    sum: Option<i64>,
}

/// What reads lines after one, up to another.
fn select_lines(database: &Connection) -> Result<Statement<'_>, rusqlite::Error> {
    let sum = sums::column(database, "journal")?;
    database.prepare(&format!(
        "SELECT id, time_us, kind, body, {sum} FROM journal WHERE id > ?1 AND id <= ?2 ORDER BY id"
    ))
}

/// Examines a database, in stretches: each begins with an image of the state, or with line 1, and ends where the journal does or
/// where something cannot be used. What lies before the newest image that can be read is not needed by a head; only replays
/// miss it.
fn look(database: &Connection) -> Examined {
    let mut found = look_at_lines(database);
    let rows = rows::faults(database);
    found.is_usable &= rows.is_empty();
    found.faults.extend(rows.into_iter().map(|what| Fault { line: None, what }));
    found
}

fn look_at_lines(database: &Connection) -> Examined {
    let mut found = Examined { faults: integrity(database), is_usable: true, ..Examined::default() };
    let images = read_images(database, &mut found);
    let first = first_line(database);
    found.begins_after = match first {
        Some(1) => 0,
        None if images.is_empty() => 0,
        // Lines that left the journal are in the oldest image whose next line is there.
        first => match images.keys().find(|line| first.is_none_or(|first| **line + 1 >= first)) {
            Some(line) => *line,
            None => {
                let line = first.map(|first| first.saturating_sub(1));
                let what = "it is missing, and no image of the state stands for it".into();
                found.faults.push(Fault { line, what });
                found.is_usable = false;
                return found;
            }
        },
    };
    loop {
        let Err(fault) = look_from(database, &images, &mut found) else { return found };
        let line = fault.line;
        found.faults.push(fault);
        let next = images.keys().find(|image| line.is_some_and(|line| **image >= line));
        let Some(next) = next else {
            found.is_usable = false;
            return found;
        };
        (found.begins_after, found.last_good) = (*next, *next);
    }
}

/// Images of the state that can be read, by their lines.
fn read_images(database: &Connection, found: &mut Examined) -> BTreeMap<u64, Image> {
    let mut images = BTreeMap::new();
    let mut read = || -> Result<(), rusqlite::Error> {
        // States of earlier versions have none.
        let has = "SELECT count(*) FROM sqlite_master WHERE name = 'images'";
        if database.query_row(has, [], |row| row.get::<_, i64>(0))? == 0 {
            return Ok(());
        }
        let sum = sums::column(database, "images")?;
        let query = format!("SELECT line, time_us, bytes, body, {sum} FROM images ORDER BY line");
        let mut query = database.prepare(&query)?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let line = row.get::<_, i64>(0)? as u64;
            match images::read(row) {
                Ok(image) => drop(images.insert(line, image)),
                Err(why) => {
                    let what = format!("the image of the state after it cannot be read: {why}");
                    found.faults.push(Fault::at(line, what));
                }
            }
        }
        Ok(())
    };
    if let Err(error) = read() {
        found.faults.push(Fault { line: None, what: format!("images of the state cannot be read: {error}") });
    }
    images
}

fn first_line(database: &Connection) -> Option<u64> {
    let first = database.query_row("SELECT min(id) FROM journal", [], |row| row.get::<_, Option<i64>>(0));
    first.ok().flatten().map(|line| line as u64)
}

/// Reads, decodes and applies the lines after the one that `found` begins after. An error is what ends the stretch.
fn look_from(
    database: &Connection,
    images: &BTreeMap<u64, Image>,
    found: &mut Examined,
) -> Result<(), Fault> {
    let mut cluster = match images.get(&found.begins_after) {
        Some(image) => restored(image, found.begins_after)?,
        None => empty()?,
    };
    let mut before = found.begins_after;
    found.last_good = before;
    let read = |error: rusqlite::Error, line| Fault::at(line, format!("it cannot be read: {error}"));
    let mut query = select_lines(database).map_err(|error| read(error, before + 1))?;
    let mut rows = query.query([before as i64, i64::MAX]).map_err(|error| read(error, before + 1))?;
    loop {
        let line = match rows.next().and_then(|row| row.map(Line::read).transpose()) {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(()),
            Err(error) => return Err(read(error, before + 1)),
        };
        found.n_lines += 1;
        let at = |what: String| Fault::at(line.id, what);
        let record = decode(&line, before)?;
        let applied =
            std::panic::catch_unwind(AssertUnwindSafe(|| cluster.apply(line.time, &record).refused));
        let refused = applied.map_err(|_| at("it contradicts the lines before it".into()))?;
        if let Some(violation) = refused {
            // A head lives with it.
            found.faults.push(at(format!("its plan does not fit and is left out: {violation}")));
        }
        (before, found.last_good) = (line.id, line.id);
        if let Some(image) = images.get(&line.id)
            && !is_image_of(image, &mut cluster, line.time)
        {
            let what = "the image of the state after it is not what the lines up to it add up to".into();
            found.faults.push(at(what));
        }
    }
}

/// The state of the image after a line.
fn restored(image: &Image, line: u64) -> Result<ClusterState, Fault> {
    let useless = |error| format!("the image of the state before it cannot be used: {error}");
    ClusterState::restore(image.clone()).map_err(|error| Fault::at(line + 1, useless(error)))
}

/// A state before the first line. The first start of a head in the journal names its rules.
fn empty() -> Result<ClusterState, Fault> {
    let state = ProfileText::load("synergy").map(Rules::plain).and_then(|rules| ClusterState::new(&rules));
    state.map_err(|error| Fault { line: None, what: error.to_string() })
}

/// Whether a state would be written down like this. Estimates go on with time, so both are looked at at one moment.
fn is_image_of(image: &Image, cluster: &mut ClusterState, now: Time) -> bool {
    let Ok(mut other) = ClusterState::restore(image.clone()) else { return false };
    drop((other.snapshot(now), cluster.snapshot(now)));
    other.image().without_ended() == cluster.image().without_ended()
}

impl Line {
    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        let (id, time) = (row.get::<_, i64>(0)? as u64, Time(row.get(1)?));
        Ok(Line { id, time, kind: row.get(2)?, body: row.get(3)?, sum: row.get(4)? })
    }

    fn is_as_written(&self) -> bool {
        sums::fits(self.sum, sums::of_line(self.id, self.time, &self.kind, &self.body))
    }
}

/// What the database's own check says.
fn integrity(database: &Connection) -> Vec<Fault> {
    let check = || -> Result<Vec<String>, rusqlite::Error> {
        database.prepare("PRAGMA integrity_check(100)")?.query_map([], |row| row.get(0))?.collect()
    };
    let lines = check().unwrap_or_else(|error| vec![format!("its pages cannot be checked: {error}")]);
    let bad = lines.into_iter().filter(|line| line != "ok");
    bad.map(|what| Fault { line: None, what: format!("database: {}", what.replace('\n', "; ")) }).collect()
}

/// The record of a line, if the line follows the one before and is what it says.
fn decode(line: &Line, before: u64) -> Result<Record, Fault> {
    let fault = |what: String| Fault::at(line.id, what);
    if before + 1 != line.id {
        return Err(fault(format!("the lines between {before} and this one are missing")));
    }
    let record: Record = serde_json::from_str(&line.body).map_err(|error| fault(error.to_string()))?;
    match record.kind() == line.kind {
        true if line.is_as_written() => Ok(record),
        true => Err(fault("its checksum is wrong, so it is not what a head wrote".into())),
        false => Err(fault(format!("its kind is `{}`, and its text is a {}", line.kind, record.kind()))),
    }
}

/// Makes a new database of what is good. Returns the tables that could not be kept.
fn rebuild(database: &Connection, folder: &Path, before: &Examined) -> Result<Vec<String>, StoreError> {
    let (begins_after, last_good) = (before.begins_after, before.last_good);
    // Opening makes the tables of this version.
    drop(Store::open(folder)?);
    let path = folder.join("head.sqlite");
    let wrong = |error| StoreError::Database { path: path.clone(), error };
    let old = database.path().unwrap_or_default().to_owned();
    let new = open(&path)?;
    new.pragma_update(None, "synchronous", "OFF").map_err(wrong)?;
    new.execute("ATTACH DATABASE ?1 AS old", [old]).map_err(wrong)?;
    // Not copied by the database: it would stumble over the damage that reading stopped at.
    each_line(database, begins_after, last_good, |line| {
        let values = params![line.id as i64, line.time.0, line.kind, line.body, line.sum];
        new.prepare_cached(INSERT_LINE).and_then(|mut insert| insert.execute(values)).map(drop).map_err(wrong)
    })?;
    let tables = |schema: &str| -> Result<Vec<(String, String)>, rusqlite::Error> {
        let query =
            format!("SELECT name, sql FROM {schema}.sqlite_master WHERE type = 'table' AND sql IS NOT NULL");
        new.prepare(&query)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    let known: BTreeSet<String> = tables("main").map_err(wrong)?.into_iter().map(|(name, _)| name).collect();
    let mut lost = Vec::new();
    for (name, sql) in tables("old").unwrap_or_default() {
        if name == "journal" || name.starts_with("sqlite_") {
            continue;
        }
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        let make = if known.contains(&name) { Ok(()) } else { new.execute_batch(&sql) };
        // A table of an earlier version may have fewer columns.
        let columns = "SELECT group_concat(name) FROM pragma_table_info(?1, 'old')";
        let copied = make.and_then(|()| {
            let columns: String = new.query_row(columns, [&name], |row| row.get(0))?;
            let copy = format!(
                "INSERT OR REPLACE INTO main.{quoted} ({columns}) SELECT {columns} FROM old.{quoted}"
            );
            new.execute(&copy, [])
        });
        if copied.is_err() {
            lost.push(name);
        }
    }
    // Images of the state that lead nowhere, and what comes after the last good line.
    let _ = new.execute("DELETE FROM main.images WHERE line < ?1", params![begins_after as i64]);
    for (table, column) in [("images", "line"), ("events", "line")] {
        let _ =
            new.execute(&format!("DELETE FROM main.{table} WHERE {column} > ?1"), params![last_good as i64]);
    }
    lost.extend(rows::remove_bad(&new).map_err(wrong)?);
    keep_epoch(&new, last_good).map_err(wrong)?;
    Ok(lost)
}

/// An epoch is not used twice, even if the table that counts them is lost.
fn keep_epoch(new: &Connection, last_good: u64) -> Result<(), rusqlite::Error> {
    let query = "SELECT body FROM journal WHERE kind = 'head-started' AND id <= ?1 ORDER BY id DESC LIMIT 1";
    let last: Result<String, _> = new.query_row(query, params![last_good as i64], |row| row.get(0));
    let epoch = match last.ok().and_then(|body| serde_json::from_str(&body).ok()) {
        Some(Record::HeadStarted { epoch, .. }) => epoch.0,
        _ => 0,
    };
    let has: i64 = new.query_row("SELECT count(*) FROM meta WHERE key = 'epoch'", [], |row| row.get(0))?;
    if has > 0 {
        return Ok(());
    }
    Table::Meta.put(new, vec!["epoch".to_owned().into(), epoch.to_string().into()])
}

/// Hands out the lines after one, up to another, as far as they can be read.
fn each_line(
    database: &Connection,
    after: u64,
    up_to: u64,
    mut take: impl FnMut(Line) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let Ok(mut query) = select_lines(database) else { return Ok(()) };
    let up_to = i64::try_from(up_to).unwrap_or(i64::MAX);
    let Ok(mut rows) = query.query([after as i64, up_to]) else { return Ok(()) };
    while let Ok(Some(line)) = rows.next().and_then(|row| row.map(Line::read).transpose()) {
        take(line)?;
    }
    Ok(())
}

/// Writes down what is left out.
fn write_lines(database: &Connection, state: &Path, last_good: u64) -> Result<Option<PathBuf>, StoreError> {
    let path = state.join(format!("lines-after-{last_good}.jsonl"));
    let wrong = |error| StoreError::File { path: path.clone(), error };
    let mut file = None;
    each_line(database, last_good, u64::MAX, |line| {
        if file.is_none() {
            let made = private::file(&path).map_err(wrong)?;
            made.set_len(0).map_err(wrong)?;
            file = Some(std::io::BufWriter::new(made));
        }
        let text = serde_json::json!({ "line": line.id, "time_us": line.time.0, "kind": line.kind, "body": line.body });
        file.as_mut().map_or(Ok(()), |file| writeln!(file, "{text}")).map_err(wrong)
    })?;
    file.as_mut().map_or(Ok(()), |file| file.flush()).map_err(wrong)?;
    Ok(file.map(|_| path))
}

#[cfg(test)]
mod flips;

#[cfg(test)]
mod tests;
