//! `rota solve`: a model in a file, or one decision of a finished run (`at`).

mod at;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use rota_core::time::Span;
use rota_scripts::optimum::OptimumSettings;
use rota_solvers::{Highs, Limits, SolveStatus, Solver, Start, read_model, write_model};

use rota_lab::solve::{Answer, ChildSolver, Fate};

/// What to solve, and for how long.
#[derive(Args, Clone, Debug)]
pub(super) struct SolveArgs {
    /// Model to solve (.mps, .lp, .mps.gz or .lp.gz); with --at, a result folder
    #[arg(value_name = "MODEL|RESULT")]
    pub model: PathBuf,
    /// Show the policy's allocation at this decision of a finished run next to the best one, job by job; 0 is the first row of
    /// rounds.csv [default: solve a model file]
    #[arg(long, value_name = "ROUND")]
    pub at: Option<u64>,
    /// With --at, the run to use, where the folder has several [default: the only one]
    #[arg(long, value_name = "P", requires = "at")]
    pub policy: Option<String>,
    /// Relative gap between objective and bound at which to stop; 0 proves the optimum
    #[arg(long, value_name = "PART", default_value_t = 0.0, help_heading = "Limits")]
    pub gap: f64,
    /// The most branch-and-bound nodes
    #[arg(long, value_name = "N", default_value_t = 1_000_000, help_heading = "Limits")]
    pub nodes: u64,
    /// The most wall-clock time; a solver that exceeds it by more than 10 % and 100 ms is killed
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "10m", help_heading = "Limits")]
    pub wall: Span,
    /// Number of solver threads; with more than one, the result may be another of several optima
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Limits")]
    pub threads: u32,
    /// Seed of the solver's random choices
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Limits")]
    pub seed: u32,
    /// Solve in this process, which cannot be killed at the time limit, instead of a child process
    #[arg(long, help_heading = "Limits")]
    pub in_process: bool,
    /// Also write the model to this file (.mps, .lp, .mps.gz or .lp.gz) [default: not written]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub write: Option<PathBuf>,
    /// Print all variables that are not zero, not only the first 40
    #[arg(long, help_heading = "Output")]
    pub all: bool,
    /// Print JSON instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Solves a model file or one decision. The exit code is 1 when the solver failed; infeasible is an answer.
pub(super) fn run(args: &SolveArgs) -> Result<ExitCode> {
    let wall = Duration::from_micros(u64::try_from(args.wall.0).unwrap_or(0));
    let limits = Limits { nodes: args.nodes, gap: args.gap, seed: args.seed, threads: args.threads, wall };
    if let Some(round) = args.at {
        let settings = OptimumSettings { limits, ..OptimumSettings::default() };
        at::run(round, &args.model, args.policy.as_deref(), &settings)?;
        return Ok(ExitCode::SUCCESS);
    }
    let model = read_model(&args.model)?;
    if let Some(path) = &args.write {
        write_model(path, &model)?;
    }
    let (solution, is_killed) = if args.in_process {
        (Highs.solve(&model, &limits, Start::Cold), false)
    } else {
        let mut solver = ChildSolver::of_this_program()?;
        let solution = solver.solve(&model, &limits, Start::Cold);
        (solution, matches!(solver.fate(), Fate::Killed { .. }))
    };
    let answer = Answer { model: &model, solution: &solution, is_killed };
    print!("{}", if args.json { answer.to_json() } else { answer.to_text(args.all) });
    let has_failed = matches!(solution.status, SolveStatus::Failed { .. });
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
