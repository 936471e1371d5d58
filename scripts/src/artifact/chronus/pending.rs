//! Waiting jobs, every slot: first those that are forced through, then those that fit.

use std::cmp::Reverse;

use super::job::Class;
use super::simulator::Simulator;
use super::{ArtifactError, Defect};

/// Leases up to this length let refused jobs in by force, and accepted jobs run without a lease.
const SHORT_LEASE: i64 = 30;

impl Simulator<'_> {
    pub(super) fn start_pending(&mut self, now: i64) -> Result<(), ArtifactError> {
        let ran_before = self.running.clone();
        if self.settings.lease <= SHORT_LEASE {
            self.force_short_ones(now);
        }
        for job in self.pending.clone() {
            let it = &mut self.jobs[job];
            it.waited += now - it.last_check;
            it.last_check = now;
            self.judge(job, now);
        }
        self.start_forced(now)?;
        self.pending.sort_by_cached_key(|&job| {
            let it = &self.jobs[job];
            Reverse((it.class, it.emergence, it.submit))
        });
        self.start_opportunists(now)?;
        self.count_changes(&ran_before);
        Ok(())
    }

    /// Between slots, jobs that fit what is free; returns whether any did.
    pub(super) fn fill(&mut self, now: i64) -> Result<bool, ArtifactError> {
        if self.machines.n_free() == 0 {
            return Ok(false);
        }
        if self.settings.has(Defect::LongestFirst) {
            self.pending.sort_by_cached_key(|&job| (self.jobs[job].class, self.jobs[job].emergence));
        } else {
            self.pending.sort_by_cached_key(|&job| Reverse(self.jobs[job].rank()));
        }
        let fitting = self.fitting(&self.pending);
        let placed = self.place(&fitting, now)?;
        if !self.settings.has(Defect::UnearnedCredit) {
            for &job in &placed {
                let it = &mut self.jobs[job];
                it.waited += now - it.last_check;
                it.last_check = now;
                it.n_resumes += 1;
            }
        }
        self.move_to_running(&placed);
        Ok(!placed.is_empty())
    }

    /// Refused jobs that would be done within this lease are promised the GPUs that are not promised yet.
    fn force_short_ones(&mut self, now: i64) {
        let lease = self.settings.lease;
        let left = self.index * lease - now;
        let (mut short, mut forced_gpus) = (Vec::new(), 0);
        for &job in &self.pending {
            let it = &mut self.jobs[job];
            let remaining = it.true_duration - it.progress;
            if it.class == Class::Unaccepted && remaining <= left {
                it.emergence = -remaining * i64::from(it.gpus);
                short.push(job);
            }
            if it.class == Class::Accepted && it.is_forced {
                forced_gpus += it.gpus;
            }
        }
        short.sort_by_key(|&job| Reverse(self.jobs[job].emergence));
        let mut spot = self.spot.saturating_sub(forced_gpus);
        for job in short {
            let it = &mut self.jobs[job];
            if it.gpus <= spot {
                spot -= it.gpus;
                (it.is_forced, it.is_in_model) = (true, false);
                if it.submit >= (self.index - 1) * lease {
                    it.class = Class::Accepted;
                }
            }
        }
    }

    /// Lowers a job that cannot make its deadline any more, and sets what orders it.
    fn judge(&mut self, job: usize, now: i64) {
        let it = &mut self.jobs[job];
        let is_late = it.submit + it.expected < now + it.true_duration - it.progress;
        if it.class != Class::BestEffort && is_late {
            it.class = Class::Lowest;
        }
        self.set_emergence(job, now);
    }

    fn set_emergence(&mut self, job: usize, now: i64) {
        let it = &mut self.jobs[job];
        let remaining = it.estimate - it.progress;
        let weight = match it.class {
            Class::BestEffort | Class::Unaccepted => remaining,
            Class::Lowest | Class::Accepted => it.submit + it.expected - now - remaining,
        };
        it.emergence = -weight * i64::from(it.gpus);
    }

    fn start_forced(&mut self, now: i64) -> Result<(), ArtifactError> {
        let forced: Vec<usize> =
            self.pending.iter().filter(|&&job| self.jobs[job].is_forced).copied().collect();
        let gpus: u32 = forced.iter().map(|&job| self.jobs[job].gpus).sum();
        if gpus > self.spot {
            return self.aborts(now, format!("{gpus} GPUs are forced and {} are not promised", self.spot));
        }
        self.preempt_for(gpus, now);
        if self.place(&forced, now)?.len() != forced.len() {
            return self.aborts(now, "a job that is forced finds no place");
        }
        for &job in &forced {
            self.jobs[job].last_check = now;
            self.guaranteed += self.jobs[job].gpus;
            self.spot -= self.jobs[job].gpus;
        }
        self.move_to_running(&forced);
        Ok(())
    }

    /// Stops jobs without a promise until so many GPUs are free.
    fn preempt_for(&mut self, gpus: u32, now: i64) {
        if gpus <= self.machines.n_free() {
            return;
        }
        let mut victims: Vec<usize> =
            self.running.iter().filter(|&&job| !self.jobs[job].is_guaranteed()).copied().collect();
        for &job in &victims {
            self.judge(job, now);
        }
        victims.sort_by_key(|&job| self.jobs[job].rank());
        for job in victims {
            if gpus <= self.machines.n_free() {
                break;
            }
            self.release(job);
            let need = self.jobs[job].leases_left(self.settings.lease);
            let it = &mut self.jobs[job];
            it.last_check = now;
            let n_less = it.need - need;
            it.clear_earliest(n_less);
            it.need = need;
            self.running.retain(|&running| running != job);
            self.pending.push(job);
        }
    }

    /// Jobs that fit what is free, in descending rank.
    fn start_opportunists(&mut self, now: i64) -> Result<(), ArtifactError> {
        if self.machines.n_free() == 0 {
            return Ok(());
        }
        self.pending.sort_by_cached_key(|&job| Reverse(self.jobs[job].rank()));
        let is_short = self.settings.lease <= SHORT_LEASE;
        let is_accepted = |job: &usize| self.jobs[*job].class == Class::Accepted;
        let allowed: Vec<usize> =
            self.pending.iter().filter(|job| is_short || !is_accepted(job)).copied().collect();
        self.start_fitting(&allowed, now)?;
        if is_short {
            let accepted: Vec<usize> = self
                .pending
                .iter()
                .filter(|&&job| self.jobs[job].class == Class::Accepted)
                .copied()
                .collect();
            self.start_fitting(&accepted, now)?;
        }
        Ok(())
    }

    fn start_fitting(&mut self, jobs: &[usize], now: i64) -> Result<(), ArtifactError> {
        let fitting = self.fitting(jobs);
        let placed = self.place(&fitting, now)?;
        placed.iter().for_each(|&job| self.jobs[job].last_check = now);
        self.move_to_running(&placed);
        Ok(())
    }
}
