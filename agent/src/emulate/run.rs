//! Runs an emulated job from start to end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rota_core::allocation::WHOLE_GPU;
use rota_core::profile::{Profile, Shape};
use rota_core::resources::Host;
use rota_core::time::Span;
use rota_traces::error::InputError;
use rota_traces::profile::{self, ProfileEntry};
use rota_traces::units::Bytes;

use super::burn::{self, Load};
use super::gpu::{EmulatedGpu, GpuError, PERIOD};
use super::{CHECKPOINT_FILE, EmulateOptions, LOST_FILE, NODE_SPEED_FILE};
use crate::clock::monotonic_s;
use crate::job::JobClient;
use crate::job::protocol::ToJob;
use crate::probe::{self, BAD_GPUS_FILE};

/// Real time between two reports of progress, unless more are wanted.
const REPORT_EVERY: Duration = Duration::from_millis(500);
/// Reports are never sent more often than this.
const LEAST_REPORT_EVERY_S: f64 = 0.005;

/// A job that cannot run.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The profile cannot be read.
    #[error(transparent)]
    Profile(#[from] InputError),
    /// A model that is not in the file.
    #[error("{profiles}: model `{model}` is not there; it has {known}")]
    Unknown {
        /// Where it was looked for.
        profiles: String,
        /// The model that was asked for.
        model: String,
        /// The models the file has, separated by commas.
        known: String,
    },
    /// The file has several models and the options name none.
    #[error("{profiles} has several models, name one with --model: {known}")]
    Which {
        /// The file that has several.
        profiles: String,
        /// The models the file has, separated by commas.
        known: String,
    },
    /// A file that cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file that was tried.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Neither the options nor the environment give the number of iterations.
    #[error("the number of iterations is not given; use --iterations or ROTA_ITERATIONS")]
    NoIterations,
    /// The GPU is too small.
    #[error("{0}")]
    Gpu(String),
}

/// What the environment variables of the job contain.
struct Surroundings {
    rank: u32,
    n_gpus: u32,
    n_nodes: u32,
    gpus: Vec<String>,
    gpu_type: String,
    gpu_mem: Bytes,
    share: f64,
    host: Host,
    done: f64,
    iterations: f64,
    run_dir: PathBuf,
    checkpoint_dir: Option<PathBuf>,
    data_dir: PathBuf,
    report_every: Duration,
}

/// Runs to the last iteration, or until it is asked to stop.
pub fn run(options: &EmulateOptions) -> Result<(), EmulateError> {
    let mut around = Surroundings::read();
    around.done = around.kept();
    let to_do = options.iterations.unwrap_or(around.iterations);
    if to_do <= 0.0 {
        return Err(EmulateError::NoIterations);
    }
    let profile = options.profile.as_deref().map(|path| load(path, options.model.as_deref())).transpose()?;
    let rate = match (&profile, options.rate) {
        (_, Some(rate)) => rate,
        (Some(profile), None) => profile.rate(&around.shape(options.batch)) * around.share,
        (None, None) => return Err(EmulateError::NoIterations),
    };
    let gpus = claim_gpus(options, profile.as_deref(), &around)?;
    if options.burn > 0.0 {
        let load = Load {
            cpus: around.host.cpus(),
            mem_bytes: around.host.mem_bytes,
            storage_bps: around.host.storage_bps,
            data_dir: around.data_dir.clone(),
        };
        burn::start(&load, options.burn);
    }
    let restart = profile.as_ref().map_or(Span::ZERO, |profile| profile.restart);
    let delay = options.delay.unwrap_or(if around.done > 0.0 { restart } else { Span::ZERO });
    let mut job = Job {
        client: JobClient::from_environment(around.rank).ok().flatten(),
        checkpoint_cost: profile.as_ref().map_or(Span::ZERO, |profile| profile.checkpoint),
        time_scale: options.time_scale,
        iterations: around.done,
        checkpointed: around.done,
        to_do,
        rate,
        node_speed: around.node_speed(),
        around,
    };
    println!("emulating {to_do} iterations from {} at {rate:.4}/s, time x{}", job.iterations, job.time_scale);
    let next = job.train(&gpus, delay, options.checkpoint_every)?;
    if let (Next::GoOn, code @ 1..) = (next, options.exit_code) {
        println!("ending with exit code {code}, as asked");
        std::process::exit(code.into());
    }
    Ok(())
}

struct Job {
    client: Option<JobClient>,
    around: Surroundings,
    iterations: f64,
    checkpointed: f64,
    to_do: f64,
    /// Iterations per second of the job's time, on a node at full speed.
    rate: f64,
    /// The part of its speed that the node works at.
    node_speed: f64,
    time_scale: f64,
    checkpoint_cost: Span,
}

enum Next {
    GoOn,
    Stop,
}

impl Job {
    /// Trains to the last iteration (then it would go on), or until it is stopped.
    fn train(&mut self, gpus: &[EmulatedGpu], delay: Span, every: Span) -> Result<Next, EmulateError> {
        let mut resumed = Instant::now() + self.real(delay);
        let mut next_checkpoint = (every > Span::ZERO).then(|| resumed + self.real(every));
        let shared = gpus.first().filter(|_| self.around.share < 1.0);
        self.report(0.0);
        while self.iterations < self.to_do {
            let wait = self.until_something(resumed, next_checkpoint);
            let heard = match shared {
                Some(gpu) if resumed <= Instant::now() => {
                    gpu.slice(self.around.share);
                    self.iterations += PERIOD.as_secs_f64() * self.time_scale * self.speed();
                    self.receive(Duration::ZERO)
                }
                _ => self.receive(wait),
            };
            let now = Instant::now();
            if shared.is_none() && now > resumed {
                let past_s = (now - resumed).as_secs_f64();
                self.iterations += past_s * self.time_scale * self.speed();
                resumed = now;
            }
            // A sleep may last too long, but the last iteration counts as done when it was due.
            let late_s = (self.iterations - self.to_do).max(0.0) / self.speed() / self.time_scale;
            self.iterations = self.iterations.min(self.to_do);
            self.node_speed = self.around.node_speed();
            self.report(late_s);
            for message in heard {
                match self.obey(&message)? {
                    Next::Stop => return Ok(Next::Stop),
                    // A checkpoint takes time in which nothing is computed.
                    Next::GoOn => resumed = resumed.max(Instant::now()),
                }
            }
            if next_checkpoint.is_some_and(|at| Instant::now() >= at) {
                self.checkpoint()?;
                resumed = resumed.max(Instant::now());
                next_checkpoint = Some(resumed + self.real(every));
            }
        }
        self.write_checkpoint()?;
        println!("done: {} iterations", self.iterations);
        Ok(Next::GoOn)
    }

    /// Iterations per second as the node is now.
    fn speed(&self) -> f64 {
        self.rate * self.node_speed
    }

    /// Time until the end, the next report or the next checkpoint, whichever comes first.
    fn until_something(&self, resumed: Instant, next_checkpoint: Option<Instant>) -> Duration {
        let left_s = (self.to_do - self.iterations) / self.speed() / self.time_scale;
        let every = self.around.report_every;
        let end = Duration::try_from_secs_f64(left_s).unwrap_or(every);
        let end = resumed.saturating_duration_since(Instant::now()) + end;
        let checkpoint = next_checkpoint.map(|at| at.saturating_duration_since(Instant::now()));
        end.min(every).min(checkpoint.unwrap_or(every))
    }

    fn receive(&mut self, most: Duration) -> Vec<ToJob> {
        match &mut self.client {
            Some(client) => client.receive(most),
            None => {
                std::thread::sleep(most);
                Vec::new()
            }
        }
    }

    fn obey(&mut self, message: &ToJob) -> Result<Next, EmulateError> {
        match message {
            ToJob::Checkpoint => self.checkpoint().map(|()| Next::GoOn),
            ToJob::Stop { keep_work, .. } => {
                if *keep_work {
                    self.checkpoint()?;
                }
                println!("stopped: {} iterations, {} in the checkpoint", self.iterations, self.checkpointed);
                Ok(Next::Stop)
            }
            ToJob::Resize { rate, .. } if *rate > 0.0 => {
                self.rate = *rate;
                Ok(Next::GoOn)
            }
            _ => Ok(Next::GoOn),
        }
    }

    fn checkpoint(&mut self) -> Result<(), EmulateError> {
        if self.around.has_bad_gpu() {
            println!("no checkpoint: a GPU has failed");
            return Ok(());
        }
        std::thread::sleep(self.real(self.checkpoint_cost));
        self.write_checkpoint()
    }

    /// The first rank writes the checkpoint; every rank reports it.
    fn write_checkpoint(&mut self) -> Result<(), EmulateError> {
        if let Some(dir) = self.around.checkpoint_dir.as_ref().filter(|_| self.around.rank == 0) {
            let path = dir.join(CHECKPOINT_FILE);
            let text = serde_json::json!({ "iterations": self.iterations }).to_string();
            std::fs::create_dir_all(dir)
                .and_then(|()| std::fs::write(&path, text))
                .map_err(|source| EmulateError::File { path, source })?;
        }
        self.checkpointed = self.iterations;
        if let Some(client) = &mut self.client {
            client.progress(self.iterations);
            client.checkpointed(self.iterations);
        }
        Ok(())
    }

    fn report(&mut self, late_s: f64) {
        if let Some(client) = &mut self.client {
            client.progress_at(self.iterations, monotonic_s() - late_s);
        }
    }

    /// The real time that a span of the job's time takes.
    fn real(&self, span: Span) -> Duration {
        Duration::try_from_secs_f64(span.as_secs_f64().max(0.0) / self.time_scale).unwrap_or_default()
    }
}

/// One model of a profile file or a built-in set: the one asked for, or the only one.
fn load(profiles: &str, model: Option<&str>) -> Result<Arc<Profile>, EmulateError> {
    let set = profile::load(profiles)?;
    let name = |entry: &ProfileEntry| entry.profile.name.clone();
    let known = || set.entries().iter().map(name).collect::<Vec<_>>().join(", ");
    let profiles = profiles.to_owned();
    match (model, set.entries()) {
        (Some(model), _) => set.get(model).cloned().ok_or_else(|| EmulateError::Unknown {
            profiles,
            model: model.to_owned(),
            known: known(),
        }),
        (None, [only]) => Ok(Arc::clone(&only.profile)),
        (None, _) => Err(EmulateError::Which { profiles, known: known() }),
    }
}

fn claim_gpus(
    options: &EmulateOptions,
    profile: Option<&Profile>,
    around: &Surroundings,
) -> Result<Vec<EmulatedGpu>, EmulateError> {
    let wanted =
        options.gpu_memory.or(profile.map(|profile| Bytes(profile.gpu_mem_bytes))).unwrap_or_default();
    // A job with whole GPUs that claims no memory needs no files.
    if wanted.0 == 0 && around.share >= 1.0 {
        return Ok(Vec::new());
    }
    let claim = |gpu: &String| EmulatedGpu::claim(&around.run_dir, gpu, wanted, around.gpu_mem);
    let claimed: Result<Vec<_>, GpuError> = around.gpus.iter().map(claim).collect();
    claimed.map_err(|error| EmulateError::Gpu(error.to_string()))
}

impl Surroundings {
    fn read() -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let number = |name: &str| text(name).and_then(|value| value.parse::<f64>().ok());
        let n_nodes = number("ROTA_NODES").unwrap_or(1.0).max(1.0) as u32;
        let n_gpus_here = number("ROTA_GPUS").unwrap_or(1.0).max(1.0) as u32;
        let visible = text("CUDA_VISIBLE_DEVICES").unwrap_or_else(|| "0".to_owned());
        Surroundings {
            rank: number("RANK").unwrap_or(0.0) as u32,
            // All nodes of a job are ordered to use the same number of GPUs.
            n_gpus: n_gpus_here.saturating_mul(n_nodes),
            n_nodes,
            gpus: visible.split(',').map(str::to_owned).collect(),
            gpu_type: text("ROTA_GPU_TYPE").unwrap_or_default(),
            gpu_mem: Bytes(number("ROTA_GPU_MEMORY_BYTES").unwrap_or(0.0) as u64),
            share: number("ROTA_GPU_SHARE").filter(|share| (0.001..=1.0).contains(share)).unwrap_or(1.0),
            host: Host {
                mem_bytes: number("ROTA_MEMORY_BYTES").unwrap_or(0.0) as u64,
                storage_bps: number("ROTA_STORAGE_BPS").unwrap_or(0.0) as u64,
                ..Host::from_units(number("ROTA_CPUS").unwrap_or(1.0), 0.0, 0.0)
            },
            done: number("ROTA_ITERATIONS_DONE").filter(|done| *done > 0.0).unwrap_or(0.0),
            iterations: number("ROTA_ITERATIONS").unwrap_or(0.0),
            run_dir: text("ROTA_RUN_DIR").map_or_else(std::env::temp_dir, PathBuf::from),
            checkpoint_dir: text("ROTA_CHECKPOINT_DIR").map(PathBuf::from),
            data_dir: text("ROTA_DATA_DIR").map_or_else(std::env::temp_dir, PathBuf::from),
            report_every: number("ROTA_REPORT_EVERY_S").map_or(REPORT_EVERY, |seconds| {
                Duration::from_secs_f64(seconds.clamp(LEAST_REPORT_EVERY_S, REPORT_EVERY.as_secs_f64()))
            }),
        }
    }

    /// Iterations of earlier launches: what the head says or, where checkpoints were lost, what the checkpoint has.
    fn kept(&self) -> f64 {
        let Some(dir) = self.checkpoint_dir.as_ref().filter(|dir| dir.join(LOST_FILE).exists()) else {
            return self.done;
        };
        let text = std::fs::read_to_string(dir.join(CHECKPOINT_FILE)).unwrap_or_default();
        let checkpoint: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        checkpoint["iterations"].as_f64().filter(|done| *done > 0.0).map_or(0.0, |done| done.min(self.done))
    }

    /// Whether one of its GPUs on this node is marked as bad: then nothing can be read from it any more.
    fn has_bad_gpu(&self) -> bool {
        let trouble = probe::pretended_trouble(&self.run_dir.join(BAD_GPUS_FILE));
        trouble.iter().any(|(number, _)| self.gpus.contains(&number.to_string()))
    }

    /// The part of its speed that the node works at; all of it where nothing else is written.
    fn node_speed(&self) -> f64 {
        let text = std::fs::read_to_string(self.run_dir.join(NODE_SPEED_FILE)).unwrap_or_default();
        text.trim().parse().ok().filter(|speed| (0.001..=1.0).contains(speed)).unwrap_or(1.0)
    }

    fn shape(&self, batch: u32) -> Shape<'_> {
        let share = (self.share * f64::from(WHOLE_GPU)).round() as u16;
        let per_gpu = self.host.per(self.n_gpus / self.n_nodes).in_turn(share);
        Shape { gpus: self.n_gpus, n_nodes: self.n_nodes, per_gpu, gpu_type: &self.gpu_type, batch }
    }
}
