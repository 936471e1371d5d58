//! Wall-clock dates of logs, as seconds since 1970 in whatever zone the log was kept. No time zones: a trace starts
//! at 0 with its first submission, so only differences matter.

use std::sync::LazyLock;

use time::format_description::{BorrowedFormatItem, parse_borrowed};
use time::{Date, PrimitiveDateTime, Time};

type Pattern = Vec<BorrowedFormatItem<'static>>;

static DATE: LazyLock<Pattern> = LazyLock::new(|| pattern("[year]-[month]-[day]"));
static TIME: LazyLock<Pattern> = LazyLock::new(|| pattern("[hour]:[minute]:[second]"));

/// Seconds of `YYYY-MM-DD HH:MM:SS` (or with a `T` between); `None` when it is no such date. A leap second, which the time
/// crate does not know, counts as the second after `:59`.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let (date, time) = text.split_at_checked(10)?;
    let date = Date::parse(date, &*DATE).ok()?;
    let time = time.strip_prefix([' ', 'T'])?;
    let (time, leap_s) = match time.strip_suffix(":60") {
        Some(minute) => (Time::parse(&format!("{minute}:59"), &*TIME).ok()?, 1),
        None => (Time::parse(time, &*TIME).ok()?, 0),
    };
    Some(PrimitiveDateTime::new(date, time).assume_utc().unix_timestamp() + leap_s)
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
            "日本日本日本a",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
