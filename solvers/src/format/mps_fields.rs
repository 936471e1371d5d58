//! The fields of one MPS line, with the column each begins in.

use std::borrow::Cow;

use crate::error::ReadError;

/// How fields are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// By blanks.
    Free,
    /// By position: columns 2-3, 5-12, 15-22, 25-36, 40-47, 50-61. Names may contain blanks (read as `_`).
    Fixed,
}

/// Begin and end of the fixed fields, in bytes from 0.
const FIXED: [(usize, usize); 6] = [(1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61)];

/// No line has more than six; what follows the seventh is not looked at.
const MOST_FIELDS: usize = 7;

/// One field and where it begins.
#[derive(Clone, Debug)]
pub(super) struct Field<'a> {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) text: Cow<'a, str>,
}

impl Field<'_> {
    /// An error at this field.
    pub(super) fn error(&self, expected: impl Into<String>) -> ReadError {
        ReadError::new(self.line, self.column, &self.text, expected)
    }

    /// A coefficient.
    pub(super) fn finite(&self) -> Result<f64, ReadError> {
        let value = self.bound()?;
        if value.is_finite() { Ok(value) } else { Err(self.error("a finite number")) }
    }

    /// A bound, which may be infinite.
    pub(super) fn bound(&self) -> Result<f64, ReadError> {
        match self.text.parse::<f64>() {
            Ok(value) if !value.is_nan() => Ok(value),
            _ => Err(self.error("a number")),
        }
    }
}

/// The fields of a data line, into a buffer that is used again for the next line.
pub(super) fn split<'a>(text: &'a str, line: usize, layout: Layout, fields: &mut Vec<Field<'a>>) {
    fields.clear();
    match layout {
        Layout::Free => {
            let mut rest = text;
            while let Some(begin) = rest.find(|c: char| !c.is_whitespace())
                && fields.len() < MOST_FIELDS
            {
                let word = &rest[begin..];
                let end = word.find(char::is_whitespace).unwrap_or(word.len());
                let offset = text.len() - word.len();
                let column = column_at(text, offset);
                fields.push(Field { line, column, text: Cow::Borrowed(&word[..end]) });
                rest = &word[end..];
            }
        }
        Layout::Fixed => {
            for (begin, end) in FIXED {
                let Some(part) = text.get(begin..end.min(text.len())) else { break };
                let trimmed = part.trim();
                if !trimmed.is_empty() {
                    let offset = begin + part.len() - part.trim_start().len();
                    let text = if trimmed.contains(char::is_whitespace) {
                        Cow::Owned(trimmed.split_whitespace().collect::<Vec<_>>().join("_"))
                    } else {
                        Cow::Borrowed(trimmed)
                    };
                    fields.push(Field { line, column: offset + 1, text });
                }
            }
        }
    }
}

/// The column, in characters from 1, of a byte offset.
fn column_at(text: &str, offset: usize) -> usize {
    if text.is_ascii() { offset + 1 } else { text[..offset].chars().count() + 1 }
}
