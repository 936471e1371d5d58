//! Intervals of many points of one line: next to each other their whiskers would run into a block that hides the line, so
//! they are drawn as one band behind it.

use std::collections::BTreeMap;

use super::Whisker;

/// Points of a line up to which each has a mark and a whisker of its own.
pub(crate) const MAX_MARKED: usize = 40;

/// The intervals of one line as an area.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Band {
    /// Place in the palette.
    pub(super) colour: usize,
    /// Along the lower ends, and back along the upper ones.
    pub(super) outline: Vec<(f64, f64)>,
}

/// Whiskers to be drawn one by one, and those that are bands.
pub(super) fn apart(whiskers: &[Whisker]) -> (Vec<Whisker>, Vec<Band>) {
    let mut by_line: BTreeMap<usize, Vec<Whisker>> = BTreeMap::new();
    for whisker in whiskers {
        by_line.entry(whisker.colour).or_default().push(*whisker);
    }
    let (many, few): (Vec<_>, Vec<_>) = by_line.into_iter().partition(|(_, all)| all.len() > MAX_MARKED);
    let single = few.into_iter().flat_map(|(_, all)| all).collect();
    (single, many.into_iter().map(|(colour, all)| Band { colour, outline: outline(all) }).collect())
}

fn outline(mut whiskers: Vec<Whisker>) -> Vec<(f64, f64)> {
    whiskers.sort_by(|a, b| a.at.total_cmp(&b.at));
    let low = whiskers.iter().map(|whisker| (whisker.at, whisker.low));
    let high = whiskers.iter().rev().map(|whisker| (whisker.at, whisker.high));
    low.chain(high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_line_of_many_points_has_a_band() {
        let whisker = |colour, at: f64| Whisker { colour, at, low: at - 1.0, high: at + 1.0 };
        let mut all: Vec<Whisker> = (0..=MAX_MARKED).rev().map(|at| whisker(3, at as f64)).collect();
        all.extend([whisker(5, 0.0), whisker(5, 1.0)]);
        let (single, bands) = apart(&all);
        assert_eq!(single, [whisker(5, 0.0), whisker(5, 1.0)]);
        let [Band { colour: 3, outline }] = bands.as_slice() else { panic!("{bands:?}") };
        assert_eq!(outline.len(), 2 * (MAX_MARKED + 1));
        assert_eq!((outline[0], outline[1]), ((0.0, -1.0), (1.0, 0.0)), "from the left along the lower ends");
        assert_eq!(outline.last(), Some(&(0.0, 1.0)), "and back");
    }
}
