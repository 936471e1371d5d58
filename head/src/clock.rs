//! The head's only clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rota_core::time::{Span, Time};

use crate::state::Moment;

/// Converts real time into the head's time, which starts at `base` and runs `scale` times as fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    base: Time,
    scale: f64,
}

impl Clock {
    /// A clock that shows `base` now.
    pub(crate) fn new(base: Time, scale: f64) -> Self {
        Clock { started: Instant::now(), base, scale }
    }

    /// The current moment in real time and in the head's time.
    pub(crate) fn moment(&self) -> Moment {
        let real = self.started.elapsed().as_micros() as i64;
        Moment { now: self.base + Span((real as f64 * self.scale) as i64), real: Time(real) }
    }

    /// Skips a span of the head's time.
    pub(crate) fn jump(&mut self, span: Span) {
        self.base = self.base + span;
    }

    /// The real time that a span of the head's time takes.
    pub(crate) fn to_real(self, span: Span) -> Span {
        Span((span.0 as f64 / self.scale) as i64)
    }
}

/// Wall-clock time in microseconds since 1970: read once at start-up, to count the time in which no head ran.
pub(crate) fn calendar_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}
