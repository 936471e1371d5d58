//! What the schedulers with end events share: lists of jobs, progress, starting and ending.

use rota_core::buddy::Shelves;
use rota_core::time::{Span, Time};

use super::Machines;
use super::events::Events;
use super::job::{Books, Job, Run};
use super::overhead::{self, RankCache, RestartCount};

/// A run in progress. Lists hold job numbers; their order is the original's and decides ties.
#[derive(Debug)]
pub(super) struct State {
    pub(super) jobs: Vec<Job>,
    pub(super) machines: Machines,
    pub(super) slot: Span,
    pub(super) now: Time,
    /// Time since the last round.
    pub(super) passed: Span,
    pub(super) events: Events,
    pub(super) shelves: Shelves,
    /// Admitted and not ended, with or without GPUs.
    pub(super) runnable: Vec<u32>,
    /// Of these, never started.
    pub(super) pending: Vec<u32>,
    /// Of these, started, with or without GPUs.
    pub(super) running: Vec<u32>,
    pub(super) books: Books,
    ranks: RankCache,
    restarts: RestartCount,
}

impl State {
    pub(super) fn new(jobs: Vec<Job>, machines: Machines, slot: Span) -> Self {
        let events = Events::of_arrivals(jobs.iter().enumerate().map(|(id, job)| (id as u32, job.submit)));
        State {
            now: events.first().unwrap_or(Time::ZERO),
            passed: Span::ZERO,
            shelves: Shelves::new(machines.keys.clone(), machines.gpus_per_node),
            runnable: Vec::new(),
            pending: Vec::new(),
            running: Vec::new(),
            books: Books::new(jobs.len()),
            ranks: RankCache::default(),
            restarts: RestartCount::new(slot),
            jobs,
            machines,
            slot,
            events,
        }
    }

    pub(super) fn job(&mut self, id: u32) -> &mut Job {
        &mut self.jobs[id as usize]
    }

    /// Counts the work of the time that passed. A job that is done before its end event moves it to now.
    pub(super) fn progress(&mut self) {
        let (now, passed) = (self.now, self.passed);
        for &id in &self.runnable {
            let job = &mut self.jobs[id as usize];
            let overhead = std::mem::take(&mut job.overhead);
            if job.gpus == 0 {
                continue;
            }
            let limit = job.real_end.unwrap_or(job.end);
            let ran = if now > limit { Span(passed.0 - (now - limit).0) } else { passed };
            let worked = if ran < overhead { Span::ZERO } else { Span(ran.0 - overhead.0) };
            let rate = job.rate();
            let mut done = worked.as_secs_f64() * rate;
            if job.work <= done && job.end > now {
                let since = Time(now.0 - passed.0);
                done = (job.end - since).as_secs_f64() * rate;
                let end = since + Span::from_secs((job.work / rate).ceil() as i64);
                job.old_end = Some(job.end);
                self.events.move_end(id, &mut job.old_end, now);
                job.end = end;
            }
            job.work -= done;
        }
    }

    pub(super) fn move_end(&mut self, id: u32) {
        let job = &mut self.jobs[id as usize];
        self.events.move_end(id, &mut job.old_end, job.end);
    }

    /// First GPUs of a job.
    pub(super) fn start(&mut self, id: u32) {
        self.pending.retain(|j| *j != id);
        self.running.push(id);
        let now = self.now;
        let job = self.job(id);
        job.is_running = true;
        job.start = Some(now);
    }

    pub(super) fn finish(&mut self, id: u32, is_late: bool) {
        self.running.retain(|j| *j != id);
        self.runnable.retain(|j| *j != id);
        self.pending.retain(|j| *j != id);
        let job = &self.jobs[id as usize];
        self.books.finish(id, job, job.start, job.end, is_late);
    }

    /// Finds a place; power-of-two gangs placed from large to small always have one.
    pub(super) fn place(&mut self, id: u32) {
        let gpus = self.jobs[id as usize].gpus;
        let is_placed = self.shelves.place(id, gpus);
        debug_assert!(is_placed, "no place for {gpus} GPUs of job {id}");
    }

    /// Looks up who runs on GPUs used before; comes after placing, as the original's log does.
    pub(super) fn look_at_ranks(&mut self) {
        let (shelves, ranks, jobs) = (&self.shelves, &mut self.ranks, &mut self.jobs);
        let mut told = Vec::new();
        ranks.look(
            shelves,
            self.machines.gpus_per_node,
            |id| jobs[id as usize].gpus,
            |id, cached| told.push((id, cached)),
        );
        for (id, is_cached) in told {
            jobs[id as usize].is_cached = is_cached;
        }
    }

    /// Every job with GPUs pays; its end moves, its plan's own end does not.
    pub(super) fn charge(&mut self, payers: Payers) {
        let is_restart = self.restarts.next();
        if is_restart {
            self.ranks.clear();
        }
        let list = match payers {
            Payers::Nobody => return,
            Payers::Runnable => self.runnable.clone(),
            Payers::Running => self.running.clone(),
        };
        let n_gpus = self.machines.n_gpus;
        for id in list {
            let job = &mut self.jobs[id as usize];
            job.overhead = Span::ZERO;
            if job.gpus > 0 {
                job.overhead = overhead::cost(job.gpus, n_gpus, is_restart, job.is_cached);
                job.old_end = Some(job.end);
                job.end = job.end + job.overhead;
                self.events.move_end(id, &mut job.old_end, job.end);
            }
        }
    }

    /// On to the next event; says whether there is one.
    pub(super) fn advance(&mut self) -> bool {
        let Some(next) = self.events.coalesce(self.now, self.slot) else { return false };
        self.passed = next - self.now;
        self.now = next;
        true
    }

    pub(super) fn by_deadline(jobs: &[Job], list: &mut [u32]) {
        list.sort_by_key(|id| jobs[*id as usize].deadline);
    }

    pub(super) fn close(self) -> Run {
        self.books.close(&self.jobs)
    }
}

/// Who pays for a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payers {
    Nobody,
    Running,
    Runnable,
}
