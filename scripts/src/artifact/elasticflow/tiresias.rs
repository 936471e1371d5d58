//! `dlas-gpu`: Tiresias' two-dimensional LAS with its queues, as the original's release has it.

use rota_core::time::Time;
use smallvec::SmallVec;

use super::accounts::Accounts;
use super::events::Events;
use super::job::{Job, Run};
use super::overhead::{self, RestartCount};
use super::{ArtifactError, Case, Defect, Defects};

/// GPU-seconds of service at which a job leaves the first and the second queue.
const LIMITS_GPU_S: [i64; 2] = [3_250, 7_200];

/// What this scheduler keeps of a job, in whole seconds.
#[derive(Clone, Debug, Default)]
struct Attained {
    queue: usize,
    is_running: bool,
    start: Option<Time>,
    last: i64,
    /// Time run in all.
    total_s: i64,
    overhead_s: f64,
    end: i64,
}

/// The one end that is kept: the earliest, with every job that shares it.
struct End {
    time: i64,
    jobs: Vec<u32>,
}

struct Queues {
    jobs: Vec<Job>,
    attained: Vec<Attained>,
    queues: [Vec<u32>; 3],
    /// In the order the original last sorted them.
    runnable: Vec<u32>,
    n_gpus: u32,
    slot_s: i64,
    defects: Defects,
}

/// Runs to the end.
pub(super) fn run(case: Case) -> Result<Run, ArtifactError> {
    let mut restarts = RestartCount::new(&case);
    let Case { jobs, machines, slot, defects, mut accounts } = case;
    let mut arrivals = Events::of_arrivals(jobs.iter().enumerate().map(|(id, job)| (id as u32, job.submit)));
    let mut state = Queues {
        attained: vec![Attained::default(); jobs.len()],
        queues: Default::default(),
        runnable: Vec::new(),
        n_gpus: machines.n_gpus,
        slot_s: seconds(Time(slot.0)),
        jobs,
        defects,
    };
    let mut end: Option<End> = None;
    let mut jump = i64::MAX;
    while !arrivals.is_empty() || end.is_some() {
        let arrival = arrivals.first().map_or(i64::MAX, seconds);
        let end_time = end.as_ref().map_or(i64::MAX, |end| end.time);
        let now = arrival.min(end_time).min(jump);
        let is_jump = jump < arrival.min(end_time);
        if !is_jump
            && end_time <= arrival
            && let Some(end) = end.take()
        {
            state.end_jobs(&end.jobs, &mut accounts);
        }
        if !is_jump
            && arrival <= end_time
            && let Some(event) = arrivals.take(Time(arrival * 1_000_000))
        {
            state.arrive(&event.starts);
        }
        state.progress(now);
        let is_restart = restarts.next();
        state.choose(now, is_restart);
        end = state.next_end(now, is_restart);
        jump = state.next_jump(now);
        state.write_down(now, &mut accounts);
        arrivals.coalesce(Time(now * 1_000_000), slot);
    }
    let Queues { jobs, .. } = state;
    Ok(accounts.close(&jobs))
}

fn seconds(time: Time) -> i64 {
    time.0 / 1_000_000
}

impl Queues {
    fn end_jobs(&mut self, ended: &[u32], accounts: &mut Accounts) {
        for &id in ended {
            let attained = &self.attained[id as usize];
            let job = &self.jobs[id as usize];
            let end = Time(attained.end * 1_000_000);
            accounts.finish(id, job, attained.start, end, end > job.deadline);
            self.queues[attained.queue].retain(|j| *j != id);
            self.runnable.retain(|j| *j != id);
        }
    }

    fn arrive(&mut self, arrived: &[u32]) {
        for &id in arrived {
            self.attained[id as usize].last = seconds(self.jobs[id as usize].submit);
            self.runnable.push(id);
            self.queues[0].push(id);
        }
    }

    fn progress(&mut self, now: i64) {
        for &id in &self.runnable {
            let attained = &mut self.attained[id as usize];
            let passed = now - attained.last;
            attained.last = now;
            if !attained.is_running {
                continue;
            }
            let ran = (passed as f64 - attained.overhead_s).max(0.0);
            attained.overhead_s = 0.0;
            attained.total_s = (attained.total_s as f64 + ran) as i64;
            let service = attained.total_s * i64::from(self.jobs[id as usize].asked);
            if LIMITS_GPU_S.get(attained.queue).is_some_and(|limit| service >= *limit) {
                self.queues[attained.queue].retain(|j| *j != id);
                attained.queue += 1;
                self.queues[attained.queue].push(id);
            }
        }
    }

    /// Walks the queues; a gang that does not fit is passed over. Jobs that do not run go behind those that do.
    fn choose(&mut self, now: i64, is_restart: bool) {
        let mut free = self.n_gpus;
        for queue in &self.queues {
            for &id in queue {
                let attained = &mut self.attained[id as usize];
                let asked = self.jobs[id as usize].asked;
                let is_served = free >= asked;
                if is_served {
                    free -= asked;
                }
                if is_served && !attained.is_running {
                    attained.overhead_s = overhead::cost_s(asked, self.n_gpus, is_restart, false);
                    attained.start = attained.start.or(Some(Time(now * 1_000_000)));
                }
                attained.is_running = is_served;
            }
        }
        let jobs = &self.jobs;
        self.runnable.sort_by_key(|id| std::cmp::Reverse(jobs[*id as usize].asked));
        let attained = &self.attained;
        for queue in &mut self.queues {
            queue.sort_by_key(|id| !attained[*id as usize].is_running);
        }
    }

    fn write_down(&self, now: i64, accounts: &mut Accounts) {
        let running = self.runnable.iter().filter(|id| self.attained[**id as usize].is_running);
        let holding = |id: &u32| {
            let job = &self.jobs[*id as usize];
            job.holding(*id, job.asked, SmallVec::new())
        };
        accounts.round(Time(now * 1_000_000), &self.jobs, &self.runnable, running.map(holding).collect());
    }

    fn next_end(&mut self, now: i64, is_restart: bool) -> Option<End> {
        let mut next: Option<End> = None;
        for &id in &self.runnable {
            let (job, attained) = (&self.jobs[id as usize], &mut self.attained[id as usize]);
            if !attained.is_running {
                continue;
            }
            let mut left = (seconds(Time(job.duration.0)) - attained.total_s) as f64;
            if is_restart {
                attained.overhead_s = overhead::cost_s(job.asked, self.n_gpus, true, false);
            }
            if is_restart || !self.defects.has(Defect::TiresiasStartCost) {
                left += attained.overhead_s;
            }
            let end = (now as f64 + left) as i64;
            let time = end.max(now + self.slot_s);
            match &mut next {
                Some(next) if time > next.time => continue,
                Some(next) if time == next.time => next.jobs.push(id),
                _ => next = Some(End { time, jobs: vec![id] }),
            }
            attained.end = end;
        }
        next
    }

    /// When the next job may leave its queue. The original's formula takes GPU-seconds for seconds.
    fn next_jump(&self, now: i64) -> i64 {
        let mixes_units = self.defects.has(Defect::TiresiasUnits);
        let jump = |id: &u32| {
            let attained = &self.attained[*id as usize];
            let limit = LIMITS_GPU_S.get(attained.queue).filter(|_| attained.is_running)?;
            let asked = i64::from(self.jobs[*id as usize].asked);
            let had = attained.total_s * if mixes_units { 1 } else { asked };
            let left = (limit - had) as f64 / asked as f64;
            Some(now + left.ceil() as i64)
        };
        let jump = self.runnable.iter().filter_map(jump).min().unwrap_or(i64::MAX);
        if jump == i64::MAX { jump } else { jump.max(now + self.slot_s) }
    }
}
