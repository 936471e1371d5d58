//! What every page is made of: the document around it, sections, tables, figures, data for scripts.
//!
//! Markup is written with `maud`, which escapes every value; [`PreEscaped`] occurs in this file only, for text that is
//! ours (style, scripts, the drawing library's SVG) and for JSON that cannot end its element. A page forbids itself to
//! load anything, so a mistake would show.

use std::fmt::Write;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::figure::{GRID, INK, PALETTE, PAPER, Shade};
use super::{Figure, ReportError, to_svg};

const COLOURS: &str = include_str!("colours.css");
const STYLE: &str = concat!(include_str!("colours.css"), include_str!("page.css"));
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// What is written above it, with the unit.
    pub(crate) heading: String,
    /// Text is aligned to the left, numbers to the right.
    pub(crate) is_text: bool,
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// One like the others of its column.
    Plain(String),
    /// The best value of its column.
    Best(String),
    /// What the row is about; it stays in view when the table is scrolled sideways.
    RowName(String),
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Plain(text)
    }
}

/// Columns of which the first `n_text` hold text and the others numbers.
pub(crate) fn columns<S: Into<String>>(headings: impl IntoIterator<Item = S>, n_text: usize) -> Vec<Column> {
    let column = |(at, heading): (usize, S)| Column { heading: heading.into(), is_text: at < n_text };
    headings.into_iter().enumerate().map(column).collect()
}

/// A whole page: what it may load (nothing), how it looks, its heading with `facts` below it, its contents.
pub(crate) fn document(title: &str, facts: &Markup, body: &Markup, script: &'static str) -> String {
    let title = if title.is_empty() { "Rota" } else { title };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (title) }
                style { "\n" (PreEscaped(STYLE)) (PreEscaped(dark_plots())) }
            }
            body {
                header { h1 { (title) } (facts) }
                (body)
                @if !script.is_empty() { script { "\n" (PreEscaped(script)) } }
            }
        }
    };
    page.into_string() + "\n"
}

/// A part of a page that is always shown.
pub(crate) fn section(heading: &str, content: &Markup) -> Markup {
    html! { section { h2 { (heading) } (content) } }
}

/// A part of a page that the reader opens and closes.
pub(crate) fn foldable(heading: &str, is_open: bool, content: &Markup) -> Markup {
    html! { details open[is_open] { summary { h2 { (heading) } } (content) } }
}

/// More columns than this stand closer together.
const MANY_COLUMNS: usize = 14;
/// A table of so few columns is as wide as they are: across a whole page, a row would be hard to follow.
const FEW_COLUMNS: usize = 5;

/// A table that scrolls sideways where it is wider than the page; on a phone each row becomes a card of names and values.
pub(crate) fn table(columns: &[Column], rows: &[Vec<Cell>]) -> Markup {
    let class = |column: &Column| column.is_text.then_some("text");
    let (is_narrow, is_wide) = (columns.len() <= FEW_COLUMNS, columns.len() > MANY_COLUMNS);
    let width = is_narrow.then_some("narrow").or(is_wide.then_some("wide"));
    html! {
        div.scroll.narrow[is_narrow] {
            table class=[width] {
                thead { tr { @for column in columns { th scope="col" class=[class(column)] { (column.heading) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (column, cell) in columns.iter().zip(row) {
                                @match cell {
                                    Cell::Plain(text) => td class=[class(column)] data-label=(column.heading) { (text) },
                                    Cell::Best(text) => td.best data-label=(column.heading) { (text) },
                                    Cell::RowName(text) => th.text scope="row" { (breakable(text)) },
                                }
                            }
                        }
                        "\n"
                    }
                }
            }
        }
    }
}

/// The same, but only so high that the rest of the page stays in reach.
pub(crate) fn tall_table(columns: &[Column], rows: &[Vec<Cell>]) -> Markup {
    html! { div.tall { (table(columns, rows)) } }
}

/// A sentence with `commands` and *words* marked as in Markdown.
pub(crate) fn prose(text: &str) -> Markup {
    let plain = |text: &str| {
        let parts: Vec<&str> = text.split('*').collect();
        // A lone star is a star.
        let is_marked = !parts.len().is_multiple_of(2);
        html! {
            @if is_marked { @for (at, part) in parts.iter().enumerate() { @if at % 2 == 1 { em { (part) } } @else { (part) } } }
            @else { (text) }
        }
    };
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return plain(text);
    }
    html! { @for (at, part) in parts.iter().enumerate() { @if at % 2 == 1 { code { (part) } } @else { (plain(part)) } } }
}

/// A composed policy has a long name: it may break between its parts.
fn breakable(name: &str) -> Markup {
    html! { @for part in name.split_inclusive('+') { (part) @if part.ends_with('+') { wbr; } } }
}

/// Figures next to each other, as many as fit.
pub(crate) fn plots(figures: &[Figure]) -> Result<Markup, ReportError> {
    let figures = figures.iter().map(inline).collect::<Result<Vec<_>, _>>()?;
    Ok(html! { div.plots { @for figure in &figures { (figure) "\n" } } })
}

fn inline(figure: &Figure) -> Result<Markup, ReportError> {
    let svg = to_svg(figure)?;
    // The style decides how large it is; the view box keeps its shape.
    let shape = svg.split_once("viewBox=\"").and_then(|(_, rest)| rest.split_once('"'));
    let drawing = shape.and_then(|(_, rest)| rest.split_once('>')?.1.trim_end().strip_suffix("</svg>"));
    let view = shape.map_or("", |(view, _)| view);
    Ok(html! {
        figure {
            h3 { (figure.title) }
            svg role="img" aria-label=(figure.title) viewBox=(view) xmlns="http://www.w3.org/2000/svg" {
                (PreEscaped(drawing.unwrap_or_default()))
            }
            figcaption { (figure.caption) }
        }
    })
}

/// A page with a table, of which the first column names the rows, and plots below.
pub fn table_and_plots(
    title: &str,
    headings: &[&str],
    rows: &[Vec<String>],
    figures: &[Figure],
) -> Result<String, ReportError> {
    let cell = |(at, text): (usize, &String)| match at {
        0 => Cell::RowName(text.clone()),
        _ => Cell::Plain(text.clone()),
    };
    let rows: Vec<Vec<Cell>> = rows.iter().map(|row| row.iter().enumerate().map(cell).collect()).collect();
    let body = html! { section { (table(&columns(headings.iter().copied(), 1), &rows)) } (plots(figures)?) };
    let facts = html! { p { "Rota " (env!("CARGO_PKG_VERSION")) } };
    Ok(document(title, &facts, &body, ""))
}

/// Items one below the other; those of several lines keep them.
pub(crate) fn list<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Markup {
    html! {
        ul {
            @for item in items {
                @let item = item.as_ref();
                li { @if item.contains('\n') { pre { (item) } } @else { (prose(item)) } }
            }
        }
    }
}

/// What separates the cells of a printed line.
const BETWEEN_CELLS: &str = " | ";

/// Lines that were printed, as a page has them: those with ` | ` in them are rows of a table, the one right before them its
/// caption if it ends with a colon, all others paragraphs.
pub(crate) fn printed<S: AsRef<str>>(lines: &[S]) -> Markup {
    let n_cells = |line: &S| line.as_ref().trim().split(BETWEEN_CELLS).count();
    let is_row = |line: &S| n_cells(line) > 1 && !line.as_ref().contains('\n');
    html! {
        @for part in lines.chunk_by(|a, b| is_row(a) && is_row(b) && n_cells(a) == n_cells(b)) {
            @if part.first().is_some_and(is_row) {
                (printed_table(part))
            } @else {
                @for line in part {
                    @let line = line.as_ref();
                    @if line.contains('\n') { pre { (line) } } @else if !line.trim().is_empty() { p.said { (line.trim()) } }
                }
            }
        }
    }
}

/// Rows without a heading; columns in which every cell begins like a number are aligned to the right.
fn printed_table<S: AsRef<str>>(lines: &[S]) -> Markup {
    let rows: Vec<Vec<&str>> =
        lines.iter().map(|line| line.as_ref().trim().split(BETWEEN_CELLS).map(str::trim).collect()).collect();
    let is_number = |cell: &str| cell.starts_with(|c: char| c.is_ascii_digit() || "+-–.".contains(c));
    let has_numbers = |at: usize| rows.iter().all(|row| row.get(at).is_some_and(|cell| is_number(cell)));
    html! {
        div.scroll.printed {
            table {
                tbody {
                    @for row in &rows {
                        tr { @for (at, cell) in row.iter().enumerate() { td class=[(!has_numbers(at)).then_some("text")] { (cell) } } }
                    }
                }
            }
        }
    }
}

/// A list from which one of several runs is chosen.
pub(crate) fn choice<S: AsRef<str>>(id: &str, names: impl IntoIterator<Item = S>) -> Markup {
    html! { select id=(id) aria-label="run" { @for name in names { option { (name.as_ref()) } } } }
}

/// Data for a script of the page. JSON stays the same JSON when `<`, `>` and `&` are written as escapes, and then
/// cannot end its element.
pub(crate) fn data(id: &str, json: &serde_json::Value) -> Markup {
    let text = json.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    html! { script type="application/json" id=(id) { (PreEscaped(text)) } }
}

/// The colours of pages and of what is drawn on them as variables of a style sheet, for pages that are served and draw by
/// themselves: `--paper`, `--ink` and so on, and the palette by place, `--colour-0` first.
pub fn colour_variables() -> String {
    let variables = |shade: fn(&Shade) -> &'static str| -> String {
        let line = |(place, colour): (usize, &Shade)| format!("  --colour-{place}: {};\n", shade(colour));
        PALETTE.iter().enumerate().map(line).collect()
    };
    let (light, dark) = (variables(|shade| shade.light), variables(|shade| shade.dark));
    format!(
        "{COLOURS}:root {{\n{light}}}\n@media screen and (prefers-color-scheme: dark) {{\n:root {{\n{dark}}}\n}}\n"
    )
}

/// Figures are drawn in light colours; on a dark screen each colour is replaced by its dark counterpart.
fn dark_plots() -> String {
    let mut rules = String::from("@media screen and (prefers-color-scheme: dark) {\n");
    for shade in PALETTE.iter().chain([&INK, &GRID, &PAPER]) {
        for property in ["fill", "stroke"] {
            let _ = writeln!(
                rules,
                "  figure svg [{property}=\"{}\"] {{ {property}: {}; }}",
                shade.light, shade.dark
            );
        }
    }
    rules.push_str("}\n");
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</script><script>alert(1)</script>\"'&";

    #[test]
    fn every_place_of_the_palette_is_a_variable_in_light_and_in_dark() {
        let sheet = colour_variables();
        for (place, shade) in PALETTE.iter().enumerate() {
            assert!(sheet.contains(&format!("--colour-{place}: {};", shade.light)), "{sheet}");
            assert!(sheet.contains(&format!("--colour-{place}: {};", shade.dark)), "{sheet}");
        }
        assert!(sheet.contains("--ink: #24292f;"), "{sheet}");
    }

    #[test]
    fn no_component_lets_markup_through() {
        let rows = [Cell::Plain, Cell::Best, Cell::RowName].map(|cell| vec![cell(HOSTILE.to_owned())]);
        let parts = [
            table(&columns([HOSTILE], 1), &rows),
            section(HOSTILE, &html! { (HOSTILE) }),
            foldable(HOSTILE, true, &html! {}),
            list([HOSTILE, "two\n</pre><script>"]),
            printed(&[HOSTILE, "a | <script>", "b | </td><script>", "two\n</pre><script>"]),
            choice(HOSTILE, [HOSTILE]),
        ];
        for part in parts {
            let text = part.into_string();
            assert!(!text.contains("<script"), "{text}");
            assert!(!text.contains("\"'&\""), "an attribute was ended: {text}");
        }
        let page = document(HOSTILE, &html! {}, &html! {}, "");
        assert!(!page.contains("<script"), "the title came through");
    }

    #[test]
    fn data_cannot_end_its_element_and_stays_the_same_data() {
        let text = data("d", &serde_json::json!([HOSTILE])).into_string();
        let json = text.strip_prefix("<script type=\"application/json\" id=\"d\">");
        let json = json.and_then(|rest| rest.strip_suffix("</script>")).expect("one element");
        assert!(!json.contains('<'), "{json}");
        let back: serde_json::Value = serde_json::from_str(json).expect("still JSON");
        assert_eq!(back[0], HOSTILE);
    }

    #[test]
    fn printed_lines_become_paragraphs_and_tables() {
        let page = printed(&["missed:", "las | 0.2 | 12 h", "edf | 0.1 | 14 h", "done"]).into_string();
        assert_eq!((page.matches("<table>").count(), page.matches("<tr>").count()), (1, 2), "{page}");
        assert!(page.contains("<p class=\"said\">missed:</p>") && page.contains("<td>0.2</td>"), "{page}");
        assert!(page.contains("<td class=\"text\">las</td>"), "{page}");
    }

    #[test]
    fn a_composed_name_breaks_between_its_parts_only() {
        assert_eq!(breakable("las+tune").into_string(), "las+<wbr>tune");
        assert_eq!(breakable("a<b>").into_string(), "a&lt;b&gt;");
    }

    #[test]
    fn marks_of_markdown_become_elements_and_everything_else_is_escaped() {
        let text = prose("run `rota <x>`, see *Rounds* & 2 * 3").into_string();
        assert_eq!(
            text, "run <code>rota &lt;x&gt;</code>, see *Rounds* &amp; 2 * 3",
            "an odd star marks nothing"
        );
        assert_eq!(prose("see *Rounds*").into_string(), "see <em>Rounds</em>");
        assert_eq!(prose("it`s").into_string(), "it`s");
    }
}
