//! Points that are run as jobs of a live cluster: GPU counts over several nodes, and batch sizes. CPUs and memory are the
//! head's to deal out, so they are not swept here.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rota_core::ids::JobId;
use rota_core::time::Span;
use rota_transport::message::{
    Container, FromUser, JobConditions, JobRequest, JobStart, JobStateView, JobView, Launcher, LogLimits,
    Mount, OnHeadLost, Processes, Pull, WhichJobs,
};
use rota_transport::value::{Iterations, Text, Wait};

use super::settings::RunArgs;
use crate::commands::live::{Client, HeadArgs, fetch_jobs, submit_jobs};
use rota_lab::profile::grid::Point;
use rota_lab::profile::invocation::Invocation;
use rota_lab::profile::samples::iteration_times;

/// How often the head is asked.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A live cluster to run points on.
pub(super) struct ClusterRuns {
    client: Client,
}

/// What came of one run.
pub(super) struct ClusterRun {
    /// Seconds of an iteration in each stretch.
    pub(super) iteration_s: Vec<f64>,
    /// Why it failed, if it did.
    pub(super) failure: Option<String>,
}

impl ClusterRuns {
    /// Connects, when a head was named.
    pub(super) fn of(args: &RunArgs) -> Result<Option<Self>> {
        if args.head.is_none() {
            return Ok(None);
        }
        let (address, credentials) = (args.head.clone(), args.credentials.clone());
        let head = HeadArgs { head: address, credentials, ..HeadArgs::default() };
        let mut client = Client::new(&head)?;
        let status = client.status()?;
        if !status.is_ready {
            bail!("the head is not ready: its agents have not come yet");
        }
        Ok(Some(ClusterRuns { client }))
    }

    /// Runs one point to its end; a run that takes too long or says nothing is cancelled.
    pub(super) fn measure(
        &mut self,
        args: &RunArgs,
        invocation: &Invocation,
        point: &Point,
    ) -> Result<ClusterRun> {
        let job = request(args, invocation, point)?;
        let id = *submit_jobs(&mut self.client, vec![job])?.first().context("the head took no job")?;
        let watched = self.watch(args, id);
        let is_over = matches!(&watched, Ok((view, _)) if view.state.is_over());
        if !is_over {
            // One that ended meanwhile is what was wanted.
            let _ = self.client.text(&FromUser::Cancel { jobs: vec![id] });
        }
        let (view, reports) = watched?;
        let warm_up = args.warm_up.unwrap_or(args.iterations / 10) as f64;
        let iteration_s = iteration_times(&reports, warm_up);
        let failure = match view.state {
            JobStateView::Finished if iteration_s.is_empty() => Some(format!(
                "job {id} reported its progress {} times, which is too few: more --iterations help",
                reports.len()
            )),
            JobStateView::Finished => None,
            JobStateView::Declined => Some(format!("job {id} was declined: {}", view.reason)),
            JobStateView::Failed | JobStateView::Cancelled => {
                Some(format!("job {id} has ended: {}", view.reason))
            }
            _ => Some(format!("job {id} was cancelled: it did not end, or said nothing, for too long")),
        };
        let iteration_s = if failure.is_none() { iteration_s } else { Vec::new() };
        Ok(ClusterRun { iteration_s, failure })
    }

    /// Looks at a job until it has ended or one of its limits is reached; what it reported, with times.
    fn watch(&mut self, args: &RunArgs, id: JobId) -> Result<(JobView, Vec<(f64, f64)>)> {
        let began = Instant::now();
        let mut heard = began;
        let mut reports: Vec<(f64, f64)> = Vec::new();
        loop {
            let views = fetch_jobs(&mut self.client, WhichJobs::These(vec![id]))?;
            let view =
                views.into_iter().next().with_context(|| format!("the head does not know job {id}"))?;
            let (now, done) = (Instant::now(), view.done.count());
            // The count of a job that has ended is its work, whenever it was done.
            let is_news =
                view.state == JobStateView::Running && reports.last().is_none_or(|last| done > last.1);
            if is_news && done > 0.0 {
                reports.push(((now - began).as_secs_f64(), done));
                heard = now;
            }
            let is_late = now - began > duration(args.run_limit) || now - heard > duration(args.silence);
            if view.state.is_over() || is_late {
                return Ok((view, reports));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

fn duration(span: Span) -> Duration {
    Duration::try_from_secs_f64(span.as_secs_f64()).unwrap_or(Duration::MAX)
}

fn request(args: &RunArgs, invocation: &Invocation, point: &Point) -> Result<JobRequest> {
    let text = |text: &str| Text::new(text);
    let command = invocation.at(point);
    let mut env = vec![(text("PYTHONUNBUFFERED")?, text("1")?)];
    for pair in &args.env {
        let (name, value) =
            pair.split_once('=').with_context(|| format!("--env {pair}: write NAME=VALUE"))?;
        env.push((text(name)?, text(value)?));
    }
    let launcher = match args.container()? {
        None => Launcher::Process,
        Some(container) if !container.gpu_flag.is_empty() => bail!(
            "--container-gpu-flag {}: on a cluster, each node's agent knows how containers get its GPUs",
            container.gpu_flag
        ),
        Some(container) => Launcher::Container(Container {
            image: text(&container.image)?,
            pull: Pull::Missing,
            mounts: container
                .mounts
                .iter()
                .map(|(host, inside)| {
                    let (source, target) =
                        (text(&host.display().to_string())?, text(&inside.display().to_string())?);
                    Ok(Mount { source, target, is_read_only: false })
                })
                .collect::<Result<_>>()?,
            network: text("host")?,
            gpu_flag: text("")?,
        }),
    };
    Ok(JobRequest {
        name: text(&format!("profile-{}", args.model()))?,
        tenant: text("")?,
        priority: 0,
        model: text("")?,
        batch: point.batch,
        gpus: point.gpus,
        levels: Vec::new(),
        gpu_type: text(&args.gpu_type)?,
        work: Iterations::new(args.iterations as f64)?,
        deadline: None,
        start: JobStart {
            launcher,
            argv: command.iter().map(|word| text(word)).collect::<Result<_, _>>()?,
            env,
            working_directory: text(
                &args.directory.as_ref().map_or(String::new(), |dir| dir.display().to_string()),
            )?,
            checkpoint_directory: text("")?,
            processes: if args.per_gpu { Processes::PerGpu } else { Processes::PerNode },
            on_head_lost: OnHeadLost::Stop,
            log: LogLimits { file_bytes: 1 << 20, n_files: 2 },
            grace: Wait::new(Span::from_secs(5))?,
            restart: Wait::new(Span::ZERO)?,
            checkpoint_every: Wait::new(Span::ZERO)?,
            most_failures: 1,
        },
        conditions: JobConditions::default(),
    })
}
