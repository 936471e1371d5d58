//! The original's event list: times at which jobs arrive or are thought to end, pushed together into slots.

use std::collections::BTreeMap;

use rota_core::time::{Span, Time};

/// What happens at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Event {
    pub(super) starts: Vec<u32>,
    pub(super) ends: Vec<u32>,
}

impl Event {
    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty() && self.ends.is_empty()
    }
}

/// Events by time. A look-up is by the exact time: an event that was pushed to the end of a slot is no longer found
/// under the time it once had, and the original relies on that.
#[derive(Clone, Debug, Default)]
pub(super) struct Events(BTreeMap<Time, Event>);

impl Events {
    /// One event for each time of submission.
    pub(super) fn of_arrivals(submits: impl IntoIterator<Item = (u32, Time)>) -> Self {
        let mut events = Events::default();
        for (job, submit) in submits {
            events.0.entry(submit).or_default().starts.push(job);
        }
        events
    }

    pub(super) fn first(&self) -> Option<Time> {
        self.0.first_key_value().map(|(time, _)| *time)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, time: Time) -> Option<Event> {
        self.0.remove(&time)
    }

    pub(super) fn get(&self, time: Time) -> Option<&Event> {
        self.0.get(&time)
    }

    /// A time at which nothing happens but a decision.
    pub(super) fn wake(&mut self, time: Time) {
        self.0.entry(time).or_default();
    }

    /// The job is thought to end then.
    pub(super) fn end(&mut self, job: u32, time: Time) {
        let event = self.0.entry(time).or_default();
        if !event.ends.contains(&job) {
            event.ends.push(job);
        }
    }

    /// Moves a job's end from where it was thought to be, if that is still to be found, to `end`.
    pub(super) fn move_end(&mut self, job: u32, old: &mut Option<Time>, end: Time) {
        if *old == Some(end) {
            return;
        }
        if let Some(time) = old.take()
            && let Some(event) = self.0.get_mut(&time)
        {
            event.ends.retain(|j| *j != job);
            if event.is_empty() {
                self.0.remove(&time);
            }
        }
        self.end(job, end);
    }

    /// Pushes everything within a slot after `now` to the slot's end, and says when the next event is. A single event
    /// that is left stays where it is.
    pub(super) fn coalesce(&mut self, now: Time, slot: Span) -> Option<Time> {
        let (first, _) = self.0.first_key_value()?;
        if self.0.len() == 1 || *first - now > slot {
            return Some(*first);
        }
        let end = now + slot;
        let mut gathered = Event::default();
        while let Some(entry) = self.0.first_entry().filter(|entry| *entry.key() <= end) {
            let event = entry.remove();
            gathered.starts.extend(event.starts);
            gathered.ends.extend(event.ends);
        }
        self.0.insert(end, gathered);
        Some(end)
    }
}
