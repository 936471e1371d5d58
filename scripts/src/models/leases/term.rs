//! A boundary between leases: the model decides which jobs hold the next one and what is planned after it.

use rota_core::ids::JobId;
use rota_core::snapshot::Snapshot;
use rota_solvers::FormulationError;
use rota_solvers::chronus_leases::{
    LeaseGoal, LeasePlan, LeaseProblem, LeaseRow, Settled, Settlement, Unsettled,
};

use super::book::{LeaseBook, Promise};

/// How a term is solved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TermOptions {
    /// What is preferred among plans that meet the most deadlines.
    pub(crate) goal: LeaseGoal,
    /// Rows of the model at most; beyond them, jobs keep the plans they have.
    pub(crate) most_rows: usize,
}

/// A plan for a term, and how it was found.
pub(crate) struct Found {
    pub(crate) plan: LeasePlan,
    /// Its objective.
    pub(crate) objective: f64,
    /// What no plan exceeds.
    pub(crate) bound: f64,
    /// How it was found, in words.
    pub(crate) how: String,
}

impl From<Settled> for Found {
    fn from(settled: Settled) -> Self {
        let Settled { plan, objective, bound, how } = settled;
        let how = match how {
            Settlement::Proved => "packed plan proved optimal".to_owned(),
            Settlement::Solved(status) => format!("solved, {status}"),
            Settlement::FellBack(status) => {
                format!("FELL BACK to the packed plan, the solve ended {status}")
            }
        };
        Found { plan, objective, bound, how }
    }
}

/// Finds a plan: it is given the problem, the plan that is known already, and how many rows a model may have.
pub(crate) type FindPlan<'a> =
    &'a mut dyn FnMut(&LeaseProblem, &dyn Fn() -> Option<LeasePlan>, usize) -> Result<Found, Unsettled>;

/// Jobs with their rows, as the model sees them.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) rows: Vec<LeaseRow>,
    /// The job of the row, and the step of its deadline.
    pub(super) owners: Vec<(JobId, usize)>,
}

impl LeaseBook {
    /// Gives out the lease that begins now; the text says how, for the record.
    pub(crate) fn term(
        &mut self,
        snapshot: &Snapshot,
        options: &TermOptions,
        find: FindPlan<'_>,
    ) -> Result<String, FormulationError> {
        let first = self.current(snapshot.now);
        self.advance(first);
        let mut broken = self.break_hopeless(snapshot, first);
        let (mut frozen, mut most_rows) = (Vec::new(), options.most_rows);
        let (rows, found) = loop {
            let rows = self.rows(snapshot, first, &frozen);
            let problem = self.problem(snapshot, first, &rows, &frozen, options.goal);
            let known = || self.known_plan(&rows, &problem);
            match find(&problem, &known, most_rows) {
                Ok(found) => break (rows, found),
                Err(Unsettled::Model(error)) => return Err(error),
                Err(Unsettled::TooLarge { rows: n_rows }) => {
                    frozen = self.freeze(snapshot, &rows, n_rows - most_rows);
                    // A job without a plan to keep must be planned, however many rows that takes.
                    most_rows = usize::MAX;
                }
                Err(Unsettled::NoPlan { row, .. }) => {
                    // Nodes were lost, or jobs slower than thought: one promise less, and again.
                    let (job, _) = rows.owners[row];
                    self.promises.remove(&job);
                    broken += 1;
                }
            }
        };
        self.leased = self.follow(&frozen);
        self.take_over(&rows, &found.plan);
        self.next = first + 1;
        let n_raised = self.raise(snapshot);
        Ok(note(&rows, &found, Changes { n_frozen: frozen.len(), n_broken: broken, n_raised }))
    }

    /// Plans begin with lease number `first`; what was planned before is over.
    fn advance(&mut self, first: i64) {
        let n_over = usize::try_from(first.saturating_sub(self.next.max(0))).unwrap_or(0);
        for plan in self.promises.values_mut().filter_map(|promise| promise.plan.as_mut()) {
            plan.drain(..n_over.min(plan.len()));
        }
    }

    /// Takes promises back that no step of the deadline can hold any more.
    fn break_hopeless(&mut self, snapshot: &Snapshot, first: i64) -> usize {
        let n_before = self.promises.len();
        let is_possible = |job: &JobId| {
            let row = snapshot.jobs.row(*job)?;
            let levels = self.levels(snapshot, row, first);
            let promised = levels.iter().skip(self.promises.get(job)?.level);
            promised.into_iter().any(|level| level.slack() >= 0).then_some(())
        };
        let kept: Vec<JobId> =
            self.promises.keys().filter(|job| is_possible(job).is_some()).copied().collect();
        self.promises.retain(|job, _| kept.binary_search(job).is_ok());
        n_before - self.promises.len()
    }

    /// Lets jobs that were promised a later step of their deadline have an earlier one where the leases that are left
    /// allow it. Says how many.
    fn raise(&mut self, snapshot: &Snapshot) -> usize {
        let lower: Vec<JobId> =
            self.promises.iter().filter(|(_, promise)| promise.level > 0).map(|(job, _)| *job).collect();
        if lower.is_empty() {
            return 0;
        }
        let mut shelf = self.shelf(snapshot, self.next);
        let mut n_raised = 0;
        for job in lower {
            let (Some(row), Some(promise)) = (snapshot.jobs.row(job), self.promises.get(&job)) else {
                continue;
            };
            let Promise { level, plan: Some(plan) } = promise.clone() else { continue };
            let gpus = snapshot.jobs.gpus()[row];
            let need = plan.iter().filter(|runs| **runs).count() as u32;
            shelf.give(&plan, gpus);
            let better = self.levels(snapshot, row, self.next).into_iter().take(level);
            let found =
                better.map(|row| LeaseRow { need, ..row }).find_map(|row| Some((row, shelf.put_late(&row)?)));
            match found {
                Some((row, plan)) => {
                    n_raised += 1;
                    self.promises.insert(job, Promise { level: row.level as usize, plan: Some(plan) });
                }
                None => shelf.take(&plan, gpus),
            }
        }
        n_raised
    }

    /// Rows of promised jobs from the step that was promised on; steps that cannot be met are left out.
    fn rows(&self, snapshot: &Snapshot, first: i64, frozen: &[JobId]) -> Rows {
        let mut found = Rows::default();
        for (job, promise) in self.promises.iter().filter(|(job, _)| !frozen.contains(job)) {
            let Some(row) = snapshot.jobs.row(*job) else { continue };
            let levels = self.levels(snapshot, row, first).into_iter();
            let is_kept = |level: &LeaseRow| level.slack() >= 0 && level.level as usize >= promise.level;
            for (place, level) in levels.filter(is_kept).enumerate() {
                found.owners.push((*job, level.level as usize));
                found.rows.push(LeaseRow { level: place as u32, ..level });
            }
        }
        found
    }

    fn problem(
        &self,
        snapshot: &Snapshot,
        first: i64,
        rows: &Rows,
        frozen: &[JobId],
        goal: LeaseGoal,
    ) -> LeaseProblem {
        let n_leases = rows.rows.iter().map(|row| row.horizon).max().unwrap_or(0).max(1);
        let mut capacity: Vec<i64> =
            (0..n_leases).map(|lease| self.capacity(snapshot, first + lease)).collect();
        for job in frozen {
            let plan = self.promises.get(job).and_then(|promise| promise.plan.as_deref());
            let gpus = snapshot.jobs.row(*job).map_or(0, |row| i64::from(snapshot.jobs.gpus()[row]));
            let runs = capacity.iter_mut().zip(plan.unwrap_or_default()).filter(|(_, runs)| **runs);
            runs.for_each(|(free, _)| *free -= gpus);
        }
        LeaseProblem { rows: rows.rows.clone(), capacity, goal }
    }

    /// Whose plans are kept so that the model has `n_over` rows less: wide gangs with far deadlines first. Only plans
    /// that are exactly enough are kept.
    fn freeze(&self, snapshot: &Snapshot, rows: &Rows, n_over: usize) -> Vec<JobId> {
        let mut order: Vec<usize> = (0..rows.rows.len()).filter(|&j| rows.rows[j].level == 0).collect();
        order.sort_by_key(|&j| {
            let row = &rows.rows[j];
            (std::cmp::Reverse(row.gpus), std::cmp::Reverse(row.horizon), rows.owners[j].0)
        });
        let is_enough = |j: &usize| {
            let (job, _) = rows.owners[*j];
            let plan =
                self.promises.get(&job).and_then(|promise| promise.plan.as_deref()).unwrap_or_default();
            let n_planned = plan.iter().filter(|runs| **runs).count();
            let has_row = snapshot.jobs.row(job).is_some();
            has_row && n_planned == rows.rows[*j].need as usize
        };
        let mut n_left = n_over;
        let mut frozen = Vec::new();
        for j in order.into_iter().filter(is_enough) {
            if n_left == 0 {
                break;
            }
            let job = rows.owners[j].0;
            let n_rows = rows.owners[j..].iter().take_while(|(owner, _)| *owner == job).count();
            n_left = n_left.saturating_sub(n_rows);
            frozen.push(job);
        }
        frozen.sort_unstable();
        frozen
    }

    /// Which of these jobs hold the lease by the plans they have; plans move on.
    fn follow(&mut self, frozen: &[JobId]) -> std::collections::BTreeSet<JobId> {
        let mut leased = std::collections::BTreeSet::new();
        for job in frozen {
            let plan = self.promises.get_mut(job).and_then(|promise| promise.plan.as_mut());
            if plan.filter(|plan| !plan.is_empty()).is_some_and(|plan| plan.remove(0)) {
                leased.insert(*job);
            }
        }
        leased
    }

    fn take_over(&mut self, rows: &Rows, plan: &LeasePlan) {
        for (j, (job, level)) in rows.owners.iter().enumerate().filter(|(j, _)| plan.chosen[*j]) {
            let horizon = usize::try_from(rows.rows[j].horizon).unwrap_or(0);
            let later = plan.leases[j][1.min(horizon)..horizon].to_vec();
            self.promises.insert(*job, Promise { level: *level, plan: Some(later) });
            if plan.leases[j].first() == Some(&true) {
                self.leased.insert(*job);
            }
        }
    }
}

/// What a term did besides solving its model.
struct Changes {
    n_frozen: usize,
    n_broken: usize,
    n_raised: usize,
}

/// How the term was settled, in one line.
fn note(rows: &Rows, found: &Found, changes: Changes) -> String {
    let Changes { n_frozen, n_broken, n_raised } = changes;
    let n_leases = rows.rows.iter().map(|row| row.horizon).max().unwrap_or(0);
    let mut note = format!(
        "chronus: {} rows x {n_leases} leases, {}, objective {:.4} of at most {:.4}",
        rows.rows.len(),
        found.how,
        // An empty sum is a negative zero.
        found.objective + 0.0,
        found.bound + 0.0
    );
    if n_frozen > 0 {
        note.push_str(&format!(", {n_frozen} jobs kept their plans"));
    }
    if n_raised > 0 {
        note.push_str(&format!(", {n_raised} raised to an earlier step"));
    }
    if n_broken > 0 {
        note.push_str(&format!(", {n_broken} promises taken back"));
    }
    note
}
