//! Ours beside the published numbers, and whether the paper's conclusion holds in our runs.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::{Claim, PaperFigure, Series};
use crate::report::TABLE_STYLE;
use crate::results::Results;
use crate::study::{Study, groups};

/// Gandiva's average completion time of best-effort jobs over a policy's: a figure that no single run has.
pub(super) const BEST_EFFORT_GAIN: &str = "best_effort_gain";

const FIDELITY: &str = "The shipped policies mend defects of the original program, so they meet other deadlines than it does: \
                        docs/fidelity.md lists them, and `--set compat=artifact` runs it as it is (Figures 6, 7, 8 and 10).";

/// What was found for one combination of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The settings as text, the policy among them.
    pub settings: BTreeMap<String, String>,
    /// Figures; means over seeds.
    pub figures: BTreeMap<String, f64>,
}

/// What a study found.
pub fn found_in_study(study: &Study) -> Vec<Found> {
    let found = groups(&study.runs).into_iter().map(|group| Found {
        settings: group.settings.iter().map(|(name, _)| (name.clone(), group.setting(name))).collect(),
        figures: group.figures.iter().map(|(name, spread)| (name.clone(), spread.mean.mean)).collect(),
    });
    with_gains(found.collect())
}

/// What a comparison found.
pub fn found_in_runs(results: &Results) -> Vec<Found> {
    let found = results.runs.iter().map(|run| {
        let summary = serde_json::to_value(&run.summary).unwrap_or_default();
        let numbers = summary.as_object().into_iter().flatten();
        Found {
            settings: BTreeMap::from([("policy".to_owned(), run.meta.policy.clone())]),
            figures: numbers.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect(),
        }
    });
    with_gains(found.collect())
}

fn with_gains(mut found: Vec<Found>) -> Vec<Found> {
    let jct = |one: &Found| one.figures.get("avg_best_effort_jct_s").copied();
    let baselines: Vec<(BTreeMap<String, String>, f64)> = found
        .iter()
        .filter(|one| one.policy() == "gandiva")
        .filter_map(|one| Some((one.without_policy(), jct(one)?)))
        .collect();
    for one in &mut found {
        let asked = one.without_policy();
        let baseline = baselines.iter().find(|(settings, _)| *settings == asked).map(|(_, jct)| *jct);
        if let Some((baseline, own)) = baseline.zip(jct(one)).filter(|(_, own)| *own > 0.0) {
            one.figures.insert(BEST_EFFORT_GAIN.to_owned(), baseline / own);
        }
    }
    found
}

impl Found {
    fn policy(&self) -> &str {
        self.settings.get("policy").map_or("", String::as_str)
    }

    fn without_policy(&self) -> BTreeMap<String, String> {
        self.settings
            .iter()
            .filter(|(name, _)| *name != "policy")
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    }

    fn load(&self) -> f64 {
        self.settings.get("jobs_per_hour").and_then(|load| load.parse().ok()).unwrap_or(0.0)
    }
}

/// The figure's numbers beside ours, what holds, and what cannot be had again, for people.
pub fn beside(figure: &PaperFigure, found: &[Found]) -> Vec<String> {
    let mut lines = Vec::new();
    if !figure.published.is_empty() {
        lines.push(format!("Published beside ours:\n{}", table(figure.published, found)));
        let mut sources: Vec<&str> = figure.published.iter().map(|series| series.source).collect();
        sources.dedup();
        lines.push(format!("Published: {}.", sources.join("; ")));
    }
    lines.extend(match figure.claim {
        Claim::TuneBeats(baseline) => tune_beats(found, baseline),
        Claim::ElasticflowLeads => elasticflow_leads(found),
    });
    if figure.claim == Claim::ElasticflowLeads {
        lines.push(FIDELITY.to_owned());
    }
    lines.push("What cannot be had again:".to_owned());
    lines.extend(figure.caveats.iter().map(|caveat| format!("- {caveat}")));
    lines
}

fn table(published: &[Series], found: &[Found]) -> String {
    let mut table = Table::new();
    table.load_style(TABLE_STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["policy", "figure", "at", "ours", "published"]);
    for series in published {
        let at: Vec<Option<(&str, &str)>> = match series.along {
            None => vec![None],
            Some((name, values)) => values.iter().map(|value| Some((name, *value))).collect(),
        };
        for (at, value) in at.into_iter().zip(series.values) {
            let ours = found.iter().find(|one| {
                one.policy() == series.policy
                    && at.is_none_or(|(name, value)| one.settings.get(name).is_some_and(|v| v == value))
            });
            let ours = ours.and_then(|one| one.figures.get(series.figure));
            let number = |value: f64| match series.figure {
                name if name.ends_with("_s") => format!("{:.2} h", value / 3_600.0),
                _ => format!("{value:.3}"),
            };
            table.add_row([
                series.policy.to_owned(),
                series.figure.trim_end_matches("_s").replace('_', " "),
                at.map(|(name, value)| format!("{} {value}", name.replace('_', " "))).unwrap_or_default(),
                ours.map_or_else(|| "not run".to_owned(), |ours| number(*ours)),
                number(*value),
            ]);
        }
    }
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// How many times shorter completion takes with tune, by order and load.
fn tune_beats(found: &[Found], baseline: &str) -> Vec<String> {
    let mut by_order: BTreeMap<String, Vec<(f64, f64, String)>> = BTreeMap::new();
    for tuned in found {
        let Some(order) = tuned.policy().strip_suffix("+tune") else { continue };
        let other = format!("{order}+{baseline}");
        let twin =
            found.iter().find(|one| one.policy() == other && one.without_policy() == tuned.without_policy());
        let jct = |one: &Found| one.figures.get("avg_jct_s").copied();
        if let Some((base, tune)) = twin.and_then(jct).zip(jct(tuned)).filter(|(_, tune)| *tune > 0.0) {
            let asked = tuned.without_policy();
            let named = asked.iter().filter(|(name, _)| is_telling(name, found));
            let label = named
                .map(|(name, value)| format!("{} {value}", name.replace('_', " ")))
                .collect::<Vec<_>>()
                .join(", ");
            by_order.entry(order.to_owned()).or_default().push((tuned.load(), base / tune, label));
        }
    }
    let mut lines = Vec::new();
    let (mut n_better, mut n_all, mut largest) = (0, 0, 0.0_f64);
    for (order, mut factors) in by_order {
        factors.sort_by(|a, b| a.0.total_cmp(&b.0));
        n_all += factors.len();
        n_better += factors.iter().filter(|(_, factor, _)| *factor >= 1.0).count();
        largest = factors.iter().map(|(_, factor, _)| *factor).fold(largest, f64::max);
        let said: Vec<String> =
            factors.iter().map(|(_, factor, label)| format!("{factor:.2}x at {label}")).collect();
        lines.push(format!(
            "{order}: average JCT with tune is shorter than with {baseline} by {}.",
            said.join(", ")
        ));
    }
    if n_all == 0 {
        return vec!["Nothing was run that the paper's conclusion could be compared with.".to_owned()];
    }
    let grows = grows(found, baseline);
    let verdict = match (n_better == n_all, grows) {
        (true, Some(true)) => {
            "holds: tune is never worse, and its lead is larger at the highest load than at the lowest"
        }
        (true, None) => "holds: tune is never worse",
        (true, Some(false)) => {
            "holds in part: tune is never worse, but its lead does not grow with the load everywhere"
        }
        (false, _) => "does not hold everywhere: see the factors below 1",
    };
    lines.push(format!(
        "The paper's conclusion {verdict} (up to {largest:.2}x here, up to 3.4x in the paper)."
    ));
    lines
}

fn is_telling(name: &str, found: &[Found]) -> bool {
    found.windows(2).any(|pair| pair[0].settings.get(name) != pair[1].settings.get(name))
}

/// Whether the lead at the highest load is larger than at the lowest, for every order; `None` with a single load.
fn grows(found: &[Found], baseline: &str) -> Option<bool> {
    let jct = |policy: &str, load: f64| {
        let at = found.iter().find(|one| one.policy() == policy && one.load() == load)?;
        at.figures.get("avg_jct_s").copied()
    };
    let low = found.iter().map(Found::load).fold(f64::INFINITY, f64::min);
    let high = found.iter().map(Found::load).fold(0.0, f64::max);
    if low >= high {
        return None;
    }
    let orders: std::collections::BTreeSet<&str> =
        found.iter().filter_map(|one| one.policy().strip_suffix("+tune")).collect();
    let lead = |order: &str, load: f64| {
        Some(jct(&format!("{order}+{baseline}"), load)? / jct(&format!("{order}+tune"), load)?)
    };
    Some(
        orders
            .iter()
            .all(|order| lead(order, high).zip(lead(order, low)).is_some_and(|(high, low)| high > low)),
    )
}

/// Whether ElasticFlow meets at least as many deadlines as everyone else, wherever they were asked the same.
fn elasticflow_leads(found: &[Found]) -> Vec<String> {
    let ratio = |one: &Found| one.figures.get("deadline_ratio").copied();
    let mut better = Vec::new();
    let leaders: Vec<&Found> = found.iter().filter(|one| one.policy() == "elasticflow").collect();
    for leader in &leaders {
        for other in found.iter().filter(|one| one.without_policy() == leader.without_policy()) {
            if let Some((own, theirs)) = ratio(leader).zip(ratio(other)).filter(|(own, theirs)| theirs > own)
            {
                let at: Vec<String> = leader
                    .without_policy()
                    .iter()
                    .filter(|(name, _)| is_telling(name, found))
                    .map(|(name, value)| format!("{} {value}", name.replace('_', " ")))
                    .collect();
                better.push(format!("{} {theirs:.3} against {own:.3} {}", other.policy(), at.join(", ")));
            }
        }
    }
    match (leaders.is_empty(), better.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => vec![
            "The paper's conclusion holds: elasticflow meets at least as many deadlines as everyone else."
                .to_owned(),
        ],
        (false, false) => vec![format!(
            "The paper's conclusion does not hold everywhere; more deadlines than elasticflow are met by {}.",
            better.join("; ")
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ELASTICFLOW, SYNERGY, find};
    use super::*;

    fn found(policy: &str, load: &str, figure: &str, value: f64) -> Found {
        let settings =
            [("policy", policy), ("jobs_per_hour", load)].map(|(k, v)| (k.to_owned(), v.to_owned()));
        Found { settings: settings.into(), figures: [(figure.to_owned(), value)].into() }
    }

    fn said(system: &'static [PaperFigure], name: &str, found: &[Found]) -> String {
        beside(find(system, name).expect("a figure"), found).join("\n")
    }

    #[test]
    fn a_lead_that_grows_with_the_load_is_what_the_paper_says() {
        let runs = [
            found("fifo+proportional", "1", "avg_jct_s", 100.0),
            found("fifo+tune", "1", "avg_jct_s", 90.0),
            found("fifo+proportional", "9", "avg_jct_s", 300.0),
            found("fifo+tune", "9", "avg_jct_s", 100.0),
        ];
        let text = said(SYNERGY, "8", &runs);
        assert!(
            text.contains("3.00x at jobs per hour 9") && text.contains("The paper's conclusion holds:"),
            "{text}"
        );
        assert!(text.contains("0.03 h") && text.contains("21.88 h"), "{text}");
        let text = said(
            SYNERGY,
            "8",
            &runs[..2]
                .iter()
                .chain(&[
                    found("fifo+proportional", "9", "avg_jct_s", 50.0),
                    found("fifo+tune", "9", "avg_jct_s", 60.0),
                ])
                .cloned()
                .collect::<Vec<_>>(),
        );
        assert!(text.contains("does not hold everywhere"), "{text}");
    }

    #[test]
    fn no_runs_are_no_evidence() {
        let text = said(SYNERGY, "8", &[]);
        assert!(text.contains("Nothing was run") && !text.contains("holds"), "{text}");
    }

    #[test]
    fn a_baseline_that_meets_more_deadlines_is_named() {
        let one = |policy: &str, ratio: f64| Found {
            settings: [("policy".to_owned(), policy.to_owned())].into(),
            figures: [("deadline_ratio".to_owned(), ratio)].into(),
        };
        let text = said(ELASTICFLOW, "6b", &[one("elasticflow", 0.5), one("edf", 0.6)]);
        assert!(text.contains("met by edf 0.600 against 0.500"), "{text}");
        assert!(text.contains("not run"), "gandiva was not: {text}");
        let text = said(ELASTICFLOW, "6b", &[one("elasticflow", 0.7), one("edf", 0.6)]);
        assert!(text.contains("conclusion holds"), "{text}");
    }

    #[test]
    fn best_effort_jobs_are_measured_against_gandiva() {
        let jct = |policy: &str, value: f64| found(policy, "4", "avg_best_effort_jct_s", value);
        let all = with_gains(vec![jct("gandiva", 300.0), jct("elasticflow", 200.0)]);
        assert_eq!(all[1].figures[BEST_EFFORT_GAIN], 1.5);
    }
}
