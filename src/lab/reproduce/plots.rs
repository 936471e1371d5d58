//! A figure's rows as pictures: curves where something is swept, bars where not; published numbers as dots and ticks.

use std::collections::BTreeSet;

use super::evidence::{At, Column, text_of};
use super::quantity::{Quantity, Unit};
use super::reproduced::{Reproduced, TableRow};
use crate::report::{Axis, Bar, Figure, Line, Marker, Marks, Versions, begin_large, styles};

impl Reproduced {
    /// Every picture of the figure.
    pub fn pictures(&self) -> Vec<Figure> {
        let rows = self.table_rows();
        let axis = self.figure.along.iter().copied().find(|name| is_swept(&rows, name));
        let mut figures = Vec::new();
        for of in self.figure.shows {
            let lines: Vec<&TableRow<'_>> = rows.iter().filter(|line| line.of.name == of.name).collect();
            match axis {
                Some(axis) => figures.extend(curves(&lines, of, axis)),
                None => figures.extend(bars(&lines, of)),
            }
        }
        figures
    }
}

/// Whether a setting has several values, all of them numbers.
fn is_swept(rows: &[TableRow<'_>], name: &str) -> bool {
    let values: BTreeSet<&String> = rows.iter().filter_map(|line| line.at.get(name)).collect();
    values.len() > 1 && values.iter().all(|value| value.parse::<f64>().is_ok())
}

/// The policies of one picture: an order with its allocations, or a policy that has none.
fn family(policy: &str) -> &str {
    policy.split_once('+').map_or(policy, |(order, _)| order)
}

/// A picture for each family of policies and each combination of the settings that are not on the axis.
fn curves(lines: &[&TableRow<'_>], of: &Quantity, axis: &str) -> Vec<Figure> {
    let rest = |line: &TableRow<'_>| -> (String, At) {
        let at = line.at.iter().filter(|(name, _)| *name != axis);
        (family(line.policy).to_owned(), at.map(|(name, value)| (name.clone(), value.clone())).collect())
    };
    let mut seen = Vec::new();
    let mut figures = Vec::new();
    for line in lines {
        let own = rest(line);
        if seen.contains(&own) {
            continue;
        }
        let like: Vec<&TableRow<'_>> = lines.iter().copied().filter(|other| rest(other) == own).collect();
        figures.push(curve(&like, of, axis, &own.0, &text_of(&own.1)));
        seen.push(own);
    }
    figures
}

fn curve(lines: &[&TableRow<'_>], of: &Quantity, axis: &str, family: &str, at: &str) -> Figure {
    let mut policies: Vec<&str> = Vec::new();
    for line in lines {
        if !policies.contains(&line.policy) {
            policies.push(line.policy);
        }
    }
    let mut drawn = Versions::default();
    for (policy, colour) in policies.iter().zip(styles(policies.iter().copied())) {
        for (place, column) in Column::ALL.iter().enumerate() {
            let point = |line: &&&TableRow<'_>| {
                let x = line.at.get(axis)?.parse::<f64>().ok()?;
                Some((x, scaled(of, line.values[place]?)))
            };
            let own = lines.iter().filter(|line| line.policy == *policy);
            let mut points: Vec<(f64, f64)> = own.filter_map(|line| point(&line)).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if points.is_empty() {
                continue;
            }
            let label = format!("{policy}, {}", column.heading());
            let line = |has_dots: bool| Line { label, colour, has_dots, points };
            match column {
                Column::Published => drawn.published.push(line(true)),
                Column::Original => drawn.thin.push(line(false)),
                Column::Shipped => drawn.thick.push(line(true)),
            }
        }
    }
    let Versions { thin, thick, published } = &drawn;
    let points = || [thin, thick, published].into_iter().flatten().flat_map(|line| &line.points);
    let mut xs: Vec<f64> = points().map(|(x, _)| *x).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let (least, most) =
        points().fold((f64::INFINITY, 0.0_f64), |(least, most), (_, y)| (least.min(*y), most.max(*y)));
    let y = line_axis(of, least, most);
    let place = if at.is_empty() { String::new() } else { format!(", {at}") };
    let hollow = if published.is_empty() { "" } else { "; hollow marks: published" };
    Figure {
        name: file_name(&[of.name, family, at]),
        section: "Figures".into(),
        title: format!("{family}{place}: {}", of.shown),
        caption: format!("Thick: the shipped policies; thin: the original's rules{hollow}.{}", y.note()),
        x: Axis::at_values(axis.replace('_', " "), &xs),
        y,
        marks: Marks::Versions(drawn),
    }
}

/// A picture for each setting: two bars for each policy, a tick where the paper has its number.
fn bars(lines: &[&TableRow<'_>], of: &Quantity) -> Vec<Figure> {
    let mut places: Vec<&At> = Vec::new();
    for line in lines {
        if !places.contains(&line.at) {
            places.push(line.at);
        }
    }
    let picture = |at: &At| {
        let own = lines.iter().filter(|line| line.at == at);
        let mut names = Vec::new();
        let (mut bars, mut markers) = (Vec::new(), Vec::new());
        let styles = styles(own.clone().map(|line| line.policy));
        for (line, colour) in own.zip(styles) {
            let [published, original, shipped] = line.values;
            for (column, value) in [(Column::Original, original), (Column::Shipped, shipped)] {
                let is_bare = column == Column::Shipped && original.is_none();
                let Some(value) = value.or((is_bare && published.is_some()).then_some(0.0)) else { continue };
                markers.extend(published.map(|value| Marker { bar: bars.len(), value: scaled(of, value) }));
                names.push(match column {
                    Column::Shipped => line.policy.to_owned(),
                    _ => format!("{}, original", line.policy),
                });
                let text = match (column, shipped.or(original)) {
                    (_, None) => format!("published {}", of.text(published.unwrap_or_default())),
                    _ => of.text(value),
                };
                bars.push(Bar { colour, value: scaled(of, value), text });
            }
        }
        let values = bars.iter().map(|bar| bar.value).chain(markers.iter().map(|marker| marker.value));
        let most = values.fold(0.0, f64::max);
        Figure {
            name: file_name(&[of.name, &text_of(at)]),
            section: "Figures".into(),
            title: begin_large(&match text_of(at) {
                place if place.is_empty() => of.shown.to_owned(),
                place => format!("{}, {place}", of.shown),
            }),
            caption: match markers.is_empty() {
                true => "No numbers are published.".into(),
                false => "A tick across a bar is the published number, where there is one.".into(),
            },
            x: value_axis(of, most),
            y: Axis::names(&names),
            marks: Marks::MarkedBars(bars, markers),
        }
    };
    places.into_iter().map(picture).collect()
}

fn scaled(of: &Quantity, value: f64) -> f64 {
    if of.unit == Unit::Hours { value / 3_600.0 } else { value }
}

fn value_axis(of: &Quantity, most: f64) -> Axis {
    match of.unit {
        Unit::Part if of.is_less_better => Axis::from_zero(part_of_one(of), most),
        Unit::Part => Axis::from_zero(part_of_one(of), 1.0),
        Unit::Hours => Axis::from_zero(format!("{} (h)", of.shown), most),
        Unit::Times | Unit::Count => Axis::from_zero(of.shown, most),
    }
}

/// Parts are written as the papers, the claims and the table have them, 0.93 and not 93 %.
fn part_of_one(of: &Quantity) -> String {
    format!("{} (part of 1)", of.shown)
}

/// The axis of lines, which need not begin at zero.
fn line_axis(of: &Quantity, least: f64, most: f64) -> Axis {
    match of.unit {
        Unit::Part => Axis::spanning(part_of_one(of), least, most),
        Unit::Hours => Axis::spanning(format!("{} (h)", of.shown), least, most),
        Unit::Times | Unit::Count => Axis::spanning(of.shown, least, most),
    }
}

/// Words joined into the stem of a file's name.
fn file_name(words: &[&str]) -> String {
    let joined = words.join("-");
    let plain = joined.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let parts: Vec<String> = plain.collect::<String>().split('-').map(str::to_owned).collect();
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::super::reproduced::tests::six_b;
    use super::*;

    #[test]
    fn published_numbers_are_ticks_across_the_bars() {
        let pictures = six_b().pictures();
        assert_eq!(pictures.len(), 1);
        let Marks::MarkedBars(bars, markers) = &pictures[0].marks else { panic!("bars") };
        assert_eq!(
            (bars[0].value, bars[1].value, markers[0]),
            (0.749, 0.913, Marker { bar: 0, value: 0.6667 })
        );
        assert!(bars.iter().any(|bar| bar.text == "published 0.410"), "chronus was not run: {bars:?}");
    }

    #[test]
    fn file_names_are_plain() {
        assert_eq!(file_name(&["avg_jct_s", "las", "split 20,70,10"]), "avg-jct-s-las-split-20-70-10");
    }
}
