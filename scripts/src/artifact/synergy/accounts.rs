//! Keeps the accounts of a run. A lease lasts one round, so a round is all there is to record.

use std::sync::Arc;

use rota_core::allocation::{Allocation, Slice};
use rota_core::cluster::Cluster;
use rota_core::digest::Digest;
use rota_core::event::{Command, Event};
use rota_core::fill::Granted;
use rota_core::ids::{Incarnation, JobId};
use rota_core::job::JobSpec;
use rota_core::ledger::{Ledger, Outcome, Sample, Status, Stretch};
use rota_core::resources::Host;
use rota_core::table::JobTable;
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;

use super::driver::SynergySettings;

/// What the ledger of a run will be made of.
pub(super) struct Accounts {
    ledger: Ledger,
    digest: Digest,
    round: Span,
    gpus_up: u32,
    gpus_asked: u64,
    gpus_of: Vec<u32>,
    /// Jobs of the last round, ascending.
    ran: Vec<JobId>,
    /// What each job has held since when, by id; `None` when no timeline is wanted.
    open: Option<Vec<Option<Open>>>,
    last_round: Option<Time>,
}

struct Open {
    from: Time,
    slices: Vec<Slice>,
}

impl Accounts {
    pub(super) fn new(workload: &Workload, cluster: &Cluster, settings: &SynergySettings) -> Self {
        let n_jobs = workload.jobs.len();
        Accounts {
            ledger: Ledger { outcomes: vec![Outcome::unfinished(""); n_jobs], ..Ledger::default() },
            digest: Digest::default(),
            round: settings.round,
            gpus_up: cluster.n_gpus(),
            gpus_asked: 0,
            gpus_of: workload.jobs.iter().map(|job| job.gpus.asked).collect(),
            ran: Vec::new(),
            open: settings.keeps_timeline.then(|| (0..n_jobs).map(|_| None).collect()),
            last_round: None,
        }
    }

    pub(super) fn n_rounds(&self) -> u64 {
        self.ledger.n_decisions
    }

    pub(super) fn arrived(&mut self, now: Time, job: &Arc<JobSpec>) {
        self.digest.event(now, &Event::JobSubmitted(Arc::clone(job)));
        self.ledger.first.get_or_insert(job.arrival);
        self.gpus_asked += u64::from(job.gpus.asked);
    }

    pub(super) fn finished(&mut self, now: Time, job: JobId) {
        self.digest.event(now, &Event::JobFinished { job, incarnation: Incarnation(0) });
        let outcome = &mut self.ledger.outcomes[job.index()];
        (outcome.status, outcome.finish) = (Status::Finished, Some(now));
        self.ledger.last = Some(now);
        self.gpus_asked -= u64::from(self.gpus_of[job.index()]);
        self.close_stretch(now, job);
    }

    /// A round without a job.
    pub(super) fn idle(&mut self, now: Time) {
        self.ran.clear();
        self.count_round(now);
        self.sample(Sample { time: now, ..Sample::default() });
    }

    /// A round, with what each job holds until its end.
    pub(super) fn round(&mut self, now: Time, jobs: &JobTable, cluster: &Cluster, granted: Vec<Granted>) {
        self.count_round(now);
        let mut sample = Sample {
            time: now,
            running: granted.len() as u32,
            waiting: (jobs.len() - granted.len()) as u32,
            commands: granted.len() as u32,
            ..Sample::default()
        };
        let mut runs = Vec::with_capacity(granted.len());
        for Granted { row, slices, .. } in granted {
            let job = jobs.id(row as usize);
            let allocation = Allocation { slices };
            let gpus = allocation.n_gpus();
            add(&mut sample, gpus, &allocation.host(), &jobs.demand_per_gpu(row as usize).times(gpus));
            sample.gpus_worth += jobs.spec(row as usize).speedup(&allocation, cluster);
            let outcome = &mut self.ledger.outcomes[job.index()];
            outcome.start.get_or_insert(now);
            outcome.service += self.round * i64::from(gpus);
            outcome.ran += self.round;
            self.follow(now, job, &allocation.slices);
            self.digest.command(now, &Command::Start { job, incarnation: Incarnation(0), allocation });
            runs.push(job);
        }
        runs.sort_unstable();
        self.count_stops(now, &runs);
        self.ran = runs;
        self.ledger.gpu_time += i128::from(self.round.0) * i128::from(sample.gpus_held);
        self.ledger.worth_time_s += self.round.as_secs_f64() * sample.gpus_worth;
        self.ledger.cpu_time_s += self.round.as_secs_f64() * sample.cpus.held;
        self.sample(sample);
    }

    /// Jobs that ran in the last round, have not ended and do not run in this one were stopped.
    fn count_stops(&mut self, now: Time, runs: &[JobId]) {
        for job in std::mem::take(&mut self.ran) {
            let outcome = &mut self.ledger.outcomes[job.index()];
            if outcome.status == Status::Unfinished && runs.binary_search(&job).is_err() {
                outcome.preemptions += 1;
                self.close_stretch(now, job);
            }
        }
    }

    fn count_round(&mut self, now: Time) {
        if let Some(last) = self.last_round.replace(now) {
            self.ledger.n_skipped += ((now - last).0 / self.round.0 - 1).max(0) as u64;
        }
        self.ledger.n_decisions += 1;
    }

    fn sample(&mut self, sample: Sample) {
        self.ledger.samples.push(Sample { gpus_up: self.gpus_up, gpus_asked: self.gpus_asked, ..sample });
    }

    fn follow(&mut self, now: Time, job: JobId, slices: &[Slice]) {
        let Some(open) = &self.open else { return };
        if open[job.index()].as_ref().is_some_and(|o| o.slices == slices) {
            return;
        }
        self.close_stretch(now, job);
        if let Some(open) = &mut self.open {
            open[job.index()] = Some(Open { from: now, slices: slices.to_vec() });
        }
    }

    fn close_stretch(&mut self, now: Time, job: JobId) {
        let held = self.open.as_mut().and_then(|open| open[job.index()].take());
        if let Some(Open { from, slices }) = held {
            self.ledger.timeline.extend(slices.into_iter().map(|slice| Stretch {
                job,
                slice,
                from,
                to: now,
            }));
        }
    }

    /// The ledger. Jobs that are left do not fit even an empty cluster.
    pub(super) fn close(mut self) -> Ledger {
        for outcome in self.ledger.outcomes.iter_mut().filter(|o| o.status == Status::Unfinished) {
            outcome.reason = "does not fit the empty cluster".into();
        }
        self.ledger.digest = self.digest.hex();
        self.ledger
    }
}

fn add(sample: &mut Sample, gpus: u32, held: &Host, asked: &Host) {
    sample.gpus_held += gpus;
    let used = held.min(asked);
    for (sum, of) in [(&mut sample.cpus, Host::cpus as fn(&Host) -> f64), (&mut sample.mem_gb, Host::mem_gb)]
    {
        sum.held += of(held);
        sum.used += of(&used);
        sum.asked += of(asked);
    }
}
