//! Levels of a sweep as people write them, and the ones taken when they write none.

use rota_traces::units::Bytes;

/// CPU levels that are tried: dense where curves bend.
const CPUS: [u64; 18] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192];

/// Levels up to the most, in millionths; the most is always one of them.
pub(super) fn cpus_up_to(most_micro: u64) -> Vec<u64> {
    let whole = CPUS.iter().map(|cpus| cpus * 1_000_000).filter(|cpus| *cpus < most_micro);
    whole.chain([most_micro]).collect()
}

/// Tenths of the data set: what part of it may be kept in memory.
pub(super) fn tenths(dataset_bytes: u64) -> Vec<u64> {
    (1..=10).map(|tenth| (dataset_bytes / 10).max(1) * tenth).collect()
}

/// Reads CPUs, as in `2` or `0.5`, into millionths.
pub(super) fn parse_cpus(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}`: write a number of CPUs such as 4 or 0.5");
    let cpus: f64 = text.parse().map_err(|_| wrong())?;
    if (0.001..=100_000.0).contains(&cpus) { Ok((cpus * 1e6).round() as u64) } else { Err(wrong()) }
}

/// Reads an amount of memory, as in `62.5GB`.
pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    let bytes = Bytes::parse(text).filter(|bytes| bytes.0 > 0);
    bytes.map(|bytes| bytes.0).ok_or_else(|| format!("`{text}`: write an amount such as 62.5GB"))
}

/// Reads a rate, as in `500MB/s`.
pub(super) fn parse_rate(text: &str) -> Result<u64, String> {
    let rate = rota_traces::units::BytesPerSecond::parse(text).filter(|rate| rate.0 > 0);
    rate.map(|rate| rate.0).ok_or_else(|| format!("`{text}`: write a rate such as 500MB/s"))
}

/// Reads a part, as in `0.05` or `5%`.
pub(super) fn parse_part(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    match number.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number / scale < 1.0 => Ok(number / scale),
        _ => Err(format!("`{text}`: write a part such as 5% or 0.05")),
    }
}
