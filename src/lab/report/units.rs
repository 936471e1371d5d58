//! Units and numbers as people read them.

/// A unit of time to show seconds in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeUnit {
    pub(crate) sign: &'static str,
    pub(crate) seconds: f64,
}

const SECOND: TimeUnit = TimeUnit { sign: "s", seconds: 1.0 };
const MINUTE: TimeUnit = TimeUnit { sign: "min", seconds: 60.0 };
const HOUR: TimeUnit = TimeUnit { sign: "h", seconds: 3_600.0 };
const DAY: TimeUnit = TimeUnit { sign: "d", seconds: 86_400.0 };

impl TimeUnit {
    /// The unit in which a table of times up to `longest_s` reads best; never days, which hide too much.
    pub(crate) fn for_table(longest_s: f64) -> Self {
        match longest_s {
            s if s >= 2.0 * HOUR.seconds => HOUR,
            s if s >= 10.0 * MINUTE.seconds => MINUTE,
            _ => SECOND,
        }
    }

    /// The unit of an axis that spans `span_s`.
    pub(super) fn for_axis(span_s: f64) -> Self {
        match span_s {
            s if s >= 10.0 * DAY.seconds => DAY,
            s if s >= 3.0 * HOUR.seconds => HOUR,
            s if s >= 5.0 * MINUTE.seconds => MINUTE,
            _ => SECOND,
        }
    }
}

/// A number with thousands apart and as many decimals as a reader can use: `12,345`, `123.4`, `12.34`.
pub(super) fn number(value: f64, largest: f64) -> String {
    match largest.abs() {
        m if m >= 1_000.0 => with_thousands(value.round()),
        m if m >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A whole number with thousands apart.
pub(crate) fn with_thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with at most six digits that matter and nothing that says nothing: `0.3`, not `0.30000000000000004`.
pub(crate) fn plain(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let decimals = (5.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// As a sentence begins.
pub(crate) fn begin_large(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_digits_a_reader_can_use() {
        assert_eq!(number(1.234, 5.0), "1.23");
        assert_eq!(number(123.456, 200.0), "123.5");
        assert_eq!(number(1_234_567.8, 2e6), "1,234,568");
        assert_eq!(with_thousands(-1000.0), "-1,000");
        assert_eq!(with_thousands(999.0), "999");
        assert_eq!([0.1 + 0.2, 100.0, 1e-7, 12_345.678].map(plain), ["0.3", "100", "0.0000001", "12345.7"]);
    }

    #[test]
    fn units_grow_with_what_they_measure() {
        let units: Vec<&str> = [1.0, 1e3, 1e5, 1e7].map(|s| TimeUnit::for_axis(s).sign).to_vec();
        assert_eq!(units, ["s", "min", "h", "d"]);
        assert_eq!(TimeUnit::for_table(1e7), HOUR);
    }
}
