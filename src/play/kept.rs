//! The last few things made, by what they were made from.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The last few things made; the one that was not used for longest goes first.
pub(crate) struct Kept<T> {
    most: usize,
    things: Mutex<VecDeque<(String, Arc<T>)>>,
}

impl<T> Kept<T> {
    /// Keeps at most so many.
    pub(crate) fn new(most: usize) -> Self {
        Kept { most, things: Mutex::default() }
    }

    /// The thing made from this, if it is still there.
    pub(crate) fn find(&self, key: &str) -> Option<Arc<T>> {
        let mut things = self.things();
        let at = things.iter().position(|(known, _)| known == key)?;
        let entry = things.remove(at)?;
        let thing = Arc::clone(&entry.1);
        things.push_back(entry);
        Some(thing)
    }

    /// Keeps a thing.
    pub(crate) fn keep(&self, key: String, thing: T) -> Arc<T> {
        let thing = Arc::new(thing);
        let mut things = self.things();
        things.retain(|(known, _)| *known != key);
        things.push_back((key, Arc::clone(&thing)));
        if things.len() > self.most {
            things.pop_front();
        }
        thing
    }

    fn things(&self) -> MutexGuard<'_, VecDeque<(String, Arc<T>)>> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_stays() {
        let kept = Kept::new(2);
        kept.keep("a".into(), 1);
        kept.keep("b".into(), 2);
        assert_eq!(kept.find("a").as_deref(), Some(&1));
        kept.keep("c".into(), 3);
        assert_eq!((kept.find("a").as_deref(), kept.find("b")), (Some(&1), None));
    }
}
