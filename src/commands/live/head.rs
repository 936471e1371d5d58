//! `rota head`: options of the scheduler of a live cluster.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use rota_core::time::Span;
use rota_traces::units::Bytes;
use rota_transport::logging::{self, DEFAULT_FILTER, LogFilter};
use rota_transport::session::Terms;

use crate::commands::run::parse_set;
use rota_head::{HeadSettings, KeepJournal, ProfileText, Rules};

/// How the head runs.
#[derive(Args, Clone, Debug)]
pub(crate) struct HeadRunArgs {
    /// Address and UDP port to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "[::]:4433")]
    pub listen: SocketAddr,
    /// Folder for the journal and everything else that must survive a restart
    #[arg(long, value_name = "DIR", default_value = "rota-head")]
    pub state: PathBuf,
    /// Folder with the head's certificate and key, as written by `rota pki init`
    #[arg(long, value_name = "DIR", default_value = "pki/head")]
    pub credentials: PathBuf,
    /// Folder of the authority: holders of one-time tokens (`rota pki token`) get certificates from this head, and agents
    /// renew theirs in time [default: the head issues no certificates]
    #[arg(long, value_name = "DIR")]
    pub pki: Option<PathBuf>,
    /// File with people's roles and tenants, a line for each: `NAME ROLE [TENANT,TENANT]`. ROLE is submit, operate, admin, none,
    /// or - for the one in the certificate. Read again when it changes [default: certificates alone count]
    #[arg(long, value_name = "FILE")]
    pub roles: Option<PathBuf>,
    /// Folder with scripts that operators may choose by file name, as in `rota policy set site.rhai+tune` [default: none]
    #[arg(long, value_name = "DIR")]
    pub policy_dir: Option<PathBuf>,
    /// Policy [default: the last one in use; las+tune at the first start]
    #[arg(short, long, value_name = "P")]
    pub policy: Option<String>,
    /// Set a parameter of the policy
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "policy")]
    pub set: Vec<String>,
    /// Profiles of the models that jobs may name: a file or a built-in set
    #[arg(long, value_name = "FILE|NAME", default_value = "synergy")]
    pub profiles: String,
    /// Time between scheduling rounds
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "1m")]
    pub round: Span,
    /// Decide only when a round is due, not as soon as a job arrives or ends or a node fails
    #[arg(long)]
    pub on_grid: bool,
    /// Least real time between two rounds; it is at least twice the time the last one took, up to a second
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "0")]
    pub least_gap: Span,
    /// Number of agents that must be connected before the first round
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub wait_for: usize,
    /// How long an agent keeps jobs running without contact to the head
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "20s")]
    pub lease: Span,
    /// Time between heartbeats
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "2s")]
    pub heartbeat: Span,
    /// Do not preempt a job that has run for less than this; a round that is held early preempts no job younger than a round
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "0")]
    pub min_run: Span,
    /// The most GPUs a tenant may hold, e.g. `--quota vision=32`; a job without a tenant counts for its user's name
    #[arg(long, value_name = "TENANT=GPUS", value_parser = parse_quota)]
    pub quota: Vec<(String, u32)>,
    /// Copy checkpoints to the node that a job moves to, instead of expecting the agents' --checkpoint-dir to be a shared folder
    #[arg(long)]
    pub copy_checkpoints: bool,
    /// Allow `rota deploy --fast-forward` to skip time in which nothing happens; for experiments
    #[arg(long)]
    pub fast_forward: bool,
    /// Seconds of the jobs' time in one real second, for emulated jobs
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub time_scale: f64,
    /// Keep at least this span of the journal, for `rota replay` and `rota deploy`; older lines leave it while the head runs. The
    /// history of jobs and events is kept in any case
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "30d")]
    pub keep_journal: Span,
    /// Keep at most about so many bytes of the journal, even if that is less than --keep-journal says
    #[arg(long, value_name = "BYTES", default_value = "2GB")]
    pub keep_journal_bytes: Bytes,
    /// Write down the whole state after so many lines of the journal; a restart reads what was written last, and the lines after it
    #[arg(long, value_name = "LINES", value_parser = clap::value_parser!(u64).range(1..), default_value_t = 20_000)]
    pub image_every: u64,
    /// What to log on standard error: a level (error, warn, info, debug, trace, off), or levels by target, as in
    /// `info,rota_head=debug`
    #[arg(long, value_name = "LEVEL|FILTER", value_parser = LogFilter::parse, default_value = DEFAULT_FILTER)]
    pub log: LogFilter,
}

/// Runs the head until a user or a signal ends it.
pub(crate) fn run(args: &HeadRunArgs) -> Result<()> {
    if args.round <= Span::ZERO {
        bail!("--round {}: must be more than 0", args.round);
    }
    if args.heartbeat <= Span::ZERO || args.lease < args.heartbeat * 3 {
        bail!("--lease {}: must be at least three heartbeats of {} s", args.lease, args.heartbeat);
    }
    if let Some((twice, _)) = args
        .quota
        .iter()
        .enumerate()
        .find_map(|(index, quota)| args.quota.iter().skip(index + 1).find(|other| other.0 == quota.0))
    {
        bail!("--quota {twice}: given twice");
    }
    let set = parse_set(&args.set)?;
    logging::init(args.log.clone())?;
    rota_head::run(&HeadSettings {
        listen: args.listen,
        state: args.state.clone(),
        credentials: args.credentials.clone(),
        roles: args.roles.clone(),
        pki: args.pki.clone(),
        policies: args.policy_dir.clone(),
        policy: args.policy.clone().map(|policy| (policy, set)),
        rules: Rules {
            round: args.round,
            is_on_grid: args.on_grid,
            time_scale: args.time_scale,
            may_jump: args.fast_forward,
            min_run: args.min_run,
            quotas: args.quota.clone(),
            profiles: ProfileText::load(&args.profiles)?,
        },
        least_gap: args.least_gap,
        wait_for: args.wait_for,
        copies_checkpoints: args.copy_checkpoints,
        keep: KeepJournal {
            span: args.keep_journal,
            bytes: args.keep_journal_bytes.0,
            image_every: args.image_every,
        },
        terms: Terms {
            lease: args.lease,
            heartbeat: args.heartbeat,
            silent_after: args.heartbeat * 3,
            // A tenth for clocks that run at different speeds, and half a second for messages on their way.
            margin: Span(args.lease.0 / 10) + Span(500_000),
        },
    })?;
    Ok(())
}

fn parse_quota(text: &str) -> Result<(String, u32), String> {
    let (tenant, gpus) = text.split_once('=').ok_or("write TENANT=GPUS")?;
    let gpus = gpus.parse().map_err(|_| format!("`{gpus}` is not a number of GPUs"))?;
    Ok((tenant.to_owned(), gpus))
}
