//! How fast a job runs at each number of GPUs it may have.

use smallvec::SmallVec;

/// The levels of an elastic job: GPU counts and iterations per second, ascending by count. Speeds need not ascend.
#[derive(Clone, Debug, PartialEq)]
pub struct Speeds {
    levels: SmallVec<[(u32, f64); 8]>,
}

/// Levels that cannot be planned with.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SpeedsError {
    /// Nothing to choose from.
    #[error("a job needs at least one level")]
    Empty,
    /// Counts do not ascend from 1.
    #[error("{gpus} GPUs is out of place: levels must ascend and begin at 1 or more")]
    OutOfOrder {
        /// The count that is wrong.
        gpus: u32,
    },
    /// A speed that is not positive and finite.
    #[error("{rate} iterations per second with {gpus} GPUs: a speed must be positive and finite")]
    Rate {
        /// At which level.
        gpus: u32,
        /// The speed that is not positive and finite.
        rate: f64,
    },
}

impl Speeds {
    /// Levels in ascending order.
    pub fn new(levels: impl IntoIterator<Item = (u32, f64)>) -> Result<Self, SpeedsError> {
        let levels: SmallVec<[(u32, f64); 8]> = levels.into_iter().collect();
        let mut last = 0;
        for &(gpus, rate) in &levels {
            if gpus <= last {
                return Err(SpeedsError::OutOfOrder { gpus });
            }
            if !(rate.is_finite() && rate > 0.0) {
                return Err(SpeedsError::Rate { gpus, rate });
            }
            last = gpus;
        }
        if levels.is_empty() { Err(SpeedsError::Empty) } else { Ok(Speeds { levels }) }
    }

    /// One level: a job that is not elastic.
    pub fn fixed(gpus: u32, rate: f64) -> Result<Self, SpeedsError> {
        Speeds::new([(gpus, rate)])
    }

    /// All levels.
    pub fn levels(&self) -> &[(u32, f64)] {
        &self.levels
    }

    /// Iterations per second at a level; nothing between levels.
    pub fn rate(&self, gpus: u32) -> f64 {
        self.levels.iter().find(|l| l.0 == gpus).map_or(0.0, |l| l.1)
    }

    /// The next level above `gpus`, if any.
    pub fn above(&self, gpus: u32) -> Option<u32> {
        self.levels.iter().map(|l| l.0).find(|g| *g > gpus)
    }

    /// The highest level that `free` GPUs allow, with its speed.
    #[inline]
    pub fn within(&self, free: i32) -> Option<(u32, f64)> {
        self.levels.iter().rev().find(|l| i64::from(l.0) <= i64::from(free)).copied()
    }

    /// The level that does most with a GPU-second among those within `free`: (GPUs, speed).
    pub fn most_efficient(&self, free: i32) -> Option<(u32, f64)> {
        let per_gpu = |l: &(u32, f64)| l.1 / f64::from(l.0);
        let fitting = self.levels.iter().filter(|l| i64::from(l.0) <= i64::from(free));
        fitting.copied().reduce(|best, l| if per_gpu(&l) > per_gpu(&best) { l } else { best })
    }

    /// The same job limited to `most` GPUs; unchanged when not even its lowest level is within that.
    pub fn up_to(&self, most: u32) -> Self {
        let n = self.levels.partition_point(|l| l.0 <= most).max(1);
        Speeds { levels: self.levels[..n].into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_found_from_both_sides() {
        let speeds = Speeds::new([(1, 1.0), (2, 1.8), (8, 4.0)]).expect("levels");
        assert_eq!((speeds.above(0), speeds.above(2), speeds.above(8)), (Some(1), Some(8), None));
        assert_eq!(speeds.within(7), Some((2, 1.8)));
        assert_eq!(speeds.within(0), None);
        assert_eq!(speeds.within(-3), None, "more was promised than there is");
        assert_eq!(speeds.up_to(4).levels(), [(1, 1.0), (2, 1.8)]);
        assert_eq!(speeds.most_efficient(64), Some((1, 1.0)));
    }

    #[test]
    fn levels_that_cannot_be_are_refused() {
        assert_eq!(Speeds::new([]), Err(SpeedsError::Empty));
        assert_eq!(Speeds::new([(0, 1.0)]), Err(SpeedsError::OutOfOrder { gpus: 0 }));
        assert_eq!(Speeds::new([(2, 1.0), (2, 1.0)]), Err(SpeedsError::OutOfOrder { gpus: 2 }));
        assert!(matches!(Speeds::new([(1, f64::NAN)]), Err(SpeedsError::Rate { gpus: 1, .. })));
        assert!(matches!(Speeds::new([(1, 0.0)]), Err(SpeedsError::Rate { .. })));
    }
}
