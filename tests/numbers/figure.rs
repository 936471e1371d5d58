//! A figure as it stands in a text: how it is written, and how another value would be written in its place.

/// The typographic minus that documents use besides the plain one.
const MINUS: char = '−';

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    decimals: usize,
    has_commas: bool,
    has_leading_zero: bool,
    /// Whether a plus is written too: the pattern says so, a figure alone cannot.
    is_signed: bool,
}

/// The figure at the beginning of a text, as long as it is one: `−0.3`, `1,260`, `.749`.
pub(crate) fn prefix(text: &str) -> Option<&str> {
    let unsigned = text.strip_prefix(['+', '-', MINUS]).unwrap_or(text);
    let (mut end, mut has_digit, mut has_point) = (0, false, false);
    for (at, letter) in unsigned.char_indices() {
        let next_is_digit = unsigned[at + 1..].starts_with(|next: char| next.is_ascii_digit());
        match letter {
            digit if digit.is_ascii_digit() => has_digit = true,
            ',' if has_digit && !has_point && next_is_digit => {}
            '.' if !has_point && next_is_digit => has_point = true,
            _ => break,
        }
        end = at + 1;
    }
    has_digit.then(|| &text[..text.len() - unsigned.len() + end])
}

impl Style {
    /// The style of a figure that is written already.
    pub(crate) fn of(written: &str, is_signed: bool) -> Self {
        let digits = written.trim_start_matches(['+', '-', MINUS]);
        let whole = digits.split('.').next().unwrap_or_default();
        Style {
            decimals: digits.split_once('.').map_or(0, |(_, decimals)| decimals.len()),
            has_commas: whole.contains(',') || whole.len() <= 3,
            has_leading_zero: !digits.starts_with('.'),
            is_signed,
        }
    }

    /// A value in this style.
    pub(crate) fn write(&self, value: f64) -> String {
        let decimals = self.decimals;
        let digits = format!("{:.decimals$}", value.abs());
        let is_zero = digits.chars().all(|digit| matches!(digit, '0' | '.'));
        let sign = match (value < 0.0 && !is_zero, self.is_signed) {
            (true, _) => MINUS.to_string(),
            (false, true) => "+".to_owned(),
            (false, false) => String::new(),
        };
        let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
        let whole = match (self.has_leading_zero, whole) {
            (false, "0") => String::new(),
            _ if self.has_commas => with_commas(whole),
            _ => whole.to_owned(),
        };
        format!("{sign}{whole}{rest}")
    }
}

fn with_commas(whole: &str) -> String {
    let mut text = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn a_value_is_written_as_the_figure_before_it() {
    for (written, value, expected) in [
        ("24.35", 23.904, "23.90"),
        ("775", 782.0, "782"),
        ("1,260", 22_118.4, "22,118"),
        ("999", 1_000.0, "1,000"),
        (".749", 0.8, ".800"),
        (".749", 1.0, "1.000"),
        ("0.5", 0.26, "0.3"),
        ("2.0", -0.04, "0.0"),
        ("2.0", -0.06, "−0.1"),
    ] {
        assert_eq!(Style::of(written, false).write(value), expected, "{written} {value}");
    }
    assert_eq!(Style::of("−0.3", true).write(7.44), "+7.4");
    assert_eq!(Style::of("+7.4", true).write(-0.31), "−0.3");
}

#[test]
fn a_figure_ends_where_its_digits_do() {
    for (text, expected) in [
        ("24.35 → 23", Some("24.35")),
        ("1,260, 649", Some("1,260")),
        ("649 and", Some("649")),
        (".749 →", Some(".749")),
        ("−0.3 %", Some("−0.3")),
        ("3.", Some("3")),
        ("h", None),
        ("−", None),
    ] {
        assert_eq!(prefix(text), expected, "{text}");
    }
}
