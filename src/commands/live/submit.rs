//! `rota submit`: a job from flags or a file, once or as an array.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rota_core::ids::JobId;
use rota_core::job::JobSpec;
use rota_core::time::Span;
use rota_transport::message::{
    Container, Dependency, FromUser, JobConditions, JobRequest, JobStart, Launcher, LogLimits, Mount, Needs,
    OnHeadLost, Processes, Pull, ToUser,
};
use rota_transport::value::{Iterations, Text, Wait};
use serde::Deserialize;

use super::change::JobRange;
use super::client::{Client, HeadArgs};
use super::wait::{exit_code, wait};

/// A job.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    pub head: HeadArgs,
    /// Read the job from a TOML file; options on the command line take precedence [default: no file]
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Name of the job [default: the program's name]
    #[arg(short, long, value_name = "NAME")]
    pub name: Option<String>,
    /// Number of GPUs [default: the first of --levels, else 1]
    #[arg(short, long, value_name = "N")]
    pub gpus: Option<u32>,
    /// GPU counts with which an elastic job can run, such as 1,2,4 [default: that of --gpus]
    #[arg(long, value_name = "N,N…", value_delimiter = ',')]
    pub levels: Vec<u32>,
    /// Model, by its name in the head's profiles [default: none]
    #[arg(short, long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Global batch size [default: the profile's]
    #[arg(long, value_name = "N")]
    pub batch: Option<u32>,
    /// Number of iterations [default: unknown, the job runs until it exits]
    #[arg(short, long, value_name = "N")]
    pub iterations: Option<f64>,
    /// Estimated run time of a job without a model, for the policy; it stops nothing [default: --time-limit, else unknown]
    #[arg(short, long, value_name = "TIME", value_parser = Span::parse)]
    pub time: Option<Span>,
    /// Most time that the job may run, over all its launches: then it is stopped, with its grace, and not started again [default:
    /// no limit]
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    pub time_limit: Option<Span>,
    /// Start only when these jobs have ended, in whatever way; ranges such as 5-9 too [default: none]
    #[arg(long, value_name = "JOB", value_delimiter = ',', num_args = 1..)]
    pub after: Vec<JobRange>,
    /// Start only when these jobs have finished their work; if one ends otherwise, the job is declined [default: none]
    #[arg(long, value_name = "JOB", value_delimiter = ',', num_args = 1..)]
    pub after_ok: Vec<JobRange>,
    /// Start only after `rota release`
    #[arg(long)]
    pub hold: bool,
    /// Deadline, counted from now [default: none]
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    pub deadline: Option<Span>,
    /// Priority; orders that respect it run larger ones first; above 0 only by operators [default: 0]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub priority: Option<i32>,
    /// Tenant that the job counts for: one of yours, or any if you are an operator [default: the first that the head's roles file
    /// gives you, else your user name]
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// Run in a container of this image [default: as a process]
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Emulate the job: sleep for as long as the model's profile says, without a program
    #[arg(long)]
    pub emulate: bool,
    /// Set an environment variable of the job [default: none]
    #[arg(short, long, value_name = "KEY=VALUE")]
    pub env: Vec<String>,
    /// Working directory of the job on its nodes [default: the current directory; for emulated jobs a folder of the agent]
    #[arg(long, value_name = "DIR")]
    pub workdir: Option<String>,
    /// One process for each GPU instead of one for each node
    #[arg(long)]
    pub per_gpu: bool,
    /// Keep the job running when its node has no contact to the head for longer than the lease
    #[arg(long)]
    pub keep: bool,
    /// Try the job again this many times if it fails by itself, after 10 s, 20 s, 40 s and so on, up to 10 minutes. Stops ordered by
    /// the head and losses of nodes do not count [default: 0]
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// The same as --retries N-1; for scripts written for earlier versions
    #[arg(long, value_name = "N", hide = true, conflicts_with = "retries", value_parser = clap::value_parser!(u32).range(1..))]
    pub most_failures: Option<u32>,
    /// Time that the job gets to end when it is told to stop, before it is killed [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    pub grace: Option<Span>,
    /// Submit this many copies; ROTA_ARRAY_INDEX is the number of a copy
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub array: u32,
    /// Wait until the job has ended, and return its exit code; 128 and the number of a signal that ended it, 124 at its time limit,
    /// 130 if it was cancelled, 125 if it did not run
    #[arg(short, long)]
    pub wait: bool,
    /// The program and its arguments [default: those of the job file; none with --emulate]
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// A job file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct JobFile {
    name: Option<String>,
    gpus: Option<u32>,
    levels: Vec<u32>,
    model: Option<String>,
    batch: Option<u32>,
    iterations: Option<f64>,
    time: Option<String>,
    time_limit: Option<String>,
    after: Vec<u32>,
    after_ok: Vec<u32>,
    hold: bool,
    deadline: Option<String>,
    priority: Option<i32>,
    tenant: Option<String>,
    gpu_type: Option<String>,
    image: Option<String>,
    pull: Option<String>,
    mounts: Vec<String>,
    network: Option<String>,
    emulate: bool,
    command: Vec<String>,
    env: std::collections::BTreeMap<String, String>,
    workdir: Option<String>,
    checkpoint_dir: Option<String>,
    checkpoint_every: Option<String>,
    per_gpu: bool,
    keep: bool,
    grace: Option<String>,
    retries: Option<u32>,
    /// One more than the retries; for files written for earlier versions.
    most_failures: Option<u32>,
}

/// How jobs of a trace are started: a job file with places for what differs, or emulated ones.
pub(crate) struct Template {
    file: JobFile,
}

impl Template {
    /// From a file; without one, jobs are emulated.
    pub(crate) fn read(path: Option<&Path>) -> Result<Self> {
        let file = match path {
            Some(path) => read_file(path)?,
            None => JobFile { emulate: true, ..JobFile::default() },
        };
        Ok(Template { file })
    }

    /// For one job.
    pub(crate) fn start(&self, spec: &JobSpec, work: f64) -> Result<JobStart> {
        let fill = |text: &String| {
            text.replace("{model}", &spec.profile.name)
                .replace("{batch}", &spec.batch.to_string())
                .replace("{iterations}", &work.to_string())
                .replace("{gpus}", &spec.gpus.asked.to_string())
                .replace("{name}", &spec.name)
        };
        let mut file = self.file.clone();
        file.env.values_mut().for_each(|value| *value = fill(value));
        file.checkpoint_dir = file.checkpoint_dir.as_ref().map(fill);
        file.workdir = file.workdir.as_ref().map(fill);
        file.image = file.image.as_ref().map(fill);
        let command: Vec<_> = file.command.iter().map(fill).collect();
        start(&Overrides::default(), &file, &command)
    }
}

/// Submits, and waits if asked to: then it returns what the job ended with.
pub(crate) fn run(args: &SubmitArgs) -> Result<ExitCode> {
    let jobs = requests(args)?;
    let mut client = Client::new(&args.head)?;
    let ids = submit(&mut client, jobs)?;
    if args.head.json {
        println!("{}", serde_json::to_string(&ids)?);
    } else {
        for id in &ids {
            println!("job {id}");
        }
    }
    if !args.wait {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(exit_code(&wait(&mut client, &ids)?))
}

/// What flags and file ask for: a job, or an array of them.
pub(crate) fn requests(args: &SubmitArgs) -> Result<Vec<JobRequest>> {
    let file = args.file.as_deref().map(read_file).transpose()?.unwrap_or_default();
    let job = request(args, &file)?;
    (0..args.array.max(1))
        .map(|index| {
            let mut job = job.clone();
            if args.array > 1 {
                job.start.env.push((Text::new("ROTA_ARRAY_INDEX")?, Text::new(index.to_string())?));
            }
            Ok(job)
        })
        .collect()
}

/// Submits jobs to the head; repeating the request after a broken connection submits nothing twice.
pub(crate) fn submit(client: &mut Client, jobs: Vec<JobRequest>) -> Result<Vec<JobId>> {
    let request = FromUser::Submit { jobs, key: rand::random() };
    let mut ids = Vec::new();
    client.ask(&request, |answer| {
        if let ToUser::Submitted(found) = answer {
            ids = found;
        }
        Ok(())
    })?;
    Ok(ids)
}

fn read_file(path: &Path) -> Result<JobFile> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}

fn request(args: &SubmitArgs, file: &JobFile) -> Result<JobRequest> {
    let span = |text: &Option<String>| text.as_deref().map(Span::parse).transpose();
    let command = if args.command.is_empty() { &file.command } else { &args.command };
    let time = args.time.or(span(&file.time)?);
    let model = args.model.clone().or(file.model.clone()).unwrap_or_default();
    let is_emulated = args.emulate || file.emulate;
    let iterations = args.iterations.or(file.iterations);
    let work = match (iterations, time) {
        (Some(iterations), _) => iterations,
        (None, Some(time)) => time.as_secs_f64(),
        // It runs until it exits.
        (None, None) if model.is_empty() && !is_emulated => 0.0,
        (None, None) => bail!("the amount of work is unknown: give --iterations N or --time TIME"),
    };
    let name = args.name.clone().or(file.name.clone());
    let name = name.or_else(|| command.first().cloned()).unwrap_or_else(|| "job".into());
    let deadline = args.deadline.or(span(&file.deadline)?);
    let levels = if args.levels.is_empty() { file.levels.clone() } else { args.levels.clone() };
    let overrides = Overrides {
        image: args.image.clone(),
        emulate: args.emulate,
        env: args.env.clone(),
        workdir: args.workdir.clone(),
        per_gpu: args.per_gpu,
        keep: args.keep,
        grace: args.grace,
        most_failures: most_failures(args.retries, args.most_failures),
    };
    let gpus = args.gpus.or(file.gpus).or(levels.first().copied()).unwrap_or(1);
    Ok(JobRequest {
        name: Text::new(name)?,
        tenant: text(args.tenant.as_ref().or(file.tenant.as_ref()))?,
        priority: args.priority.or(file.priority).unwrap_or(0),
        model: Text::new(model)?,
        batch: args.batch.or(file.batch).unwrap_or(0),
        gpus,
        levels,
        gpu_type: text(file.gpu_type.as_ref())?,
        work: Iterations::new(work)?,
        deadline: deadline.map(Wait::new).transpose()?,
        start: start(&overrides, file, command)?,
        conditions: conditions(args, file)?,
    })
}

/// When the job may begin, and for how long it may run.
fn conditions(args: &SubmitArgs, file: &JobFile) -> Result<JobConditions> {
    let limit = file.time_limit.as_deref().map(Span::parse).transpose()?;
    let limit = args.time_limit.or(limit).map(Wait::new).transpose()?;
    let after = |ranges: &[JobRange], file: &[u32], needs| {
        let named: Vec<JobId> = match ranges {
            [] => file.iter().map(|job| JobId(*job)).collect(),
            ranges => ranges.iter().flat_map(|range| range.jobs()).collect(),
        };
        named.into_iter().map(move |job| Dependency { job, needs })
    };
    let ended = after(&args.after, &file.after, Needs::Ended);
    let finished = after(&args.after_ok, &file.after_ok, Needs::Finished);
    Ok(JobConditions {
        time_limit: limit,
        after: ended.chain(finished).collect(),
        is_held: args.hold || file.hold,
    })
}

/// Options of the command line, which take precedence over the file.
#[derive(Default)]
struct Overrides {
    image: Option<String>,
    emulate: bool,
    env: Vec<String>,
    workdir: Option<String>,
    per_gpu: bool,
    keep: bool,
    grace: Option<Span>,
    most_failures: Option<u32>,
}

/// With how many failures a job is given up; none if nothing was said.
fn most_failures(retries: Option<u32>, most_failures: Option<u32>) -> Option<u32> {
    retries.map(|retries| retries.saturating_add(1)).or(most_failures)
}

fn start(args: &Overrides, file: &JobFile, command: &[String]) -> Result<JobStart> {
    let span = |text: &Option<String>| text.as_deref().map(Span::parse).transpose();
    let mut env = Vec::new();
    for (key, value) in &file.env {
        env.push((Text::new(key.as_str())?, Text::new(value.as_str())?));
    }
    for pair in &args.env {
        let (key, value) = pair.split_once('=').with_context(|| format!("--env {pair}: write KEY=VALUE"))?;
        env.push((Text::new(key)?, Text::new(value)?));
    }
    let is_per_gpu = args.per_gpu || file.per_gpu;
    Ok(JobStart {
        launcher: launcher(args, file, command)?,
        argv: command.iter().map(|word| Text::new(word.as_str())).collect::<Result<_, _>>()?,
        env,
        working_directory: working_directory(args, file)?,
        checkpoint_directory: text(file.checkpoint_dir.as_ref())?,
        processes: if is_per_gpu { Processes::PerGpu } else { Processes::PerNode },
        on_head_lost: if args.keep || file.keep { OnHeadLost::Keep } else { OnHeadLost::Stop },
        log: LogLimits { file_bytes: 16 << 20, n_files: 4 },
        grace: Wait::new(args.grace.or(span(&file.grace)?).unwrap_or(Span::from_secs(30)))?,
        restart: Wait::NONE,
        checkpoint_every: Wait::new(span(&file.checkpoint_every)?.unwrap_or(Span::ZERO))?,
        most_failures: args
            .most_failures
            .or(most_failures(file.retries, file.most_failures))
            .unwrap_or(1)
            .max(1),
    })
}

/// The directory that was named, or the one in which the command was typed: nodes usually share people's homes.
fn working_directory(args: &Overrides, file: &JobFile) -> Result<Text> {
    let named = args.workdir.as_ref().or(file.workdir.as_ref());
    if named.is_some() || args.emulate || file.emulate {
        return text(named);
    }
    let here = std::env::current_dir().ok().and_then(|path| path.to_str().map(str::to_owned));
    text(here.as_ref())
}

fn launcher(args: &Overrides, file: &JobFile, command: &[String]) -> Result<Launcher> {
    let image = args.image.as_ref().or(file.image.as_ref());
    match (args.emulate || file.emulate, image) {
        (true, _) => Ok(Launcher::Emulated),
        (false, None) if command.is_empty() => {
            bail!("nothing to run: give a command after --, an --image, or --emulate")
        }
        (false, None) => Ok(Launcher::Process),
        (false, Some(image)) => Ok(Launcher::Container(Container {
            image: Text::new(image.as_str())?,
            pull: match file.pull.as_deref() {
                None | Some("missing") => Pull::Missing,
                Some("always") => Pull::Always,
                Some("never") => Pull::Never,
                Some(other) => bail!("pull = \"{other}\": write missing, always or never"),
            },
            mounts: file.mounts.iter().map(|mount| parse_mount(mount)).collect::<Result<_>>()?,
            network: text(file.network.as_ref())?,
            gpu_flag: Text::new("")?,
        })),
    }
}

fn parse_mount(mount: &str) -> Result<Mount> {
    let mut parts = mount.split(':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(source), Some(target), mode @ (None | Some("ro")), None) => {
            Ok(Mount { source: Text::new(source)?, target: Text::new(target)?, is_read_only: mode.is_some() })
        }
        _ => bail!("mount `{mount}`: write SOURCE:TARGET or SOURCE:TARGET:ro"),
    }
}

fn text(text: Option<&String>) -> Result<Text> {
    Ok(Text::new(text.cloned().unwrap_or_default())?)
}
