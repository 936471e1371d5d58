//! JSON objects as lines over a Unix socket that never blocks: a slow or faulty peer cannot hold up a shim.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest line a peer may send.
const MOST_LINE_BYTES: usize = 64 * 1024;
/// A peer that leaves this much unread is disconnected.
const MOST_UNSENT_BYTES: usize = 256 * 1024;

/// One connection that carries JSON lines in both directions and never blocks.
pub struct Lines {
    stream: UnixStream,
    arrived: Vec<u8>,
    unsent: VecDeque<u8>,
    is_open: bool,
}

/// Why a line is not a message.
#[derive(Debug, thiserror::Error)]
#[error("a line that is not a message: {why}")]
pub struct LineError {
    why: String,
}

impl Lines {
    /// Takes over a connection.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Lines { stream, arrived: Vec::new(), unsent: VecDeque::new(), is_open: true })
    }

    /// Whether the peer is there.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether something waits to be sent.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Takes in what has arrived, and returns the messages in it.
    pub fn receive<M: DeserializeOwned>(&mut self) -> Vec<Result<M, LineError>> {
        let mut buffer = [0; 4096];
        // Only this much at once, so that other peers get their turn.
        for _ in 0..16 {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    self.is_open = false;
                    break;
                }
                Ok(n_bytes) => self.arrived.extend(buffer.iter().take(n_bytes)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.is_open = false;
                    break;
                }
            }
        }
        self.take_lines()
    }

    fn take_lines<M: DeserializeOwned>(&mut self) -> Vec<Result<M, LineError>> {
        let mut messages = Vec::new();
        while let Some(end) = self.arrived.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.arrived.drain(..=end).collect();
            let text = line.trim_ascii();
            if !text.is_empty() {
                messages.push(serde_json::from_slice(text).map_err(|e| LineError { why: e.to_string() }));
            }
        }
        if self.arrived.len() > MOST_LINE_BYTES {
            self.is_open = false;
            let why = format!("more than {MOST_LINE_BYTES} bytes without an end of line");
            messages.push(Err(LineError { why }));
        }
        messages
    }

    /// Sends a message, now or when the peer reads.
    pub fn send<M: Serialize>(&mut self, message: &M) {
        if let Ok(mut line) = serde_json::to_vec(message) {
            line.push(b'\n');
            self.unsent.extend(line);
            self.flush();
        }
    }

    /// Sends what waits, as far as the peer takes it.
    pub fn flush(&mut self) {
        while self.is_open && !self.unsent.is_empty() {
            match self.stream.write(self.unsent.as_slices().0) {
                Ok(n_bytes) => drop(self.unsent.drain(..n_bytes)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.is_open = false,
            }
        }
        self.is_open &= self.unsent.len() <= MOST_UNSENT_BYTES;
    }
}

impl AsFd for Lines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Lines, UnixStream) {
        let (here, there) = UnixStream::pair().expect("a pair");
        (Lines::new(here).expect("lines"), there)
    }

    #[test]
    fn messages_are_put_together_from_pieces() {
        let (mut lines, mut peer) = pair();
        peer.write_all(b"1\n\n2").expect("written");
        let first: Vec<u32> = lines.receive().into_iter().flatten().collect();
        peer.write_all(b"3\n").expect("written");
        let second: Vec<u32> = lines.receive().into_iter().flatten().collect();
        assert_eq!((first, second), (vec![1], vec![23]));
    }

    #[test]
    fn rubbish_is_an_error_and_not_the_end() {
        let (mut lines, mut peer) = pair();
        peer.write_all(b"rubbish\n5\n\xff\xfe\n").expect("written");
        let got: Vec<_> = lines.receive::<u32>().into_iter().map(Result::ok).collect();
        assert_eq!(got, [None, Some(5), None]);
        assert!(lines.is_open());
    }

    #[test]
    fn a_line_without_end_closes_the_connection() {
        let (mut lines, mut peer) = pair();
        peer.set_nonblocking(true).expect("set");
        let mut was_closed = false;
        for _ in 0..100 {
            let _ = peer.write(&[b'x'; 4096]);
            lines.receive::<u32>();
            was_closed |= !lines.is_open();
        }
        assert!(was_closed);
    }

    #[test]
    fn a_peer_that_reads_nothing_is_given_up() {
        let (mut lines, peer) = pair();
        let text = "x".repeat(10_000);
        for _ in 0..200 {
            lines.send(&text);
        }
        assert!(!lines.is_open());
        drop(peer);
    }
}
