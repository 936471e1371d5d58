//! Amounts of data as people write them, on the command line and in profile files: `500GB`, `62.5MB/s`.

use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};

/// A petabyte: past this no server's amount is real.
const MOST: f64 = 1e15;

/// An amount of data or a rate of it: `80GB`, `1TiB`, `500MB/s`; a bare number counts bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub u64);

/// An amount nobody can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no amount of data: write a number and a unit, as in `80GB`, `512MiB` or `500MB/s`")]
pub struct BytesError {
    text: String,
}

impl FromStr for Bytes {
    type Err = BytesError;

    fn from_str(text: &str) -> Result<Self, BytesError> {
        let wrong = || BytesError { text: text.to_owned() };
        let trimmed = text.trim();
        let end =
            trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let number: f64 = number.replace('_', "").parse().map_err(|_| wrong())?;
        let unit = unit.trim();
        let factor = match unit.strip_suffix("/s").unwrap_or(unit) {
            "" | "B" => 1.0,
            "kB" | "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "TB" => 1e12,
            "KiB" => 1024.0,
            "MiB" => 1_048_576.0,
            "GiB" => 1_073_741_824.0,
            "TiB" => 1_099_511_627_776.0,
            _ => return Err(wrong()),
        };
        let bytes = number * factor;
        if (0.0..=MOST).contains(&bytes) { Ok(Bytes(bytes.round() as u64)) } else { Err(wrong()) }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => text,
            other => other.to_string(),
        };
        text.parse().map_err(D::Error::custom)
    }
}

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_with_their_units() {
        for (text, bytes) in [
            ("80GB", 80_000_000_000),
            ("1.5 kB", 1_500),
            ("2GiB", 2 << 30),
            ("7", 7),
            ("500MB/s", 500_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "GB", "-1GB", "5 parsecs", "nan", "9999999TB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_are_written_for_people() {
        assert_eq!(Bytes(80_000_000_000).to_string(), "80 GB");
        assert_eq!(Bytes(1_500).to_string(), "1.5 kB");
        assert_eq!(Bytes(12).to_string(), "12 B");
    }
}
