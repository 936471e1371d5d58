//! Writing MPS: fields at the positions of the fixed format, so that short names and numbers make a valid
//! fixed file, and every file a valid free one.

use std::fmt::Write;

use crate::model::{Kind, Model, Sense};
use crate::range::Range;

/// The model as MPS text. It reads back equal, except that a range too wide for its distance to be an exact
/// number may move by one unit in the last place.
pub fn write_mps(model: &Model) -> String {
    let objective = objective_name(model);
    let mut out = String::with_capacity(64 + 40 * (model.n_terms() + model.n_variables() + model.n_rows()));
    let _ = writeln!(out, "NAME          {}", model.name());
    if model.sense() == Sense::Maximize {
        out.push_str("OBJSENSE\n    MAX\n");
    }
    let _ = writeln!(out, "ROWS\n N  {objective}");
    for row in model.rows() {
        let letter = form(model.row_range(row)).letter;
        let _ = writeln!(out, " {letter}  {}", model.row_name(row));
    }
    write_columns(&mut out, model, &objective);
    write_sides(&mut out, model, &objective);
    write_bounds(&mut out, model);
    out.push_str("ENDATA\n");
    out
}

fn objective_name(model: &Model) -> String {
    let mut name = "Obj".to_owned();
    while model.find_row(&name).is_some() {
        name.push('_');
    }
    name
}

fn write_columns(out: &mut String, model: &Model, objective: &str) {
    out.push_str("COLUMNS\n");
    let columns = model.by_column();
    let mut is_integer_block = false;
    let mut n_markers = 0;
    for variable in model.variables() {
        let is_integer = model.kind(variable) == Kind::Integer;
        if is_integer != is_integer_block {
            let word = if is_integer { "'INTORG'" } else { "'INTEND'" };
            let _ = writeln!(out, "    MARK{n_markers:04}  'MARKER'                 {word}");
            is_integer_block = is_integer;
            n_markers += 1;
        }
        let (name, cost, entries) =
            (model.variable_name(variable), model.cost(variable), columns.of(variable));
        if cost != 0.0 || entries.is_empty() {
            let _ = writeln!(out, "    {name:<8}  {objective:<8}  {cost}");
        }
        for &(row, value) in entries {
            let _ = writeln!(out, "    {name:<8}  {:<8}  {value}", model.row_name(row));
        }
    }
    if is_integer_block {
        let _ = writeln!(out, "    MARK{n_markers:04}  'MARKER'                 'INTEND'");
    }
}

fn write_sides(out: &mut String, model: &Model, objective: &str) {
    out.push_str("RHS\n");
    if model.offset() != 0.0 {
        let _ = writeln!(out, "    RHS_V     {objective:<8}  {}", -model.offset());
    }
    let mut ranges = String::new();
    for row in model.rows() {
        let Form { side, range, .. } = form(model.row_range(row));
        let name = model.row_name(row);
        if side != 0.0 {
            let _ = writeln!(out, "    RHS_V     {name:<8}  {side}");
        }
        if let Some(range) = range {
            let _ = writeln!(ranges, "    RANGE     {name:<8}  {range}");
        }
    }
    if !ranges.is_empty() {
        out.push_str("RANGES\n");
        out.push_str(&ranges);
    }
}

/// How a row's range is said in MPS.
struct Form {
    letter: char,
    side: f64,
    range: Option<f64>,
}

fn form(Range { lower, upper }: Range) -> Form {
    let plain = |letter, side| Form { letter, side, range: None };
    match (lower.is_finite(), upper.is_finite()) {
        (false, false) => plain('N', 0.0),
        (false, true) => plain('L', upper),
        (true, false) => plain('G', lower),
        (true, true) if lower == upper => plain('E', lower),
        (true, true) => {
            let distance = upper - lower;
            let tries = [distance, distance.next_up(), distance.next_down()];
            let exact = tries.into_iter().find(|&range| upper - range == lower);
            if let Some(range) = exact {
                return Form { letter: 'L', side: upper, range: Some(range) };
            }
            let exact = tries.into_iter().find(|&range| lower + range == upper);
            Form { letter: 'G', side: lower, range: Some(exact.unwrap_or(distance)) }
        }
    }
}

fn write_bounds(out: &mut String, model: &Model) {
    out.push_str("BOUNDS\n");
    for variable in model.variables() {
        let name = model.variable_name(variable);
        let mut say = |letters: &str, value: Option<f64>| {
            let _ = match value {
                None => writeln!(out, " {letters} BOUND     {name}"),
                Some(value) => writeln!(out, " {letters} BOUND     {name:<8}  {value}"),
            };
        };
        let Range { lower, upper } = model.range(variable);
        let is_integer = model.kind(variable) == Kind::Integer;
        if is_integer && lower == 0.0 && upper == 1.0 {
            say("BV", None);
        } else if lower == upper {
            say("FX", Some(lower));
        } else if lower == f64::NEG_INFINITY && upper == f64::INFINITY {
            say("FR", None);
        } else {
            if lower == f64::NEG_INFINITY {
                say("MI", None);
            } else if lower != 0.0 {
                say("LO", Some(lower));
            }
            if upper.is_finite() {
                say("UP", Some(upper));
            } else if is_integer {
                // an integer without any bound would read back as binary
                say("PL", None);
            }
        }
    }
}
