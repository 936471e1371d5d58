//! Policies, and values of their parameters, compared on the same seeds: what a seed does to both cancels out, so that few
//! runs tell more.

use rota_scripts::study::{Comparison, Interval, Settings};

use super::table::{setting_text, settings_columns};
use super::{Column, FIGURES, Group, Ran, Table, groups};
use crate::statistics::compare;

/// Policies up to which each is compared with each; beyond, with the first alone.
const MAX_ALL: usize = 8;

/// Two policies, or settings of one, that were asked the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// What they were asked, without policy, its parameters and seed.
    pub settings: Settings,
    /// What the other is compared with: a policy, with its parameters where they tell it from others.
    pub baseline: String,
    /// What is compared, called alike.
    pub policy: String,
    /// Every setting of what is compared, without the seed.
    pub(super) variant: Settings,
    /// Name of the figure in `summary.json`.
    pub figure: &'static str,
    /// Differences and ratios, policy over baseline.
    pub comparison: Comparison,
}

/// Every comparison that the seeds allow: at least two that both policies ran.
pub fn pairs(runs: &[Ran]) -> Vec<Pair> {
    let groups = groups(runs);
    let named = Variant::all(&groups);
    let mut pairs = Vec::new();
    for (at, baseline) in named.iter().enumerate() {
        let is_alike = |other: &&Variant<'_>| other.asked == baseline.asked;
        let is_first = !named[..at].iter().any(|other| is_alike(&other));
        if !is_first && named.iter().filter(is_alike).count() > MAX_ALL {
            continue;
        }
        for other in named[at + 1..].iter().filter(is_alike) {
            pairs.extend(FIGURES.iter().filter_map(|(figure, _)| pair(runs, baseline, other, figure)));
        }
    }
    pairs
}

/// A group with what it was asked and what it is called.
struct Variant<'a> {
    group: &'a Group,
    asked: Settings,
    name: String,
}

impl<'a> Variant<'a> {
    fn all(groups: &'a [Group]) -> Vec<Self> {
        let named =
            |group: &'a Group| Variant { group, asked: asked_of(group), name: variant_name(group, groups) };
        groups.iter().map(named).collect()
    }
}

/// Whether a setting says what decides, not what is asked.
pub(super) fn is_of_policy(name: &str) -> bool {
    name == "policy" || name.starts_with("set.")
}

/// What a group was asked, whichever policy decided.
pub(super) fn asked_of(group: &Group) -> Settings {
    group.settings.iter().filter(|(name, _)| !is_of_policy(name)).cloned().collect()
}

/// What decided: the policy, with those parameters that are not the same wherever it was run.
pub(super) fn variant_name(group: &Group, groups: &[Group]) -> String {
    let policy = group.setting("policy");
    let alike: Vec<&Group> = groups.iter().filter(|other| other.setting("policy") == policy).collect();
    let mut names: Vec<&str> = alike
        .iter()
        .flat_map(|other| &other.settings)
        .map(|(name, _)| name.as_str())
        .filter(|name| name.starts_with("set."))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| alike.iter().any(|other| other.setting(name) != group.setting(name)));
    let told = |name: &&str| {
        let (short, value) = (name.trim_start_matches("set."), group.setting(name));
        if value.is_empty() { format!("{short} as it is") } else { format!("{short} {value}") }
    };
    std::iter::once(policy.clone()).chain(names.iter().map(told)).collect::<Vec<_>>().join(", ")
}

fn pair(runs: &[Ran], baseline: &Variant<'_>, other: &Variant<'_>, figure: &'static str) -> Option<Pair> {
    let (mut of_baseline, mut of_other) = (Vec::new(), Vec::new());
    for (seed, at) in &baseline.group.seeds {
        let twin = other.group.seeds.iter().find(|(other_seed, _)| other_seed == seed).map(|(_, twin)| *twin);
        if let Some((base, value)) =
            runs[*at].figure(figure).zip(twin.and_then(|twin| runs[twin].figure(figure)))
        {
            of_baseline.push(base);
            of_other.push(value);
        }
    }
    let comparison = compare(&of_baseline, &of_other).filter(|comparison| comparison.difference.n > 1)?;
    Some(Pair {
        settings: baseline.asked.clone(),
        baseline: baseline.name.clone(),
        policy: other.name.clone(),
        variant: other.group.settings.clone(),
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

/// The best of those that were asked the same, by its mean, and how it compares with the next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Best {
    /// What they were asked.
    pub(super) settings: Settings,
    pub(super) name: String,
    pub(super) next: String,
    /// The next over the best.
    pub(super) ratio: Interval,
    /// How many were compared.
    pub(super) n: usize,
    /// Those among them whose mean is as low, the best included.
    pub(super) n_lowest: usize,
}

impl Best {
    /// Whether the interval leaves no doubt.
    pub(super) fn is_clear(&self) -> bool {
        self.ratio.low > 1.0
    }
}

/// The best of every three or more that were asked the same, by average completion time.
pub(super) fn best(runs: &[Ran], groups: &[Group]) -> Vec<Best> {
    const FIGURE: &str = "avg_jct_s";
    let named = Variant::all(groups);
    let mut asked: Vec<&Settings> = Vec::new();
    for one in &named {
        if !asked.contains(&&one.asked) {
            asked.push(&one.asked);
        }
    }
    let of = |settings: &Settings| {
        let mut alike: Vec<(f64, &Variant<'_>)> = named
            .iter()
            .filter(|one| one.asked == *settings)
            .filter_map(|one| Some((one.group.figure(FIGURE)?.mean.mean, one)))
            .collect();
        alike.sort_by(|a, b| a.0.total_cmp(&b.0));
        let [(_, first), (_, second), _, ..] = alike.as_slice() else { return None };
        let pair = pair(runs, first, second, FIGURE)?;
        let lowest = alike[0].0;
        Some(Best {
            settings: settings.clone(),
            name: pair.baseline,
            next: pair.policy,
            ratio: pair.comparison.ratio,
            n: alike.len(),
            n_lowest: alike.iter().filter(|(mean, _)| mean.to_bits() == lowest.to_bits()).count(),
        })
    };
    asked.into_iter().filter_map(of).collect()
}

/// What a comparison was asked, for people: the settings that tell it from the others.
pub(super) fn asked<'a>(settings: &Settings, all: impl Iterator<Item = &'a Settings> + Clone) -> String {
    let value = |settings: &Settings, name: &str| {
        settings.iter().find(|(key, _)| key == name).map(|(_, setting)| setting_text(setting))
    };
    let tells = |name: &str| all.clone().any(|other| value(other, name) != value(settings, name));
    let named = settings.iter().filter(|(name, _)| tells(name));
    named.map(|(name, setting)| format!("{name} {}", setting_text(setting))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use rota_scripts::study::Setting;

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
        assert_eq!(
            asked(&pair.settings, [&pair.settings].into_iter()),
            "",
            "there is nothing to tell it from"
        );
        assert_eq!(asked(&pair.settings, [&pair.settings, &Vec::new()].into_iter()), "jobs_per_hour 4");
    }

    #[test]
    fn values_of_a_parameter_are_compared_like_policies() {
        let with = |value: i64, seed, jct| {
            let mut run = done("mine", 4.0, seed, jct);
            run.settings
                .push(("set".into(), Setting::Pairs(vec![("patience".into(), Setting::Whole(value))])));
            run
        };
        let runs = [
            with(1, 1, 10.0),
            with(1, 2, 20.0),
            with(2, 1, 5.0),
            with(2, 2, 10.0),
            with(3, 1, 5.2),
            with(3, 2, 9.9),
        ];
        let pairs = pairs(&runs);
        assert_eq!(pairs.len(), 3, "{pairs:?}");
        assert_eq!(
            (pairs[0].baseline.as_str(), pairs[0].policy.as_str()),
            ("mine, patience 1", "mine, patience 2")
        );
        assert_eq!(pairs[0].comparison.ratio.mean, 0.5);
        let best = best(&runs, &groups(&runs));
        assert_eq!((best.len(), best[0].name.as_str(), best[0].n), (1, "mine, patience 2", 3));
        assert!(!best[0].is_clear(), "15.1 is not told apart from 15: {best:?}");
    }
}
