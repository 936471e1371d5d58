//! Averages and percentiles of lengths of time.

use rota_core::time::Span;

/// The `q`-quantile of ascending values, linear between neighbours at index `q * (n - 1)`; `None` of nothing.
pub fn quantile(ascending: &[Span], q: f64) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let below = at.floor() as usize;
    let (low, high) = (ascending[below].as_secs_f64(), ascending[(below + 1).min(last)].as_secs_f64());
    Some(low + (high - low) * (at - below as f64))
}

/// The average in seconds; summed as integers, so the order of jobs cannot change a digit.
pub(super) fn mean(values: &[Span]) -> Option<f64> {
    let sum: i128 = values.iter().map(|v| i128::from(v.0)).sum();
    (!values.is_empty()).then(|| sum as f64 / values.len() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(seconds: &[i64]) -> Vec<Span> {
        seconds.iter().map(|s| Span::from_secs(*s)).collect()
    }

    #[test]
    fn quantiles_are_linear_between_neighbours() {
        let values = spans(&[10, 20, 30, 40]);
        assert_eq!(quantile(&values, 0.0), Some(10.0));
        assert_eq!(quantile(&values, 0.5), Some(25.0));
        assert_eq!(quantile(&values, 0.95), Some(38.5));
        assert_eq!(quantile(&values, 1.0), Some(40.0));
        assert_eq!(quantile(&spans(&[7]), 0.99), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn the_mean_of_nothing_is_missing() {
        assert_eq!(mean(&spans(&[1, 2, 6])), Some(3.0));
        assert_eq!(mean(&[]), None);
    }
}
