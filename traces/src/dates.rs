//! Wall-clock dates of logs, as seconds since 1970. A date without a time zone counts in whatever zone the log was kept: a trace
//! starts at 0 with its first submission, so only differences matter.

use time::{Date, Month, PrimitiveDateTime, Time};

/// Seconds of `YYYY-MM-DD HH:MM:SS` (or with a `T` between, without seconds, and perhaps with `Z` or `+08:00` behind it); `None` when it
/// is not such a date. A leap second, which the time crate does not know, counts as the second after `:59`.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let (date, time) = text.split_at_checked(10)?;
    let (time, offset_s) = zone(time.strip_prefix([' ', 'T'])?)?;
    let [year, month, day] = numbers(date, b'-', [4, 2, 2])?;
    let with_seconds;
    let time = match time.len() {
        5 => {
            with_seconds = format!("{time}:00");
            with_seconds.as_str()
        }
        _ => time,
    };
    let [hour, minute, second] = numbers(time, b':', [2, 2, 2])?;
    let leap_s = i64::from(second == 60);
    let month = Month::try_from(month as u8).ok()?;
    let date = Date::from_calendar_date(i32::from(year), month, day as u8).ok()?;
    let time = Time::from_hms(hour as u8, minute as u8, second as u8 - leap_s as u8).ok()?;
    Some(PrimitiveDateTime::new(date, time).assume_utc().unix_timestamp() + leap_s - offset_s)
}

/// Three numbers of so many digits with a sign between them. By hand, because a log has a million of these, and only numbers are wanted
/// of them.
fn numbers(text: &str, between: u8, digits: [usize; 3]) -> Option<[u16; 3]> {
    let mut rest = text.as_bytes();
    let mut numbers = [0; 3];
    for (at, (number, n_digits)) in numbers.iter_mut().zip(digits).enumerate() {
        if at > 0 {
            rest = rest.strip_prefix(&[between])?;
        }
        let (own, behind) = rest.split_at_checked(n_digits)?;
        for digit in own {
            *number = *number * 10 + u16::from(digit.is_ascii_digit().then(|| digit - b'0')?);
        }
        rest = behind;
    }
    rest.is_empty().then_some(numbers)
}

/// A time of day, and how many seconds its zone is ahead of UTC.
fn zone(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some((time, 0));
    }
    let Some(at) = time.find(['+', '-']) else { return Some((time, 0)) };
    let (time, zone) = time.split_at(at);
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let (hours, minutes) = (hours.parse::<i64>().ok()?, minutes.parse::<i64>().ok()?);
    let ahead_s = (0..24).contains(&hours).then_some(hours * 3_600 + minutes * 60)?;
    Some((time, if zone.starts_with('-') { -ahead_s } else { ahead_s }))
        .filter(|_| (0..60).contains(&minutes))
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
        assert_eq!(parse("2016-12-31 23:59:60"), Some(1_483_228_800));
        assert_eq!(parse("1970-01-01 08:00:01+08:00"), Some(1));
        assert_eq!(parse("1970-01-01T00:00:01Z"), Some(1));
        assert_eq!(parse("1970-01-01 00:02"), Some(120));
        assert_eq!(parse("1969-12-31 19:30:00-04:30"), Some(0));
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
            "2017-01-01 00:60",
            "2017-01-01 00:00:61",
            "2017-01-01 00:00:00+8",
            "2017-01-01 00:00:00+99:00",
            "日本日本日本a",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
