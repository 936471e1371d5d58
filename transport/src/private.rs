//! Folders and files that only their owner may read: a head's state and an agent's run directory hold the commands and
//! environments of everybody's jobs.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const PASSAGE_MODE: u32 = 0o711;

/// Makes a folder, or takes away what others may do with the one that is there and with the files directly in it. Returns
/// what had to be mended.
pub fn folder(path: &Path) -> io::Result<Vec<PathBuf>> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)?;
    let mut mended = Vec::new();
    // The folder first: from then on nobody else reaches what is in it.
    mend(path, FOLDER_MODE, &mut mended)?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            mend(&entry.path(), FILE_MODE, &mut mended)?;
        }
    }
    Ok(mended)
}

/// The same for a folder through which others may pass, to what is theirs further down; they cannot list it.
pub fn passage(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut mended = folder(path)?;
    // It has the mode of a passage since the last start.
    mended.retain(|changed| changed != path);
    fs::set_permissions(path, fs::Permissions::from_mode(PASSAGE_MODE))?;
    Ok(mended)
}

/// Opens a file for writing, and makes it if it is not there; what it holds is kept.
pub fn file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(FILE_MODE).open(path)
}

fn mend(path: &Path, mode: u32, mended: &mut Vec<PathBuf>) -> io::Result<()> {
    let is = fs::metadata(path)?.permissions().mode() & 0o777;
    if is & !mode != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(is & mode))?;
        mended.push(path.to_owned());
    }
    Ok(())
}
