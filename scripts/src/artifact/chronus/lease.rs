//! The boundary between two leases: all jobs are released, and the model decides which hold the next lease.

use rota_solvers::chronus_leases::{
    LeaseGoal, LeasePlan, LeaseProblem, LeaseRow, Settled, Settlement, Unsettled, greedy, settle,
};
use rota_solvers::{Limits, Start};

use super::job::Class;
use super::record::{Boundary, PlanLeft, Solve};
use super::simulator::Simulator;
use super::{ArtifactError, Objective, Plans};

/// Rows of the model for each unit of time of a lease: beyond them, jobs with a plan keep it.
const ROWS_PER_UNIT: (i64, i64) = (1200, 60);

/// What goes into the model, and which jobs keep the plan they have.
struct Rows {
    rows: Vec<LeaseRow>,
    owners: Vec<usize>,
    capacity: Vec<i64>,
    frozen: Vec<usize>,
}

impl Simulator<'_> {
    pub(super) fn lease(&mut self, now: i64) -> Result<(), ArtifactError> {
        if self.settings.objective == Objective::Adaptive {
            self.mode = if self.n_unaccepted > 0 { Objective::Minimize } else { Objective::Maximize };
        }
        let ran_before = self.running.clone();
        self.release_all(now);
        let n_solves = self.run.solves.len();
        let leased = self.choose(now)?;
        self.guaranteed = leased.iter().map(|&job| self.jobs[job].gpus).sum();
        self.spot = self.machines.n_gpus().checked_sub(self.guaranteed).ok_or_else(|| {
            ArtifactError::Aborts { time: now, why: format!("{} GPUs are promised", self.guaranteed) }
        })?;
        if self.place(&leased, now)?.len() != leased.len() {
            return self.aborts(now, "a job that holds a lease finds no place");
        }
        for &job in &leased {
            self.jobs[job].holds_lease = true;
            self.jobs[job].need -= 1;
        }
        self.move_to_running(&leased);
        self.index += 1;
        self.count_changes(&ran_before);
        let all = || self.pending.iter().chain(&self.running);
        self.n_unaccepted = all().filter(|&&job| self.jobs[job].class == Class::Unaccepted).count();
        let plans = all().filter_map(|&job| self.plan_left(job)).collect();
        self.run.boundaries.push(Boundary {
            time: now,
            leased,
            guaranteed_gpus: self.guaranteed,
            n_unaccepted: self.n_unaccepted,
            plans,
            solve: (self.run.solves.len() > n_solves).then_some(n_solves),
        });
        Ok(())
    }

    fn plan_left(&self, job: usize) -> Option<PlanLeft> {
        let it = &self.jobs[job];
        let leases = it.plan.clone().filter(|_| it.class == Class::Accepted)?;
        Some(PlanLeft { job, level: it.level, leases, need: it.need })
    }

    fn release_all(&mut self, now: i64) {
        for job in std::mem::take(&mut self.running) {
            self.release(job);
            let it = &mut self.jobs[job];
            (it.holds_lease, it.is_forced, it.last_check) = (false, false, now);
            let need = it.leases_left(self.settings.lease);
            if it.class == Class::Accepted && need < it.need {
                let n_less = it.need - need;
                it.need = need;
                it.clear_earliest(n_less);
            }
            self.pending.push(job);
        }
    }

    /// Who holds the next lease; plans move on by one.
    fn choose(&mut self, now: i64) -> Result<Vec<usize>, ArtifactError> {
        let Rows { rows, owners, capacity, frozen } = self.collect();
        let mut leased = Vec::new();
        if !rows.is_empty() {
            let Some(plan) = self.solve(now, rows.clone(), capacity)? else {
                return self.fall_back(now);
            };
            for (j, &job) in owners.iter().enumerate().filter(|(j, _)| plan.chosen[*j]) {
                let horizon = usize::try_from(rows[j].horizon).unwrap_or(0);
                let it = &mut self.jobs[job];
                it.level = rows[j].level as usize;
                it.plan = Some(plan.leases[j][1.min(horizon)..horizon].to_vec());
                if plan.leases[j].first() == Some(&true) {
                    leased.push(job);
                }
            }
        }
        for job in frozen {
            if self.use_plan_head(job) {
                leased.push(job);
            }
        }
        Ok(leased)
    }

    /// Rows of accepted jobs, up to the cap.
    fn collect(&self) -> Rows {
        let (lease, index) = (self.settings.lease, self.index);
        let mut found: Vec<(LeaseRow, usize)> = Vec::new();
        for &job in self.pending.iter().chain(&self.running) {
            let it = &self.jobs[job];
            if it.class == Class::Accepted && it.is_in_model && it.need > 0 {
                found.extend(it.rows(lease, index).map(|row| (row, job)));
            }
        }
        let n_leases = found.iter().map(|(row, _)| row.horizon).max().unwrap_or(0).max(1);
        let mut capacity: Vec<i64> = (0..n_leases as usize).map(|lease| self.capacity_of(lease)).collect();
        let most = ROWS_PER_UNIT.0 * lease / ROWS_PER_UNIT.1;
        let mut frozen = Vec::new();
        let n_over = found.len() as i64 - most;
        if n_over > 0 {
            found = self.freeze(found, n_over, &mut capacity, &mut frozen);
        }
        let (rows, owners) = found.into_iter().unzip();
        Rows { rows, owners, capacity, frozen }
    }

    /// Jobs with a plan keep it until as many rows are left out as are too many.
    fn freeze(
        &self,
        mut found: Vec<(LeaseRow, usize)>,
        mut n_over: i64,
        capacity: &mut [i64],
        frozen: &mut Vec<usize>,
    ) -> Vec<(LeaseRow, usize)> {
        found.sort_by_key(|(row, job)| {
            let wide = (std::cmp::Reverse(row.gpus), std::cmp::Reverse(row.horizon));
            (wide, self.jobs[*job].number, row.level)
        });
        let mut is_frozen = vec![false; self.jobs.len()];
        let mut kept = Vec::new();
        for (row, job) in found {
            let it = &self.jobs[job];
            let Some(plan) = it.plan.as_ref().filter(|_| n_over > 0 || is_frozen[job]) else {
                kept.push((row, job));
                continue;
            };
            is_frozen[job] = true;
            if it.level == row.level as usize {
                frozen.push(job);
                let runs = capacity.iter_mut().zip(plan).filter(|(_, runs)| **runs);
                runs.for_each(|(free, _)| *free -= i64::from(row.gpus));
            }
            n_over -= 1;
        }
        kept.retain(|(_, job)| !is_frozen[*job]);
        kept.sort_by_key(|(row, job)| (self.jobs[*job].number, row.level));
        kept
    }

    /// Whether the job runs now by its plan, which moves on.
    fn use_plan_head(&mut self, job: usize) -> bool {
        let plan = self.jobs[job].plan.as_mut().filter(|plan| !plan.is_empty());
        plan.is_some_and(|plan| plan.remove(0))
    }

    /// Without a solution: jobs without a plan are packed by value, and all others do as planned.
    fn fall_back(&mut self, now: i64) -> Result<Vec<usize>, ArtifactError> {
        let (rows, shelf, owners) = self.unplanned(now)?;
        let plan = match greedy(&rows, shelf) {
            Ok(plan) => plan,
            Err(row) => {
                let why = format!("no level of job {} fits", self.jobs[owners[row]].name);
                return self.aborts(now, why);
            }
        };
        for (j, &job) in owners.iter().enumerate().filter(|(j, _)| plan.chosen[*j]) {
            let horizon = usize::try_from(rows[j].horizon).unwrap_or(0);
            self.jobs[job].plan = Some(plan.leases[j][..horizon].to_vec());
            self.jobs[job].level = rows[j].level as usize;
        }
        let mut leased = Vec::new();
        for job in self.pending.clone() {
            if self.jobs[job].class != Class::Accepted {
                continue;
            }
            match self.jobs[job].plan.as_ref().map(Vec::is_empty) {
                None => self.jobs[job].class = Class::Unaccepted,
                Some(true) => return self.aborts(now, "a plan is at its end before its job is"),
                Some(false) => leased.extend(self.use_plan_head(job).then_some(job)),
            }
        }
        Ok(leased)
    }

    /// Asks the solver; `None` is no solution.
    pub(super) fn solve(
        &mut self,
        now: i64,
        rows: Vec<LeaseRow>,
        capacity: Vec<i64>,
    ) -> Result<Option<LeasePlan>, ArtifactError> {
        let goal = match self.mode {
            Objective::Minimize => LeaseGoal::Minimize,
            Objective::Maximize | Objective::Adaptive => LeaseGoal::Maximize,
            Objective::Random => LeaseGoal::Random,
        };
        let problem = LeaseProblem { rows, capacity, goal };
        let wrong = |error| ArtifactError::Model { time: now, error };
        if self.settings.plans == Plans::Proved {
            let settled = settle(&problem, &|| None, usize::MAX, self.solver, &Limits::default());
            let settled = match settled {
                Ok(Settled { how: Settlement::FellBack(_), .. }) | Err(Unsettled::NoPlan { .. }) => None,
                Ok(settled) => Some(settled),
                Err(Unsettled::Model(error)) => return Err(wrong(error)),
                Err(Unsettled::TooLarge { rows }) => {
                    return self.aborts(now, format!("a model of {rows} rows is too large"));
                }
            };
            let objective = settled.as_ref().map(|settled| settled.objective);
            self.run.solves.push(Solve { time: now, problem, objective });
            return Ok(settled.map(|settled| settled.plan));
        }
        let model = problem.model().map_err(wrong)?;
        let solution = self.solver.solve(&model.model, &Limits::default(), Start::Cold);
        self.run.solves.push(Solve { time: now, problem, objective: solution.objective });
        if !solution.status.has_values() {
            return Ok(None);
        }
        model.decode(&solution).map(Some).map_err(wrong)
    }
}
