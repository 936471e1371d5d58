//! Deploying a trace: every job is submitted at its time, then all jobs are waited for.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rota_core::cluster::Cluster;
use rota_core::ids::JobId;
use rota_core::job::JobSpec;
use rota_core::time::{Span, Time};
use rota_core::workload::{Truth, Workload};
use rota_traces::profile::ProfileSet;
use rota_transport::message::{JobConditions, JobRequest, JobStart, Launcher, Status, WhichJobs};
use rota_transport::value::{Iterations, Text, Wait};

use super::super::live::{Client, Template, fetch_jobs, submit_jobs};
use super::super::progress::Meter;
use super::faults::Breaker;
use rota_head::Rules;
use rota_head::ledger::Stint;

/// Jobs that arrive exactly when a round is due are submitted this many real seconds before it, so that the round sees them.
const LEAD_S: f64 = 0.1;
/// What jobs exit with that end as a trace records failures.
const FAILED: u8 = 1;
/// How often the head is asked for its clock, and which jobs have ended.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Deploys a workload on an idle cluster; returns which part of the journal belongs to it.
pub(super) fn play(
    client: &mut Client,
    rules: &Rules,
    jobs: &Jobs<'_>,
    fast_forward: Option<u32>,
    breaker: &mut Option<Breaker>,
    meter: &Meter,
) -> Result<Stint> {
    let workload = jobs.workload;
    // A trace whose clock began long before its first job does not make anybody wait for that.
    let Some(begin) = workload.jobs.first().map(|job| job.arrival) else { bail!("the trace has no jobs") };
    let mut clock = HeadClock::read(client)?;
    let origin = origin(rules, clock.now(), begin);
    let mut coming = workload.jobs.iter().zip(&workload.truths).peekable();
    let (mut first, mut open, mut next_look) = (None, BTreeSet::new(), Instant::now());
    while coming.peek().is_some() || !open.is_empty() {
        let now = Time((clock.now() - origin).0);
        if let Some(breaker) = breaker {
            breaker.break_what_is_due(client, now)?;
        }
        let mut due = Vec::new();
        while let Some((spec, truth)) = coming.next_if(|(spec, _)| spec.arrival <= now) {
            due.push(jobs.request(spec, truth)?);
        }
        if !due.is_empty() {
            let ids = submit_jobs(client, due)?;
            first = first.or(ids.first().copied());
            open.extend(ids);
        }
        if Instant::now() >= next_look {
            next_look = Instant::now() + LOOK_EVERY;
            if !open.is_empty() {
                let views = fetch_jobs(client, WhichJobs::These(open.iter().copied().collect()))?;
                let n_open = open.len();
                views.iter().filter(|view| view.state.is_over()).for_each(|view| {
                    open.remove(&view.id);
                });
                meter.advance((n_open - open.len()) as u64);
            }
            // Two machines' clocks drift apart over a long trace; and a connection on which nothing is said for 8 s is gone, as when the
            // next job comes late.
            clock = HeadClock::read(client)?;
        }
        if let Some(n_iterations) = fast_forward {
            let arrival = coming.peek().map(|(spec, _)| spec.arrival);
            let fault = breaker.as_ref().and_then(Breaker::next_time);
            let next = arrival.into_iter().chain(fault).min().map(|time| origin + (time - Time::ZERO));
            // Without arrivals, rounds and ends decide how far.
            let until = next.unwrap_or_else(|| clock.now() + Span::from_secs(86_400));
            clock = HeadClock::of(&client.fast_forward(until, n_iterations)?);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let first = first.map_or(0, |job: JobId| job.0);
    let numbers = first..first + workload.jobs.len() as u32;
    Ok(Stint { jobs: numbers, begin: origin + (begin - Time::ZERO), origin })
}

/// The head's time at which the trace begins. Where rounds lie on a grid, the trace begins on it too, so that a job meets the
/// same rounds as in a simulation; it begins a little early, because messages take time.
fn origin(rules: &Rules, now: Time, begin: Time) -> Time {
    let at_once = Time((now - begin).0);
    if !rules.is_on_grid {
        return at_once;
    }
    let lead = Span::from_secs_f64(LEAD_S * rules.time_scale);
    let round = rules.round.0;
    let past = (at_once + lead + Span(round - 1)).0.div_euclid(round);
    Time(past * round - lead.0)
}

/// The head's clock, as estimated from its answers.
struct HeadClock {
    read_at: Instant,
    now: Time,
    scale: f64,
}

impl HeadClock {
    fn read(client: &mut Client) -> Result<Self> {
        Ok(Self::of(&client.status()?))
    }

    fn of(status: &Status) -> Self {
        HeadClock { read_at: Instant::now(), now: status.now, scale: status.time_scale.factor() }
    }

    fn now(&self) -> Time {
        self.now + Span::from_secs_f64(self.read_at.elapsed().as_secs_f64() * self.scale)
    }
}

/// The jobs of a trace, with their profiles and cluster.
pub(super) struct Jobs<'a> {
    pub(super) workload: &'a Workload,
    pub(super) profiles: &'a ProfileSet,
    pub(super) cluster: &'a Cluster,
    pub(super) template: &'a Template,
}

impl Jobs<'_> {
    fn request(&self, spec: &JobSpec, truth: &Truth) -> Result<JobRequest> {
        let work = truth.work;
        let costs = spec.costs();
        let deadline =
            spec.deadline.first().map(|deadline| Wait::new(deadline - spec.arrival)).transpose()?;
        let mut start: JobStart = self.template.start(spec, work)?;
        if truth.end.is_premature() && start.launcher == Launcher::Emulated {
            start.argv.push(Text::new(format!("--exit-code={FAILED}"))?);
        }
        let tenant = self.workload.tenants.get(spec.tenant.index());
        let gpu_type = spec.gpu_type.and_then(|id| self.cluster.gpu_types().get(id.index()));
        // A job of no model works a second in a second, here as there.
        let model = self.profiles.get(&spec.profile.name).map_or("", |profile| profile.name.as_str());
        Ok(JobRequest {
            name: Text::new(&*spec.name)?,
            tenant: Text::new(tenant.cloned().unwrap_or_default())?,
            priority: spec.priority,
            model: Text::new(model)?,
            batch: spec.batch,
            gpus: spec.gpus.asked,
            levels: spec.gpus.levels.to_vec(),
            gpu_type: Text::new(gpu_type.cloned().unwrap_or_default())?,
            work: Iterations::new(work)?,
            deadline,
            start: JobStart {
                restart: Wait::new(costs.restart)?,
                checkpoint_every: Wait::new(costs.checkpoint_every)?,
                ..start
            },
            conditions: JobConditions::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_head::ProfileText;

    #[test]
    fn a_trace_begins_a_little_before_a_round_of_the_head() {
        let profiles = ProfileText { name: "none".into(), text: String::new() };
        let mut rules = Rules { time_scale: 60.0, ..Rules::plain(profiles) };
        let (now, begin) = (Time(130_000_000), Time(70_000_000));
        assert_eq!(origin(&rules, now, begin), Time(60_000_000));
        rules.is_on_grid = true;
        let lead = 6_000_000;
        let origin = origin(&rules, now, begin);
        assert_eq!((origin.0 + lead) % 60_000_000, 0, "the trace's grid is the head's");
        assert!(origin.0 + begin.0 >= now.0, "nothing is due already");
        assert!(origin.0 + begin.0 < now.0 + 60_000_000, "nobody waits longer than a round");
    }
}
