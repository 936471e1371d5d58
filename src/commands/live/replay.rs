//! `rota replay`: a head's journal against the policy that wrote it, or against another.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use rota_core::snapshot::Guards;
use rota_core::time::Span;
use rota_traces::profile;

use super::super::run::parse_set;
use crate::head::read_journal;
use crate::head::replay::replay;

/// Which journal.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReplayArgs {
    /// A head's state directory; its head may be running
    #[arg(value_name = "DIR")]
    pub state: PathBuf,
    /// Ask this policy instead of the one that decided
    #[arg(short, long, value_name = "P")]
    pub policy: Option<String>,
    /// Set a parameter of it
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "policy")]
    pub set: Vec<String>,
    /// Profiles, as the head had them
    #[arg(long, value_name = "F", default_value = "synergy")]
    pub profiles: String,
    /// Time between rounds, as the head had it
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "1m")]
    pub round: Span,
    /// A job that has run for less is not preempted, as the head had it
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "0")]
    pub min_run: Span,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Plays it; a difference under the same policy is a failure.
pub(crate) fn run(args: &ReplayArgs) -> Result<()> {
    let journal = read_journal(&args.state)?;
    let profiles = Arc::new(profile::load(&args.profiles)?);
    let guards = Guards { min_run: args.min_run, quota_gpus: BTreeMap::new() };
    let set = parse_set(&args.set)?;
    let other = args.policy.as_deref().map(|policy| (policy, set.as_slice()));
    let replayed = replay(&journal, profiles, guards, args.round, other)?;
    let difference = replayed.first_difference.as_deref();
    match args.json {
        true => println!(
            "{}",
            serde_json::json!({
                "plans": replayed.n_plans, "equal": replayed.n_equal, "without": replayed.n_without,
                "first_difference": difference,
            })
        ),
        false => {
            println!(
                "{} plans, {} equal, {} rounds without one",
                replayed.n_plans, replayed.n_equal, replayed.n_without
            );
            if let Some(difference) = difference {
                println!("first difference: {difference}");
            }
        }
    }
    match (difference, other) {
        (Some(_), None) => bail!("the journal and its replay differ"),
        _ => Ok(()),
    }
}
