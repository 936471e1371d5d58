//! What a figure shows, as plain data: no drawing here.

use super::Axis;

/// One picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Stem of its file name.
    pub name: String,
    /// Heading of the part of a page that it belongs to.
    pub section: String,
    /// Written above the drawing on a page, and read out for those who cannot see it; not part of the drawing.
    pub title: String,
    /// What a reader must know as well: what was left out or averaged, how many jobs were counted.
    pub caption: String,
    /// The axis along the bottom.
    pub x: Axis,
    /// The axis along the side.
    pub y: Axis,
    /// What is drawn.
    pub marks: Marks,
}

/// What is drawn in a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Marks {
    /// Lines, each with a place in the legend.
    Lines(Vec<Line>),
    /// Lines through measured points, each point with what is known of its error.
    Measured(Vec<Line>, Vec<Whisker>),
    /// Horizontal bars, one for each name on the side axis, from the top.
    Bars(Vec<Bar>),
    /// The same, with ticks across some of them at what was expected.
    MarkedBars(Vec<Bar>, Vec<Marker>),
    /// Intervals, one for each name on the side axis, from the top, with a line across at 1.
    Ratios(Vec<Ratio>),
    /// Several versions of the same things, which share their colours and dashes.
    Versions(Versions),
}

/// Versions of the same lines, told apart by how they are drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Versions {
    /// Thin lines.
    pub thin: Vec<Line>,
    /// Thick ones, on top of them.
    pub thick: Vec<Line>,
    /// What was published: hollow marks that no line joins.
    pub published: Vec<Line>,
}

/// What two things compare to, with an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// Place in the palette.
    pub colour: usize,
    /// In units of the bottom axis.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// What is written next to it.
    pub text: String,
}

/// One line of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name in the legend; an empty one is not there.
    pub label: String,
    /// Place in the palette; past its end colours come again, with another dash each time.
    pub colour: usize,
    /// Whether every point is marked, for few points with nothing between them.
    pub has_dots: bool,
    /// In the units of the axes, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// An interval at a point of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whisker {
    /// Place in the palette.
    pub colour: usize,
    /// In units of the bottom axis.
    pub at: f64,
    /// Lower end, in units of the side axis.
    pub low: f64,
    /// Upper end, in units of the side axis.
    pub high: f64,
}

/// One bar of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Place in the palette.
    pub colour: usize,
    /// Length in units of the bottom axis.
    pub value: f64,
    /// What is written at its end.
    pub text: String,
}

/// A tick across a bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marker {
    /// Which bar, from the top.
    pub bar: usize,
    /// In units of the bottom axis.
    pub value: f64,
}

/// A colour, for paper and light pages, and for dark ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shade {
    pub(super) light: &'static str,
    pub(super) dark: &'static str,
}

/// Colours that colour-blind readers can distinguish: Okabe and Ito's (Color Universal Design, 2008), without their yellow and
/// with a darker orange and sky blue, and four of Tol's muted scheme (2021); grey last. Each stands out from its paper by at
/// least 3 to 1, as WCAG (level AA) asks of lines and marks.
pub(super) const PALETTE: [Shade; 11] = [
    Shade { light: "#0072B2", dark: "#4BA6E0" },
    Shade { light: "#D55E00", dark: "#F08643" },
    Shade { light: "#009E73", dark: "#35C79E" },
    Shade { light: "#CC79A7", dark: "#E09BC2" },
    Shade { light: "#B28B50", dark: "#F2B63D" },
    Shade { light: "#0095E6", dark: "#8FD0F5" },
    Shade { light: "#332288", dark: "#9A90EE" },
    Shade { light: "#882255", dark: "#D873A6" },
    Shade { light: "#999933", dark: "#C9C96B" },
    Shade { light: "#8B5A2B", dark: "#CB9C6C" },
    Shade { light: "#6E7781", dark: "#A5AEB8" },
];

/// How many colours there are before they repeat.
pub const PALETTE_LENGTH: usize = PALETTE.len();
/// Place of the grey in the palette, for limits and other things that are not results.
pub(crate) const GREY: usize = PALETTE_LENGTH - 1;
/// Text and axes.
pub(super) const INK: Shade = Shade { light: "#24292F", dark: "#D8DEE4" };
/// Lines of the grid.
pub(super) const GRID: Shade = Shade { light: "#E1E4E8", dark: "#3A4149" };
/// What everything is drawn on.
pub(super) const PAPER: Shade = Shade { light: "#FFFFFF", dark: "#161B22" };

/// The points of a step function that keeps each value until the next, up to `end`.
pub(super) fn stairs(steps: &[(f64, f64)], end: f64) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(2 * steps.len() + 1);
    for step in steps {
        if let Some(last) = points.last().copied() {
            points.push((step.0, last.1));
        }
        points.push(*step);
    }
    points.extend(points.last().copied().filter(|last| last.0 < end).map(|last| (end, last.1)));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much two colours differ in lightness, by WCAG's formula: from 1 to 21.
    fn contrast(a: &str, b: &str) -> f64 {
        let light = |colour: &str| {
            let channel = |at: usize| u8::from_str_radix(&colour[at..at + 2], 16).expect("#RRGGBB");
            let linear = |at: usize| match f64::from(channel(at)) / 255.0 {
                dark if dark <= 0.04045 => dark / 12.92,
                value => ((value + 0.055) / 1.055).powf(2.4),
            };
            0.2126 * linear(1) + 0.7152 * linear(3) + 0.0722 * linear(5) + 0.05
        };
        let (a, b) = (light(a), light(b));
        a.max(b) / a.min(b)
    }

    #[test]
    fn lines_and_text_stand_out_from_the_paper() {
        let shades = PALETTE.iter().map(|shade| (shade, 3.0)).chain([(&INK, 4.5)]);
        for (Shade { light, dark }, least) in shades {
            assert!(contrast(light, PAPER.light) >= least, "{light}: {}", contrast(light, PAPER.light));
            assert!(contrast(dark, PAPER.dark) >= least, "{dark}: {}", contrast(dark, PAPER.dark));
        }
        let sheet = include_str!("colours.css");
        let (light, dark) = sheet.split_once("@media").expect("light colours, then dark ones");
        for theme in [light, dark] {
            let colour = |name: &str| {
                let value = theme.split_once(&format!("--{name}: ")).expect(name).1;
                value.split(';').next().expect("a value").to_owned()
            };
            for (text, below) in ["ink", "quiet"]
                .into_iter()
                .flat_map(|text| ["paper", "panel", "stripe", "best", "worse"].map(|below| (text, below)))
            {
                assert!(contrast(&colour(text), &colour(below)) >= 4.5, "{text} on {below}: {theme}");
            }
        }
    }

    #[test]
    fn stairs_hold_each_value_until_the_next() {
        let points = stairs(&[(0.0, 1.0), (2.0, 5.0)], 3.0);
        assert_eq!(points, [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0), (3.0, 5.0)]);
    }
}
