//! Copies of a state folder, made while its head runs.
//!
//! SQLite writes the copy itself (`VACUUM INTO`), in one read transaction: it is the state at one moment, and the head goes on
//! writing meanwhile. A copy that another program makes of the files is not: the database and its log change independently.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rota_transport::message::{Epoch, Lineage};
use rota_transport::private;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use crate::ancestry::FILE_KEY;
use crate::store::{StoreError, must_exist};

/// How long to wait for a head that writes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A copy that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The folder, which a head can use as its state.
    pub folder: PathBuf,
    /// The last line of the journal in it.
    pub last_line: u64,
    /// The epoch of the last head that wrote to it.
    pub epoch: Epoch,
    /// Its lineage; none for a state of an earlier version.
    pub lineage: Lineage,
    /// Its size.
    pub bytes: u64,
}

/// Copies a state folder to a new folder, whether or not a head uses it. The copy is whole, or it is not there.
pub fn backup(state: &Path, to: &Path) -> Result<Backup, StoreError> {
    let path = state.join("head.sqlite");
    let file_error = |path: &Path, error| StoreError::File { path: path.to_owned(), error };
    must_exist(&path)?;
    private::folder(to).map_err(|error| file_error(to, error))?;
    let (copy, unfinished) = (to.join("head.sqlite"), to.join("head.sqlite.unfinished"));
    if copy.exists() {
        return Err(file_error(&copy, std::io::ErrorKind::AlreadyExists.into()));
    }
    let database_error = |error| StoreError::Database { path: path.clone(), error };
    let database =
        Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(database_error)?;
    database.busy_timeout(PATIENCE).map_err(database_error)?;
    // An unfinished copy of an earlier try is in the way; SQLite writes only into an empty file.
    let _ = std::fs::remove_file(&unfinished);
    let file = private::file(&unfinished).map_err(|error| file_error(&unfinished, error))?;
    database.execute("VACUUM INTO ?1", [unfinished.to_string_lossy()]).map_err(database_error)?;
    mark(&unfinished)?;
    file.sync_all().map_err(|error| file_error(&unfinished, error))?;
    let made = describe(&unfinished, to)?;
    std::fs::rename(&unfinished, &copy).map_err(|error| file_error(&copy, error))?;
    let folder = std::fs::File::open(to).and_then(|folder| folder.sync_all());
    folder.map_err(|error| file_error(to, error))?;
    Ok(made)
}

/// Makes a copy known as one: it does not say in which file its head kept it, so the next head takes it for a copy wherever it is.
fn mark(copy: &Path) -> Result<(), StoreError> {
    let wrong = |error| StoreError::Database { path: copy.to_owned(), error };
    let database = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(wrong)?;
    database.execute("DELETE FROM meta WHERE key = ?1", [FILE_KEY]).map(drop).map_err(wrong)
}

/// Reads a copy, which shows that it can be read.
fn describe(path: &Path, folder: &Path) -> Result<Backup, StoreError> {
    let wrong = |error| StoreError::Database { path: path.to_owned(), error };
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(wrong)?;
    let meta = |key: &str| {
        let query = "SELECT value FROM meta WHERE key = ?1";
        let text: Option<String> =
            database.query_row(query, [key], |row| row.get(0)).optional().map_err(wrong)?;
        Ok(text.and_then(|text| text.parse().ok()).unwrap_or(0_u64))
    };
    let count = |query: &str| database.query_row(query, [], |row| row.get::<_, i64>(0));
    let mut last = count("SELECT coalesce(max(id), 0) FROM journal").map_err(wrong)?;
    if count("SELECT count(*) FROM sqlite_master WHERE name = 'images'").map_err(wrong)? > 0 {
        // All lines may have left the journal.
        last = last.max(count("SELECT coalesce(max(line), 0) FROM images").map_err(wrong)?);
    }
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let (epoch, lineage) = (Epoch(meta("epoch")?), Lineage(meta("lineage")?));
    let last_line = last as u64;
    Ok(Backup { folder: folder.to_owned(), last_line, epoch, lineage, bytes })
}

#[cfg(test)]
mod tests {
    use rota_core::time::Time;

    use super::*;
    use crate::record::Record;
    use crate::store::{Store, Write};

    #[test]
    fn a_copy_is_whole_private_and_never_written_over_while_a_head_goes_on() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().expect("a folder");
        let (state, to) = (home.path().join("state"), home.path().join("copy"));
        let mut store = Store::open(&state).expect("opened");
        let noted = |text: &str| Write::Record(Time(7), Record::Noted { text: text.into() });
        store.commit(&[noted("a"), noted("b")]).expect("written");
        let made = backup(&state, &to).expect("made while the state is locked");
        store.commit(&[noted("c")]).expect("written");
        assert_eq!((made.last_line, made.folder.as_path()), (2, to.as_path()));
        let mode = std::fs::metadata(to.join("head.sqlite")).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(backup(&state, &to).is_err(), "it is not written over");
        assert_eq!(Store::open(&to).expect("usable").journal(0, 9).expect("read").len(), 2);
        assert!(backup(&home.path().join("nowhere"), &home.path().join("x")).is_err());
    }
}
