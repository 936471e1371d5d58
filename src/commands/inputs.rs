//! From options to a cluster and workloads: what `simulate`, `compare` and `trace` share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use rota_core::cluster::Cluster;
use rota_core::job::Costs;
use rota_core::time::Span;
use rota_core::workload::Workload;
use rota_traces::error::InputError;
use rota_traces::format::{self, ColumnMap, Format, Home, Imported, Lines, Setting};
use rota_traces::generate::{self, DeadlineOptions, Lengths, Origin, PhillyRules, Split, WorkloadOptions};
use rota_traces::originals::{self, ForOriginals};
use rota_traces::profile::{self, ProfileSet};
use rota_traces::rows::{BadRows, DroppedRow};
use rota_traces::source::{STANDARD_INPUT_PATH, Source};
use rota_traces::{cluster, generate::WorkloadFile};

use super::help::names;
use rota_lab::results::Input;

/// What is run, and on what.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputArgs {
    /// Cluster: a file (.toml, Synergy's .ini, a cluster-spec .csv) or a built-in name [default: the one the workload was made
    /// for, `default` for most traces]
    #[arg(long, value_name = "FILE|NAME", help_heading = "Inputs", long_help = cluster_help())]
    pub cluster: Option<String>,
    /// Trace to run, in any format that `rota trace formats` lists; `-` reads standard input [default: a workload is drawn]
    #[arg(long, value_name = "FILE", conflicts_with = "workload", help_heading = "Inputs")]
    pub trace: Option<PathBuf>,
    /// Format of the trace [default: recognised by what the file looks like]
    #[arg(long, value_name = "NAME", help_heading = "Inputs", long_help = format_help())]
    pub format: Option<String>,
    /// Columns of a table of your own, under Rota's names: `arrival_s=submit:min,gpus=num_gpus` [default: none]
    ///
    /// Each pair is Rota's column and yours; behind a colon, the unit of a time (ms, s, min, h, d, or date for 2026-01-31 07:01:55).
    /// Columns that you do not name and that Rota does not know are left out. `docs/traces.md` lists Rota's columns.
    #[arg(long, value_name = "OWN=THEIRS[:UNIT],…", conflicts_with = "format", help_heading = "Inputs")]
    pub map: Option<String>,
    /// Workload to draw: a .toml file or a built-in name [default: default]
    #[arg(long, value_name = "FILE|NAME", help_heading = "Inputs", long_help = workload_help())]
    pub workload: Option<String>,
    /// Model profiles: a .toml file or a built-in set [default: those the workload was made with, `synergy` for most]
    #[arg(long, value_name = "FILE|NAME", help_heading = "Inputs", long_help = profiles_help())]
    pub profiles: Option<String>,
    /// Drop invalid rows of the trace, and list them, instead of refusing the file
    #[arg(long, help_heading = "Inputs")]
    pub skip_bad_rows: bool,

    /// Number of jobs [default: the workload's (2000 in `default`), or all of the trace]
    #[arg(long, value_name = "N", value_parser = some_jobs, allow_negative_numbers = true, help_heading = "Workload")]
    pub jobs: Option<usize>,
    /// Arrivals per hour; with several values, one run for each: `--jobs-per-hour 4,6,8` [default: the workload's (10 in
    /// `default`)]
    #[arg(
        long,
        value_name = "L[,L…]",
        value_delimiter = ',',
        allow_negative_numbers = true,
        help_heading = "Workload"
    )]
    pub jobs_per_hour: Vec<f64>,
    /// Percentages of vision, language and speech models [default: the workload's (20,70,10 in `default`)]
    #[arg(long, value_name = "V,L,S", help_heading = "Workload")]
    pub split: Option<Split>,
    /// Draw jobs of 1, 2, 4 and 8 GPUs instead of 1; with a Philly log, keep its GPU counts
    #[arg(long, help_heading = "Workload")]
    pub multi_gpu: bool,
    /// All jobs arrive at once
    #[arg(long = "static", help_heading = "Workload")]
    pub is_static: bool,
    /// Draw short jobs, half an hour to eight hours (Synergy's small trace), instead of half an hour to a week
    #[arg(long, help_heading = "Workload")]
    pub short: bool,
    /// Take the durations of a trace's jobs from the trace, or draw them [default: trace]
    #[arg(long, value_name = "drawn|trace", help_heading = "Workload")]
    pub durations: Option<Origin>,
    /// Take the arrivals of a trace's jobs from the trace, or draw them at --jobs-per-hour [default: trace]
    #[arg(long, value_name = "drawn|trace", help_heading = "Workload")]
    pub arrivals: Option<Origin>,
    /// Use only jobs of a Philly log submitted between these hours of it, e.g. 2400..3000 [default: the whole log]
    #[arg(long, value_name = "LO..HI", value_parser = parse_hours, help_heading = "Workload")]
    pub log_hours: Option<(f64, f64)>,
    /// Part of the jobs drawn without a deadline, from 0 to 1, where the workload has deadlines [default: the workload's]
    #[arg(long, value_name = "PART", value_parser = parse_part, help_heading = "Workload")]
    pub best_effort: Option<f64>,
    /// Seed of everything drawn at random [default: the workload's, 1 where it names none]
    #[arg(long, value_name = "N", help_heading = "Workload")]
    pub seed: Option<u64>,
    /// Time that each restart of a job costs, for all jobs, e.g. 30s [default: as the profiles say]
    #[arg(long, value_name = "TIME", value_parser = Span::parse, help_heading = "Workload")]
    pub restart_cost: Option<Span>,
    /// Time between a job's checkpoints; a failure loses the work since the last one [default: as the profiles say]
    #[arg(long, value_name = "TIME", value_parser = Span::parse, help_heading = "Workload")]
    pub checkpoint_every: Option<Span>,
}

fn cluster_help() -> String {
    format!(
        "Cluster: a file (.toml, Synergy's .ini, a cluster-spec .csv) or a built-in name\n\n\
         Built in: {}. `default` has 16 servers with 8 GPUs each, `philly` 64. The servers of a cluster-spec .csv have the GPUs \
         that the profiles were measured on. [default: the cluster that the workload was made for, `default` for most traces]",
        names(&cluster::BUILT_IN)
    )
}

fn workload_help() -> String {
    format!(
        "Workload to draw: a .toml file or a built-in name\n\n\
         Built in: {}. `synergy-artifact` draws the jobs that Synergy's own program draws. [default: default]",
        names(&generate::BUILT_IN)
    )
}

fn profiles_help() -> String {
    format!(
        "Model profiles: a .toml file or a built-in set\n\n\
         Built in: {} (`rota profile list` describes them). [default: those that the workload was made with, `synergy` for most]",
        names(&profile::BUILT_IN)
    )
}

fn format_help() -> String {
    let names: Vec<_> = Format::ALL.iter().map(|entry| entry.name).collect();
    format!(
        "Format of the trace, where it is not recognised: {}. `rota trace formats` describes them \
         [default: recognised by what the file looks like]",
        names.join(", ")
    )
}

/// Resolved inputs: everything a run needs.
pub(crate) struct Inputs {
    /// The cluster that the jobs run on.
    pub cluster: Arc<Cluster>,
    /// One for each load; a trace has one, without a load.
    pub loads: Vec<Load>,
    /// The model profiles.
    pub profiles: ProfileSet,
    /// What the workload was drawn or read with; its load is in `loads`.
    pub options: WorkloadOptions,
    /// Seed of everything drawn.
    pub seed: u64,
    /// What was read, with checksums.
    pub files: Vec<Input>,
    /// Name of the trace or workload.
    pub name: String,
}

/// A workload at one load.
pub(crate) struct Load {
    /// Arrivals per hour, where they were asked for as such.
    pub jobs_per_hour: Option<f64>,
    /// The jobs and how much work each really has.
    pub workload: Arc<Workload>,
    /// Rows that were dropped on reading.
    pub dropped: Vec<DroppedRow>,
    /// How a trace was read; none where the workload was drawn.
    pub reading: Option<Reading>,
    /// Run times that the trace states in addition to the work, by job; read only where an original program runs.
    pub durations: Option<Vec<Span>>,
}

/// How a trace was read.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// The format it was in.
    pub format: Format,
    /// Whether that was recognised, and not named.
    pub is_recognised: bool,
    /// Rows left out by the format's rules, what was drawn or invented: a clause each.
    pub clauses: Vec<String>,
    /// The lines that jobs come from.
    pub lines: Lines,
    /// The date of time 0 in seconds since 1970, where the trace has dates.
    pub begins_s: Option<i64>,
}

/// Reads a trace, and the run times that it states where these are asked for.
type ReadTrace =
    fn(&Source, Option<Format>, &Setting<'_>) -> Result<(Imported, Option<Vec<Span>>), InputError>;

impl InputArgs {
    /// The same for a check: rows that make no sense are left out and listed, were it all of them.
    pub(crate) fn resolve_and_list(&self) -> Result<Inputs> {
        self.resolve_by(|source, format, setting| {
            let setting = Setting { bad_rows: BadRows::List, ..setting.clone() };
            Ok((format::read(source, format, &setting)?, None))
        })
    }

    /// Reads and draws what was asked for.
    pub(crate) fn resolve(&self) -> Result<Inputs> {
        self.resolve_by(|source, format, setting| Ok((format::read(source, format, setting)?, None)))
    }

    /// The same for the original programs, some of which go by the run times that a trace states.
    pub(crate) fn resolve_for_originals(&self) -> Result<Inputs> {
        self.resolve_by(|source, format, setting| {
            let ForOriginals { imported, durations } = originals::read(source, format, setting)?;
            Ok((imported, durations))
        })
    }

    fn resolve_by(&self, read: ReadTrace) -> Result<Inputs> {
        let file = match &self.trace {
            Some(_) => None,
            None => Some(generate::load(self.workload.as_deref().unwrap_or("default"))?),
        };
        let source = self.trace.as_deref().map(|path| self.open_trace(path)).transpose()?;
        if self.map.is_some() && source.is_none() {
            bail!("--map names the columns of a trace: say which with --trace FILE");
        }
        let format = self.format.as_deref().map(parse_format).transpose()?;
        let home =
            source.as_ref().map(|source| format::home(source, format)).transpose()?.unwrap_or(Home::DEFAULT);
        let mut files = Vec::new();
        let profiles_name =
            self.profiles.as_deref().or(file.as_ref().map(|f| f.profiles.as_str())).unwrap_or(home.profiles);
        let profiles = profile::load(profiles_name)?;
        let cluster_name =
            self.cluster.as_deref().or(file.as_ref().map(|f| f.cluster.as_str())).unwrap_or(home.cluster);
        let cluster = match profiles.gpu_type() {
            Some(gpu_type) => cluster::load_with(cluster_name, gpu_type)?,
            None => cluster::load(cluster_name)?,
        };
        let cluster = Arc::new(cluster);
        files.push(input("cluster", cluster_name, &cluster::BUILT_IN)?);
        files.push(input("profiles", profiles_name, &profile::BUILT_IN)?);
        let options = self.options(file.as_ref());
        let (name, mut loads) = match (&self.trace, &source, &file) {
            (Some(path), Some(source), _) => {
                files.push(trace_input(path, source)?);
                (source.name.clone(), self.read_trace(read, source, format, &cluster, &profiles, &options)?)
            }
            (_, _, Some(file)) => {
                let name = self.workload.as_deref().unwrap_or("default");
                files.push(input("workload", name, &generate::BUILT_IN)?);
                (file.name.clone(), self.draw(file, &cluster, &profiles, &options)?)
            }
            _ => unreachable!("a workload file is used where no trace is given"),
        };
        for load in &mut loads {
            self.charge_costs(Arc::make_mut(&mut load.workload));
            load.workload.check()?;
        }
        Ok(Inputs { cluster, loads, profiles, seed: options.seed, options, files, name })
    }

    /// The trace, with its columns under Rota's names where `--map` gives them.
    fn open_trace(&self, path: &Path) -> Result<Source> {
        let source = Source::open_trace(path)?;
        match &self.map {
            Some(map) => Ok(map.parse::<ColumnMap>()?.apply(source)),
            None => Ok(source),
        }
    }

    /// Everything that is read, with checksums. Nothing is drawn, so this is a cheap way to learn what a result depends on.
    pub(crate) fn files(&self) -> Result<Vec<Input>> {
        let workload = match &self.trace {
            Some(_) => None,
            None => Some(self.workload.as_deref().unwrap_or("default")),
        };
        let file = workload.map(generate::load).transpose()?;
        let cluster =
            self.cluster.as_deref().or(file.as_ref().map(|f| f.cluster.as_str())).unwrap_or("default");
        let profiles =
            self.profiles.as_deref().or(file.as_ref().map(|f| f.profiles.as_str())).unwrap_or("synergy");
        let mut files = vec![
            input("cluster", cluster, &cluster::BUILT_IN)?,
            input("profiles", profiles, &profile::BUILT_IN)?,
        ];
        if self.trace.as_deref().is_some_and(is_standard_input) {
            bail!(
                "--trace -: this command reads its trace several times, and standard input can be read once: write it to a file"
            );
        }
        files.extend(self.trace.as_ref().map(|path| Input::of_file("trace", path)).transpose()?);
        files.extend(workload.map(|name| input("workload", name, &generate::BUILT_IN)).transpose()?);
        Ok(files)
    }

    fn options(&self, file: Option<&WorkloadFile>) -> WorkloadOptions {
        let base = file.map(|f| f.options.clone()).unwrap_or_default();
        WorkloadOptions {
            jobs: self.jobs.or(base.jobs),
            jobs_per_hour: self.jobs_per_hour.first().copied().unwrap_or(base.jobs_per_hour),
            is_static: self.is_static || base.is_static,
            split: self.split.clone().unwrap_or(base.split),
            multi_gpu: self.multi_gpu || base.multi_gpu,
            lengths: if self.short { Lengths::Short } else { base.lengths },
            durations: self.durations.unwrap_or(base.durations),
            arrivals: self.arrivals.unwrap_or(base.arrivals),
            philly: PhillyRules { hours: self.log_hours.or(base.philly.hours), ..base.philly },
            deadlines: DeadlineOptions {
                best_effort: self.best_effort.unwrap_or(base.deadlines.best_effort),
                ..base.deadlines
            },
            seed: self.seed.unwrap_or(base.seed),
            ..base
        }
    }

    fn draw(
        &self,
        file: &WorkloadFile,
        cluster: &Cluster,
        profiles: &ProfileSet,
        options: &WorkloadOptions,
    ) -> Result<Vec<Load>> {
        let loads = if self.jobs_per_hour.is_empty() { &file.loads } else { &self.jobs_per_hour };
        let draw = |load: &f64| {
            let options = WorkloadOptions { jobs_per_hour: *load, ..options.clone() };
            let workload = Arc::new(generate::generate(cluster, profiles, &options)?);
            Ok(Load {
                jobs_per_hour: (!options.is_static).then_some(*load),
                workload,
                dropped: Vec::new(),
                reading: None,
                durations: None,
            })
        };
        loads.iter().map(draw).collect()
    }

    fn read_trace(
        &self,
        read: ReadTrace,
        source: &Source,
        format: Option<Format>,
        cluster: &Cluster,
        profiles: &ProfileSet,
        options: &WorkloadOptions,
    ) -> Result<Vec<Load>> {
        let is_drawn = options.arrivals == Origin::Drawn;
        let loads = match (is_drawn, self.jobs_per_hour.as_slice()) {
            (true, []) => vec![options.jobs_per_hour],
            (true, loads) => loads.to_vec(),
            (false, []) => vec![options.jobs_per_hour],
            (false, _) => bail!(
                "--jobs-per-hour needs --arrivals drawn: the arrivals of {} come from the trace",
                source.name
            ),
        };
        let bad_rows = if self.skip_bad_rows { BadRows::Skip } else { BadRows::Refuse };
        let known = format.map_or_else(|| format::detect(source), Ok)?;
        let at_load = |load: &f64| {
            let options = WorkloadOptions { jobs_per_hour: *load, ..options.clone() };
            let setting = Setting { cluster, profiles, bad_rows, options };
            let (imported, durations) = read(source, Some(known), &setting)?;
            let clauses = imported.filtered.clauses().into_iter().chain(imported.remarks).collect();
            let reading = Reading {
                format: known,
                is_recognised: format.is_none(),
                clauses,
                lines: imported.lines,
                begins_s: imported.begins_s,
            };
            Ok(Load {
                jobs_per_hour: is_drawn.then_some(*load),
                workload: Arc::new(imported.workload),
                dropped: imported.dropped,
                reading: Some(reading),
                durations,
            })
        };
        loads.iter().map(at_load).collect()
    }

    fn charge_costs(&self, workload: &mut Workload) {
        if self.restart_cost.is_none() && self.checkpoint_every.is_none() {
            return;
        }
        for job in &mut workload.jobs {
            let own = job.costs();
            Arc::make_mut(job).costs = Some(Costs {
                restart: self.restart_cost.unwrap_or(own.restart),
                checkpoint: own.checkpoint,
                checkpoint_every: self.checkpoint_every.unwrap_or(own.checkpoint_every),
            });
        }
    }
}

fn some_jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a whole number of jobs, at least 1".into()),
        Ok(jobs) => Ok(jobs),
    }
}

fn parse_part(text: &str) -> Result<f64, String> {
    let part = text.parse::<f64>().ok().filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| format!("`{text}` is not a part: write a number from 0 to 1"))
}

pub(crate) fn parse_hours(text: &str) -> Result<(f64, f64), String> {
    let parts = text.split_once("..").and_then(|(lo, hi)| Some((lo.parse().ok()?, hi.parse().ok()?)));
    let range = parts.filter(|(lo, hi): &(f64, f64)| lo < hi && hi.is_finite());
    range.ok_or_else(|| format!("`{text}` is not a range of hours: write LO..HI, as in 2400..3000"))
}

/// A format by its name.
pub(crate) fn parse_format(name: &str) -> Result<Format> {
    let found = Format::ALL.iter().find(|entry| entry.name == name).map(|entry| entry.format);
    found.with_context(|| {
        let names: Vec<_> = Format::ALL.iter().map(|entry| entry.name).collect();
        format!("`{name}` is not a trace format; the formats are {}", names.join(", "))
    })
}

/// Whether a path means standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT_PATH)
}

/// The checksum of a trace. Standard input can be read once, so its text is what was read.
fn trace_input(path: &Path, source: &Source) -> Result<Input> {
    match (is_standard_input(path), path.is_file()) {
        (true, _) => Ok(Input::of_bytes("trace", STANDARD_INPUT_PATH, source.text.as_bytes())),
        // A file of an archive has no checksum on the disk.
        (false, false) => Ok(Input::of_bytes("trace", &source.name, source.text.as_bytes())),
        (false, true) => Ok(Input::of_file("trace", path)?),
    }
}

/// The checksum of something read by name: built in, or a file.
pub(crate) fn input(role: &str, name: &str, built_in: &[(&str, &str)]) -> Result<Input> {
    match built_in.iter().find(|(n, _)| *n == name) {
        Some((_, text)) => Ok(Input::of_bytes(role, name, text.as_bytes())),
        None => Ok(Input::of_file(role, Path::new(name))?),
    }
}
