//! Whether a state folder is whole: the database's own check, every line of the journal read, decoded and applied. A damaged one
//! can be continued from its last good line; what comes after it is kept aside.

use std::collections::BTreeSet;
use std::fs::TryLockError;
use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use rota_core::time::Time;
use rota_transport::private;
use rusqlite::{Connection, OpenFlags, params};

use crate::cluster_state::ClusterState;
use crate::record::Record;
use crate::rules::{ProfileText, Rules};
use crate::store::{Store, StoreError};

/// What a state folder looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Lines of the journal that were read.
    pub n_lines: u64,
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
    /// Tables that could not be kept.
    pub lost_tables: Vec<String>,
}

/// Examines a state folder, which a head may be using.
pub fn examine(state: &Path) -> Result<Examined, StoreError> {
    let path = state.join("head.sqlite");
    Ok(look(&open(&path)?).0)
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
    let database = open(&path)?;
    let (before, lines) = look(&database);
    if before.is_usable {
        return Ok(None);
    }
    let new_folder = state.join("repaired");
    let _ = std::fs::remove_dir_all(&new_folder);
    let n_good = lines.partition_point(|line| line.id <= before.last_good);
    let (good, rest) = lines.split_at(n_good);
    let lost_tables = rebuild(&database, &new_folder, before.last_good, good)?;
    let lines = write_lines(state, before.last_good, rest)?;
    drop(database);
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
    if !path.exists() {
        let error = std::io::ErrorKind::NotFound.into();
        return Err(StoreError::File { path: path.to_owned(), error });
    }
    let opened = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
    opened.map_err(|error| StoreError::Database { path: path.to_owned(), error })
}

/// A line as the database has it.
struct Line {
    id: u64,
    time: Time,
    kind: String,
    body: String,
}

/// Examines a database. Also returns its lines, as far as they can be read.
fn look(database: &Connection) -> (Examined, Vec<Line>) {
    let mut found = Examined { faults: integrity(database), is_usable: true, ..Examined::default() };
    let (lines, fault) = read(database);
    found.n_lines = lines.len() as u64;
    let mut records: Vec<(u64, Time, Record)> = Vec::new();
    let mut trouble = None;
    for line in &lines {
        match decode(line, records.last().map(|(id, _, _)| *id)) {
            Ok(record) => records.push((line.id, line.time, record)),
            Err(what) => {
                trouble = Some(Fault { line: Some(line.id), what });
                break;
            }
        }
    }
    let trouble = trouble.or(fault);
    found.is_usable = trouble.is_none();
    found.last_good = records.last().map_or(0, |(id, _, _)| *id);
    apply_all(&records, &mut found);
    found.faults.extend(trouble);
    (found, lines)
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

/// Lines in their order, up to the first that cannot be read.
fn read(database: &Connection) -> (Vec<Line>, Option<Fault>) {
    let mut lines: Vec<Line> = Vec::new();
    let mut read = || -> Result<(), rusqlite::Error> {
        let mut query = database.prepare("SELECT id, time_us, kind, body FROM journal ORDER BY id")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let (id, time) = (row.get::<_, i64>(0)? as u64, Time(row.get(1)?));
            lines.push(Line { id, time, kind: row.get(2)?, body: row.get(3)? });
        }
        Ok(())
    };
    match read() {
        Ok(()) => (lines, None),
        Err(error) => {
            let line = lines.last().map_or(1, |line| line.id + 1);
            (lines, Some(Fault { line: Some(line), what: format!("it cannot be read: {error}") }))
        }
    }
}

/// The record of a line, if the line follows the one before and is what it says.
fn decode(line: &Line, before: Option<u64>) -> Result<Record, String> {
    if let Some(before) = before.filter(|before| before + 1 != line.id) {
        return Err(format!("the lines between {before} and this one are missing"));
    }
    let record: Record = serde_json::from_str(&line.body).map_err(|error| error.to_string())?;
    match record.kind() == line.kind {
        true => Ok(record),
        false => Err(format!("its kind is `{}`, and its text is a {}", line.kind, record.kind())),
    }
}

/// Applies every record. A plan that does not fit is a fault that a head lives with; a record that breaks the state is not.
fn apply_all(records: &[(u64, Time, Record)], found: &mut Examined) {
    let plain = || ProfileText::load("synergy").map(Rules::plain);
    let last = records.iter().rev().find_map(|(_, _, record)| match record {
        Record::HeadStarted { rules, .. } => rules.as_deref().cloned(),
        _ => None,
    });
    let state = last.map_or_else(plain, Ok).and_then(|rules| ClusterState::new(&rules));
    let Ok(mut cluster) = state else {
        found.faults.push(Fault { line: None, what: "the profiles in its rules cannot be read".into() });
        return;
    };
    for (line, time, record) in records {
        let applied = std::panic::catch_unwind(AssertUnwindSafe(|| cluster.apply(*time, record).refused));
        match applied {
            Ok(None) => {}
            Ok(Some(violation)) => {
                let what = format!("its plan does not fit and is left out: {violation}");
                found.faults.push(Fault { line: Some(*line), what });
            }
            Err(_) => {
                let what = "it contradicts the lines before it".into();
                found.faults.push(Fault { line: Some(*line), what });
                (found.is_usable, found.last_good) = (false, line - 1);
                return;
            }
        }
    }
}

/// Makes a new database of what is good. Returns the tables that could not be kept.
fn rebuild(
    database: &Connection,
    folder: &Path,
    last_good: u64,
    good: &[Line],
) -> Result<Vec<String>, StoreError> {
    // Opening makes the tables of this version.
    drop(Store::open(folder)?);
    let path = folder.join("head.sqlite");
    let wrong = |error| StoreError::Database { path: path.clone(), error };
    let old = database.path().unwrap_or_default().to_owned();
    let new = open(&path)?;
    new.pragma_update(None, "synchronous", "OFF").map_err(wrong)?;
    new.execute("ATTACH DATABASE ?1 AS old", [old]).map_err(wrong)?;
    // Not copied by the database: it would stumble over the damage that reading stopped at.
    for line in good {
        let values = params![line.id as i64, line.time.0, line.kind, line.body];
        new.prepare_cached("INSERT INTO journal (id, time_us, kind, body) VALUES (?1, ?2, ?3, ?4)")
            .and_then(|mut insert| insert.execute(values))
            .map_err(wrong)?;
    }
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
        let copy = format!("INSERT OR REPLACE INTO main.{quoted} SELECT * FROM old.{quoted}");
        if make.and_then(|()| new.execute(&copy, [])).is_err() {
            lost.push(name);
        }
    }
    // Images of the state and lines of the history that come after the last good line.
    for (table, column) in [("images", "line"), ("events", "line")] {
        let _ =
            new.execute(&format!("DELETE FROM main.{table} WHERE {column} > ?1"), params![last_good as i64]);
    }
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
    new.execute("INSERT OR IGNORE INTO meta VALUES ('epoch', ?1)", [epoch.to_string()]).map(drop)
}

/// Writes down what is left out.
fn write_lines(state: &Path, last_good: u64, lines: &[Line]) -> Result<Option<PathBuf>, StoreError> {
    if lines.is_empty() {
        return Ok(None);
    }
    let path = state.join(format!("lines-after-{last_good}.jsonl"));
    let wrong = |error| StoreError::File { path: path.clone(), error };
    let mut file = private::file(&path).map_err(wrong)?;
    file.set_len(0).map_err(wrong)?;
    for line in lines {
        let text = serde_json::json!({ "line": line.id, "time_us": line.time.0, "kind": line.kind, "body": line.body });
        writeln!(file, "{text}").map_err(wrong)?;
    }
    Ok(Some(path))
}

#[cfg(test)]
mod tests {
    use rota_core::ids::JobId;
    use rota_core::plan::Plan;

    use super::*;
    use crate::record::PlanRecord;
    use crate::store::Write;

    /// A state of so many lines, each with enough text that the journal has many pages.
    fn state(n_lines: u64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path()).expect("opened");
        store.next_epoch().expect("an epoch");
        let noted = |n: u64| {
            Write::Record(Time(n as i64), Record::Noted { text: format!("{n} {}", "x".repeat(500)) })
        };
        store.commit(&(1..=n_lines).map(noted).collect::<Vec<_>>()).expect("written");
        folder
    }

    fn change(folder: &Path, statement: &str) {
        open(&folder.join("head.sqlite")).expect("opened").execute_batch(statement).expect("changed");
    }

    #[test]
    fn a_good_state_has_no_faults_and_is_not_repaired() {
        let folder = state(20);
        let found = examine(folder.path()).expect("examined");
        assert_eq!(found, Examined { n_lines: 20, last_good: 20, faults: vec![], is_usable: true });
        assert_eq!(repair(folder.path()).expect("nothing to do"), None);
    }

    #[test]
    fn a_damaged_line_is_named_and_the_state_goes_on_from_the_line_before_it() {
        for (statement, word) in [
            ("UPDATE journal SET body = '{\"kind\":' WHERE id = 13", "EOF"),
            ("UPDATE journal SET kind = 'planned' WHERE id = 13", "its kind is `planned`"),
            ("DELETE FROM journal WHERE id = 12; UPDATE journal SET id = 12 WHERE id = 1000", "are missing"),
        ] {
            let folder = state(20);
            change(folder.path(), statement);
            let found = examine(folder.path()).expect("examined");
            let [fault] = &found.faults[..] else { panic!("{:?}", found.faults) };
            assert!(fault.line == Some(13) && fault.what.contains(word), "{fault}");
            let good = found.last_good;
            let repaired = repair(folder.path()).expect("repaired").expect("something to do");
            assert!(repaired.aside.exists() && repaired.lost_tables.is_empty(), "{repaired:?}");
            let kept = std::fs::read_to_string(repaired.lines.expect("lines after it")).expect("read");
            assert_eq!(kept.lines().count(), 8, "lines 13 to 20");
            assert!(examine(folder.path()).expect("examined").is_usable);
            let store = Store::open(folder.path()).expect("a head can use it");
            assert_eq!((store.journal(0, 99).expect("read").len() as u64, good), (good, good));
            assert!(store.next_epoch().expect("an epoch").0 > 1, "epochs go on");
        }
    }

    #[test]
    fn a_page_of_zeros_in_the_middle_is_found_and_survived() {
        let folder = state(200);
        let path = folder.path().join("head.sqlite");
        let mut bytes = std::fs::read(&path).expect("read");
        let page = 4096;
        let middle = bytes.len() / page / 2 * page;
        bytes[middle..middle + page].fill(0);
        std::fs::write(&path, bytes).expect("written");
        let found = examine(folder.path()).expect("examined");
        assert!(!found.faults.is_empty() && found.last_good < 200, "{found:?}");
        let repaired = repair(folder.path()).expect("repaired");
        assert_eq!(repaired.is_some(), !found.is_usable);
        let again = examine(folder.path()).expect("examined");
        assert_eq!((again.faults, again.last_good), (vec![], found.last_good));
    }

    #[test]
    fn a_plan_that_does_not_fit_is_named_and_a_head_lives_with_it() {
        let folder = state(0);
        let plan = PlanRecord { run: vec![(JobId(7), None)], ..PlanRecord::from(&Plan::default()) };
        let records = [
            Record::RoundBegan { round: 1, protects: None },
            Record::Planned { round: 1, plan, memory: String::new() },
        ];
        let writes: Vec<_> = records.into_iter().map(|record| Write::Record(Time(5), record)).collect();
        Store::open(folder.path()).expect("opened").commit(&writes).expect("written");
        let found = examine(folder.path()).expect("examined");
        assert!(
            found.is_usable && found.faults[0].to_string().starts_with("journal line 2: its plan"),
            "{found:?}"
        );
    }

    #[test]
    fn a_state_in_use_is_examined_but_not_repaired() {
        let folder = state(3);
        let _head = Store::open(folder.path()).expect("opened");
        assert!(examine(folder.path()).expect("examined").is_usable);
        assert!(matches!(repair(folder.path()), Err(StoreError::Locked { .. })));
    }
}
