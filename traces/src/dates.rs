//! Wall-clock dates of logs, as seconds since 1970 in whatever zone the log was kept. No time zones: a trace starts
//! at 0 with its first submission, so only differences matter.

/// Seconds of `YYYY-MM-DD HH:MM:SS` (or with a `T` between); `None` when it is no such date.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let separators = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if bytes.len() != 19
        || !separators.iter().all(|(at, c)| bytes[*at] == *c)
        || !matches!(bytes[10], b' ' | b'T')
    {
        return None;
    }
    let number = |from: usize, to: usize| {
        bytes[from..to].iter().try_fold(0i64, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_real = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    (is_real && hour < 24 && minute < 60 && second < 61)
        .then(|| days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Counts from March, so that the leap day comes last and months follow a straight line of 153 days in five.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let days_before_month = (153 * ((month + 9) % 12) + 2) / 5;
    let days_before_year = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    days_before_year + days_before_month + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn dates_count_from_1970() {
        assert_eq!(parse("1970-01-01 00:00:00"), Some(0));
        assert_eq!(parse("2000-03-01 00:00:00"), Some(951_868_800));
        assert_eq!(parse("2017-10-09T07:01:55"), Some(1_507_532_515));
        assert_eq!(parse("2016-02-29 23:59:59"), Some(1_456_790_399));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "2017-10-09",
            "2017-02-29 00:00:00",
            "2017-13-01 00:00:00",
            "2017-1a-01 00:00:00",
            "2017-01-01 25:00:00",
            "日本日本日本a",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
