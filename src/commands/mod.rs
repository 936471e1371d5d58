//! What the user types. Commands are thin: they resolve options and call the rooms that do the work.

mod inputs;
mod progress;
mod report;
mod run;
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
  rota compare                                  the shipped policies on a 128-GPU cluster, in seconds
  rota simulate -p las+tune --jobs 2000 --out out --plot
  rota policy new mine.rhai                     a policy of your own, ready to run: rota compare -p fifo+tune,./mine.rhai+tune
  rota compare --jobs-per-hour 4,6,8,9 -p fifo+proportional,fifo+tune --out sweep
  rota trace stats traces/data/small.csv        what a trace holds";

#[derive(Subcommand)]
enum Command {
    /// Run a workload under one or more policies
    Simulate(run::RunArgs),
    /// Run several policies side by side: one table, one report
    Compare(run::RunArgs),
    /// Import, generate, check, describe and convert traces
    #[command(subcommand)]
    Trace(trace::TraceCommand),
    /// Draw the report of result folders again
    Report(report::ReportArgs),
    /// Run the golden cases of the original programs and name every difference
    Conform(crate::conform::command::ConformArgs),
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
            eprintln!("rota: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Simulate(args) => run::run(&args, &["las+proportional", "las+tune"])?,
        Command::Compare(args) => run::run(
            &args,
            &["fifo+proportional", "fifo+tune", "srtf+proportional", "srtf+tune", "las+proportional", "las+tune"],
        )?,
        Command::Trace(command) => trace::run(&command)?,
        Command::Report(args) => report::run(&args)?,
        Command::Conform(args) => return crate::conform::command::run(args),
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
