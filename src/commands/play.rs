//! `rota play`: the policy laboratory in the browser. The page is `rota_play`'s; here choices become options of `rota simulate`,
//! resolved by the same code, so that both mean the same.

mod same;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Arg, Args};
use rota_core::time::Span;
use rota_core::workload::Workload;
use rota_lab::results::{Results, RunResult};
use rota_play::{Bench, Choices, Menus, Play, Prepared, Unresolved, Upload};
use rota_scripts::Source;
use rota_traces::{cluster, generate};

use super::in_one_line;
use super::inputs::Inputs;
use super::run::{self, RunArgs};
use same::Given;

/// The policy in the editor where none is named.
const EDITED: &str = "las+tune";
/// What it is compared with by default.
const AGAINST: [&str; 2] = ["fifo+tune", "srtf+tune"];
/// Options of `simulate` that have no meaning for a page.
const NOT_HERE: [&str; 13] = [
    "set",
    "defects",
    "prioritize",
    "bound",
    "out",
    "overwrite",
    "plot",
    "size",
    "font_size",
    "by",
    "timeline",
    "json",
    "quiet",
];
/// The most jobs of a run while somebody waits.
const MAX_JOBS: usize = 50_000;

/// A policy to edit, what it runs on, and where the page is.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlayArgs {
    /// Policy to edit: parts joined by `+`, each the name of a shipped script, of which you edit a copy, or a file, which is
    /// saved to
    #[arg(value_name = "POLICY", default_value = EDITED)]
    pub policy: String,
    #[command(flatten)]
    pub run: RunArgs,
    /// Open the page in the browser
    #[arg(long, help_heading = "Page")]
    pub open: bool,
    /// Port of the page [default: any that is free]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "Page")]
    pub port: u16,
}

/// Hides an option of `simulate` that a page cannot use.
pub(crate) fn fit(arg: Arg) -> Arg {
    let is_here = !NOT_HERE.contains(&arg.get_id().as_str());
    if is_here { arg } else { arg.hide(true) }
}

/// The policies of `simulate` as what the edited one is compared with.
pub(crate) fn against(arg: Arg) -> Arg {
    let about = "Policies to compare with: parts joined by `+`, each the name of a shipped script or a path; several policies are \
                 separated by commas";
    let arg = arg.short(clap::builder::Resettable::Reset).long("against").default_values(AGAINST);
    arg.help(about).long_help(about)
}

/// Serves the page until it is interrupted.
pub(crate) fn run(args: &PlayArgs) -> Result<()> {
    let given = Given::of_this_process(std::env::args_os().collect::<Vec<OsString>>());
    if let Some(option) = given.names().find(|name| NOT_HERE.iter().any(|id| id.replace('_', "-") == *name)) {
        bail!("--{option}: the page has its own controls for results; `rota simulate` has this option");
    }
    if args.run.inputs.jobs_per_hour.len() > 1 {
        bail!("--jobs-per-hour: the page shows one load at a time, and has a slider for it");
    }
    let bench = CommandLine::new(args.run.clone(), given)?;
    let against = args.run.policies.clone();
    let play = Play { policy: args.policy.clone(), against, bench: Box::new(bench), port: args.port };
    rota_play::serve(play, |address| {
        println!("open {address}");
        println!("the address works once, on this machine; Ctrl-C ends the laboratory");
        if args.open {
            open(address);
        }
    })?;
    Ok(())
}

/// Asks the desktop to open an address; where there is none, it is printed anyway.
fn open(address: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if let Err(error) = std::process::Command::new(opener).arg(address).spawn() {
        eprintln!("--open: {opener} cannot be started: {error}");
    }
}

/// The options of the command line, and those that the page changes.
struct CommandLine {
    args: RunArgs,
    given: Given,
    menus: Menus,
}

impl CommandLine {
    /// Resolves the options once: what is wrong with them is said before a page is served.
    fn new(args: RunArgs, given: Given) -> Result<Self> {
        let inputs = run::prepared(&args)?;
        run::settings(&args, &inputs.loads.first().context("there is no workload")?.workload)?;
        let options = &inputs.options;
        let own_or = |own: &Option<String>, name: &str| own.clone().unwrap_or_else(|| name.to_owned());
        let names = |built_in: &[(&str, &str)], own: &Option<String>| {
            let mut names: Vec<String> = built_in.iter().map(|(name, _)| (*name).to_owned()).collect();
            names.extend(own.clone().filter(|own| !names.contains(own)));
            names
        };
        let trace = args.inputs.trace.as_ref().map(|path| path.display().to_string());
        let defaults = Choices {
            cluster: Some(own_or(&args.inputs.cluster, &inputs.cluster.name)),
            workload: trace.is_none().then(|| own_or(&args.inputs.workload, "default")),
            trace: None,
            jobs: options.jobs.or_else(|| inputs.loads.first().map(|load| load.workload.jobs.len())),
            jobs_per_hour: inputs.loads.first().and_then(|load| load.jobs_per_hour),
            multi_gpu: Some(options.multi_gpu),
            seed: Some(inputs.seed),
            restart_cost_s: args.inputs.restart_cost.map(Span::as_secs_f64),
            estimate_noise: Some(args.estimate_noise),
            mtbf_h: args.mtbf.map(|mtbf| mtbf.as_secs_f64() / 3_600.0),
            round_s: Some(args.round.as_secs_f64()),
        };
        let menus = Menus {
            clusters: names(&cluster::BUILT_IN, &args.inputs.cluster),
            workloads: names(&generate::BUILT_IN, &args.inputs.workload),
            defaults,
            trace,
        };
        Ok(CommandLine { args, given, menus })
    }

    /// The options with what was chosen. Names are those of the menus: a page cannot name files.
    fn args_of(&self, choices: &Choices, uploads: &[Upload]) -> Result<RunArgs> {
        let mut args = self.args.clone();
        let inputs = &mut args.inputs;
        for (name, menu) in
            [(&choices.cluster, &self.menus.clusters), (&choices.workload, &self.menus.workloads)]
        {
            if let Some(name) = name.as_ref().filter(|name| !menu.contains(name)) {
                bail!("there is no `{name}` to choose; there are {}", menu.join(", "));
            }
        }
        inputs.cluster = choices.cluster.clone().or(inputs.cluster.take());
        if let Some(workload) = &choices.workload {
            (inputs.workload, inputs.trace, inputs.format, inputs.map) =
                (Some(workload.clone()), None, None, None);
        }
        if let Some(number) = choices.trace {
            let upload = uploads.get(number).context("that trace is not here any more: upload it again")?;
            (inputs.trace, inputs.workload, inputs.map) = (Some(upload.path.clone()), None, None);
        }
        let number = |value: Option<f64>, what: &str, from: f64, to: f64| match value {
            Some(value) if !(from..=to).contains(&value) => {
                bail!("{what} {value} is not from {from} to {to}")
            }
            value => Ok(value),
        };
        if let Some(jobs) = choices.jobs {
            if !(1..=MAX_JOBS).contains(&jobs) {
                bail!("{jobs} jobs: the page runs 1 to {MAX_JOBS}");
            }
            inputs.jobs = Some(jobs);
        }
        if let Some(load) = number(choices.jobs_per_hour, "a load of", 1e-3, 1e6)? {
            inputs.jobs_per_hour = vec![load];
        }
        // Arrivals come from a trace unless they are drawn.
        if inputs.trace.is_some() && inputs.arrivals != Some(rota_traces::generate::Origin::Drawn) {
            inputs.jobs_per_hour = Vec::new();
        }
        inputs.multi_gpu = choices.multi_gpu.unwrap_or(inputs.multi_gpu);
        inputs.seed = choices.seed.or(inputs.seed);
        let span = |value: Option<f64>, unit_s: f64| value.map(|value| Span::from_secs_f64(value * unit_s));
        let restart = number(choices.restart_cost_s, "a restart cost of", 0.0, 1e6)?;
        inputs.restart_cost = span(restart, 1.0).or(inputs.restart_cost);
        args.estimate_noise =
            number(choices.estimate_noise, "an estimate noise of", 0.0, 10.0)?.unwrap_or(args.estimate_noise);
        args.mtbf =
            span(number(choices.mtbf_h, "a time between failures of", 0.1, 1e7)?, 3_600.0).or(args.mtbf);
        args.round = span(number(choices.round_s, "a round of", 1.0, 1e6)?, 1.0).unwrap_or(args.round);
        Ok(args)
    }

    fn prepare_inputs(&self, choices: &Choices, uploads: &[Upload]) -> Result<Prepared> {
        let args = self.args_of(choices, uploads)?;
        let inputs = run::prepared(&args)?;
        let load = inputs.loads.first().context("there is no workload")?;
        let n_jobs = load.workload.jobs.len();
        if n_jobs > MAX_JOBS {
            bail!("{n_jobs} jobs are too many to wait for: choose at most {MAX_JOBS}");
        }
        let mut settings = run::settings(&args, &load.workload)?;
        settings.keeps_timeline = n_jobs <= run::MOST_JOBS_WITH_TIMELINE;
        Ok(Prepared {
            faults: run::drawn_faults(&args, &inputs, &load.workload)?,
            is_drawn: is_drawn(&args, &inputs)?,
            cluster: Arc::clone(&inputs.cluster),
            workload: Arc::clone(&load.workload),
            settings,
            seed: inputs.seed,
            jobs_per_hour: load.jobs_per_hour,
            window: args.window,
            name: inputs.name.clone(),
        })
    }

    fn results_of(
        &self,
        choices: &Choices,
        uploads: &[Upload],
        sources: Vec<Source>,
        runs: Vec<RunResult>,
    ) -> Result<Results> {
        let args = self.args_of(choices, uploads)?;
        let inputs = run::prepared(&args)?;
        let policies: Vec<String> = runs.iter().map(|run| run.meta.policy.clone()).collect();
        Ok(run::results(&args, &inputs, &policies, sources, runs))
    }
}

/// Whether another seed gives another run. A trace may have everything in it; then it does not.
fn is_drawn(args: &RunArgs, inputs: &Inputs) -> Result<bool> {
    if args.inputs.trace.is_none() || args.mtbf.is_some() {
        return Ok(true);
    }
    let mut other = args.clone();
    other.inputs.seed = Some(inputs.seed.wrapping_add(1));
    let other = run::prepared(&other)?;
    let pairs = inputs.loads.iter().zip(&other.loads);
    Ok(pairs.into_iter().any(|(load, other)| !is_same_work(&load.workload, &other.workload)))
}

fn is_same_work(a: &Workload, b: &Workload) -> bool {
    let jobs = || a.jobs.iter().zip(&b.jobs);
    a.truths == b.truths
        && jobs().all(|(a, b)| {
            (a.arrival, a.gpus.asked, a.estimated_work) == (b.arrival, b.gpus.asked, b.estimated_work)
        })
}

impl Bench for CommandLine {
    fn menus(&self) -> Menus {
        self.menus.clone()
    }

    fn prepare(&self, choices: &Choices, uploads: &[Upload]) -> Result<Prepared, Unresolved> {
        self.prepare_inputs(choices, uploads).map_err(|error| Unresolved(in_one_line(&error)))
    }

    fn command_line(
        &self,
        choices: &Choices,
        uploads: &[Upload],
        policies: &[String],
        set: &[String],
    ) -> String {
        self.given.with(choices, uploads).command_line(policies, set)
    }

    fn study_script(
        &self,
        choices: &Choices,
        uploads: &[Upload],
        policies: &[String],
        set: &[(String, String)],
        n_seeds: u64,
    ) -> String {
        let seed = choices.seed.or(self.menus.defaults.seed).unwrap_or(1);
        self.given.with(choices, uploads).study_script(policies, set, seed, n_seeds)
    }

    fn results(
        &self,
        choices: &Choices,
        uploads: &[Upload],
        sources: Vec<Source>,
        runs: Vec<RunResult>,
    ) -> Result<Results, Unresolved> {
        self.results_of(choices, uploads, sources, runs).map_err(|error| Unresolved(in_one_line(&error)))
    }
}

/// A path as it is written on a command line.
fn file_name(path: &Path) -> PathBuf {
    path.file_name().map_or_else(|| path.to_owned(), PathBuf::from)
}
