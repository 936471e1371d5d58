//! `rota replay`: a head's journal against the policy that wrote it, or against another.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use rota_core::time::Time;
use rota_traces::format::write_rota;

use super::super::run::parse_set;
use rota_head::recorded::recorded;
use rota_head::replay::replay;
use rota_head::{ProfileText, Record, Rules, read_journal};
use rota_lab::results::replace_file;

/// Which journal to replay, and under which policy.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReplayArgs {
    /// State folder of a head (its --state); the head may be running
    #[arg(value_name = "DIR")]
    pub state: PathBuf,
    /// Policy to ask [default: the one that decided]
    #[arg(short, long, value_name = "P")]
    pub policy: Option<String>,
    /// Set a parameter of the policy [default: as the scripts say]
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "policy")]
    pub set: Vec<String>,
    /// Also write the submitted jobs as a trace, for `rota simulate` and `rota deploy` [default: not written]
    #[arg(long, value_name = "FILE")]
    pub trace_out: Option<PathBuf>,
    /// Also write the journal, one line of JSON for each record [default: not written]
    #[arg(long, value_name = "FILE")]
    pub journal_out: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Replays the journal; a difference under the same policy is a failure.
pub(crate) fn run(args: &ReplayArgs) -> Result<()> {
    let journal = read_journal(&args.state)?;
    let rules = match Rules::last_in(&journal) {
        Some(rules) => rules.clone(),
        // A journal of a head that did not write its rules down yet.
        None => Rules::plain(ProfileText::load("synergy")?),
    };
    if let Some(path) = &args.journal_out {
        replace_file(path, journal_text(&journal)?.as_bytes())?;
    }
    if let Some(path) = &args.trace_out {
        let (workload, cluster) = recorded(&journal, &rules)?;
        replace_file(path, write_rota(&workload, &cluster).as_bytes())?;
        if !args.json {
            eprintln!("{} jobs written to {}", workload.jobs.len(), path.display());
        }
    }
    let set = parse_set(&args.set)?;
    let other = args.policy.as_deref().map(|policy| (policy, set.as_slice()));
    let replayed = replay(&journal, &rules, other)?;
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
            if let Some(difference) = difference.filter(|_| other.is_some()) {
                println!("first difference: {difference}");
            }
        }
    }
    match (difference, other) {
        (Some(difference), None) => bail!("the journal and its replay differ: {difference}"),
        _ => Ok(()),
    }
}

fn journal_text(journal: &[(Time, Record)]) -> Result<String> {
    let mut text = String::new();
    for line in journal {
        text.push_str(&serde_json::to_string(line)?);
        text.push('\n');
    }
    Ok(text)
}
