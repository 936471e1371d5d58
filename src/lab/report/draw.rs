//! The only place that knows the drawing library: figures become SVG, PNG or PDF.
//!
//! Text is measured, and in PNG and PDF drawn, with DejaVu Sans, which is built in: no font of the system is needed. Titles
//! are not drawn: a page writes them above, a paper has its own captions.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use svg2pdf::usvg;

use super::band::{self, Band};
use super::figure::{GREY, GRID, INK, PALETTE, PALETTE_LENGTH, PAPER, Shade};
use super::paper::Paper;
use super::style::N_DASHES;
use super::{
    Axis, Bar, Figure, Line, Marker, Marks, PlotOptions, Ratio, ReportError, Versions, Whisker, marks,
};

/// Dash and gap in parts of the text's height, for each turn of the palette.
const DASHES: [Option<(f64, f64)>; N_DASHES] =
    [None, Some((0.5, 0.3)), Some((0.12, 0.24)), Some((1.1, 0.35))];
/// Height of a row of bars, in parts of the text's height.
const ROW: f64 = 1.5;

type Canvas<B> = DrawingArea<B, Shift>;
type Chart<'a, B> = ChartContext<'a, B, Cartesian2d<Axis, Axis>>;
type DrawError<B> = DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>;
type Drawn<B> = Result<(), DrawError<B>>;

/// The figure as SVG text, for a page.
pub fn to_svg(figure: &Figure) -> Result<String, ReportError> {
    svg(figure, Paper::SCREEN)
}

/// The figure as SVG text, for a paper.
pub(super) fn to_print_svg(figure: &Figure, options: &PlotOptions) -> Result<String, ReportError> {
    svg(figure, Paper::print(options))
}

fn svg(figure: &Figure, paper: Paper) -> Result<String, ReportError> {
    let paper = tall_enough(figure, paper);
    let mut svg = String::new();
    let canvas = SVGBackend::with_string(&mut svg, (paper.width, paper.height)).into_drawing_area();
    finish(figure, Pen { paper }.draw(figure, &canvas).and_then(|()| canvas.present()))?;
    drop(canvas);
    let Some(dpi) = paper.dpi else { return Ok(svg) };
    // In inches, so that it comes out as large as it was asked for.
    let inches = |pixels: u32| f64::from(pixels) / dpi;
    let pixels = format!("width=\"{}\" height=\"{}\"", paper.width, paper.height);
    let size = format!("width=\"{:.4}in\" height=\"{:.4}in\"", inches(paper.width), inches(paper.height));
    Ok(svg.replacen(&pixels, &size, 1))
}

/// The figure as a PNG file.
pub(super) fn to_png(figure: &Figure, options: &PlotOptions, path: &Path) -> Result<(), ReportError> {
    let paper = tall_enough(figure, Paper::print(options));
    let canvas = BitMapBackend::new(path, (paper.width, paper.height)).into_drawing_area();
    finish(figure, Pen { paper }.draw(figure, &canvas).and_then(|()| canvas.present()))
}

/// The SVG of a figure as a PDF of the same size, its text as text.
pub(super) fn to_pdf(figure: &Figure, svg: &str) -> Result<Vec<u8>, ReportError> {
    static OPTIONS: LazyLock<usvg::Options<'static>> = LazyLock::new(|| {
        let mut options = usvg::Options { font_family: FONT.to_owned(), ..usvg::Options::default() };
        let fonts = options.fontdb_mut();
        fonts.load_font_source(usvg::fontdb::Source::Binary(Arc::new(dejavu::sans::regular())));
        fonts.set_sans_serif_family(FONT);
        options
    });
    let wrong = |why: String| ReportError::Draw { figure: figure.name.clone(), why };
    let tree = usvg::Tree::from_str(svg, &OPTIONS).map_err(|e| wrong(e.to_string()))?;
    // One unit of the tree is a pixel at 96 to the inch, since its size is written in inches.
    let page = svg2pdf::PageOptions { dpi: 96.0 };
    svg2pdf::to_pdf(&tree, svg2pdf::ConversionOptions::default(), page).map_err(|e| wrong(e.to_string()))
}

const FONT: &str = "DejaVu Sans";

fn finish<E: std::fmt::Display>(figure: &Figure, drawn: Result<(), E>) -> Result<(), ReportError> {
    drawn.map_err(|e| ReportError::Draw { figure: figure.name.clone(), why: e.to_string() })
}

/// Rows of bars must not touch: a figure of many is higher.
fn tall_enough(figure: &Figure, paper: Paper) -> Paper {
    let n_rows = match &figure.marks {
        Marks::Bars(bars) | Marks::MarkedBars(bars, _) => bars.len(),
        Marks::Ratios(ratios) => ratios.len(),
        Marks::Lines(_) | Marks::Measured(..) | Marks::Versions(_) => return paper,
    };
    let rows = paper.em(ROW * n_rows as f64 + 4.0) as u32;
    let least = if paper.dpi.is_some() { paper.height } else { 0 };
    Paper { height: rows.max(least), ..paper }
}

/// Draws on one kind of paper.
struct Pen {
    paper: Paper,
}

impl Pen {
    fn draw<B: DrawingBackend>(&self, figure: &Figure, canvas: &Canvas<B>) -> Drawn<B> {
        let em = |parts: f64| self.paper.em(parts);
        canvas.fill(&colour(PAPER))?;
        let legend = match &figure.marks {
            Marks::Lines(lines) | Marks::Measured(lines, _) => {
                self.legend(lines.iter().map(|line| (line, Stroke::Thick)), canvas)?
            }
            Marks::Versions(versions) => self.legend(in_order(versions), canvas)?,
            Marks::Bars(_) | Marks::MarkedBars(..) | Marks::Ratios(_) => 0,
        };
        let right = self.room_for_values(figure, canvas)?;
        let side = self.side_width(&figure.y, canvas)?;
        let bottom = if figure.x.label.is_empty() { em(1.5) } else { em(2.8) };
        let (top, left) = (legend + em(0.6), if figure.y.label.is_empty() { 0 } else { em(0.4) });
        let size = (
            self.paper.width as i32 - left - side - right,
            self.paper.height as i32 - top - bottom - em(0.3),
        );
        let x = self.fitted(&figure.x, canvas, size.0, |(width, _)| width, 1.0)?;
        let y = match is_rows(figure) {
            true => self.cut(&figure.y, canvas)?,
            false => self.fitted(&figure.y, canvas, size.1, |(_, height)| height, 0.3)?,
        };
        // A rotated title overhangs its place by a little.
        let body = canvas.margin(top, em(0.3), left, right);
        let mut chart = ChartBuilder::on(&body)
            .x_label_area_size(bottom)
            .y_label_area_size(side)
            .build_cartesian_2d(x, y)?;
        self.axes(figure, &mut chart)?;
        self.marks(figure, &mut chart)
    }

    fn marks<B: DrawingBackend>(&self, figure: &Figure, chart: &mut Chart<'_, B>) -> Drawn<B> {
        match &figure.marks {
            Marks::Lines(lines) => lines.iter().try_for_each(|line| self.line(line, Stroke::Thick, chart)),
            Marks::Measured(lines, whiskers) => {
                let (single, bands) = band::apart(whiskers);
                bands.into_iter().try_for_each(|band| self.band(band, chart))?;
                single.iter().try_for_each(|whisker| self.whisker(whisker, chart))?;
                lines.iter().try_for_each(|line| self.line(line, Stroke::Thick, chart))
            }
            Marks::Versions(versions) => {
                in_order(versions).try_for_each(|(line, stroke)| self.line(line, stroke, chart))
            }
            Marks::Bars(bars) => self.bars(bars, &[], chart),
            Marks::MarkedBars(bars, markers) => {
                self.bars(bars, markers, chart)?;
                markers.iter().try_for_each(|marker| self.marker(marker, bars.len(), chart))
            }
            Marks::Ratios(ratios) => self.ratios(ratios, chart),
        }
    }

    /// Draws a sample and a name for each line, in as many rows as are needed; returns where the last one ends.
    fn legend<'l, B: DrawingBackend>(
        &self,
        lines: impl Iterator<Item = (&'l Line, Stroke)>,
        canvas: &Canvas<B>,
    ) -> Result<i32, DrawError<B>> {
        let em = |parts: f64| self.paper.em(parts);
        let style = self.text().pos(Pos::new(HPos::Left, VPos::Center));
        let (row, sample) = (em(1.25), em(1.7));
        let (mut x, mut y) = (em(0.4), em(0.3) + row / 2);
        let mut is_empty = true;
        for (line, stroke) in lines.filter(|(line, _)| !line.label.is_empty()) {
            let is_hollow = stroke == Stroke::None;
            is_empty = false;
            let width = sample + em(0.35) + self.width(&line.label, canvas)? + em(0.9);
            if x > em(0.4) && x + width > self.paper.width as i32 {
                (x, y) = (em(0.4), y + row);
            }
            if !is_hollow && line.points.len() != 1 {
                for (from, to) in self.dash_spans(line.colour, sample) {
                    let ends = [(x + from, y), (x + to, y)];
                    canvas.draw(&PathElement::new(ends, self.stroke(line.colour, stroke.width() * 1.25)))?;
                }
            }
            if line.has_dots || is_hollow {
                let shape = marks::shape(line.colour, self.mark_size()).into_iter();
                let at = shape.map(|(dx, dy)| (x + sample / 2 + dx, y + dy)).collect();
                self.mark(canvas, at, line.colour, is_hollow)?;
            }
            canvas.draw(&Text::new(line.label.clone(), (x + sample + em(0.35), y), style.clone()))?;
            x += width;
        }
        Ok(if is_empty { 0 } else { y + row / 2 })
    }

    /// From where to where a sample of a line is drawn.
    fn dash_spans(&self, style: usize, length: i32) -> Vec<(i32, i32)> {
        let Some((dash, gap)) = self.dash(style) else { return vec![(0, length)] };
        let starts = (0..).map(|at| at * (dash + gap)).take_while(|from| *from < length);
        starts.map(|from| (from, (from + dash).min(length))).collect()
    }

    fn dash(&self, style: usize) -> Option<(i32, i32)> {
        let (dash, gap) = DASHES[style / PALETTE_LENGTH % N_DASHES]?;
        Some((self.paper.em(dash).max(1), self.paper.em(gap).max(1)))
    }

    fn width<B: DrawingBackend>(&self, text: &str, canvas: &Canvas<B>) -> Result<i32, DrawError<B>> {
        Ok(canvas.estimate_text_size(text, &self.text())?.0 as i32)
    }

    /// An axis without labels that touch; `length` is along it, `along` picks that side of a label.
    fn fitted<B: DrawingBackend>(
        &self,
        axis: &Axis,
        canvas: &Canvas<B>,
        length: i32,
        along: fn((u32, u32)) -> u32,
        gap_em: f64,
    ) -> Result<Axis, DrawError<B>> {
        let mut sizes = Vec::new();
        for label in axis.tick_labels() {
            sizes.push((label.to_owned(), along(canvas.estimate_text_size(label, &self.text())?)));
        }
        let gap = f64::from(self.paper.em(gap_em));
        let extent = |label: &str| {
            let size = sizes.iter().find(|(known, _)| known == label).map_or(0, |(_, size)| *size);
            (f64::from(size) + gap) / 2.0 / f64::from(length.max(1))
        };
        Ok(axis.without_collisions(extent))
    }

    /// An axis of names, cut to the room there is for them.
    fn cut<B: DrawingBackend>(&self, axis: &Axis, canvas: &Canvas<B>) -> Result<Axis, DrawError<B>> {
        let room = self.paper.width as i32 * 45 / 100;
        let mut short: Vec<(String, String)> = Vec::new();
        for label in axis.tick_labels() {
            let mut text = label.to_owned();
            while self.width(&text, canvas)? > room && text.chars().count() > 4 {
                let kept = text.trim_end_matches('…').chars().count() - 1;
                text = text.chars().take(kept).collect::<String>() + "…";
            }
            short.push((label.to_owned(), text));
        }
        let cut = |label: &str| {
            short.iter().find(|(known, _)| known == label).map_or("", |(_, cut)| cut).to_owned()
        };
        Ok(axis.with_labels(cut))
    }

    fn side_width<B: DrawingBackend>(&self, axis: &Axis, canvas: &Canvas<B>) -> Result<i32, DrawError<B>> {
        let mut widest = 0;
        for label in axis.tick_labels() {
            widest = widest.max(self.width(label, canvas)?);
        }
        let title = if axis.label.is_empty() { 0 } else { self.paper.em(1.5) };
        Ok((widest + self.paper.em(0.9) + title).min(self.paper.width as i32 / 2))
    }

    /// What is left free on the right for what is written behind bars, or for half of the last label.
    fn room_for_values<B: DrawingBackend>(
        &self,
        figure: &Figure,
        canvas: &Canvas<B>,
    ) -> Result<i32, DrawError<B>> {
        let texts: Vec<&String> = match &figure.marks {
            Marks::Bars(bars) | Marks::MarkedBars(bars, _) => bars.iter().map(|bar| &bar.text).collect(),
            Marks::Ratios(ratios) => ratios.iter().map(|ratio| &ratio.text).collect(),
            Marks::Lines(_) | Marks::Measured(..) | Marks::Versions(_) => Vec::new(),
        };
        let mut widest = match figure.x.tick_labels().last() {
            Some(last) => self.width(last, canvas)? / 2,
            None => 0,
        };
        for text in texts {
            widest = widest.max(self.width(text, canvas)? + self.paper.em(0.4));
        }
        Ok(widest + self.paper.em(0.4))
    }

    fn axes<B: DrawingBackend>(&self, figure: &Figure, chart: &mut Chart<'_, B>) -> Drawn<B> {
        let (x, y) = (chart.as_coord_spec().x_spec().clone(), chart.as_coord_spec().y_spec().clone());
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT)
            .bold_line_style(colour(GRID).stroke_width(self.thick(0.05)))
            .axis_style(colour(INK).stroke_width(self.thick(0.06)))
            .label_style(self.text())
            .axis_desc_style(self.text())
            .x_desc(figure.x.label.as_str())
            .y_desc(figure.y.label.as_str());
        let x_label = |value: &f64| x.tick_label(*value);
        let y_label = |value: &f64| y.tick_label(*value);
        mesh.x_label_formatter(&x_label).y_label_formatter(&y_label);
        if is_rows(figure) {
            mesh.disable_y_mesh();
        }
        mesh.draw()
    }

    fn line<B: DrawingBackend>(&self, line: &Line, stroke: Stroke, chart: &mut Chart<'_, B>) -> Drawn<B> {
        if stroke == Stroke::None {
            return self.dots(line, true, chart);
        }
        let stroke = self.stroke(line.colour, stroke.width());
        let points = line.points.iter().copied();
        match self.dash(line.colour) {
            Some((dash, gap)) => chart.draw_series(DashedLineSeries::new(points, dash, gap, stroke))?,
            None => chart.draw_series(LineSeries::new(points, stroke))?,
        };
        if line.has_dots { self.dots(line, false, chart) } else { Ok(()) }
    }

    /// A mark at every point: its shape goes with the colour, for those who do not see colours.
    fn dots<B: DrawingBackend>(&self, line: &Line, is_hollow: bool, chart: &mut Chart<'_, B>) -> Drawn<B> {
        let shape = marks::shape(line.colour, self.mark_size());
        let area = chart.plotting_area().strip_coord_spec();
        let origin = area.get_base_pixel();
        line.points.iter().try_for_each(|point| {
            let (x, y) = chart.backend_coord(point);
            let at = shape.iter().map(|(dx, dy)| (x - origin.0 + dx, y - origin.1 + dy)).collect();
            self.mark(&area, at, line.colour, is_hollow)
        })
    }

    fn mark<B: DrawingBackend>(
        &self,
        canvas: &Canvas<B>,
        outline: Vec<(i32, i32)>,
        style: usize,
        is_hollow: bool,
    ) -> Drawn<B> {
        let mut closed = outline.clone();
        closed.extend(outline.first().copied());
        if is_hollow {
            canvas.draw(&Polygon::new(outline, ShapeStyle::from(colour(PAPER)).filled()))?;
            canvas.draw(&PathElement::new(closed, self.stroke(style, 0.09)))
        } else {
            canvas.draw(&Polygon::new(outline, self.stroke(style, 0.05).filled()))
        }
    }

    fn whisker<B: DrawingBackend>(&self, whisker: &Whisker, chart: &mut Chart<'_, B>) -> Drawn<B> {
        let stroke = self.stroke(whisker.colour, 0.08);
        let ends = [(whisker.at, whisker.low), (whisker.at, whisker.high)];
        chart.draw_series([PathElement::new(ends, stroke)])?;
        let half = self.paper.em(0.25);
        let cap =
            |y: f64| EmptyElement::at((whisker.at, y)) + PathElement::new([(-half, 0), (half, 0)], stroke);
        chart.draw_series([cap(whisker.low), cap(whisker.high)])?;
        Ok(())
    }

    /// So light that the line in front of it, the grid and another band are seen.
    fn band<B: DrawingBackend>(&self, band: Band, chart: &mut Chart<'_, B>) -> Drawn<B> {
        let fill = colour(PALETTE[band.colour % PALETTE.len()]).mix(0.22).filled();
        chart.draw_series([Polygon::new(band.outline, fill)])?;
        Ok(())
    }

    /// Values are written behind their bars, and behind a tick that stands further out.
    fn bars<B: DrawingBackend>(
        &self,
        bars: &[Bar],
        markers: &[Marker],
        chart: &mut Chart<'_, B>,
    ) -> Drawn<B> {
        for (index, bar) in bars.iter().enumerate() {
            let middle = (bars.len() - index) as f64 - 0.5;
            let corners = [(0.0, middle - 0.34), (bar.value, middle + 0.34)];
            chart.draw_series([Rectangle::new(corners, self.stroke(bar.colour, 0.05).filled())])?;
            // A tick well inside of the bar does not reach the value.
            let ticks = markers.iter().filter(|marker| marker.bar == index).map(|marker| marker.value);
            let end = ticks.fold(bar.value, f64::max);
            self.write_behind((end, middle), &bar.text, chart)?;
        }
        Ok(())
    }

    fn write_behind<B: DrawingBackend>(
        &self,
        at: (f64, f64),
        text: &str,
        chart: &mut Chart<'_, B>,
    ) -> Drawn<B> {
        let style = self.text().pos(Pos::new(HPos::Left, VPos::Center));
        let label = EmptyElement::at(at) + Text::new(text.to_owned(), (self.paper.em(0.3), 0), style);
        chart.draw_series([label])?;
        Ok(())
    }

    fn ratios<B: DrawingBackend>(&self, ratios: &[Ratio], chart: &mut Chart<'_, B>) -> Drawn<B> {
        let one = [(1.0, 0.0), (1.0, ratios.len() as f64)];
        chart.draw_series([PathElement::new(one, self.stroke(GREY, 0.08))])?;
        for (index, ratio) in ratios.iter().enumerate() {
            let middle = (ratios.len() - index) as f64 - 0.5;
            let stroke = self.stroke(ratio.colour, 0.11);
            chart.draw_series([PathElement::new([(ratio.low, middle), (ratio.high, middle)], stroke)])?;
            let caps = [ratio.low, ratio.high];
            chart.draw_series(
                caps.map(|at| PathElement::new([(at, middle - 0.2), (at, middle + 0.2)], stroke)),
            )?;
            let dot = Line {
                label: String::new(),
                colour: ratio.colour,
                has_dots: true,
                points: vec![(ratio.mean, middle)],
            };
            self.dots(&dot, false, chart)?;
            self.write_behind((chart.as_coord_spec().x_spec().end(), middle), &ratio.text, chart)?;
        }
        Ok(())
    }

    /// A tick in the colour of the text, so that it is seen on every bar and next to it.
    fn marker<B: DrawingBackend>(
        &self,
        marker: &Marker,
        n_bars: usize,
        chart: &mut Chart<'_, B>,
    ) -> Drawn<B> {
        let middle = n_bars.saturating_sub(marker.bar) as f64 - 0.5;
        let ends = [(marker.value, middle - 0.45), (marker.value, middle + 0.45)];
        let stroke = ShapeStyle::from(colour(INK)).stroke_width(self.thick(0.16));
        chart.draw_series([PathElement::new(ends, stroke)])?;
        Ok(())
    }

    fn mark_size(&self) -> i32 {
        self.paper.em(0.26).max(2)
    }

    fn thick(&self, em: f64) -> u32 {
        self.paper.em(em).max(1) as u32
    }

    fn stroke(&self, style: usize, em: f64) -> ShapeStyle {
        ShapeStyle::from(colour(PALETTE[style % PALETTE.len()])).stroke_width(self.thick(em))
    }

    fn text(&self) -> TextStyle<'static> {
        static REGULAR: LazyLock<()> = LazyLock::new(|| {
            let font = register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular());
            assert!(font.is_ok(), "the built-in font is a font");
        });
        LazyLock::force(&REGULAR);
        let font = FontDesc::new(FontFamily::SansSerif, f64::from(self.paper.text), FontStyle::Normal);
        font.color(&colour(INK))
    }
}

/// How a line is drawn through its points.
#[derive(Clone, Copy, PartialEq)]
enum Stroke {
    Thick,
    Thin,
    /// Not at all: its points have hollow marks.
    None,
}

impl Stroke {
    /// In parts of the text's height.
    const fn width(self) -> f64 {
        match self {
            Stroke::Thick => 0.11,
            Stroke::Thin => 0.05,
            Stroke::None => 0.0,
        }
    }
}

/// Thin lines first, so that thick ones lie on top of them, and hollow marks on top of all.
fn in_order(Versions { thin, thick, published }: &Versions) -> impl Iterator<Item = (&Line, Stroke)> {
    let versions = [(thin, Stroke::Thin), (thick, Stroke::Thick), (published, Stroke::None)];
    versions.into_iter().flat_map(|(lines, stroke)| lines.iter().map(move |line| (line, stroke)))
}

fn is_rows(figure: &Figure) -> bool {
    matches!(figure.marks, Marks::Bars(_) | Marks::MarkedBars(..) | Marks::Ratios(_))
}

fn colour(shade: Shade) -> RGBColor {
    let channel = |at: usize| u8::from_str_radix(&shade.light[at..at + 2], 16).expect("shades are #RRGGBB");
    RGBColor(channel(1), channel(3), channel(5))
}
