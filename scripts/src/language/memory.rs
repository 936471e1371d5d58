//! Bytes a thread holds, counted by the allocator of a program that installs this one.
//!
//! Rhai limits the size of each value but not how many there are; only the allocator sees the sum. A program that
//! runs scripts of others installs [`CountingAllocator`], and the memory limit of a decision then holds to within
//! one value. Without it the count stays zero and only the other limits hold.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting for each thread what it holds.
///
/// ```text
/// #[global_allocator]
/// static ALLOCATOR: rota_scripts::memory::CountingAllocator = rota_scripts::memory::CountingAllocator;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

/// Bytes allocated less bytes freed by this thread; memory handed to another thread counts where it is freed.
#[inline]
pub fn bytes_held_by_this_thread() -> i64 {
    HELD.try_with(Cell::get).unwrap_or(0)
}

/// Bytes this thread has ever allocated: what is freed again is not taken off.
#[inline]
pub fn bytes_allocated_by_this_thread() -> u64 {
    ALLOCATED.try_with(Cell::get).unwrap_or(0)
}

/// The most this thread held since [`reset_peak`].
pub fn peak_of_this_thread() -> i64 {
    PEAK.try_with(Cell::get).unwrap_or(0)
}

/// The peak starts anew from what is held now.
pub fn reset_peak() {
    PEAK.with(|peak| peak.set(bytes_held_by_this_thread()));
}

#[inline]
fn count(bytes: i64) {
    // A thread that is ending has no counter any more, and no decision on it needs one.
    let _ = HELD.try_with(|held| {
        let now = held.get() + bytes;
        held.set(now);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now)));
    });
    if let Ok(bytes) = u64::try_from(bytes) {
        let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + bytes));
    }
}

#[expect(
    unsafe_code,
    reason = "the trait of allocators is unsafe; every call goes to the system's unchanged"
)]
// SAFETY: the system's allocator keeps the contract; counting neither allocates nor touches the memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as i64 - layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
