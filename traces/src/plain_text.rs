//! Text as readers want it while it streams by: without a byte-order mark, with `\n` at the end of every line, and with an end to how
//! much one row may be.

use std::cell::Cell;
use std::io::{Read, Result};
use std::rc::Rc;

/// A row may have so many bytes; beyond it, most often a quote is left open.
pub(crate) const MOST_ROW_BYTES: u64 = 16 << 20;

/// Bytes handed out since the last row ended, shared with whoever knows where rows end.
pub(crate) type RowBytes = Rc<Cell<u64>>;

/// The same text with plain line ends.
pub(crate) struct PlainText<R> {
    inner: R,
    position: Position,
    /// What the text begins with, where that is no mark.
    first: Vec<u8>,
    /// Whether the last byte was a `\r`, for which a `\n` was handed out.
    after_return: bool,
    row_bytes: RowBytes,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Begin,
    LineBegin,
    InLine,
    End,
}

const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

impl<R: Read> PlainText<R> {
    pub(crate) fn new(inner: R, row_bytes: RowBytes) -> Self {
        PlainText { inner, position: Position::Begin, first: Vec::new(), after_return: false, row_bytes }
    }

    /// The next bytes as they are, without the mark at the beginning.
    fn next(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.position == Position::Begin {
            self.position = Position::LineBegin;
            let mut first = Vec::with_capacity(MARK.len());
            self.inner.by_ref().take(MARK.len() as u64).read_to_end(&mut first)?;
            if first != MARK {
                self.first = first;
            }
        }
        if self.first.is_empty() {
            return self.inner.read(buffer);
        }
        let n = self.first.len().min(buffer.len());
        buffer[..n].copy_from_slice(&self.first[..n]);
        self.first.drain(..n);
        Ok(n)
    }

    /// Turns `\r\n` and `\r` into `\n` in place; answers with how many bytes are left.
    fn plain_line_ends(&mut self, bytes: &mut [u8]) -> usize {
        if !self.after_return && memchr::memchr(b'\r', bytes).is_none() {
            return bytes.len();
        }
        let mut to = 0;
        for from in 0..bytes.len() {
            let byte = bytes[from];
            let is_second_of_two = byte == b'\n' && self.after_return;
            self.after_return = byte == b'\r';
            if !is_second_of_two {
                bytes[to] = if byte == b'\r' { b'\n' } else { byte };
                to += 1;
            }
        }
        to
    }
}

impl<R: Read> Read for PlainText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if buffer.is_empty() || self.position == Position::End {
            return Ok(0);
        }
        loop {
            let n = self.next(buffer)?;
            if n == 0 {
                // A last line without an end is a line all the same.
                let needs_end = self.position == Position::InLine;
                self.position = Position::End;
                buffer[0] = b'\n';
                return Ok(usize::from(needs_end));
            }
            let n = self.plain_line_ends(&mut buffer[..n]);
            if n == 0 {
                continue;
            }
            self.position = if buffer[n - 1] == b'\n' { Position::LineBegin } else { Position::InLine };
            self.row_bytes.set(self.row_bytes.get() + n as u64);
            if self.row_bytes.get() > MOST_ROW_BYTES {
                return Err(std::io::Error::other("a row of more than 16 MB: is a quote left open?"));
            }
            return Ok(n);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hands out a few bytes at a time.
    struct Dribble<'t>(&'t [u8], usize);

    impl Read for Dribble<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            let n = self.1.min(buffer.len()).min(self.0.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn plain(text: &[u8], at_once: usize) -> String {
        let mut reader = PlainText::new(Dribble(text, at_once), RowBytes::default());
        let (mut all, mut buffer) = (Vec::new(), vec![0; at_once]);
        loop {
            match reader.read(&mut buffer).expect("memory") {
                0 => return String::from_utf8(all).expect("text"),
                n => all.extend_from_slice(&buffer[..n]),
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_the_text_with_its_line_ends_replaced(text in "[ab\r\n]{0,30}", has_mark in any::<bool>(), at_once in 1..9usize) {
            let mut expected = text.replace("\r\n", "\n").replace('\r', "\n");
            if !expected.is_empty() && !expected.ends_with('\n') {
                expected.push('\n');
            }
            let marked = format!("{}{text}", if has_mark { "\u{feff}" } else { "" });
            prop_assert_eq!(plain(marked.as_bytes(), at_once), expected);
        }
    }

    #[test]
    fn a_row_without_an_end_is_refused() {
        let mut reader = PlainText::new(std::io::repeat(b'x'), RowBytes::default());
        let error = std::io::copy(&mut reader, &mut std::io::sink()).expect_err("no end");
        assert!(error.to_string().contains("is a quote left open?"), "{error}");
    }
}
