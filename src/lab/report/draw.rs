//! The only place that knows the drawing library: figures become SVG or PNG.
//!
//! Pictures are drawn at twice the size they are shown at, because the library places points on whole pixels.
//! Text is measured, and in PNG drawn, with DejaVu Sans, which is built in: no font of the system is needed.

use std::path::Path;
use std::sync::LazyLock;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figure::{GRID, INK, PALETTE, PAPER, Shade};
use super::{Axis, Bar, Figure, Line, Marker, Marks, ReportError, Whisker};

const SIZE_PX: (u32, u32) = (1280, 780);
const MARGIN_PX: i32 = 28;
const TITLE_PX: i32 = 40;
const TEXT_PX: i32 = 33;
const LEGEND_ROW_PX: i32 = 44;
const LEGEND_SAMPLE_PX: i32 = 44;
const LINE_PX: u32 = 4;

type Canvas<B> = DrawingArea<B, Shift>;
type Chart<'a, B> = ChartContext<'a, B, Cartesian2d<Axis, Axis>>;
type Drawn<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

/// The figure as SVG text.
pub fn to_svg(figure: &Figure) -> Result<String, ReportError> {
    let mut svg = String::new();
    let canvas = SVGBackend::with_string(&mut svg, SIZE_PX).into_drawing_area();
    finish(figure, draw(figure, &canvas).and_then(|()| canvas.present()))?;
    drop(canvas);
    Ok(svg)
}

/// The figure as a PNG file.
pub fn to_png(figure: &Figure, path: &Path) -> Result<(), ReportError> {
    let canvas = BitMapBackend::new(path, SIZE_PX).into_drawing_area();
    finish(figure, draw(figure, &canvas).and_then(|()| canvas.present()))
}

fn finish<E: std::fmt::Display>(figure: &Figure, drawn: Result<(), E>) -> Result<(), ReportError> {
    drawn.map_err(|e| ReportError::Draw { figure: figure.name.clone(), why: e.to_string() })
}

fn draw<B: DrawingBackend>(figure: &Figure, canvas: &Canvas<B>) -> Drawn<B> {
    canvas.fill(&colour(PAPER))?;
    canvas.draw(&Text::new(figure.title.clone(), (MARGIN_PX, MARGIN_PX), text(TITLE_PX, FontStyle::Bold)))?;
    let below_title = MARGIN_PX + TITLE_PX + 16;
    let below_legend = match &figure.marks {
        Marks::Lines(lines) | Marks::Measured(lines, _) => draw_legend(lines, canvas, below_title)?,
        Marks::Bars(_) | Marks::MarkedBars(..) => below_title,
    };
    let room_for_values = if is_bars(figure) { 150 } else { MARGIN_PX + 16 };
    let body = canvas.margin(below_legend + 26, 10, 14, room_for_values);
    let mut chart = ChartBuilder::on(&body)
        .x_label_area_size(92)
        .y_label_area_size(side_width(&figure.y, canvas)?)
        .build_cartesian_2d(figure.x.clone(), figure.y.clone())?;
    draw_axes(figure, &mut chart)?;
    match &figure.marks {
        Marks::Lines(lines) => lines.iter().try_for_each(|line| draw_line(line, &mut chart)),
        Marks::Measured(lines, whiskers) => {
            whiskers.iter().try_for_each(|whisker| draw_whisker(whisker, &mut chart))?;
            lines.iter().try_for_each(|line| draw_line(line, &mut chart))
        }
        Marks::Bars(bars) => draw_bars(bars, &mut chart),
        Marks::MarkedBars(bars, markers) => {
            draw_bars(bars, &mut chart)?;
            markers.iter().try_for_each(|marker| draw_marker(marker, bars.len(), &mut chart))
        }
    }
}

fn is_bars(figure: &Figure) -> bool {
    matches!(figure.marks, Marks::Bars(_) | Marks::MarkedBars(..))
}

/// Draws a sample and a name for each line, in as many rows as are needed; returns where the last one ends.
fn draw_legend<B: DrawingBackend>(
    lines: &[Line],
    canvas: &Canvas<B>,
    top: i32,
) -> Result<i32, DrawingAreaErrorKind<B::ErrorType>> {
    let style = text(TEXT_PX, FontStyle::Normal).pos(Pos::new(HPos::Left, VPos::Center));
    let (mut x, mut y) = (MARGIN_PX, top + LEGEND_ROW_PX / 2);
    for line in lines.iter().filter(|line| !line.label.is_empty()) {
        let width = LEGEND_SAMPLE_PX + 12 + canvas.estimate_text_size(&line.label, &style)?.0 as i32 + 40;
        if x > MARGIN_PX && x + width > SIZE_PX.0 as i32 {
            (x, y) = (MARGIN_PX, y + LEGEND_ROW_PX);
        }
        let stroke = stroke(line.colour);
        for (from, to) in
            if is_dashed(line.colour) { vec![(0, 18), (26, 44)] } else { vec![(0, LEGEND_SAMPLE_PX)] }
        {
            canvas.draw(&PathElement::new([(x + from, y), (x + to, y)], stroke.stroke_width(LINE_PX + 4)))?;
        }
        canvas.draw(&Text::new(line.label.clone(), (x + LEGEND_SAMPLE_PX + 12, y), style.clone()))?;
        x += width;
    }
    Ok(y + LEGEND_ROW_PX / 2)
}

fn side_width<B: DrawingBackend>(
    axis: &Axis,
    canvas: &Canvas<B>,
) -> Result<u32, DrawingAreaErrorKind<B::ErrorType>> {
    let style = text(TEXT_PX, FontStyle::Normal);
    let mut widest = 0;
    for label in axis.tick_labels() {
        widest = widest.max(canvas.estimate_text_size(label, &style)?.0);
    }
    let title = if axis.label.is_empty() { 0 } else { TEXT_PX as u32 + 20 };
    Ok((widest + 34 + title).min(SIZE_PX.0 / 2))
}

fn draw_axes<B: DrawingBackend>(figure: &Figure, chart: &mut Chart<'_, B>) -> Drawn<B> {
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(colour(GRID).stroke_width(2))
        .axis_style(colour(INK).stroke_width(2))
        .label_style(text(TEXT_PX, FontStyle::Normal))
        .axis_desc_style(text(TEXT_PX, FontStyle::Normal))
        .x_desc(figure.x.label.as_str())
        .y_desc(figure.y.label.as_str());
    let x_label = |value: &f64| figure.x.tick_label(*value);
    let y_label = |value: &f64| figure.y.tick_label(*value);
    mesh.x_label_formatter(&x_label).y_label_formatter(&y_label);
    if is_bars(figure) {
        mesh.disable_y_mesh();
    }
    mesh.draw()
}

fn draw_line<B: DrawingBackend>(line: &Line, chart: &mut Chart<'_, B>) -> Drawn<B> {
    let stroke = stroke(line.colour).stroke_width(LINE_PX);
    let points = line.points.iter().copied();
    if is_dashed(line.colour) {
        chart.draw_series(DashedLineSeries::new(points, 16, 10, stroke))?;
    } else {
        chart.draw_series(LineSeries::new(points, stroke))?;
    }
    if line.has_dots {
        chart.draw_series(line.points.iter().map(|point| Circle::new(*point, 9, stroke.filled())))?;
    }
    Ok(())
}

fn draw_whisker<B: DrawingBackend>(whisker: &Whisker, chart: &mut Chart<'_, B>) -> Drawn<B> {
    let stroke = stroke(whisker.colour).stroke_width(3);
    let ends = [(whisker.at, whisker.low), (whisker.at, whisker.high)];
    chart.draw_series([PathElement::new(ends, stroke)])?;
    let cap = |y: f64| EmptyElement::at((whisker.at, y)) + PathElement::new([(-10, 0), (10, 0)], stroke);
    chart.draw_series([cap(whisker.low), cap(whisker.high)])?;
    Ok(())
}

fn draw_bars<B: DrawingBackend>(bars: &[Bar], chart: &mut Chart<'_, B>) -> Drawn<B> {
    let style = text(TEXT_PX, FontStyle::Normal).pos(Pos::new(HPos::Left, VPos::Center));
    for (index, bar) in bars.iter().enumerate() {
        let middle = (bars.len() - index) as f64 - 0.5;
        let corners = [(0.0, middle - 0.32), (bar.value, middle + 0.32)];
        chart.draw_series([Rectangle::new(corners, stroke(bar.colour).filled())])?;
        let label =
            EmptyElement::at((bar.value, middle)) + Text::new(bar.text.clone(), (12, 0), style.clone());
        chart.draw_series([label])?;
    }
    Ok(())
}

/// A tick in the colour of the text, so that it is seen on every bar and next to it.
fn draw_marker<B: DrawingBackend>(marker: &Marker, n_bars: usize, chart: &mut Chart<'_, B>) -> Drawn<B> {
    let middle = n_bars.saturating_sub(marker.bar) as f64 - 0.5;
    let ends = [(marker.value, middle - 0.45), (marker.value, middle + 0.45)];
    chart.draw_series([PathElement::new(ends, ShapeStyle::from(colour(INK)).stroke_width(6))])?;
    Ok(())
}

fn is_dashed(index: usize) -> bool {
    index >= PALETTE.len()
}

fn stroke(index: usize) -> ShapeStyle {
    ShapeStyle::from(colour(PALETTE[index % PALETTE.len()]))
}

fn colour(shade: Shade) -> RGBColor {
    let channel = |at: usize| u8::from_str_radix(&shade.light[at..at + 2], 16).expect("shades are #RRGGBB");
    RGBColor(channel(1), channel(3), channel(5))
}

fn text(size_px: i32, style: FontStyle) -> TextStyle<'static> {
    static FONTS: LazyLock<()> = LazyLock::new(|| {
        for (style, bytes) in
            [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())]
        {
            assert!(register_font("sans-serif", style, bytes).is_ok(), "the built-in font is a font");
        }
    });
    LazyLock::force(&FONTS);
    FontDesc::new(FontFamily::SansSerif, f64::from(size_px), style).color(&colour(INK))
}
