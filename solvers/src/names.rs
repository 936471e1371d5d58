//! Names of variables and rows: unique, and fit for every file format.
//!
//! Large models have hundreds of thousands, so all of them are kept in one text, and the way back is a table of positions.

use std::hash::{BuildHasher, RandomState};

use crate::error::{Item, ModelError};
use crate::model::MOST;

/// Names longer than this fit into no LP file.
pub(crate) const LONGEST_NAME: usize = 255;

/// Marks an empty slot.
const EMPTY: u32 = u32::MAX;

/// Unique names in order, and the way back from a name to its position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    text: String,
    /// Where each name ends in `text`.
    ends: Vec<usize>,
    /// Positions by hash, at most half of them taken; never iterated, so its order reaches nothing.
    slots: Vec<u32>,
    /// Seeded: names come from files, and must not be able to make them collide.
    hasher: RandomState,
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.ends == other.ends && self.text == other.text
    }
}

impl Names {
    /// The name at a position.
    pub(crate) fn name(&self, position: usize) -> &str {
        let begin = position.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin..self.ends[position]]
    }

    /// The position of a name.
    pub(crate) fn position(&self, name: &str) -> Option<u32> {
        self.slots.get(self.slot(name)?).copied().filter(|position| *position != EMPTY)
    }

    /// Adds a name; refuses what is taken or no file could carry.
    pub(crate) fn add(&mut self, item: Item, name: &str) -> Result<u32, ModelError> {
        let bad = |why| Err(ModelError::BadName { item, name: name.into(), why });
        if name.is_empty() {
            return bad("a name cannot be empty");
        }
        if name.len() > LONGEST_NAME {
            return bad("a name cannot be longer than 255 bytes");
        }
        if name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return bad("a name cannot contain spaces");
        }
        if self.ends.len() >= MOST {
            return Err(ModelError::TooLarge { what: "names", limit: MOST });
        }
        if 2 * self.ends.len() >= self.slots.len() {
            self.grow();
        }
        let Some(slot) = self.slot(name).filter(|slot| self.slots[*slot] == EMPTY) else {
            return Err(ModelError::DuplicateName { item, name: name.into() });
        };
        let position = self.ends.len() as u32;
        self.slots[slot] = position;
        self.text.push_str(name);
        self.ends.push(self.text.len());
        Ok(position)
    }

    /// The slot that has a name, or the empty one where it would go; `None` when there are no slots.
    fn slot(&self, name: &str) -> Option<usize> {
        let last = self.slots.len().checked_sub(1)?;
        let mut slot = self.hasher.hash_one(name) as usize & last;
        while self.slots[slot] != EMPTY && self.name(self.slots[slot] as usize) != name {
            slot = (slot + 1) & last;
        }
        Some(slot)
    }

    /// Twice as many slots, a power of two.
    fn grow(&mut self) {
        self.slots = vec![EMPTY; (2 * self.slots.len()).max(16)];
        for position in 0..self.ends.len() {
            if let Some(slot) = self.slot(self.name(position)) {
                self.slots[slot] = position as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_again_and_none_twice() {
        let mut names = Names::default();
        assert_eq!(names.position("x0"), None);
        for n in 0..1000_u32 {
            assert_eq!(names.add(Item::Row, &format!("x{n}")), Ok(n));
        }
        for n in 0..1000_u32 {
            let name = format!("x{n}");
            assert_eq!((names.name(n as usize), names.position(&name)), (name.as_str(), Some(n)));
            assert!(names.add(Item::Row, &name).is_err(), "{name} is taken");
        }
        assert_eq!(names.position("x1000"), None);
    }
}
