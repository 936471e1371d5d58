//! Gavel's table of speeds: job types alone and in pairs, by GPU type.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use rota_scripts::artifact::gavel::Speeds;
use rota_traces::error::InputError;
use rota_traces::source::Source;
use serde_json::Value;
use smallvec::{SmallVec, smallvec};

use crate::conform::parse_json;

type Json = BTreeMap<String, BTreeMap<String, BTreeMap<String, Value>>>;

/// The table, read when the first case needs it.
pub(super) struct SpeedTable {
    path: PathBuf,
    read: OnceLock<Json>,
}

impl SpeedTable {
    pub(super) fn at(path: PathBuf) -> Self {
        SpeedTable { path, read: OnceLock::new() }
    }

    fn json(&self) -> Result<&Json, InputError> {
        if let Some(json) = self.read.get() {
            return Ok(json);
        }
        let json = parse_json(&Source::open(&self.path)?)?;
        Ok(self.read.get_or_init(|| json))
    }

    /// The speeds of kinds, which are job types with a GPU count, on GPU types in this order.
    pub(super) fn speeds(&self, kinds: &[String], types: &[String]) -> Result<Speeds, InputError> {
        let json = self.json()?;
        let missing = |what: String| InputError::expected(&self.path.display().to_string(), what);
        let mut speeds =
            Speeds { alone: vec![smallvec![0.0; types.len()]; kinds.len()], pairs: BTreeMap::new() };
        for (t, gpu_type) in types.iter().enumerate() {
            let table = json.get(gpu_type).ok_or_else(|| missing(format!("speeds on {gpu_type}")))?;
            for (kind, name) in kinds.iter().enumerate() {
                let of = table.get(name).ok_or_else(|| missing(format!("speeds of {name} on {gpu_type}")))?;
                let alone = of.get("null").and_then(Value::as_f64);
                speeds.alone[kind][t] =
                    alone.ok_or_else(|| missing(format!("steps per second of {name} on {gpu_type}")))?;
                for (mate, other) in kinds.iter().enumerate() {
                    let Some(pair) = of.get(other).and_then(Value::as_array) else { continue };
                    let rate = |at: usize| pair.get(at).and_then(Value::as_f64).unwrap_or(0.0);
                    let nothing: SmallVec<[[f64; 2]; 4]> = smallvec![[0.0; 2]; types.len()];
                    speeds.pairs.entry((kind, mate)).or_insert(nothing)[t] = [rate(0), rate(1)];
                }
            }
        }
        Ok(speeds)
    }
}
