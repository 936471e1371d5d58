//! What the user types. Commands are thin: they resolve options and call the rooms that do the work.

mod broken_pipe;
mod conform;
mod deploy;
mod diff;
mod doctor;
mod duel;
mod explain;
mod export;
mod help;
mod inputs;
mod live;
mod make_trace;
mod man;
mod play;
mod plots;
mod policy;
mod profile;
mod progress;
mod report;
mod reproduce;
mod rerun;
mod room;
mod run;
mod solve;
mod study;
mod trace;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// A GPU-cluster scheduler for deep-learning training: simulator, lab, live cluster
#[derive(Parser)]
#[command(name = "rota", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What `rota simulate` runs by default.
const SIMULATED: [&str; 2] = ["las+proportional", "las+tune"];

/// What `rota compare` runs by default.
const COMPARED: [&str; 6] =
    ["fifo+proportional", "fifo+tune", "srtf+proportional", "srtf+tune", "las+proportional", "las+tune"];

/// What `rota deploy` runs by default.
const DEPLOYED: [&str; 1] = ["las+tune"];

// A description is one line of `rota --help`: a test keeps it short.
#[derive(Subcommand)]
enum Command {
    /// Run a workload under one or more policies
    #[command(mut_arg("policies", |arg| arg.default_values(SIMULATED)))]
    Simulate(run::RunArgs),
    /// Run several policies on the same workload: one table, one report
    #[command(mut_arg("policies", |arg| arg.default_values(COMPARED)))]
    Compare(run::RunArgs),
    /// Edit a policy in the browser and see what changes
    #[command(mut_args(play::fit), mut_arg("policies", play::against))]
    Play(Box<play::PlayArgs>),
    /// Run a workload on the live cluster, with the options of simulate
    #[command(mut_arg("policies", |arg| arg.default_values(DEPLOYED)))]
    Deploy(Box<deploy::DeployArgs>),
    /// List, show, check, test and time policies, or start your own
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Import, generate, check, describe and convert traces
    #[command(subcommand)]
    Trace(trace::TraceCommand),
    /// Measure, import, compare and show model profiles
    #[command(subcommand)]
    Profile(profile::ProfileCommand),
    /// Write the report page of result folders again
    Report(report::ReportArgs),
    /// Compare Rota with recorded outputs of the original programs
    Conform(conform::ConformArgs),
    /// Explain why a job was declined, waited, was scaled or was late
    Explain(explain::ExplainArgs),
    /// Find the first decision in which two runs differ
    Diff(diff::DiffArgs),
    /// Write results in the log formats of the original programs
    Export(export::ExportArgs),
    /// Run the papers' figures again, next to the published numbers
    #[command(subcommand)]
    Reproduce(reproduce::ReproduceCommand),
    /// Run a batch from a script: many runs, confidence intervals
    Study(Box<study::StudyArgs>),
    /// The live cluster
    #[command(flatten)]
    Live(live::LiveCommand),
    /// Solve an optimisation model, or one decision of a finished run
    Solve(solve::SolveArgs),
    /// Serve one solve for another process: request on standard input, answer on standard output
    #[command(hide = true)]
    SolveChild,
    /// Decide for the head that started this process: requests on standard input, plans on standard output
    #[command(hide = true)]
    DecideChild {
        /// Address space that it may use
        memory_bytes: u64,
        /// Yield to everything else on the machine
        #[arg(long)]
        background: bool,
    },
    /// Check this installation: versions, solver, containers, GPUs
    Doctor(doctor::DoctorArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Try:\n  rota completions bash > /etc/bash_completion.d/rota")]
    Completions {
        /// Shell to write the script for
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of all commands into a folder
    Man {
        /// Folder for rota.1, rota-simulate.1 and so on
        #[arg(value_name = "DIR")]
        folder: std::path::PathBuf,
    },
}

/// Parses the command line, runs the command, prints errors as people want to read them.
pub fn main() -> ExitCode {
    broken_pipe::end_quietly();
    match parse().map_err(anyhow::Error::from).and_then(room::run) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("rota: {}", in_one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// The command line of the live cluster alone.
#[derive(Parser)]
#[command(name = "rota", version)]
struct LiveCli {
    #[command(subcommand)]
    command: live::LiveCommand,
}

/// Parses the command line. To describe all commands takes most of the time that a short one needs, so those that people ask a head
/// with are tried first by themselves; what is not understood, help included, is for the whole, whose messages know everything.
fn parse() -> Result<Command, clap::Error> {
    let first = std::env::args_os().nth(1).and_then(|word| word.into_string().ok()).unwrap_or_default();
    if live::LiveCommand::has_subcommand(&first)
        && let Ok(cli) = LiveCli::try_parse()
    {
        return Ok(Command::Live(cli.command));
    }
    let matches = help::grouped(Cli::command()).get_matches();
    Cli::from_arg_matches(&matches).map(|cli| cli.command)
}

/// An error and its causes; a cause that its effect quotes already is not said twice.
pub(crate) fn in_one_line(error: &anyhow::Error) -> String {
    let join =
        |said: String, cause: String| if said.contains(&cause) { said } else { format!("{said}: {cause}") };
    error.chain().map(ToString::to_string).reduce(join).unwrap_or_default()
}

fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Simulate(args) | Command::Compare(args) => run::run(&args)?,
        Command::Play(args) => play::run(&args)?,
        Command::Deploy(args) => deploy::run(&args)?,
        Command::Policy(command) => return policy::run(&command),
        Command::Trace(command) => trace::run(&command)?,
        Command::Profile(command) => profile::run(&command)?,
        Command::Report(args) => report::run(&args)?,
        Command::Conform(args) => return conform::run(args),
        Command::Explain(args) => explain::run(&args)?,
        Command::Diff(args) => return diff::run(&args),
        Command::Export(args) => export::run(&args)?,
        Command::Reproduce(command) => return reproduce::run(&command),
        Command::Study(args) => return study::run(&args),
        Command::Live(command) => return live::run(&command),
        Command::Solve(args) => return solve::run(&args),
        Command::SolveChild => rota_lab::solve::serve()?,
        Command::DecideChild { memory_bytes, background } => {
            rota_head::serve_decisions(memory_bytes, background)?;
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "rota", &mut script);
            print!("{}", String::from_utf8(script).context("the completions")?);
        }
        Command::Doctor(args) => return doctor::run(&args),
        Command::Man { folder } => man::write(&folder, Cli::command())?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
        LiveCli::command().debug_assert();
    }

    #[test]
    fn commands_of_the_live_cluster_are_the_same_by_themselves() {
        let all = Cli::command();
        for alone in LiveCli::command().get_subcommands_mut() {
            let name = alone.get_name().to_owned();
            let whole = all.find_subcommand(&name).expect("it is one of all");
            let [alone, whole] =
                [alone.clone(), whole.clone()].map(|mut command| command.render_long_help().to_string());
            assert_eq!(alone, whole, "{name}");
            assert!(live::LiveCommand::has_subcommand(&name), "{name}");
        }
    }
}
