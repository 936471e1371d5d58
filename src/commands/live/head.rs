//! `rota head`: options of the scheduler of a live cluster, and what can be done with its state folder.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use rota_core::time::Span;
use rota_traces::units::Bytes;
use rota_transport::logging::{self, DEFAULT_FILTER, LogFilter};
use rota_transport::session::Terms;

use crate::commands::run::parse_set;
use rota_head::fsck::{examine, repair};
use rota_head::{HeadSettings, KeepJournal, PersonLimits, ProfileText, Rules, WebSettings};

/// Less than this does not hold a solver and the stacks of its threads.
const LEAST_POLICY_MEMORY: u64 = 512_000_000;

/// What becomes of jobs on a node that is out of contact for longer than its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WhenLost {
    /// They go on.
    Keep,
    /// They are stopped.
    Stop,
}

/// What can be done with a state folder.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum StateCommand {
    /// Copy the state folder, whether or not a head uses it; the copy is the state at one moment
    Backup {
        /// New folder for the copy
        #[arg(value_name = "DIR")]
        to: PathBuf,
        /// The head's state folder
        #[arg(long, value_name = "DIR", default_value = "rota-head")]
        state: PathBuf,
    },
    /// Check the state folder: the database itself, and that every line of the journal can be read and applied
    Fsck {
        /// The head's state folder
        #[arg(long, value_name = "DIR", default_value = "rota-head")]
        state: PathBuf,
        /// Continue a damaged state from its last good line; what comes after it is kept aside. No head may use it
        #[arg(long)]
        repair: bool,
    },
}

/// How the head runs.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct HeadRunArgs {
    /// Something to do with the state folder instead of running the head
    #[command(subcommand)]
    pub command: Option<StateCommand>,
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
    /// The most memory that a process may use in which a policy decides; there is one for rounds, one while a policy is tried,
    /// and up to two for `rota whatif`
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "4GB")]
    pub policy_memory: u64,
    /// Set a parameter of the policy [default: as the scripts say]
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "policy")]
    pub set: Vec<String>,
    /// Profiles of the models that jobs may name: a file or a built-in set
    #[arg(long, value_name = "FILE|NAME", default_value = "synergy")]
    pub profiles: String,
    /// Time between scheduling rounds. A decision may take as long, but at least 2 s and at most a minute
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
    /// How long an agent may be out of contact with the head before anything follows from it
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "20s")]
    pub lease: Span,
    /// What becomes of jobs on a node that is out of contact for longer than its lease. keep: they go on and are not started
    /// elsewhere until the node is back, `rota give-up` gives it up, or --give-up-after has passed. stop: they are stopped on
    /// the node and, when that must be over, started elsewhere. Jobs submitted with --keep are always kept
    #[arg(long, value_name = "keep|stop", value_enum, default_value_t = WhenLost::Keep)]
    pub when_lost: WhenLost,
    /// With --when-lost keep: jobs on a node that is out of contact for this long are stopped on it and started elsewhere; 0 is
    /// never
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "24h")]
    pub give_up_after: Span,
    /// Time between heartbeats
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "2s")]
    pub heartbeat: Span,
    /// Do not preempt a job that has run for less than this; a round that is held early preempts no job younger than a round
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "0")]
    pub min_run: Span,
    /// The most GPUs a tenant may hold, e.g. `--quota vision=32`; a job without a tenant counts for its user's name [default: no limit]
    #[arg(long, value_name = "TENANT=GPUS", value_parser = parse_quota)]
    pub quota: Vec<(String, u32)>,
    /// The most jobs of one person that have not ended; operators may have more
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub most_jobs: usize,
    /// The longest time that a job may ask for to end when it is told to stop (`rota submit --grace`): it keeps its GPUs meanwhile
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "1h")]
    pub most_grace: Span,
    /// Copy checkpoints to the node that a job moves to, instead of expecting the agents' --checkpoint-dir to be a shared folder
    #[arg(long)]
    pub copy_checkpoints: bool,
    /// Allow `rota deploy --fast-forward` to skip time in which nothing happens; for experiments
    #[arg(long)]
    pub fast_forward: bool,
    /// Seconds of the jobs' time in one real second, for emulated jobs
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub time_scale: f64,
    /// Accept that the state was restored from an older copy, or replaced: agents that know a later state obey this head again, numbers
    /// of jobs are not given twice, what runs is taken over or stopped. For one start; see docs/live.md
    #[arg(long)]
    pub accept_restore: bool,
    /// Keep at least this span of the journal, for `rota replay` and `rota deploy`; older lines leave it while the head runs. The
    /// history of jobs and events is kept in any case
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "30d")]
    pub keep_journal: Span,
    /// Keep about this many bytes of the journal at most, even if that is less than --keep-journal says
    #[arg(long, value_name = "BYTES", default_value = "2GB")]
    pub keep_journal_bytes: Bytes,
    /// Write an image of the whole state each time the journal has grown by this many lines; a restart reads the last image and
    /// the lines after it
    #[arg(long, value_name = "LINES", value_parser = clap::value_parser!(u64).range(1..), default_value_t = 20_000)]
    pub image_every: u64,
    /// Serve the cluster's page and its API over HTTP at this address, to people who sign in with `rota web login`. Other addresses
    /// than loopback need --web-credentials [default: no page]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub web: Option<SocketAddr>,
    /// Folder with the page's certificate and key, as written by `rota pki web`: the page is served with TLS
    /// [default: without TLS, on loopback only]
    #[arg(long, value_name = "DIR", requires = "web")]
    pub web_credentials: Option<PathBuf>,
    /// Name under which people open the page, for the links of `rota web login` [default: the address at which they reach the head]
    #[arg(long, value_name = "HOST", requires = "web")]
    pub web_host: Option<String>,
    /// File with a token with which Prometheus may read /metrics, and nothing else [default: only who is signed in may]
    #[arg(long, value_name = "FILE", requires = "web")]
    pub metrics_token: Option<PathBuf>,
    /// What to log on standard error: a level (error, warn, info, debug, trace, off), or levels by target, as in
    /// `info,rota_head=debug`
    #[arg(long, value_name = "LEVEL|FILTER", value_parser = LogFilter::parse, default_value = DEFAULT_FILTER)]
    pub log: LogFilter,
}

/// Runs the head until a user or a signal ends it.
pub(crate) fn run(args: &HeadRunArgs) -> Result<()> {
    if let Some(command) = &args.command {
        return look_after(command);
    }
    if args.round <= Span::ZERO {
        bail!("--round {}: must be more than 0", args.round);
    }
    if args.heartbeat <= Span::ZERO || args.lease < args.heartbeat * 3 {
        bail!("--lease {}: must be at least three heartbeats of {} s", args.lease, args.heartbeat);
    }
    let stop_after = match args.when_lost {
        WhenLost::Stop => Some(args.lease),
        WhenLost::Keep if args.give_up_after == Span::ZERO => None,
        WhenLost::Keep if args.give_up_after < args.lease => {
            bail!(
                "--give-up-after {}: must be at least the lease of {} s, or 0",
                args.give_up_after,
                args.lease
            )
        }
        WhenLost::Keep => Some(args.give_up_after),
    };
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
        policy_memory_bytes: args.policy_memory,
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
        limits: PersonLimits { jobs: args.most_jobs, grace: args.most_grace },
        least_gap: args.least_gap,
        wait_for: args.wait_for,
        accepts_restore: args.accept_restore,
        copies_checkpoints: args.copy_checkpoints,
        keep: KeepJournal {
            span: args.keep_journal,
            bytes: args.keep_journal_bytes.0,
            image_every: args.image_every,
        },
        web: args.web.map(|address| WebSettings {
            address,
            credentials: args.web_credentials.clone(),
            host: args.web_host.clone().unwrap_or_default(),
            metrics_token: args.metrics_token.clone(),
            page: rota_play::page,
        }),
        terms: Terms {
            lease: args.lease,
            heartbeat: args.heartbeat,
            silent_after: args.heartbeat * 3,
            // A tenth for clocks that run at different speeds, and half a second for messages on their way.
            margin: Span(args.lease.0 / 10) + Span(500_000),
            stop_after,
        },
    })?;
    Ok(())
}

fn look_after(command: &StateCommand) -> Result<()> {
    match command {
        StateCommand::Backup { to, state } => {
            let made = rota_head::backup::backup(state, to)?;
            let megabytes = made.bytes as f64 / 1e6;
            println!(
                "{}: {megabytes:.1} MB, the journal up to line {}, epoch {}, lineage {}",
                made.folder.display(),
                made.last_line,
                made.epoch,
                made.lineage
            );
        }
        StateCommand::Fsck { state, repair: false } => {
            let found = examine(state)?;
            found.faults.iter().for_each(|fault| println!("{fault}"));
            if !found.is_usable {
                bail!(
                    "{}: good up to line {} of the journal; --repair continues from there",
                    state.display(),
                    found.last_good
                );
            }
            let n_faults = found.faults.len();
            println!(
                "{}: {} lines of the journal are good, {n_faults} faults",
                state.display(),
                found.n_lines
            );
        }
        StateCommand::Fsck { state, repair: true } => {
            let Some(done) = repair(state)? else {
                println!("{}: nothing to repair", state.display());
                return Ok(());
            };
            done.before.faults.iter().for_each(|fault| println!("{fault}"));
            println!("the damaged state is kept as {}", done.aside.display());
            if let Some(lines) = &done.lines {
                println!("lines that are left out and could be read are in {}", lines.display());
            }
            if !done.lost_tables.is_empty() {
                println!("lost: {}", done.lost_tables.join(", "));
            }
            println!(
                "{}: continues from line {} of the journal; start the head with --accept-restore",
                state.display(),
                done.before.last_good
            );
        }
    }
    Ok(())
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let bytes = Bytes::parse(text).filter(|bytes| bytes.0 >= LEAST_POLICY_MEMORY);
    bytes.map(|bytes| bytes.0).ok_or_else(|| format!("`{text}`: give 512MB or more, such as 4GB"))
}

fn parse_quota(text: &str) -> Result<(String, u32), String> {
    let (tenant, gpus) = text.split_once('=').ok_or("write TENANT=GPUS")?;
    let gpus = gpus.parse().map_err(|_| format!("`{gpus}` is not a number of GPUs"))?;
    Ok((tenant.to_owned(), gpus))
}
