//! `rota profile`: measures the speed of a training command, imports and compares profiles.

mod cluster;
mod compare;
mod import;
mod levels;
mod overhead;
mod probe;
mod run;
mod settings;
mod show;

use anyhow::Result;
use clap::Subcommand;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use rota_lab::report::TABLE_STYLE;

/// What to do with profiles.
#[derive(Subcommand)]
pub(crate) enum ProfileCommand {
    /// Measure a training command over CPUs, memory, GPUs and batch sizes, and write its profile
    Run(Box<settings::RunArgs>),
    /// Measure the rates of this machine's storage and memory
    Probe(probe::ProbeArgs),
    /// Time checkpoints, restarts, scaling and migration of a command, next to ElasticFlow's Figure 12
    Overhead(Box<overhead::OverheadArgs>),
    /// Convert profiles of Synergy, ElasticFlow, Gavel or GPEmu
    Import(import::ImportArgs),
    /// Compare two profiles in a table, and on a page with plots
    Compare(compare::CompareArgs),
    /// List the built-in profile sets
    List,
    /// Show the models of a profile set, or the curves of one model
    Show(show::ShowArgs),
}

/// Runs a profile command.
pub(crate) fn run(command: &ProfileCommand) -> Result<()> {
    match command {
        ProfileCommand::Run(args) => run::run(args),
        ProfileCommand::Probe(args) => probe::run(args),
        ProfileCommand::Overhead(args) => overhead::run(args),
        ProfileCommand::Import(args) => import::run(args),
        ProfileCommand::Compare(args) => compare::run(args),
        ProfileCommand::List => show::list_built_in(),
        ProfileCommand::Show(args) => show::run(args),
    }
}

/// A table whose columns after the first `n_texts` hold numbers.
fn new_table(headings: &[&str], n_texts: usize) -> Table {
    let mut table = Table::new();
    table.load_style(TABLE_STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().copied());
    for column in table.column_iter_mut().skip(n_texts) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
