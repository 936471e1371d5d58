//! What each defect of an original does to a figure: its main number with all of them, with each alone, and with none.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use rota_scripts::artifact::Defects;
use rota_scripts::study::Settings;

use super::columns::{Also, With};
use crate::commands::study::{Bar, Simulate};
use rota_lab::reproduce::evidence::{At, Cell, Column, Evidence, cells};
use rota_lab::reproduce::papers::{Attributed, Paper, PaperFigure};
use rota_lab::reproduce::{ALONE, DefectRow, NONE, SHIPPED, at_of, seed_of};
use rota_lab::study::{Outcome, Ran, Watch, run_each};

/// The rows of the table: published, all defects, each alone, none, shipped.
///
/// Of several seeds the first is run, and the shipped policies' row is of that seed too.
pub(super) fn attribute(
    (paper, figure): (&Paper, &PaperFigure),
    attributed: &Attributed,
    runs: &[Ran],
    evidence: &Evidence,
    out: &Path,
    is_quiet: bool,
) -> Result<Vec<DefectRow>> {
    let picked: Vec<Option<&Settings>> =
        attributed.policies.iter().map(|policy| picked(attributed, policy, runs)).collect();
    if picked.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    let alone = Defects::ALL
        .of(paper.program())
        .iter()
        .map(|defect| (defect.name().to_owned(), format!("{defect}{ALONE}")));
    let all = ("all".to_owned(), "all: the original as it is".to_owned());
    let none = (NONE.to_owned(), format!("{NONE}: all of them mended"));
    let choices: Vec<(String, String)> = [all].into_iter().chain(alone).chain([none]).collect();
    let to_run: Vec<Settings> = choices
        .iter()
        .flat_map(|(defects, _)| {
            let also = Also::Original {
                parameters: figure.parameters,
                defects: vec![defects.clone()],
                without: &[],
            };
            picked.iter().flatten().map(move |settings| also.added_to(settings))
        })
        .collect();
    let bar = Arc::new(Bar::new(is_quiet));
    let with = With { simulate: Simulate::new()?, also: Also::Nothing };
    let ran = run_each(to_run, out, with, Arc::clone(&bar) as Arc<dyn Watch>);
    bar.finish();
    let mut answers = ran?.into_iter();
    let seeds: Vec<Option<String>> = picked.iter().map(|settings| seed_of((*settings)?)).collect();
    let mut rows = vec![published(attributed, evidence)];
    for (_, said) in choices {
        let numbers = picked.iter().map(|settings| {
            let run = settings.and_then(|_| answers.next())?;
            number(&run, attributed.of.name)
        });
        rows.push(DefectRow { defects: said, numbers: numbers.collect() });
    }
    rows.push(shipped(attributed, &seeds, evidence));
    Ok(rows)
}

/// The settings of a policy's run at the place that is looked at.
fn picked<'a>(attributed: &Attributed, policy: &str, runs: &'a [Ran]) -> Option<&'a Settings> {
    let names: Vec<&str> = attributed.at.iter().map(|(name, _)| *name).collect();
    let is_it = |run: &&Ran| run.setting("policy") == policy && is_there(attributed, &at_of(run, &names));
    runs.iter().find(is_it).map(|run| &run.settings)
}

fn is_there(attributed: &Attributed, at: &At) -> bool {
    attributed.at.iter().all(|(name, value)| at.get(*name).is_some_and(|own| own == value))
}

fn number(run: &Ran, name: &str) -> Option<f64> {
    match &run.outcome {
        Outcome::Done(figures) => figures.numbers.get(name).copied().flatten(),
        Outcome::Failed(_) | Outcome::Elsewhere => None,
    }
}

/// The paper's numbers at the same place.
fn published(attributed: &Attributed, evidence: &Evidence) -> DefectRow {
    let numbers =
        numbers_of(Column::Published, attributed, evidence, |cell, _| cell.mean(attributed.of.name));
    DefectRow { defects: "published".to_owned(), numbers }
}

/// The shipped policies' numbers at the same place, with the seed that the original's rows have.
fn shipped(attributed: &Attributed, seeds: &[Option<String>], evidence: &Evidence) -> DefectRow {
    let numbers = numbers_of(Column::Shipped, attributed, evidence, |cell, index| {
        let seed = seeds.get(index).and_then(Option::as_deref);
        cell.with_seed(seed, attributed.of.name)
    });
    let seed = seeds.iter().flatten().next().map(|seed| format!(", seed {seed} as above"));
    DefectRow { defects: format!("{SHIPPED}{}", seed.unwrap_or_default()), numbers }
}

fn numbers_of(
    column: Column,
    attributed: &Attributed,
    evidence: &Evidence,
    value: impl Fn(&Cell<'_>, usize) -> Option<f64>,
) -> Vec<Option<f64>> {
    let cells = cells(evidence.of(column));
    let of_policy = |(index, policy): (usize, &&str)| {
        let mut own = cells.iter().filter(|cell| cell.policy == *policy);
        value(own.find(|cell| is_there(attributed, cell.at))?, index)
    };
    attributed.policies.iter().enumerate().map(of_policy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_lab::reproduce::evidence::Row;
    use rota_lab::reproduce::quantity::DEADLINES;

    #[test]
    fn the_shipped_row_has_the_seed_of_the_originals_rows() {
        let row = |seed: &str, met: f64| Row {
            policy: "edf".into(),
            at: At::default(),
            seed: Some(seed.into()),
            numbers: [(DEADLINES.name.to_owned(), met)].into(),
        };
        let rows = vec![row("1", 0.1), row("2", 0.3)];
        let evidence = Evidence { rows: [(Column::Shipped, rows)].into() };
        let attributed = Attributed { policies: &["edf"], of: DEADLINES, at: &[], at_quick: None };
        let shipped = shipped(&attributed, &[Some("1".into())], &evidence);
        assert_eq!(shipped.numbers, [Some(0.1)]);
        assert_eq!(shipped.defects, "shipped, seed 1 as above");
    }
}
