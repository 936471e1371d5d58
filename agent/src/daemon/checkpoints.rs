//! A job's checkpoint directory as one stream of bytes, for copying it to another node: what one agent reads piece by
//! piece, another writes, and unpacks when it is whole. The head carries the pieces; it never looks inside.
//!
//! The stream is a sequence of files, sorted by name: the length of the name, the name, the length of the file, the file. Links,
//! sockets and the like are left out. What arrives is checked like all input from outside.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

use rota_transport::message::Outcome;
use rota_transport::value::{MOST_PIECE_BYTES, Piece};

/// A checkpoint of more bytes than this is not copied.
const MOST_BYTES: u64 = 256 << 30;
/// A checkpoint with more files than this is not copied.
const MOST_FILES: usize = 100_000;
/// File names longer than this are refused when a checkpoint is unpacked.
const MOST_NAME_BYTES: usize = 4_096;

/// A checkpoint that cannot be copied.
#[derive(Debug, thiserror::Error)]
pub(super) enum CopyError {
    /// A file of the checkpoint cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder that was tried.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The checkpoint is larger than what is copied between nodes.
    #[error("{}: more than {most} {what} are not copied between nodes; use a path that all nodes share", path.display())]
    TooMuch {
        /// The checkpoint's folder.
        path: PathBuf,
        /// The limit that it exceeds.
        most: u64,
        /// What the limit counts: bytes, files.
        what: &'static str,
    },
    /// Pieces that do not follow each other.
    #[error("a piece at byte {offset} arrived, {expected} bytes are here")]
    Gap {
        /// The byte of the stream at which the piece starts.
        offset: u64,
        /// The byte that is due: the first one not yet kept.
        expected: u64,
    },
    /// What arrived is not a checkpoint.
    #[error("what arrived is not a checkpoint: {0}")]
    Malformed(String),
}

/// A piece of the stream of a folder, as it travels.
pub(super) fn read_piece(folder: &Path, offset: u64) -> Result<Outcome, CopyError> {
    let (bytes, is_end) = read(folder, offset, MOST_PIECE_BYTES)?;
    let bytes = Piece::new(bytes).map_err(|error| CopyError::Malformed(error.to_string()))?;
    Ok(Outcome::Piece { bytes, is_end })
}

/// A piece of the stream of a folder, and whether it is the last. A folder that is not there has an empty stream.
fn read(folder: &Path, offset: u64, most: usize) -> Result<(Vec<u8>, bool), CopyError> {
    let mut files = Vec::new();
    list(folder, folder, &mut files)?;
    files.sort_unstable();
    let (mut at, mut piece) = (0_u64, Vec::new());
    for (name, n_bytes) in files {
        let header = header(&name, n_bytes);
        take(&mut piece, &header, at, offset, most);
        at += header.len() as u64;
        let wanted = offset + piece.len() as u64;
        if piece.len() < most && wanted < at + n_bytes {
            let n_wanted = (most - piece.len()).min((at + n_bytes - wanted) as usize);
            let path = folder.join(&name);
            let wrong = |source| CopyError::File { path: path.clone(), source };
            let mut file = open_below(folder, &name).map_err(wrong)?;
            file.seek(SeekFrom::Start(wanted - at)).map_err(wrong)?;
            let before = piece.len();
            piece.resize(before + n_wanted, 0);
            // Only a job that still writes could shrink a file meanwhile, and the job is stopped before it is copied.
            file.read_exact(piece.get_mut(before..).unwrap_or_default()).map_err(wrong)?;
        }
        at += n_bytes;
        if at > MOST_BYTES {
            return Err(CopyError::TooMuch { path: folder.to_owned(), most: MOST_BYTES, what: "bytes" });
        }
    }
    let is_end = offset + piece.len() as u64 >= at;
    Ok((piece, is_end))
}

/// Keeps a piece of the stream; after the last one, the content of the stream replaces the folder.
pub(super) fn write(
    stream: &Path,
    folder: &Path,
    offset: u64,
    bytes: &[u8],
    is_end: bool,
) -> Result<(), CopyError> {
    let wrong = |source| CopyError::File { path: stream.to_owned(), source };
    fs::create_dir_all(stream.parent().unwrap_or(folder)).map_err(wrong)?;
    let mut file = File::options().create(true).truncate(false).append(true).open(stream).map_err(wrong)?;
    if offset == 0 {
        file.set_len(0).map_err(wrong)?;
    }
    let expected = file.metadata().map_err(wrong)?.len();
    if expected != offset {
        return Err(CopyError::Gap { offset, expected });
    }
    if offset + bytes.len() as u64 > MOST_BYTES {
        return Err(CopyError::TooMuch { path: folder.to_owned(), most: MOST_BYTES, what: "bytes" });
    }
    file.write_all(bytes).map_err(wrong)?;
    if !is_end {
        return Ok(());
    }
    file.sync_all().map_err(wrong)?;
    let unpacked = unpack(stream, folder);
    fs::remove_file(stream).map_err(wrong)?;
    unpacked
}

/// Opens a file of a job, which may have become something else since it was listed: a link must not lead the agent, which may
/// be root, to files that are not the job's.
fn open_below(folder: &Path, name: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, ResolveFlags};
    let base = OFlags::RDONLY | OFlags::CLOEXEC;
    let below = rustix::fs::open(folder, base | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let file = File::from(rustix::fs::openat2(below, name, base | OFlags::NONBLOCK, Mode::empty(), resolve)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a file any more")),
    }
}

/// Files below a folder by name, with their sizes.
fn list(root: &Path, folder: &Path, found: &mut Vec<(PathBuf, u64)>) -> Result<(), CopyError> {
    let wrong = |source| CopyError::File { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(wrong(error)),
    };
    for entry in entries {
        let entry = entry.map_err(wrong)?;
        let kind = entry.file_type().map_err(wrong)?;
        if kind.is_dir() {
            list(root, &entry.path(), found)?;
        } else if kind.is_file() {
            let n_bytes = entry.metadata().map_err(wrong)?.len();
            let path = entry.path();
            found.push((path.strip_prefix(root).unwrap_or(&path).to_owned(), n_bytes));
        }
        if found.len() > MOST_FILES {
            let most = MOST_FILES as u64;
            return Err(CopyError::TooMuch { path: root.to_owned(), most, what: "files" });
        }
    }
    Ok(())
}

fn header(name: &Path, n_bytes: u64) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt as _;
    let name = name.as_os_str().as_bytes();
    let mut header = (name.len() as u32).to_le_bytes().to_vec();
    header.extend_from_slice(name);
    header.extend_from_slice(&n_bytes.to_le_bytes());
    header
}

/// Adds to a piece that starts at `offset` the bytes of `part`, which is at `at` in the stream.
fn take(piece: &mut Vec<u8>, part: &[u8], at: u64, offset: u64, most: usize) {
    let wanted = offset + piece.len() as u64;
    let Some(rest) = wanted.checked_sub(at).and_then(|skip| part.get(usize::try_from(skip).ok()?..)) else {
        return;
    };
    let room = most - piece.len();
    piece.extend_from_slice(rest.get(..room).unwrap_or(rest));
}

/// Unpacks into a new folder, then renames it: a job never sees half a checkpoint.
fn unpack(stream: &Path, folder: &Path) -> Result<(), CopyError> {
    let arriving = folder.with_extension("arriving");
    let wrong = |path: &Path| {
        let path = path.to_owned();
        move |source| CopyError::File { path, source }
    };
    let _ = fs::remove_dir_all(&arriving);
    // Closed to all others, until the job's account owns all of it.
    fs::DirBuilder::new().mode(0o700).create(&arriving).map_err(wrong(&arriving))?;
    let mut source = io::BufReader::new(File::open(stream).map_err(wrong(stream))?);
    for _ in 0..=MOST_FILES {
        let Some(name) = next_name(&mut source)? else {
            let _ = fs::remove_dir_all(folder);
            return fs::rename(&arriving, folder).map_err(wrong(folder));
        };
        let n_bytes = u64::from_le_bytes(exact(&mut source)?);
        let path = arriving.join(&name);
        fs::create_dir_all(path.parent().unwrap_or(&arriving)).map_err(wrong(&path))?;
        let mut file = File::create_new(&path).map_err(wrong(&path))?;
        let n_copied = io::copy(&mut (&mut source).take(n_bytes), &mut file).map_err(wrong(&path))?;
        if n_copied != n_bytes {
            return Err(CopyError::Malformed(format!("{} ends too early", name.display())));
        }
        file.sync_all().map_err(wrong(&path))?;
    }
    Err(CopyError::TooMuch { path: folder.to_owned(), most: MOST_FILES as u64, what: "files" })
}

/// The name of the next file, which stays below the folder; none at the end.
fn next_name(source: &mut impl Read) -> Result<Option<PathBuf>, CopyError> {
    use std::os::unix::ffi::OsStringExt as _;
    let mut length = [0; 4];
    let malformed = |error: io::Error| CopyError::Malformed(error.to_string());
    match source.read(&mut length[..1]).map_err(malformed)? {
        0 => return Ok(None),
        _ => source.read_exact(&mut length[1..]).map_err(malformed)?,
    }
    let n_bytes = u32::from_le_bytes(length) as usize;
    if n_bytes == 0 || n_bytes > MOST_NAME_BYTES {
        return Err(CopyError::Malformed(format!("a name of {n_bytes} bytes")));
    }
    let mut name = vec![0; n_bytes];
    source.read_exact(&mut name).map_err(malformed)?;
    let name = PathBuf::from(std::ffi::OsString::from_vec(name));
    match name.components().all(|part| matches!(part, Component::Normal(_))) {
        true => Ok(Some(name)),
        false => Err(CopyError::Malformed(format!("`{}` is not a name below the folder", name.display()))),
    }
}

fn exact(source: &mut impl Read) -> Result<[u8; 8], CopyError> {
    let mut bytes = [0; 8];
    source.read_exact(&mut bytes).map_err(|error| CopyError::Malformed(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies in pieces of so many bytes.
    fn copy(from: &Path, to: &Path, most: usize) -> Result<(), CopyError> {
        let stream = to.with_extension("stream");
        let mut offset = 0;
        loop {
            let (piece, is_end) = read(from, offset, most)?;
            write(&stream, to, offset, &piece, is_end)?;
            offset += piece.len() as u64;
            if is_end {
                return Ok(());
            }
        }
    }

    #[test]
    fn a_checkpoint_arrives_as_it_was_whatever_the_pieces() {
        let home = tempfile::tempdir().expect("a folder");
        let from = home.path().join("from");
        fs::create_dir_all(from.join("deep/er")).expect("made");
        fs::write(from.join("model.pt"), vec![7; 1_000]).expect("written");
        fs::write(from.join("deep/er/step"), "41").expect("written");
        fs::write(from.join("empty"), "").expect("written");
        std::os::unix::fs::symlink("/etc/passwd", from.join("link")).expect("linked");
        for most in [1, 7, 100, 1_013, 1 << 20] {
            let to = home.path().join(format!("to{most}"));
            fs::create_dir_all(&to).expect("made");
            fs::write(to.join("old"), "of an earlier launch").expect("written");
            copy(&from, &to, most).expect("copied");
            assert_eq!(fs::read(to.join("model.pt")).expect("there"), vec![7; 1_000]);
            assert_eq!(fs::read_to_string(to.join("deep/er/step")).expect("there"), "41");
            assert_eq!(fs::read_to_string(to.join("empty")).expect("there"), "");
            assert!(!to.join("link").exists() && !to.join("old").exists());
            assert!(!to.with_extension("stream").exists());
        }
    }

    #[test]
    fn a_folder_that_is_not_there_arrives_empty() {
        let home = tempfile::tempdir().expect("a folder");
        let to = home.path().join("to");
        copy(&home.path().join("none"), &to, 100).expect("copied");
        assert_eq!(fs::read_dir(&to).expect("there").count(), 0);
    }

    #[test]
    fn what_is_no_checkpoint_changes_nothing() {
        let home = tempfile::tempdir().expect("a folder");
        let (stream, to) = (home.path().join("stream"), home.path().join("to"));
        fs::create_dir_all(&to).expect("made");
        fs::write(to.join("kept"), "yes").expect("written");
        let absolute = header(Path::new("/tmp/x"), 0);
        let outside = header(Path::new("../x"), 0);
        let cut = header(Path::new("x"), 9);
        for (bytes, word) in [
            (absolute.as_slice(), "not a name below"),
            (&outside, "not a name below"),
            (&cut, "ends too early"),
            (&[255; 9], "a name of"),
            (&[1, 0, 0], "not a checkpoint"),
        ] {
            let error = write(&stream, &to, 0, bytes, true).expect_err("refused");
            assert!(error.to_string().contains(word), "{error}");
            assert_eq!(fs::read_to_string(to.join("kept")).expect("there"), "yes");
        }
        let error = write(&stream, &to, 5, b"late", false).expect_err("refused");
        assert!(error.to_string().contains("a piece at byte 5 arrived, 0 bytes are here"), "{error}");
    }
}
