//! Conditions of jobs and nodes that come true by themselves: what a job waited for has ended, its time is up, a node that was
//! closed is idle.

use rota_core::ids::NodeId;

use super::{Moment, State};
use crate::record::Record;

impl State {
    /// Jobs that nothing keeps back reach the scheduler; those that can never begin are declined, and with them those that
    /// wait for them.
    pub(crate) fn release_held(&mut self, moment: Moment) {
        loop {
            let (ready, broken) = self.cluster.settled();
            for job in ready {
                self.record(moment, Record::JobSubmitted { job });
            }
            if broken.is_empty() {
                return;
            }
            for (job, reason) in broken {
                self.record(moment, Record::JobDeclined { job, reason });
            }
        }
    }

    /// Stops jobs that have run for as long as they may.
    pub(crate) fn end_over_time(&mut self, moment: Moment) {
        let mut last = None;
        while let Some((at, job)) = self.cluster.next_limit().filter(|(at, _)| *at <= moment.now) {
            if last.replace((at, job)) == Some((at, job)) {
                return;
            }
            let life = self.cluster.job(job).map(|job| &job.life);
            let ran = life.map_or_else(Default::default, |life| {
                life.ran + life.runs_since.map_or_else(Default::default, |since| moment.now - since)
            });
            self.record(moment, Record::JobTimedOut { job, ran });
        }
    }

    /// Takes nodes out of service that were closed and on which nothing is alive any more.
    pub(crate) fn drain_idle(&mut self, moment: Moment) {
        let held = &self.cluster.scheduler().nodes().closed;
        let is_idle = |node: &NodeId| {
            !self.cluster.is_drained(*node)
                && held.get(node).is_none_or(|gpus| gpus.is_empty())
                && self.launches.on_node(*node).is_empty()
        };
        let idle: Vec<_> = self.cluster.closed().iter().copied().filter(is_idle).collect();
        for node in idle {
            let reason = self.cluster.drain_reason(node).to_owned();
            let user = "the head, because it is idle".to_owned();
            self.record(moment, Record::NodeDrained { node, is_drained: true, user, reason });
        }
    }
}
