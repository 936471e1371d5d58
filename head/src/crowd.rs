//! How much of something each person has at a time, such as connections: it costs the head memory or threads, so one person has a few.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rota_transport::value::Name;

/// What people have, counted.
#[derive(Debug)]
pub(crate) struct Crowd {
    most: usize,
    by_name: Mutex<BTreeMap<Name, usize>>,
}

/// The right to one of the things that a person may have: it counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    crowd: Arc<Crowd>,
    name: Name,
}

impl Crowd {
    /// Nobody has anything, and each may have so many.
    pub(crate) fn new(most: usize) -> Self {
        Crowd { most, by_name: Mutex::default() }
    }

    /// Counts one more of a person; none if there are too many.
    pub(crate) fn enter(self: &Arc<Self>, name: &Name) -> Option<Permit> {
        let mut by_name = self.by_name.lock().ok()?;
        let n_here = by_name.entry(name.clone()).or_default();
        if *n_here >= self.most {
            return None;
        }
        *n_here += 1;
        Some(Permit { crowd: Arc::clone(self), name: name.clone() })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Ok(mut by_name) = self.crowd.by_name.lock() else { return };
        let n_left = by_name.get(&self.name).map_or(0, |n_here| n_here.saturating_sub(1));
        match n_left {
            0 => by_name.remove(&self.name),
            n_left => by_name.insert(self.name.clone(), n_left),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_has_so_many_and_others_have_theirs() {
        let crowd = Arc::new(Crowd::new(3));
        let [ada, eve] = ["ada", "eve"].map(|name| Name::new(name).expect("a name"));
        let mut permits: Vec<_> = (0..3).map(|_| crowd.enter(&eve).expect("free")).collect();
        assert!(crowd.enter(&eve).is_none() && crowd.enter(&ada).is_some());
        permits.pop();
        assert!(crowd.enter(&eve).is_some());
        drop(permits);
        assert!(crowd.by_name.lock().expect("nobody panics").is_empty());
    }
}
