//! Real load for emulated jobs: CPU time, memory and reads, a chosen fraction of what the job would use.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Load is generated in slices of this length.
const SLICE: Duration = Duration::from_millis(10);

/// What a job would use in full.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) cpus: f64,
    pub(super) mem_bytes: u64,
    pub(super) storage_bps: u64,
    pub(super) data_dir: PathBuf,
}

/// Starts threads that burn `factor` of a load until the process ends. Memory is touched once and kept.
pub(super) fn start(load: &Load, factor: f64) {
    let n_threads = load.cpus.ceil().max(1.0) as u32;
    let duty = (load.cpus * factor / f64::from(n_threads)).clamp(0.0, 1.0);
    for _ in 0..n_threads {
        std::thread::spawn(move || burn_cpu(duty));
    }
    let n_bytes = (load.mem_bytes as f64 * factor) as usize;
    std::thread::spawn(move || keep_memory(n_bytes));
    let rate = (load.storage_bps as f64 * factor) as u64;
    if let Some(file) = largest_file(&load.data_dir).filter(|_| rate > 0) {
        std::thread::spawn(move || read_at(&file, rate));
    }
}

fn burn_cpu(duty: f64) {
    loop {
        let began = Instant::now();
        let mut number: u64 = 1;
        while began.elapsed() < SLICE.mul_f64(duty) {
            number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        std::thread::sleep(SLICE.saturating_sub(began.elapsed()));
    }
}

fn keep_memory(n_bytes: usize) {
    const PAGE: usize = 4096;
    let mut memory = vec![0_u8; n_bytes];
    memory.chunks_mut(PAGE).for_each(|page| {
        if let Some(byte) = page.first_mut() {
            *byte = 1;
        }
    });
    loop {
        std::hint::black_box(&memory);
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Reads a file over and over at a rate; stops when it cannot be read.
fn read_at(path: &Path, bytes_per_s: u64) {
    let Ok(mut file) = File::open(path) else { return };
    let per_slice = (bytes_per_s as f64 * SLICE.as_secs_f64()).ceil() as usize;
    let mut buffer = vec![0; per_slice];
    loop {
        let began = Instant::now();
        match file.read(&mut buffer) {
            Ok(0) if file.seek(SeekFrom::Start(0)).is_ok() => {}
            Ok(_) => {}
            Err(_) => return,
        }
        std::thread::sleep(SLICE.saturating_sub(began.elapsed()));
    }
}

fn largest_file(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let sized = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok().filter(|metadata| metadata.is_file())?;
        Some((metadata.len(), entry.path()))
    });
    sized.max().filter(|(n_bytes, _)| *n_bytes > 0).map(|(_, path)| path)
}
