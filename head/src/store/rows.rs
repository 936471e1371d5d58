//! The small tables of a state: what is kept under keys, how far the reports of agents are in the journal, the starts of heads,
//! the states that this one took the place of, the run directories of agents. A head rests on them as on the journal, so every
//! row has a checksum; rows of earlier versions have none.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::sums;

/// The tables.
pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, sum INTEGER) STRICT;
    CREATE TABLE IF NOT EXISTS agents (
        name TEXT PRIMARY KEY, boot INTEGER NOT NULL, last_report INTEGER NOT NULL, sum INTEGER
    ) STRICT;
    CREATE TABLE IF NOT EXISTS starts (
        epoch INTEGER PRIMARY KEY, id INTEGER NOT NULL, first_line INTEGER NOT NULL, sum INTEGER
    ) STRICT;
    CREATE TABLE IF NOT EXISTS replaced (lineage INTEGER PRIMARY KEY, sum INTEGER) STRICT;
    CREATE TABLE IF NOT EXISTS instances (name TEXT PRIMARY KEY, instance INTEGER NOT NULL, sum INTEGER) STRICT;
";

/// A table and its columns; the first is its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// What is kept under keys.
    Meta,
    /// Reports of agents that are in the journal.
    Agents,
    /// Starts of heads.
    Starts,
    /// States that this one took the place of.
    Replaced,
    /// Run directories of agents.
    Instances,
}

/// All of them.
const ALL: [Table; 5] = [Table::Meta, Table::Agents, Table::Starts, Table::Replaced, Table::Instances];

impl Table {
    fn name(self) -> &'static str {
        match self {
            Table::Meta => "meta",
            Table::Agents => "agents",
            Table::Starts => "starts",
            Table::Replaced => "replaced",
            Table::Instances => "instances",
        }
    }

    fn columns(self) -> &'static [&'static str] {
        match self {
            Table::Meta => &["key", "value"],
            Table::Agents => &["name", "boot", "last_report"],
            Table::Starts => &["epoch", "id", "first_line"],
            Table::Replaced => &["lineage"],
            Table::Instances => &["name", "instance"],
        }
    }

    /// Writes a row, in the place of one with the same key.
    pub(crate) fn put(self, database: &Connection, mut values: Vec<Value>) -> Result<(), rusqlite::Error> {
        values.push(Value::Integer(sum(self, &values).into()));
        let places = vec!["?"; values.len()].join(", ");
        let statement = format!(
            "INSERT OR REPLACE INTO {} ({}, sum) VALUES ({places})",
            self.name(),
            self.columns().join(", ")
        );
        database.prepare_cached(&statement)?.execute(params_from_iter(values)).map(drop)
    }

    /// Keys of rows that are not what was written.
    fn bad(self, database: &Connection) -> Result<Vec<Value>, rusqlite::Error> {
        let (name, columns) = (self.name(), self.columns());
        let has = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?1";
        if database.query_row(has, [name], |row| row.get::<_, i64>(0))? == 0 {
            return Ok(Vec::new());
        }
        let written = sums::column(database, name)?;
        let query = format!("SELECT {}, {written} FROM {name} ORDER BY 1", columns.join(", "));
        let mut query = database.prepare(&query)?;
        let mut rows = query.query([])?;
        let mut bad = Vec::new();
        while let Some(row) = rows.next()? {
            let values: Vec<Value> = (0..columns.len()).map(|at| row.get(at)).collect::<Result<_, _>>()?;
            if !sums::fits(row.get(columns.len())?, sum(self, &values)) {
                bad.extend(values.into_iter().next());
            }
        }
        Ok(bad)
    }

    /// What is wrong with it: its pages, or some of its rows.
    fn faults(self, database: &Connection) -> Vec<String> {
        let name = self.name();
        let pages = || -> Result<Vec<String>, rusqlite::Error> {
            let query = format!("PRAGMA integrity_check({name})");
            database.prepare(&query)?.query_map([], |row| row.get(0))?.collect()
        };
        let found = pages().and_then(|pages| Ok((pages, self.bad(database)?)));
        match found {
            Ok((pages, bad)) => {
                let pages = pages.into_iter().filter(|said| said != "ok");
                let pages = pages.map(|said| format!("the table {name}: {}", said.replace('\n', "; ")));
                let rows = bad
                    .iter()
                    .map(|key| format!("the table {name}: the row {} is not what a head wrote", shown(key)));
                pages.chain(rows).collect()
            }
            Err(error) => vec![format!("the table {name} cannot be read: {error}")],
        }
    }
}

/// What is wrong with the small tables, a sentence for each fault.
pub(crate) fn faults(database: &Connection) -> Vec<String> {
    ALL.into_iter().flat_map(|table| table.faults(database)).collect()
}

/// Removes rows that are not what was written, from tables whose pages are whole; returns what is lost.
pub(crate) fn remove_bad(database: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let mut lost = Vec::new();
    for table in ALL {
        for key in table.bad(database)? {
            let (name, column) = (table.name(), table.columns().first().copied().unwrap_or_default());
            lost.push(format!("{} of {name}", shown(&key)));
            database.execute(&format!("DELETE FROM {name} WHERE {column} = ?1"), [key])?;
        }
    }
    Ok(lost)
}

fn sum(table: Table, values: &[Value]) -> u32 {
    let mut text = table.name().to_owned();
    for value in values {
        // A length first, so that no value can end like the beginning of the next one.
        let value = match value {
            Value::Integer(number) => format!("i{number}"),
            Value::Text(text) => format!("t{text}"),
            other => format!("{other:?}"),
        };
        text.push_str(&format!(" {} {value}", value.len()));
    }
    sums::of_text(&text)
}

/// A key for people.
fn shown(key: &Value) -> String {
    match key {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => format!("`{}`", text.escape_default()),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_has_changed_is_named_and_can_be_removed() {
        let database = Connection::open_in_memory().expect("opened");
        database.execute_batch(SCHEMA).expect("made");
        for (name, last) in [("node0", 7), ("node1", 8)] {
            Table::Agents
                .put(&database, vec![name.to_owned().into(), 1_i64.into(), i64::from(last).into()])
                .expect("put");
        }
        Table::Starts.put(&database, vec![3_i64.into(), (-5_i64).into(), 1_i64.into()]).expect("put");
        assert_eq!(faults(&database), Vec::<String>::new());
        database.execute_batch("UPDATE agents SET last_report = 9 WHERE name = 'node1'").expect("changed");
        database.execute_batch("UPDATE starts SET epoch = 4").expect("changed");
        // As an earlier version wrote it.
        database.execute_batch("INSERT INTO meta VALUES ('epoch', '3', NULL)").expect("written");
        let expected = [
            "the table agents: the row `node1` is not what a head wrote",
            "the table starts: the row 4 is not what a head wrote",
        ];
        assert_eq!(faults(&database), expected);
        assert_eq!(remove_bad(&database).expect("removed"), ["`node1` of agents", "4 of starts"]);
        assert_eq!(faults(&database), Vec::<String>::new());
    }
}
