//! Commands of the live cluster: `head`, `up`, `pki`, and what people ask a running head.

mod change;
mod client;
mod head;
mod history;
mod join;
mod pki;
mod replay;
mod show;
mod submit;
mod up;
mod wait;
mod web;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use rota_core::ids::JobId;
use rota_transport::message::{FromUser, JobChange, WhichJobs};
use rota_transport::value::{Lines, LongText, Name, Text, shown};

pub(crate) use client::{Client, HeadArgs};
pub(crate) use head::HeadRunArgs;
pub(crate) use join::JoinArgs;
pub(crate) use pki::PkiCommand;
pub(crate) use replay::ReplayArgs;
pub(crate) use show::{fetch_jobs, fetch_nodes};
pub(crate) use submit::{SubmitArgs, Template, requests as job_requests, submit as submit_jobs};
pub(crate) use up::{AgentProcess, UpArgs, agent_program, local_agents};
pub(crate) use wait::wait as wait_for_jobs;

use change::{DrainArgs, PriorityArgs, SelectionArgs};
use history::HistoryArgs;
use web::WebCommand;

use super::run::parse_set;

/// Commands of the live cluster.
#[derive(Subcommand)]
pub(crate) enum LiveCommand {
    /// Run the head of a live cluster
    Head(Box<HeadRunArgs>),
    /// Start a cluster of emulated GPUs on this machine, to try it out
    Up(UpArgs),
    /// Create the certificate authority, issue and revoke certificates
    #[command(subcommand)]
    Pki(PkiCommand),
    /// Get a certificate with a one-time token, or renew yours
    ///
    /// The token is one of `rota pki token`; the head must run with --pki. The key is drawn here and never leaves this machine.
    Join(JoinArgs),
    /// Submit a job
    #[command(
        after_help = "Try:\n  rota submit --gpus 2 --time 1h -- python train.py\n  rota submit --emulate --model res50 --gpus 2 --iterations 1000"
    )]
    Submit(Box<SubmitArgs>),
    /// List jobs
    Jobs {
        #[command(flatten)]
        head: HeadArgs,
        /// Also list jobs that have ended
        #[arg(short, long)]
        all: bool,
        /// Numbers of the jobs to list [default: all that have not ended]
        #[arg(value_name = "JOB")]
        jobs: Vec<u32>,
    },
    /// Cancel jobs, by number, range, array, name or user
    #[command(
        after_help = "Try:\n  rota cancel 5-9\n  rota cancel --array 5\n  rota cancel --name train --user ada"
    )]
    Cancel(SelectionArgs),
    /// Keep jobs from running; those that run are stopped
    Hold(SelectionArgs),
    /// Let jobs run that were held
    Release(SelectionArgs),
    /// Stop jobs that run, and queue them again
    Requeue(SelectionArgs),
    /// Set the priority of jobs; above 0 only by operators
    Priority(PriorityArgs),
    /// Print a job's output
    Logs {
        #[command(flatten)]
        head: HeadArgs,
        /// Number of the job
        #[arg(value_name = "JOB")]
        job: u32,
        /// Keep printing until the job has ended
        #[arg(short, long)]
        follow: bool,
    },
    /// List nodes
    Nodes(HeadArgs),
    /// Take a node out of service: its jobs move to other nodes
    #[command(
        after_help = "Try:\n  rota drain node3 --when-idle --reason \"a new fan\"\n  rota drain node3 --undo"
    )]
    Drain(DrainArgs),
    /// Give up an unreachable node: its jobs start elsewhere at once
    #[command(
        after_help = "Danger: the head cannot know whether the node's jobs still run. If they do, they run twice at the same time and may overwrite each other's results. Make sure first that the machine is off, or that none of its jobs is alive."
    )]
    GiveUp {
        #[command(flatten)]
        head: HeadArgs,
        /// Name of the node
        #[arg(value_name = "NODE")]
        node: String,
        /// Says that you have made sure that none of the node's jobs is alive
        #[arg(long)]
        nothing_runs_there: bool,
    },
    /// Print the events of the cluster
    Events {
        #[command(flatten)]
        head: HeadArgs,
        /// First line of the journal to print
        #[arg(long, value_name = "N", default_value_t = 0)]
        from: u64,
        /// Keep printing new events
        #[arg(short, long)]
        follow: bool,
    },
    /// List jobs that have ended, or GPU-hours by user, model, day
    #[command(
        after_help = "Try:\n  rota history --from 7d --state failed\n  rota history --by user,day --csv\n  rota history --out jobs.parquet"
    )]
    History(Box<HistoryArgs>),
    /// Show what another policy would decide now
    Whatif {
        #[command(flatten)]
        head: HeadArgs,
        #[command(flatten)]
        policy: PolicyArgs,
    },
    /// Watch jobs, nodes and queue
    Top {
        #[command(flatten)]
        head: HeadArgs,
        /// Print the screen once and exit
        #[arg(long)]
        once: bool,
    },
    /// Replay a head's journal under the same policy or another
    Replay(ReplayArgs),
    /// Sign in to the head's page
    #[command(subcommand)]
    Web(WebCommand),
}

/// A policy and its parameters.
#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyArgs {
    /// Policy, such as las+tune or ./mine.rhai+tune
    #[arg(short, long, value_name = "P")]
    pub policy: String,
    /// Set a parameter of the policy [default: as the scripts say]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Runs one of them.
pub(crate) fn run(command: &LiveCommand) -> Result<ExitCode> {
    let done = match command {
        LiveCommand::Head(args) => head::run(args),
        LiveCommand::Up(args) => up::run(args),
        LiveCommand::Pki(command) => pki::run(command),
        LiveCommand::Join(args) => join::run(args),
        LiveCommand::Submit(args) => return submit::run(args),
        LiveCommand::Replay(args) => replay::run(args),
        LiveCommand::Web(command) => web::run(command),
        LiveCommand::Jobs { head, all, jobs } => show_jobs(head, *all, jobs),
        LiveCommand::Cancel(args) => change::run(args, JobChange::Cancel),
        LiveCommand::Hold(args) => change::run(args, JobChange::Hold),
        LiveCommand::Release(args) => change::run(args, JobChange::Release),
        LiveCommand::Requeue(args) => change::run(args, JobChange::Requeue),
        LiveCommand::Priority(args) => args.run(),
        LiveCommand::Logs { head, job, follow } => {
            show::logs(&mut Client::new(head)?, JobId(*job), *follow, head.json)
        }
        LiveCommand::Nodes(head) => {
            let views = show::fetch_nodes(&mut Client::new(head)?)?;
            match head.json {
                true => say_json(&views),
                false => {
                    print!("{}", show::nodes_text(&views));
                    Ok(())
                }
            }
        }
        LiveCommand::Drain(args) => change::drain(args),
        LiveCommand::GiveUp { head, node, nothing_runs_there } => give_up(head, node, *nothing_runs_there),
        LiveCommand::Events { head, from, follow } => {
            show::events(&mut Client::new(head)?, *from, *follow, head.json)
        }
        LiveCommand::History(args) => history::run(args),
        LiveCommand::Whatif { head, policy } => {
            let WirePolicy { policy, set, texts } = wire_policy(policy)?;
            let request = match texts.is_empty() {
                true => FromUser::WhatIf { policy, set },
                false => FromUser::WhatIfText { policy, set, texts },
            };
            say(head, &Client::new(head)?.text(&request)?)
        }
        LiveCommand::Top { head, once } => match head.json {
            true => say_json(&Client::new(head)?.status()?),
            false => show::top(&mut Client::new(head)?, *once),
        },
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// Switches the head to another policy and prints its answer.
pub(crate) fn set_policy(head: &HeadArgs, policy: &PolicyArgs) -> Result<()> {
    say(head, &choose_policy(&mut Client::new(head)?, policy)?)
}

/// Switches the head to another policy and returns its answer.
pub(crate) fn choose_policy(client: &mut Client, policy: &PolicyArgs) -> Result<String> {
    let WirePolicy { policy, set, texts } = wire_policy(policy)?;
    client.text(&match texts.is_empty() {
        true => FromUser::SetPolicy { policy, set },
        false => FromUser::SetPolicyText { policy, set, texts },
    })
}

/// Makes the head read its policy's scripts again.
pub(crate) fn reload_policy(head: &HeadArgs) -> Result<()> {
    say(head, &Client::new(head)?.text(&FromUser::ReloadPolicy)?)
}

/// Asks the head to explain a job.
pub(crate) fn explain_job(head: &HeadArgs, job: u32) -> Result<()> {
    say(head, &Client::new(head)?.text(&FromUser::Explain { job: JobId(job) })?)
}

/// Gives up a node, if the person has made sure that nothing runs there.
fn give_up(head: &HeadArgs, node: &str, nothing_runs_there: bool) -> Result<()> {
    if !nothing_runs_there {
        bail!(
            "{node} is not given up: if its jobs still run, they would run twice at the same time. Make sure that the machine is \
             off or that none of its jobs is alive, then say so with --nothing-runs-there"
        );
    }
    Client::new(head)?.text(&FromUser::GiveUp { node: Name::new(node)? })?;
    match head.json {
        true => say_json(&serde_json::json!({ "node": node, "is_given_up": true })),
        false => {
            println!("{node} is given up: its jobs are started elsewhere");
            Ok(())
        }
    }
}

fn show_jobs(head: &HeadArgs, all: bool, jobs: &[u32]) -> Result<()> {
    let which = match (jobs, all) {
        ([], true) => WhichJobs::All,
        ([], false) => WhichJobs::Active,
        (jobs, _) => WhichJobs::These(jobs.iter().map(|job| JobId(*job)).collect()),
    };
    let mut client = Client::new(head)?;
    let views = show::fetch_jobs(&mut client, which)?;
    let starts = show::fetch_starts(&mut client, &views);
    match head.json {
        true => {
            println!("{}", show::jobs_json(&views, &starts)?);
            Ok(())
        }
        false => {
            print!("{}", show::jobs_text(&views, &starts, client.status()?.now));
            Ok(())
        }
    }
}

/// A policy as it is sent: the head reads no files of ours, so scripts go with their texts.
struct WirePolicy {
    policy: Text,
    set: Vec<(Text, Text)>,
    texts: Vec<(Text, LongText)>,
}

fn wire_policy(args: &PolicyArgs) -> Result<WirePolicy> {
    let mut texts: Vec<(PathBuf, Text, LongText)> = Vec::new();
    let mut parts = Vec::new();
    for part in args.policy.split('+').map(str::trim) {
        let (file, stage) = part.rfind(".rhai:").map_or((part, ""), |at| part.split_at(at + ".rhai".len()));
        let is_path = file.contains(std::path::MAIN_SEPARATOR);
        // A name without a folder may be one of the head's own folder of policies.
        let is_here = is_path || (file.ends_with(".rhai") && Path::new(file).exists());
        if !is_here {
            parts.push(part.to_owned());
            continue;
        }
        let path = Path::new(file);
        let name = path.file_name().and_then(|name| name.to_str()).filter(|name| name.ends_with(".rhai"));
        let name = name.with_context(|| format!("{file}: a script's name ends in .rhai"))?;
        let text = std::fs::read_to_string(path).with_context(|| file.to_owned())?;
        let text = LongText::new(text).with_context(|| file.to_owned())?;
        match texts.iter().find(|(_, known, _)| known.as_str() == name) {
            Some((known, _, _)) if known != path => {
                bail!("{} and {file}: two scripts of one name cannot be sent", known.display())
            }
            Some(_) => {}
            None => texts.push((path.to_owned(), Text::new(name)?, text)),
        }
        parts.push(format!("{name}{stage}"));
    }
    let set = parse_set(&args.set)?.into_iter().map(|(key, value)| Ok((Text::new(key)?, Text::new(value)?)));
    Ok(WirePolicy {
        policy: Text::new(parts.join("+"))?,
        set: set.collect::<Result<_>>()?,
        texts: texts.into_iter().map(|(_, name, text)| (name, text)).collect(),
    })
}

fn say(head: &HeadArgs, text: &str) -> Result<()> {
    match head.json {
        true => say_json(&serde_json::json!({ "text": text })),
        false => {
            println!("{}", shown(text, Lines::Kept));
            Ok(())
        }
    }
}

fn say_json(value: &impl serde::Serialize) -> Result<()> {
    println!("{}", show::to_json(value)?);
    Ok(())
}
