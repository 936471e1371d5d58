//! The options of `rota profile run`, and the sweep, invocation and limits that they describe.

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
The command runs many times, for a few iterations each, with more or fewer CPUs. It must accept --max-iterations and --workers (or other options, named with --iterations-option and --workers-option; or have {iterations}, {workers}, {batch}, {gpus}, {data} and {job} among its arguments, which are replaced), or read ROTA_ITERATIONS and ROTA_CPUS (--environment-only). It reports its progress through the job protocol (four lines of Python, docs/job-protocol.md), in its output (--pattern), or as Synergy's scripts do (--synergy).

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
    /// Training command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Name of the model in the profile [default: the command's program]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Folder for profile.toml, report.html and the runs; an interrupted sweep continues there; a folder with other results is
    /// refused [default: profile-NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace other results in that folder
    #[arg(long)]
    pub overwrite: bool,
    /// Print what would be run and how long it would take, and run nothing
    #[arg(long)]
    pub dry_run: bool,

    /// CPUs for each GPU, such as 1,2,4,8 [default: levels up to --max-cpus]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_cpus, help_heading = "Sweep")]
    pub cpus: Vec<u64>,
    /// The most CPUs for each GPU, where --cpus is not given [default: this machine's]
    #[arg(long, value_name = "N", value_parser = parse_cpus, conflicts_with = "cpus", help_heading = "Sweep")]
    pub max_cpus: Option<u64>,
    /// Memory for each GPU, such as 20GB,62.5GB [default: with --data, tenths of the data set; otherwise no limit]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_bytes, help_heading = "Sweep")]
    pub memory: Vec<u64>,
    /// Run the memory levels, instead of computing them from the data set and the rates of storage and memory
    #[arg(long, requires = "memory", help_heading = "Sweep")]
    pub measure_memory: bool,
    /// GPU counts, such as 1,2,4,8
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1", help_heading = "Sweep")]
    pub gpus: Vec<u32>,
    /// Type of the GPUs, as clusters name it [default: the driver's name]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, help_heading = "Sweep")]
    pub gpu_type: String,
    /// Global batch sizes, such as 64,128 [default: the command's own]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Sweep")]
    pub batch: Vec<u32>,

    /// Iterations of each run
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(2..), help_heading = "Runs")]
    pub iterations: u64,
    /// Iterations at the beginning of each run that do not count [default: a tenth]
    #[arg(long, value_name = "N", help_heading = "Runs")]
    pub warm_up: Option<u64>,
    /// Also count the first run, which otherwise only fills caches
    #[arg(long, help_heading = "Runs")]
    pub no_warm_up_run: bool,
    /// Repeat a point until the 95 % confidence interval of its time is within this part of it
    #[arg(long, value_name = "PART", default_value = "5%", value_parser = parse_part, help_heading = "Runs")]
    pub within: f64,
    /// The most runs of one point
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Runs")]
    pub repeats: u32,
    /// Treat speeds that differ by less than this as equal
    #[arg(long, value_name = "PART", default_value = "3%", value_parser = parse_part, help_heading = "Runs")]
    pub flat: f64,
    /// Start no run after this total time
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = Span::parse, help_heading = "Runs")]
    pub budget: Span,
    /// Stop a run after this time
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = Span::parse, help_heading = "Runs")]
    pub run_limit: Span,
    /// Stop a run that has not reported for this time
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = Span::parse, help_heading = "Runs")]
    pub silence: Span,

    /// Regular expression that finds iterations in the output, with a group named iteration, seconds or rate [default: none, the
    /// job protocol]
    #[arg(long, value_name = "REGEX", help_heading = "Command")]
    pub pattern: Option<Pattern>,
    /// The command is an unchanged script of Synergy, which accepts -b (the batch of one GPU), --workers, --max-iterations and
    /// --job-name, and writes its average time into `PERF_<job>.txt` in its working directory
    #[arg(long, conflicts_with_all = ["pattern", "environment_only", "name_option", "head"], help_heading = "Command")]
    pub synergy: bool,
    /// Pass no options to the command; it reads ROTA_ITERATIONS, ROTA_CPUS and the other variables
    #[arg(long, help_heading = "Command")]
    pub environment_only: bool,
    /// The command's option for the batch size [default: --batch-size]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, help_heading = "Command")]
    pub batch_option: Option<String>,
    /// The command's option for the workers that load data, one for each CPU of a GPU [default: --workers]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, help_heading = "Command")]
    pub workers_option: Option<String>,
    /// The command's option for iterations [default: --max-iterations]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, help_heading = "Command")]
    pub iterations_option: Option<String>,
    /// The command's option for its data [default: --data]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, help_heading = "Command")]
    pub data_option: Option<String>,
    /// The command's option for the job's name [default: none]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, help_heading = "Command")]
    pub name_option: Option<String>,
    /// Set an environment variable of the command [default: none]
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Command")]
    pub env: Vec<String>,
    /// Working directory of the command [default: the current one]
    #[arg(long, value_name = "DIR", help_heading = "Command")]
    pub directory: Option<PathBuf>,
    /// Tell the command about CPUs, memory and GPUs that this machine may not have, and limit nothing; for emulated jobs
    #[arg(long, help_heading = "Command")]
    pub pretend: bool,
    /// Seconds of the command's time in one real second, for emulated jobs
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive, help_heading = "Command")]
    pub time_scale: f64,

    /// Folder with the data set, which is passed to the command and measured for the cache model [default: none]
    #[arg(long, value_name = "DIR", help_heading = "Data")]
    pub data: Option<PathBuf>,
    /// Size of the data set [default: the size of the files in --data]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Data")]
    pub dataset: Option<u64>,
    /// Number of samples in the data set [default: the number of files in --data]
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub samples: Option<u64>,
    /// Storage rate [default: as `rota profile probe` measured it]
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = "Data")]
    pub storage_rate: Option<u64>,
    /// Memory rate [default: as `rota profile probe` measured it]
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = "Data")]
    pub memory_rate: Option<u64>,

    /// Address of a head: run the points as jobs of a live cluster, to measure GPU counts and batch sizes over several nodes; CPUs
    /// are chosen by the head [default: run on this machine]
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["cpus", "max_cpus", "memory", "data", "pattern", "pretend"], help_heading = "Live cluster")]
    pub head: Option<String>,
    /// Folder with your certificate and key [default: $ROTA_CREDENTIALS, else the one that `rota up` wrote]
    #[arg(long, value_name = "DIR", requires = "head", help_heading = "Live cluster")]
    pub credentials: Option<PathBuf>,
    /// One process for each GPU instead of one for each node
    #[arg(long, requires = "head", help_heading = "Live cluster")]
    pub per_gpu: bool,

    /// Run in a container of this image [default: as a process]
    #[arg(long, value_name = "IMAGE", help_heading = "Container")]
    pub image: Option<String>,
    /// Client of the container runtime, with its options
    #[arg(long, value_name = "COMMAND", default_value = "docker", help_heading = "Container")]
    pub container_client: String,
    /// Mount a folder of this machine in the container; the data and the working directory are always mounted [default: none]
    #[arg(long, value_name = "HOST:CONTAINER", requires = "image", help_heading = "Container")]
    pub mount: Vec<String>,
    /// Option that gives GPUs to the container; {gpus} is replaced by the list of their numbers [default: none]
    #[arg(
        long,
        value_name = "OPTION",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true,
        help_heading = "Container"
    )]
    pub container_gpu_flag: String,
    /// Another option of the container client [default: none]
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

    /// The levels, and how precisely they are measured.
    pub(super) fn sweep(&self, dataset: Option<&DataSet>) -> Result<Sweep> {
        let own = std::thread::available_parallelism().map_or(1, usize::from) as u64 * 1_000_000;
        let most_gpus = u64::from(self.gpus.iter().copied().max().unwrap_or(1).max(1));
        let cpus = match (self.cpus.as_slice(), self.max_cpus) {
            // One level, which stands for whatever the head chooses.
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
                "--memory has several levels: give --measure-memory to run them, or --data DIR to compute them"
            );
        }
        let batches = if self.batch.is_empty() { vec![0] } else { self.batch.clone() };
        let pairs =
            batches.iter().flat_map(|batch| self.gpus.iter().map(move |gpus| (*batch, (*gpus).max(1))));
        if let Some((batch, gpus)) = pairs.clone().find(|(batch, gpus)| self.synergy && batch % gpus != 0) {
            bail!("--batch {batch}: with --synergy it must be divisible by the number of GPUs, {gpus}");
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
            _ => bail!("--mount {mount}: write HOST:CONTAINER, the second as an absolute path"),
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

/// Size of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataSet {
    pub(super) bytes: u64,
    pub(super) samples: u64,
}

impl DataSet {
    /// From the options, or measured in the folder; none without data.
    pub(super) fn of(args: &RunArgs) -> Result<Option<Self>> {
        let found = match &args.data {
            Some(folder) if args.dataset.is_none() || args.samples.is_none() => {
                count(folder).with_context(|| format!("--data {}", folder.display()))?
            }
            _ => (0, 0),
        };
        match (args.dataset.unwrap_or(found.0), args.samples.unwrap_or(found.1)) {
            (0, _) if args.data.is_some() => {
                bail!("--data: the folder is empty; give the size of the data set, such as --dataset 140GB")
            }
            (0, _) => Ok(None),
            (_, 0) => bail!("the number of samples in the data set is unknown: give --samples N"),
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
        _ => Err("write a number greater than 0".to_owned()),
    }
}
