//! Results as the page draws them. Columns and figures are those of the report, so that both say the same.

use rota_lab::report::{self, Axis, Better, Figure, Marks, Measure, PALETTE_LENGTH, SummaryTable};
use rota_lab::results::{Results, RunResult, Summary};
use rota_lab::statistics;
use serde_json::{Value, json};

/// Pairs below which two policies are not called different: with fewer seeds, all of them may lie on one side by chance.
const LEAST_PAIRS: usize = 5;
/// What intervals are computed of; each costs some thousand resamples.
const COMPARED: [&str; 7] = ["avg JCT", "median", "p95", "p99", "waiting", "slowdown", "in time"];

/// The table: as in a report, with the values behind the texts.
pub(crate) fn table(runs: &[&RunResult]) -> Value {
    // The table reads nothing but summaries.
    let bare = |run: &&RunResult| RunResult {
        meta: run.meta.clone(),
        summary: run.summary.clone(),
        jobs: Vec::new(),
        samples: Vec::new(),
        notes: Vec::new(),
        bounds: Vec::new(),
        timeline: Vec::new(),
        nodes: Vec::new(),
    };
    let results = Results { runs: runs.iter().map(bare).collect(), ..Results::default() };
    let table = SummaryTable::new(&results);
    let measures: Vec<Measure> = report::measures().collect();
    let measure = |name: &str| measures.iter().find(|measure| measure.heading == name);
    // How long a run took says more about other programs on this machine than about the policy.
    let shown: Vec<usize> = (table.n_names..table.headings.len())
        .filter(|column| table.headings[*column].name != "wall")
        .collect();
    let headings = shown.iter().map(|column| {
        let heading = &table.headings[*column];
        json!({
            "name": heading.name,
            "unit": heading.unit,
            "better": measure(heading.name).map_or("", |measure| sign(measure.better)),
        })
    });
    let rows = table.rows.iter().zip(runs).map(|(row, run)| {
        let cells = shown.iter().map(|column| {
            let value = measure(table.headings[*column].name).and_then(|m| (m.value)(&run.summary));
            json!({ "text": row[*column].text, "best": row[*column].is_best, "value": value })
        });
        let name = table.n_names.checked_sub(1).map_or(run.meta.policy.as_str(), |at| row[at].text.as_str());
        json!({ "policy": name, "cells": cells.collect::<Vec<_>>() })
    });
    json!({ "headings": headings.collect::<Vec<_>>(), "rows": rows.collect::<Vec<_>>() })
}

fn sign(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower",
        Better::Higher => "higher",
        Better::Neither => "",
    }
}

/// The figures that compare the runs.
pub(crate) fn figures(runs: &[&RunResult]) -> Vec<Value> {
    report::comparison(runs).iter().filter_map(figure).collect()
}

fn figure(figure: &Figure) -> Option<Value> {
    let marks = match &figure.marks {
        Marks::Lines(lines) => {
            let line = |line: &report::Line| {
                let (x, y): (Vec<f64>, Vec<f64>) =
                    line.points.iter().map(|point| (rounded(point.0), rounded(point.1))).unzip();
                json!({ "label": line.label, "colour": line.colour % PALETTE_LENGTH, "dash": line.colour / PALETTE_LENGTH, "x": x, "y": y })
            };
            json!({ "lines": lines.iter().map(line).collect::<Vec<_>>() })
        }
        Marks::Bars(bars) => {
            let bar = |(bar, (_, name)): (&report::Bar, &(f64, String))| json!({ "label": name, "colour": bar.colour % PALETTE_LENGTH, "value": bar.value, "text": bar.text });
            json!({ "bars": bars.iter().zip(figure.y.ticks()).map(bar).collect::<Vec<_>>() })
        }
        _ => return None,
    };
    let mut value = json!({
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "x": axis(&figure.x),
        "y": axis(&figure.y),
    });
    value.as_object_mut()?.extend(marks.as_object()?.clone());
    Some(value)
}

/// Six digits: more cannot be seen, and make the answer longer.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(5 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

fn axis(axis: &Axis) -> Value {
    let (from, to) = axis.ends();
    json!({ "label": axis.label, "from": from, "to": to, "log": axis.is_log(), "ticks": axis.ticks() })
}

/// The edited policy against each of the others over the same seeds: ratios with their intervals, and whether they are told
/// apart. `of_seeds` has a list for each seed, the edited policy first.
pub(crate) fn comparisons(of_seeds: &[Vec<Summary>], labels: &[String]) -> Vec<Value> {
    let measures: Vec<Measure> =
        report::measures().filter(|measure| COMPARED.contains(&measure.heading)).collect();
    let against = |at: usize| {
        let of_measure = |measure: &Measure| {
            let pairs: Vec<(f64, f64)> = of_seeds
                .iter()
                .filter_map(|seed| (measure.value)(seed.get(at)?).zip((measure.value)(seed.first()?)))
                .collect();
            let (base, own): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let ratio = statistics::compare(&base, &own)?.ratio;
            let is_other = ratio.low > 1.0 || ratio.high < 1.0;
            Some(json!({
                "name": measure.heading,
                "better": sign(measure.better),
                "n": ratio.n,
                "ratio": ratio.mean,
                "low": ratio.low,
                "high": ratio.high,
                "told_apart": is_other && ratio.n >= LEAST_PAIRS,
            }))
        };
        let figures: Vec<Value> = measures.iter().filter_map(of_measure).collect();
        json!({ "policy": labels.get(at), "figures": figures })
    };
    (1..labels.len()).map(against).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(avg_jct_s: f64) -> Summary {
        Summary { avg_jct_s: Some(avg_jct_s), ..Summary::default() }
    }

    #[test]
    fn policies_are_told_apart_only_with_enough_seeds_on_one_side() {
        let labels = ["mine".to_owned(), "las".to_owned()];
        let seeds = |n: usize| -> Vec<Vec<Summary>> {
            (0..n).map(|seed| vec![summary(90.0 + seed as f64), summary(100.0 + seed as f64)]).collect()
        };
        let told = |n: usize| comparisons(&seeds(n), &labels)[0]["figures"][0]["told_apart"].clone();
        assert_eq!((told(4), told(5)), (json!(false), json!(true)));
        let mut mixed = seeds(8);
        mixed.iter_mut().skip(4).for_each(|seed| seed.reverse());
        assert_eq!(comparisons(&mixed, &labels)[0]["figures"][0]["told_apart"], json!(false));
    }

    #[test]
    fn numbers_keep_six_digits() {
        assert_eq!(
            (rounded(123_456.789), rounded(0.000_123_456_789), rounded(f64::NAN)),
            (123_457.0, 0.000_123_457, 0.0)
        );
    }
}
