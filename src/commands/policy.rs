//! `rota policy`: list, check, test and time policies, or start one of your own.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use rota_scripts::{commands, sample};

use super::duel::{self, DuelArgs};
use super::live::{self, HeadArgs, PolicyArgs};

/// What to do with a policy.
#[derive(Subcommand)]
pub(crate) enum PolicyCommand {
    /// List the scripts that come with Rota
    List,
    /// Print the source of a policy, each part with its header
    Show {
        /// Policy, such as las+tune or ./mine.rhai+tune
        policy: String,
        /// Instead of the source: header, stages and parameters of each part
        #[arg(long)]
        about: bool,
    },
    /// Compile a policy, check the names in it, and try it on a few generated clusters
    Check {
        /// Policy, such as las+tune or ./mine.rhai+tune
        policy: String,
    },
    /// Write a script that runs: a commented starter, or a copy of a shipped script
    New {
        /// Copy this script, such as elasticflow [default: a commented starter]
        #[arg(long, value_name = "NAME")]
        from: Option<String>,
        /// File to write; its name ends in .rhai
        file: PathBuf,
    },
    /// Run the scenarios in a script's comments or in the .scn file next to it
    Test {
        /// Script (.rhai) or scenario file (.scn)
        file: PathBuf,
    },
    /// Time the decisions of a policy on generated clusters
    Bench {
        /// Policy, such as las+tune or ./mine.rhai+tune
        policy: String,
    },
    /// Show where a policy's decisions spend operations and time: by line, by verb, by stack
    Profile {
        /// Policy, such as las+tune or ./mine.rhai+tune
        policy: String,
        /// Nodes of the generated cluster, of 8 GPUs each
        #[arg(long, default_value_t = 64)]
        nodes: u32,
        /// Jobs, one in twenty of which have just arrived
        #[arg(long, default_value_t = 2000)]
        jobs: u32,
        /// Also write the stacks to a file, as flame-graph programs read them [default: not written]
        #[arg(long, value_name = "FILE")]
        folded: Option<PathBuf>,
    },
    /// Search for small cases in which a policy is worse than another, or violates a property
    Duel(Box<DuelArgs>),
    /// Switch the live cluster to another policy
    Set {
        #[command(flatten)]
        head: HeadArgs,
        /// Policy, such as las+tune or ./mine.rhai+tune
        #[arg(value_name = "P")]
        policy: String,
        /// Set a parameter of the policy [default: as the scripts say]
        #[arg(long = "set", value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
    /// Make the live cluster read its policy's scripts again
    Reload(HeadArgs),
    /// Print a Rhai definition file, with which editors complete Rota's names
    Defs,
}

/// Runs one of them; a scenario that does not hold is a failure.
pub(crate) fn run(command: &PolicyCommand) -> Result<ExitCode> {
    match command {
        PolicyCommand::List => print!("{}", commands::list()),
        PolicyCommand::Show { policy, about: true } => print!("{}", commands::about(policy)?),
        PolicyCommand::Show { policy, about: false } => print!("{}", commands::show(policy)?),
        PolicyCommand::Check { policy } => print!("{}", commands::check(policy)?),
        PolicyCommand::New { from, file } => {
            commands::new(file, from.as_deref())?;
            println!("wrote {0}; try: rota policy check {0}", file.display());
        }
        PolicyCommand::Test { file } => return test(file),
        PolicyCommand::Bench { policy } => commands::bench(policy)?.iter().for_each(print_timing),
        PolicyCommand::Profile { policy, nodes, jobs, folded } => {
            let n_new = jobs / 20;
            let profile =
                commands::profile(policy, sample::Size { n_nodes: *nodes, n_old: jobs - n_new, n_new })?;
            print!("{}", profile.text());
            if let Some(path) = folded {
                std::fs::write(path, profile.folded())
                    .with_context(|| format!("cannot write {}", path.display()))?;
                println!("\nwrote {}", path.display());
            }
        }
        PolicyCommand::Duel(args) => return duel::run(args),
        PolicyCommand::Set { head, policy, set } => {
            live::set_policy(head, &PolicyArgs { policy: policy.clone(), set: set.clone() })?;
        }
        PolicyCommand::Reload(head) => live::reload_policy(head)?,
        PolicyCommand::Defs => print!("{}", commands::defs()),
    }
    Ok(ExitCode::SUCCESS)
}

fn test(file: &std::path::Path) -> Result<ExitCode> {
    let reports = commands::test(file)?;
    for report in &reports {
        match report.passes() {
            true => println!("ok      {}", report.name),
            false => print!("FAILED  {}", report.difference()),
        }
    }
    Ok(if reports.iter().all(commands::Report::passes) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_timing(timing: &commands::Timing) {
    let (nodes, jobs) = (timing.size.n_nodes, timing.size.n_old + timing.size.n_new);
    println!(
        "{nodes:>5} nodes {jobs:>6} jobs: median {:>9.1?}, p99 {:>9.1?}, {} operations",
        timing.median, timing.p99, timing.operations
    );
}
