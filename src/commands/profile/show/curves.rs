//! A model's curves over batch sizes, GPU counts and GPU types as tables that fit a screen.

use std::collections::BTreeSet;

use rota_core::profile::{Profile, ScaleCurve};

use super::super::new_table;

/// Batch sizes that are shown unless all are asked for.
const MOST_BATCHES: usize = 10;

/// Batch sizes as a person would say them: `16,32,64`, or `1..256` when there are many.
pub(super) fn batches_text(profile: &Profile) -> String {
    let batches = batches(&profile.scale);
    match (batches.first(), batches.last()) {
        (Some(first), Some(last)) if batches.len() > 4 => format!("{first}..{last}"),
        (None, _) => profile.batch.to_string(),
        _ => batches.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
    }
}

/// The GPU types of a model's curves, each once; nothing where curves hold for any.
pub(super) fn gpu_types(profile: &Profile) -> BTreeSet<&str> {
    profile.scale.iter().map(|curve| curve.gpu_type.as_str()).filter(|name| !name.is_empty()).collect()
}

/// Iterations per second: by GPUs for each type, or by type where nothing but one GPU was measured.
pub(super) fn tables(profile: &Profile, is_all: bool) -> String {
    let all = batches(&profile.scale);
    let shown = if is_all { all.clone() } else { thinned(&all) };
    let is_single = profile.scale.iter().all(|curve| curve.points.iter().all(|(gpus, _)| *gpus == 1));
    let mut text = match (profile.scale.is_empty(), is_single) {
        (true, _) => return String::new(),
        (false, true) => by_type(profile, &shown),
        (false, false) => by_gpus(profile, &shown),
    };
    if shown.len() < all.len() {
        text += &format!("{} of {} batch sizes; --all shows every one\n", shown.len(), all.len());
    }
    text
}

fn batches(curves: &[ScaleCurve]) -> Vec<u32> {
    curves.iter().map(|curve| curve.batch).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The ends and the powers of two, where these are fewer.
fn thinned(batches: &[u32]) -> Vec<u32> {
    if batches.len() <= MOST_BATCHES {
        return batches.to_vec();
    }
    let is_end = |batch: &u32| Some(batch) == batches.first() || Some(batch) == batches.last();
    batches.iter().copied().filter(|batch| batch.is_power_of_two() || is_end(batch)).collect()
}

/// A row for each batch, a column for each GPU type.
fn by_type(profile: &Profile, batches: &[u32]) -> String {
    let mut types: Vec<&str> = gpu_types(profile).into_iter().collect();
    if types.is_empty() {
        types.push("");
    }
    let heading = |name: &&str| if name.is_empty() { "any GPU".to_owned() } else { (*name).to_owned() };
    let headings: Vec<String> = ["batch".to_owned()].into_iter().chain(types.iter().map(heading)).collect();
    let mut table = new_table(&headings.iter().map(String::as_str).collect::<Vec<_>>(), 0);
    for batch in batches {
        let cell = |name: &&str| {
            let curve = profile.scale.iter().find(|c| c.batch == *batch && c.gpu_type == **name);
            curve.map_or(String::new(), |curve| rate_text(curve.rate(1)))
        };
        table.add_row([batch.to_string()].into_iter().chain(types.iter().map(cell)));
    }
    format!("iterations per second on one GPU, by batch and GPU:\n{table}\n")
}

/// For each GPU type a row for each batch and a column for each number of GPUs.
fn by_gpus(profile: &Profile, batches: &[u32]) -> String {
    let mut text = String::new();
    let types: BTreeSet<&str> = profile.scale.iter().map(|curve| curve.gpu_type.as_str()).collect();
    for name in types {
        let of_type = || profile.scale.iter().filter(|curve| curve.gpu_type == name);
        let counts: BTreeSet<u32> =
            of_type().flat_map(|curve| &curve.points).map(|(gpus, _)| *gpus).collect();
        let heading = |n: &u32| if *n == 1 { "1 GPU".to_owned() } else { format!("{n} GPUs") };
        let headings = ["batch".to_owned()].into_iter().chain(counts.iter().map(heading));
        let headings: Vec<String> = headings.collect();
        let mut table = new_table(&headings.iter().map(String::as_str).collect::<Vec<_>>(), 0);
        let curve_of = |batch: &u32| of_type().find(|curve| curve.batch == *batch);
        for curve in batches.iter().filter_map(curve_of) {
            let cell = |gpus: &u32| {
                let point = curve.points.iter().find(|point| point.0 == *gpus);
                point.map_or(String::new(), |point| rate_text(point.1))
            };
            table.add_row([curve.batch.to_string()].into_iter().chain(counts.iter().map(cell)));
        }
        let on = if name.is_empty() { String::new() } else { format!(" on {name}") };
        text += &format!("iterations per second{on}, by batch and GPUs:\n{table}\n");
    }
    text
}

/// Four digits that count.
fn rate_text(rate: f64) -> String {
    let digits = (3 - rate.log10().floor() as i64).clamp(0, 6) as usize;
    format!("{rate:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_batch_sizes_are_thinned_to_the_ends_and_the_powers_of_two() {
        assert_eq!(thinned(&[3, 5, 7]), [3, 5, 7]);
        let many: Vec<u32> = (3..=250).collect();
        assert_eq!(thinned(&many), [3, 4, 8, 16, 32, 64, 128, 250]);
    }

    #[test]
    fn rates_have_four_digits_that_count() {
        assert_eq!(
            (rate_text(132.8), rate_text(0.012_345), rate_text(4.0)),
            ("132.8".into(), "0.01235".into(), "4.000".into())
        );
    }
}
