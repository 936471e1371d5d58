//! The options of `rota profile run`, and what they come to: a sweep, an invocation, limits.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use rota_core::time::Span;
use rota_transport::measure::MeasureContainer;

use super::levels::{cpus_up_to, parse_bytes, parse_cpus, parse_part, parse_rate, tenths};
use rota_lab::profile::cache_model::CacheModel;
use rota_lab::profile::grid::Grid;
use rota_lab::profile::invocation::{Invocation, OptionNames};
use rota_lab::profile::pattern::Pattern;
use rota_lab::profile::rates::Rates;
use rota_lab::profile::sweep::{MemoryAxis, Sweep};

const EXAMPLES: &str = "\
The command is run again and again, a few iterations each time, with more or fewer CPUs. It must take the options
--max-iterations and --workers (other names: --iterations-option, --workers-option; places in the command: {iterations},
{workers}, {batch}, {gpus}, {data}, {job}), or read ROTA_ITERATIONS and ROTA_CPUS (--environment-only). It says how far it is through the
job protocol (four lines of Python, docs/job-protocol.md), in its output (--pattern), or as Synergy's scripts do (--synergy).

Try:
  rota profile run --name mine -- python train.py --model resnet50
  rota profile run --dry-run --max-cpus 24 --gpus 1,2,4,8 --batch 64,128 -- python train.py
  rota profile run --pattern 'batch (?<iteration>\\d+)' --data /data/imagenet -- python train.py
  rota profile run --synergy --name res18 --batch 512 -- python pytorch-imagenet.py --dali --amp
  rota profile run --pretend --environment-only --cpus 1,2,3,6,12 --time-scale 60 -- rota-agent emulate --profile synergy --model res50 --time-scale 60";

/// What to measure, and how.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// The training command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// The model's name in the profile [default: the command's program]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Folder for profile.toml, report.html and the runs; a sweep that was broken off goes on there [default: profile-NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Say what would be run and what it costs, and run nothing
    #[arg(long)]
    pub dry_run: bool,

    /// CPU levels for each GPU, such as 1,2,4,8
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_cpus, help_heading = "What is swept")]
    pub cpus: Vec<u64>,
    /// The most CPUs for each GPU, when no levels are named [default: those of this machine]
    #[arg(long, value_name = "N", value_parser = parse_cpus, conflicts_with = "cpus", help_heading = "What is swept")]
    pub max_cpus: Option<u64>,
    /// Memory levels for each GPU, such as 20GB,62.5GB [default with --data: tenths of the data set; otherwise no limit]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_bytes, help_heading = "What is swept")]
    pub memory: Vec<u64>,
    /// Run the memory levels, instead of reckoning them from the data set and the rates of storage and memory
    #[arg(long, requires = "memory", help_heading = "What is swept")]
    pub measure_memory: bool,
    /// GPU counts, such as 1,2,4,8
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "1",
        help_heading = "What is swept"
    )]
    pub gpus: Vec<u32>,
    /// The GPUs' kind, as clusters name it [default: the driver's name]
    #[arg(long, value_name = "NAME", default_value = "", help_heading = "What is swept")]
    pub gpu_type: String,
    /// Global batch sizes, such as 64,128 [default: the command's own]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "What is swept")]
    pub batch: Vec<u32>,

    /// Iterations of one run
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(2..), help_heading = "How much")]
    pub iterations: u64,
    /// Iterations of each run that do not count [default: a tenth]
    #[arg(long, value_name = "N", help_heading = "How much")]
    pub warm_up: Option<u64>,
    /// Count the very first run too: by default it only fills caches
    #[arg(long, help_heading = "How much")]
    pub no_warm_up_run: bool,
    /// A point is run until its 95 % interval is within this part of its time
    #[arg(long, value_name = "PART", default_value = "5%", value_parser = parse_part, help_heading = "How much")]
    pub within: f64,
    /// Runs of one point at most
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..), help_heading = "How much")]
    pub repeats: u32,
    /// Speeds that differ by less are taken for the same
    #[arg(long, value_name = "PART", default_value = "3%", value_parser = parse_part, help_heading = "How much")]
    pub flat: f64,
    /// No run is begun after this time in all
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = Span::parse, help_heading = "How much")]
    pub budget: Span,
    /// A run is stopped after this time
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = Span::parse, help_heading = "How much")]
    pub run_limit: Span,
    /// A run is stopped when nothing is heard of it for this long
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = Span::parse, help_heading = "How much")]
    pub silence: Span,

    /// Where iteration times stand in the output, with a group named iteration, seconds or rate
    #[arg(long, value_name = "REGEX", help_heading = "The command")]
    pub pattern: Option<Pattern>,
    /// The command is a script of Synergy's, unchanged: it takes -b (the batch of one GPU), --workers, --max-iterations and
    /// --job-name, and leaves its average time in `PERF_<job>.txt` where it runs
    #[arg(long, conflicts_with_all = ["pattern", "environment_only", "name_option", "head"], help_heading = "The command")]
    pub synergy: bool,
    /// Tell the command nothing by options: it reads ROTA_ITERATIONS, ROTA_CPUS and so on
    #[arg(long, help_heading = "The command")]
    pub environment_only: bool,
    /// The command's option for the batch size [default: --batch-size]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, help_heading = "The command")]
    pub batch_option: Option<String>,
    /// The command's option for the workers that load data, one for each CPU of a GPU [default: --workers]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, help_heading = "The command")]
    pub workers_option: Option<String>,
    /// The command's option for iterations [default: --max-iterations]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, help_heading = "The command")]
    pub iterations_option: Option<String>,
    /// The command's option for its data [default: --data]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, help_heading = "The command")]
    pub data_option: Option<String>,
    /// The command's option for the job's name [default: none]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, help_heading = "The command")]
    pub name_option: Option<String>,
    /// Another variable of the command's environment
    #[arg(long, value_name = "NAME=VALUE", help_heading = "The command")]
    pub env: Vec<String>,
    /// Where the command runs [default: here]
    #[arg(long, value_name = "DIR", help_heading = "The command")]
    pub directory: Option<PathBuf>,
    /// Tell the command of CPUs, memory and GPUs that need not be there, and limit nothing: for emulated jobs
    #[arg(long, help_heading = "The command")]
    pub pretend: bool,
    /// Seconds of the command's time in one real second, for emulated jobs
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive, help_heading = "The command")]
    pub time_scale: f64,

    /// The folder with the data set: passed on, and measured for the model of memory
    #[arg(long, value_name = "DIR", help_heading = "Data")]
    pub data: Option<PathBuf>,
    /// Size of the data set [default: that of the files in --data]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Data")]
    pub dataset: Option<u64>,
    /// Samples in the data set [default: the number of files in --data]
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub samples: Option<u64>,
    /// Storage rate [default: as `rota profile probe` measured it]
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = "Data")]
    pub storage_rate: Option<u64>,
    /// Memory rate [default: as `rota profile probe` measured it]
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = "Data")]
    pub memory_rate: Option<u64>,

    /// Run the points as jobs of a live cluster, over several nodes: GPU counts and batch sizes; CPUs are the head's to deal
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["cpus", "max_cpus", "memory", "data", "pattern", "pretend"], help_heading = "A live cluster")]
    pub head: Option<String>,
    /// Your certificate and key [default: $ROTA_CREDENTIALS, else what `rota up` wrote]
    #[arg(long, value_name = "DIR", requires = "head", help_heading = "A live cluster")]
    pub credentials: Option<PathBuf>,
    /// One process for each GPU instead of one for each node
    #[arg(long, requires = "head", help_heading = "A live cluster")]
    pub per_gpu: bool,

    /// Run in a container of this image
    #[arg(long, value_name = "IMAGE", help_heading = "Container")]
    pub image: Option<String>,
    /// The container runtime's client with its options
    #[arg(long, value_name = "COMMAND", default_value = "docker", help_heading = "Container")]
    pub container_client: String,
    /// A folder of this machine in the container, as HOST:CONTAINER; data and working folders are there anyway
    #[arg(long, value_name = "HOST:CONTAINER", requires = "image", help_heading = "Container")]
    pub mount: Vec<String>,
    /// How the container is given GPUs: {gpus} is the list of their numbers; empty gives none
    #[arg(
        long,
        value_name = "OPTION",
        default_value = "",
        allow_hyphen_values = true,
        help_heading = "Container"
    )]
    pub container_gpu_flag: String,
    /// Another option for the container
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true, help_heading = "Container")]
    pub container_option: Vec<String>,
}

impl RunArgs {
    /// The model's name.
    pub(super) fn model(&self) -> String {
        let program = self.command.first().map(|program| program.rsplit('/').next().unwrap_or(program));
        self.name.clone().unwrap_or_else(|| program.unwrap_or("job").to_owned())
    }

    /// The folder of results.
    pub(super) fn folder(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| PathBuf::from(format!("profile-{}", self.model())))
    }

    /// What the command is told.
    pub(super) fn invocation(&self) -> Invocation {
        let names = match (self.environment_only, self.synergy) {
            (true, _) => OptionNames::none(),
            (_, true) => OptionNames::synergy(),
            _ => OptionNames::usual(),
        };
        let or = |given: &Option<String>, name: String| given.clone().unwrap_or(name);
        let names = OptionNames {
            batch: or(&self.batch_option, names.batch),
            workers: or(&self.workers_option, names.workers),
            iterations: or(&self.iterations_option, names.iterations),
            data: or(&self.data_option, names.data),
            job_name: or(&self.name_option, names.job_name),
            manner: names.manner,
        };
        let data = self.data.as_ref().map(|data| data.display().to_string());
        let sets_batch = !self.batch.is_empty();
        Invocation::new(&self.command, names, self.iterations, data, Some(self.model()), sets_batch)
    }

    /// The levels, and how exactly they are measured.
    pub(super) fn sweep(&self, dataset: Option<&DataSet>) -> Result<Sweep> {
        let own = std::thread::available_parallelism().map_or(1, usize::from) as u64 * 1_000_000;
        let most_gpus = u64::from(self.gpus.iter().copied().max().unwrap_or(1).max(1));
        let cpus = match (self.cpus.as_slice(), self.max_cpus) {
            // One level that stands for whatever the head deals out.
            _ if self.head.is_some() => vec![1_000_000],
            ([], most) => cpus_up_to(most.unwrap_or((own / most_gpus).max(1_000))),
            (levels, _) => levels.to_vec(),
        };
        let memory = match (self.memory.as_slice(), dataset) {
            ([], Some(dataset)) => tenths(dataset.bytes),
            ([], None) => vec![0],
            (levels, _) => levels.to_vec(),
        };
        if memory.len() > 1 && dataset.is_none() && !self.measure_memory {
            bail!(
                "--memory has several levels: say --measure-memory to run them, or --data DIR to reckon them"
            );
        }
        let batches = if self.batch.is_empty() { vec![0] } else { self.batch.clone() };
        let pairs =
            batches.iter().flat_map(|batch| self.gpus.iter().map(move |gpus| (*batch, (*gpus).max(1))));
        if let Some((batch, gpus)) = pairs.clone().find(|(batch, gpus)| self.synergy && batch % gpus != 0) {
            bail!(
                "--batch {batch}: with --synergy each GPU is told its part, and {gpus} GPUs cannot share it evenly"
            );
        }
        Ok(Sweep {
            grid: Grid::new(&self.gpus, &batches, &cpus, &memory)?,
            memory: if self.measure_memory { MemoryAxis::Measured } else { MemoryAxis::NotMeasured },
            flat: self.flat,
            within: self.within,
            most_runs_of_a_point: self.repeats,
            warms_up: !self.no_warm_up_run,
        })
    }

    /// The container, if one was named.
    pub(super) fn container(&self) -> Result<Option<MeasureContainer>> {
        let Some(image) = &self.image else { return Ok(None) };
        let mounts = self.mount.iter().map(|mount| match mount.split_once(':') {
            Some((host, inside)) if !host.is_empty() && inside.starts_with('/') => {
                Ok((PathBuf::from(host), PathBuf::from(inside)))
            }
            _ => bail!("--mount {mount}: write HOST:CONTAINER, the second from the root"),
        });
        Ok(Some(MeasureContainer {
            client: self.container_client.split_whitespace().map(str::to_owned).collect(),
            image: image.clone(),
            mounts: mounts.collect::<Result<_>>()?,
            gpu_flag: self.container_gpu_flag.clone(),
            options: self.container_option.clone(),
        }))
    }
}

/// A data set as it lies on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataSet {
    pub(super) bytes: u64,
    pub(super) samples: u64,
}

impl DataSet {
    /// Measures a folder, where the options do not say; none without data.
    pub(super) fn of(args: &RunArgs) -> Result<Option<Self>> {
        let found = match &args.data {
            Some(folder) if args.dataset.is_none() || args.samples.is_none() => {
                count(folder).with_context(|| format!("--data {}", folder.display()))?
            }
            _ => (0, 0),
        };
        match (args.dataset.unwrap_or(found.0), args.samples.unwrap_or(found.1)) {
            (0, _) if args.data.is_some() => {
                bail!("--data: the folder is empty; --dataset 140GB says its size")
            }
            (0, _) => Ok(None),
            (_, 0) => bail!("how many samples has the data set? Say it with --samples"),
            (bytes, samples) => Ok(Some(DataSet { bytes, samples })),
        }
    }

    /// The model of what memory does, with rates as given or measured.
    pub(super) fn cache_model(&self, args: &RunArgs, rates: Option<&Rates>, cpus: f64) -> Option<CacheModel> {
        let storage_bps = args.storage_rate.map(|bps| bps as f64).or(rates.map(|rates| rates.storage_bps))?;
        let memory_bps =
            args.memory_rate.map(|bps| bps as f64).or(rates.map(|rates| rates.memory_with(cpus)))?;
        Some(CacheModel { dataset_bytes: self.bytes, samples: self.samples, storage_bps, memory_bps })
    }
}

/// Bytes and files below a folder; links are not followed.
fn count(folder: &Path) -> std::io::Result<(u64, u64)> {
    let mut sum = (0, 0);
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (bytes, files) = match entry.metadata()? {
            metadata if metadata.is_dir() => count(&entry.path())?,
            metadata if metadata.is_file() => (metadata.len(), 1),
            _ => (0, 0),
        };
        sum = (sum.0 + bytes, sum.1 + files);
    }
    Ok(sum)
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("a number greater than 0 is expected".to_owned()),
    }
}
