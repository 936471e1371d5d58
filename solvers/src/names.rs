//! Names of variables and rows: unique, and fit for every file format.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::error::{Item, ModelError};
use crate::model::MOST;

/// Names longer than this fit into no LP file.
pub(crate) const LONGEST_NAME: usize = 255;

/// Unique names in order, and the way back from a name to its position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    list: Vec<Arc<str>>,
    /// Never iterated, so its order reaches nothing.
    index: HashMap<Arc<str>, u32>,
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Names {
    /// The name at a position.
    pub(crate) fn name(&self, position: usize) -> &str {
        &self.list[position]
    }

    /// The position of a name.
    pub(crate) fn position(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
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
        if self.list.len() >= MOST {
            return Err(ModelError::TooLarge { what: "names", limit: MOST });
        }
        let position = self.list.len() as u32;
        let shared: Arc<str> = name.into();
        match self.index.entry(shared) {
            Entry::Occupied(_) => Err(ModelError::DuplicateName { item, name: name.into() }),
            Entry::Vacant(vacant) => {
                self.list.push(vacant.key().clone());
                vacant.insert(position);
                Ok(position)
            }
        }
    }
}
