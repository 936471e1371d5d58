//! Values that exist only if they are in range, so that the types say what a peer may send.
//!
//! Decoding uses the same constructors as code does, so a message that was decoded has only valid values. What the values
//! mean is in `message`.

use rota_core::allocation::{GpuSet, WHOLE_GPU};
use rota_core::resources::Host;
use rota_core::time::Span;
use serde::{Deserialize, Serialize};

/// A value out of its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ValueError {
    /// A text that is not a valid name.
    #[error(
        "`{text}` is not a valid name: 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
    )]
    Name {
        /// The beginning of the text.
        text: String,
    },
    /// A text that is too long or holds a NUL.
    #[error("a text of {n_bytes} bytes: at most {most} without NUL are allowed")]
    Text {
        /// Length of what was given.
        n_bytes: usize,
        /// The longest allowed.
        most: usize,
    },
    /// Too many bytes.
    #[error("{n_bytes} bytes: at most {most} are allowed")]
    Bytes {
        /// Length of what was given.
        n_bytes: usize,
        /// The most allowed.
        most: usize,
    },
    /// A number out of range.
    #[error("{value} {what}: must be from {least} to {most}")]
    Range {
        /// What the number counts.
        what: &'static str,
        /// The number that was given.
        value: f64,
        /// The least allowed.
        least: f64,
        /// The most allowed.
        most: f64,
    },
    /// A set of GPUs with no GPU in it.
    #[error("no GPU")]
    NoGpu,
    /// A gang in which a rank is missing or doubled.
    #[error("node {node} of {n_nodes} with ranks {first_rank}..{past_rank} of {world_size}")]
    Gang {
        /// Place of the node.
        node: u32,
        /// Nodes in all.
        n_nodes: u32,
        /// The first rank there.
        first_rank: u32,
        /// One past the last rank there.
        past_rank: u64,
        /// Ranks in all.
        world_size: u32,
    },
}

fn in_range(what: &'static str, value: f64, least: f64, most: f64) -> Result<(), ValueError> {
    // NaN is in no range.
    if value >= least && value <= most { Ok(()) } else { Err(ValueError::Range { what, value, least, most }) }
}

macro_rules! checked {
    ($(#[$doc:meta])* $name:ident($inner:ty), $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(transparent)]
        pub struct $name($inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $name::new(<$inner>::deserialize(from)?).map_err(serde::de::Error::custom)
            }
        }

        impl $name {
            /// Checks the text.
            pub fn new(inner: impl Into<$inner>) -> Result<Self, ValueError> {
                let inner = inner.into();
                let check: fn(&$inner) -> Result<(), ValueError> = $check;
                check(&inner).map(|()| $name(inner))
            }
        }
    };
}

macro_rules! text {
    ($($(#[$doc:meta])* $name:ident, $most:expr;)*) => {$(
        checked!($(#[$doc])* $name(String), |text| {
            let n_bytes = text.len();
            match n_bytes <= $most && !text.contains('\0') {
                true => Ok(()),
                false => Err(ValueError::Text { n_bytes, most: $most }),
            }
        });

        impl Eq for $name {}

        impl $name {
            /// As much of `text` as fits, without NULs.
            pub fn cut(text: &str) -> Self {
                let text: String = text.chars().filter(|c| *c != '\0').collect();
                let end = (0..=text.len().min($most)).rev().find(|at| text.is_char_boundary(*at));
                $name(text.get(..end.unwrap_or(0)).unwrap_or_default().to_owned())
            }

            /// The text, which is short enough and has no NUL.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

text! {
    /// A line for people, or one word of a command: at most 4096 bytes.
    Text, 4096;
    /// A long text, such as a script or an answer: at most 256 KiB.
    LongText, 256 * 1024;
}

/// Whether a text can be shown on a terminal as it is: no control characters, and none that change the direction of what
/// follows.
pub fn is_plain(text: &str) -> bool {
    !text.chars().any(is_unshowable)
}

/// A text as a terminal may show it: what is not plain is written as `\u{1b}`. Line ends are kept if asked for.
pub fn shown(text: &str, lines: Lines) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' if lines == Lines::Kept => shown.push(c),
            c if is_unshowable(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// What becomes of line ends and tabs in a text that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// They are kept: the text may have several lines.
    Kept,
    /// They are written as `\u{a}`: the text is one cell or line of something larger.
    Escaped,
}

/// Control characters (of both sets), and marks that change the direction of writing or break lines.
fn is_unshowable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

checked!(
    /// The name of an agent or a user: a label of the domain name system, so that it fits into a certificate.
    Name(String),
    |text| {
        let is_end = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = text.as_bytes();
        let is_name = (1..=63).contains(&bytes.len())
            && bytes.iter().all(|b| is_end(*b) || *b == b'-')
            && bytes.first().copied().is_some_and(is_end)
            && bytes.last().copied().is_some_and(is_end);
        match is_name {
            true => Ok(()),
            false => Err(ValueError::Name { text: text.chars().take(80).collect() }),
        }
    }
);

impl Name {
    /// The name, which can be part of a host name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The most bytes of output one message carries.
pub const MOST_LOG_BYTES: usize = 64 * 1024;

checked!(
    /// A piece of a job's output, as it was written: at most 64 KiB.
    LogBytes(Vec<u8>),
    |bytes| {
        let n_bytes = bytes.len();
        match n_bytes <= MOST_LOG_BYTES {
            true => Ok(()),
            false => Err(ValueError::Bytes { n_bytes, most: MOST_LOG_BYTES }),
        }
    }
);

/// The most bytes of a checkpoint one message carries.
pub const MOST_PIECE_BYTES: usize = 512 * 1024;

checked!(
    /// A piece of a checkpoint on its way to another node: at most 512 KiB.
    Piece(Vec<u8>),
    |bytes| {
        let n_bytes = bytes.len();
        match n_bytes <= MOST_PIECE_BYTES {
            true => Ok(()),
            false => Err(ValueError::Bytes { n_bytes, most: MOST_PIECE_BYTES }),
        }
    }
);

impl Eq for Piece {}

impl Piece {
    /// The bytes, which fit into a frame.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl LogBytes {
    /// The bytes, which fit into a frame.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

checked!(
    /// A count of iterations, possibly of parts of one: finite, not negative, at most 10^15.
    Iterations(f64),
    |count| in_range("iterations", *count, 0.0, 1e15)
);

impl Copy for Iterations {}

impl Iterations {
    /// No work done.
    pub const NONE: Iterations = Iterations(0.0);

    /// As a number that can be computed with.
    pub fn count(self) -> f64 {
        self.0
    }
}

checked!(
    /// Something per second, such as iterations: finite, not negative, at most 10^9.
    Rate(f64),
    |rate| in_range("per second", *rate, 0.0, 1e9)
);

impl Copy for Rate {}

impl Rate {
    /// How much per second.
    pub fn per_s(self) -> f64 {
        self.0
    }
}

checked!(
    /// How many seconds of the jobs' time pass in one real second: from a thousandth to a million.
    TimeScale(f64),
    |scale| in_range("times real time", *scale, 1e-3, 1e6)
);

impl Copy for TimeScale {}

impl TimeScale {
    /// Real time.
    pub const REAL: TimeScale = TimeScale(1.0);

    /// Seconds of the jobs' time in one real second.
    pub fn factor(self) -> f64 {
        self.0
    }
}

checked!(
    /// The share of a GPU in thousandths: 1 to 1000.
    GpuShare(u16),
    |share| in_range("thousandths of a GPU", f64::from(*share), 1.0, f64::from(WHOLE_GPU))
);

impl Copy for GpuShare {}
impl Eq for GpuShare {}

impl GpuShare {
    /// A whole GPU.
    pub const WHOLE: GpuShare = GpuShare(WHOLE_GPU);

    /// From 1 to 1000.
    pub fn thousandths(self) -> u16 {
        self.0
    }
}

checked!(
    /// GPUs of one node by their local numbers: at least one.
    Gpus(GpuSet),
    |set| if set.is_empty() { Err(ValueError::NoGpu) } else { Ok(()) }
);

impl Copy for Gpus {}
impl Eq for Gpus {}

impl Gpus {
    /// As a set, which is not empty.
    pub fn set(self) -> GpuSet {
        self.0
    }
}

checked!(
    /// CPUs, memory and storage rate that a server can have: at most 100,000 CPUs, 2^50 bytes, 2^50 bytes per second.
    HostAmount(Host),
    |host| {
        let most = (1_u64 << 50) as f64;
        in_range("CPUs", host.cpus(), 0.0, 100_000.0)?;
        in_range("bytes of memory", host.mem_bytes as f64, 0.0, most)?;
        in_range("bytes per second of storage", host.storage_bps as f64, 0.0, most)
    }
);

impl Copy for HostAmount {}
impl Eq for HostAmount {}

impl HostAmount {
    /// As amounts that can be computed with.
    pub fn host(self) -> Host {
        self.0
    }
}

checked!(
    /// A length of time from zero to a hundred years.
    Wait(Span),
    |span| in_range("microseconds", span.0 as f64, 0.0, 3.2e15)
);

impl Copy for Wait {}
impl Eq for Wait {}

impl Wait {
    /// No time at all.
    pub const NONE: Wait = Wait(Span::ZERO);

    /// The nearest length of time that is allowed.
    pub fn cut(span: Span) -> Self {
        Wait(Span(span.0.clamp(0, 3_200_000_000_000_000)))
    }

    /// The length of time.
    pub fn span(self) -> Span {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels_of_the_domain_name_system() {
        for good in ["a", "node0", "gpu-server-17", &"x".repeat(63)] {
            assert!(Name::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "Node", "a.b", "a b", "ä", "../a", &"x".repeat(64)] {
            assert!(Name::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_shown() {
        for bad in ["a\u{1b}[2J", "a\u{9b}2J", "a\u{7f}", "a\rb", "a\u{202e}b", "a\nb", "a\u{7}"] {
            assert!(!is_plain(bad), "{bad:?}");
            assert!(is_plain(&shown(bad, Lines::Escaped)), "{bad:?}");
        }
        assert_eq!(shown("a\u{1b}[2J\tb\nc", Lines::Kept), "a\\u{1b}[2J\tb\nc");
        assert_eq!(shown("größe 模型", Lines::Escaped), "größe 模型");
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        for bad in [f64::NAN, f64::INFINITY, -0.5, 1e16] {
            assert!(Iterations::new(bad).is_err(), "{bad}");
            assert!(Rate::new(bad).is_err(), "{bad}");
            assert!(TimeScale::new(bad).is_err(), "{bad}");
        }
        assert!(GpuShare::new(0_u16).is_err() && GpuShare::new(1001_u16).is_err());
        assert!(HostAmount::new(Host { cpu_micro: u64::MAX, ..Host::NONE }).is_err());
        assert!(Wait::new(Span(-1)).is_err() && Wait::new(Span::MAX).is_err());
        assert!(Gpus::new(GpuSet::NONE).is_err());
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let long = "ä".repeat(4096);
        assert_eq!(Text::cut(&long).as_str().len(), 4096);
        assert_eq!(Text::cut("a\0b").as_str(), "ab");
        assert!(Text::new(long).is_err());
        assert!(Text::new("a\0b").is_err());
    }

    #[test]
    fn what_is_out_of_range_does_not_decode() {
        let bytes = postcard::to_stdvec(&f64::NAN).expect("encodes");
        assert!(postcard::from_bytes::<Iterations>(&bytes).is_err());
        let bytes = postcard::to_stdvec("UPPER").expect("encodes");
        assert!(postcard::from_bytes::<Name>(&bytes).is_err());
    }
}
