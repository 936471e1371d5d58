//! `rota deploy`: what `rota simulate` does, on the live cluster. Jobs are submitted when the trace says, run by a
//! template (emulated ones where none is given), and the head's journal becomes the same result folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rota_core::ids::JobId;
use rota_core::job::JobSpec;
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;
use rota_transport::message::{FromUser, JobRequest, JobStart, JobStateView, WhichJobs};
use rota_transport::value::{Iterations, Text, Wait};

use super::live::{Client, HeadArgs, PolicyArgs, Template, choose_policy, fetch_jobs, submit_jobs};
use super::progress::Meter;
use super::run::{self, RunArgs};
use crate::head::Record;
use crate::head::ledger::ledger_of;
use crate::report;
use crate::results::{Results, RunMeta, RunResult, Timing};

/// A trace, a policy, and the head they go to.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// The head, as host:port [default: $ROTA_HEAD, else what `rota up` wrote]
    #[arg(long, value_name = "HOST:PORT", help_heading = "The head")]
    pub head: Option<String>,
    /// Your certificate and key [default: $ROTA_CREDENTIALS, else what `rota up` wrote]
    #[arg(long, value_name = "DIR", help_heading = "The head")]
    pub credentials: Option<PathBuf>,
    /// How a job becomes a launch: a job file as for `rota submit`, in which {model}, {batch}, {iterations}, {gpus} and {name}
    /// stand for the job's own [default: emulated jobs]
    #[arg(long, value_name = "F", help_heading = "The head")]
    pub template: Option<PathBuf>,
}

/// Deploys one trace under one policy.
pub(crate) fn run(args: &DeployArgs) -> Result<()> {
    let inputs = run::prepared(&args.run)?;
    let [load] = inputs.loads.as_slice() else { bail!("one load can be deployed at a time") };
    let policy = match args.run.policies.as_slice() {
        [] => "las+tune".to_owned(),
        [policy] => policy.clone(),
        _ => bail!("one policy can be deployed at a time"),
    };
    let head = HeadArgs { head: args.head.clone(), credentials: args.credentials.clone(), json: false };
    let template = Template::read(args.template.as_deref())?;
    let mut client = Client::new(&head)?;
    let status = client.status()?;
    if !status.is_ready {
        bail!("the head is not ready: it waits for agents");
    }
    if status.round.span() != args.run.round && !args.run.quiet {
        eprintln!(
            "the head holds rounds every {} s, --round says {} s: the head's hold",
            status.round.span(),
            args.run.round
        );
    }
    if status.n_gpus_up != inputs.cluster.n_gpus() && !args.run.quiet {
        eprintln!(
            "the live cluster has {} GPUs up, the one of the trace {}",
            status.n_gpus_up,
            inputs.cluster.n_gpus()
        );
    }
    choose_policy(&mut client, &PolicyArgs { policy: policy.clone(), set: args.run.set.clone() })?;
    let started = Instant::now();
    let meter = Meter::new(load.workload.jobs.len() as u64, 1, args.run.quiet || args.run.json);
    let (first, origin) = play(&mut client, &load.workload, &template, &meter)?;
    meter.finish();
    let journal = read_journal(&mut client)?;
    let (ledger, cluster) =
        ledger_of(&journal, Arc::new(inputs.profiles.clone()), status.round.span(), first, origin);
    let meta = RunMeta {
        policy: policy.clone(),
        seed: inputs.seed,
        jobs_per_hour: load.jobs_per_hour,
        exact_estimates: true,
        window: args.run.window,
        cluster: (&*cluster).into(),
        parameters: toml::Table::from_iter([("deployed".to_owned(), true.into())]),
    };
    let timing = Timing { wall_s: started.elapsed().as_secs_f64(), decide_s: 0.0 };
    let results = Results {
        title: format!("{} deployed on {}", inputs.name, cluster.name),
        version: env!("CARGO_PKG_VERSION").into(),
        settings: toml::Table::new(),
        inputs: inputs.files.clone(),
        runs: vec![RunResult::new(meta, timing, &load.workload, &cluster, ledger)],
    };
    run::write(&args.run, &results)?;
    match (args.run.json, args.run.quiet) {
        (true, _) => print!("{}", results.to_json()),
        (false, false) => print!("{}", report::to_text(&results)),
        (false, true) => {}
    }
    Ok(())
}

/// Submits every job at its time and waits until all have ended; the number of the first, and the head's time at the
/// beginning of the trace's.
fn play(
    client: &mut Client,
    workload: &Workload,
    template: &Template,
    meter: &Meter,
) -> Result<(JobId, Time)> {
    let status = client.status()?;
    let scale = status.time_scale.factor();
    let (begun, head_begun) = (Instant::now(), status.now);
    let (mut first, mut n_ended) = (None, 0);
    let mut next_look = Instant::now();
    // A trace whose clock began long before its first job does not make anybody wait for that.
    let begin = workload.jobs.first().map_or(Time::ZERO, |job| job.arrival);
    let origin = Time(head_begun.0 - begin.0);
    let mut coming = workload.jobs.iter().zip(&workload.truths).peekable();
    loop {
        let now = Span::from_secs_f64(begun.elapsed().as_secs_f64() * scale);
        let mut due = Vec::new();
        while let Some((spec, truth)) = coming.next_if(|(spec, _)| spec.arrival <= begin + now) {
            due.push(request(spec, truth.work, template)?);
        }
        if !due.is_empty() {
            let ids = submit_jobs(client, due)?;
            first = first.or(ids.first().copied());
        }
        if Instant::now() >= next_look
            && let Some(first) = first
        {
            next_look = Instant::now() + Duration::from_millis(500);
            let jobs = fetch_jobs(client, WhichJobs::All)?;
            let is_over = |state: JobStateView| {
                use JobStateView::{Cancelled, Declined, Failed, Finished};
                matches!(state, Finished | Declined | Cancelled | Failed)
            };
            let ended = jobs.iter().filter(|job| job.id >= first && is_over(job.state)).count();
            meter.advance((ended - n_ended.min(ended)) as u64);
            n_ended = ended;
            if n_ended >= workload.jobs.len() {
                return Ok((first, origin));
            }
        }
        if coming.peek().is_none() && first.is_none() {
            bail!("the trace has no jobs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn request(spec: &JobSpec, work: f64, template: &Template) -> Result<JobRequest> {
    let costs = spec.costs();
    let deadline = spec.deadline.first().map(|deadline| Wait::new(deadline - spec.arrival)).transpose()?;
    let start: JobStart = template.start(spec, work)?;
    Ok(JobRequest {
        name: Text::new(&*spec.name)?,
        tenant: Text::new(format!("tenant{}", spec.tenant))?,
        priority: spec.priority,
        model: Text::new(spec.profile.name.as_str())?,
        batch: spec.batch,
        gpus: spec.gpus.asked,
        levels: spec.gpus.levels.to_vec(),
        gpu_type: Text::new("")?,
        work: Iterations::new(work)?,
        deadline,
        start: JobStart {
            restart: Wait::new(costs.restart)?,
            checkpoint_every: Wait::new(costs.checkpoint_every)?,
            ..start
        },
    })
}

fn read_journal(client: &mut Client) -> Result<Vec<(Time, Record)>> {
    let text = client.text(&FromUser::Journal)?;
    let line =
        |line: &str| serde_json::from_str(line).with_context(|| format!("a line of the journal: {line}"));
    text.lines().map(line).collect()
}
