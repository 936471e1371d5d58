//! ElasticFlow's throughput tables: `global_batch_size,1,2,4,…`, a file for each model, in a folder for each GPU type.

use std::collections::BTreeMap;

use rota_core::profile::{Profile, ScaleCurve};

use super::{ImportOptions, Imported, is_sound};
use crate::error::InputError;
use crate::profile::{ProfileEntry, ProfileSet};
use crate::source::Source;

pub(super) fn read(sources: &[Source], options: &ImportOptions) -> Result<Imported, InputError> {
    let mut notes = Vec::new();
    let mut models: BTreeMap<String, ProfileEntry> = BTreeMap::new();
    for source in sources {
        let curves = curves(source, &gpu_type(source, options), &mut notes)?;
        let model = options.model.clone().filter(|_| sources.len() == 1).unwrap_or_else(|| source.stem());
        let (Some(first), source_name) = (curves.first(), "ElasticFlow's throughput tables") else {
            continue;
        };
        let entry = models.entry(model.clone()).or_insert_with(|| {
            let profile = Profile {
                source: source_name.to_owned(),
                batch: first.batch,
                ..Profile::plain(model, first.rate(1))
            };
            ProfileEntry { iteration_s: None, ..ProfileEntry::new(profile) }
        });
        for curve in curves {
            entry.levels.entry(curve.batch).or_insert_with(|| growing(&curve));
            std::sync::Arc::make_mut(&mut entry.profile).scale.push(curve);
        }
    }
    Ok(Imported { set: ProfileSet::new("elasticflow", models.into_values().collect()), notes })
}

/// The folder of a file names the GPUs it was measured on, unless the options do.
fn gpu_type(source: &Source, options: &ImportOptions) -> String {
    let folder = source.name.rsplit(['/', '\\']).nth(1).unwrap_or_default();
    options.gpu_type.clone().unwrap_or_else(|| folder.trim_matches('.').to_owned())
}

fn curves(source: &Source, gpu_type: &str, notes: &mut Vec<String>) -> Result<Vec<ScaleCurve>, InputError> {
    let wrong = |line: usize, what: &str, value: &str| {
        InputError::expected(&source.name, what).at_line(line as u64 + 1).got(value)
    };
    let mut lines = source.text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (at, header) = lines.next().ok_or_else(|| InputError::expected(&source.name, "a table"))?;
    let counts: Vec<u32> = header
        .split(',')
        .skip(1)
        .map(|cell| cell.trim().parse().ok().filter(|n| *n > 0).ok_or(cell))
        .collect::<Result<_, _>>()
        .map_err(|cell| wrong(at, "numbers of GPUs after global_batch_size", cell))?;
    let mut curves = Vec::new();
    for (at, line) in lines {
        let mut cells = line.split(',').map(str::trim);
        let batch = cells.next().unwrap_or_default();
        let batch: u32 = batch.parse().map_err(|_| wrong(at, "a batch size", batch))?;
        let mut points = Vec::new();
        for (gpus, cell) in counts.iter().zip(cells) {
            match cell.parse::<f64>() {
                Ok(rate) if is_sound(rate) => points.push((*gpus, rate)),
                // Not measured, or out of memory.
                Ok(rate) if rate == 0.0 || rate.is_nan() => {}
                _ if cell.is_empty() => {}
                _ => return Err(wrong(at, "iterations per second", cell)),
            }
        }
        points.sort_by_key(|point| point.0);
        points.dedup_by_key(|point| point.0);
        if points.len() < counts.len() {
            let left_out = counts.len() - points.len();
            notes.push(format!("{}: batch {batch}: {left_out} empty cells left out", source.name));
        }
        if !points.is_empty() {
            curves.push(ScaleCurve { gpu_type: gpu_type.to_owned(), batch, points });
        }
    }
    Ok(curves)
}

/// GPU counts up to the one from which more GPUs are slower: what an elastic policy may give.
fn growing(curve: &ScaleCurve) -> Vec<u32> {
    let n = curve.points.windows(2).take_while(|pair| pair[1].1 > pair[0].1).count() + 1;
    curve.points.iter().take(n).map(|point| point.0).collect()
}
