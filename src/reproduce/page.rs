//! The page of a figure: verdicts first, then pictures, the table of three stories, defects, and what stands between.

use std::fmt::Write;
use std::path::Path;

use super::claims::{Claimant, Outcome, Verdict};
use super::evidence::{Story, said};
use super::kept::FILE;
use super::papers::Judged;
use super::reproduced::{DefectTable, Reproduced, Told};
use crate::report::{self, ReportError, escape, frame, inline};
use crate::results::replace_file;

/// Pages that other commands left in the folder of a figure, with what they show.
const OTHERS: [(&str, &str); 2] = [
    ("study/report.html", "every run, with intervals and comparisons"),
    ("over-time/report.html", "the shipped policies over time"),
];

impl Reproduced {
    /// Writes `report.html`, `claims.json`, and each picture into `plots/`.
    pub fn write(&self, out: &Path, program: &str, asked: &[String]) -> Result<(), ReportError> {
        let pictures = self.pictures();
        report::write_figures(&pictures, out)?;
        let mut body = self.verdict_section();
        body.push_str("<section>\n<h2>Figures</h2>\n<div class=\"plots\">\n");
        for picture in &pictures {
            body.push_str(&inline(picture)?);
        }
        body.push_str("</div>\n</section>\n");
        body.push_str(&self.stories_section());
        body.push_str(&self.defects_section());
        body.push_str(&self.caveats_section());
        let links: String = OTHERS
            .iter()
            .filter(|(page, _)| out.join(page).exists())
            .map(|(page, shows)| format!(" · <a href=\"{page}\">{shows}</a>"))
            .collect();
        let quick = if self.is_quick {
            format!("<p>--quick: {}</p>\n", escape(self.figure.quick))
        } else {
            String::new()
        };
        let facts = format!("<p>Rota {}{links}</p>\n{quick}", env!("CARGO_PKG_VERSION"));
        let page = frame(&self.heading(), &facts, &body, "");
        replace_file(&out.join("report.html"), page.as_bytes())?;
        Ok(replace_file(&out.join(FILE), self.to_json(program, asked).as_bytes())?)
    }

    /// A paragraph for each claim: its sentences are too long for the cells of a table.
    fn verdict_section(&self) -> String {
        let mut html = String::from("<section>\n<h2>Claims</h2>\n");
        for Judged { claim, verdicts } in self.verdicts() {
            let by = if claim.by == Claimant::Rota { " (ours, not the paper's)" } else { "" };
            let _ = write!(html, "<p><b>{}</b>: {}{by}</p>\n<ul>\n", escape(claim.name), escape(claim.says));
            for (story, verdict) in &verdicts {
                let _ = writeln!(html, "<li>{}: {}</li>", story.heading(), verdict_text(verdict));
            }
            html.push_str("</ul>\n");
        }
        html.push_str("</section>\n");
        html
    }

    fn stories_section(&self) -> String {
        let headings = ["at", "policy", "number"].into_iter().chain(Story::ALL.map(Story::heading));
        let headings: Vec<String> = headings.map(str::to_owned).collect();
        let row = |Told { at, policy, of, values }: Told<'_>| {
            let mut cells = vec![escape(&said(at)), escape(policy), escape(of.shown)];
            cells.extend(values.map(|value| value.map_or_else(|| "–".to_owned(), |value| of.text(value))));
            cells
        };
        let rows: Vec<Vec<String>> = self.told().into_iter().map(row).collect();
        let sources = self.figure.sources();
        let sources = match sources.is_empty() {
            true => String::new(),
            false => format!("<p>Published: {}.</p>\n", escape(&sources.join("; "))),
        };
        format!(
            "<section>\n<h2>Published, the original's rules, shipped</h2>\n<div class=\"tall\">{}</div>{sources}</section>\n",
            table(&headings, &rows, 3)
        )
    }

    fn defects_section(&self) -> String {
        let Some(DefectTable { headings, rows, idle }) = self.defect_cells() else { return String::new() };
        let attributed = self.figure.attributed.map(|attributed| {
            let at: Vec<String> = attributed
                .at
                .iter()
                .map(|(name, value)| format!("{} {value}", name.replace('_', " ")))
                .collect();
            let at = if at.is_empty() { String::new() } else { format!(" at {}", at.join(", ")) };
            format!(
                "{}{at}: the original as it is, with all its defects; with one of them alone; with none.",
                attributed.of.shown
            )
        });
        let idle = match idle.is_empty() {
            true => String::new(),
            false => format!("<p>Nothing here comes of {}.</p>\n", escape(&idle.join(", "))),
        };
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| escape(cell)).collect()).collect();
        format!(
            "<section>\n<h2>What each defect does to this figure</h2>\n<p>{}</p>\n{}{idle}</section>\n",
            escape(&attributed.unwrap_or_default()),
            table(&headings, &rows, 1)
        )
    }

    fn caveats_section(&self) -> String {
        let items: String =
            self.figure.caveats.iter().map(|caveat| format!("<li>{}</li>\n", escape(caveat))).collect();
        format!(
            "<section>\n<h2>What stands between these numbers and the published ones</h2>\n<ul>\n{items}</ul>\n</section>\n"
        )
    }
}

fn verdict_text(Verdict { outcome, why }: &Verdict) -> String {
    let mark = match outcome {
        Outcome::Holds => "✓",
        Outcome::DoesNotHold => "✗",
        Outcome::Tie => "=",
        Outcome::NotComparable => "–",
    };
    format!("<b>{mark} {}</b>: {}", outcome.text(), escape(why))
}

/// A table of cells that are HTML already; the first columns are text.
fn table(headings: &[String], rows: &[Vec<String>], n_names: usize) -> String {
    let class = |at: usize| if at < n_names { " class=\"text\"" } else { "" };
    let mut html = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
    for (at, heading) in headings.iter().enumerate() {
        let _ = write!(html, "<th scope=\"col\"{}>{}</th>", class(at), escape(heading));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        let cells: String =
            row.iter().enumerate().map(|(at, cell)| format!("<td{}>{cell}</td>", class(at))).collect();
        let _ = writeln!(html, "<tr>{cells}</tr>");
    }
    html.push_str("</tbody>\n</table></div>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::super::reproduced::tests::six_b;

    #[test]
    fn a_page_holds_verdicts_stories_defects_and_plots() {
        let dir = tempfile::tempdir().expect("a folder");
        let out = dir.path().join("out");
        six_b().write(&out, "0.2 abc", &[]).expect("written");
        let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
        for part in ["elasticflow-ahead", "= tie", "What each defect does to this figure", "0.913", "<svg"] {
            assert!(page.contains(part), "{part} is missing");
        }
        assert!(out.join("claims.json").is_file() && out.join("plots/deadline-ratio.png").is_file());
    }
}
