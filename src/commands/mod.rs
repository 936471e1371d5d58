//! What the user types. Commands are thin: they resolve options and call the rooms that do the work.

mod conform;
mod deploy;
mod diff;
mod duel;
mod explain;
mod export;
mod inputs;
mod live;
mod plots;
mod policy;
mod profile;
mod progress;
mod report;
mod reproduce;
mod rerun;
mod run;
mod solve;
mod study;
mod trace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

/// A GPU-cluster scheduler for deep-learning training: simulator, laboratory and runtime
#[derive(Parser)]
#[command(name = "rota", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Try:
  rota compare                       the shipped policies on 128 GPUs, in seconds
  rota simulate -p las+tune --out out --plot
  rota policy new mine.rhai          a policy of your own, ready to run
  rota compare -p fifo+tune,./mine.rhai+tune
  rota compare --jobs-per-hour 4,6,8,9 --out sweep
  rota trace stats traces/data/synergy-100.csv
  rota up 2                          a live cluster of emulated GPUs on this machine, then: rota submit, rota top";

#[derive(Subcommand)]
enum Command {
    /// Run a workload under one or more policies
    Simulate(run::RunArgs),
    /// Run several policies side by side: one table, one report
    Compare(run::RunArgs),
    /// Run a workload on the live cluster: the same options and the same result folder as simulate
    Deploy(Box<deploy::DeployArgs>),
    /// List, show, check, test and measure policies, or start one
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Import, generate, check, describe and convert traces
    #[command(subcommand)]
    Trace(trace::TraceCommand),
    /// Measure, import, compare and show model profiles
    #[command(subcommand)]
    Profile(profile::ProfileCommand),
    /// Draw the report of result folders again
    Report(report::ReportArgs),
    /// Run the golden cases of the original programs and name every difference
    Conform(conform::ConformArgs),
    /// Say why a job was declined, waited, was scaled or missed its deadline
    Explain(explain::ExplainArgs),
    /// Name the first decision in which two runs differ, with the state around it
    Diff(diff::DiffArgs),
    /// Write results in the log formats of the original programs
    Export(export::ExportArgs),
    /// Run the papers' figures again, published numbers beside ours
    #[command(subcommand)]
    Reproduce(reproduce::ReproduceCommand),
    /// Run a scripted batch: policies x loads x seeds, on all cores, resumable, with intervals of confidence
    Study(Box<study::StudyArgs>),
    /// The live cluster
    #[command(flatten)]
    Live(live::LiveCommand),
    /// Solve an optimisation model
    Solve(solve::SolveArgs),
    /// The other end of a solve that can be killed: a request on standard input, the answer on standard output
    #[command(hide = true)]
    SolveChild,
    /// Print shell completions: `rota completions bash > /etc/bash_completion.d/rota`
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Parses the command line, runs the command, prints errors as people want to read them.
pub fn main() -> ExitCode {
    match dispatch(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("rota: {}", in_one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes; a cause that its effect quotes already is not said twice.
pub(crate) fn in_one_line(error: &anyhow::Error) -> String {
    let join =
        |said: String, cause: String| if said.contains(&cause) { said } else { format!("{said}: {cause}") };
    error.chain().map(ToString::to_string).reduce(join).unwrap_or_default()
}

fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Simulate(args) => run::run(&args, &["las+proportional", "las+tune"])?,
        Command::Compare(args) => run::run(
            &args,
            &[
                "fifo+proportional",
                "fifo+tune",
                "srtf+proportional",
                "srtf+tune",
                "las+proportional",
                "las+tune",
            ],
        )?,
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
        Command::Live(command) => live::run(&command)?,
        Command::Solve(args) => return solve::run(&args),
        Command::SolveChild => rota_lab::solve::serve()?,
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "rota", &mut std::io::stdout());
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
