//! Pictures of a study: each figure against what varies, and how policies compare on the same seeds.

use super::groups::{Kind, kind};
use super::pairs::is_of_policy;
use super::table::setting_text;
use super::terminal::{asked_by, cell, figure_name, job_time_unit, telling_names};
use super::{FIGURES, Group, Pair};
use crate::report::{
    Axis, Bar, Figure, GREY, Line, MAX_LINES, MAX_MARKED, Marks, Ratio, TimeUnit, Whisker, begin_large,
    extremes, styles,
};

/// Figures whose ratios are drawn, where policies were compared.
const COMPARED: [&str; 4] = ["avg_jct_s", "p99_jct_s", "avg_wait_s", "deadline_ratio"];
/// Rows of a picture of ratios.
const MAX_ROWS: usize = 24;

/// One for each figure of the runs, against the number that varies if one does, else bars; then ratios.
pub(super) fn figures(groups: &[Group], pairs: &[Pair]) -> Vec<Figure> {
    let unit = job_time_unit(groups);
    let against = varying_number(groups);
    let looks = Looks::new(groups, against.as_deref());
    let drawn = |(figure, heading): &(&'static str, &'static str)| match &against {
        Some(name) => curve(groups, name, figure, heading, unit, &looks),
        None => bars(groups, figure, heading, unit, &looks),
    };
    let axis = against.as_deref().map(|name| setting_values(groups, name));
    let axis = against.as_deref().zip(axis.as_deref());
    let compared = |figure: &&'static str| ratios(pairs, figure, axis, &looks);
    FIGURES.iter().filter_map(drawn).chain(COMPARED.iter().filter_map(compared)).collect()
}

/// The setting on the axis: the load if it varies, else the first number that does.
fn varying_number(groups: &[Group]) -> Option<String> {
    let is_number = |name: &String| groups.iter().all(|group| group.setting(name).parse::<f64>().is_ok());
    let mut names: Vec<String> = telling_names(groups).into_iter().filter(is_number).collect();
    names.sort_by_key(|name| name != "jobs_per_hour");
    names.into_iter().next()
}

/// All values of the setting on the axis, so that every picture of the study has the same axis: what all others are compared
/// with has no ratio of its own.
fn setting_values(groups: &[Group], name: &str) -> Vec<f64> {
    let mut values: Vec<f64> = groups.iter().filter_map(|group| group.setting(name).parse().ok()).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

fn scale(figure: &str, unit: TimeUnit) -> f64 {
    if kind(figure) == Kind::Time { 1.0 / unit.seconds } else { 1.0 }
}

fn axis_label(figure: &str, heading: &str, unit: TimeUnit) -> String {
    match kind(figure) {
        Kind::Time => format!("{heading} ({})", unit.sign),
        Kind::Part => format!("{heading} (%)"),
        Kind::Ratio => format!("{heading} (x)"),
    }
}

/// How a setting is called on an axis.
fn setting_name(name: &str) -> String {
    name.trim_start_matches("set.").replace('_', " ")
}

/// The same with its unit, where it is a length of time in plain seconds.
fn setting_axis(name: &str) -> String {
    let is_time = TIMES.contains(&name);
    format!("{}{}", setting_name(name), if is_time { " (s)" } else { "" })
}

/// Settings that are lengths of time; a number without a unit is in seconds.
const TIMES: [&str; 6] = ["round", "min_run", "restart_cost", "checkpoint_every", "mtbf", "mttr"];

/// What tells a group from the others, in words: its policy first, as comparisons call it.
fn label(group: &Group, names: &[String]) -> String {
    let told = |name: &String| match name.as_str() {
        "policy" => group.setting(name),
        _ => format!("{} {}", setting_name(name), group.setting(name)),
    };
    let (policy, others): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| *name == "policy");
    let told: Vec<String> = policy.into_iter().chain(others).map(told).collect();
    told.join(", ")
}

/// How each line looks, the same in every picture of the study.
struct Looks(Vec<(String, usize)>);

impl Looks {
    fn new(groups: &[Group], against: Option<&str>) -> Self {
        let names: Vec<String> =
            telling_names(groups).into_iter().filter(|name| Some(name.as_str()) != against).collect();
        let mut lines: Vec<(String, String)> = Vec::new();
        for group in groups {
            let line = (label(group, &names), group.setting("policy"));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        Looks(own_looks(&lines))
    }

    /// Of lines with their policies; those that only a comparison has are added as they are drawn.
    fn of(&self, lines: &[(String, String)]) -> Vec<usize> {
        let known = |label: &String| self.0.iter().find(|(known, _)| known == label).map(|(_, look)| *look);
        let looks: Option<Vec<usize>> = lines.iter().map(|(label, _)| known(label)).collect();
        looks.unwrap_or_else(|| own_looks(lines).into_iter().map(|(_, look)| look).collect())
    }
}

/// Lines of several policies have the colours of these; values of a parameter of one policy differ in colour.
fn own_looks(lines: &[(String, String)]) -> Vec<(String, usize)> {
    let is_one_policy = lines.len() > 1 && lines.iter().all(|(_, policy)| *policy == lines[0].1);
    let drawn_as: Vec<String> = lines
        .iter()
        .map(|(label, policy)| if is_one_policy { format!("{policy} ({label})") } else { policy.clone() })
        .collect();
    let looks = styles(drawn_as.iter().map(String::as_str));
    lines.iter().map(|(label, _)| label.clone()).zip(looks).collect()
}

/// Lines by what tells them apart, each with the policy that its colour goes by.
#[derive(Default)]
struct Lines {
    policies: Vec<String>,
    lines: Vec<Line>,
    whiskers: Vec<Whisker>,
    values: Vec<f64>,
}

impl Lines {
    fn add(&mut self, label: String, policy: String, (x, mean): (f64, f64), interval: Option<(f64, f64)>) {
        let at = self.lines.iter().position(|line| line.label == label).unwrap_or_else(|| {
            self.policies.push(policy);
            self.lines.push(Line { label, colour: 0, has_dots: true, points: Vec::new() });
            self.lines.len() - 1
        });
        self.lines[at].points.push((x, mean));
        self.values.push(x);
        // Until all lines are known, a whisker's colour is the place of its line.
        self.whiskers.extend(interval.map(|(low, high)| Whisker { colour: at, at: x, low, high }));
    }

    fn has_bands(&self) -> bool {
        self.lines.iter().any(|line| line.points.len() > MAX_MARKED)
    }

    /// Sorted, coloured and cut to what can be told apart; a sentence about what was left out.
    fn finish(&mut self, looks: &Looks) -> String {
        let n = self.lines.len();
        let labels = self.lines.iter().map(|line| line.label.clone());
        let styles = looks.of(&labels.zip(self.policies.iter().cloned()).collect::<Vec<_>>());
        self.whiskers.retain(|whisker| whisker.colour < MAX_LINES);
        self.whiskers.iter_mut().for_each(|whisker| whisker.colour = styles[whisker.colour]);
        for (line, style) in self.lines.iter_mut().zip(styles) {
            line.colour = style;
            line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
            line.has_dots = line.points.len() <= MAX_MARKED;
        }
        self.lines.truncate(MAX_LINES);
        self.values.sort_by(f64::total_cmp);
        self.values.dedup();
        if n > MAX_LINES { format!(" The first {MAX_LINES} of {n} lines are drawn.") } else { String::new() }
    }
}

fn curve(
    groups: &[Group],
    against: &str,
    figure: &str,
    heading: &str,
    unit: TimeUnit,
    looks: &Looks,
) -> Option<Figure> {
    let names: Vec<String> = telling_names(groups).into_iter().filter(|name| name != against).collect();
    let scale = scale(figure, unit);
    let mut drawn = Lines::default();
    for group in groups {
        let Some(spread) = group.figure(figure) else { continue };
        let x: f64 = group.setting(against).parse().ok()?;
        let mean = &spread.mean;
        let interval = (mean.n > 1).then_some((mean.low * scale, mean.high * scale));
        drawn.add(label(group, &names), group.setting("policy"), (x, mean.mean * scale), interval);
    }
    let left_out = drawn.finish(looks);
    if drawn.values.len() < 2 {
        return None;
    }
    let (least, highest) = extremes(&drawn.lines, &drawn.whiskers);
    let label = axis_label(figure, heading, unit);
    let y = match kind(figure) {
        Kind::Part => Axis::spanning_percent(label, least, highest),
        Kind::Time | Kind::Ratio => Axis::spanning(label, least, highest),
    };
    let points = match drawn.whiskers.is_empty() {
        true => "One run at each point.",
        false if drawn.has_bands() => "Means over seeds; the bands are 95 % confidence intervals.",
        false => "Means over seeds; the whiskers are 95 % confidence intervals.",
    };
    Some(Figure {
        name: figure.trim_end_matches("_s").replace('_', "-"),
        section: "Figures".into(),
        title: begin_large(&format!("{heading} against {}", setting_name(against))),
        caption: format!("{points}{}{left_out}", y.note()),
        x: Axis::at_values(setting_axis(against), &drawn.values),
        y,
        marks: Marks::Measured(drawn.lines, drawn.whiskers),
    })
}

fn bars(groups: &[Group], figure: &str, heading: &str, unit: TimeUnit, looks: &Looks) -> Option<Figure> {
    let names = telling_names(groups);
    let known: Vec<&Group> = groups.iter().filter(|group| group.figure(figure).is_some()).collect();
    let shown = &known[..known.len().min(MAX_LINES)];
    let labels: Vec<String> = shown.iter().map(|group| label(group, &names)).collect();
    let policies = shown.iter().map(|group| group.setting("policy"));
    let bars: Vec<Bar> = shown
        .iter()
        .zip(looks.of(&labels.iter().cloned().zip(policies).collect::<Vec<_>>()))
        .filter_map(|(group, colour)| {
            let value = group.figure(figure)?.mean.mean * scale(figure, unit);
            Some(Bar { colour, value, text: cell(group, figure, unit) })
        })
        .collect();
    if bars.is_empty() {
        return None;
    }
    let highest = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let label = axis_label(figure, heading, unit);
    let left_out = match known.len() > shown.len() {
        true => format!(" The first {} of {} are drawn.", shown.len(), known.len()),
        false => String::new(),
    };
    Some(Figure {
        name: figure.trim_end_matches("_s").replace('_', "-"),
        section: "Figures".into(),
        title: begin_large(heading),
        caption: format!("Means over seeds, ± half of the 95 % confidence interval.{left_out}"),
        x: if kind(figure) == Kind::Part { Axis::percent(label) } else { Axis::from_zero(label, highest) },
        y: Axis::names(&labels),
        marks: Marks::Bars(bars),
    })
}

/// Each policy over the first that was asked the same: against what varies, or one below the other.
fn ratios(pairs: &[Pair], figure: &str, axis: Option<(&str, &[f64])>, looks: &Looks) -> Option<Figure> {
    let first = pairs.iter().find(|pair| pair.figure == figure)?;
    let is_first = |pair: &&Pair| {
        let mut alike = pairs.iter().filter(|other| other.settings == pair.settings);
        pair.figure == figure && alike.next().map(|other| &other.baseline) == Some(&pair.baseline)
    };
    let shown: Vec<&Pair> =
        pairs.iter().filter(is_first).filter(|pair| pair.comparison.ratio.mean.is_finite()).collect();
    let heading = figure_name(figure);
    // What is compared with may be called otherwise where something else was asked.
    let is_one = shown.iter().all(|pair| pair.baseline == first.baseline);
    let baseline = if is_one { first.baseline.as_str() } else { "the first" };
    let setting = |pair: &Pair, name: &str| {
        let found =
            pair.variant.iter().find(|(key, _)| key == name).map(|(_, setting)| setting_text(setting));
        found.and_then(|text| text.parse::<f64>().ok())
    };
    let mut drawn = Lines::default();
    if let Some((name, _)) = axis {
        for pair in &shown {
            let ratio = &pair.comparison.ratio;
            // A parameter on the axis is part of what its policy is called.
            let policy = pair.variant.iter().find(|(key, _)| key == "policy").map(|(_, p)| setting_text(p));
            let label =
                if is_of_policy(name) { policy.clone().unwrap_or_default() } else { pair.policy.clone() };
            let x = setting(pair, name)?;
            drawn.add(label, policy.unwrap_or_default(), (x, ratio.mean), Some((ratio.low, ratio.high)));
        }
    }
    let left_out = drawn.finish(looks);
    let caption = format!(
        "{} over that of {baseline} on the same seeds, with 95 % confidence intervals of the ratio; an interval that holds 1 shows no clear difference.{left_out}",
        begin_large(heading)
    );
    let name = format!("{}-ratio", figure.trim_end_matches("_s").replace('_', "-"));
    let title = begin_large(&format!("{heading} relative to {baseline}"));
    let section = "Compared on the same seeds".to_owned();
    if let Some((against, values)) = axis.filter(|_| drawn.values.len() > 1) {
        let (least, highest) = extremes(&drawn.lines, &drawn.whiskers);
        let ends = [values[0], values[values.len() - 1]];
        let one = Line {
            label: String::new(),
            colour: GREY,
            has_dots: false,
            points: ends.map(|x| (x, 1.0)).to_vec(),
        };
        drawn.lines.insert(0, one);
        return Some(Figure {
            name,
            section,
            title,
            caption,
            x: Axis::at_values(setting_axis(against), values),
            y: Axis::ratios(format!("{heading}, ratio"), least, highest),
            marks: Marks::Measured(drawn.lines, drawn.whiskers),
        });
    }
    let shown = &shown[..shown.len().min(MAX_ROWS)];
    let row = |pair: &&Pair| match asked_by(pair, pairs) {
        asked if asked.is_empty() => pair.policy.clone(),
        asked => format!("{}, {asked}", pair.policy),
    };
    let labels: Vec<String> = shown.iter().map(row).collect();
    let policy = |pair: &&Pair| {
        let found = pair.variant.iter().find(|(key, _)| key == "policy").map(|(_, p)| setting_text(p));
        (pair.policy.clone(), found.unwrap_or_default())
    };
    let styles = looks.of(&shown.iter().map(policy).collect::<Vec<_>>());
    let ratio = |(pair, colour): (&&Pair, usize)| {
        let ratio = &pair.comparison.ratio;
        Ratio {
            colour,
            mean: ratio.mean,
            low: ratio.low,
            high: ratio.high,
            text: format!("{:.3}", ratio.mean),
        }
    };
    let ratios: Vec<Ratio> = shown.iter().zip(styles).map(ratio).collect();
    let least = ratios.iter().map(|ratio| ratio.low).fold(f64::INFINITY, f64::min);
    let highest = ratios.iter().map(|ratio| ratio.high).fold(0.0, f64::max);
    Some(Figure {
        name,
        section,
        title,
        caption,
        x: Axis::ratios(format!("{heading}, ratio"), least, highest),
        y: Axis::names(&labels),
        marks: Marks::Ratios(ratios),
    })
}

#[cfg(test)]
mod tests {
    use super::super::batch::samples::done;
    use super::super::{groups, pairs};
    use super::*;

    fn runs() -> Vec<super::super::Ran> {
        let mut runs = Vec::new();
        for load in [4.0, 8.0] {
            for seed in 1..=3 {
                runs.push(done("las", load, seed, 3_600.0 * load * seed as f64));
                runs.push(done("srtf", load, seed, 1_800.0 * load * seed as f64));
            }
        }
        runs
    }

    #[test]
    fn a_varying_load_is_drawn_with_an_interval_at_each_point() {
        let figures = figures(&groups(&runs()), &[]);
        let Marks::Measured(lines, whiskers) = &figures[0].marks else { panic!("{figures:?}") };
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1].points, [(4.0, 4.0), (8.0, 8.0)]);
        assert_eq!(whiskers.len(), 4);
        assert!(whiskers.iter().all(|whisker| whisker.low < whisker.high));
    }

    #[test]
    fn policies_compared_on_the_same_seeds_have_a_picture_of_their_ratio() {
        let runs = runs();
        let against_load = figures(&groups(&runs), &pairs(&runs));
        let found = against_load.iter().find(|figure| figure.name == "avg-jct-ratio").expect("ratios");
        let Marks::Measured(lines, _) = &found.marks else { panic!("{found:?}") };
        assert_eq!((lines[0].colour, lines[1].label.as_str()), (GREY, "srtf"), "a line at 1 first");
        assert_eq!(lines[1].points, [(4.0, 0.5), (8.0, 0.5)]);
        let at_one_load = &runs[..6];
        let rows = figures(&groups(at_one_load), &pairs(at_one_load));
        let found = rows.iter().find(|figure| figure.name == "avg-jct-ratio").expect("ratios");
        let Marks::Ratios(ratios) = &found.marks else { panic!("{found:?}") };
        assert_eq!((ratios.len(), ratios[0].mean, ratios[0].text.as_str()), (1, 0.5, "0.500"));
    }
}
