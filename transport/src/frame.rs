//! Messages on a stream: a length of four bytes, little-endian, then that many bytes of postcard.
//!
//! A length over the limit is refused before memory is set aside for it, and a message with bytes left over is refused.
//! Reading from a socket is not done here: `Reader` is given the bytes that arrived.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest frame before a peer has said who it is.
pub const MOST_BYTES_BEFORE_HELLO: usize = 64 * 1024;
/// The longest frame after that.
pub const MOST_BYTES: usize = 1024 * 1024;

const LENGTH_BYTES: usize = 4;

/// A frame that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Longer than allowed.
    #[error("a frame of {n_bytes} bytes: at most {most} are allowed here")]
    TooLong {
        /// Length that its header announces.
        n_bytes: usize,
        /// The longest allowed.
        most: usize,
    },
    /// Not a message of the expected type, or a value in it is out of range.
    #[error("a frame of {n_bytes} bytes is not a {kind}: {why}")]
    Malformed {
        /// What was expected.
        kind: &'static str,
        /// Length of the frame without its header.
        n_bytes: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A message with bytes left over.
    #[error("a frame with a {kind} has {n_bytes} bytes too many")]
    TrailingBytes {
        /// What was expected.
        kind: &'static str,
        /// Bytes left over.
        n_bytes: usize,
    },
    /// The stream ended within a frame.
    #[error("the stream ended within a frame: {n_bytes} bytes of it had arrived")]
    Torn {
        /// Bytes that had arrived.
        n_bytes: usize,
    },
}

/// A message with its length in front.
pub fn encode<M: Serialize>(message: &M) -> Result<Vec<u8>, FrameError> {
    let body = postcard::to_extend(message, vec![0; LENGTH_BYTES]);
    let mut frame = body.map_err(|error| malformed::<M>(0, &error))?;
    let n_bytes = frame.len().saturating_sub(LENGTH_BYTES);
    if n_bytes > MOST_BYTES {
        return Err(FrameError::TooLong { n_bytes, most: MOST_BYTES });
    }
    for (target, byte) in frame.iter_mut().zip((n_bytes as u32).to_le_bytes()) {
        *target = byte;
    }
    Ok(frame)
}

/// Decodes the body of a frame; all of its bytes must be used.
pub fn decode<M: DeserializeOwned>(body: &[u8]) -> Result<M, FrameError> {
    match postcard::take_from_bytes::<M>(body) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(FrameError::TrailingBytes { kind: kind::<M>(), n_bytes: rest.len() }),
        Err(error) => Err(malformed::<M>(body.len(), &error)),
    }
}

fn malformed<M>(n_bytes: usize, error: &postcard::Error) -> FrameError {
    FrameError::Malformed { kind: kind::<M>(), n_bytes, why: error.to_string() }
}

/// The last part of a type's name.
fn kind<M>() -> &'static str {
    std::any::type_name::<M>().rsplit("::").next().unwrap_or_default()
}

/// Splits the bytes that arrive into frames.
#[derive(Debug)]
pub struct Reader {
    /// Bytes that have arrived and were not taken out.
    arrived: Vec<u8>,
    most_bytes: usize,
}

impl Reader {
    /// A reader of a stream whose peer has not said who it is.
    pub fn new() -> Self {
        Reader { arrived: Vec::new(), most_bytes: MOST_BYTES_BEFORE_HELLO }
    }

    /// The peer is known: longer frames are accepted from now on.
    pub fn trust(&mut self) {
        self.most_bytes = MOST_BYTES;
    }

    /// Adds bytes. The caller takes frames out after each call, so that at most one frame and one read are buffered here.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.arrived.extend_from_slice(bytes);
    }

    /// The next message, if all of it has arrived.
    pub fn take<M: DeserializeOwned>(&mut self) -> Result<Option<M>, FrameError> {
        let Some((length, rest)) = self.arrived.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let n_bytes = u32::from_le_bytes(*length) as usize;
        if n_bytes > self.most_bytes {
            return Err(FrameError::TooLong { n_bytes, most: self.most_bytes });
        }
        let Some(body) = rest.get(..n_bytes) else { return Ok(None) };
        let message = decode(body)?;
        self.arrived.drain(..LENGTH_BYTES + n_bytes);
        Ok(Some(message))
    }

    /// The stream has ended: nothing may be left over.
    pub fn finish(&self) -> Result<(), FrameError> {
        match self.arrived.len() {
            0 => Ok(()),
            n_bytes => Err(FrameError::Torn { n_bytes }),
        }
    }
}

impl Default for Reader {
    fn default() -> Self {
        Reader::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let stream: Vec<u8> = [7_u32, 0, 70_000].iter().flat_map(|n| encode(n).expect("encodes")).collect();
        for piece in 1..=stream.len() {
            let mut reader = Reader::new();
            let mut numbers = Vec::new();
            for bytes in stream.chunks(piece) {
                reader.feed(bytes);
                while let Some(number) = reader.take::<u32>().expect("good frames") {
                    numbers.push(number);
                }
            }
            assert_eq!(numbers, [7, 0, 70_000], "pieces of {piece}");
            assert_eq!(reader.finish(), Ok(()));
        }
    }

    #[test]
    fn huge_lengths_are_refused_before_the_bytes_arrive() {
        let mut reader = Reader::new();
        reader.feed(&u32::MAX.to_le_bytes());
        assert!(matches!(reader.take::<u32>(), Err(FrameError::TooLong { n_bytes: 0xffff_ffff, .. })));
    }

    #[test]
    fn strangers_get_a_smaller_cap_than_peers() {
        let length = (MOST_BYTES_BEFORE_HELLO as u32 + 1).to_le_bytes();
        let mut reader = Reader::new();
        reader.feed(&length);
        assert!(reader.take::<u32>().is_err());
        let mut reader = Reader::new();
        reader.trust();
        reader.feed(&length);
        assert_eq!(reader.take::<u32>(), Ok(None));
    }

    #[test]
    fn bytes_behind_a_message_are_refused() {
        assert_eq!(decode::<u8>(&[1, 2]), Err(FrameError::TrailingBytes { kind: "u8", n_bytes: 1 }));
    }

    #[test]
    fn a_stream_that_ends_within_a_frame_is_torn() {
        let mut reader = Reader::new();
        reader.feed(&[1, 0]);
        assert_eq!(reader.finish(), Err(FrameError::Torn { n_bytes: 2 }));
    }
}
