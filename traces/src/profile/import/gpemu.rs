//! GPEmu's tables: `compute/forward|backward/GPU/MODEL/time_by_batch_size.csv`,
//! `transfer/GPU/MODEL/data_transfer_time_by_batch_size.csv` and `memory/GPU/MODEL/memory.csv`.
//!
//! GPEmu publishes its folder with gaps: a model may have its memory and no times, on one GPU and not on another. What is
//! there is read, what is not is named.

use std::collections::BTreeMap;

use rota_core::profile::{Profile, ScaleCurve};

use super::{ImportOptions, Imported};
use crate::error::InputError;
use crate::profile::{ProfileEntry, ProfileSet};
use crate::rows::{BadRows, Row, Rows};
use crate::source::Source;

const TIMES: &str = "time_by_batch_size.csv";
const TRANSFERS: &str = "data_transfer_time_by_batch_size.csv";
const MEMORY: &str = "memory.csv";

/// The batch size of a model's own numbers, unless the options give one; the nearest that was measured is taken.
const USUAL_BATCH: u32 = 64;
/// Names in one note; past these they are counted.
const MOST_NAMED: usize = 12;

/// What is known of a model on a GPU, by batch size.
#[derive(Default)]
struct Known {
    forward_s: BTreeMap<u32, f64>,
    backward_s: BTreeMap<u32, f64>,
    transfer_s: BTreeMap<u32, f64>,
    peak_mb: BTreeMap<u32, f64>,
}

/// Everything that was read, by model and GPU.
type Tables = BTreeMap<(String, String), Known>;

/// Whether a file is one of GPEmu's.
pub(super) fn knows(file: &str) -> bool {
    [TIMES, TRANSFERS, MEMORY].contains(&file)
}

pub(super) fn read(sources: &[Source], options: &ImportOptions) -> Result<Imported, InputError> {
    let (known, strangers) = tables(sources)?;
    let mut notes = gaps(&known);
    notes.extend(note("passed over, none of GPEmu's tables", strangers));
    let wanted = if options.batch > 0 { options.batch } else { USUAL_BATCH };
    let mut models: BTreeMap<&str, ProfileEntry> = BTreeMap::new();
    for ((model, gpu), of) in &known {
        let curves = of.curves(gpu);
        let Some(usual) = curves.iter().min_by_key(|curve| (curve.batch.abs_diff(wanted), curve.batch))
        else {
            continue;
        };
        let batch = usual.batch;
        let entry = models.entry(model).or_insert_with(|| plain(model, batch, 1.0 / usual.rate(1)));
        let profile = std::sync::Arc::make_mut(&mut entry.profile);
        profile.gpu_mem_bytes = profile.gpu_mem_bytes.max(of.peak_bytes(profile.batch));
        profile.scale.extend(curves);
    }
    notes.push(format!(
        "times hold for one GPU; a job that names no batch has {wanted} (or the nearest measured), and GPU memory is that \
         batch's; CPUs, memory and storage are real in GPEmu and not part of its profiles"
    ));
    Ok(Imported { set: ProfileSet::new("gpemu", models.into_values().collect()), notes })
}

/// Reads every table; files that are none of GPEmu's are named.
fn tables(sources: &[Source]) -> Result<(Tables, Vec<String>), InputError> {
    let (mut known, mut strangers) = (Tables::new(), Vec::new());
    for source in sources {
        let mut folders = source.name.rsplit(['/', '\\']);
        let (file, model, gpu, kind) = (folders.next(), folders.next(), folders.next(), folders.next());
        if !matches!(
            (file, kind),
            (Some(TIMES), Some("forward" | "backward")) | (Some(TRANSFERS | MEMORY), _)
        ) {
            strangers.push(source.name.clone());
            continue;
        }
        let (Some(model), Some(gpu)) = (model, gpu) else {
            return Err(InputError::expected(&source.name, "a path that ends in GPU/MODEL/FILE"));
        };
        let of = known.entry((model.to_owned(), gpu_type(gpu))).or_default();
        match (file, kind) {
            (Some(MEMORY), _) => of.peak_mb = table(source, "peak")?,
            (Some(TRANSFERS), _) => of.transfer_s = table(source, "Time_In_SECONDS")?,
            (_, Some("forward")) => of.forward_s = table(source, "Time_In_SECONDS")?,
            _ => of.backward_s = table(source, "Time_In_SECONDS")?,
        }
    }
    Ok((known, strangers))
}

/// GPEmu's folder `Tesla_V100-PCIE-32GB` is the GPU that an agent finds as `V100-PCIE-32GB`.
fn gpu_type(folder: &str) -> String {
    let name = folder.replace('_', " ");
    name.trim_start_matches("NVIDIA ").trim_start_matches("Tesla ").to_owned()
}

/// A model of which nothing is known yet but the time of one iteration.
fn plain(model: &str, batch: u32, iteration_s: f64) -> ProfileEntry {
    let profile =
        Profile { source: "GPEmu's profiles".to_owned(), batch, ..Profile::plain(model, 1.0 / iteration_s) };
    ProfileEntry { iteration_s: Some(iteration_s), ..ProfileEntry::new(profile) }
}

/// Which tables are missing, kind by kind.
fn gaps(known: &Tables) -> Vec<String> {
    let without = |is_missing: &dyn Fn(&Known) -> bool| {
        let pairs = known.iter().filter(|(_, of)| is_missing(of));
        pairs.map(|((model, gpu), _)| format!("{model} on {gpu}")).collect::<Vec<_>>()
    };
    let has_speed = |of: &Known| !of.curves("").is_empty();
    let kinds = [
        note("left out, no forward times", without(&|of| of.forward_s.is_empty())),
        note("left out, no backward times", without(&|of| of.backward_s.is_empty())),
        note(
            "left out, no batch size with both times",
            without(&|of| !of.forward_s.is_empty() && !of.backward_s.is_empty() && !has_speed(of)),
        ),
        note("no transfer times, counted as 0", without(&|of| has_speed(of) && of.transfer_s.is_empty())),
        note("no memory.csv, GPU memory unknown", without(&|of| has_speed(of) && of.peak_mb.is_empty())),
    ];
    kinds.into_iter().flatten().collect()
}

/// A note that lists these names, unless there are none.
fn note(what: &str, names: Vec<String>) -> Option<String> {
    let more = match names.len().checked_sub(MOST_NAMED) {
        Some(more) if more > 0 => format!(" and {more} more"),
        _ => String::new(),
    };
    let shown: Vec<&str> = names.iter().take(MOST_NAMED).map(String::as_str).collect();
    (!names.is_empty()).then(|| format!("{what}: {}{more}", shown.join(", ")))
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

    /// Memory at its highest with this batch, or with the next larger that was measured; 0 when that is unknown.
    fn peak_bytes(&self, batch: u32) -> u64 {
        let at_least = self.peak_mb.range(batch..).next().or_else(|| self.peak_mb.last_key_value());
        at_least.map_or(0, |(_, peak_mb)| (peak_mb * 1e6) as u64)
    }
}

fn table(source: &Source, value: &str) -> Result<BTreeMap<u32, f64>, InputError> {
    let rows = Rows::with_header(source)?;
    let batch = rows.need(&["Batch_Size", "batch_size"])?;
    let value = rows.need(&[value])?;
    let mut found = BTreeMap::new();
    rows.each(BadRows::Refuse, |row| {
        found.insert(batch_size(row, batch)?, row.positive(value)?);
        Ok(())
    })?;
    Ok(found)
}

/// A whole number, which many of the tables write as `1.0`.
fn batch_size(row: &Row<'_>, column: usize) -> Result<u32, InputError> {
    match row.text(column).parse::<f64>() {
        Ok(batch) if batch.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&batch) => Ok(batch as u32),
        _ => Err(row.expected(column, "a batch size, a whole number of at least 1")),
    }
}
