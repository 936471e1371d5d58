//! The agent's command line.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use rota_agent::check::{self, Status};
use rota_agent::daemon::{self, DaemonOptions};
use rota_agent::emulate::{self, EmulateOptions};
use rota_agent::measure;
use rota_agent::options::{AccountOptions, HeadOptions, LaunchOptions, NodeOptions, PlaceOptions};
use rota_agent::settings;
use rota_agent::shim::{self, Beginning, nursery};
use rota_transport::logging::{self, LogFilter};

/// The node daemon of Rota: finds GPUs and CPUs, launches and watches jobs, reports to the head.
///
/// Without a command it serves the head named by --head until a signal ends it; jobs go on without it.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(clap::Args)]
struct Serve {
    /// A TOML file with these options as keys, such as `gpus = "0-3"`; options on the command line take precedence
    /// [default: none]
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Which lines to log on standard error: a level (error, warn, info, debug, trace, off), or levels by target, as in
    /// info,rota_agent::daemon=debug
    #[arg(long, value_name = "FILTER", default_value = logging::DEFAULT_FILTER, value_parser = LogFilter::parse)]
    log: LogFilter,
    #[command(flatten)]
    head: HeadOptions,
    #[command(flatten)]
    node: NodeOptions,
    #[command(flatten)]
    places: PlaceOptions,
    #[command(flatten)]
    launch: LaunchOptions,
    #[command(flatten)]
    accounts: AccountOptions,
}

#[derive(Subcommand)]
enum Command {
    /// Check everything an agent needs on this server, with advice for each problem
    Check {
        #[command(flatten)]
        serve: Box<Serve>,
        /// Print the verdicts as JSON
        #[arg(long)]
        json: bool,
    },
    /// Emulate a training job: sleep as a profile says, report progress, write checkpoints, stop when asked
    Emulate(EmulateOptions),
    /// Make shims for the agent at the other end of standard input; agents start this
    #[command(hide = true)]
    Nursery,
    /// Run the command described on standard input once and report on standard output; `rota profile` starts this
    #[command(hide = true)]
    Measure,
    /// Watch one launch; agents start this
    #[command(hide = true)]
    Shim {
        /// The attempt's directory, with `launch.json` in it.
        dir: PathBuf,
        /// The ranks are already running: watch them instead of starting them.
        #[arg(long)]
        adopt: bool,
    },
}

fn main() -> ExitCode {
    let arguments = match settings::parse(Arguments::command(), std::env::args_os().collect()) {
        Ok(Ok(matches)) => Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()),
        Ok(Err(error)) => error.exit(),
        Err(error) => {
            eprintln!("rota-agent: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = match arguments.command {
        None => serve(arguments.serve),
        Some(Command::Check { serve, json }) => return check(*serve, json),
        Some(Command::Emulate(options)) => emulate::run(&options).map_err(anyhow::Error::from),
        Some(Command::Nursery) => logged(LogFilter::default(), nursery::run),
        Some(Command::Measure) => measure::run().map_err(anyhow::Error::from),
        Some(Command::Shim { dir, adopt }) => {
            let beginning = if adopt { Beginning::Adopted } else { Beginning::Fresh };
            logged(LogFilter::default(), || shim::run(&dir, beginning))
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rota-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

impl From<Serve> for DaemonOptions {
    fn from(Serve { settings: _, log: _, head, node, places, launch, accounts }: Serve) -> Self {
        DaemonOptions { head, node, places, launch, accounts }
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Runs a part of the agent that lives long enough to have a log.
fn logged<E>(filter: LogFilter, run: impl FnOnce() -> Result<(), E>) -> anyhow::Result<()>
where
    anyhow::Error: From<E>,
{
    logging::init(filter)?;
    Ok(run()?)
}

fn serve(serve: Serve) -> anyhow::Result<()> {
    let runtime = runtime()?;
    logged(serve.log.clone(), || runtime.block_on(daemon::run(serve.into())))
}

/// What a shell reports for a process that SIGPIPE ended.
const NOT_READ: u8 = 141;

/// Succeeds when nothing is bad.
fn check(serve: Serve, json: bool) -> ExitCode {
    let mut options = DaemonOptions::from(serve);
    let listed = options.node.take_machine().map_err(anyhow::Error::from);
    let checked = listed.and_then(|_| Ok(runtime()?.block_on(check::check(&options))));
    let verdicts = match checked {
        Ok(verdicts) => verdicts,
        Err(error) => {
            eprintln!("rota-agent: {error}");
            return ExitCode::FAILURE;
        }
    };
    let text = match json {
        true => format!("{}\n", serde_json::json!({ "format": 1, "verdicts": verdicts })),
        false => verdicts.iter().map(|verdict| format!("{verdict}\n")).collect(),
    };
    // A reader that has seen enough, as in `rota-agent check | head`, is no reason to panic, as `println!` would.
    if std::io::stdout().write_all(text.as_bytes()).is_err() {
        return ExitCode::from(NOT_READ);
    }
    let is_bad = verdicts.iter().any(|verdict| verdict.status == Status::Bad);
    if is_bad { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
