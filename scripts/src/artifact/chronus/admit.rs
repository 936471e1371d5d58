//! Arrivals, every slot: which jobs can be promised a deadline, by packing.

use rota_solvers::chronus_leases::{LeaseRow, Shelf, packs};

use super::job::Class;
use super::record::Admission;
use super::simulator::Simulator;
use super::{ArtifactError, Defect};

impl Simulator<'_> {
    pub(super) fn admit(&mut self, now: i64) -> Result<(), ArtifactError> {
        let first = self.n_arrived;
        let due = self.jobs[first..].iter().take_while(|job| job.submit <= now).count();
        if due == 0 {
            return Ok(());
        }
        let (mut rows, mut shelf, mut owners) = self.unplanned(now)?;
        if !packs(&rows, shelf.clone()) {
            self.plan_without_packing(now, &rows, &owners, &shelf)?;
            (rows, shelf, owners) = self.unplanned(now)?;
            if !packs(&rows, shelf.clone()) {
                return self.aborts(now, "the jobs accepted before do not pack any more");
            }
        }
        drop(owners);
        let mut arrivals = Arrivals { rows, shelf };
        for job in first..first + due {
            self.admit_one(job, now, &mut arrivals);
        }
        self.n_arrived = first + due;
        Ok(())
    }

    fn admit_one(&mut self, job: usize, now: i64, arrivals: &mut Arrivals) {
        let (lease, index) = (self.settings.lease, self.index);
        let it = &mut self.jobs[job];
        it.estimate = it.estimate_of(it.duration as f64, lease);
        it.need = it.leases_left(lease);
        (it.last_check, it.waited) = (now, now - it.submit);
        if it.is_best_effort {
            (it.class, it.is_in_model) = (Class::BestEffort, false);
        } else {
            let rows: Vec<LeaseRow> = it.rows(lease, index).collect();
            let last = rows.last().map_or(0, |row| row.horizon);
            let n_before = arrivals.rows.len();
            arrivals.rows.extend(rows);
            let capacity = |lease: usize| self.capacity_of(lease);
            let fits = self.jobs[job].need <= last && arrivals.packs(capacity);
            if !fits && self.settings.has(Defect::RefusedLinger) {
                // The rows stay and count against the next arrivals of this slot.
                arrivals.stretch_last(self.jobs[job].need, |lease| self.capacity_of(lease));
            } else if !fits {
                arrivals.rows.truncate(n_before);
            }
            let it = &mut self.jobs[job];
            if fits {
                it.expected = lease * (last + index) - it.submit;
            } else {
                it.class = Class::Unaccepted;
                self.n_unaccepted += 1;
            }
        }
        let it = &self.jobs[job];
        let (class, estimate, need, deadline) = (it.class, it.estimate, it.need, it.expected);
        self.run.admissions.push(Admission { time: now, job, class, estimate, need, deadline });
        self.pending.push(job);
    }

    /// Rows of accepted jobs without a plan, whose they are, and what the plans of the others leave.
    pub(super) fn unplanned(&self, now: i64) -> Result<(Vec<LeaseRow>, Shelf, Vec<usize>), ArtifactError> {
        let (lease, index) = (self.settings.lease, self.index);
        let (mut rows, mut owners, mut planned, mut n_leases) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for &job in self.pending.iter().chain(&self.running) {
            let it = &self.jobs[job];
            if it.class != Class::Accepted || !it.is_in_model || it.need <= 0 {
                continue;
            }
            n_leases = it.rows(lease, index).map(|row| row.horizon).max().unwrap_or(0).max(n_leases);
            match &it.plan {
                Some(_) => planned.push(job),
                None => {
                    rows.extend(it.rows(lease, index));
                    owners.resize(rows.len(), job);
                }
            }
        }
        let n_leases = usize::try_from(n_leases).unwrap_or(0);
        let mut shelf = Shelf::new((0..n_leases).map(|lease| self.capacity_of(lease)).collect());
        for job in planned {
            let it = &self.jobs[job];
            let held = it.rows(lease, index).nth(it.level).map(|row| row.horizon);
            let plan = it.plan.as_deref().unwrap_or_default();
            if held != Some(plan.len() as i64) {
                let why = format!("job {} is planned for {} leases of {held:?}", it.name, plan.len());
                return self.aborts(now, why);
            }
            // True GPUs here, rounded ones in the rows: as the original has it.
            shelf.take(plan, it.gpus);
        }
        if shelf.free().iter().any(|free| *free < 0) {
            return self.aborts(now, "more GPUs are planned than there are");
        }
        Ok((rows, shelf, owners))
    }

    /// The packing is a heuristic: where it fails, the model may still find a plan.
    fn plan_without_packing(
        &mut self,
        now: i64,
        rows: &[LeaseRow],
        owners: &[usize],
        shelf: &Shelf,
    ) -> Result<(), ArtifactError> {
        let Some(plan) = self.solve(now, rows.to_vec(), shelf.free().to_vec())? else {
            return self.aborts(now, "the jobs accepted before have no plan any more");
        };
        for (j, &job) in owners.iter().enumerate().filter(|(j, _)| plan.chosen[*j]) {
            let horizon = usize::try_from(rows[j].horizon).unwrap_or(0);
            self.jobs[job].plan = Some(plan.leases[j][..horizon].to_vec());
            self.jobs[job].level = rows[j].level as usize;
        }
        Ok(())
    }
}

/// The rows that arrivals of one slot are packed with.
struct Arrivals {
    rows: Vec<LeaseRow>,
    shelf: Shelf,
}

impl Arrivals {
    fn packs(&self, capacity: impl Fn(usize) -> i64) -> bool {
        let n_leases = self.farthest();
        let mut free = self.shelf.free().to_vec();
        free.truncate(n_leases);
        free.extend((free.len()..n_leases).map(capacity));
        packs(&self.rows, Shelf::new(free))
    }

    fn farthest(&self) -> usize {
        let farthest = self.rows.iter().map(|row| row.horizon).max().unwrap_or(0);
        usize::try_from(farthest).unwrap_or(0)
    }

    /// Moves the last row's horizon to the earliest at which everything packs.
    fn stretch_last(&mut self, need: i64, capacity: impl Fn(usize) -> i64) {
        let Some(last) = self.rows.len().checked_sub(1) else { return };
        let mut left = self.rows[last].horizon.max(need);
        self.rows[last].horizon = left;
        let mut right = (self.farthest().max(self.shelf.free().len())) as i64 + need + 1;
        while left < right {
            let middle = left + (right - left) / 2;
            self.rows[last].horizon = middle;
            if self.packs(&capacity) {
                right = middle;
            } else {
                left = middle + 1;
            }
        }
        self.rows[last].horizon = right;
    }
}
