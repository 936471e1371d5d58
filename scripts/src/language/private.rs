//! Private memory: plain data that a part keeps between rounds in the map it sees as `this`.
//!
//! It goes into the journal as text, so it must be plain: numbers, words, switches, arrays and maps of these.

use rhai::{Array, Dynamic, Engine, EvalAltResult, ImmutableString, Map};

/// One part's memory.
#[derive(Clone, Debug)]
pub(crate) struct Private(Dynamic);

/// Private memory that cannot be kept, or cannot be put back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MemoryError {
    #[error("`this` must stay a map: give it fields instead of replacing it")]
    Replaced,
    #[error("`this.{key}` holds {}: private memory is plain data (numbers, words, switches, arrays, maps)", odd.0)]
    NotPlain { key: String, odd: Odd },
    #[error("private memory takes more than {most} bytes")]
    TooLarge { most: usize },
    #[error("memory of {kept} parts for a policy of {n_parts}")]
    OtherParts { kept: usize, n_parts: usize },
    #[error("memory `{line}`: {why}")]
    Unreadable { line: String, why: String },
}

/// What a value is that is not plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Odd(String);

impl Default for Private {
    fn default() -> Self {
        Private(Dynamic::from(Map::new()))
    }
}

impl Private {
    pub(crate) fn value(&mut self) -> &mut Dynamic {
        &mut self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.read_lock::<Map>().is_some_and(|map| map.is_empty())
    }

    /// Whether it is plain data of no more than `most` bytes as text.
    pub(crate) fn check(&self, most: usize) -> Result<(), MemoryError> {
        let Some(map) = self.0.read_lock::<Map>() else {
            return Err(MemoryError::Replaced);
        };
        if map.is_empty() {
            return Ok(());
        }
        let mut bytes = 0;
        for (key, value) in map.iter() {
            let weight = weigh(value).map_err(|odd| MemoryError::NotPlain { key: key.to_string(), odd })?;
            bytes += key.len() + weight;
        }
        match bytes > most {
            true => Err(MemoryError::TooLarge { most }),
            false => Ok(()),
        }
    }
}

/// About how many bytes a value takes as text, or what it is when it is not plain.
fn weigh(value: &Dynamic) -> Result<usize, Odd> {
    if value.is_unit() || value.is_bool() || value.is_int() {
        return Ok(8);
    }
    if let Ok(number) = value.as_float() {
        return if number.is_finite() { Ok(8) } else { Err(Odd(number.to_string())) };
    }
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return Ok(text.len() + 2);
    }
    if let Some(array) = value.read_lock::<Array>() {
        return array.iter().try_fold(2, |sum, item| Ok(sum + weigh(item)?));
    }
    if let Some(map) = value.read_lock::<Map>() {
        return map.iter().try_fold(2, |sum, (key, item)| Ok(sum + key.len() + weigh(item)?));
    }
    Err(Odd(crate::values::type_label(value).to_owned()))
}

/// All memories as text: one JSON object for each part, a line each; empty when no part remembers anything.
pub(crate) fn text(memories: &[Private]) -> String {
    if memories.iter().all(Private::is_empty) {
        return String::new();
    }
    let line = |memory: &Private| {
        memory.0.read_lock::<Map>().map_or_else(|| "{}".to_owned(), |map| rhai::format_map_as_json(&map))
    };
    memories.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Memories from what [`text`] wrote.
pub(crate) fn restore(engine: &Engine, n_parts: usize, text: &str) -> Result<Vec<Private>, MemoryError> {
    if text.is_empty() {
        return Ok(vec![Private::default(); n_parts]);
    }
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() != n_parts {
        return Err(MemoryError::OtherParts { kept: lines.len(), n_parts });
    }
    let read = |line: &&str| {
        let unreadable = |error: Box<EvalAltResult>| MemoryError::Unreadable {
            line: (*line).to_owned(),
            why: error.to_string(),
        };
        let map = engine.parse_json(*line, true).map_err(unreadable)?;
        Ok(Private(Dynamic::from(map)))
    };
    lines.iter().map(read).collect()
}
