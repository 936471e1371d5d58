//! A database whose schema, the table of its tables, is damaged: SQLite then refuses to read any of them. What each table is
//! called and made of is known, so a copy gets a schema as this version writes it.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::open;
use crate::store::{self, StoreError};

/// What is wrong with the schema; none if it can be read.
pub(super) fn fault(database: &Connection) -> Option<String> {
    let count = database.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0));
    count.err().map(|error| format!("what its tables are cannot be read, --repair puts that right: {error}"))
}

/// A copy of a database, for as long as it is needed.
pub(super) struct MendedCopy(PathBuf);

impl MendedCopy {
    /// Copies a database with its log, and puts the schema of the copy right.
    pub(super) fn make(path: &Path, to: PathBuf) -> Result<Self, StoreError> {
        let copy = MendedCopy(to);
        for suffix in ["", "-wal"] {
            let (from, to) = (with(path, suffix), with(&copy.0, suffix));
            match std::fs::copy(&from, to) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::File { path: from, error });
                }
                _ => {}
            }
        }
        mend(&copy.0).map_err(|error| StoreError::Database { path: path.to_owned(), error })?;
        Ok(copy)
    }

    /// Opens it.
    pub(super) fn open(&self) -> Result<Connection, StoreError> {
        open(&self.0)
    }
}

impl Drop for MendedCopy {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(with(&self.0, suffix));
        }
    }
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

fn mend(path: &Path) -> Result<(), rusqlite::Error> {
    let fresh = Connection::open_in_memory()?;
    store::make_tables(&fresh)?;
    let known: Vec<(String, String, String, String)> = fresh
        .prepare("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<Result<_, _>>()?;
    let database = Connection::open(path)?;
    // Lets the table be read and written though it is damaged: the first statement still fails.
    database.pragma_update(None, "writable_schema", "ON")?;
    let _ = fault(&database);
    let mut set = database.prepare(
        "UPDATE sqlite_master SET type = ?1, tbl_name = ?3, sql = ?4 WHERE name = ?2 AND sql IS NOT ?4",
    )?;
    for (kind, name, table, sql) in known {
        set.execute([kind, name, table, sql])?;
    }
    drop(set);
    database.execute_batch("PRAGMA writable_schema = RESET")
}
