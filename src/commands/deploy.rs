//! `rota deploy`: what `rota simulate` does, on the live cluster. Jobs are submitted when the trace says, run by a
//! template (emulated ones where none is given), and the head's journal becomes the same result folder.
//!
//! `play` submits and waits, `faults` breaks nodes meanwhile, `comparison` simulates the same jobs and compares.

mod comparison;
mod faults;
mod play;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rota_core::cluster::Cluster;
use rota_core::job::Deadline;
use rota_core::time::{Span, Time};
use rota_transport::message::FromUser;

use super::inputs::{Inputs, Load};
use super::live::{Client, HeadArgs, PolicyArgs, Template, choose_policy};
use super::progress::Meter;
use super::run::{self, RunArgs};
use comparison::Comparison;
use faults::Breaker;
use play::Jobs;
use rota_core::fault::Change;
use rota_head::ledger::ledger_of;
use rota_head::recorded::recorded;
use rota_head::{Record, Rules};
use rota_lab::report;
use rota_lab::results::{Results, RunMeta, RunResult, Timing};

/// A trace, policies, and the head they go to.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// Address of the head [default: $ROTA_HEAD, else what `rota up` wrote]
    #[arg(long, value_name = "HOST:PORT", help_heading = "Live cluster")]
    pub head: Option<String>,
    /// Your certificate and key [default: $ROTA_CREDENTIALS, else what `rota up` wrote]
    #[arg(long, value_name = "DIR", help_heading = "Live cluster")]
    pub credentials: Option<PathBuf>,
    /// Job file as for `rota submit`, with which every job is launched; {model}, {batch}, {iterations}, {gpus} and {name} are
    /// replaced by the job's values [default: jobs are emulated]
    #[arg(long, value_name = "FILE", help_heading = "Live cluster")]
    pub template: Option<PathBuf>,
    /// Let every launch run this many iterations, then jump to the next event, as ElasticFlow's testbed does; the head must be
    /// started with --fast-forward [default: time does not jump]
    #[arg(long, value_name = "N", help_heading = "Live cluster")]
    pub fast_forward: Option<u32>,
    /// Simulate the same jobs on the same nodes afterwards, and print how much the results differ
    #[arg(long, help_heading = "Output")]
    pub compare_simulation: bool,
}

/// Deploys a trace under one policy after another.
pub(crate) fn run(args: &DeployArgs) -> Result<()> {
    refuse_what_only_simulations_have(&args.run)?;
    run::try_out_dir(&args.run)?;
    run::refuse_any_results(&args.run)?;
    let inputs = run::prepared(&args.run)?;
    let policies = &args.run.policies;
    run::check_set(policies, &args.run.set)?;
    let template = Template::read(args.template.as_deref())?;
    let (address, credentials) = (args.head.clone(), args.credentials.clone());
    let head = HeadArgs { head: address, credentials, ..HeadArgs::default() };
    let mut client = Client::new(&head)?;
    let rules = greet(&mut client, args, &inputs)?;
    let n_jobs: u64 = inputs.loads.iter().map(|load| load.workload.jobs.len() as u64).sum();
    let n_runs = policies.len() * inputs.loads.len();
    let meter = Meter::new(n_jobs * policies.len() as u64, n_runs, args.run.quiet || args.run.json);
    let (mut runs, mut comparisons) = (Vec::new(), Vec::new());
    for load in &inputs.loads {
        for policy in policies {
            let set = PolicyArgs { policy: policy.clone(), set: run::own_set(policy, &args.run.set)? };
            choose_policy(&mut client, &set)?;
            let (result, cluster) =
                deployed(&mut client, args, &rules, &inputs, load, &set, &template, &meter)?;
            meter.run_done();
            if args.compare_simulation {
                let simulated = comparison::simulated(&args.run, &rules, &inputs, load, policy, &cluster)?;
                comparisons.push(Comparison::of(&result, &simulated));
                runs.extend([result, simulated]);
            } else {
                runs.push(result);
            }
        }
    }
    meter.finish();
    let results = Results {
        title: format!("{} deployed", inputs.name),
        version: env!("CARGO_PKG_VERSION").into(),
        settings: toml::Table::new(),
        inputs: inputs.files.clone(),
        runs,
    };
    run::write(&args.run, &results)?;
    match (args.run.json, args.run.quiet) {
        (true, _) => print!("{}", results.to_json()),
        (false, false) => print!("{}{}", report::to_text(&results), comparison::to_text(&comparisons)),
        (false, true) => {}
    }
    Ok(())
}

/// Refuses options that have no effect on a live cluster.
fn refuse_what_only_simulations_have(args: &RunArgs) -> Result<()> {
    let estimates = (args.estimate_bias, args.estimate_noise) != (1.0, 0.0);
    let refused = [
        (estimates, "--estimate-bias and --estimate-noise", "only simulations have wrong estimates"),
        (args.bound, "--bound", "only `rota simulate` and `rota compare` compute it"),
        (args.min_run.is_some(), "--min-run", "it is an option of the head"),
        (!args.quota.is_empty(), "--quota", "it is an option of the head"),
        (
            args.set.iter().any(|set| set.starts_with("compat")),
            "--set compat",
            "the rules of the original programs are only simulated",
        ),
        (!args.defects.is_empty(), "--defect", "the rules of the original programs are only simulated"),
    ];
    match refused.iter().find(|(is_given, _, _)| *is_given) {
        Some((_, option, why)) => bail!("{option}: {why}"),
        None => Ok(()),
    }
}

/// Asks the head for its rules, and prints where they differ from the options.
fn greet(client: &mut Client, args: &DeployArgs, inputs: &Inputs) -> Result<Rules> {
    let status = client.status()?;
    if !status.is_ready {
        bail!("the head is not ready: it is waiting for agents");
    }
    if status.n_running + status.n_waiting > 0 {
        bail!(
            "the cluster has {} other jobs: deploy a trace on a cluster without jobs",
            status.n_running + status.n_waiting
        );
    }
    let text = client.text(&FromUser::Rules)?;
    let rules: Rules = serde_json::from_str(&text).context("the head's rules")?;
    if args.fast_forward.is_some() && !rules.may_jump {
        bail!("--fast-forward: the head must be started with --fast-forward too");
    }
    let say = |text: String| {
        if !args.run.quiet {
            eprintln!("{text}")
        }
    };
    if rules.round != args.run.round {
        say(format!(
            "the head decides every {} s, not every {} s as --round says: the head's value is used",
            rules.round, args.run.round
        ));
    }
    if args.compare_simulation && !rules.is_on_grid {
        say("the head decides as soon as something happens, a simulation only when a round is due: start the head with --on-grid to compare them".into());
    }
    let jobs = || inputs.loads.iter().flat_map(|load| &load.workload.jobs);
    let can_fail = args.run.faults.is_some() || args.run.mtbf.is_some();
    if can_fail && jobs().any(|job| job.costs().checkpoint_every == Span::ZERO) {
        say("jobs without checkpoints lose nothing in a simulation and begin again here: --checkpoint-every makes both alike".into());
    }
    if jobs().any(|job| matches!(job.deadline, Deadline::Soft(_))) {
        say("soft deadlines are deployed as strict ones, with the first of their steps".into());
    }
    if jobs().any(|job| job.dataset.is_some()) {
        say("data sets of the trace are not copied to the nodes".into());
    }
    let (live, expected) = (status.n_gpus_up, inputs.cluster.n_gpus());
    if live != expected {
        say(format!("the live cluster has {live} GPUs up, the cluster of the trace has {expected}"));
    }
    Ok(rules)
}

#[expect(
    clippy::too_many_arguments,
    reason = "a deployment needs all of these, and they belong to no common type"
)]
fn deployed(
    client: &mut Client,
    args: &DeployArgs,
    rules: &Rules,
    inputs: &Inputs,
    load: &Load,
    policy: &PolicyArgs,
    template: &Template,
    meter: &Meter,
) -> Result<(RunResult, Arc<Cluster>)> {
    let started = Instant::now();
    let jobs =
        Jobs { workload: &load.workload, profiles: &inputs.profiles, cluster: &inputs.cluster, template };
    let mut breaker = breaker(client, args, rules, inputs, load)?;
    let stint = play::play(client, rules, &jobs, args.fast_forward, &mut breaker, meter);
    // Whatever happened, the nodes are brought back.
    let n_faults = breaker.as_mut().map(|breaker| breaker.mend(client)).transpose();
    let stint = stint?;
    if let (Some(n), false) = (n_faults?, args.run.quiet) {
        eprintln!("{}: {n} failures and returns were carried out", policy.policy);
    }
    let (ledger, cluster) = ledger_of(&read_journal(client)?, rules, &stint)?;
    let mut parameters: toml::Table = run::load_policy(&policy.policy, &policy.set)?
        .params()
        .into_iter()
        .map(|(_, p)| (p.name.clone(), toml::Value::String(p.value.to_string())))
        .collect();
    parameters.insert("deployed".to_owned(), true.into());
    let meta = RunMeta {
        policy: policy.policy.clone(),
        seed: inputs.seed,
        jobs_per_hour: load.jobs_per_hour,
        exact_estimates: true,
        reads_estimates: true,
        window: args.run.window,
        cluster: (&*cluster).into(),
        parameters,
    };
    let timing = Timing { wall_s: started.elapsed().as_secs_f64(), decide_s: 0.0 };
    Ok((RunResult::new(meta, timing, &load.workload, &cluster, ledger), cluster))
}

/// What is to fail on the nodes that are there, by the options of the run; nothing where nothing is to.
fn breaker(
    client: &mut Client,
    args: &DeployArgs,
    rules: &Rules,
    inputs: &Inputs,
    load: &Load,
) -> Result<Option<Breaker>> {
    if args.run.faults.is_none() && args.run.mtbf.is_none() {
        return Ok(None);
    }
    let (_, cluster) = recorded(&read_journal(client)?, rules)?;
    let faults = run::drawn_faults(&args.run, &comparison::on(inputs, load, &cluster), &load.workload)?;
    if faults.is_empty() {
        return Ok(None);
    }
    let slows = faults.iter().any(|fault| matches!(fault.change, Change::Slows { .. }));
    if slows && args.fast_forward.is_some() {
        bail!(
            "--fast-forward: time that is skipped is credited at full speed, and nodes become slow here: leave one out"
        );
    }
    let begin = load.workload.jobs.first().map_or(Time::ZERO, |job| job.arrival);
    let address = client.head().to_owned();
    Breaker::new(cluster, faults, begin, &address).map(Some)
}

pub(crate) fn read_journal(client: &mut Client) -> Result<Vec<(Time, Record)>> {
    let text = client.text(&FromUser::Journal)?;
    let line = |line: &str| {
        serde_json::from_str(line).with_context(|| format!("cannot read a line of the journal: {line}"))
    };
    text.lines().map(line).collect()
}
