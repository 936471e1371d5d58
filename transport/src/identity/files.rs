//! Files of keys: written whole or not at all, readable by their owner alone.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use super::IdentityError;

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secrecy {
    /// Only its owner.
    Secret,
    /// Everybody.
    Public,
}

/// Writes a temporary file in the same folder and renames it.
pub(super) fn write(path: &Path, text: &str, secrecy: Secrecy) -> Result<(), IdentityError> {
    let error = |error| IdentityError::File { path: path.to_owned(), error };
    let staged = path.with_extension(format!("new-{}", std::process::id()));
    let mode = if secrecy == Secrecy::Secret { 0o600 } else { 0o644 };
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&staged).map_err(error)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(error)?;
    fs::rename(&staged, path).map_err(error)
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, IdentityError> {
    fs::read(path).map_err(|error| IdentityError::File { path: path.to_owned(), error })
}

/// Reads a file that only its owner can read.
pub(crate) fn read_secret(path: &Path) -> Result<Vec<u8>, IdentityError> {
    let error = |error| IdentityError::File { path: path.to_owned(), error };
    let mode = fs::metadata(path).map_err(error)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(IdentityError::KeyTooOpen { path: path.to_owned(), mode });
    }
    read(path)
}

/// Makes a folder and its parents; `mode` is for folders that hold keys.
pub(super) fn make_folder(path: &Path) -> Result<(), IdentityError> {
    let error = |error| IdentityError::File { path: path.to_owned(), error };
    fs::create_dir_all(path).map_err(error)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(error)
}
