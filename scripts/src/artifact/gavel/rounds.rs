//! The original's rounds: rows run by their share over the time they have received, a round lasts as long as its longest row.
//!
//! Kept as they are: jobs that arrive between two answers of the policy take a slot and get no GPU (D3), idle time before a round
//! counts as run time (D4), a job with fewer steps left than GPUs fails and is dropped at the fifth time (D5).

use std::collections::{BTreeMap, BTreeSet};

use rota_core::by_share::{self, Account, Claimant, Idle};
use smallvec::{SmallVec, smallvec};

use super::call::{ByType, Call, CallJob, PairSpeeds, RowId};
use super::{ArtifactError, Draws, Policy, Traits};

/// How long rounds last, and how often the policy may be asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounds {
    /// Seconds of a round.
    pub length_s: f64,
    /// Seconds between two answers of the policy at least.
    pub between_answers_s: f64,
}

impl Default for Rounds {
    fn default() -> Self {
        Rounds { length_s: 360.0, between_answers_s: 1920.0 }
    }
}

/// Failures in a row after which a job is dropped.
const MOST_FAILURES: u32 = 5;
/// No run of the original's has nearly as many rounds.
const MOST_ROUNDS: usize = 10_000_000;

/// A job of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct GavelJob {
    /// Which job type and GPU count, by its place in the speeds.
    pub kind: usize,
    /// GPUs that it runs on.
    pub gpus: u32,
    /// Steps to do.
    pub steps: i64,
    /// Its weight.
    pub weight: f64,
    /// When it arrives; jobs are in the order of arrival.
    pub arrival_s: f64,
}

/// Measured speeds of job types, alone and in pairs, by GPU type in alphabetical order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speeds {
    /// Steps in a second of each kind, alone.
    pub alone: Vec<ByType>,
    /// Of two kinds that share GPUs.
    pub pairs: BTreeMap<(usize, usize), SmallVec<[[f64; 2]; 4]>>,
}

/// What became of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// When it first ran.
    pub start_s: Option<f64>,
    /// When it ended; a job that was dropped never did.
    pub finish_s: Option<f64>,
}

/// A finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// For each job, in the order of the trace.
    pub outcomes: Vec<Outcome>,
    /// When the last one ended.
    pub makespan_s: f64,
    /// Mean part of the makespan that a GPU was busy.
    pub utilisation: f64,
    /// How many rounds were held.
    pub n_rounds: usize,
}

/// Runs a trace on `gpus` of each type, named by `types` in alphabetical order; `order` is the order in which types are filled,
/// which `random` shuffles for some policies.
pub fn run(
    jobs: &[GavelJob],
    types: &[String],
    gpus: &[u32],
    order: &[usize],
    speeds: &Speeds,
    how: (Rounds, Traits),
    policy: &mut dyn Policy,
    random: &mut dyn Draws,
) -> Result<Run, ArtifactError> {
    if how.1.needs_deadlines {
        return Err(ArtifactError::NoDeadlines);
    }
    let mut simulator = Simulator::new(jobs, types, gpus, speeds, how);
    let mut n_rounds = 0;
    while simulator.n_left > 0 {
        simulator.advance();
        simulator.finish_round();
        simulator.take_arrivals();
        simulator.ask(policy)?;
        by_share::set_priorities(&mut simulator.claimants, &simulator.received_by_all_s);
        let mut order = order.to_vec();
        if how.1.shuffles {
            shuffle(&mut order, random);
        }
        let idle = if how.1.leaves_idle { Idle::Left } else { Idle::Filled };
        let chosen = by_share::choose(&simulator.claimants, gpus, &order, idle);
        simulator.place(&order, chosen);
        simulator.start();
        n_rounds += 1;
        if n_rounds >= MOST_ROUNDS {
            return Err(ArtifactError::Endless { n_left: simulator.n_left, n_rounds });
        }
    }
    let n_gpus = simulator.busy_s.len().max(1) as f64;
    let utilisation = simulator.busy_s.iter().sum::<f64>() / n_gpus / simulator.now;
    Ok(Run { outcomes: simulator.outcomes, makespan_s: simulator.now, utilisation, n_rounds })
}

fn shuffle(order: &mut [usize], random: &mut dyn Draws) {
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at + 1));
    }
}

/// A job or a pair that can run.
struct Row {
    id: RowId,
    /// Steps in a second of its members on each type.
    rates: SmallVec<[[f64; 2]; 4]>,
    /// Whether it was there when the policy last answered.
    is_known: bool,
}

/// Where a row is in this round, or was in the last.
struct Held {
    /// Its place among the rows, in this round.
    at: usize,
    t: usize,
    gpus: SmallVec<[u32; 8]>,
}

/// A row that runs in this round.
struct Running {
    id: RowId,
    /// Its place among the rows.
    at: usize,
    t: usize,
    gpus: SmallVec<[u32; 8]>,
    steps: [i64; 2],
    finish_s: f64,
}

struct Simulator<'a> {
    jobs: &'a [GavelJob],
    types: &'a [String],
    n_gpus: &'a [u32],
    speeds: &'a Speeds,
    rounds: Rounds,
    traits: Traits,
    now: f64,
    round_start: f64,
    round_end: Option<f64>,
    last_answer: f64,
    is_asked_for: bool,
    next_arrival: usize,
    n_left: usize,
    /// Live jobs in the order of arrival.
    live: Vec<u32>,
    done: Vec<i64>,
    n_failures: Vec<u32>,
    rows: Vec<Row>,
    /// What each row is due.
    claimants: Vec<Claimant>,
    received_by_all_s: ByType,
    running: Vec<Running>,
    held: BTreeMap<RowId, Held>,
    /// The first GPU of each type.
    first_gpu: Vec<u32>,
    busy_s: Vec<f64>,
    outcomes: Vec<Outcome>,
}

impl<'a> Simulator<'a> {
    fn new(
        jobs: &'a [GavelJob],
        types: &'a [String],
        n_gpus: &'a [u32],
        speeds: &'a Speeds,
        (rounds, traits): (Rounds, Traits),
    ) -> Self {
        let mut first_gpu = vec![0];
        for gpus in n_gpus {
            first_gpu.push(first_gpu.last().unwrap_or(&0) + gpus);
        }
        let n_all: u32 = n_gpus.iter().sum();
        Simulator {
            jobs,
            types,
            n_gpus,
            speeds,
            rounds,
            traits,
            now: jobs.first().map_or(0.0, |job| job.arrival_s),
            round_start: 0.0,
            round_end: None,
            last_answer: 0.0,
            is_asked_for: true,
            next_arrival: 0,
            n_left: jobs.len(),
            live: Vec::new(),
            done: vec![0; jobs.len()],
            n_failures: vec![0; jobs.len()],
            rows: Vec::new(),
            claimants: Vec::new(),
            received_by_all_s: smallvec![0.0; types.len()],
            running: Vec::new(),
            held: BTreeMap::new(),
            first_gpu,
            busy_s: vec![0.0; n_all as usize],
            outcomes: vec![Outcome::default(); jobs.len()],
        }
    }

    fn job(&self, id: u32) -> &'a GavelJob {
        &self.jobs[id as usize]
    }

    /// To the end of the round, or to the next arrival.
    fn advance(&mut self) {
        let arrival = self.jobs.get(self.next_arrival).map(|job| job.arrival_s);
        if self.running.is_empty() {
            match arrival {
                Some(arrival) => self.now = arrival,
                None => self.last_answer = 0.0,
            }
            return;
        }
        if let Some(end) = self.round_end {
            self.round_start = end;
        }
        self.now = self.running.iter().map(|row| row.finish_s).fold(f64::NEG_INFINITY, f64::max);
        self.round_end = Some(self.now);
    }

    /// Credits what has run, the latest end first, and removes what is done.
    fn finish_round(&mut self) {
        let mut running = std::mem::take(&mut self.running);
        running.sort_by(|a, b| {
            let kind = |row: &Running| (row.id.second.is_some(), row.id);
            b.finish_s.total_cmp(&a.finish_s).then_with(|| kind(a).cmp(&kind(b)))
        });
        let mut all_gone: SmallVec<[u32; 8]> = SmallVec::new();
        for row in running {
            let ran_s = row.finish_s - self.round_start;
            let gpus = i64::from(self.job(row.id.first).gpus);
            let members = row.id.jobs().zip(row.steps);
            let has_failed = |steps: i64| steps <= 0 || (gpus > 1 && steps / gpus <= 0);
            let mut gone: SmallVec<[u32; 2]> = SmallVec::new();
            if ran_s <= 0.0 || members.clone().any(|(_, steps)| has_failed(steps)) {
                self.is_asked_for = true;
                if row.id.second.is_none() {
                    let n_failures = &mut self.n_failures[row.id.first as usize];
                    *n_failures += 1;
                    if *n_failures >= MOST_FAILURES {
                        gone.push(row.id.first);
                    }
                }
            } else {
                if row.id.second.is_none() {
                    self.n_failures[row.id.first as usize] = 0;
                }
                for (job, steps) in members {
                    self.done[job as usize] += steps;
                    if self.done[job as usize] >= self.job(job).steps {
                        self.outcomes[job as usize].finish_s = Some(row.finish_s);
                        gone.push(job);
                    }
                }
                self.claimants[row.at].accounts[row.t].received_s += ran_s;
                self.received_by_all_s[row.t] += ran_s;
                row.gpus.iter().for_each(|gpu| self.busy_s[*gpu as usize] += ran_s);
            }
            all_gone.extend(gone);
        }
        self.remove(&all_gone);
    }

    /// Takes out jobs, with every row that they are in.
    fn remove(&mut self, gone: &[u32]) {
        if gone.is_empty() {
            return;
        }
        self.n_left -= gone.len();
        self.is_asked_for = true;
        self.live.retain(|job| !gone.contains(job));
        let stays: Vec<bool> =
            self.rows.iter().map(|row| !row.id.jobs().any(|job| gone.contains(&job))).collect();
        let mut stay = stays.iter();
        self.rows.retain(|_| stay.next() == Some(&true));
        let mut stay = stays.iter();
        self.claimants.retain(|_| stay.next() == Some(&true));
    }

    fn take_arrivals(&mut self) {
        while let Some(job) = self.jobs.get(self.next_arrival).filter(|job| job.arrival_s <= self.now) {
            let id = self.next_arrival as u32;
            self.next_arrival += 1;
            self.is_asked_for = true;
            let alone = self.speeds.alone[job.kind].iter().map(|rate| [*rate, 0.0]).collect();
            self.add_row(RowId::single(id), job.gpus, alone, self.rounds.length_s / 2.0);
            if self.traits.packs {
                let mates = self.live.iter().filter(|mate| self.job(**mate).gpus == job.gpus);
                let pairs: Vec<_> =
                    mates.map(|mate| (*mate, self.pair(*mate, id).unwrap_or_default())).collect();
                for (mate, rates) in pairs {
                    let rates = if rates.is_empty() { smallvec![[0.0; 2]; self.types.len()] } else { rates };
                    // D13: alone, a job begins with half a round.
                    self.add_row(RowId::pair(mate, id), job.gpus, rates, 0.0);
                }
            }
            self.live.push(id);
        }
    }

    fn add_row(&mut self, id: RowId, gpus: u32, rates: SmallVec<[[f64; 2]; 4]>, received_s: f64) {
        let account = |rates: &[f64; 2]| {
            // Every member makes progress.
            let can_run = rates[0] > 0.0 && (id.second.is_none() || rates[1] > 0.0);
            Account { can_run, received_s, ..Account::default() }
        };
        let accounts = rates.iter().map(account).collect();
        self.claimants.push(Claimant { jobs: id.jobs().collect(), gpus, accounts });
        self.rows.push(Row { id, rates, is_known: false });
    }

    /// Asks the policy, if something has changed and it may be asked.
    fn ask(&mut self, policy: &mut dyn Policy) -> Result<(), ArtifactError> {
        let may_be_asked =
            self.now - self.last_answer >= self.rounds.between_answers_s || self.last_answer == 0.0;
        if !(self.is_asked_for && may_be_asked) {
            return Ok(());
        }
        let begin_s = self.rounds.length_s / 2.0;
        let open_s = self.now - self.last_answer;
        let accounts = self.claimants.iter_mut().flat_map(|claimant| &mut claimant.accounts);
        accounts.for_each(|account| account.reopen(open_s, begin_s));
        let of_all = |t: usize| self.claimants.iter().map(|claimant| claimant.accounts[t].received_s).sum();
        self.received_by_all_s = (0..self.types.len()).map(of_all).collect();
        self.last_answer = self.now;
        self.is_asked_for = false;
        let answer = policy.shares(&self.call())?;
        for (row, claimant) in self.rows.iter_mut().zip(&mut self.claimants) {
            row.is_known = true;
            let shares = answer.get(&row.id);
            for (t, account) in claimant.accounts.iter_mut().enumerate() {
                account.share = shares.map_or(0.0, |shares| shares[t]);
            }
        }
        Ok(())
    }

    fn call(&self) -> Call<'_> {
        let job = |id: &u32| {
            let job = self.job(*id);
            CallJob {
                id: *id,
                gpus: job.gpus,
                weight: job.weight,
                rates: self.speeds.alone[job.kind].clone(),
                left: (job.steps - self.done[*id as usize]) as f64,
                waited_s: self.now - job.arrival_s,
                slo_s: None,
            }
        };
        let jobs = self.live.iter().map(job).collect();
        Call {
            now_s: self.now,
            types: self.types,
            gpus: self.n_gpus,
            jobs,
            pairs: self,
            prices: &[],
            entities: &[],
        }
    }

    /// Gives GPUs to the rows: the largest first, each its old ones if it can keep them, else the lowest that are free.
    fn place(&mut self, order: &[usize], chosen: Vec<Vec<usize>>) {
        let mut placed = BTreeMap::new();
        for &t in order {
            let mut taken: BTreeSet<u32> = BTreeSet::new();
            let mut next = self.first_gpu[t];
            let sizes: BTreeSet<u32> = chosen[t].iter().map(|at| self.claimants[*at].gpus).collect();
            for size in sizes.into_iter().rev() {
                let rows = || {
                    let of_size = chosen[t].iter().filter(|at| self.claimants[**at].gpus == size);
                    of_size.map(|at| (*at, &self.rows[*at]))
                };
                for (at, row) in rows() {
                    let Some(held) = self.held.get(&row.id).filter(|held| held.t == t) else {
                        continue;
                    };
                    if held.gpus.iter().all(|gpu| !taken.contains(gpu)) {
                        taken.extend(held.gpus.iter().copied());
                        placed.insert(row.id, Held { at, t, gpus: held.gpus.clone() });
                    }
                }
                for (at, row) in rows() {
                    // D3: a job that came after the policy's last answer has used up its slot and gets nothing.
                    if placed.contains_key(&row.id) || !row.is_known {
                        continue;
                    }
                    let mut gpus = SmallVec::new();
                    while gpus.len() < size as usize && next < self.first_gpu[t + 1] {
                        if taken.insert(next) {
                            gpus.push(next);
                        }
                        next += 1;
                    }
                    placed.insert(row.id, Held { at, t, gpus });
                }
            }
        }
        self.held = placed;
    }

    /// Starts what was placed, for as many steps as a round has.
    fn start(&mut self) {
        for (id, Held { at, t, gpus }) in &self.held {
            let row = &self.rows[*at];
            let mut steps = [0; 2];
            let mut finish_s = self.now;
            for (member, job) in id.jobs().enumerate() {
                let rate = row.rates[*t][member];
                let left = self.jobs[job as usize].steps - self.done[job as usize];
                steps[member] = ((rate * self.rounds.length_s) as i64).min(left);
                finish_s = finish_s.max(self.now + steps[member] as f64 / rate);
                self.outcomes[job as usize].start_s.get_or_insert(self.now);
            }
            self.running.push(Running { id: *id, at: *at, t: *t, gpus: gpus.clone(), steps, finish_s });
        }
    }
}

impl PairSpeeds for Simulator<'_> {
    fn pair(&self, first: u32, second: u32) -> Option<SmallVec<[[f64; 2]; 4]>> {
        self.speeds.pairs.get(&(self.job(first).kind, self.job(second).kind)).cloned()
    }
}
