//! Reading MPS, free or fixed.
//!
//! Conventions where dialects differ: an integer column without bounds is binary; a negative upper bound
//! alone makes the lower one minus infinity; the right-hand side of the objective row is minus the offset;
//! further `N` rows are kept as free rows; a column's entries are adjacent.

use std::collections::HashMap;

use super::mps_fields::{Field, Layout, split};
use crate::error::{ModelError, ReadError};
use crate::model::{Kind, Model, Sense, Variable};

/// Reads MPS text: by blanks, and if that fails, by position.
pub fn read_mps(text: &str) -> Result<Model, ReadError> {
    Draft::read(text, Layout::Free).or_else(|error| Draft::read(text, Layout::Fixed).map_err(|_| error))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    None,
    ObjectiveSense,
    Rows,
    Columns,
    RightHandSides,
    Ranges,
    Bounds,
    End,
}

struct RowDraft {
    name: String,
    line: usize,
    letter: u8,
    right_hand_side: f64,
    range: Option<f64>,
    n_terms: usize,
    /// The last column that had an entry here, to notice a second one.
    last_column: usize,
}

struct ColumnDraft {
    name: String,
    line: usize,
    kind: Kind,
    cost: f64,
    lower: Option<f64>,
    upper: Option<f64>,
    has_bounds: bool,
}

/// Everything read so far. Row 0 is the objective once there is one.
struct Draft {
    name: String,
    sense: Sense,
    is_integer_block: bool,
    rows: Vec<RowDraft>,
    row_index: HashMap<String, usize>,
    objective: Option<usize>,
    columns: Vec<ColumnDraft>,
    column_index: HashMap<String, usize>,
    entries: Vec<(usize, usize, f64)>,
}

impl Draft {
    fn read(text: &str, layout: Layout) -> Result<Model, ReadError> {
        let mut draft = Draft {
            name: String::new(),
            sense: Sense::Minimize,
            is_integer_block: false,
            rows: Vec::new(),
            row_index: HashMap::new(),
            objective: None,
            columns: Vec::new(),
            column_index: HashMap::new(),
            entries: Vec::new(),
        };
        let mut section = Section::None;
        let mut fields = Vec::with_capacity(8);
        let mut n_lines = 0;
        for (number, line) in text.lines().enumerate() {
            n_lines = number + 1;
            if line.starts_with('*') || line.trim().is_empty() {
                continue;
            }
            if line.starts_with(|c: char| !c.is_whitespace()) {
                split(line, number + 1, Layout::Free, &mut fields);
                section = draft.header(&fields)?;
                if section == Section::End {
                    return draft.finish();
                }
            } else {
                split(line, number + 1, layout, &mut fields);
                if !fields.is_empty() {
                    draft.data(section, &fields)?;
                }
            }
        }
        Err(ReadError::new(n_lines + 1, 1, "", "ENDATA before the end of the text"))
    }

    fn header(&mut self, fields: &[Field<'_>]) -> Result<Section, ReadError> {
        let keyword = &fields[0];
        Ok(match &*keyword.text.to_ascii_uppercase() {
            "NAME" => {
                let name = fields.get(1).map_or("", |field| &field.text);
                self.name = name.to_owned();
                Section::None
            }
            "OBJSENSE" => {
                if let Some(word) = fields.get(1) {
                    self.sense = sense(word)?;
                }
                Section::ObjectiveSense
            }
            "ROWS" => Section::Rows,
            "COLUMNS" => Section::Columns,
            "RHS" => Section::RightHandSides,
            "RANGES" => Section::Ranges,
            "BOUNDS" => Section::Bounds,
            "ENDATA" => Section::End,
            _ => {
                return Err(keyword.error(
                    "a section of a linear model (NAME, OBJSENSE, ROWS, COLUMNS, RHS, RANGES, BOUNDS, ENDATA)",
                ));
            }
        })
    }

    fn data(&mut self, section: Section, fields: &[Field<'_>]) -> Result<(), ReadError> {
        match section {
            Section::ObjectiveSense => {
                self.sense = sense(&fields[0])?;
                Ok(())
            }
            Section::Rows => self.row(fields),
            Section::Columns => self.column_entries(fields),
            Section::RightHandSides => self.pairs(fields, |row, value| row.right_hand_side = value),
            Section::Ranges => self.pairs(fields, |row, value| row.range = Some(value)),
            Section::Bounds => self.bound(fields),
            Section::None | Section::End => Err(fields[0].error("a section header before data")),
        }
    }

    fn row(&mut self, fields: &[Field<'_>]) -> Result<(), ReadError> {
        let [letter, name] = fields else {
            return Err(fields[fields.len() - 1].error("a row type and a row name"));
        };
        let letter = match &*letter.text.to_ascii_uppercase() {
            "N" => b'N',
            "E" => b'E',
            "L" => b'L',
            "G" => b'G',
            _ => return Err(letter.error("a row type: N, E, L or G")),
        };
        let index = self.rows.len();
        if self.row_index.insert(name.text.to_string(), index).is_some() {
            return Err(name.error("a row name that is not taken"));
        }
        if letter == b'N' && self.objective.is_none() {
            self.objective = Some(index);
        }
        self.rows.push(RowDraft {
            name: name.text.to_string(),
            line: name.line,
            letter,
            right_hand_side: 0.0,
            range: None,
            n_terms: 0,
            last_column: usize::MAX,
        });
        Ok(())
    }

    fn column_entries(&mut self, fields: &[Field<'_>]) -> Result<(), ReadError> {
        if fields.len() >= 3 && fields[1].text.eq_ignore_ascii_case("'MARKER'") {
            self.is_integer_block = match &*fields[2].text.to_ascii_uppercase() {
                "'INTORG'" => true,
                "'INTEND'" => false,
                _ => return Err(fields[2].error("'INTORG' or 'INTEND'")),
            };
            return Ok(());
        }
        if fields.len() != 3 && fields.len() != 5 {
            return Err(fields[fields.len() - 1].error("a column name and one or two pairs of row and value"));
        }
        let column = self.column(&fields[0])?;
        for pair in fields[1..].chunks_exact(2) {
            let index = self.known_row(&pair[0])?;
            let value = pair[1].finite()?;
            let row = &mut self.rows[index];
            if row.last_column == column {
                return Err(pair[0].error(format!("one entry of column {} in this row", fields[0].text)));
            }
            row.last_column = column;
            if self.objective == Some(index) {
                self.columns[column].cost = value;
            } else {
                row.n_terms += 1;
                self.entries.push((index, column, value));
            }
        }
        Ok(())
    }

    /// The column of that name: the one being read, or a new one.
    fn column(&mut self, name: &Field<'_>) -> Result<usize, ReadError> {
        if let Some(last) = self.columns.last()
            && last.name == name.text
        {
            return Ok(self.columns.len() - 1);
        }
        let index = self.columns.len();
        if self.column_index.insert(name.text.to_string(), index).is_some() {
            return Err(name.error("a column name that is not taken (a column's entries stand together)"));
        }
        self.columns.push(ColumnDraft {
            name: name.text.to_string(),
            line: name.line,
            kind: if self.is_integer_block { Kind::Integer } else { Kind::Continuous },
            cost: 0.0,
            lower: None,
            upper: None,
            has_bounds: false,
        });
        Ok(index)
    }

    /// RHS and RANGES: an optional set name, then pairs of row and value.
    fn pairs(
        &mut self,
        fields: &[Field<'_>],
        mut store: impl FnMut(&mut RowDraft, f64),
    ) -> Result<(), ReadError> {
        let pairs = &fields[fields.len() % 2..];
        if pairs.is_empty() || pairs.len() > 4 {
            return Err(fields[fields.len() - 1].error("one or two pairs of row and value"));
        }
        for pair in pairs.chunks_exact(2) {
            let index = self.known_row(&pair[0])?;
            let value = pair[1].bound()?;
            store(&mut self.rows[index], value);
        }
        Ok(())
    }

    fn known_row(&self, name: &Field<'_>) -> Result<usize, ReadError> {
        let known = self.row_index.get(&*name.text).copied();
        known.ok_or_else(|| name.error("a row named in ROWS"))
    }

    fn bound(&mut self, fields: &[Field<'_>]) -> Result<(), ReadError> {
        let letters = fields[0].text.to_ascii_uppercase();
        let last = &fields[fields.len() - 1];
        let needs_value = match &*letters {
            "UP" | "LO" | "FX" | "UI" | "LI" => true,
            "FR" | "MI" | "PL" | "BV" => false,
            _ => return Err(fields[0].error("a bound type: UP, LO, FX, FR, MI, PL, BV, UI or LI")),
        };
        // the set name may be missing: the column is then the field after the type
        let is_named = |at: usize| fields.get(at).is_some_and(|f| self.column_index.contains_key(&*f.text));
        let at = match (needs_value, fields.len()) {
            (true, 4) => 2,
            (true, 3) => 1,
            (false, 3 | 4) if is_named(2) => 2,
            (false, 2..=4) => 1,
            _ => return Err(last.error("a bound type, a set name, a column and a value")),
        };
        let name = &fields[at];
        let column = self.column_index.get(&*name.text).copied();
        let column = &mut self.columns[column.ok_or_else(|| name.error("a column named in COLUMNS"))?];
        let value = if needs_value { fields[at + 1].bound()? } else { 0.0 };
        column.has_bounds = true;
        column.line = name.line;
        match &*letters {
            "UP" | "UI" => column.upper = Some(value),
            "LO" | "LI" => column.lower = Some(value),
            "FX" => (column.lower, column.upper) = (Some(value), Some(value)),
            "FR" => (column.lower, column.upper) = (Some(f64::NEG_INFINITY), Some(f64::INFINITY)),
            "MI" => column.lower = Some(f64::NEG_INFINITY),
            "PL" => column.upper = Some(f64::INFINITY),
            _ => (column.lower, column.upper) = (Some(0.0), Some(1.0)),
        }
        if matches!(&*letters, "BV" | "UI" | "LI") {
            column.kind = Kind::Integer;
        }
        Ok(())
    }

    fn finish(self) -> Result<Model, ReadError> {
        let mut model = Model::new(self.sense);
        model.set_name(&self.name);
        let at =
            |line: usize, name: &str, error: ModelError| ReadError::new(line, 1, name, error.to_string());
        for column in &self.columns {
            let (lower, upper) = column.range();
            model
                .variable(&column.name, column.kind, lower, upper)
                .and_then(|variable| model.set_cost(variable, column.cost))
                .map_err(|error| at(column.line, &column.name, error))?;
        }
        let mut terms: Vec<Vec<(Variable, f64)>> =
            self.rows.iter().map(|row| Vec::with_capacity(row.n_terms)).collect();
        for (row, column, value) in self.entries {
            terms[row].push((Variable(column as u32), value));
        }
        for (index, (row, terms)) in self.rows.iter().zip(terms).enumerate() {
            let added = if self.objective == Some(index) {
                model.set_offset(0.0 - row.right_hand_side)
            } else {
                let (lower, upper) = row.range();
                model.row(&row.name, lower, upper, terms).map(|_| ())
            };
            added.map_err(|error| at(row.line, &row.name, error))?;
        }
        Ok(model)
    }
}

impl ColumnDraft {
    fn range(&self) -> (f64, f64) {
        if self.kind == Kind::Integer && !self.has_bounds {
            return (0.0, 1.0);
        }
        let upper = self.upper.unwrap_or(f64::INFINITY);
        let default_lower = if upper < 0.0 { f64::NEG_INFINITY } else { 0.0 };
        (self.lower.unwrap_or(default_lower), upper)
    }
}

impl RowDraft {
    fn range(&self) -> (f64, f64) {
        let side = self.right_hand_side;
        match (self.letter, self.range) {
            (b'E', None) => (side, side),
            (b'E', Some(range)) if range < 0.0 => (side + range, side),
            (b'E', Some(range)) => (side, side + range),
            (b'L', range) => (range.map_or(f64::NEG_INFINITY, |range| side - range.abs()), side),
            (b'G', range) => (side, range.map_or(f64::INFINITY, |range| side + range.abs())),
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }
}

fn sense(word: &Field<'_>) -> Result<Sense, ReadError> {
    match &*word.text.to_ascii_uppercase() {
        "MAX" | "MAXIMIZE" | "MAXIMISE" => Ok(Sense::Maximize),
        "MIN" | "MINIMIZE" | "MINIMISE" => Ok(Sense::Minimize),
        _ => Err(word.error("MAX or MIN")),
    }
}
