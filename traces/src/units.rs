//! Amounts as people write them, in files and on command lines: `500GB`, `62.5MB/s`, `1.5h`. Deserialised straight from
//! TOML: a mistake is reported with its line in the file.

use std::fmt;
use std::str::FromStr;

use rota_core::time::Span;
use serde::de::{Deserialize, Deserializer, Error, Unexpected};

/// An amount of data: `500GB`, `1TiB`; a bare number counts bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub u64);

/// A rate of data: `500MB/s`, `10Gbit/s`; a bare number counts bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BytesPerSecond(pub u64);

/// A length of time: `90s`, `5m`, `1.5h`, `2d`; a bare number counts seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length(pub Span);

/// A text on a command line that is not the amount an option takes. The program that shows it names option and text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}")]
pub struct AmountError {
    expected: &'static str,
}

const BYTES: &str = "an amount of data such as \"500GB\"";
const RATE: &str = "a rate such as \"500MB/s\"";
const LENGTH: &str = "a length of time such as \"5m\"";

impl Bytes {
    /// Reads an amount; `None` when the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split_number(text)?;
        scaled(number, bytes_in(unit)?).map(Bytes)
    }
}

impl FromStr for Bytes {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        Bytes::parse(text).ok_or(AmountError { expected: BYTES })
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
        let bytes = self.0 as f64;
        match units.iter().find(|(_, size)| bytes >= *size) {
            Some((unit, size)) => {
                let number = format!("{:.2}", bytes / size);
                write!(f, "{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
            }
            None => write!(f, "{} B", self.0),
        }
    }
}

/// On a command line `/s` may be left out; in a file it is part of the value.
impl FromStr for BytesPerSecond {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let per_second = || Bytes::parse(text).map(|amount| BytesPerSecond(amount.0));
        BytesPerSecond::parse(text).or_else(per_second).ok_or(AmountError { expected: RATE })
    }
}

impl BytesPerSecond {
    /// Reads a rate; `None` when the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split_number(text)?;
        if unit.is_empty() {
            return scaled(number, 1.0).map(BytesPerSecond);
        }
        let amount = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps"))?.trim_end();
        let factor = match amount
            .strip_suffix("bit")
            .or_else(|| amount.strip_suffix('b').filter(|_| unit.ends_with("ps")))
        {
            Some(prefix) => bytes_in(&format!("{prefix}B"))? / 8.0,
            None => bytes_in(amount)?,
        };
        scaled(number, factor).map(BytesPerSecond)
    }
}

fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.replace('_', "").parse().ok()?, unit.trim()))
}

fn bytes_in(unit: &str) -> Option<f64> {
    Some(match unit {
        "" | "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "PB" => 1e15,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "TiB" => 1_099_511_627_776.0,
        _ => return None,
    })
}

/// A petabyte for one node or one data set: past this no amount is real.
const MOST: f64 = 1e15;

fn scaled(number: f64, factor: f64) -> Option<u64> {
    let value = number * factor;
    (0.0..=MOST).contains(&value).then(|| value.round() as u64)
}

fn from_text_or_number<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    let text = match toml::Value::deserialize(deserializer)? {
        toml::Value::String(text) => text,
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        other => return Err(D::Error::invalid_type(Unexpected::Other(other.type_str()), &expected)),
    };
    parse(&text).ok_or_else(|| D::Error::custom(format!("expected {expected}")))
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text_or_number(deserializer, BYTES, Bytes::parse)
    }
}

impl<'de> Deserialize<'de> for BytesPerSecond {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text_or_number(deserializer, RATE, BytesPerSecond::parse)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text_or_number(deserializer, LENGTH, |text| Span::parse(text).ok().map(Length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_with_their_units() {
        for (text, bytes) in [
            ("500GB", 500_000_000_000),
            ("1.5 kB", 1_500),
            ("2GiB", 2 << 30),
            ("7", 7),
            ("1_000MB", 1_000_000_000),
        ] {
            assert_eq!(Bytes::parse(text), Some(Bytes(bytes)), "{text}");
        }
        for text in ["", "GB", "-1GB", "5 parsecs", "1e400GB", "nan", "9999999999TB", "1.2.3B"] {
            assert_eq!(Bytes::parse(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_are_written_for_people() {
        assert_eq!(Bytes(80_000_000_000).to_string(), "80 GB");
        assert_eq!(Bytes(1_500).to_string(), "1.5 kB");
        assert_eq!(Bytes(12).to_string(), "12 B");
    }

    #[test]
    fn rates_are_read_in_bytes_and_bits() {
        for (text, rate) in [
            ("62.5MB/s", 62_500_000),
            ("500 MB/s", 500_000_000),
            ("10Gbit/s", 1_250_000_000),
            ("10Gbps", 1_250_000_000),
            ("8", 8),
        ] {
            assert_eq!(BytesPerSecond::parse(text), Some(BytesPerSecond(rate)), "{text}");
        }
        assert_eq!("500MB".parse(), Ok(BytesPerSecond(500_000_000)));
        let error = "5 parsecs".parse::<BytesPerSecond>().expect_err("no rate").to_string();
        assert_eq!(error, "expected a rate such as \"500MB/s\"");
        let error = "500MB/s".parse::<Bytes>().expect_err("a rate is no amount").to_string();
        assert_eq!(error, "expected an amount of data such as \"500GB\"");
        for text in ["500MB", "5/s/s", "MB/s", "-1MB/s"] {
            assert_eq!(BytesPerSecond::parse(text), None, "{text}");
        }
    }
}
