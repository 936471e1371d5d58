//! Fixed-point numbers as text, exact in both directions: files carry no rounding of ours.

/// `value` in units of 10^-`digits`, with as many decimals as it needs: `(1_500_000, 6)` is `1.5`.
pub(super) fn write(value: u64, digits: u32) -> String {
    let unit = 10_u64.pow(digits);
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let decimals = format!("{rest:0width$}", width = digits as usize);
    format!("{whole}.{}", decimals.trim_end_matches('0'))
}

/// The inverse of [`write()`], with an optional minus; `None` for anything else, also for too many decimals.
pub(super) fn parse(text: &str, digits: u32) -> Option<i64> {
    let (sign, unsigned) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, decimals) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > digits as usize {
        return None;
    }
    let missing = digits - decimals.len() as u32;
    let fraction = decimals.parse::<i64>().ok()?.checked_mul(10_i64.pow(missing))?;
    whole.parse::<i64>().ok()?.checked_mul(10_i64.pow(digits))?.checked_add(fraction)?.checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_way_through_text() {
        for (value, text) in [(0, "0"), (1, "0.000001"), (1_500_000, "1.5"), (300_000_000, "300")] {
            assert_eq!(write(value, 6), text);
            assert_eq!(parse(text, 6), Some(value as i64));
        }
        assert_eq!(parse("-0.5", 6), Some(-500_000));
    }

    #[test]
    fn what_is_no_plain_number_is_refused() {
        for text in ["", "-", "1.", ".5", "1e3", "0.0000001", "+1", "1,5", "99999999999999999999", "nan"] {
            assert_eq!(parse(text, 6), None, "{text}");
        }
    }
}
