//! GPEmu's tables: `compute/forward|backward/GPU/MODEL/time_by_batch_size.csv`,
//! `transfer/GPU/MODEL/data_transfer_time_by_batch_size.csv` and `memory/GPU/MODEL/memory.csv`.

use std::collections::BTreeMap;

use rota_core::profile::{Profile, ScaleCurve};

use super::Imported;
use crate::error::InputError;
use crate::profile::{ProfileEntry, ProfileSet};
use crate::rows::{BadRows, Rows};
use crate::source::Source;

const TIMES: &str = "time_by_batch_size.csv";
const TRANSFERS: &str = "data_transfer_time_by_batch_size.csv";
const MEMORY: &str = "memory.csv";

/// What is known of a model on a GPU, by batch size.
#[derive(Default)]
struct Known {
    forward_s: BTreeMap<u32, f64>,
    backward_s: BTreeMap<u32, f64>,
    transfer_s: BTreeMap<u32, f64>,
    peak_mb: BTreeMap<u32, f64>,
}

/// Whether a file is one of GPEmu's.
pub(super) fn knows(file: &str) -> bool {
    [TIMES, TRANSFERS, MEMORY].contains(&file)
}

pub(super) fn read(sources: &[Source]) -> Result<Imported, InputError> {
    let mut known: BTreeMap<(String, String), Known> = BTreeMap::new();
    for source in sources {
        let mut folders = source.name.rsplit(['/', '\\']);
        let (file, model, gpu, kind) = (folders.next(), folders.next(), folders.next(), folders.next());
        let (Some(file), Some(model), Some(gpu)) = (file, model, gpu) else {
            return Err(InputError::expected(&source.name, "a path that ends in GPU/MODEL/FILE"));
        };
        let of = known.entry((model.to_owned(), gpu.to_owned())).or_default();
        match (file, kind) {
            (TIMES, Some("forward")) => of.forward_s = table(source, "Time_In_SECONDS")?,
            (TIMES, Some("backward")) => of.backward_s = table(source, "Time_In_SECONDS")?,
            (TRANSFERS, _) => of.transfer_s = table(source, "Time_In_SECONDS")?,
            (MEMORY, _) => of.peak_mb = table(source, "peak")?,
            _ => {
                let what = "times below forward/ or backward/, transfer times, or memory.csv";
                return Err(InputError::expected(&source.name, what));
            }
        }
    }
    let mut notes = Vec::new();
    let mut models: BTreeMap<String, ProfileEntry> = BTreeMap::new();
    for ((model, gpu), of) in &known {
        let curves: Vec<ScaleCurve> = of.curves(gpu);
        let Some(first) = curves.first() else {
            notes.push(format!("{model} on {gpu}: no batch has forward and backward times, left out"));
            continue;
        };
        let entry = models.entry(model.clone()).or_insert_with(|| {
            let profile = Profile {
                source: "GPEmu's profiles".to_owned(),
                batch: first.batch,
                ..Profile::plain(model.as_str(), first.rate(1))
            };
            ProfileEntry { iteration_s: None, ..ProfileEntry::new(profile) }
        });
        let profile = std::sync::Arc::make_mut(&mut entry.profile);
        // One number for all batches: the largest, so that a job that fits by it does fit.
        let peak_mb = of.peak_mb.values().copied().fold(0.0, f64::max);
        profile.gpu_mem_bytes = profile.gpu_mem_bytes.max((peak_mb * 1e6) as u64);
        profile.scale.extend(curves);
    }
    notes.push(
        "times hold for one GPU; CPUs, memory and storage are real in GPEmu and not part of its profiles"
            .to_owned(),
    );
    Ok(Imported { set: ProfileSet::new("gpemu", models.into_values().collect()), notes })
}

impl Known {
    /// One GPU by batch: forward, backward and the copy to the GPU, one after the other.
    fn curves(&self, gpu: &str) -> Vec<ScaleCurve> {
        let both =
            self.forward_s.iter().filter_map(|(batch, s)| Some((*batch, s + self.backward_s.get(batch)?)));
        both.map(|(batch, seconds)| {
            let seconds = seconds + self.transfer_s.get(&batch).copied().unwrap_or(0.0);
            ScaleCurve { gpu_type: gpu.to_owned(), batch, points: vec![(1, 1.0 / seconds)] }
        })
        .collect()
    }
}

fn table(source: &Source, value: &str) -> Result<BTreeMap<u32, f64>, InputError> {
    let rows = Rows::with_header(source)?;
    let batch = rows.need(&["Batch_Size", "batch_size"])?;
    let value = rows.need(&[value])?;
    let mut found = BTreeMap::new();
    rows.each(BadRows::Refuse, |row| {
        found.insert(row.whole(batch)?, row.positive(value)?);
        Ok(())
    })?;
    Ok(found)
}
