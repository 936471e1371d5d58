//! Pages of jobs that have ended, in any order, for lists that people look through.

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::{COLUMNS, EndedJob, Reader};
use crate::store::StoreError;

/// Which jobs that have ended are wanted, and in which order.
#[derive(Clone, Debug)]
pub(crate) struct PastQuery {
    /// Conditions that all hold: a column and one of these values.
    pub(crate) one_of: Vec<(&'static str, Vec<Value>)>,
    /// A part of the name, user, tenant or model, or the number.
    pub(crate) text: Option<String>,
    /// What to sort by, as SQL.
    pub(crate) key: &'static str,
    pub(crate) is_descending: bool,
    /// After this value and number.
    pub(crate) after: Option<(Value, u32)>,
    pub(crate) most: usize,
}

impl Reader {
    /// A page of jobs, and how many fit the query in all.
    pub(crate) fn past_jobs(&self, query: &PastQuery) -> Result<(Vec<EndedJob>, u64), StoreError> {
        let (mut conditions, mut values) = (vec!["1".to_owned()], Vec::new());
        for (column, wanted) in &query.one_of {
            let places = vec!["?"; wanted.len()].join(", ");
            conditions.push(format!("{column} IN ({places})"));
            values.extend(wanted.iter().cloned());
        }
        if let Some(text) = &query.text {
            let columns = ["name", "user", "tenant", "model"];
            let like = columns.map(|column| format!("instr(lower({column}), lower(?)) > 0")).join(" OR ");
            conditions.push(format!("({like} OR CAST(id AS TEXT) = ?)"));
            values.extend(vec![Value::Text(text.clone()); columns.len() + 1]);
        }
        let all = format!("SELECT count(*) FROM ended_jobs WHERE {}", conditions.join(" AND "));
        let error = |error| self.error(error);
        let n_all: i64 = self
            .database
            .prepare_cached(&all)
            .and_then(|mut found| found.query_row(params_from_iter(&values), |row| row.get(0)))
            .map_err(error)?;
        let (key, direction) = (query.key, if query.is_descending { "DESC" } else { "ASC" });
        if let Some((value, id)) = &query.after {
            let than = if query.is_descending { "<" } else { ">" };
            conditions.push(format!("({key}, id) {than} (?, ?)"));
            values.extend([value.clone(), Value::Integer(i64::from(*id))]);
        }
        values.push(Value::Integer(query.most as i64));
        let statement = format!(
            "SELECT {COLUMNS} FROM ended_jobs WHERE {} ORDER BY {key} {direction}, id {direction} LIMIT ?",
            conditions.join(" AND ")
        );
        let mut statement = self.database.prepare_cached(&statement).map_err(error)?;
        let rows = statement.query_map(params_from_iter(&values), EndedJob::read).map_err(error)?;
        let jobs: Result<Vec<_>, _> = rows.collect();
        Ok((jobs.map_err(error)?, u64::try_from(n_all).unwrap_or(0)))
    }
}
