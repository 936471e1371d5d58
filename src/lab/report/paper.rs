//! What a figure is drawn on: a page of ours, or a column of a paper with its own width and type size.

use std::str::FromStr;

/// Dots per inch of what is drawn for papers.
const DPI: f64 = 300.0;
const POINTS_PER_INCH: f64 = 72.0;

/// How plots are drawn into files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotOptions {
    /// Width and height.
    pub size: PlotSize,
    /// Type size in points.
    pub font_pt: f64,
}

impl Default for PlotOptions {
    fn default() -> Self {
        PlotOptions { size: PlotSize::COLUMN, font_pt: 8.0 }
    }
}

/// Width and height of a plot in inches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotSize {
    width_in: f64,
    height_in: f64,
}

impl PlotSize {
    /// One column of a paper in two columns.
    pub const COLUMN: PlotSize = PlotSize { width_in: 3.33, height_in: 2.2 };
    /// Both of them.
    pub const PAGE: PlotSize = PlotSize { width_in: 7.0, height_in: 2.9 };
}

/// A text that is not the size of a plot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a size: write column, page, or WxH in inches from 1 to 40, as in 3.33x2.2")]
pub struct PlotSizeError {
    text: String,
}

impl FromStr for PlotSize {
    type Err = PlotSizeError;
    fn from_str(text: &str) -> Result<Self, PlotSizeError> {
        let inches =
            |text: &str| text.trim().parse::<f64>().ok().filter(|inches| (1.0..=40.0).contains(inches));
        let given = match text {
            "column" => Some(PlotSize::COLUMN),
            "page" => Some(PlotSize::PAGE),
            _ => text.split_once('x').and_then(|(width, height)| {
                Some(PlotSize { width_in: inches(width)?, height_in: inches(height)? })
            }),
        };
        given.ok_or_else(|| PlotSizeError { text: text.to_owned() })
    }
}

/// A canvas in pixels, with the size of its text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Paper {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) text: i32,
    /// Pixels per inch of the finished picture; `None` on a page of ours, whose style says how large it is.
    pub(super) dpi: Option<f64>,
}

impl Paper {
    /// As drawn for a page: about twice the size it is shown at, because the library places points on whole pixels. Narrow
    /// enough that its text can be read on a phone.
    pub(super) const SCREEN: Paper = Paper { width: 960, height: 620, text: 33, dpi: None };

    /// As asked for.
    pub(super) fn print(options: &PlotOptions) -> Self {
        let pixels = |inches: f64| (inches * DPI).round() as u32;
        Paper {
            width: pixels(options.size.width_in),
            height: pixels(options.size.height_in),
            text: (options.font_pt / POINTS_PER_INCH * DPI).round() as i32,
            dpi: Some(DPI),
        }
    }

    /// So many parts of the text's height.
    pub(super) fn em(&self, parts: f64) -> i32 {
        (parts * f64::from(self.text)).round() as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_names_or_inches() {
        assert_eq!("page".parse(), Ok(PlotSize::PAGE));
        assert_eq!("3.5x2".parse(), Ok(PlotSize { width_in: 3.5, height_in: 2.0 }));
        for text in ["", "x", "3", "0x2", "3x-1", "3xnan", "500x500", "3x2x1"] {
            assert!(text.parse::<PlotSize>().is_err(), "{text}");
        }
        let paper = Paper::print(&PlotOptions::default());
        assert_eq!((paper.width, paper.height, paper.text), (999, 660, 33), "eight points at 300 dpi");
    }
}
