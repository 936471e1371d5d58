//! An emulated GPU: memory that runs out, and time that jobs on one GPU share in slices. Both are kept in files of the
//! agent's directory, because the jobs that share a GPU know nothing of each other.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rota_traces::units::Bytes;
use rustix::fs::{FlockOperation, flock};

/// GPU time is shared in periods of this length.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// A GPU that a job uses; memory is free again when this is dropped, or when the job dies.
#[derive(Debug)]
pub(super) struct EmulatedGpu {
    turn: File,
    /// Locked as long as the job lives: a claim that can be locked belongs to a job that is gone.
    _claim: Option<File>,
}

/// A job that does not fit.
#[derive(Debug, thiserror::Error)]
pub(super) enum GpuError {
    /// Not enough memory left.
    #[error("out of GPU memory on GPU {gpu}: {wanted} needed, {taken} of {memory} taken")]
    OutOfMemory { gpu: String, wanted: Bytes, taken: Bytes, memory: Bytes },
    /// The files that represent the GPU cannot be used.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl EmulatedGpu {
    /// Claims memory on a GPU of a node. A memory of 0 is unknown, and everything fits.
    pub(super) fn claim(run_dir: &Path, gpu: &str, wanted: Bytes, memory: Bytes) -> Result<Self, GpuError> {
        let folder = run_dir.join("gpus").join(gpu);
        let wrong = |source| GpuError::File { path: folder.clone(), source };
        fs::create_dir_all(&folder).map_err(wrong)?;
        let door = File::create(folder.join("door")).map_err(wrong)?;
        flock(&door, FlockOperation::LockExclusive).map_err(|error| wrong(error.into()))?;
        let taken = Bytes(taken(&folder).map_err(wrong)?);
        if memory.0 > 0 && taken.0.saturating_add(wanted.0) > memory.0 {
            return Err(GpuError::OutOfMemory { gpu: gpu.to_owned(), wanted, taken, memory });
        }
        let path = folder.join(format!("claim-{}", std::process::id()));
        fs::write(&path, wanted.0.to_string()).map_err(wrong)?;
        let claim = File::open(&path).map_err(wrong)?;
        flock(&claim, FlockOperation::LockShared).map_err(|error| wrong(error.into()))?;
        let turn = File::create(folder.join("turn")).map_err(wrong)?;
        Ok(EmulatedGpu { turn, _claim: Some(claim) })
    }

    /// Computes for a slice of a period, when it is this job's turn, and leaves the rest of the period to others.
    /// Returns how long the whole took.
    pub(super) fn slice(&self, share: f64) -> Duration {
        let began = Instant::now();
        // A lock that fails must not stop the job: the slice is then not exclusive.
        let _ = flock(&self.turn, FlockOperation::LockExclusive);
        std::thread::sleep(PERIOD.mul_f64(share));
        let _ = flock(&self.turn, FlockOperation::Unlock);
        std::thread::sleep(PERIOD.saturating_sub(began.elapsed()));
        began.elapsed()
    }
}

/// Memory claimed by jobs that live; claims of the dead are removed.
fn taken(folder: &Path) -> io::Result<u64> {
    let mut sum: u64 = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_claim = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("claim-"));
        if !is_claim {
            continue;
        }
        let file = File::open(&path)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            fs::remove_file(&path)?;
        } else {
            sum = sum.saturating_add(fs::read_to_string(&path)?.trim().parse().unwrap_or(0));
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_runs_out_and_comes_back_with_the_end_of_a_job() {
        let folder = tempfile::tempdir().expect("a folder");
        let claim = |gb: u64| {
            EmulatedGpu::claim(folder.path(), "0", Bytes(gb * 1_000_000_000), Bytes(16_000_000_000))
        };
        let first = claim(10).expect("fits");
        let error = claim(10).expect_err("does not fit").to_string();
        assert_eq!(error, "out of GPU memory on GPU 0: 10 GB needed, 10 GB of 16 GB taken");
        drop(first);
        claim(10).expect("fits again");
        claim(17).expect_err("more than there is");
    }

    #[test]
    fn two_jobs_on_one_gpu_take_turns() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_owned();
        let gpu = EmulatedGpu::claim(&path, "0", Bytes(0), Bytes(0)).expect("claimed");
        flock(&gpu.turn, FlockOperation::LockExclusive).expect("locked");
        let other = std::thread::spawn(move || {
            let gpu = EmulatedGpu::claim(&path, "0", Bytes(0), Bytes(0)).expect("claimed");
            gpu.slice(0.5)
        });
        std::thread::sleep(PERIOD * 3);
        flock(&gpu.turn, FlockOperation::Unlock).expect("unlocked");
        let took = other.join().expect("ended");
        assert!(took > PERIOD * 2, "it waited for its turn: {took:?}");
    }
}
