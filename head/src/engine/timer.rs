//! When the policy is asked: the grid of rounds, rounds brought forward, and the gap between two.

use rota_core::plan::Wake;
use rota_core::time::{Span, Time};

use crate::cluster_state::ClusterState;
use crate::state::Moment;

/// After a round, no round is held for this many times as long as it took, ...
const GAP_FACTOR: i64 = 2;
/// ... but never for longer than this.
const MOST_GAP: Span = Span::from_secs(1);

/// When rounds are held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundSettings {
    /// Time between rounds, in the head's time.
    pub(crate) round: Span,
    /// Whether an arrival, an end or a failure brings the next round forward.
    pub(crate) wakes_early: bool,
    /// The least real time between two rounds.
    pub(crate) least_gap: Span,
    /// How many agents must be connected before the first round.
    pub(crate) wait_for: usize,
    /// A job that has run for less is never stopped in favour of another.
    pub(crate) min_run: Span,
}

/// When the last round was, what it took, and when the next one is due.
#[derive(Debug)]
pub(crate) struct RoundTimer {
    settings: RoundSettings,
    /// The round that the decider works on.
    asked: Option<u64>,
    last: Option<Moment>,
    /// Number of the last interval of the grid in which a round was held.
    last_slot: Option<i64>,
    /// Real time that the last round took until its plan was written.
    cost: Span,
    /// Whether the records of the last answer are still to be written.
    is_cost_open: bool,
    wake: Wake,
}

impl RoundTimer {
    pub(crate) fn new(settings: RoundSettings) -> Self {
        RoundTimer {
            settings,
            asked: None,
            last: None,
            last_slot: None,
            cost: Span::ZERO,
            is_cost_open: false,
            wake: Wake::NextRound,
        }
    }

    pub(crate) fn settings(&self) -> &RoundSettings {
        &self.settings
    }

    /// Whether the policy was asked and has not answered.
    pub(crate) fn is_deciding(&self) -> bool {
        self.asked.is_some()
    }

    /// Notes that a round begins now, and returns how long a job must have run for this round to preempt it. In a round that
    /// was brought forward that is a whole round length: a policy that shares time would otherwise preempt jobs whenever
    /// one arrives or ends.
    pub(crate) fn begin(&mut self, moment: Moment, round: u64) -> Span {
        (self.asked, self.last) = (Some(round), Some(moment));
        let slot = moment.now.0.div_euclid(self.settings.round.0.max(1));
        match self.last_slot.replace(slot) == Some(slot) {
            true => self.settings.min_run.max(self.settings.round),
            false => self.settings.min_run,
        }
    }

    /// When the last round began, in real time.
    pub(crate) fn last_began(&self) -> Option<Time> {
        self.last.map(|last| last.real)
    }

    /// Whether an answer belongs to the round that was asked about last.
    pub(crate) fn is_answered(&mut self, round: u64) -> bool {
        let is_awaited = self.asked.take_if(|asked| *asked == round).is_some();
        self.is_cost_open |= is_awaited;
        is_awaited
    }

    /// When the policy that answered wants to be asked again.
    pub(crate) fn wake_at(&mut self, wake: Wake) {
        self.wake = wake;
    }

    /// All records so far are on the disk, so the full cost of the last round is known.
    pub(crate) fn written(&mut self, real: Time) {
        if let Some(last) = self.last.filter(|_| std::mem::take(&mut self.is_cost_open)) {
            self.cost = real - last.real;
        }
    }

    /// The earliest real time at which the next round may begin. The gap is proportional to the time that the last round
    /// took to decide and write, so that a small cluster answers at once and a large one is not always deciding.
    pub(crate) fn not_before(&self) -> Option<Time> {
        let gap = self.settings.least_gap.max((self.cost * GAP_FACTOR).min(MOST_GAP));
        self.last.map(|last| last.real + gap)
    }

    /// When the next round is due, in the head's time.
    pub(crate) fn next(&self, now: Time, cluster: &ClusterState) -> Option<Time> {
        if self.is_deciding() || cluster.scheduler().jobs().is_empty() {
            return None;
        }
        // Rounds are due at whole multiples of their length, however late the last one was held.
        let on_grid = |time: Time| time.align_up(Time::ZERO, self.settings.round);
        let after_last = self.last.map_or(Time::ZERO, |last| last.now + Span(1));
        // Changes that a plan itself made do not bring a round forward: jobs that take turns would be swapped as fast as they
        // start.
        if self.settings.wakes_early && cluster.is_woken() {
            return Some(now);
        }
        if let Some(changed) = cluster.changed() {
            return Some(on_grid(after_last.max(changed)));
        }
        match self.wake {
            Wake::NextRound => Some(on_grid(after_last)),
            Wake::OnChange => None,
            Wake::AtOrOnChange(time) => Some(on_grid(after_last.max(time))),
        }
    }
}
