//! Writing LP text: exactly, for files, or for people's eyes through `Display`.

use std::borrow::Cow;
use std::fmt::{self, Write};

use super::lp_lexer::{is_name_character, why_not_a_name};
use crate::error::{Item, ModelError};
use crate::model::{Kind, Model, Sense, Variable};
use crate::range::Range;

/// The model as LP text. Refuses names the format cannot say.
pub fn write_lp(model: &Model) -> Result<String, ModelError> {
    let variables = model.variables().map(|v| (Item::Variable, model.variable_name(v)));
    let rows = model.rows().map(|r| (Item::Row, model.row_name(r)));
    for (item, name) in variables.chain(rows) {
        if let Some(why) = why_not_a_name(name) {
            return Err(ModelError::NotLpName { item, name: name.into(), why });
        }
    }
    let mut out = String::new();
    let _ = write(&mut out, model);
    Ok(out)
}

/// LP text; names the format cannot say are bent until it can.
impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self)
    }
}

fn write(out: &mut impl Write, model: &Model) -> fmt::Result {
    if !model.name().is_empty() {
        writeln!(out, "\\ {}", model.name())?;
    }
    let sense = if model.sense() == Sense::Maximize { "Maximize" } else { "Minimize" };
    write!(out, "{sense}\n obj:")?;
    // a variable that is used nowhere else is mentioned here, so that it exists
    let columns = model.by_column();
    let is_mentioned = |&v: &Variable| model.cost(v) != 0.0 || columns.of(v).is_empty();
    write_terms(out, model, model.variables().filter(is_mentioned).map(|v| (v, model.cost(v))))?;
    if model.offset() != 0.0 {
        write!(out, " {} {}", sign(model.offset()), model.offset().abs())?;
    }
    writeln!(out, "\nSubject To")?;
    for row in model.rows() {
        let Range { lower, upper } = model.row_range(row);
        write!(out, " {}:", bent(model.row_name(row)))?;
        let is_range = lower.is_finite() && upper.is_finite() && lower != upper;
        if is_range {
            write!(out, " {lower} <=")?;
        }
        if model.terms(row).len() == 0 {
            write!(out, " 0")?;
            if let Some(first) = model.variables().next() {
                write!(out, " {}", bent(model.variable_name(first)))?;
            }
        }
        write_terms(out, model, model.terms(row))?;
        match (lower.is_finite(), upper.is_finite()) {
            (_, true) if lower == upper => writeln!(out, " = {upper}")?,
            (_, true) => writeln!(out, " <= {upper}")?,
            (true, false) => writeln!(out, " >= {lower}")?,
            (false, false) => writeln!(out, " >= -inf")?,
        }
    }
    write_bounds(out, model)?;
    write_kinds(out, model)?;
    writeln!(out, "End")
}

fn write_terms(
    out: &mut impl Write,
    model: &Model,
    terms: impl Iterator<Item = (Variable, f64)>,
) -> fmt::Result {
    const TERMS_PER_LINE: usize = 10;
    for (position, (variable, coefficient)) in terms.enumerate() {
        if position > 0 && position % TERMS_PER_LINE == 0 {
            write!(out, "\n   ")?;
        }
        if position > 0 || coefficient < 0.0 {
            write!(out, " {}", sign(coefficient))?;
        }
        if coefficient.abs() != 1.0 {
            write!(out, " {}", coefficient.abs())?;
        }
        write!(out, " {}", bent(model.variable_name(variable)))?;
    }
    Ok(())
}

fn sign(number: f64) -> char {
    if number < 0.0 { '-' } else { '+' }
}

fn is_binary(model: &Model, variable: Variable) -> bool {
    model.kind(variable) == Kind::Integer && model.range(variable) == Range { lower: 0.0, upper: 1.0 }
}

fn write_bounds(out: &mut impl Write, model: &Model) -> fmt::Result {
    writeln!(out, "Bounds")?;
    for variable in model.variables().filter(|&v| !is_binary(model, v)) {
        let name = bent(model.variable_name(variable));
        let Range { lower, upper } = model.range(variable);
        match (lower.is_finite(), upper.is_finite()) {
            (false, false) => writeln!(out, " {name} free")?,
            (false, true) => writeln!(out, " -inf <= {name} <= {upper}")?,
            (true, false) if lower == 0.0 => {}
            (true, false) => writeln!(out, " {name} >= {lower}")?,
            (true, true) if lower == upper => writeln!(out, " {name} = {upper}")?,
            (true, true) => writeln!(out, " {lower} <= {name} <= {upper}")?,
        }
    }
    Ok(())
}

fn write_kinds(out: &mut impl Write, model: &Model) -> fmt::Result {
    let is_general = |&v: &Variable| model.kind(v) == Kind::Integer && !is_binary(model, v);
    let generals: Vec<Variable> = model.variables().filter(is_general).collect();
    let binaries: Vec<Variable> = model.variables().filter(|&v| is_binary(model, v)).collect();
    for (title, list) in [("General", generals), ("Binary", binaries)] {
        if !list.is_empty() {
            writeln!(out, "{title}")?;
        }
        for line in list.chunks(10) {
            let names: Vec<Cow<'_, str>> = line.iter().map(|&v| bent(model.variable_name(v))).collect();
            writeln!(out, " {}", names.join(" "))?;
        }
    }
    Ok(())
}

/// A name as LP text can say it.
fn bent(name: &str) -> Cow<'_, str> {
    if why_not_a_name(name).is_none() {
        return Cow::Borrowed(name);
    }
    let inner: String = name.chars().map(|c| if is_name_character(c) { c } else { '_' }).collect();
    Cow::Owned(format!("_{inner}"))
}
