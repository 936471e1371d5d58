//! `gandiva`: nodes are dealt out to classes of jobs by size, and jobs take turns on them.
//!
//! Reproduced with its faults, each of which can be left out: seats are never given back when a job ends, the last seat
//! of a set is not used while nodes are free, a class is rearranged or not depending on its last step, ends are only
//! noticed at arrivals, and every second pending job is passed over when GPUs become free.

use std::collections::BTreeMap;

use rota_core::time::{Span, Time};
use smallvec::SmallVec;

use super::accounts::Accounts;
use super::events::Events;
use super::job::{Job, Run};
use super::overhead::{self, RestartCount};
use super::{ArtifactError, Case, Defect, Defects, Machines};

/// Sizes of gangs the original knows.
const SIZES: [u32; 16] = [1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 88, 128, 256];

/// How often jobs take turns, in seconds of the clock.
const TURN_S: i64 = 60;

/// Nodes that hold jobs of one size.
#[derive(Clone, Debug)]
struct Seats {
    n_nodes: u32,
    /// Jobs that run at a time.
    capacity: usize,
    /// Jobs that were ever seated since it was last rearranged.
    used: usize,
    jobs: Vec<u32>,
}

impl Seats {
    /// Jobs that run until turns are taken.
    fn served(&self) -> &[u32] {
        &self.jobs[..self.jobs.len().min(self.capacity)]
    }
}

#[derive(Clone, Debug, Default)]
struct Turn {
    executed_s: f64,
    overhead_s: f64,
    start: i64,
    /// Whether it runs in the round under way.
    is_served: bool,
}

struct Classes {
    jobs: Vec<Job>,
    turns: Vec<Turn>,
    by_size: BTreeMap<u32, Vec<Seats>>,
    n_free_nodes: u32,
    machines: Machines,
    running: Vec<u32>,
    pending: Vec<u32>,
    defects: Defects,
}

/// Runs to the end.
pub(super) fn run(case: Case) -> Result<Run, ArtifactError> {
    check(&case.jobs, &case.machines)?;
    let mut restarts = RestartCount::new(&case);
    let Case { jobs, machines, slot, defects, mut accounts } = case;
    let mut arrivals = Events::of_arrivals(jobs.iter().enumerate().map(|(id, job)| (id as u32, job.submit)));
    let mut now = arrivals.first().unwrap_or(Time::ZERO);
    let mut passed = Span::ZERO;
    let mut state = Classes {
        turns: vec![Turn::default(); jobs.len()],
        by_size: BTreeMap::new(),
        n_free_nodes: machines.keys.len() as u32,
        running: Vec::new(),
        pending: Vec::new(),
        jobs,
        machines,
        defects,
    };
    while !arrivals.is_empty() || !state.pending.is_empty() || !state.running.is_empty() {
        let now_s = now.0 / 1_000_000;
        state.adjust();
        let is_any_node_free = state.execute(now_s, passed.as_secs_f64(), &mut accounts);
        for id in arrivals.take(now).unwrap_or_default().starts {
            if !state.start(id, now_s) {
                state.pending.push(id);
            }
        }
        if is_any_node_free {
            state.retry_pending(now_s);
        }
        state.write_down(now, &mut accounts);
        if !state.has(Defect::GandivaArrivalsOnly) && !state.running.is_empty() {
            arrivals.wake(now + slot);
        }
        let next = if arrivals.is_empty() {
            now + slot
        } else {
            state.charge(restarts.next());
            arrivals.coalesce(now, slot).unwrap_or(now)
        };
        passed = next - now;
        now = next;
    }
    Ok(accounts.close(&state.jobs))
}

fn check(jobs: &[Job], machines: &Machines) -> Result<(), ArtifactError> {
    for job in jobs {
        let nodes = job.asked.div_ceil(machines.gpus_per_node.max(1)) as usize;
        if !SIZES.contains(&job.asked) || nodes > machines.keys.len() {
            let why = format!("asks for {} GPUs, which have no class on this cluster", job.asked);
            return Err(ArtifactError::Job { name: job.name.clone(), why });
        }
    }
    Ok(())
}

/// Fewest used first; the order of equals stays.
fn tidy(class: &mut [Seats]) {
    class.sort_by_key(|seats| seats.used);
}

/// One by one to the class that has used fewest.
fn deal(class: &mut [Seats], jobs: Vec<u32>) {
    for id in jobs {
        if let Some(first) = class.first_mut() {
            first.used += 1;
            first.jobs.push(id);
        }
        tidy(class);
    }
}

impl Classes {
    fn has(&self, defect: Defect) -> bool {
        self.defects.has(defect)
    }

    fn seats(&self, size: u32) -> Seats {
        let n_nodes = size.div_ceil(self.machines.gpus_per_node);
        let capacity = (n_nodes * self.machines.gpus_per_node / size) as usize;
        Seats { n_nodes, capacity, used: 0, jobs: Vec::new() }
    }

    /// Deals nodes out to classes in proportion to what their jobs ask for.
    fn adjust(&mut self) {
        let jobs_in = |class: &[Seats]| class.iter().map(|s| s.jobs.len() as u64).sum::<u64>();
        let demands: Vec<(u32, u64)> =
            self.by_size.iter().map(|(size, class)| (*size, u64::from(*size) * jobs_in(class))).collect();
        let total: u64 = demands.iter().map(|d| d.1).sum();
        for (size, demand) in demands.into_iter().filter(|d| d.1 > 0) {
            let part = demand as f64 / total as f64 * f64::from(self.machines.n_gpus);
            let target = (part.floor() as i64).min(demand as i64);
            let Some(class) = self.by_size.get(&size) else { continue };
            let held: u32 = class.iter().map(|s| s.n_nodes).sum();
            let missing = target - i64::from(held * self.machines.gpus_per_node);
            if missing > 0 {
                self.widen(size, (missing as u64).div_ceil(u64::from(size)));
            } else if missing < 0 {
                self.narrow(size, missing.unsigned_abs().div_ceil(u64::from(size)) as usize);
            }
        }
    }

    fn widen(&mut self, size: u32, n_steps: u64) {
        let fresh = self.seats(size);
        let (mut got_last, mut got_any) = (false, false);
        for _ in 0..n_steps {
            got_last = fresh.n_nodes <= self.n_free_nodes;
            if got_last {
                got_any = true;
                self.n_free_nodes -= fresh.n_nodes;
                self.by_size.entry(size).or_default().push(fresh.clone());
            }
        }
        let spreads =
            if self.has(Defect::GandivaRearrange) { !got_last || fresh.n_nodes >= 2 } else { got_any };
        let Some(class) = self.by_size.get_mut(&size).filter(|_| spreads) else { return };
        let mut moved = Vec::new();
        for seats in class.iter_mut().filter(|s| !s.jobs.is_empty()) {
            moved.append(&mut seats.jobs);
            seats.used = 0;
        }
        deal(class, moved);
    }

    fn narrow(&mut self, size: u32, n_steps: usize) {
        let Some(class) = self.by_size.get_mut(&size) else { return };
        let n_gone = n_steps.min(class.len().saturating_sub(1));
        let mut moved = Vec::new();
        for mut seats in class.drain(..n_gone) {
            moved.append(&mut seats.jobs);
            self.n_free_nodes += seats.n_nodes;
        }
        deal(class, moved);
    }

    /// Runs the jobs in front; returns whether a set was given back.
    fn execute(&mut self, now_s: i64, passed_s: f64, accounts: &mut Accounts) -> bool {
        let mut is_any_node_free = false;
        let gives_seats_back = !self.has(Defect::GandivaSeats);
        let takes_turns = now_s % TURN_S == 0 || !self.has(Defect::GandivaMinuteTurns);
        for class in self.by_size.values_mut() {
            for seats in class.iter_mut() {
                let n_served = seats.jobs.len().min(seats.capacity);
                let mut ended = Vec::new();
                for &id in &seats.jobs[..n_served] {
                    let (job, turn) = (&self.jobs[id as usize], &mut self.turns[id as usize]);
                    turn.executed_s += (passed_s - std::mem::take(&mut turn.overhead_s)).max(0.0);
                    let over_s = turn.executed_s - job.duration.as_secs_f64();
                    if over_s >= 0.0 {
                        let end = Time::from_secs_f64(now_s as f64 - over_s);
                        accounts.finish(id, job, Some(Time(turn.start * 1_000_000)), end, end > job.deadline);
                        ended.push(id);
                    }
                }
                if takes_turns && seats.jobs.len() > n_served {
                    seats.jobs.rotate_left(n_served);
                }
                if !ended.is_empty() {
                    seats.jobs.retain(|id| !ended.contains(id));
                    seats.used -= if gives_seats_back { ended.len() } else { 0 };
                    self.running.retain(|id| !ended.contains(id));
                }
            }
            let n_free_nodes = &mut self.n_free_nodes;
            class.retain(|seats| {
                if seats.jobs.is_empty() {
                    *n_free_nodes += seats.n_nodes;
                    is_any_node_free = true;
                }
                !seats.jobs.is_empty()
            });
        }
        is_any_node_free
    }

    fn start(&mut self, id: u32, now_s: i64) -> bool {
        let is_placed = self.place(id);
        if is_placed {
            self.turns[id as usize].start = now_s;
            self.running.push(id);
        }
        is_placed
    }

    /// A seat in the emptiest set, else on free nodes, else behind others.
    fn place(&mut self, id: u32) -> bool {
        let size = self.jobs[id as usize].asked;
        let mut fresh = self.seats(size);
        let n_unused = usize::from(self.has(Defect::GandivaSeats));
        let class = self.by_size.entry(size).or_default();
        if !class.is_empty() {
            let mut first = class.remove(0);
            let has_seat = first.used + n_unused < first.capacity;
            if has_seat {
                first.used += 1;
                first.jobs.push(id);
            }
            class.push(first);
            if has_seat {
                tidy(class);
                return true;
            }
        }
        if fresh.n_nodes <= self.n_free_nodes {
            self.n_free_nodes -= fresh.n_nodes;
            fresh.used = 1;
            fresh.jobs.push(id);
            class.push(fresh);
        } else if class.is_empty() {
            return false;
        } else {
            let mut first = class.remove(0);
            first.used += 1;
            first.jobs.push(id);
            class.push(first);
        }
        tidy(class);
        true
    }

    fn retry_pending(&mut self, now_s: i64) {
        let mut index = 0;
        while index < self.pending.len() {
            let is_seated = self.start(self.pending[index], now_s);
            if is_seated {
                self.pending.remove(index);
            }
            index += usize::from(!is_seated || self.has(Defect::GandivaSkipsWaiting));
        }
    }

    fn write_down(&self, now: Time, accounts: &mut Accounts) {
        let holding = |id: &u32| {
            let job = &self.jobs[*id as usize];
            job.holding(*id, job.asked, SmallVec::new())
        };
        let holders = self.by_size.values().flatten().flat_map(Seats::served).map(holding).collect();
        let there: Vec<u32> = self.running.iter().chain(&self.pending).copied().collect();
        accounts.round(now, &self.jobs, &there, holders);
    }

    /// Every job pays for the round to come, or every one that did not run in the last.
    fn charge(&mut self, is_restart: bool) {
        let pays_always = self.has(Defect::OverheadEveryRound) || is_restart;
        let served: Vec<u32> = self.by_size.values().flatten().flat_map(Seats::served).copied().collect();
        for &id in &self.running {
            let turn = &mut self.turns[id as usize];
            let begins =
                served.contains(&id) && !std::mem::replace(&mut turn.is_served, served.contains(&id));
            let asked = self.jobs[id as usize].asked;
            if pays_always || begins {
                turn.overhead_s = overhead::cost_s(asked, self.machines.n_gpus, is_restart, false);
            }
        }
    }
}
