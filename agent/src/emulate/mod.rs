//! An emulated job (GPEmu's idea, SoCC'25): it sleeps for as long as its profile says the GPU computes, which lets a whole
//! cluster run on a laptop. In everything else it behaves like a job: it reports progress, writes checkpoints, stops when
//! asked, fails when its GPU memory does not fit, and shares a GPU in time slices. CPU time, memory and reads are real in
//! the proportion that `--burn` gives; by default there are none.
//!
//! Files let an operator, or `rota deploy --faults`, break it: `node-speed` in the agent's run directory holds the part of its speed
//! that a slow node works at; a job on a GPU that `bad-gpus` there names writes no checkpoint any more; and `lost` in a checkpoint folder
//! says that the checkpoint counts, not what the head believes.

mod burn;
mod gpu;
mod run;

use crate::options::{OutOfRange, number};
use clap::Args;
use rota_core::time::Span;
use rota_traces::units::Bytes;

pub use run::{EmulateError, run};

/// The file with the part of its speed that a node works at, in the agent's run directory.
pub const NODE_SPEED_FILE: &str = "node-speed";
/// The file that marks a checkpoint folder whose checkpoints were lost.
pub const LOST_FILE: &str = "lost";
/// The checkpoint of an emulated job, in its folder.
pub const CHECKPOINT_FILE: &str = "emulated.json";

/// Speed, length and costs of an emulated job.
#[derive(Args, Clone, Debug)]
pub struct EmulateOptions {
    /// The profile the speed is taken from: a file, or a built-in set such as synergy or elasticflow-a100 [default: none,
    /// with --rate]
    #[arg(long, value_name = "FILE|NAME", required_unless_present = "rate")]
    pub profile: Option<String>,
    /// The model in the profile file [default: the only one]
    #[arg(long, value_name = "NAME", requires = "profile")]
    pub model: Option<String>,
    /// The global batch size [default: the profile's]
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub batch: u32,
    /// Iterations per second, instead of a profile [default: as the profile says]
    #[arg(long, value_name = "NUMBER", conflicts_with = "profile", value_parser = positive)]
    pub rate: Option<f64>,
    /// Iterations to do in all, those of earlier launches included [default: ROTA_ITERATIONS]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub iterations: Option<f64>,
    /// Seconds of the job's time that pass in one real second
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive)]
    pub time_scale: f64,
    /// The share of the job's CPU time, memory and reads that is real
    #[arg(long, value_name = "FACTOR", default_value_t = 0.0, value_parser = fraction)]
    pub burn: f64,
    /// Time lost before the first iteration, of the job's time [default: the profile's restart cost when it resumes]
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    pub delay: Option<Span>,
    /// Time between checkpoints, of the job's time; 0 writes none unless asked
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = Span::parse)]
    pub checkpoint_every: Span,
    /// Exit code after the last iteration: a job that fails as a trace records it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub exit_code: u8,
    /// GPU memory the job needs [default: the profile's]
    #[arg(long, value_name = "BYTES")]
    pub gpu_memory: Option<Bytes>,
}

fn positive(text: &str) -> Result<f64, OutOfRange> {
    number(text, "a number greater than 0", |n| n.is_finite() && n > 0.0)
}

fn fraction(text: &str) -> Result<f64, OutOfRange> {
    number(text, "a number from 0 to 100", |n| (0.0..=100.0).contains(&n))
}
