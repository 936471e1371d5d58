//! What jobs report of their progress, as the policy will see it: iterations, and how fast jobs are compared with their
//! profiles.

use rota_core::allocation::WHOLE_GPU;
use rota_core::ids::JobId;
use rota_transport::message::Attempt;

use super::{Moment, State};
use crate::record::Record;

/// Reports that differ from the estimate by a smaller part of the job's work are not written down.
const SMALLEST_NEWS: f64 = 1e-3;

impl State {
    /// What jobs reported since the last round, for the policy to see.
    pub(crate) fn note_progress(&mut self, moment: Moment) {
        let mut reported = Vec::new();
        for (attempt, live) in self.launches.iter_mut() {
            if let Some(done) = live.take_progress() {
                reported.push((*attempt, done));
            }
        }
        reported
            .retain(|(Attempt { job, incarnation }, _)| self.cluster.incarnation(*job) == Some(*incarnation));
        let news = reported.iter().filter(|(attempt, done)| self.is_news(moment, attempt.job, *done));
        let jobs: Vec<_> = news.map(|(attempt, done)| (attempt.job, attempt.incarnation, *done)).collect();
        if !jobs.is_empty() {
            self.record(moment, Record::Progressed { jobs });
        }
        for (attempt, done) in reported {
            self.note_pace(moment, attempt, done);
        }
    }

    /// Whether a report says something else than the estimate. A job that runs as it was thought to would otherwise cost a
    /// record in every round.
    fn is_news(&self, moment: Moment, job: JobId, done: f64) -> bool {
        let jobs = self.cluster.scheduler().jobs();
        let Some(row) = jobs.row(job) else { return false };
        let (estimate, work) = (jobs.done_at(row, moment.now), jobs.spec(row).estimated_work);
        (done - estimate).abs() > work * SMALLEST_NEWS
    }

    /// Compares what a job reports with its profile, and corrects the estimate that policies see.
    fn note_pace(&mut self, moment: Moment, Attempt { job, incarnation }: Attempt, done: f64) {
        let (jobs, cluster) = (self.cluster.scheduler().jobs(), self.cluster.scheduler().cluster());
        let Some((row, known)) = jobs.row(job).zip(self.cluster.job(job)) else { return };
        // Profiles are about whole GPUs, and a job without a profile counts in seconds.
        let allocation = jobs.allocation(row);
        let is_whole = allocation.slices.iter().all(|slice| slice.share == WHOLE_GPU)
            && !known.request.model.as_str().is_empty();
        let expected = known.spec.rate(allocation, cluster) / known.pace;
        let pace = known.pace;
        let Some(live) = self.launches.get_mut(Attempt { job, incarnation }).filter(|_| is_whole) else {
            return;
        };
        if let Some(pace) = live.pace.report(moment.now, done, expected, pace) {
            self.record(moment, Record::JobPaced { job, pace });
        }
    }
}
