//! What a script may use up in one decision, and the meter that counts it.
//!
//! Operations are counted here and not by the Rhai engine, because native verbs charge for their work too and a
//! closure called from a verb must not start a count of its own. Reaching a limit is an error, never a hang.

use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rhai::{Dynamic, EvalAltResult, Position};

use crate::language::memory;

/// How many closures may call verbs that call closures; each level takes native stack that Rhai does not see.
const MAX_NESTING: u32 = 4;
/// The alarm is looked at once in so many operations.
const ALARM_EVERY: u64 = 256;
/// Rows a native verb handles for the price of one operation.
const ROWS_PER_OPERATION: u64 = 16;

/// Stack that a thread should have in which scripts of people run. Values that hold each other, such as a closure that holds a
/// closure, are freed one within the other: a chain as long as the limits allow by default takes up to half of this. It is
/// address space, and becomes memory only where it is used.
pub const STACK_BYTES: usize = 512 << 20;

/// The most a script may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps of the interpreter in one decision; native verbs charge one for every 16 jobs they touch.
    pub operations: u64,
    /// Wall-clock time of one decision. The simulator sets none, so that results do not depend on the machine.
    pub alarm: Option<Duration>,
    /// The most functions that may be active at a time.
    pub call_depth: usize,
    /// Variables in one function.
    pub variables: usize,
    /// Bytes of text in one value, all that it contains together.
    pub string_bytes: usize,
    /// Elements of one array, nested ones included.
    pub array_items: usize,
    /// Entries of one map, nested ones included.
    pub map_entries: usize,
    /// Bytes of columns and queues alive at the same time.
    pub column_bytes: u64,
    /// Bytes allocated by the deciding thread since the decision began, where the program counts them
    /// ([`memory::CountingAllocator`]).
    pub memory_bytes: u64,
    /// Bytes allocated in one decision, freed ones included: arrays and maps are copied where they are read, and a copy is
    /// one operation however large it is. Counted where `memory_bytes` is.
    pub copied_bytes: u64,
    /// Lines of `print` and `debug` kept of one decision.
    pub note_lines: usize,
    /// Bytes of private memory kept between rounds, as text.
    pub memory_text_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            operations: 10_000_000,
            alarm: None,
            call_depth: 32,
            variables: 128,
            string_bytes: 256 << 10,
            array_items: 100_000,
            map_entries: 20_000,
            column_bytes: 64 << 20,
            memory_bytes: 128 << 20,
            copied_bytes: 1 << 30,
            note_lines: 50,
            memory_text_bytes: 256 << 10,
        }
    }
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reached {
    Operations = 1,
    Alarm,
    Columns,
    Memory,
    Copies,
    Nesting,
}

/// Counts what a decision uses. One thread writes; atomics only because script values must be shareable.
#[derive(Debug)]
pub(crate) struct Meter {
    limits: Limits,
    operations: AtomicU64,
    deadline_ns: AtomicU64,
    epoch: Instant,
    column_bytes: AtomicU64,
    memory_at_start: AtomicI64,
    allocated_at_start: AtomicU64,
    nesting: AtomicU32,
    reached: AtomicU8,
}

impl Meter {
    pub(crate) fn new(limits: Limits) -> Self {
        Meter {
            limits,
            operations: AtomicU64::new(0),
            deadline_ns: AtomicU64::new(u64::MAX),
            epoch: Instant::now(),
            column_bytes: AtomicU64::new(0),
            memory_at_start: AtomicI64::new(0),
            allocated_at_start: AtomicU64::new(0),
            nesting: AtomicU32::new(0),
            reached: AtomicU8::new(0),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A new decision begins.
    pub(crate) fn start(&self) {
        self.operations.store(0, Relaxed);
        self.nesting.store(0, Relaxed);
        self.reached.store(0, Relaxed);
        self.memory_at_start.store(memory::bytes_held_by_this_thread(), Relaxed);
        self.allocated_at_start.store(memory::bytes_allocated_by_this_thread(), Relaxed);
        if let Some(alarm) = self.limits.alarm {
            let deadline = (self.epoch.elapsed() + alarm).as_nanos();
            self.deadline_ns.store(u64::try_from(deadline).unwrap_or(u64::MAX), Relaxed);
        }
    }

    /// Operations of this decision so far.
    pub(crate) fn operations(&self) -> u64 {
        self.operations.load(Relaxed)
    }

    /// The limit that ended this decision, if one did.
    pub(crate) fn reached(&self) -> Option<Reached> {
        use Reached::{Alarm, Columns, Copies, Memory, Nesting, Operations};
        [Operations, Alarm, Columns, Memory, Copies, Nesting]
            .into_iter()
            .find(|r| *r as u8 == self.reached.load(Relaxed))
    }

    /// One step of the interpreter; the token ends the script.
    #[inline]
    pub(crate) fn tick(&self) -> Option<Dynamic> {
        self.count(1).map(|reached| self.trip(reached))
    }

    /// A native verb is about to handle so many jobs or nodes.
    pub(crate) fn charge(&self, rows: usize) -> Result<(), Box<EvalAltResult>> {
        match self.count(1 + rows as u64 / ROWS_PER_OPERATION) {
            None => Ok(()),
            Some(reached) => Err(self.stop(reached)),
        }
    }

    /// A native verb is about to call a closure.
    pub(crate) fn enter(&self) -> Result<Nested<'_>, Box<EvalAltResult>> {
        if self.nesting.load(Relaxed) >= MAX_NESTING {
            return Err(self.stop(Reached::Nesting));
        }
        self.nesting.fetch_add(1, Relaxed);
        Ok(Nested(self))
    }

    /// Room for a column of so many bytes; to be given back with [`Meter::free_column`].
    pub(crate) fn take_column(&self, bytes: u64) -> Result<(), Box<EvalAltResult>> {
        let held = self.column_bytes.load(Relaxed) + bytes;
        if held > self.limits.column_bytes {
            return Err(self.stop(Reached::Columns));
        }
        self.column_bytes.store(held, Relaxed);
        Ok(())
    }

    pub(crate) fn free_column(&self, bytes: u64) {
        self.column_bytes.fetch_sub(bytes, Relaxed);
    }

    #[inline]
    fn count(&self, steps: u64) -> Option<Reached> {
        let before = self.operations.load(Relaxed);
        let after = before.saturating_add(steps);
        self.operations.store(after, Relaxed);
        if after > self.limits.operations {
            return Some(Reached::Operations);
        }
        let held = memory::bytes_held_by_this_thread() - self.memory_at_start.load(Relaxed);
        if held > self.limits.memory_bytes as i64 {
            return Some(Reached::Memory);
        }
        let copied = memory::bytes_allocated_by_this_thread() - self.allocated_at_start.load(Relaxed);
        if copied > self.limits.copied_bytes {
            return Some(Reached::Copies);
        }
        if before / ALARM_EVERY != after / ALARM_EVERY && self.limits.alarm.is_some() {
            let now_ns = self.epoch.elapsed().as_nanos();
            return (now_ns >= u128::from(self.deadline_ns.load(Relaxed))).then_some(Reached::Alarm);
        }
        None
    }

    fn trip(&self, reached: Reached) -> Dynamic {
        self.reached.store(reached as u8, Relaxed);
        Dynamic::UNIT
    }

    fn stop(&self, reached: Reached) -> Box<EvalAltResult> {
        Box::new(EvalAltResult::ErrorTerminated(self.trip(reached), Position::NONE))
    }
}

/// A closure call under way.
pub(crate) struct Nested<'a>(&'a Meter);

impl Drop for Nested<'_> {
    fn drop(&mut self) {
        self.0.nesting.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_work_counts_as_operations() {
        let meter = Meter::new(Limits { operations: 100, ..Limits::default() });
        meter.start();
        assert!(meter.charge(1_000).is_ok());
        assert_eq!(meter.operations(), 63);
        assert!(meter.charge(1_000).is_err());
        assert_eq!(meter.reached(), Some(Reached::Operations));
        meter.start();
        assert_eq!((meter.operations(), meter.reached()), (0, None));
    }

    #[test]
    fn an_alarm_in_the_past_rings_at_the_next_look() {
        let meter = Meter::new(Limits { alarm: Some(Duration::ZERO), ..Limits::default() });
        meter.start();
        let rang = (0..ALARM_EVERY).find_map(|_| meter.tick());
        assert!(rang.is_some());
        assert_eq!(meter.reached(), Some(Reached::Alarm));
    }

    #[test]
    fn columns_give_their_bytes_back() {
        let meter = Meter::new(Limits { column_bytes: 100, ..Limits::default() });
        assert!(meter.take_column(80).is_ok());
        assert!(meter.take_column(80).is_err());
        meter.free_column(80);
        assert!(meter.take_column(80).is_ok());
    }
}
