//! Checksums of what a head rests on: lines of the journal, images of the state and rows of small tables (`rows`). SQLite keeps none, so that a digit which
//! changed on the disk would be taken for what was written. Lines and images of earlier versions have no checksum.

use flate2::Crc;
use rota_core::time::Time;
use rusqlite::Connection;

/// What is said of a line or an image that is not what was written.
pub(crate) const WRONG: &str = "its checksum is wrong, so it is not what a head wrote \
                                (`rota head fsck` says what can be used)";

/// The checksum of a line of the journal: over all of it, with its number.
pub(crate) fn of_line(line: u64, time: Time, kind: &str, body: &str) -> u32 {
    of(&[&line.to_le_bytes(), &time.0.to_le_bytes(), kind.as_bytes(), b"\0", body.as_bytes()])
}

/// The checksum of an image of the state after a line.
pub(crate) fn of_image(line: u64, time: Time, bytes: u64, body: &[u8]) -> u32 {
    of(&[&line.to_le_bytes(), &time.0.to_le_bytes(), &bytes.to_le_bytes(), body])
}

/// The checksum of a row that was written as a text.
pub(crate) fn of_text(text: &str) -> u32 {
    of(&[text.as_bytes()])
}

fn of(parts: &[&[u8]]) -> u32 {
    let mut crc = Crc::new();
    parts.iter().for_each(|part| crc.update(part));
    crc.sum()
}

/// Whether what is there has the checksum that was written with it. What has none is believed.
pub(crate) fn fits(written: Option<i64>, found: u32) -> bool {
    written.is_none_or(|written| written == i64::from(found))
}

/// How to read the checksums of a table in a query: states of earlier versions do not have the column.
pub(crate) fn column(database: &Connection, table: &str) -> Result<&'static str, rusqlite::Error> {
    let query = "SELECT count(*) FROM pragma_table_info(?1) WHERE name = 'sum'";
    let has: i64 = database.query_row(query, [table], |row| row.get(0))?;
    Ok(if has > 0 { "sum" } else { "NULL" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_line_counts() {
        let sum = of_line(7, Time(5), "noted", "{}");
        let others = [
            of_line(8, Time(5), "noted", "{}"),
            of_line(7, Time(6), "noted", "{}"),
            of_line(7, Time(5), "noteb", "{}"),
            of_line(7, Time(5), "noted", "{ }"),
            of_line(7, Time(5), "note", "d{}"),
        ];
        assert!(others.iter().all(|other| *other != sum), "{others:?} {sum}");
        assert!(fits(Some(i64::from(sum)), sum) && fits(None, sum) && !fits(Some(0), sum));
    }
}
