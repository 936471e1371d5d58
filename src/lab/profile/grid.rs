//! What a sweep is over: levels of GPUs, batch sizes, CPUs and memory, and the points they make.

use serde::{Deserialize, Serialize};

/// One allocation to measure with. CPUs and memory are for each GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    /// GPUs of the job.
    pub gpus: u32,
    /// Its global batch size; 0 leaves it to the command.
    pub batch: u32,
    /// CPUs for each GPU, in millionths.
    pub cpu_micro: u64,
    /// Memory for each GPU in bytes; 0 is no limit.
    pub mem_bytes: u64,
}

impl Point {
    /// CPUs for each GPU.
    pub fn cpus(&self) -> f64 {
        self.cpu_micro as f64 / 1e6
    }

    /// Memory for each GPU in gigabytes.
    pub fn mem_gb(&self) -> f64 {
        self.mem_bytes as f64 / 1e9
    }
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} GPU{}", self.gpus, if self.gpus == 1 { "" } else { "s" })?;
        if self.batch > 0 {
            write!(f, ", batch {}", self.batch)?;
        }
        write!(f, ", {} CPU{}", self.cpus(), if self.cpu_micro == 1_000_000 { "" } else { "s" })?;
        if self.mem_bytes > 0 {
            write!(f, ", {} GB", self.mem_gb())?;
        }
        if self.gpus > 1 { f.write_str(" for each GPU") } else { Ok(()) }
    }
}

/// The levels of a sweep, each list ascending and not empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    gpus: Vec<u32>,
    batches: Vec<u32>,
    cpu_micro: Vec<u64>,
    mem_bytes: Vec<u64>,
}

/// Levels that cannot make a grid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{axis}: at least one level is needed, and none may be 0")]
pub struct GridError {
    /// Name of the axis.
    pub axis: &'static str,
}

impl Grid {
    /// Levels in any order; what is given twice counts once. Batch 0 and memory 0 leave it to the command.
    pub fn new(
        gpus: &[u32],
        batches: &[u32],
        cpu_micro: &[u64],
        mem_bytes: &[u64],
    ) -> Result<Self, GridError> {
        let grid = Grid {
            gpus: ascending(gpus),
            batches: ascending(batches),
            cpu_micro: ascending(cpu_micro),
            mem_bytes: ascending(mem_bytes),
        };
        let wrong = |axis| Err(GridError { axis });
        match &grid {
            g if g.gpus.first().is_none_or(|n| *n == 0) => wrong("GPUs"),
            g if g.batches.is_empty() => wrong("batch sizes"),
            g if g.cpu_micro.first().is_none_or(|n| *n == 0) => wrong("CPUs"),
            g if g.mem_bytes.is_empty() => wrong("memory"),
            _ => Ok(grid),
        }
    }

    /// GPU counts.
    pub fn gpus(&self) -> &[u32] {
        &self.gpus
    }

    /// Batch sizes.
    pub fn batches(&self) -> &[u32] {
        &self.batches
    }

    /// CPUs for each GPU, in millionths.
    pub fn cpu_micro(&self) -> &[u64] {
        &self.cpu_micro
    }

    /// Memory for each GPU.
    pub fn mem_bytes(&self) -> &[u64] {
        &self.mem_bytes
    }

    /// Where every sweep begins: everything a GPU can get, with the fewest GPUs and the smallest batch.
    pub fn base(&self) -> Point {
        let most = |levels: &[u64]| levels.last().copied().unwrap_or(0);
        Point {
            gpus: self.gpus.first().copied().unwrap_or(1),
            batch: self.batches.first().copied().unwrap_or(0),
            cpu_micro: most(&self.cpu_micro),
            mem_bytes: most(&self.mem_bytes),
        }
    }

    /// The points of the CPU sweep, ascending; the base is the last.
    pub fn cpu_axis(&self) -> Vec<Point> {
        self.cpu_micro.iter().map(|cpu_micro| Point { cpu_micro: *cpu_micro, ..self.base() }).collect()
    }

    /// The points of the memory sweep, ascending; the base is the last.
    pub fn mem_axis(&self) -> Vec<Point> {
        self.mem_bytes.iter().map(|mem_bytes| Point { mem_bytes: *mem_bytes, ..self.base() }).collect()
    }

    /// Every GPU count with every batch, with everything a GPU can get.
    pub fn scale_axis(&self) -> Vec<Point> {
        let of = |batch: u32| self.gpus.iter().map(move |gpus| Point { gpus: *gpus, batch, ..self.base() });
        self.batches.iter().flat_map(|batch| of(*batch)).collect()
    }

    /// Every point: what an exhaustive sweep would run.
    pub fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for scale in self.scale_axis() {
            for cpu_micro in &self.cpu_micro {
                let memory = self.mem_bytes.iter();
                points.extend(memory.map(|mem_bytes| Point {
                    cpu_micro: *cpu_micro,
                    mem_bytes: *mem_bytes,
                    ..scale
                }));
            }
        }
        points
    }
}

fn ascending<T: Ord + Copy>(levels: &[T]) -> Vec<T> {
    let mut levels = levels.to_vec();
    levels.sort_unstable();
    levels.dedup();
    levels
}
