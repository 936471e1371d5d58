//! The measurement window: which jobs count for the averages, so that filling and draining can be left out.

use std::fmt;
use std::str::FromStr;

/// Jobs `lo` to `hi - 1` in the order of submission, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Window {
    lo: u32,
    hi: u32,
}

/// A text that is not a window of jobs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a window of jobs: write `LO..HI` with LO below HI, as in `1000..2000`")]
pub struct WindowError {
    /// Text that is not a window.
    pub text: String,
}

impl Window {
    /// From `lo` up to but without `hi`; `None` when that is empty.
    pub fn new(lo: u32, hi: u32) -> Option<Self> {
        (lo < hi).then_some(Window { lo, hi })
    }

    /// The first place and one past the last.
    pub fn bounds(self) -> (u32, u32) {
        (self.lo, self.hi)
    }

    /// The part of a slice in the order of submission that lies in the window.
    pub fn of<T>(window: Option<Window>, all: &[T]) -> &[T] {
        let Some(Window { lo, hi }) = window else { return all };
        let end = all.len();
        &all[(lo as usize).min(end)..(hi as usize).min(end)]
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.lo, self.hi)
    }
}

impl FromStr for Window {
    type Err = WindowError;
    fn from_str(text: &str) -> Result<Self, WindowError> {
        let ends = text
            .split_once("..")
            .and_then(|(lo, hi)| Some((lo.trim().parse().ok()?, hi.trim().parse().ok()?)));
        ends.and_then(|(lo, hi)| Window::new(lo, hi)).ok_or_else(|| WindowError { text: text.to_owned() })
    }
}

impl TryFrom<String> for Window {
    type Error = WindowError;
    fn try_from(text: String) -> Result<Self, WindowError> {
        text.parse()
    }
}

impl From<Window> for String {
    fn from(window: Window) -> String {
        window.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_half_open_and_cut_to_the_jobs_there_are() {
        let all = [0, 1, 2, 3, 4];
        let window = |text: &str| text.parse::<Window>().ok();
        assert_eq!(Window::of(window("1..3"), &all), [1, 2]);
        assert_eq!(Window::of(window("3..99"), &all), [3, 4]);
        assert_eq!(Window::of(window("7..9"), &all), [0; 0]);
        assert_eq!(Window::of(None, &all), all);
    }

    #[test]
    fn empty_and_crooked_windows_are_refused() {
        for text in ["", "3", "3..3", "5..3", "-1..4", "a..b", "1..2..3"] {
            assert!(text.parse::<Window>().is_err(), "{text}");
        }
    }
}
