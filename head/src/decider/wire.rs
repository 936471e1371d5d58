//! What the head and a child that decides say to each other: messages in postcard, each after its length.

use std::io::{self, Read, Write};
use std::time::Duration;

use rota_core::difference::Difference;
use rota_core::plan::Plan;
use rota_scripts::Source;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::forecast::{ForecastSettings, Seen};

/// The longest message. A child whose memory is damaged must not make the head allocate what a stray length says.
const MOST_BYTES: usize = 1 << 30;

/// From the head to a child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToChild {
    /// Compile a policy.
    Load { policy: String, set: Vec<(String, String)>, sources: Vec<SourceText>, alarm: Duration },
    /// Take this as the policy's memory.
    Remember { memory: String },
    /// Decide on a snapshot.
    Decide { snapshot: Box<Difference> },
    /// Look ahead from a snapshot, with this memory at the beginning, for no longer than this.
    LookAhead { snapshot: Box<Difference>, memory: String, settings: ForecastSettings, budget: Duration },
}

/// The text of a part of a policy.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SourceText {
    name: String,
    file: String,
    text: String,
}

/// From a child to the head.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromChild {
    /// Whether it did what it was asked: the answer to `Load` and `Remember`.
    Done(Result<(), PolicyFailure>),
    /// Where the script calls a solver; empty when the solver has answered. Not an answer.
    At(String),
    /// The policy's plan as it is, and its memory after the decision; and what it took.
    Decided(Result<(Plan, String), PolicyFailure>, Effort),
    /// What was seen ahead, run by run.
    Ahead(Result<Vec<Seen>, PolicyFailure>),
}

/// Why a child could not do with its policy what it was asked. A text, which people read: the error itself stays in the child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
#[serde(transparent)]
pub struct PolicyFailure(String);

impl PolicyFailure {
    pub(super) fn new(text: impl Into<String>) -> Self {
        PolicyFailure(text.into())
    }
}

/// What a decision took.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Effort {
    /// How long the policy took.
    pub(crate) took: Duration,
    /// Operations of its scripts, native work included.
    pub(crate) operations: u64,
    /// How often it called a solver.
    pub(crate) n_solves: u64,
    /// How long solvers took.
    pub(crate) solving: Duration,
}

impl From<&Source> for SourceText {
    fn from(source: &Source) -> Self {
        let Source { name, file, text } = source.clone();
        SourceText { name, file, text }
    }
}

impl From<SourceText> for Source {
    fn from(source: SourceText) -> Self {
        let SourceText { name, file, text } = source;
        Source { name, file, text }
    }
}

/// A message with its length.
pub(super) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let bytes = postcard::to_extend(message, vec![0; 4]).map_err(io::Error::other)?;
    let length = bytes.len() - 4;
    if length > MOST_BYTES {
        return Err(io::Error::other(format!("a message of {length} bytes: {MOST_BYTES} is the most")));
    }
    let mut bytes = bytes;
    bytes[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(bytes)
}

/// Writes a message.
pub(super) fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    to.write_all(&frame(message)?)?;
    to.flush()
}

/// Reads a message; none when the other end is closed.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > MOST_BYTES {
        return Err(io::Error::other(format!("a message of {length} bytes: {MOST_BYTES} is the most")));
    }
    // Grows as bytes arrive: a length alone reserves nothing.
    let mut bytes = Vec::new();
    if from.by_ref().take(length as u64).read_to_end(&mut bytes)? != length {
        return Ok(None);
    }
    postcard::from_bytes(&bytes).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_and_damaged_ones_are_errors() {
        let mut bytes = Vec::new();
        write(&mut bytes, &FromChild::At("mine.rhai:3".into())).expect("written");
        write(&mut bytes, &FromChild::Done(Err(PolicyFailure::new("no")))).expect("written");
        assert!(bytes.ends_with(&[5, 0, 0, 0, 0, 1, 2, b'n', b'o']), "a failure is a plain text: {bytes:?}");
        let mut from = bytes.as_slice();
        assert!(matches!(read(&mut from), Ok(Some(FromChild::At(at))) if at == "mine.rhai:3"));
        assert!(matches!(read(&mut from), Ok(Some(FromChild::Done(Err(_))))));
        assert!(matches!(read::<FromChild>(&mut from), Ok(None)));
        for cut in 1..bytes.len() {
            let _ = read::<FromChild>(&mut &bytes[..cut]);
        }
        assert!(read::<FromChild>(&mut [0xff; 64].as_slice()).is_err(), "a length beyond the limit");
        assert!(read::<FromChild>(&mut [4, 0, 0, 0, 9, 9, 9, 9].as_slice()).is_err(), "no such message");
    }
}
