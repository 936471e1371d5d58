//! Jobs and models as scripts see them, and what a script returns as cells of a trace.

use rhai::{Array, Dynamic, Map};

use super::{Cells, JobFacts, ModelFacts};
use crate::language::nearest::hint;
use crate::values::{number, type_label};

/// A column that does not exist, or a value that is no cell.
#[derive(Debug, thiserror::Error)]
pub(super) enum WrongCell {
    #[error("a job has no column `{name}`: the columns are {}", .columns.join(", "))]
    Column { name: String, columns: &'static [&'static str] },
    #[error("gpu_levels: whole numbers are expected")]
    Levels,
    #[error("deadline_s: a time, or an array of [time, value] with ascending times, is expected")]
    Steps,
    #[error("{name}: an Array is not a cell")]
    Array { name: String },
    #[error("{name}: {number} is not a finite number")]
    NotFinite { name: String, number: f64 },
    #[error("{name}: {label} is not a cell")]
    Type { name: String, label: String },
}

impl WrongCell {
    /// The column that may have been meant.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            WrongCell::Column { name, columns } => hint(name, columns.iter().copied()),
            _ => None,
        }
    }
}

/// A job as a map.
pub(super) fn job(facts: &JobFacts) -> Map {
    let entries: [(&str, Dynamic); 10] = [
        ("number", (facts.number as i64).into()),
        ("name", facts.name.clone().into()),
        ("tenant", facts.tenant.clone().into()),
        ("arrival_s", facts.arrival_s.into()),
        ("duration_s", facts.duration_s.into()),
        ("gpus", i64::from(facts.gpus).into()),
        ("model", facts.model.clone().into()),
        ("batch", i64::from(facts.batch).into()),
        ("ended", facts.ended.clone().into()),
        ("deadline_s", facts.deadline_s.map_or(Dynamic::UNIT, Dynamic::from)),
    ];
    entries.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// A model as a map.
pub(super) fn model(facts: &ModelFacts) -> Dynamic {
    let numbers = |numbers: &[u32]| -> Array { numbers.iter().map(|n| i64::from(*n).into()).collect() };
    let levels: Map = facts
        .levels
        .iter()
        .map(|(batch, levels)| (batch.to_string().into(), numbers(levels).into()))
        .collect();
    let entries: [(&str, Dynamic); 7] = [
        ("name", facts.name.clone().into()),
        ("class", facts.class.clone().into()),
        ("batches", numbers(&facts.batches).into()),
        ("levels", levels.into()),
        ("cpu_gain", facts.cpu_gain.into()),
        ("mem_gain", facts.mem_gain.into()),
        ("gpu_mem_gb", (facts.gpu_mem_bytes as f64 / 1e9).into()),
    ];
    Dynamic::from(entries.into_iter().map(|(name, value)| (name.into(), value)).collect::<Map>())
}

/// What a script says of a job, as text by column.
pub(super) fn cells(map: Map, columns: &'static [&'static str]) -> Result<Cells, WrongCell> {
    let mut cells = Cells::new();
    for (name, value) in map {
        if !columns.contains(&name.as_str()) {
            return Err(WrongCell::Column { name: name.into(), columns });
        }
        cells.insert(name.to_string(), cell(&name, &value)?);
    }
    Ok(cells)
}

fn cell(name: &str, value: &Dynamic) -> Result<String, WrongCell> {
    if value.is_unit() {
        return Ok(String::new());
    }
    if let Some(list) = value.read_lock::<Array>() {
        return match name {
            "gpu_levels" => {
                let levels: Option<Vec<String>> =
                    list.iter().map(|level| level.as_int().ok().map(|n| n.to_string())).collect();
                levels.map(|levels| levels.join("-")).ok_or(WrongCell::Levels)
            }
            "deadline_s" => {
                let steps: Option<Vec<String>> = list.iter().map(step).collect();
                steps.map(|steps| steps.join("|")).ok_or(WrongCell::Steps)
            }
            _ => Err(WrongCell::Array { name: name.into() }),
        };
    }
    match number(value) {
        Some(number) if !number.is_finite() => Err(WrongCell::NotFinite { name: name.into(), number }),
        Some(number) => Ok(number.to_string()),
        None if value.is_string() => Ok(value.to_string()),
        None => Err(WrongCell::Type { name: name.into(), label: type_label(value).into() }),
    }
}

/// A time and what the job is worth until then.
fn step(step: &Dynamic) -> Option<String> {
    let pair = step.read_lock::<Array>()?;
    match pair.as_slice() {
        [time, value] => Some(format!("{}:{}", number(time)?, number(value)?)),
        _ => None,
    }
}
