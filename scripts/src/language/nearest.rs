//! Names close to a misspelt one.

/// The candidates nearest to `name`, best first, three at most; none when all are far off.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = name.to_lowercase();
    let farthest = (name.chars().count() / 3).max(1) + 1;
    let mut close: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .map(|candidate| (distance(&wanted, &candidate.to_lowercase()), candidate))
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

/// Edit distance in which swapping two neighbouring letters counts one (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_left_out_added_changed_and_swapped_count_one_each() {
        for (a, b, expected) in [
            ("gpus", "gpu", 1),
            ("gpus", "gpuss", 1),
            ("gpus", "cpus", 1),
            ("qeue", "queue", 1),
            ("atained", "attained", 1),
            ("gpsu", "gpus", 1),
            ("", "abc", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn far_names_are_not_offered() {
        assert_eq!(nearest("atained", ["attained", "arrival", "gpus"]), ["attained"]);
        assert_eq!(hint("zzz", ["attained", "arrival"]), None);
        assert_eq!(hint("gpu", ["gpus", "cpus"]), Some("did you mean `gpus` or `cpus`?".into()));
    }
}
