//! The figures that `rota reproduce` knows: how each is run, what is published of it, what is claimed of it.
//!
//! ```text
//! PAPERS ─▶ PaperFigure ─▶ run by `rota reproduce` ─▶ Evidence ─▶ claims, tables, plots, page
//! ```
//!
//! Most runs are `scripts/studies/*.rhai`, to be read and changed; nothing here runs anything.

mod admission;
mod chronus;
mod differences;
mod elasticflow;
mod elasticflow_numbers;
mod synergy;

use rota_scripts::artifact::System;

use super::claims::{Claim, Outcome, Scope, Verdict};
use super::evidence::{At, Column, Evidence, Row};
use super::quantity::Quantity;

pub(crate) use differences::difference;
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
    /// The original programs that its figures run, its own first.
    pub programs: &'static [System],
}

/// Every paper with figures here.
pub const PAPERS: [Paper; 3] = [
    Paper { system: "synergy", title: "Synergy (OSDI'22)", figures: SYNERGY, programs: &[System::Synergy] },
    Paper {
        system: "elasticflow",
        title: "ElasticFlow (ASPLOS'23)",
        figures: elasticflow::ELASTICFLOW,
        programs: &[System::ElasticFlow, System::Chronus],
    },
    Paper {
        system: "chronus",
        title: "Chronus (SoCC'21)",
        figures: chronus::CHRONUS,
        programs: &[System::Chronus],
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
    /// Parameters of originals: (policy, key, value).
    pub parameters: &'static [(&'static str, &'static str, &'static str)],
    /// Whether the original is compared with the shipped baselines, because its program has none that runs.
    pub uses_shipped_baselines: bool,
    /// Why policies may have the same number here.
    pub equal: Option<&'static str>,
    /// Why these numbers differ from the published ones.
    pub caveats: &'static [&'static str],
    /// How `--quick` is smaller, and what it cannot show.
    pub quick: &'static str,
    /// Minutes that the whole takes on two cores.
    pub full_minutes: f64,
}

/// How a figure is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A shipped study of this name, once for each column that is run.
    Study(&'static str),
    /// ElasticFlow's admission compared with a model's, in the same states.
    Admission,
    /// Chronus and its baselines on its traces.
    Chronus,
}

/// A file that is not shipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needed {
    /// The study's parameter that it is given as.
    pub name: &'static str,
    /// The name of the file.
    pub file: &'static str,
    /// Where it lies below a folder of public material.
    pub below: &'static str,
    /// Where it is published.
    pub origin: &'static str,
    /// Which of its rows are used; all of them if nothing is said.
    pub keeps: Option<Keeps>,
}

/// Rows of a CSV file that have one of these values in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeps {
    /// The heading of the column.
    pub column: &'static str,
    /// The values of the rows that stay.
    pub values: &'static [&'static str],
}

/// Published numbers of one policy.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// The policy, as it is called here.
    pub policy: &'static str,
    /// What the numbers are.
    pub of: Quantity,
    /// The setting that differs along the series, and its values; nothing for a single number.
    pub along: Option<(&'static str, &'static [&'static str])>,
    /// The other settings.
    pub at: &'static [(&'static str, &'static str)],
    /// What was published, in the order of `along`.
    pub values: &'static [f64],
    /// Where they are published.
    pub source: &'static str,
}

/// The runs by which a figure's difference to the shipped policies is traced to defects of the original.
#[derive(Clone, Copy, Debug)]
pub struct Attributed {
    /// The policies whose number is shown; the first one's lead over the others too.
    pub policies: &'static [&'static str],
    /// The number that the defects change.
    pub of: Quantity,
    /// Where: settings that pick one row of each policy.
    pub at: &'static [(&'static str, &'static str)],
    /// Where in the small form, if that has other settings.
    pub at_quick: Option<&'static [(&'static str, &'static str)]>,
}

impl Attributed {
    /// The same in the small form, or not.
    pub fn in_form(self, is_quick: bool) -> Self {
        Attributed { at: self.at_quick.filter(|_| is_quick).unwrap_or(self.at), ..self }
    }
}

/// A paper by its system.
pub fn paper(system: &str) -> Option<&'static Paper> {
    static ALL: [Paper; 3] = PAPERS;
    ALL.iter().find(|paper| paper.system == system)
}

impl Paper {
    /// Its own program.
    pub fn program(&self) -> System {
        self.programs[0]
    }

    /// The claims over all its figures, judged by those that were run.
    pub fn over_all_figures(&self, run: &[(&PaperFigure, &Evidence)]) -> Vec<Judged> {
        let mut judged: Vec<Judged> = Vec::new();
        let over_all = |claim: &&Claim| claim.scope == Scope::Paper;
        for claim in run.iter().flat_map(|(figure, _)| figure.claims).filter(over_all) {
            if judged.iter().any(|known| known.claim.name == claim.name) {
                continue;
            }
            let having = run.iter().filter(|(figure, _)| figure.claims.contains(claim));
            let verdicts = Column::ALL.into_iter().map(|column| {
                let rows = having.clone().flat_map(|(figure, evidence)| {
                    evidence.of(column).iter().map(|row| {
                        let mut row = row.clone();
                        row.at.insert("figure".to_owned(), figure.name.to_owned());
                        row
                    })
                });
                let rows: Vec<Row> = rows.collect();
                (column, if rows.is_empty() { column.nothing() } else { claim.judge(&rows, &[]) })
            });
            judged.push(Judged { claim: *claim, verdicts: verdicts.collect() });
        }
        judged
    }

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
                let at: At = asked.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
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

    /// Where the numbers are published.
    pub fn sources(&self) -> Vec<&'static str> {
        let mut sources: Vec<&str> = self.published.iter().map(|series| series.source).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }

    /// Each claim with its verdict by each column.
    pub fn verdicts(&self, evidence: &Evidence) -> Vec<Judged> {
        let judged = |claim: &'static Claim| {
            let run = Column::ALL.into_iter().filter(|column| evidence.rows.contains_key(column));
            let verdicts = run.map(|column| (column, self.verdict(claim, column, evidence)));
            Judged { claim: *claim, verdicts: verdicts.collect() }
        };
        self.claims.iter().map(judged).collect()
    }

    fn verdict(&self, claim: &Claim, column: Column, evidence: &Evidence) -> Verdict {
        let rows = evidence.of(column);
        if rows.is_empty() {
            return column.nothing();
        }
        // Published numbers agree with themselves.
        let published = if column == Column::Published { &[] } else { evidence.of(Column::Published) };
        let verdict = if column == Column::Original && self.uses_shipped_baselines {
            let has = |row: &Row| rows.iter().any(|own| own.policy == row.policy);
            let baselines = evidence.of(Column::Shipped).iter().filter(|row| !has(row)).cloned();
            let rows: Vec<Row> = rows.iter().cloned().chain(baselines).collect();
            let verdict = claim.judge(&rows, published);
            Verdict { why: format!("against the shipped baselines, {}", verdict.why), ..verdict }
        } else {
            claim.judge(rows, published)
        };
        match (claim.scope, verdict.outcome) {
            (Scope::Paper, Outcome::DoesNotHold | Outcome::Tie) => Verdict::not_comparable(format!(
                "it is said of all figures together, which `rota reproduce all` runs; here {}",
                verdict.why
            )),
            _ => verdict,
        }
    }
}

impl Column {
    /// The verdict without any rows.
    fn nothing(self) -> Verdict {
        Verdict::not_comparable(match self {
            Column::Published => "no numbers are published",
            Column::Original => "the original's rules were not run",
            Column::Shipped => "the shipped policies were not run",
        })
    }
}

/// A claim and its verdict by each column.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The claim that was judged.
    pub claim: Claim,
    /// The verdicts, in the order of the columns.
    pub verdicts: Vec<(Column, Verdict)>,
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

    fn jct(policy: &str, load: &str, hours: f64) -> Row {
        Row {
            policy: policy.into(),
            at: [("jobs_per_hour".to_owned(), load.to_owned())].into(),
            seed: None,
            numbers: [("avg_jct_s".to_owned(), hours * 3_600.0)].into(),
        }
    }

    fn synergy(figure: &str) -> &'static PaperFigure {
        paper("synergy").and_then(|paper| paper.figure(figure)).expect("a figure")
    }

    fn shipped(rows: Vec<Row>) -> Evidence {
        Evidence { rows: [(Column::Shipped, rows)].into() }
    }

    #[test]
    fn a_factor_over_all_experiments_is_judged_over_all_figures() {
        let lead = |proportional: f64| {
            shipped(vec![jct("las+tune", "5", 10.0), jct("las+proportional", "5", proportional)])
        };
        let (seven, eight) = (synergy("7"), synergy("8"));
        let alone = |evidence: &Evidence| {
            let judged = seven.verdicts(evidence);
            let judged = judged.iter().find(|judged| judged.claim.name == "up-to-3.4x").expect("a claim");
            judged.verdicts[0].1.clone()
        };
        assert_eq!(alone(&lead(35.0)).outcome, Outcome::Holds, "one experiment is enough");
        let verdict = alone(&lead(20.0));
        assert_eq!(verdict.outcome, Outcome::NotComparable, "other figures may have more");
        assert!(verdict.why.contains("here the only comparison: las+tune"), "{}", verdict.why);
        // The two figures have rows with the same policy and load, which must not be mixed.
        let over_all = |seventh: f64, eighth: f64| {
            let (seventh, eighth) = (lead(seventh), lead(eighth));
            let judged = PAPERS[0].over_all_figures(&[(seven, &seventh), (eight, &eighth)]);
            assert_eq!(judged.len(), 1);
            judged[0].verdicts[2].1.clone()
        };
        assert_eq!(over_all(20.0, 35.0).outcome, Outcome::Holds);
        let verdict = over_all(20.0, 33.0);
        assert_eq!(verdict.outcome, Outcome::DoesNotHold);
        assert!(verdict.why.starts_with("the most of 2 comparisons"), "{}", verdict.why);
        assert!(verdict.why.contains("figure 8, jobs per hour 5, 3.300x"), "{}", verdict.why);
    }

    #[test]
    fn chronus_by_the_originals_rules_is_compared_with_the_shipped_baselines() {
        let figure = paper("chronus").map(|paper| paper.figures[0]).expect("a figure");
        let row = |policy: &str, missed: f64| Row {
            policy: policy.into(),
            at: [("trace".to_owned(), "SLO".to_owned())].into(),
            seed: None,
            numbers: [("miss_rate".to_owned(), missed)].into(),
        };
        let judged = |original: f64| {
            let rows = [
                (Column::Original, vec![row("chronus", original)]),
                (Column::Shipped, vec![row("chronus", 0.9), row("edf", 0.2)]),
            ];
            let verdict =
                figure.verdict(&figure.claims[0], Column::Original, &Evidence { rows: rows.into() });
            assert!(verdict.why.starts_with("against the shipped baselines, "), "{}", verdict.why);
            verdict.outcome
        };
        assert_eq!((judged(0.1), judged(0.3)), (Outcome::Holds, Outcome::DoesNotHold));
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
