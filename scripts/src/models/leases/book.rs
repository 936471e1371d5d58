//! The book of leases: promises, plans, and the judgement of newcomers.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::ids::JobId;
use rota_core::job::{Deadline, JobSpec};
use rota_core::snapshot::Snapshot;
use rota_core::time::{Span, Time};
use rota_solvers::chronus_leases::{LeaseRow, Shelf, packs};

/// Leases looked ahead at most; farther deadlines count as that far.
const MOST_LEASES: i64 = 10_000;

/// What meeting a strict deadline is worth, as in the published traces.
const STRICT_VALUE: f64 = 10.0;

/// How leases are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LeaseRules {
    /// Length of a lease; they begin at multiples of it.
    pub(crate) lease: Span,
    /// Factor by which estimates are stretched; at least 1.
    pub(crate) caution: f64,
}

/// A job whose deadline is promised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Promise {
    /// The step of its deadline it is held to.
    pub(super) level: usize,
    /// Whether it runs in each lease from `next` on; `None` until the next boundary.
    pub(super) plan: Option<Vec<bool>>,
}

/// The lease book: which jobs hold the current lease, and what is promised.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LeaseBook {
    pub(super) rules: LeaseRules,
    /// Number of the lease that plans begin with.
    pub(super) next: i64,
    /// Jobs that hold the current lease.
    pub(super) leased: BTreeSet<JobId>,
    pub(super) promises: BTreeMap<JobId, Promise>,
    /// Nodes left on, by number of the lease; others have all.
    pub(super) nodes_on: BTreeMap<i64, u32>,
    /// Newcomers of this decision that could not be promised their deadline, and why.
    pub(super) refused: BTreeMap<JobId, String>,
}

impl LeaseBook {
    /// No job holds a lease, and nothing is promised.
    pub(crate) fn new(rules: LeaseRules) -> Self {
        LeaseBook {
            rules,
            next: i64::MIN,
            leased: BTreeSet::new(),
            promises: BTreeMap::new(),
            nodes_on: BTreeMap::new(),
            refused: BTreeMap::new(),
        }
    }

    /// Forgets jobs that ended and leases that are over.
    pub(crate) fn forget_the_past(&mut self, snapshot: &Snapshot) {
        self.refused.clear();
        let is_there = |job: &JobId| snapshot.jobs.row(*job).is_some();
        self.leased.retain(is_there);
        self.promises.retain(|job, _| is_there(job));
        let current = self.current(snapshot.now);
        self.nodes_on.retain(|lease, _| *lease >= current);
    }

    /// Length of a lease.
    pub(crate) fn lease(&self) -> Span {
        self.rules.lease
    }

    /// Whether a lease begins now that has not been given out.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.next <= self.current(now)
    }

    /// When the next lease begins.
    pub(crate) fn next_boundary(&self, now: Time) -> Time {
        Time((self.current(now) + 1).saturating_mul(self.rules.lease.0))
    }

    /// Jobs that hold the current lease.
    pub(crate) fn leased(&self) -> impl Iterator<Item = JobId> {
        self.leased.iter().copied()
    }

    /// Whose deadline is promised.
    pub(crate) fn promised(&self) -> impl Iterator<Item = JobId> {
        self.promises.keys().copied()
    }

    /// Newcomers of this decision whose deadline could not be promised.
    pub(crate) fn refused(&self) -> impl Iterator<Item = JobId> {
        self.refused.keys().copied()
    }

    /// What the plans know of the jobs.
    pub(crate) fn rules(&self) -> LeaseRules {
        self.rules
    }

    /// Why a newcomer was not promised its deadline.
    pub(crate) fn refusal(&self, job: JobId) -> Option<&str> {
        self.refused.get(&job).map(String::as_str)
    }

    /// Judges newcomers in the order given: each that packs next to all promises is promised the first of the first
    /// `n_steps` of its deadline that does. One that does not is promised nothing and counts for nothing.
    pub(crate) fn admit(&mut self, snapshot: &Snapshot, rows: &[u32], n_steps: usize) {
        let has_deadline = |row: &usize| snapshot.jobs.spec(*row).deadline != Deadline::None;
        let rows: Vec<usize> = rows.iter().map(|row| *row as usize).filter(has_deadline).collect();
        if rows.is_empty() {
            return;
        }
        let first = self.current(snapshot.now) + 1;
        let mut ahead = self.ahead(snapshot, first);
        for row in rows {
            let spec = snapshot.jobs.spec(row);
            let levels = self.levels(snapshot, row, first);
            let packs = |level: &&LeaseRow| level.slack() >= 0 && ahead.packs_with(level);
            match levels.iter().take(n_steps).find(packs).copied() {
                Some(level) => {
                    ahead.rows.push(LeaseRow { level: 0, ..level });
                    let promise = Promise { level: level.level as usize, plan: None };
                    self.promises.insert(spec.id, promise);
                }
                None => {
                    let tried = &levels[..n_steps.min(levels.len())];
                    self.refused.insert(spec.id, self.reason(snapshot, tried));
                }
            }
        }
    }

    fn reason(&self, snapshot: &Snapshot, levels: &[LeaseRow]) -> String {
        let last =
            levels.last().copied().unwrap_or(LeaseRow { gpus: 0, need: 0, horizon: 0, value: 0.0, level: 0 });
        let LeaseRow { gpus, need, horizon, .. } = last;
        let lease = self.rules.lease;
        let from = self.next_boundary(snapshot.now);
        if last.slack() < 0 {
            format!(
                "needs {need} leases of {lease} s, its deadline leaves {} from {from} s on",
                horizon.max(0)
            )
        } else {
            format!(
                "{need} leases of {gpus} GPUs do not fit into the {horizon} from {from} s on, with what is promised already"
            )
        }
    }

    /// What promises leave of the leases from number `first` on.
    fn ahead(&self, snapshot: &Snapshot, first: i64) -> Ahead {
        let mut unplanned = Vec::new();
        for (job, promise) in self.promises.iter().filter(|(_, promise)| promise.plan.is_none()) {
            if let Some(row) = snapshot.jobs.row(*job) {
                let levels = self.levels(snapshot, row, first);
                // A promise that cannot be kept any more keeps no other job out.
                let level = levels.get(promise.level).filter(|level| level.slack() >= 0);
                unplanned.extend(level.map(|level| LeaseRow { level: 0, ..*level }));
            }
        }
        Ahead { shelf: self.shelf(snapshot, first), rows: unplanned, all: i64::from(snapshot.n_gpus_up()) }
    }

    /// What plans leave of the leases from number `first` on, as far as there are plans.
    pub(super) fn shelf(&self, snapshot: &Snapshot, first: i64) -> Shelf {
        let plans = self.promises.values().filter_map(|promise| promise.plan.as_ref());
        let n_leases = plans.map(Vec::len).max().unwrap_or(0).max(self.nodes_on.len());
        let capacity = |lease: usize| self.capacity(snapshot, first + lease as i64);
        let mut shelf = Shelf::new((0..n_leases).map(capacity).collect());
        for (job, promise) in &self.promises {
            if let (Some(plan), Some(row)) = (&promise.plan, snapshot.jobs.row(*job)) {
                shelf.take(plan, snapshot.jobs.gpus()[row]);
            }
        }
        shelf
    }

    /// GPUs of a lease, by its number.
    pub(super) fn capacity(&self, snapshot: &Snapshot, lease: i64) -> i64 {
        let all = i64::from(snapshot.n_gpus_up());
        let Some(n_on) = self.nodes_on.get(&lease) else { return all };
        let nodes = snapshot.cluster.nodes().iter().zip(&snapshot.nodes.is_up).take(*n_on as usize);
        nodes.filter(|(_, is_up)| **is_up).map(|(node, _)| i64::from(node.n_gpus)).sum()
    }

    /// One row for each step of a job's deadline, seen from lease number `first`.
    pub(super) fn levels(&self, snapshot: &Snapshot, row: usize, first: i64) -> Vec<LeaseRow> {
        let spec = snapshot.jobs.spec(row);
        let (gpus, need) = (snapshot.jobs.gpus()[row], self.need(snapshot, row));
        let level = |(level, (time, value)): (usize, (Time, f64))| {
            let horizon = (time.0.div_euclid(self.rules.lease.0) - first).min(MOST_LEASES);
            LeaseRow { gpus, need, horizon, value, level: level as u32 }
        };
        steps(spec).into_iter().enumerate().map(level).collect()
    }

    /// Leases that a job still needs, restart included unless it runs.
    fn need(&self, snapshot: &Snapshot, row: usize) -> u32 {
        let remaining_s = snapshot.jobs.column(rota_core::table::Field::Remaining)[row];
        let is_running = !snapshot.jobs.allocation(row).is_empty();
        let restart = if is_running { Span::ZERO } else { snapshot.jobs.spec(row).costs().restart };
        let seconds = remaining_s * self.rules.caution + restart.as_secs_f64();
        let leases = (seconds / self.rules.lease.as_secs_f64()).ceil();
        leases.clamp(1.0, f64::from(u32::MAX)) as u32
    }

    /// Number of the lease that a time lies in.
    pub(super) fn current(&self, now: Time) -> i64 {
        now.0.div_euclid(self.rules.lease.0)
    }
}

/// Steps of a deadline with their values.
fn steps(spec: &JobSpec) -> Vec<(Time, f64)> {
    match &spec.deadline {
        Deadline::None => Vec::new(),
        Deadline::Strict(time) => vec![(*time, STRICT_VALUE)],
        Deadline::Soft(steps) => steps.clone(),
    }
}

/// The leases to come while newcomers are judged.
struct Ahead {
    shelf: Shelf,
    /// Promised without a plan.
    rows: Vec<LeaseRow>,
    /// GPUs of leases beyond the shelf.
    all: i64,
}

impl Ahead {
    fn packs_with(&self, newcomer: &LeaseRow) -> bool {
        let mut rows = self.rows.clone();
        rows.push(LeaseRow { level: 0, ..*newcomer });
        let farthest = rows.iter().map(|row| row.horizon).max().unwrap_or(0);
        let mut free = self.shelf.free().to_vec();
        free.resize(free.len().max(usize::try_from(farthest).unwrap_or(0)), self.all);
        packs(&rows, Shelf::new(free))
    }
}
