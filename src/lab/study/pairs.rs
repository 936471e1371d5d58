//! Policies compared on the same seeds: what a seed does to both cancels out, so that few runs tell more.

use rota_scripts::study::{Comparison, Settings};

use super::table::{setting_text, settings_columns};
use super::{Column, FIGURES, Group, Ran, Table, groups};
use crate::statistics::compare;

/// Policies up to which each is compared with each; beyond, with the first alone.
const MAX_ALL: usize = 8;

/// Two policies that were asked the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// What they were asked, without policy and seed.
    pub settings: Settings,
    /// Policy that the other is compared with.
    pub baseline: String,
    /// Policy that is compared.
    pub policy: String,
    /// Name of the figure in `summary.json`.
    pub figure: &'static str,
    /// Differences and ratios, policy over baseline.
    pub comparison: Comparison,
}

/// Every comparison that the seeds allow: at least two that both policies ran.
pub fn pairs(runs: &[Ran]) -> Vec<Pair> {
    let groups = groups(runs);
    let mut pairs = Vec::new();
    for (at, baseline) in groups.iter().enumerate() {
        let alike = groups.iter().filter(|other| without_policy(other) == without_policy(baseline));
        let is_first = alike.clone().next() == Some(baseline);
        if !is_first && alike.count() > MAX_ALL {
            continue;
        }
        for other in groups[at + 1..].iter().filter(|other| without_policy(other) == without_policy(baseline))
        {
            pairs.extend(FIGURES.iter().filter_map(|(figure, _)| pair(runs, baseline, other, figure)));
        }
    }
    pairs
}

fn without_policy(group: &Group) -> Settings {
    group.settings.iter().filter(|(name, _)| name != "policy").cloned().collect()
}

fn pair(runs: &[Ran], baseline: &Group, other: &Group, figure: &'static str) -> Option<Pair> {
    let (mut of_baseline, mut of_other) = (Vec::new(), Vec::new());
    for (seed, at) in &baseline.seeds {
        let twin = other.seeds.iter().find(|(other_seed, _)| other_seed == seed).map(|(_, twin)| *twin);
        if let Some((base, value)) =
            runs[*at].figure(figure).zip(twin.and_then(|twin| runs[twin].figure(figure)))
        {
            of_baseline.push(base);
            of_other.push(value);
        }
    }
    let comparison = compare(&of_baseline, &of_other).filter(|comparison| comparison.difference.n > 1)?;
    Some(Pair {
        settings: without_policy(baseline),
        baseline: baseline.setting("policy"),
        policy: other.setting("policy"),
        figure,
        comparison,
    })
}

/// A number of a comparison, with its column's name.
type Named = (&'static str, fn(&Comparison) -> f64);

/// A row for each comparison.
pub(super) fn table(pairs: &[Pair]) -> Table {
    let settings: Vec<Settings> = pairs.iter().map(|pair| pair.settings.clone()).collect();
    let words = |word: fn(&Pair) -> &str| pairs.iter().map(|pair| Some(word(pair).to_owned())).collect();
    let mut columns = vec![
        Column::text("baseline", words(|pair| &pair.baseline)),
        Column::text("policy", words(|pair| &pair.policy)),
    ];
    columns.extend(settings_columns(&settings));
    columns.push(Column::text("figure", words(|pair| pair.figure)));
    let whole = |count: fn(&Comparison) -> usize| {
        pairs.iter().map(|pair| Some(count(&pair.comparison) as i64)).collect()
    };
    columns.push(Column::whole("n", whole(|c| c.difference.n)));
    columns.push(Column::whole("n_smaller", whole(|c| c.n_smaller)));
    let numbers: [Named; 6] = [
        ("difference", |c| c.difference.mean),
        ("difference_low", |c| c.difference.low),
        ("difference_high", |c| c.difference.high),
        ("ratio", |c| c.ratio.mean),
        ("ratio_low", |c| c.ratio.low),
        ("ratio_high", |c| c.ratio.high),
    ];
    for (name, number) in numbers {
        let known = |pair: &Pair| Some(number(&pair.comparison)).filter(|number| number.is_finite());
        columns.push(Column::number(name, pairs.iter().map(known).collect()));
    }
    Table { columns }
}

/// What a comparison was asked, for people: the settings that tell it from the others.
pub(super) fn asked(pair: &Pair, all: &[Pair]) -> String {
    let value = |pair: &Pair, name: &str| {
        pair.settings.iter().find(|(key, _)| key == name).map(|(_, setting)| setting_text(setting))
    };
    let tells = |name: &str| all.iter().any(|other| value(other, name) != value(pair, name));
    let named = pair.settings.iter().filter(|(name, _)| tells(name));
    named.map(|(name, setting)| format!("{name} {}", setting_text(setting))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::batch::samples::done;
    use super::*;

    #[test]
    fn only_seeds_that_both_ran_are_paired() {
        let runs = [
            done("las", 4.0, 1, 10.0),
            done("las", 4.0, 2, 20.0),
            done("las", 4.0, 3, 99.0),
            done("srtf", 4.0, 1, 5.0),
            done("srtf", 4.0, 2, 10.0),
            done("srtf", 8.0, 1, 1.0),
        ];
        let pairs = pairs(&runs);
        assert_eq!(pairs.len(), 1, "{pairs:?}");
        let pair = &pairs[0];
        assert_eq!((pair.baseline.as_str(), pair.policy.as_str()), ("las", "srtf"));
        assert_eq!(pair.comparison.difference.n, 2);
        assert_eq!((pair.comparison.difference.mean, pair.comparison.ratio.mean), (-7.5, 0.5));
        assert_eq!(pair.comparison.n_smaller, 2);
        assert_eq!(asked(pair, &pairs), "", "there is nothing to tell it from");
        let other = Pair { settings: Vec::new(), ..pair.clone() };
        assert_eq!(asked(pair, &[pair.clone(), other]), "jobs_per_hour 4");
    }
}
