//! How memory speeds up a job that reads its data repeatedly, computed instead of measured: Synergy's model (OSDI'22, §3.1,
//! after MinIO). A cache of a fraction of the data set serves that fraction of all reads, nothing is evicted, and fetching
//! overlaps with computing.

/// What the model needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheModel {
    /// Size of the data set.
    pub dataset_bytes: u64,
    /// Samples in it.
    pub samples: u64,
    /// Bytes per second from storage.
    pub storage_bps: f64,
    /// Bytes per second from memory.
    pub memory_bps: f64,
}

impl CacheModel {
    /// Seconds to fetch the data of one iteration with this much memory for caching.
    pub fn fetch_s(&self, batch: u32, mem_bytes: u64) -> f64 {
        let bytes = self.bytes_per_iteration(batch);
        let cached = self.cached(mem_bytes);
        bytes * (cached / self.memory_bps + (1.0 - cached) / self.storage_bps)
    }

    /// The lowest storage rate that does not slow down an iteration of `compute_s` seconds, or the storage's own rate if even
    /// that is too low.
    pub fn storage_need_bps(&self, batch: u32, mem_bytes: u64, compute_s: f64) -> f64 {
        let bytes = self.bytes_per_iteration(batch);
        let cached = self.cached(mem_bytes);
        let left_s = compute_s - bytes * cached / self.memory_bps;
        let need = bytes * (1.0 - cached);
        if left_s <= 0.0 { self.storage_bps } else { (need / left_s).min(self.storage_bps) }
    }

    fn bytes_per_iteration(&self, batch: u32) -> f64 {
        let per_sample = self.dataset_bytes as f64 / self.samples.max(1) as f64;
        per_sample * f64::from(batch.max(1))
    }

    fn cached(&self, mem_bytes: u64) -> f64 {
        // No limit caches everything.
        if mem_bytes == 0 { 1.0 } else { (mem_bytes as f64 / self.dataset_bytes.max(1) as f64).min(1.0) }
    }
}
