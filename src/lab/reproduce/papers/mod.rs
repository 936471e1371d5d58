//! The figures that `rota reproduce` knows: how each is run, what is published of it, what is claimed of it.
//!
//! ```text
//! PAPERS ─▶ PaperFigure ─▶ run by `rota reproduce` ─▶ Evidence ─▶ claims, tables, plots, page
//! ```
//!
//! Most runs are `scripts/studies/*.rhai`, to be read and changed; nothing here runs anything.

mod admission;
mod chronus;
mod elasticflow;
mod elasticflow_numbers;
mod synergy;

use rota_scripts::artifact::System;

use super::claims::Claim;
use super::evidence::{Asked, Evidence, Row, Story};
use super::quantity::Quantity;

pub use synergy::SYNERGY;

/// A paper, by its system.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// The system, as it is called on the command line.
    pub system: &'static str,
    /// Its title in headings.
    pub title: &'static str,
    /// Its figures.
    pub figures: &'static [PaperFigure],
    /// Whose defects its original has.
    pub program: System,
    /// Parameters of originals in its figures, by policy: (policy, key, value).
    pub parameters: &'static [(&'static str, &'static str, &'static str)],
}

/// Every paper with figures here.
pub const PAPERS: [Paper; 3] = [
    Paper {
        system: "synergy",
        title: "Synergy (OSDI'22)",
        figures: SYNERGY,
        program: System::Synergy,
        parameters: &[],
    },
    Paper {
        system: "elasticflow",
        title: "ElasticFlow (ASPLOS'23)",
        figures: elasticflow::ELASTICFLOW,
        program: System::ElasticFlow,
        parameters: &[("chronus", "slot", "240")],
    },
    Paper {
        system: "chronus",
        title: "Chronus (SoCC'21)",
        figures: chronus::CHRONUS,
        program: System::Chronus,
        parameters: &[],
    },
];

/// A figure of a paper.
#[derive(Clone, Copy, Debug)]
pub struct PaperFigure {
    /// What the paper calls it.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// How it is run.
    pub how: How,
    /// Options of `rota compare --plot` whose page shows the figure's curves over time; its files are added.
    pub over_time: Option<&'static str>,
    /// Files that are not shipped.
    pub needs: &'static [Needed],
    /// What the paper or its artifact says of it.
    pub published: &'static [Series],
    /// The settings in which rows differ, besides the policy.
    pub along: &'static [&'static str],
    /// The numbers in its table and plots, the main one first.
    pub shows: &'static [Quantity],
    /// What is claimed of it.
    pub claims: &'static [Claim],
    /// What defects of the original are measured by, if it has any that matter here.
    pub attributed: Option<Attributed>,
    /// Policies whose original is not run, for a reason that a caveat names.
    pub without_original: &'static [&'static str],
    /// What stands between these numbers and the published ones.
    pub caveats: &'static [&'static str],
    /// How `--quick` is smaller, and what it cannot show.
    pub quick: &'static str,
    /// Minutes that the whole takes on two cores.
    pub full_minutes: f64,
}

/// How a figure is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A shipped study of this name, once for each story.
    Study(&'static str),
    /// ElasticFlow's admission compared with a model's on the same questions.
    Admission,
    /// Chronus and its baselines on its traces.
    Chronus,
}

/// A file that is not shipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needed {
    /// The study's parameter that it is given as.
    pub name: &'static str,
    /// The file.
    pub file: &'static str,
    /// Where it lies below a folder of public material.
    pub below: &'static str,
    /// Where it is published.
    pub origin: &'static str,
}

/// Published numbers of one policy.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// The policy, as it is called here.
    pub policy: &'static str,
    /// What the numbers are.
    pub of: Quantity,
    /// What varies along the series, and its values; nothing for a single number.
    pub along: Option<(&'static str, &'static [&'static str])>,
    /// What else was asked.
    pub at: &'static [(&'static str, &'static str)],
    /// The numbers.
    pub values: &'static [f64],
    /// Where they stand.
    pub source: &'static str,
}

/// The runs by which a figure's difference to the shipped policies is traced to defects of the original.
#[derive(Clone, Copy, Debug)]
pub struct Attributed {
    /// The policies whose number is shown; the first one's lead over the others too.
    pub policies: &'static [&'static str],
    /// The number.
    pub of: Quantity,
    /// Where: settings that pick one row of each policy.
    pub at: &'static [(&'static str, &'static str)],
}

/// A paper by its system.
pub fn paper(system: &str) -> Option<&'static Paper> {
    static ALL: [Paper; 3] = PAPERS;
    ALL.iter().find(|paper| paper.system == system)
}

impl Paper {
    /// A figure by its name.
    pub fn figure(&self, name: &str) -> Option<&'static PaperFigure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    /// A figure in headings: `Synergy (OSDI'22), Figure 8`.
    pub fn heading(&self, figure: &PaperFigure) -> String {
        if !figure.name.starts_with(|c: char| c.is_ascii_digit()) {
            return format!("{}: {}", self.title, figure.title);
        }
        format!("{}, Figure {}: {}", self.title, figure.name, figure.title)
    }
}

impl PaperFigure {
    /// The published numbers as rows.
    pub fn published_rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for series in self.published {
            let places: Vec<Option<(&str, &str)>> = match series.along {
                None => vec![None],
                Some((name, values)) => values.iter().map(|value| Some((name, *value))).collect(),
            };
            for (place, value) in places.into_iter().zip(series.values) {
                let asked = series.at.iter().copied().chain(place);
                let at: Asked = asked.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                let policy = series.policy.to_owned();
                let known = rows.iter_mut().find(|row| row.policy == policy && row.at == at);
                let numbers = [(series.of.name.to_owned(), *value)];
                match known {
                    Some(row) => row.numbers.extend(numbers),
                    None => rows.push(Row { policy, at, seed: None, numbers: numbers.into() }),
                }
            }
        }
        rows
    }

    /// Where the published numbers stand.
    pub fn sources(&self) -> Vec<&'static str> {
        let mut sources: Vec<&str> = self.published.iter().map(|series| series.source).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }

    /// Each claim with what each story says to it.
    pub fn verdicts(&self, evidence: &Evidence) -> Vec<Judged> {
        let published = evidence.of(Story::Published);
        let judged = |claim: &'static Claim| {
            let asked = Story::ALL.into_iter().filter(|story| evidence.rows.contains_key(story));
            let verdicts = asked.map(|story| {
                // The paper agrees with itself.
                let beside = if story == Story::Published { &[] } else { published };
                (story, claim.judge(evidence.of(story), beside))
            });
            Judged { claim: *claim, verdicts: verdicts.collect() }
        };
        self.claims.iter().map(judged).collect()
    }
}

/// A claim and what each story says to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// The answers, in the order of the stories.
    pub verdicts: Vec<(Story, super::claims::Verdict)>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rota_scripts::shipped;

    use super::*;

    #[test]
    fn every_figure_is_whole() {
        for paper in PAPERS {
            for figure in paper.figures {
                let name = format!("{} {}", paper.system, figure.name);
                if let How::Study(study) = figure.how {
                    assert!(
                        shipped::STUDIES.iter().any(|script| script.name == study),
                        "{study} is not shipped"
                    );
                }
                for series in figure.published {
                    let n = series.along.map_or(1, |(_, at)| at.len());
                    assert_eq!(series.values.len(), n, "{name}: {} of {}", series.of.name, series.policy);
                }
                let names: BTreeSet<&str> = figure.claims.iter().map(|claim| claim.name).collect();
                assert_eq!(names.len(), figure.claims.len(), "{name}: two claims of one name");
                assert!(!figure.claims.is_empty() && !figure.shows.is_empty(), "{name}");
                assert!(
                    figure.full_minutes > 0.0 && !figure.caveats.is_empty() && !figure.quick.is_empty(),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn numbers_of_one_row_are_one_row() {
        let eight = paper("synergy").and_then(|paper| paper.figure("8")).expect("a figure");
        let rows = eight.published_rows();
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!((rows[0].policy.as_str(), rows[0].numbers.len()), ("fifo+tune", 2));
    }

    #[test]
    fn the_published_improvement_over_the_baselines_is_in_the_numbers() {
        // The paper's "1.46-7.65x" is Figure 6(b): Tiresias and EDF.
        let six_b = paper("elasticflow").and_then(|paper| paper.figure("6b")).expect("a figure");
        let rows = six_b.published_rows();
        let of = |policy: &str| rows.iter().find(|row| row.policy == policy).expect("a row").numbers["deadline_ratio"];
        let factor = |baseline: &str| format!("{:.2}", of("elasticflow") / of(baseline));
        assert_eq!((factor("tiresias"), factor("edf")), ("1.46".to_owned(), "7.65".to_owned()));
    }
}
