//! Running jobs at a tick: which are done, and what the others are credited with.

use super::job::Class;
use super::simulator::Simulator;
use super::{ArtifactError, Defect};

impl Simulator<'_> {
    pub(super) fn credit_running(&mut self, now: i64) -> Result<(), ArtifactError> {
        let is_boundary = now % self.settings.lease == 0;
        for job in self.running.clone() {
            let elapsed = now - self.jobs[job].last_check;
            let end = self.jobs[job].true_duration as f64 + self.jobs[job].overhead();
            if (elapsed + self.jobs[job].progress) as f64 >= end {
                self.finish(job, end);
                continue;
            }
            let it = &mut self.jobs[job];
            if elapsed + it.executed >= it.estimate && (is_boundary || !it.holds_lease) {
                it.class = Class::Unaccepted;
                it.plan = None;
                it.is_overdue = true;
                it.is_in_model = false;
            }
            it.executed += elapsed;
            it.progress += elapsed;
            it.last_check = now;
            if !it.is_guaranteed() && it.class == Class::Accepted {
                self.refresh_need(job, now)?;
            }
            self.refresh_estimate(job);
        }
        self.running.retain(|&job| self.jobs[job].end.is_none());
        Ok(())
    }

    fn finish(&mut self, job: usize, end: f64) {
        let it = &mut self.jobs[job];
        let time = it.last_check as f64 + end - it.progress as f64;
        // The original drops the fraction when it adds up the last stretch.
        it.executed += (time - it.last_check as f64) as i64;
        it.end = Some(time);
        if it.is_guaranteed() {
            self.guaranteed -= it.gpus;
            self.spot += it.gpus;
        }
        self.release(job);
        self.track.end(job as u32, self.settings.time(time));
    }

    /// An accepted job that ran without a lease may need fewer of them.
    fn refresh_need(&mut self, job: usize, now: i64) -> Result<(), ArtifactError> {
        let need = self.jobs[job].leases_left(self.settings.lease);
        let it = &mut self.jobs[job];
        if need == it.need {
            return Ok(());
        }
        let grew = need > it.need;
        let n_less = it.need - need;
        it.need = need;
        it.clear_earliest(if self.settings.has(Defect::ClearsOneLease) { 1 } else { n_less });
        let planned = it.plan.as_ref().map(|plan| plan.iter().filter(|runs| **runs).count() as i64);
        if grew || planned.is_some_and(|planned| planned != need) {
            let why = format!("job {} needs {need} leases and has {planned:?} planned", self.jobs[job].name);
            return self.aborts(now, why);
        }
        Ok(())
    }

    /// A job believed longer than it is comes to be known better.
    fn refresh_estimate(&mut self, job: usize) {
        let it = &mut self.jobs[job];
        if it.true_duration < it.duration {
            let known = it.progress as f64 / it.duration as f64;
            let believed = it.duration as f64 + (it.true_duration - it.duration) as f64 * known;
            it.estimate = it.estimate_of(believed, self.settings.lease);
        }
    }
}
