//! What a run looked like from outside: which job held what since when. Drivers report each decision and each end; from
//! these follow the samples of rounds, GPU time, stops, and what ran where.

use rota_core::allocation::Slice;
use rota_core::ids::JobId;
use rota_core::ledger::{Ledger, Sample, Stretch};
use rota_core::time::{Span, Time};
use smallvec::SmallVec;

/// A job with GPUs after a decision.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Holder {
    pub(super) job: u32,
    pub(super) gpus: u32,
    /// What they are worth to it, in GPUs.
    pub(super) worth: f64,
    /// Which they are, where the original knows.
    pub(super) slices: SmallVec<[Slice; 1]>,
}

/// A run as it goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    gpus_up: u32,
    keeps_timeline: bool,
    /// What each job holds since when, by job.
    open: Vec<Option<(Time, Holder)>>,
    /// The jobs that held something after the last decision.
    held: Vec<u32>,
    stops: Vec<u32>,
    service: Vec<Span>,
    ran: Vec<Span>,
    samples: Vec<Sample>,
    timeline: Vec<Stretch>,
    worth_time_s: f64,
}

impl Track {
    pub(super) fn new(n_jobs: usize, gpus_up: u32, keeps_timeline: bool) -> Self {
        Track {
            gpus_up,
            keeps_timeline,
            open: vec![None; n_jobs],
            stops: vec![0; n_jobs],
            service: vec![Span::ZERO; n_jobs],
            ran: vec![Span::ZERO; n_jobs],
            ..Track::default()
        }
    }

    /// After a decision: what the running jobs hold, how many wait, and how many GPUs all of them ask for.
    pub(super) fn round(&mut self, now: Time, holders: Vec<Holder>, waiting: u32, gpus_asked: u64) {
        let mut sample = Sample {
            time: now,
            waiting,
            running: holders.len() as u32,
            gpus_up: self.gpus_up,
            gpus_held: holders.iter().map(|holder| holder.gpus).sum(),
            gpus_worth: holders.iter().fold(0.0, |sum, holder| sum + holder.worth),
            gpus_asked,
            ..Sample::default()
        };
        let mut hold: Vec<u32> = holders.iter().map(|holder| holder.job).collect();
        hold.sort_unstable();
        for job in std::mem::replace(&mut self.held, hold) {
            if self.held.binary_search(&job).is_err() && self.close(job as usize, now) {
                self.stops[job as usize] += 1;
                sample.commands += 1;
            }
        }
        for holder in holders {
            let job = holder.job as usize;
            if self.open[job].as_ref().is_none_or(|(_, held)| *held != holder) {
                self.close(job, now);
                self.open[job] = Some((now, holder));
                sample.commands += 1;
            }
        }
        self.samples.push(sample);
    }

    /// The job gave its GPUs back at its end, which may have been noticed later.
    pub(super) fn end(&mut self, job: u32, end: Time) {
        self.close(job as usize, end);
    }

    fn close(&mut self, job: usize, now: Time) -> bool {
        let Some((from, held)) = self.open[job].take() else { return false };
        let to = now.max(from);
        self.service[job] += (to - from) * i64::from(held.gpus);
        self.ran[job] += to - from;
        self.worth_time_s += (to - from).as_secs_f64() * held.worth;
        if self.keeps_timeline && to > from {
            let stretch = |slice| Stretch { job: JobId::from(job), slice, from, to };
            self.timeline.extend(held.slices.into_iter().map(stretch));
        }
        true
    }

    /// Adds what was seen to the ledger: what each job held, and the rounds.
    pub(super) fn write(self, ledger: &mut Ledger) {
        for (job, outcome) in ledger.outcomes.iter_mut().enumerate() {
            (outcome.service, outcome.ran) = (self.service[job], self.ran[job]);
            outcome.preemptions = self.stops[job];
        }
        ledger.gpu_time = self.service.iter().map(|service| i128::from(service.0)).sum();
        self.write_rounds(ledger);
    }

    /// Adds the rounds alone, for an original that counts by itself what a job held.
    pub(super) fn write_rounds(self, ledger: &mut Ledger) {
        ledger.worth_time_s = self.worth_time_s;
        ledger.n_decisions = self.samples.len() as u64;
        (ledger.samples, ledger.timeline) = (self.samples, self.timeline);
    }
}

#[cfg(test)]
mod tests {
    use rota_core::ledger::{Outcome, Status};

    use super::*;

    fn at(seconds: i64) -> Time {
        Time(seconds * 1_000_000)
    }

    fn holder(job: u32, gpus: u32) -> Holder {
        Holder { job, gpus, worth: f64::from(gpus) / 2.0, slices: SmallVec::new() }
    }

    #[test]
    fn gpu_time_stops_and_samples_follow_from_who_held_what() {
        let mut track = Track::new(2, 4, false);
        track.round(at(0), vec![holder(0, 4)], 1, 6);
        track.round(at(60), vec![holder(1, 2)], 1, 6);
        track.round(at(120), vec![holder(0, 2), holder(1, 2)], 0, 6);
        track.end(1, at(130));
        track.round(at(180), vec![holder(0, 2)], 0, 4);
        track.end(0, at(200));
        let blank = Outcome { status: Status::Finished, ..Outcome::unfinished("") };
        let mut ledger = Ledger { outcomes: vec![blank; 2], ..Ledger::default() };
        track.write(&mut ledger);
        let seen: Vec<_> = ledger.outcomes.iter().map(|o| (o.service.0 / 1_000_000, o.preemptions)).collect();
        assert_eq!(seen, [(4 * 60 + 2 * 80, 1), (2 * 70, 0)]);
        assert_eq!(ledger.gpu_time, 540_000_000);
        assert_eq!(ledger.worth_time_s, 270.0);
        let commands: Vec<_> = ledger.samples.iter().map(|s| (s.gpus_held, s.waiting, s.commands)).collect();
        assert_eq!(commands, [(4, 1, 1), (2, 1, 2), (4, 0, 1), (2, 0, 0)]);
    }
}
