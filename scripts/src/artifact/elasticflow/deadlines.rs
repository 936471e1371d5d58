//! What the schedulers with end events share: lists of jobs, starting, paying for it, and ending.

use rota_core::buddy::Shelves;
use rota_core::time::{Span, Time};

use super::accounts::Accounts;
use super::events::{Event, Events};
use super::job::{Job, Run};
use super::overhead::{self, RankCache, RestartCount};
use super::{Case, Defect, Defects, Machines};

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
    pub(super) accounts: Accounts,
    ranks: RankCache,
    restarts: RestartCount,
    defects: Defects,
}

impl State {
    pub(super) fn new(case: Case) -> Self {
        let restarts = RestartCount::new(&case);
        let Case { jobs, machines, slot, defects, accounts } = case;
        let events = Events::of_arrivals(jobs.iter().enumerate().map(|(id, job)| (id as u32, job.submit)));
        State {
            now: events.first().unwrap_or(Time::ZERO),
            passed: Span::ZERO,
            shelves: Shelves::new(machines.keys.clone(), machines.gpus_per_node),
            runnable: Vec::new(),
            pending: Vec::new(),
            running: Vec::new(),
            accounts,
            ranks: RankCache::default(),
            restarts,
            defects,
            jobs,
            machines,
            slot,
            events,
        }
    }

    pub(super) fn has(&self, defect: Defect) -> bool {
        self.defects.has(defect)
    }

    pub(super) fn job(&mut self, id: u32) -> &mut Job {
        &mut self.jobs[id as usize]
    }

    /// Counts the work of the time that passed.
    pub(super) fn progress(&mut self) {
        if self.has(Defect::PlannedEnd) {
            self.progress_by_plan();
        } else {
            self.progress_by_work();
        }
    }

    /// Up to the planned end and no further. A job that is done before its end event moves it to now.
    fn progress_by_plan(&mut self) {
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

    /// Until the work is done, which is when a job ends, to the second.
    fn progress_by_work(&mut self) {
        let since = Time(self.now.0 - self.passed.0);
        for &id in &self.runnable {
            let job = &mut self.jobs[id as usize];
            let overhead = std::mem::take(&mut job.overhead);
            if job.gpus == 0 {
                continue;
            }
            let worked = Span((self.passed.0 - overhead.0).max(0));
            let needed = Span::from_secs((job.work / job.rate()).ceil() as i64);
            if needed <= worked {
                job.work = 0.0;
                job.end = since + overhead + needed;
            } else {
                job.work -= worked.as_secs_f64() * job.rate();
            }
        }
    }

    /// Who ends now, of those with GPUs (`holds`): whose planned end fires, or whose work is done.
    pub(super) fn ended(&self, event: &Event, holds: impl Fn(u32) -> bool) -> Vec<u32> {
        if self.has(Defect::PlannedEnd) {
            event.ends.iter().copied().filter(|id| holds(*id)).collect()
        } else {
            self.runnable.iter().copied().filter(|id| self.jobs[*id as usize].work <= 0.0).collect()
        }
    }

    /// Whether it is late by its plan, under the rule that plans end jobs, or by when its work was done.
    pub(super) fn is_late(&self, id: u32, planned: Time) -> bool {
        let job = &self.jobs[id as usize];
        let end = if self.has(Defect::PlannedEnd) { planned } else { job.end };
        end > job.deadline
    }

    pub(super) fn move_end(&mut self, id: u32) {
        let job = &mut self.jobs[id as usize];
        self.events.move_end(id, &mut job.old_end, job.end);
    }

    /// They may run from now on.
    pub(super) fn take_in(&mut self, ids: &[u32]) {
        self.pending.extend(ids);
        ids.iter().for_each(|id| self.jobs[*id as usize].is_admitted = true);
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
        self.accounts.finish(id, job, job.start, job.end, is_late);
    }

    /// Finds a place; power-of-two gangs placed from large to small always have one.
    pub(super) fn place(&mut self, id: u32) {
        let gpus = self.jobs[id as usize].gpus;
        let is_placed = self.shelves.place(id, gpus);
        debug_assert!(is_placed, "no place for {gpus} GPUs of job {id}");
    }

    /// Ends the decision of a round: looks up which jobs run on GPUs used before, and records what each holds.
    pub(super) fn close_round(&mut self) {
        self.look_at_ranks();
        let mut holders = Vec::new();
        for home in self.shelves.homes() {
            let mut first = 0;
            for &id in home.gangs {
                let gpus = self.jobs[id as usize].gpus;
                let slices = self.machines.slices(home.nodes, first, gpus);
                holders.push(self.jobs[id as usize].holding(id, gpus, slices));
                first += gpus;
            }
        }
        self.accounts.round(self.now, &self.jobs, &self.runnable, holders);
    }

    /// Comes after placing, as the original's log does.
    fn look_at_ranks(&mut self) {
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

    /// Jobs with GPUs pay, all or those whose GPUs changed; an end moves, its plan's own end does not.
    pub(super) fn charge(&mut self, payers: Payers) {
        let is_restart = self.restarts.next();
        if is_restart {
            self.ranks.clear();
        }
        let list = match payers {
            Payers::None => return,
            Payers::Runnable => self.runnable.clone(),
            Payers::Running => self.running.clone(),
        };
        let n_gpus = self.machines.n_gpus;
        let pays_always = self.has(Defect::OverheadEveryRound);
        for id in list {
            let job = &mut self.jobs[id as usize];
            job.overhead = Span::ZERO;
            let is_changed = std::mem::replace(&mut job.had_gpus, job.gpus) != job.gpus;
            if job.gpus > 0 && (pays_always || is_changed || is_restart) {
                job.overhead = overhead::cost(job.gpus, n_gpus, is_restart, job.is_cached);
                job.old_end = Some(job.end);
                job.end = job.end + job.overhead;
                self.events.move_end(id, &mut job.old_end, job.end);
            }
        }
    }

    /// By when the plan of a job should be done: its deadline, or so long before it as a start costs.
    pub(super) fn target(&self, id: u32) -> Time {
        let job = &self.jobs[id as usize];
        if job.is_best_effort || self.has(Defect::PlansWithoutCosts) {
            return job.deadline;
        }
        let most = job.speeds.within(self.machines.n_gpus as i32).map_or(1, |level| level.0);
        job.deadline - overhead::cost(most, self.machines.n_gpus, false, false)
    }

    /// Moves on to the next event; returns whether there is one.
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
        self.accounts.close(&self.jobs)
    }
}

/// Who pays for a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payers {
    None,
    Running,
    Runnable,
}
