//! The times at which plans may change: a slot for the ends of reservations, a tick for the ends of jobs.

use crate::time::{Span, Time};

/// Slots counted from an origin. Far from it they may widen, so that a timeline has few steps however many jobs are
/// planned on it: a reservation a week ahead need not be exact to the minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    origin: Time,
    slot: Span,
    tick: Span,
    /// From so many slots after the origin on, widths double each time the distance does.
    n_even: Option<u32>,
}

impl Grid {
    /// Slots of one width for ever; jobs end at whole `tick`s.
    pub fn even(origin: Time, slot: Span, tick: Span) -> Self {
        Grid { origin, slot: Span(slot.0.max(1)), tick: Span(tick.0.max(1)), n_even: None }
    }

    /// Slots that widen with the distance: `n_even` of the given width, then as many again of twice the width in
    /// all the distance that doubles, and so on. Every wider slot ends where a narrower one would.
    pub fn widening(origin: Time, slot: Span, n_even: u32) -> Self {
        Grid { origin, slot: Span(slot.0.max(1)), tick: Span(1), n_even: Some(n_even.max(2)) }
    }

    /// Width of a slot close by.
    pub fn slot(&self) -> Span {
        self.slot
    }

    /// The end of the slot that `time` lies in, itself if it is one; the origin for times before it.
    pub fn align(&self, time: Time) -> Time {
        let distance = time.0.saturating_sub(self.origin.0);
        if distance <= 0 {
            return self.origin;
        }
        let width = self.width_at(distance);
        let slots = distance / width + i64::from(distance % width > 0);
        Time(self.origin.0.saturating_add(slots.saturating_mul(width)))
    }

    fn width_at(&self, distance: i64) -> i64 {
        let Some(n_even) = self.n_even else { return self.slot.0 };
        let reach = self.slot.0.saturating_mul(i64::from(n_even));
        let doublings = ((distance - 1) / reach.max(1)).checked_ilog2().map_or(0, |log| log + 1);
        self.slot.0.saturating_mul(1_i64.checked_shl(doublings.min(62)).unwrap_or(i64::MAX))
    }

    /// The first tick at which something that takes `seconds` from `from` on is over.
    pub fn finish(&self, from: Time, seconds: f64) -> Time {
        let tick_s = self.tick.as_secs_f64();
        Time(from.0.saturating_add(self.tick.0.saturating_mul((seconds / tick_s).ceil() as i64)))
    }

    /// The same, rounded up on the clock instead of from the beginning: the two differ when `seconds` exceed a whole
    /// number of ticks by less than the clock can show.
    pub fn finish_on_clock(&self, from: Time, seconds: f64) -> Time {
        let tick_s = self.tick.as_secs_f64();
        Time(self.tick.0.saturating_mul(((from.as_secs_f64() + seconds) / tick_s).ceil() as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: i64) -> Time {
        Time(seconds * 1_000_000)
    }

    #[test]
    fn even_slots_end_at_multiples_after_the_origin() {
        let grid = Grid::even(at(7), Span::from_secs(60), Span::from_secs(1));
        assert_eq!(grid.align(at(7)), at(7));
        assert_eq!(grid.align(at(8)), at(67));
        assert_eq!(grid.align(at(67)), at(67));
        assert_eq!(grid.align(at(3)), at(7), "the past ends now");
        assert_eq!(grid.finish(at(7), 0.25), at(8));
    }

    #[test]
    fn widening_slots_are_nested_and_their_number_is_small() {
        let grid = Grid::widening(Time::ZERO, Span::from_secs(60), 16);
        assert_eq!(grid.align(at(61)), at(120));
        assert_eq!(grid.align(at(16 * 60)), at(16 * 60));
        assert_eq!(grid.align(at(16 * 60 + 1)), at(18 * 60), "twice as wide past the sixteenth");
        assert_eq!(grid.align(at(32 * 60 + 1)), at(36 * 60));
        let mut ends: Vec<Time> = (0..100_000).map(|m| grid.align(at(m * 60))).collect();
        ends.dedup();
        assert!(ends.windows(2).all(|w| w[0] < w[1]), "an end never comes before that of an earlier time");
        assert!(ends.len() < 150, "{} ends over ten weeks", ends.len());
        for end in &ends {
            assert_eq!(grid.align(*end), *end, "an end is its own end");
        }
    }
}
