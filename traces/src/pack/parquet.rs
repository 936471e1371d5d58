//! Parquet as the table that the readers of tables take: headings and rows of text. Dates are written as dates, what is not there as
//! nothing. Columns of lists, structures and decimals are left out.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use ::parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::{Field, Row};
use ::parquet::schema::types::Type;
use bytes::Bytes;
use time::format_description::well_known::Iso8601;
use time::{Date, Duration, OffsetDateTime};

use crate::error::InputError;

/// The table as CSV, of at most `most` bytes. The library panics on some damaged files (a page that needs a dictionary which is not
/// there), and such a file is an error like any other.
pub(super) fn to_table(name: &str, bytes: Vec<u8>, most: u64) -> Result<Vec<u8>, InputError> {
    let damaged = || Err(InputError::problem(name, "cannot be read as Parquet: the file is damaged"));
    contained(|| read(name, bytes, most)).unwrap_or_else(damaged)
}

thread_local! {
    /// Whether a panic of this thread is expected, and not to be reported.
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// What a function returns; nothing if it panics.
fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_CONTAINED.get() {
                usual(info);
            }
        }));
    });
    IS_CONTAINED.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work)).ok();
    IS_CONTAINED.set(false);
    result
}

fn read(name: &str, bytes: Vec<u8>, most: u64) -> Result<Vec<u8>, InputError> {
    let wrong = |e: ParquetError| InputError::problem(name, format!("cannot be read as Parquet: {e}"));
    let reader = SerializedFileReader::new(Bytes::from(bytes)).map_err(wrong)?;
    let schema = reader.metadata().file_metadata().schema().clone();
    let plain: Vec<_> = schema.get_fields().iter().filter(|field| is_readable(field)).cloned().collect();
    if plain.is_empty() {
        return Err(InputError::expected(name, "a Parquet file with columns"));
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let full = |e: csv::Error| InputError::problem(name, format!("cannot be written as a table: {e}"));
    writer.write_record(plain.iter().map(|field| field.name())).map_err(full)?;
    let is_nanos: Vec<bool> = plain.iter().map(|field| counts_nanoseconds(field)).collect();
    let wanted = Type::group_type_builder(schema.name()).with_fields(plain).build().map_err(wrong)?;
    for row in reader.get_row_iter(Some(wanted)).map_err(wrong)? {
        let row: Row = row.map_err(wrong)?;
        writer
            .write_record(row.get_column_iter().zip(&is_nanos).map(|((_, field), nanos)| cell(field, *nanos)))
            .map_err(full)?;
        if writer.get_ref().len() as u64 > most {
            return Err(InputError::expected(name, format!("at most {most} bytes as a table")));
        }
    }
    writer.into_inner().map_err(|e| InputError::problem(name, format!("cannot be written as a table: {e}")))
}

/// Whether the library has a value for such a column: for others, and for decimals that make no sense, it panics.
fn is_readable(field: &Type) -> bool {
    use ConvertedType as C;
    if !field.is_primitive() || field.get_basic_info().repetition() == Repetition::REPEATED {
        return false;
    }
    let converted = field.get_basic_info().converted_type();
    match field.get_physical_type() {
        Physical::BOOLEAN | Physical::INT96 | Physical::FLOAT | Physical::DOUBLE => true,
        Physical::INT32 => matches!(
            converted,
            C::NONE
                | C::INT_8
                | C::INT_16
                | C::INT_32
                | C::UINT_8
                | C::UINT_16
                | C::UINT_32
                | C::DATE
                | C::TIME_MILLIS
        ),
        Physical::INT64 => matches!(
            converted,
            C::NONE | C::INT_64 | C::UINT_64 | C::TIME_MICROS | C::TIMESTAMP_MILLIS | C::TIMESTAMP_MICROS
        ),
        Physical::BYTE_ARRAY => matches!(converted, C::NONE | C::UTF8 | C::ENUM | C::JSON | C::BSON),
        Physical::FIXED_LEN_BYTE_ARRAY => converted == C::NONE,
    }
}

/// Dates in nanoseconds, as older versions of pandas write them; the library hands them out as numbers.
fn counts_nanoseconds(field: &Type) -> bool {
    let logical = field.get_basic_info().logical_type_ref();
    matches!(logical, Some(LogicalType::Timestamp(time)) if matches!(time.unit, TimeUnit::NANOS))
}

fn cell(field: &Field, is_nanos: bool) -> String {
    match field {
        Field::Long(nanos) if is_nanos => date_time(i128::from(*nanos)),
        Field::Null => String::new(),
        Field::Bool(is_true) => u8::from(*is_true).to_string(),
        Field::Str(text) => text.clone(),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into_owned(),
        Field::Float(value) => value.to_string(),
        Field::Double(value) => value.to_string(),
        Field::TimestampMillis(ms) => date_time(i128::from(*ms) * 1_000_000),
        Field::TimestampMicros(us) => date_time(i128::from(*us) * 1_000),
        Field::Date(days) => date(*days),
        other => other.to_string(),
    }
}

fn date_time(nanos: i128) -> String {
    match OffsetDateTime::from_unix_timestamp_nanos(nanos) {
        Ok(at) => {
            let (year, month, day) = at.to_calendar_date();
            let (hour, minute, second) = at.to_hms();
            format!("{year:04}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02}", u8::from(month))
        }
        Err(_) => String::new(),
    }
}

fn date(days: i32) -> String {
    let day = Date::from_ordinal_date(1970, 1)
        .ok()
        .and_then(|epoch| epoch.checked_add(Duration::days(days.into())));
    day.and_then(|day| day.format(&Iso8601::DATE).ok()).unwrap_or_default()
}
