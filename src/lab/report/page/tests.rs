use super::super::{PlotOptions, PlotSize, to_svg};
use super::*;
use crate::results::samples::{results, run};

const HOSTILE: &str = "<img src=x onerror=\"alert('1')\">&";

fn hostile_page() -> String {
    let mut run = run(HOSTILE, 1, None);
    run.meta.cluster.name = HOSTILE.into();
    run.meta.parameters.insert("note".into(), HOSTILE.into());
    for job in &mut run.jobs {
        (job.job_id, job.tenant, job.model, job.reason) =
            (HOSTILE.into(), HOSTILE.into(), HOSTILE.into(), HOSTILE.into());
    }
    let mut results = results(vec![run.clone(), run]);
    results.title = HOSTILE.into();
    results.settings.insert("trace".into(), HOSTILE.into());
    results.version = HOSTILE.into();
    to_html(&results).expect("a page")
}

#[test]
fn nothing_a_user_wrote_becomes_markup() {
    let page = hostile_page();
    assert!(!page.contains("<img"), "an element came through");
    assert!(page.matches("&lt;img src=x onerror=&quot;").count() > 5, "and yet the text is shown");
}

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    let page = to_html(&results(vec![run("las", 1, Some(4.0)), run("srtf", 1, Some(8.0))])).expect("a page");
    let outside = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for reference in ["http:", "https:", "//", "src=", "href=", "url(", "@import"] {
        let lines: Vec<&str> = outside
            .lines()
            .filter(|line| line.contains(reference) && !line.trim().starts_with("//"))
            .collect();
        assert_eq!(lines, [""; 0], "{reference}");
    }
}

#[test]
fn every_figure_is_on_the_page_and_the_oracle_is_named() {
    let mut exact = run("srtf", 1, None);
    (exact.meta.exact_estimates, exact.meta.reads_estimates) = (true, true);
    let results = results(vec![run("las", 1, None), exact]);
    let page = to_html(&results).expect("a page");
    assert_eq!(page.matches("<figure>").count(), figures(&results).len());
    assert!(page.contains("1 of 2 runs decide by exact run times") && page.contains("srtf (oracle)"));
}

#[test]
fn drawings_are_well_formed() {
    for figure in figures(&results(vec![run("a<b>&\"c\"", 1, Some(2.0)), run("d", 1, Some(4.0))])) {
        let svg = to_svg(&figure).expect("drawn");
        assert_well_formed(&svg, &figure.name);
    }
}

/// Every element is closed in order, attributes are quoted, and text has no stray `<` or `&`.
fn assert_well_formed(xml: &str, name: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml.trim();
    while let Some(at) = rest.find('<') {
        assert_escaped(&rest[..at], name);
        let end = at + rest[at..].find('>').unwrap_or_else(|| panic!("{name}: a tag without end"));
        let tag = &rest[at + 1..end];
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{name}");
        } else {
            assert_eq!(tag.matches('"').count() % 2, 0, "{name}: {tag}");
            assert_escaped(tag, name);
            if !tag.ends_with('/') {
                open.push(tag.split_whitespace().next().unwrap_or_default());
            }
        }
        rest = &rest[end + 1..];
    }
    assert_eq!((open.len(), rest), (0, ""), "{name}");
}

fn assert_escaped(text: &str, name: &str) {
    for part in text.split('&').skip(1) {
        let entity = part.split(';').next().unwrap_or_default();
        assert!(matches!(entity, "amp" | "lt" | "gt" | "quot" | "apos" | "#39"), "{name}: &{part}");
    }
}

#[test]
fn plots_are_written_as_svg_png_and_pdf_in_the_size_asked_for() {
    let dir = tempfile::tempdir().expect("a folder");
    let results = results(vec![run("las", 1, None)]);
    let options = PlotOptions { size: PlotSize::PAGE, font_pt: 9.0 };
    crate::report::write_plots(&results, dir.path(), &options).expect("drawn");
    crate::report::write_page(&results, dir.path()).expect("written");
    for figure in figures(&results) {
        let png = std::fs::read(dir.path().join(format!("plots/{}.png", figure.name))).expect("a file");
        assert_eq!(png[..4], [0x89, b'P', b'N', b'G']);
        let svg =
            std::fs::read_to_string(dir.path().join(format!("plots/{}.svg", figure.name))).expect("SVG");
        assert!(svg.contains("width=\"7.0000in\""), "{}", &svg[..200]);
        let pdf = std::fs::read(dir.path().join(format!("plots/{}.pdf", figure.name))).expect("PDF");
        let pdf = String::from_utf8_lossy(&pdf);
        assert!(pdf.starts_with("%PDF-") && pdf.contains("/MediaBox [0 0 504"), "7 inches are 504 points");
        assert!(pdf.contains("DejaVuSans"), "{}: text stays text", figure.name);
    }
    assert!(dir.path().join("report.html").exists());
}
