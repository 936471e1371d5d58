//! Numbers as people list them: `0-3,8`. For GPUs and CPUs on the command line, and for the kernel's own lists.

use std::fmt;
use std::str::FromStr;

/// The highest number accepted: no machine has more CPUs.
const MOST: u32 = 65_535;

/// A set of numbers, ascending, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Ranges(Vec<u32>);

/// A text that is not a list of numbers and ranges.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` in `{text}` is not a number or range up to {MOST}: write lists such as `0-3,8`")]
pub struct RangesError {
    text: String,
    part: String,
}

impl Ranges {
    /// The numbers, ascending.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a number is in the set.
    pub fn contains(&self, number: u32) -> bool {
        self.0.binary_search(&number).is_ok()
    }

    /// What both sets have.
    pub fn and(&self, other: &Ranges) -> Ranges {
        self.0.iter().copied().filter(|n| other.contains(*n)).collect()
    }
}

impl FromIterator<u32> for Ranges {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Ranges(numbers)
    }
}

impl FromStr for Ranges {
    type Err = RangesError;

    fn from_str(text: &str) -> Result<Self, RangesError> {
        let parts = text.trim().split(',').map(str::trim).filter(|_| !text.trim().is_empty());
        let mut numbers = Vec::new();
        for part in parts {
            let wrong = || RangesError { text: text.trim().to_owned(), part: part.to_owned() };
            let number =
                |digits: &str| digits.parse::<u32>().ok().filter(|number| *number <= MOST).ok_or_else(wrong);
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(wrong());
            }
            numbers.extend(first..=last);
        }
        Ok(numbers.into_iter().collect())
    }
}

impl TryFrom<String> for Ranges {
    type Error = RangesError;
    fn try_from(text: String) -> Result<Self, RangesError> {
        text.parse()
    }
}

impl From<Ranges> for String {
    fn from(ranges: Ranges) -> String {
        ranges.to_string()
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a + 1 == *b);
        for (nth, run) in runs.enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            match run {
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [only] => write!(f, "{comma}{only}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        for (text, again) in
            [("0-3,8", "0-3,8"), ("8, 0 ,1", "0-1,8"), ("", ""), ("5-5,5", "5"), ("0-1\n", "0-1")]
        {
            let ranges: Ranges = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(ranges.to_string(), again, "{text}");
        }
    }

    #[test]
    fn crooked_lists_are_refused_by_name() {
        for text in ["3-1", "a", "1-", "-1", "1,,2", "0-4294967295", "70000"] {
            let error = text.parse::<Ranges>().expect_err(text).to_string();
            assert!(error.contains(text) && error.contains("0-3,8"), "{error}");
        }
    }

    #[test]
    fn sets_meet() {
        let (a, b): (Ranges, Ranges) = ("0-5".parse().expect("a"), "4-9".parse().expect("b"));
        assert_eq!(a.and(&b).as_slice(), [4, 5]);
    }
}
