//! Looking back: lines of the journal from the newest on, and those about one job.

use std::path::Path;

use rota_core::ids::JobId;
use rota_core::time::Time;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::Reader;
use crate::record::Record;
use crate::store::{StoreError, line_of};

/// Lines that are looked at in one go.
const LINES_AT_ONCE: usize = 1000;

/// A line of the journal: its number, when it was written, and what it says.
type Line = (u64, Time, Record);

impl Reader {
    /// Hands out lines of the journal from the one before `before` backward until `take` returns false, at most so many; returns
    /// the last line that was looked at.
    pub(crate) fn journal_backward(
        &self,
        before: u64,
        most: usize,
        mut take: impl FnMut(u64, Time, Record) -> bool,
    ) -> Result<Option<u64>, StoreError> {
        let (mut next, mut n_seen, mut last) = (before, 0, None);
        while n_seen < most {
            let lines = lines_before(&self.path, &self.database, next, LINES_AT_ONCE.min(most - n_seen))?;
            let Some((oldest, _, _)) = lines.last() else { return Ok(last) };
            next = *oldest;
            n_seen += lines.len();
            for (line, time, record) in lines {
                last = Some(line);
                if !take(line, time, record) {
                    return Ok(last);
                }
            }
        }
        Ok(last)
    }

    /// The line after the newest one.
    pub(crate) fn end_of_journal(&self) -> Result<u64, StoreError> {
        let newest =
            self.database.query_row("SELECT max(id) FROM journal", [], |row| row.get::<_, Option<i64>>(0));
        Ok(newest.map_err(|error| self.error(error))?.unwrap_or(0) as u64 + 1)
    }

    /// The first line that is not older than a time; none if all are.
    pub(crate) fn line_at(&self, time: Time) -> Result<Option<u64>, StoreError> {
        // Times ascend with lines, so the place can be found by halving.
        let bounds = "SELECT min(id), max(id) FROM journal";
        let bounds = self
            .database
            .query_row(bounds, [], |row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?)));
        let (Some(mut low), Some(mut high)) = bounds.map_err(|error| self.error(error))? else {
            return Ok(None);
        };
        while low < high {
            let middle = low + (high - low) / 2;
            let at = "SELECT id, time_us FROM journal WHERE id >= ?1 ORDER BY id LIMIT 1";
            let at = self
                .database
                .query_row(at, [middle], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
            match at.optional().map_err(|error| self.error(error))? {
                Some((id, time_us)) if time_us < time.0 => low = id + 1,
                _ => high = middle,
            }
        }
        Ok(Some(low as u64))
    }

    /// Lines from one on that name a job, or plan something for it; at most so many are looked at. Also whether that was all.
    pub(crate) fn lines_of_job(
        &self,
        job: JobId,
        from: u64,
        most: usize,
    ) -> Result<(Vec<Line>, bool), StoreError> {
        let end = self.end_of_journal()?;
        let from = from.max(end.saturating_sub(most as u64));
        // Only lines with the number in one of the ways in which records write it are parsed.
        let query = "SELECT id, time_us, kind, body, sum FROM journal WHERE id >= ?1 AND
            (instr(body, ?2) > 0 OR instr(body, ?3) > 0 OR (kind IN ('planned', 'progressed') AND instr(body, ?4) > 0))
            ORDER BY id LIMIT 100000";
        let error = |error| self.error(error);
        let mut query = self.database.prepare_cached(query).map_err(error)?;
        let patterns = [format!("\"job\":{job},"), format!("\"job\":{job}}}"), format!("[{job},")];
        let mut rows =
            query.query(params![from as i64, patterns[0], patterns[1], patterns[2]]).map_err(error)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(error)? {
            found.push(line_of(&self.path, row)?);
        }
        let is_all =
            self.database.query_row("SELECT min(id) FROM journal", [], |row| row.get::<_, Option<i64>>(0));
        let first = is_all.map_err(error)?.unwrap_or(1) as u64;
        Ok((found, from >= first))
    }
}

fn lines_before(
    path: &Path,
    database: &Connection,
    before: u64,
    most: usize,
) -> Result<Vec<Line>, StoreError> {
    let wrong = |error| StoreError::Database { path: path.to_owned(), error };
    let query = "SELECT id, time_us, kind, body, sum FROM journal WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
    let mut query = database.prepare_cached(query).map_err(wrong)?;
    let mut rows = query.query(params![before.min(i64::MAX as u64) as i64, most as i64]).map_err(wrong)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(wrong)? {
        found.push(line_of(path, row)?);
    }
    Ok(found)
}
