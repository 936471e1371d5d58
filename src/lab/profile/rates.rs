//! How fast this machine's storage and memory are, measured without a special tool or root, and remembered.
//!
//! Storage: a file is written, evicted from the page cache where the system allows it, and read by a few readers in
//! parallel. Memory: blocks larger than any cache are read over and over by as many threads as are asked for. Numbers of a
//! busy machine are low; the best of a few attempts, or the middle of many pieces, is kept.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

/// A piece of memory that is timed by itself: a megabyte, some tens of microseconds.
const PIECE_WORDS: usize = (1 << 20) / 8;

/// What was measured of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Host name of the machine.
    pub machine: String,
    /// The folder whose storage was read.
    pub folder: PathBuf,
    /// Bytes per second from that storage.
    pub storage_bps: f64,
    /// Whether the file came from the storage and not from the page cache, as far as the system says.
    pub is_uncached: bool,
    /// Bytes per second from memory by number of threads.
    pub memory_bps: BTreeMap<u32, f64>,
}

/// Rates that cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum RatesError {
    /// A file that cannot be made or read.
    #[error("{}: {source}", path.display())]
    File {
        /// File that was read or written.
        path: PathBuf,
        /// What the operating system answered.
        source: std::io::Error,
    },
}

/// How much to read.
#[derive(Clone, Copy, Debug)]
pub struct Amounts {
    /// Size of the file.
    pub file_bytes: u64,
    /// Size of each thread's block of memory.
    pub block_bytes: usize,
    /// Attempts, of which the best is kept.
    pub attempts: u32,
}

impl Default for Amounts {
    fn default() -> Self {
        Amounts { file_bytes: 256 << 20, block_bytes: 128 << 20, attempts: 3 }
    }
}

/// Measures storage below `folder`, and memory with up to `most_threads` threads.
pub fn measure(folder: &Path, most_threads: u32, amounts: Amounts) -> Result<Rates, RatesError> {
    let (storage_bps, is_uncached) = storage(folder, amounts)?;
    let threads = std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n < most_threads);
    let memory_bps = threads.chain([most_threads.max(1)]).map(|n| (n, memory(n, amounts))).collect();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    Ok(Rates { machine: machine_name(), folder, storage_bps, is_uncached, memory_bps })
}

impl Rates {
    /// Bytes per second from memory with so many CPUs.
    pub fn memory_with(&self, cpus: f64) -> f64 {
        let at_most = self.memory_bps.iter().rev().find(|(threads, _)| f64::from(**threads) <= cpus);
        at_most.or(self.memory_bps.first_key_value()).map_or(f64::INFINITY, |(_, bps)| *bps)
    }

    /// The file in which rates are remembered.
    pub fn cache_file() -> Option<PathBuf> {
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        cache.or(home).map(|folder| folder.join("rota").join("rates.json"))
    }

    /// What is remembered of this machine and a folder.
    pub fn remembered(file: &Path, folder: &Path) -> Option<Self> {
        let all: Vec<Rates> = serde_json::from_str(&fs::read_to_string(file).ok()?).ok()?;
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let machine = machine_name();
        all.into_iter().find(|rates| rates.machine == machine && rates.folder == folder)
    }

    /// Remembers it, in place of what was known of the same machine and folder.
    pub fn remember(&self, file: &Path) -> Result<(), RatesError> {
        let wrong = |source| RatesError::File { path: file.to_owned(), source };
        let known = fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok());
        let mut all: Vec<Rates> = known.unwrap_or_default();
        all.retain(|rates| (&rates.machine, &rates.folder) != (&self.machine, &self.folder));
        all.push(self.clone());
        fs::create_dir_all(file.parent().unwrap_or(Path::new("."))).map_err(wrong)?;
        let staged = file.with_extension("writing");
        let text = serde_json::to_string_pretty(&all).unwrap_or_default();
        fs::write(&staged, text).and_then(|()| fs::rename(&staged, file)).map_err(wrong)
    }
}

/// This machine's name.
pub fn machine_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A file that is removed whatever happens.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // A file that cannot be removed is left.
        let _ = fs::remove_file(&self.0);
    }
}

fn storage(folder: &Path, amounts: Amounts) -> Result<(f64, bool), RatesError> {
    let scratch = Scratch(folder.join(format!(".rota-probe-{}", std::process::id())));
    let wrong = |source| RatesError::File { path: scratch.0.clone(), source };
    let mut file = File::create(&scratch.0).map_err(wrong)?;
    let mut block = vec![0_u8; 1 << 20];
    let mut number: u64 = 0x9E37_79B9_7F4A_7C15;
    for _ in 0..amounts.file_bytes.div_ceil(1 << 20) {
        // Different everywhere, because some storage compresses repeated data.
        for byte in block.chunks_exact_mut(8) {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            byte.copy_from_slice(&number.to_le_bytes());
        }
        file.write_all(&block).map_err(wrong)?;
    }
    file.sync_all().map_err(wrong)?;
    drop(file);
    let mut best = 0.0_f64;
    let mut is_uncached = false;
    for _ in 0..amounts.attempts.max(1) {
        let mut file = File::open(&scratch.0).map_err(wrong)?;
        is_uncached = fadvise(&file, 0, None, Advice::DontNeed).is_ok();
        let began = Instant::now();
        let mut n_bytes = 0;
        loop {
            match file.read(&mut block).map_err(wrong)? {
                0 => break,
                n => n_bytes += n,
            }
        }
        best = best.max(n_bytes as f64 / began.elapsed().as_secs_f64().max(1e-9));
    }
    Ok((best, is_uncached))
}

/// All threads read a block of their own at once; what counts is what they read together. Blocks are larger than caches
/// and timed piece by piece, so that pieces during which another program had the CPU do not count.
fn memory(n_threads: u32, amounts: Amounts) -> f64 {
    let words = (amounts.block_bytes / 8).max(1);
    let read_all = || {
        let block: Vec<u64> = (0..words as u64).collect();
        let mut rates = Vec::new();
        for _ in 0..amounts.attempts.max(1) {
            for piece in block.chunks(PIECE_WORDS) {
                let began = Instant::now();
                std::hint::black_box(piece.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word)));
                rates.push((piece.len() * 8) as f64 / began.elapsed().as_secs_f64().max(1e-9));
            }
        }
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or(0.0)
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..n_threads).map(|_| scope.spawn(read_all)).collect();
        readers.into_iter().filter_map(|reader| reader.join().ok()).sum()
    })
}
