//! Words of LP text, with their places.

use crate::error::ReadError;

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Word<'a> {
    Section(Section),
    Name(&'a str),
    Number(f64),
    Plus,
    Minus,
    AtMost,
    AtLeast,
    Equal,
    Colon,
    End,
}

/// The parts of LP text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Minimize,
    Maximize,
    Rows,
    Bounds,
    Integers,
    Binaries,
    End,
}

/// A word and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) word: Word<'a>,
    pub(super) text: &'a str,
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Token<'_> {
    /// An error at this word.
    pub(super) fn error(&self, expected: impl Into<String>) -> ReadError {
        ReadError::new(self.line, self.column, self.text, expected)
    }
}

/// Cuts text into words; the last is [`Word::End`].
pub(super) fn words(text: &str) -> Result<Vec<Token<'_>>, ReadError> {
    let mut tokens = Vec::new();
    let mut n_lines = 0;
    for (number, whole) in text.lines().enumerate() {
        n_lines = number + 1;
        let line = whole.split('\\').next().unwrap_or("");
        let mut cursor = Cursor { rest: line, line: number + 1, column: 1 };
        cursor.skip_blanks();
        if let Some((section, length)) = section_at(cursor.rest, tokens.is_empty()) {
            tokens.push(cursor.take(Word::Section(section), length));
        }
        while !cursor.rest.is_empty() {
            match word_at(cursor.rest) {
                Ok((word, length)) => tokens.push(cursor.take(word, length)),
                Err(expected) => {
                    let length = cursor.rest.chars().next().map_or(0, char::len_utf8);
                    return Err(cursor.take(Word::End, length).error(expected));
                }
            }
        }
    }
    tokens.push(Token { word: Word::End, text: "", line: n_lines + 1, column: 1 });
    Ok(tokens)
}

/// A position in a line; columns are counted once, however long the line.
struct Cursor<'a> {
    rest: &'a str,
    line: usize,
    column: usize,
}

impl<'a> Cursor<'a> {
    fn advance(&mut self, length: usize) {
        self.column += self.rest[..length].chars().count();
        self.rest = &self.rest[length..];
    }

    fn skip_blanks(&mut self) {
        self.advance(self.rest.len() - self.rest.trim_start().len());
    }

    fn take(&mut self, word: Word<'a>, length: usize) -> Token<'a> {
        let token = Token { word, text: &self.rest[..length], line: self.line, column: self.column };
        self.advance(length);
        self.skip_blanks();
        token
    }
}

/// A section header at the beginning of a line, and its length. The objective's is only looked for at the
/// beginning of the text, so that variables may be called `min`.
fn section_at(line: &str, is_first: bool) -> Option<(Section, usize)> {
    let first = line.split_whitespace().next()?;
    let mut length = first.len();
    let section = match &*first.to_ascii_lowercase() {
        "max" | "maximize" | "maximise" | "maximum" if is_first => Section::Maximize,
        "min" | "minimize" | "minimise" | "minimum" if is_first => Section::Minimize,
        "st" | "s.t." | "st." => Section::Rows,
        "subject" | "such" => {
            let rest = line[length..].trim_start();
            let second = rest.split_whitespace().next()?.to_ascii_lowercase();
            if second != "to" && second != "that" {
                return None;
            }
            length = line.len() - rest.len() + second.len();
            Section::Rows
        }
        "bounds" | "bound" => Section::Bounds,
        "general" | "generals" | "gen" | "integer" | "integers" | "int" => Section::Integers,
        "binary" | "binaries" | "bin" => Section::Binaries,
        "end" => Section::End,
        _ => return None,
    };
    (!line[length..].trim_start().starts_with(':')).then_some((section, length))
}

fn word_at(rest: &str) -> Result<(Word<'_>, usize), &'static str> {
    let bytes = rest.as_bytes();
    let is_equal_at = |at: usize| bytes.get(at) == Some(&b'=');
    Ok(match bytes[0] {
        b'+' => (Word::Plus, 1),
        b'-' => (Word::Minus, 1),
        b':' => (Word::Colon, 1),
        b'<' => (Word::AtMost, if is_equal_at(1) { 2 } else { 1 }),
        b'>' => (Word::AtLeast, if is_equal_at(1) { 2 } else { 1 }),
        b'=' => match bytes.get(1) {
            Some(b'<') => (Word::AtMost, 2),
            Some(b'>') => (Word::AtLeast, 2),
            Some(b'=') => (Word::Equal, 2),
            _ => (Word::Equal, 1),
        },
        b'0'..=b'9' | b'.' => {
            let length = number_length(bytes);
            let value = rest[..length].parse().map_err(|_| "a number")?;
            (Word::Number(value), length)
        }
        b'[' | b'^' => return Err("a linear term (quadratic terms are not supported)"),
        _ => {
            let length = rest.find(|c| !is_name_character(c)).unwrap_or(rest.len());
            if length == 0 {
                return Err("a number, a name or an operator");
            }
            match &*rest[..length].to_ascii_lowercase() {
                "inf" | "infinity" => (Word::Number(f64::INFINITY), length),
                _ => (Word::Name(&rest[..length]), length),
            }
        }
    })
}

/// Length of digits, point and exponent; an `e` without digits behind it begins a name.
fn number_length(bytes: &[u8]) -> usize {
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut length = digits(0);
    if bytes.get(length) == Some(&b'.') {
        length += 1 + digits(length + 1);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let n_digits = bytes.get(length + 1 + sign..).map_or(0, |_| digits(length + 1 + sign));
        if n_digits > 0 {
            length += 1 + sign + n_digits;
        }
    }
    length
}

/// Characters a name may consist of.
pub(super) fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || "!\"#$%&(),.;?@_'`{}~|/".contains(c)
}

/// Why a name cannot be written in LP text, if it cannot.
pub(super) fn why_not_a_name(name: &str) -> Option<&'static str> {
    const RESERVED: [&str; 23] = [
        "st", "s.t.", "st.", "subject", "such", "bounds", "bound", "general", "generals", "gen", "integer",
        "integers", "int", "binary", "binaries", "bin", "end", "inf", "infinity", "free", "max", "min",
        "obj",
    ];
    let mut characters = name.chars();
    let first = characters.next()?;
    let second = characters.next();
    if first.is_ascii_digit() || first == '.' {
        return Some("it begins like a number");
    }
    if matches!(first, 'e' | 'E') && second.is_some_and(|c| c.is_ascii_digit()) {
        return Some("it reads like an exponent");
    }
    if !name.chars().all(is_name_character) {
        return Some("it has characters that mean something else");
    }
    RESERVED.iter().any(|word| name.eq_ignore_ascii_case(word)).then_some("it is a word of the format")
}
