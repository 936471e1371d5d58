//! Wall-clock dates of logs, as seconds since 1970. A date without a time zone counts in whatever zone the log was kept: a trace
//! starts at 0 with its first submission, so only differences matter.

use std::sync::LazyLock;

use time::format_description::{BorrowedFormatItem, parse_borrowed};
use time::{Date, PrimitiveDateTime, Time};

type Pattern = Vec<BorrowedFormatItem<'static>>;

static DATE: LazyLock<Pattern> = LazyLock::new(|| pattern("[year]-[month]-[day]"));
static TIME: LazyLock<Pattern> = LazyLock::new(|| pattern("[hour]:[minute]:[second]"));

/// Seconds of `YYYY-MM-DD HH:MM:SS` (or with a `T` between, and perhaps `Z` or `+08:00` behind it); `None` when it is not such a
/// date. A leap second, which the time crate does not know, counts as the second after `:59`.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let (date, time) = text.split_at_checked(10)?;
    let date = Date::parse(date, &*DATE).ok()?;
    let time = time.strip_prefix([' ', 'T'])?;
    let (time, offset_s) = zone(time)?;
    let (time, leap_s) = match time.strip_suffix(":60") {
        Some(minute) => (Time::parse(&format!("{minute}:59"), &*TIME).ok()?, 1),
        None => (Time::parse(time, &*TIME).ok()?, 0),
    };
    Some(PrimitiveDateTime::new(date, time).assume_utc().unix_timestamp() + leap_s - offset_s)
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

fn pattern(text: &'static str) -> Pattern {
    parse_borrowed::<2>(text).expect("a pattern")
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
