//! What jobs report of their progress, as the policy will see it: iterations, and how fast jobs are compared with their
//! profiles.

use rota_core::allocation::WHOLE_GPU;
use rota_transport::message::Attempt;

use super::{Moment, State};
use crate::record::Record;

impl State {
    /// What jobs reported since the last round, for the policy to see.
    pub(crate) fn note_progress(&mut self, moment: Moment) {
        let mut reported = Vec::new();
        for (attempt, live) in self.launches.iter_mut() {
            if let Some(done) = live.take_progress() {
                reported.push((*attempt, done));
            }
        }
        for (attempt @ Attempt { job, incarnation }, done) in reported {
            if self.cluster.incarnation(job) == Some(incarnation) {
                self.record(moment, Record::JobProgressed { job, incarnation, done });
                self.note_pace(moment, attempt, done);
            }
        }
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
