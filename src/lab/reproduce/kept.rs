//! `claims.json`: a figure's rows and verdicts for programs, and for resuming a long reproduction.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::claims::{Claimant, Verdict};
use super::evidence::{Column, Evidence};
use super::papers::{Judged, Paper, PaperFigure};
use super::reproduced::{DefectRow, Reproduced};

/// The file's name in the folder of a figure.
pub const FILE: &str = "claims.json";

#[derive(Serialize)]
struct Written<'a> {
    format: u32,
    /// Version and checksum of the program that ran it: another one may give other results.
    program: &'a str,
    system: &'a str,
    figure: &'a str,
    title: &'a str,
    is_quick: bool,
    /// What the user set.
    asked: &'a [String],
    claims: Vec<Entry<'a>>,
    caveats: &'a [&'a str],
    sources: Vec<&'a str>,
    defects: &'a [DefectRow],
    rows: &'a Evidence,
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    says: &'a str,
    by: &'a str,
    verdicts: Vec<Answer<'a>>,
}

#[derive(Serialize)]
struct Answer<'a> {
    column: Column,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

/// What is read again; verdicts are not, since they follow from the rows.
#[derive(Deserialize)]
struct Read {
    format: u32,
    program: String,
    is_quick: bool,
    asked: Vec<String>,
    rows: Evidence,
    defects: Vec<DefectRow>,
}

impl Reproduced {
    /// As JSON; `program` is who ran it, `asked` what the user set.
    pub fn to_json(&self, program: &str, asked: &[String]) -> String {
        let judged = self.verdicts();
        let entry = |Judged { claim, verdicts }: &'_ Judged| Entry {
            name: claim.name,
            says: claim.says,
            by: if claim.by == Claimant::Paper { "paper" } else { "rota" },
            verdicts: Vec::with_capacity(verdicts.len()),
        };
        let mut claims: Vec<Entry<'_>> = judged.iter().map(entry).collect();
        for (claim, judged) in claims.iter_mut().zip(&judged) {
            claim.verdicts =
                judged.verdicts.iter().map(|(column, verdict)| Answer { column: *column, verdict }).collect();
        }
        let written = Written {
            format: 1,
            program,
            system: self.paper.system,
            figure: self.figure.name,
            title: self.figure.title,
            is_quick: self.is_quick,
            asked,
            claims,
            caveats: self.figure.caveats,
            sources: self.figure.sources(),
            defects: &self.defects,
            rows: &self.evidence,
        };
        serde_json::to_string_pretty(&written).expect("rows are plain numbers and text") + "\n"
    }

    /// A figure that the same program has run the same way into a folder before; nothing if there is none.
    pub fn read(
        paper: &'static Paper,
        figure: &'static PaperFigure,
        folder: &Path,
        program: &str,
        is_quick: bool,
        asked: &[String],
    ) -> Option<Self> {
        let text = std::fs::read_to_string(folder.join(FILE)).ok()?;
        let read: Read = serde_json::from_str(&text).ok()?;
        let is_same =
            read.format == 1 && read.program == program && read.is_quick == is_quick && read.asked == asked;
        is_same.then_some(Reproduced { paper, figure, is_quick, evidence: read.rows, defects: read.defects })
    }
}

#[cfg(test)]
mod tests {
    use super::super::reproduced::tests::six_b;
    use super::*;

    #[test]
    fn a_figure_is_read_again_only_from_the_same_program_and_question() {
        let dir = tempfile::tempdir().expect("a folder");
        let reproduced = six_b();
        let text = reproduced.to_json("0.2 abc", &[]);
        assert!(text.contains("\"outcome\": \"tie\"") && text.contains("\"column\": \"original\""), "{text}");
        std::fs::write(dir.path().join(FILE), text).expect("written");
        let read = |program: &str, is_quick: bool, asked: &[String]| {
            Reproduced::read(reproduced.paper, reproduced.figure, dir.path(), program, is_quick, asked)
        };
        let again = read("0.2 abc", false, &[]).expect("it is there");
        assert_eq!(
            (again.evidence, again.defects),
            (reproduced.evidence.clone(), reproduced.defects.clone())
        );
        assert!(read("0.3 abc", false, &[]).is_none());
        assert!(read("0.2 abc", true, &[]).is_none());
        assert!(read("0.2 abc", false, &["seeds=5".to_owned()]).is_none());
    }
}
