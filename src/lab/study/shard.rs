//! A part of a study's runs. Which run belongs to which part follows from its hash alone, so that machines need not
//! talk to each other.

use std::fmt;
use std::str::FromStr;

use super::{Key, StudyError};

/// Part `index` of `count`, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// Every part of a whole.
    pub fn all(count: u32) -> impl Iterator<Item = Shard> {
        (1..=count).map(move |index| Shard { index, count })
    }

    /// Whether a run is of this part.
    pub fn holds(self, key: &Key) -> bool {
        key.number() % u64::from(self.count) == u64::from(self.index - 1)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = StudyError;
    fn from_str(text: &str) -> Result<Self, StudyError> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Shard { index, count }),
            _ => Err(StudyError::Shard(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_of_exactly_one_part() {
        for n in 0..200 {
            let key = Key::new([format!("run {n}").as_str()]);
            assert_eq!(Shard::all(7).filter(|shard| shard.holds(&key)).count(), 1);
        }
    }

    #[test]
    fn parts_share_the_runs_about_evenly() {
        let keys: Vec<Key> = (0..4_000).map(|n| Key::new([format!("run {n}").as_str()])).collect();
        for shard in Shard::all(4) {
            let n = keys.iter().filter(|key| shard.holds(key)).count();
            assert!((850..1_150).contains(&n), "{shard} holds {n} of 4000");
        }
    }

    #[test]
    fn crooked_parts_are_refused() {
        for text in ["", "1", "0/4", "5/4", "1/0", "a/b", "1/2/3", "-1/2"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        assert_eq!("2/4".parse::<Shard>().map(|shard| shard.to_string()).ok(), Some("2/4".into()));
    }
}
