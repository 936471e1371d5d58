//! Names close to a misspelt one. The distance counts letters left out, added, changed and swapped with a neighbour.

use strsim::osa_distance;

/// The candidates nearest to `name`, best first, three at most; none when all are far off.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = name.to_lowercase();
    let farthest = (name.chars().count() / 3).max(1) + 1;
    let mut close: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .map(|candidate| (osa_distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= farthest)
        .collect();
    close.sort_unstable();
    close.dedup();
    close.into_iter().map(|(_, candidate)| candidate).take(3).collect()
}

/// A sentence that offers the nearest names, if there are any.
pub(crate) fn hint<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let close = nearest(name, candidates);
    let quoted: Vec<String> = close.iter().map(|c| format!("`{c}`")).collect();
    match quoted.as_slice() {
        [] => None,
        [one] => Some(format!("did you mean {one}?")),
        [others @ .., last] => Some(format!("did you mean {} or {last}?", others.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_left_out_added_changed_and_swapped_count_one_each() {
        for (name, meant) in [
            ("gpu", "gpus"),
            ("gpuss", "gpus"),
            ("cpus", "gpus"),
            ("qeue", "queue"),
            ("atained", "attained"),
            ("gpsu", "gpus"),
        ] {
            assert_eq!(nearest(name, [meant]), [meant], "{name}");
        }
    }

    #[test]
    fn far_names_are_not_offered() {
        assert_eq!(nearest("atained", ["attained", "arrival", "gpus"]), ["attained"]);
        assert_eq!(hint("zzz", ["attained", "arrival"]), None);
        assert_eq!(hint("gpu", ["gpus", "cpus"]), Some("did you mean `gpus` or `cpus`?".into()));
    }
}
