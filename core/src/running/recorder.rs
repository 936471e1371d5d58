//! Records a run: turns events and commands into a [`Ledger`].

use std::collections::BTreeMap;

use crate::allocation::{Allocation, WHOLE_GPU};
use crate::cluster::Cluster;
use crate::event::{Command, Event, StopCause};
use crate::ids::JobId;
use crate::ledger::{Ledger, Outcome, Sample, Share, Status, Stretch, Use};
use crate::resources::Host;
use crate::table::JobTable;
use crate::time::{Span, Time};
use crate::workload::RecordedEnd;

/// The ledger of a run so far, and what is needed to go on with it.
#[derive(Debug)]
pub struct Recorder {
    ledger: Ledger,
    holdings: Vec<Holding>,
    open: BTreeMap<JobId, (Time, Allocation)>,
    keeps_timeline: bool,
    now: Time,
    gpus: u64,
    /// Worth of the GPUs held, in millionths of a GPU: whole numbers, so that sums return exactly to zero.
    worth_micro: u64,
    gpus_asked: u64,
    held: Host,
    used: Host,
    asked: Host,
}

/// What a running job holds, for the sums.
#[derive(Clone, Copy, Debug, Default)]
struct Holding {
    from: Time,
    /// GPUs in thousandths.
    gpu_milli: u64,
    worth_micro: u64,
    gpus: u32,
    /// The part of its best speed it has.
    of_best: f64,
    held: Host,
    used: Host,
    asked: Host,
}

impl Recorder {
    /// A recorder of a run with `n_jobs` jobs.
    pub fn new(n_jobs: usize, keeps_timeline: bool) -> Self {
        Recorder {
            ledger: Ledger {
                outcomes: vec![Outcome::unfinished(""); n_jobs],
                shares: vec![Share::default(); n_jobs],
                ..Ledger::default()
            },
            holdings: vec![Holding::default(); n_jobs],
            open: BTreeMap::new(),
            keeps_timeline,
            now: Time::ZERO,
            gpus: 0,
            worth_micro: 0,
            gpus_asked: 0,
            held: Host::NONE,
            used: Host::NONE,
            asked: Host::NONE,
        }
    }

    /// Records an event.
    pub fn event(&mut self, now: Time, event: &Event) {
        match event {
            Event::JobSubmitted(spec) => {
                self.ledger.first.get_or_insert(spec.arrival);
                let passed = (now - self.now).max(Span::ZERO);
                let held = i128::from(passed.0) * i128::from(self.gpus) / 1000;
                self.ledger.loaded = Some((now, self.ledger.gpu_time + held));
                self.gpus_asked += u64::from(spec.gpus.asked);
            }
            Event::JobFinished { job, .. } => {
                self.release(now, *job);
                let outcome = &mut self.ledger.outcomes[job.index()];
                (outcome.status, outcome.finish) = (Status::Finished, Some(now));
                self.ledger.last = Some(now);
            }
            Event::JobFailed { job, end, .. } => {
                self.release(now, *job);
                let outcome = &mut self.ledger.outcomes[job.index()];
                (outcome.status, outcome.finish) = (Status::Failed, Some(now));
                outcome.reason = match end {
                    RecordedEnd::Killed => "killed as recorded".to_owned(),
                    _ => "failed as recorded".to_owned(),
                };
                self.ledger.last = Some(now);
            }
            Event::JobRequeued { job, .. } => {
                self.release(now, *job);
                self.ledger.outcomes[job.index()].preemptions += 1;
            }
            _ => {}
        }
    }

    /// Records that a job which asked for `gpus` no longer counts towards the demand.
    pub fn left(&mut self, gpus: u32) {
        self.gpus_asked = self.gpus_asked.saturating_sub(u64::from(gpus));
    }

    /// Records a command; `jobs` is the table after it took effect.
    pub fn command(&mut self, now: Time, command: &Command, jobs: &JobTable, cluster: &Cluster) {
        match command {
            Command::Admit { .. } => {}
            Command::Decline { job, reason } => {
                let outcome = &mut self.ledger.outcomes[job.index()];
                outcome.status = Status::Declined;
                outcome.reason.clone_from(reason);
            }
            Command::Start { job, allocation, .. } => {
                self.ledger.outcomes[job.index()].start.get_or_insert(now);
                self.hold(now, *job, allocation, jobs, cluster);
            }
            Command::Resize { job, allocation, .. } => {
                self.release(now, *job);
                self.hold(now, *job, allocation, jobs, cluster);
            }
            Command::Stop { job, cause, .. } => {
                self.release(now, *job);
                let outcome = &mut self.ledger.outcomes[job.index()];
                outcome.preemptions += 1;
                if *cause == StopCause::Cancelled {
                    (outcome.status, outcome.finish) = (Status::Failed, Some(now));
                    outcome.reason = "cancelled".into();
                }
            }
        }
    }

    fn hold(&mut self, now: Time, job: JobId, allocation: &Allocation, jobs: &JobTable, cluster: &Cluster) {
        self.advance(now);
        let Some(row) = jobs.row(job) else { return };
        let gpus = allocation.n_gpus();
        let held = allocation.host();
        let asked = jobs.demand_per_gpu(row).times(gpus);
        let gpu_milli = match allocation.slices.as_slice() {
            [slice] if slice.share == WHOLE_GPU => u64::from(gpus) * 1000,
            slices => slices.iter().map(|s| u64::from(s.gpus.len()) * u64::from(s.thousandths())).sum(),
        };
        let worth_micro = (jobs.spec(row).speedup(allocation, cluster) * 1e6).round() as u64;
        let of_best = jobs.spec(row).part_of_best(allocation, jobs.demand_per_gpu(row), cluster);
        let used = held.min(&asked);
        let holding = Holding { from: now, gpu_milli, worth_micro, gpus, of_best, held, used, asked };
        self.gpus += gpu_milli;
        self.worth_micro += worth_micro;
        self.held = plus(&self.held, &holding.held);
        self.used = plus(&self.used, &holding.used);
        self.asked = plus(&self.asked, &holding.asked);
        self.holdings[job.index()] = holding;
        if self.keeps_timeline {
            self.open.insert(job, (now, allocation.clone()));
        }
    }

    fn release(&mut self, now: Time, job: JobId) {
        self.advance(now);
        let holding = std::mem::take(&mut self.holdings[job.index()]);
        self.gpus -= holding.gpu_milli;
        self.worth_micro -= holding.worth_micro;
        self.held = self.held.saturating_sub(&holding.held);
        self.used = self.used.saturating_sub(&holding.used);
        self.asked = self.asked.saturating_sub(&holding.asked);
        let ran = (now - holding.from).0;
        if ran > 0 {
            let ran_s = (now - holding.from).as_secs_f64();
            let share = &mut self.ledger.shares[job.index()];
            share.best_gpu_s += ran_s * holding.gpu_milli as f64 / 1e3 * holding.of_best;
            share.cpu_s += ran_s * holding.held.cpus();
            share.mem_gb_s += ran_s * holding.held.mem_gb();
        }
        let outcome = &mut self.ledger.outcomes[job.index()];
        outcome.service += Span((i128::from(ran) * i128::from(holding.gpu_milli) / 1000) as i64);
        if holding.gpus > 0 {
            outcome.ran += now - holding.from;
        }
        if let Some((from, allocation)) = self.open.remove(&job)
            && now > from
        {
            self.ledger.timeline.extend(allocation.slices.iter().map(|slice| Stretch {
                job,
                slice: *slice,
                from,
                to: now,
            }));
        }
    }

    fn advance(&mut self, now: Time) {
        let passed = now - self.now;
        if passed > Span::ZERO {
            self.ledger.gpu_time += i128::from(passed.0) * i128::from(self.gpus) / 1000;
            self.ledger.worth_time_s += passed.as_secs_f64() * self.worth_micro as f64 / 1e6;
            self.ledger.cpu_time_s += passed.as_secs_f64() * self.held.cpus();
        }
        self.now = now;
    }

    /// Takes a sample right after a decision.
    pub fn decided(&mut self, now: Time, jobs: &JobTable, gpus_up: u32, commands: usize, notes: Vec<String>) {
        self.advance(now);
        let usage =
            |f: fn(&Host) -> f64| Use { held: f(&self.held), used: f(&self.used), asked: f(&self.asked) };
        self.ledger.notes.extend(notes.into_iter().map(|note| (self.ledger.samples.len(), note)));
        self.ledger.samples.push(Sample {
            time: now,
            waiting: (jobs.len() - jobs.n_running()) as u32,
            running: jobs.n_running() as u32,
            gpus_up,
            gpus_held: (self.gpus / 1000) as u32,
            gpus_worth: self.worth_micro as f64 / 1e6,
            gpus_asked: self.gpus_asked,
            cpus: usage(Host::cpus),
            mem_gb: usage(Host::mem_gb),
            decide_s: 0.0,
            commands: commands as u32,
        });
        self.ledger.n_decisions += 1;
    }

    /// Records rounds that were skipped.
    pub fn skipped(&mut self, rounds: u64) {
        self.ledger.n_skipped += rounds;
    }

    /// Ends the recording; jobs that have not ended get a reason.
    pub fn close(mut self, now: Time, digest: String, why_unfinished: impl Fn(JobId) -> String) -> Ledger {
        let running: Vec<_> = self
            .holdings
            .iter()
            .enumerate()
            .filter(|(_, h)| h.gpus > 0)
            .map(|(i, _)| JobId::from(i))
            .collect();
        for job in running {
            self.release(now, job);
        }
        for (index, outcome) in self.ledger.outcomes.iter_mut().enumerate() {
            if outcome.status == Status::Unfinished {
                outcome.reason = why_unfinished(JobId::from(index));
            }
        }
        self.ledger.digest = digest;
        self.ledger
    }
}

fn plus(a: &Host, b: &Host) -> Host {
    a.checked_add(b).unwrap_or(*a)
}
