//! `rota profile`: measure how fast a training command is, read and compare profiles.

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
    /// Measure how fast this machine's storage and memory are, and remember it
    Probe(probe::ProbeArgs),
    /// Time what a checkpoint, a restart, scaling and migration cost a command, beside ElasticFlow's Figure 12
    Overhead(Box<overhead::OverheadArgs>),
    /// Read profiles of Synergy, ElasticFlow, Gavel or GPEmu and write them as Rota's
    Import(import::ImportArgs),
    /// Say where two profiles differ, as a table and as a page with plots
    Compare(compare::CompareArgs),
    /// Show the models of a profile file or built-in set, or the curves of one
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
