//! History: jobs that have ended, a row for each, and events whose lines left the journal. Both stay when the journal is
//! pruned, and can be queried while a head runs.
//!
//! The row of a job is written in the transaction that records its end, so the table has every ended job at any time.
//! To read it: [`Reader::open`] with the head's state folder (or `Store::reader` inside the head), then [`Reader::history`]
//! with a [`HistoryFilter`], page by page: pass the last row's id as `after` until fewer than `most` rows come back. A reader has a
//! connection of its own, so it may be used in any thread and never holds the head's writes.
//! Times are the head's; [`Reader::calendar_us`] turns one into wall-clock time.

use std::path::{Path, PathBuf};

use rota_core::ids::{Incarnation, JobId, NodeId};
use rota_core::time::{Span, Time};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, Transaction, params, params_from_iter};

pub(crate) mod browse;
pub(crate) mod pages;

use super::{StoreError, images, must_exist, rows};
use crate::cluster_state::{ClusterState, JobRecord, Standing};
use crate::record::Record;

/// Lines that are read in one go.
const LINES_AT_ONCE: usize = 1000;

/// Tables of the history.
pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS ended_jobs (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, user TEXT NOT NULL, tenant TEXT NOT NULL, model TEXT NOT NULL,
        state TEXT NOT NULL, reason TEXT NOT NULL, gpus INTEGER NOT NULL, arrival_us INTEGER NOT NULL, started_us INTEGER,
        ended_us INTEGER NOT NULL, deadline_us INTEGER, done REAL NOT NULL, work REAL NOT NULL, gpu_s REAL NOT NULL,
        launches INTEGER NOT NULL, failures INTEGER NOT NULL, preemptions INTEGER NOT NULL, nodes TEXT NOT NULL,
        priority INTEGER NOT NULL DEFAULT 0, time_limit_us INTEGER, exit_code INTEGER
    ) STRICT;
    CREATE INDEX IF NOT EXISTS ended_jobs_by_end ON ended_jobs (ended_us);
    CREATE INDEX IF NOT EXISTS ended_jobs_by_user ON ended_jobs (user, ended_us);
    CREATE TABLE IF NOT EXISTS events (
        line INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, kind TEXT NOT NULL, job INTEGER, user TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS events_by_time ON events (time_us);
    CREATE INDEX IF NOT EXISTS events_by_job ON events (job) WHERE job IS NOT NULL;
";

/// Columns that the first versions of the tables did not have.
const LATER_COLUMNS: [(&str, &str, &str); 10] = [
    ("ended_jobs", "priority", "INTEGER NOT NULL DEFAULT 0"),
    ("ended_jobs", "time_limit_us", "INTEGER"),
    ("ended_jobs", "exit_code", "INTEGER"),
    ("journal", "sum", "INTEGER"),
    ("images", "sum", "INTEGER"),
    ("meta", "sum", "INTEGER"),
    ("agents", "sum", "INTEGER"),
    ("starts", "sum", "INTEGER"),
    ("replaced", "sum", "INTEGER"),
    ("instances", "sum", "INTEGER"),
];

const COLUMNS: &str = "id, name, user, tenant, model, state, reason, gpus, arrival_us, started_us, ended_us, deadline_us, \
                       done, work, gpu_s, launches, failures, preemptions, nodes, priority, time_limit_us, exit_code";

/// A job that has ended, as the history has it.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedJob {
    /// Its number.
    pub id: JobId,
    /// Its name, as its user chose it.
    pub name: String,
    /// Whose it was: the name in the sender's certificate.
    pub user: String,
    /// The tenant that it counted for.
    pub tenant: String,
    /// The model it named; empty if none.
    pub model: String,
    /// How it ended.
    pub standing: Standing,
    /// Why it ended so; empty if there is nothing to add.
    pub reason: String,
    /// GPUs it asked for.
    pub gpus: u32,
    /// When it was received.
    pub arrival: Time,
    /// When it first ran; none if it never did.
    pub started: Option<Time>,
    /// When it ended.
    pub ended: Time,
    /// When it should have been done.
    pub deadline: Option<Time>,
    /// Iterations it did.
    pub done: f64,
    /// Iterations it was thought to need; 0 if its request did not say.
    pub work: f64,
    /// GPU time it received, in GPU-seconds of the head's time.
    pub gpu_s: f64,
    /// Its last launch; launches are counted from 1.
    pub last_launch: Incarnation,
    /// Launches that failed because of the job itself.
    pub n_failures: u32,
    /// Times it was stopped in favour of others or because a node was lost.
    pub n_preemptions: u32,
    /// Nodes of its last launch.
    pub nodes: Vec<NodeId>,
    /// Its priority.
    pub priority: i32,
    /// How long it was allowed to run.
    pub time_limit: Option<Span>,
    /// What its last launch that failed by itself ended with: its exit code, or 128 and the number of the signal.
    pub exit_code: Option<i32>,
}

impl EndedJob {
    /// The row of a job; none while it has not ended.
    pub fn of(id: JobId, job: &JobRecord, cluster: &ClusterState) -> Option<Self> {
        let ended = job.ended.filter(|_| job.standing.is_over())?;
        Some(EndedJob {
            id,
            name: job.request.name.to_string(),
            user: job.user.clone(),
            tenant: cluster.tenants().get(job.spec.tenant.index()).cloned().unwrap_or_default(),
            model: job.request.model.to_string(),
            standing: job.standing,
            reason: job.reason.clone(),
            gpus: job.request.gpus,
            arrival: job.spec.arrival,
            started: job.started,
            ended,
            deadline: job.spec.deadline.first(),
            done: job.done,
            work: job.request.work.count(),
            gpu_s: job.gpu_s,
            last_launch: job.last_launch.0,
            n_failures: job.n_failures,
            n_preemptions: job.n_preemptions,
            nodes: job.last_launch.1.clone(),
            priority: job.spec.priority,
            time_limit: job.request.conditions.time_limit.map(|most| most.span()),
            exit_code: job.life.exit_code,
        })
    }

    pub(super) fn insert(&self, transaction: &Transaction<'_>) -> Result<(), rusqlite::Error> {
        let nodes: Vec<_> = self.nodes.iter().map(|node| node.to_string()).collect();
        let values = params![
            self.id.0,
            self.name,
            self.user,
            self.tenant,
            self.model,
            self.standing.as_str(),
            self.reason,
            self.gpus,
            self.arrival.0,
            self.started.map(|time| time.0),
            self.ended.0,
            self.deadline.map(|time| time.0),
            self.done,
            self.work,
            self.gpu_s,
            self.last_launch.0,
            self.n_failures,
            self.n_preemptions,
            nodes.join(" "),
            self.priority,
            self.time_limit.map(|span| span.0),
            self.exit_code,
        ];
        let statement = format!(
            "INSERT OR REPLACE INTO ended_jobs ({COLUMNS})
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
                     ?22)"
        );
        transaction.prepare_cached(&statement)?.execute(values).map(drop)
    }

    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        let state: String = row.get(5)?;
        let nodes: String = row.get(18)?;
        Ok(EndedJob {
            id: JobId(row.get(0)?),
            name: row.get(1)?,
            user: row.get(2)?,
            tenant: row.get(3)?,
            model: row.get(4)?,
            standing: Standing::parse(&state).unwrap_or(Standing::Failed),
            reason: row.get(6)?,
            gpus: row.get(7)?,
            arrival: Time(row.get(8)?),
            started: row.get::<_, Option<i64>>(9)?.map(Time),
            ended: Time(row.get(10)?),
            deadline: row.get::<_, Option<i64>>(11)?.map(Time),
            done: row.get(12)?,
            work: row.get(13)?,
            gpu_s: row.get(14)?,
            last_launch: Incarnation(row.get(15)?),
            n_failures: row.get(16)?,
            n_preemptions: row.get(17)?,
            nodes: nodes.split_whitespace().filter_map(|node| node.parse().ok()).map(NodeId).collect(),
            priority: row.get(19)?,
            time_limit: row.get::<_, Option<i64>>(20)?.map(Span),
            exit_code: row.get(21)?,
        })
    }
}

/// Which ended jobs are wanted. What is absent does not narrow.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryFilter {
    /// Ended at this time or later.
    pub from: Option<Time>,
    /// Ended before this time.
    pub until: Option<Time>,
    /// Jobs of this user.
    pub user: Option<String>,
    /// Jobs that counted for this tenant.
    pub tenant: Option<String>,
    /// Jobs of this model.
    pub model: Option<String>,
    /// Jobs of this name.
    pub name: Option<String>,
    /// Jobs that ended so.
    pub standing: Option<Standing>,
    /// Only jobs with a higher number than this: the last one of the page before.
    pub after: Option<JobId>,
    /// The most rows.
    pub most: usize,
}

impl Default for HistoryFilter {
    fn default() -> Self {
        HistoryFilter {
            from: None,
            until: None,
            user: None,
            tenant: None,
            model: None,
            name: None,
            standing: None,
            after: None,
            most: 1000,
        }
    }
}

impl HistoryFilter {
    /// Conditions with their values.
    fn conditions(&self) -> (String, Vec<Value>) {
        let text = |text: &Option<String>| text.clone().map(Value::Text);
        let time = |time: Option<Time>| time.map(|time| Value::Integer(time.0));
        let all = [
            ("ended_us >= ?", time(self.from)),
            ("ended_us < ?", time(self.until)),
            ("user = ?", text(&self.user)),
            ("tenant = ?", text(&self.tenant)),
            ("model = ?", text(&self.model)),
            ("name = ?", text(&self.name)),
            ("state = ?", self.standing.map(|standing| Value::Text(standing.as_str().into()))),
            ("id > ?", self.after.map(|job| Value::Integer(job.0.into()))),
        ];
        let (conditions, values): (Vec<_>, Vec<_>) =
            all.into_iter().filter_map(|(condition, value)| Some((condition, value?))).unzip();
        let text = match conditions.is_empty() {
            true => "1".to_owned(),
            false => conditions.join(" AND "),
        };
        (text, values)
    }
}

/// An event whose line left the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldEvent {
    /// The number of its line.
    pub line: u64,
    /// When it happened.
    pub time: Time,
    /// Its kind in a word.
    pub kind: String,
    /// The job that it is about, if it is about one.
    pub job: Option<JobId>,
    /// The person it names; empty if it names none.
    pub user: String,
    /// What happened, in a sentence.
    pub text: String,
}

/// Which old events are wanted. What is absent does not narrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// From this line on.
    pub from_line: u64,
    /// At this time or later.
    pub from: Option<Time>,
    /// Before this time.
    pub until: Option<Time>,
    /// About this job.
    pub job: Option<JobId>,
    /// Of this user: what they did, and what happened to their jobs that have ended.
    pub user: Option<String>,
    /// The most rows.
    pub most: usize,
}

impl Default for EventFilter {
    fn default() -> Self {
        EventFilter { from_line: 0, from: None, until: None, job: None, user: None, most: 1000 }
    }
}

/// A connection of its own to a state directory, for reading in any thread while a head writes.
#[derive(Debug)]
pub struct Reader {
    pub(super) path: PathBuf,
    pub(super) database: Connection,
}

impl Reader {
    /// Opens the state directory of a head, which may be running. One that an earlier version made has no history.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join("head.sqlite");
        must_exist(&path)?;
        let wrong = |error| StoreError::Database { path: path.clone(), error };
        // A log that a killed head left is read too, and that needs the right to write.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = Connection::open_with_flags(&path, flags).map_err(wrong)?;
        database.busy_timeout(std::time::Duration::from_secs(5)).map_err(wrong)?;
        make_tables(&database).map_err(wrong)?;
        Ok(Reader { path, database })
    }

    /// Ended jobs by ascending number.
    pub fn history(&self, filter: &HistoryFilter) -> Result<Vec<EndedJob>, StoreError> {
        history(&self.path, &self.database, filter)
    }

    /// A job that has ended.
    pub fn ended_job(&self, id: JobId) -> Result<Option<EndedJob>, StoreError> {
        ended_job(&self.path, &self.database, id)
    }

    /// Lines of the journal from one on, with their numbers; at most so many.
    pub fn journal(&self, from: u64, most: usize) -> Result<Vec<(u64, Time, Record)>, StoreError> {
        super::read_lines(&self.path, &self.database, from, most)
    }

    /// Hands out the journal record by record, with line numbers, until `take` returns false. Of a journal that was pruned, the
    /// first record is the image that stands for what is gone. No lock is held while records are taken.
    pub fn read_journal(&self, mut take: impl FnMut(u64, Time, Record) -> bool) -> Result<(), StoreError> {
        let mut next = 0;
        if images::first_line(&self.path, &self.database)? != Some(1)
            && let Some(oldest) = images::usable(&self.path, &self.database)?.first()
        {
            let image = Box::new(images::image(&self.path, &self.database, oldest.line)?);
            next = oldest.line + 1;
            if !take(oldest.line, oldest.time, Record::Image { image }) {
                return Ok(());
            }
        }
        loop {
            let lines = self.journal(next, LINES_AT_ONCE)?;
            let Some((last, _, _)) = lines.last() else { return Ok(()) };
            if next > 1 && lines.first().is_some_and(|(line, _, _)| *line > next) {
                // What was next has left the journal while the lines before were taken.
                return Err(StoreError::NoImage { path: self.path.clone(), line: next });
            }
            next = last + 1;
            for (line, time, record) in lines {
                if !take(line, time, record) {
                    return Ok(());
                }
            }
        }
    }

    /// Events that left the journal, by line.
    pub fn old_events(&self, from: u64, most: usize) -> Result<Vec<OldEvent>, StoreError> {
        let filter = EventFilter { from_line: from, most, ..EventFilter::default() };
        self.events(&filter)
    }

    /// Events that left the journal and pass a filter, by line. Those that are still in the journal are in
    /// [`Reader::journal`].
    pub fn events(&self, filter: &EventFilter) -> Result<Vec<OldEvent>, StoreError> {
        let wrong = |error| StoreError::Database { path: self.path.clone(), error };
        let integer = |value: Option<i64>| value.map_or(Value::Null, Value::Integer);
        let values = [
            Value::Integer(filter.from_line as i64),
            integer(filter.from.map(|time| time.0)),
            integer(filter.until.map(|time| time.0)),
            integer(filter.job.map(|job| job.0.into())),
            filter.user.clone().map_or(Value::Null, Value::Text),
            Value::Integer(i64::try_from(filter.most).unwrap_or(i64::MAX)),
        ];
        // A job's events belong to its owner too.
        let query = "SELECT line, time_us, kind, job, user, text FROM events
            WHERE line >= ?1 AND (?2 IS NULL OR time_us >= ?2) AND (?3 IS NULL OR time_us < ?3)
              AND (?4 IS NULL OR job = ?4)
              AND (?5 IS NULL OR user = ?5 OR job IN (SELECT id FROM ended_jobs WHERE user = ?5))
            ORDER BY line LIMIT ?6";
        let mut query = self.database.prepare_cached(query).map_err(wrong)?;
        let rows = query.query_map(params_from_iter(values), |row| {
            Ok(OldEvent {
                line: row.get::<_, i64>(0)? as u64,
                time: Time(row.get(1)?),
                kind: row.get(2)?,
                job: row.get::<_, Option<u32>>(3)?.map(JobId),
                user: row.get(4)?,
                text: row.get(5)?,
            })
        });
        rows.map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)
    }

    fn error(&self, error: rusqlite::Error) -> StoreError {
        StoreError::Database { path: self.path.clone(), error }
    }

    /// Wall-clock time in microseconds since 1970 of a time of this head, which ran `scale` times as fast as the clock. It is
    /// wrong by the spans that `rota deploy --fast-forward` skipped.
    pub fn calendar_us(&self, time: Time, scale: f64) -> Result<i64, StoreError> {
        let born = super::meta(&self.path, &self.database, "born_us")?;
        let born_us = born.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        Ok(born_us + (time.0 as f64 / scale) as i64)
    }
}

/// Makes the tables that are missing, as in a state of an earlier version, and columns that one did not have.
pub(super) fn make_tables(database: &Connection) -> Result<(), rusqlite::Error> {
    let count = |query: &str| database.query_row(query, [], |row| row.get::<_, i64>(0));
    if count("SELECT count(*) FROM sqlite_master WHERE name IN ('ended_jobs', 'events', 'images')")? < 3 {
        database.execute_batch(SCHEMA)?;
        database.execute_batch(images::SCHEMA)?;
    }
    if count("SELECT count(*) FROM sqlite_master WHERE name IN ('starts', 'replaced', 'instances')")? < 3 {
        database.execute_batch(rows::SCHEMA)?;
    }
    for (table, column, kind) in LATER_COLUMNS {
        let query = format!("SELECT count(*) FROM pragma_table_info('{table}') WHERE name = '{column}'");
        if count(&query)? == 0 {
            database.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column} {kind}"))?;
        }
    }
    Ok(())
}

pub(super) fn history(
    path: &Path,
    database: &Connection,
    filter: &HistoryFilter,
) -> Result<Vec<EndedJob>, StoreError> {
    let wrong = |error| StoreError::Database { path: path.to_owned(), error };
    let (conditions, mut values) = filter.conditions();
    values.push(Value::Integer(i64::try_from(filter.most).unwrap_or(i64::MAX)));
    let statement = format!("SELECT {COLUMNS} FROM ended_jobs WHERE {conditions} ORDER BY id LIMIT ?");
    let mut query = database.prepare_cached(&statement).map_err(wrong)?;
    let rows = query.query_map(params_from_iter(values), EndedJob::read).map_err(wrong)?;
    rows.collect::<Result<_, _>>().map_err(wrong)
}

pub(super) fn ended_job(
    path: &Path,
    database: &Connection,
    id: JobId,
) -> Result<Option<EndedJob>, StoreError> {
    let wrong = |error| StoreError::Database { path: path.to_owned(), error };
    let statement = format!("SELECT {COLUMNS} FROM ended_jobs WHERE id = ?1");
    let mut query = database.prepare_cached(&statement).map_err(wrong)?;
    query.query_row([id.0], EndedJob::read).optional().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::super::{Store, Write};
    use super::*;

    fn ended(id: u32, user: &str, ended_s: i64) -> EndedJob {
        EndedJob {
            id: JobId(id),
            name: format!("job{id}"),
            user: user.into(),
            tenant: user.into(),
            model: "res50".into(),
            standing: if id.is_multiple_of(2) { Standing::Finished } else { Standing::Failed },
            reason: String::new(),
            gpus: 4,
            arrival: Time(5),
            started: Some(Time(7)),
            ended: Time(ended_s * 1_000_000),
            deadline: None,
            done: 12.5,
            work: 1e9,
            gpu_s: 0.1,
            last_launch: Incarnation(3),
            n_failures: 1,
            n_preemptions: 2,
            nodes: vec![NodeId(0), NodeId(7)],
            priority: -3,
            time_limit: Some(Span(5)),
            exit_code: Some(137),
        }
    }

    #[test]
    fn history_is_filtered_and_paged_by_a_reader_while_the_store_is_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path()).expect("opened");
        let jobs: Vec<_> = (0..10).map(|id| ended(id, ["ada", "bob"][id as usize % 2], id.into())).collect();
        let writes: Vec<_> = jobs.iter().map(|job| Write::Ended(Box::new(job.clone()))).collect();
        store.commit(&writes).expect("written");
        store.commit(&writes[..2]).expect("written a second time, as after a restart");
        let reader = Reader::open(folder.path()).expect("opened");
        let read = |filter: HistoryFilter| reader.history(&filter).expect("read");
        assert_eq!(read(HistoryFilter::default()), jobs);
        let of_bob = HistoryFilter { user: Some("bob".into()), ..HistoryFilter::default() };
        assert_eq!(read(of_bob.clone()).len(), 5);
        let second_page = HistoryFilter { most: 2, after: Some(JobId(3)), ..of_bob };
        assert_eq!(read(second_page).iter().map(|job| job.id.0).collect::<Vec<_>>(), [5, 7]);
        let (from, until) = (Some(Time(3_000_000)), Some(Time(6_000_000)));
        let by_time =
            HistoryFilter { from, until, standing: Some(Standing::Failed), ..HistoryFilter::default() };
        assert_eq!(read(by_time).iter().map(|job| job.id.0).collect::<Vec<_>>(), [3, 5]);
        assert_eq!(reader.ended_job(JobId(4)).expect("read"), Some(jobs[4].clone()));
        assert_eq!(reader.ended_job(JobId(40)).expect("read"), None);
    }
}
