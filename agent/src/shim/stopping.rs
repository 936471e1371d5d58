//! How a launch is stopped, as times on the clock: when it is asked, signalled and killed, and the lease that starts this.

use super::record::ExitCause;

/// A launch that was asked to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stopping {
    /// What caused the stop; it becomes the cause of the launch's end.
    pub(super) cause: ExitCause,
    /// When its processes are sent the first signal.
    pub(super) ask_at_ms: u64,
    /// When they are killed.
    pub(super) kill_at_ms: u64,
    /// Whether that signal was sent.
    pub(super) was_asked: bool,
}

impl Stopping {
    /// A job that ends by itself has three quarters of the grace before the first signal; any other gets it at once.
    pub(super) fn new(cause: ExitCause, now_ms: u64, grace_ms: u64, ends_by_itself: bool) -> Self {
        let patience_ms = if ends_by_itself { grace_ms / 4 * 3 } else { 0 };
        Stopping {
            cause,
            ask_at_ms: now_ms.saturating_add(patience_ms),
            kill_at_ms: now_ms.saturating_add(grace_ms),
            was_asked: false,
        }
    }

    /// Another order to stop: the earlier end counts, the first cause stays.
    pub(super) fn hasten(&mut self, now_ms: u64, grace_ms: u64) {
        self.kill_at_ms = self.kill_at_ms.min(now_ms.saturating_add(grace_ms));
        self.ask_at_ms = self.ask_at_ms.min(self.kill_at_ms);
    }
}

/// How long a launch may run without a message from the head. It is the shim that keeps it, because agent and head may both
/// be gone. Nothing of the launch may be left when lease and grace are over: the head waits for both, and a little longer,
/// before it starts the job elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// When the launch is asked to stop.
    pub(super) until_ms: u64,
    /// When everything must be gone.
    pub(super) kill_at_ms: u64,
}

impl Lease {
    /// A lease of a job that has this much time to stop.
    pub(super) fn new(until_ms: u64, grace_ms: u64) -> Self {
        Lease { until_ms, kill_at_ms: until_ms.saturating_add(grace_ms) }
    }

    /// What is left of the job's time to stop: nothing for a shim that was asleep for longer.
    pub(super) fn grace_left_ms(&self, now_ms: u64) -> u64 {
        self.kill_at_ms.saturating_sub(now_ms.max(self.until_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_job_is_asked_at_once_and_one_that_listens_is_given_time() {
        let silent = Stopping::new(ExitCause::Ordered, 1_000, 400, false);
        assert_eq!((silent.ask_at_ms, silent.kill_at_ms), (1_000, 1_400));
        let listens = Stopping::new(ExitCause::Ordered, 1_000, 400, true);
        assert_eq!((listens.ask_at_ms, listens.kill_at_ms), (1_300, 1_400));
    }

    #[test]
    fn the_grace_follows_the_lease_and_is_over_for_a_shim_that_slept_through_it() {
        let lease = Lease::new(11_000, 1_000);
        assert_eq!((lease.until_ms, lease.kill_at_ms), (11_000, 12_000));
        assert_eq!([11_000, 11_400, 12_000, 99_000].map(|now| lease.grace_left_ms(now)), [1_000, 600, 0, 0]);
    }

    #[test]
    fn a_second_order_can_only_hasten() {
        let mut stopping = Stopping::new(ExitCause::LeaseOver, 1_000, 10_000, true);
        stopping.hasten(2_000, 20_000);
        assert_eq!(stopping.kill_at_ms, 11_000);
        stopping.hasten(2_000, 500);
        assert_eq!(
            (stopping.ask_at_ms, stopping.kill_at_ms, stopping.cause),
            (2_500, 2_500, ExitCause::LeaseOver)
        );
    }
}
