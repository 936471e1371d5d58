//! A job's output on disk: the newest bytes, within the limits, in files that are rotated when full.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::launch::spec::LogCaps;

/// A log that is being written: `log`, and `log.1` (the newest rotated one) to `log.N`.
pub struct RotatingLog {
    path: PathBuf,
    caps: LogCaps,
    /// None until there is something to write: many jobs write nothing, and a file costs more than the rest of a shim.
    file: Option<File>,
    n_bytes: u64,
    /// Bytes of all rotated files, including those that were deleted: where the current file begins.
    start: u64,
}

impl RotatingLog {
    /// Opens a log to append to it.
    pub fn open(path: &Path, caps: LogCaps) -> io::Result<Self> {
        let n_bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
        let start = read_start(path);
        let caps = LogCaps { file_bytes: caps.file_bytes.max(1024), n_files: caps.n_files.max(1) };
        Ok(RotatingLog { path: path.to_owned(), caps, file: None, n_bytes, start })
    }

    /// Writes output, rotating files as they fill.
    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.n_bytes >= self.caps.file_bytes {
                self.rotate()?;
            }
            let room = usize::try_from(self.caps.file_bytes - self.n_bytes).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.file()?.write_all(now)?;
            self.n_bytes += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    fn file(&mut self) -> io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?,
        };
        Ok(self.file.insert(file))
    }

    fn rotate(&mut self) -> io::Result<()> {
        for older in (1..self.caps.n_files).rev() {
            let newer = if older == 1 { self.path.clone() } else { aside(&self.path, older - 1) };
            // The first rounds have fewer files than are kept.
            let _ = fs::rename(newer, aside(&self.path, older));
        }
        self.start += self.n_bytes;
        // Before the file: a reader that sees the old start reads bytes twice, the other way round it misses some.
        fs::write(start_file(&self.path), self.start.to_string())?;
        let fresh =
            OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&self.path)?;
        self.file = Some(fresh);
        self.n_bytes = 0;
        Ok(())
    }
}

/// A piece of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where in all output it begins: later than asked for when older output is gone.
    pub offset: u64,
    /// What the log has from `offset` on; empty at its end.
    pub bytes: Vec<u8>,
}

/// Reads at most `most` bytes of a log from a place in all output ever written.
pub fn read(path: &Path, offset: u64, most: usize) -> io::Result<Piece> {
    for (start, file) in files(path) {
        let mut file = match File::open(&file) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let end = start + file.metadata()?.len();
        if offset < end {
            let from = offset.max(start);
            file.seek(SeekFrom::Start(from - start))?;
            let mut bytes = Vec::new();
            file.take(most as u64).read_to_end(&mut bytes)?;
            return Ok(Piece { offset: from, bytes });
        }
    }
    Ok(Piece { offset: length(path), bytes: Vec::new() })
}

/// How many bytes were ever written to a log.
pub fn length(path: &Path) -> u64 {
    read_start(path) + fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// The last `most` bytes, as text.
pub fn tail(path: &Path, most: usize) -> String {
    let mut from = length(path).saturating_sub(most as u64);
    let mut bytes = Vec::new();
    while let Ok(piece) = read(path, from, most - bytes.len()) {
        if piece.bytes.is_empty() {
            break;
        }
        from = piece.offset + piece.bytes.len() as u64;
        bytes.extend(piece.bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// All files of a log with the place of their first byte, oldest first.
fn files(path: &Path) -> Vec<(u64, PathBuf)> {
    let mut start = read_start(path);
    let mut found = vec![(start, path.to_owned())];
    for older in 1.. {
        let file = aside(path, older);
        let Ok(metadata) = fs::metadata(&file) else { break };
        start = start.saturating_sub(metadata.len());
        found.push((start, file));
    }
    found.reverse();
    found
}

fn aside(path: &Path, older: u32) -> PathBuf {
    path.with_extension(older.to_string())
}

fn start_file(path: &Path) -> PathBuf {
    path.with_extension("start")
}

fn read_start(path: &Path) -> u64 {
    fs::read_to_string(start_file(path)).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: LogCaps = LogCaps { file_bytes: 1024, n_files: 3 };

    #[test]
    fn endless_output_stays_within_the_caps_and_the_newest_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut log = RotatingLog::open(&path, CAPS).expect("opened");
        let line = "0123456789abcde\n";
        for _ in 0..(100 << 10) / line.len() {
            log.write(line.as_bytes()).expect("written");
        }
        log.write(b"the end").expect("written");
        let kept: u64 = fs::read_dir(folder.path())
            .expect("listed")
            .map(|entry| entry.expect("an entry").metadata().expect("metadata").len())
            .sum();
        assert!(kept <= 3 * 1024 + 32, "{kept} bytes kept");
        assert_eq!(length(&path), (100 << 10) + 7);
        assert!(tail(&path, 20).ends_with("abcde\nthe end"), "{}", tail(&path, 20));
    }

    #[test]
    fn output_is_read_by_its_place_over_files_and_reopenings() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let all: Vec<u8> = (0..2500_u32).map(|n| (n % 251) as u8).collect();
        for part in all.chunks(700) {
            RotatingLog::open(&path, CAPS).expect("opened").write(part).expect("written");
        }
        let mut again = Vec::new();
        loop {
            let piece = read(&path, again.len() as u64, 400).expect("read");
            if piece.bytes.is_empty() {
                break;
            }
            assert_eq!(piece.offset, again.len() as u64);
            again.extend(piece.bytes);
        }
        assert!(again == all, "{} of {} bytes", again.len(), all.len());
    }

    #[test]
    fn output_that_is_gone_is_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut log = RotatingLog::open(&path, CAPS).expect("opened");
        log.write(&[b'x'; 5000]).expect("written");
        let piece = read(&path, 0, 10).expect("read");
        assert_eq!((piece.offset, piece.bytes.len()), (5000 - 904 - 2048, 10));
    }
}
