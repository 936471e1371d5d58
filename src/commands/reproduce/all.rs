//! Every figure, one after another, and the list of claims with their verdicts.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::figure::{Done, folder, program, reproduce};
use super::{FormArgs, HowArgs};
use crate::commands::live::agent_program;
use rota_lab::reproduce::papers::PAPERS;
use rota_lab::reproduce::{Reproduced, gpemu as gpemu_figure, over_all_figures};
use rota_lab::results::replace_file;

/// Between these lines a file keeps the list of claims.
const BEGIN: &str = "<!-- claims: written by `rota reproduce all --claims` -->";
const END: &str = "<!-- end of claims -->";

/// Where results go, and which form of the figures is run.
#[derive(Args, Clone, Debug)]
pub(crate) struct AllArgs {
    /// Folder for the results, one subfolder per figure; run the command again to resume: finished figures are kept
    #[arg(short, long, value_name = "DIR", default_value = "reproduce-all")]
    pub out: PathBuf,
    /// Write the list of claims with their verdicts into this file, between its markers, or as a new file [default: not written]
    #[arg(long, value_name = "FILE")]
    pub claims: Option<PathBuf>,
    #[command(flatten)]
    pub form: FormArgs,
}

/// Runs every figure that is not there yet; 1 when a run failed.
pub(super) fn run(args: &AllArgs) -> Result<ExitCode> {
    let FormArgs { quick, quiet, .. } = &args.form;
    let how =
        HowArgs { form: args.form.clone(), set: Vec::new(), defects: Vec::new(), json: false, out: None };
    if let Some(file) = &args.claims {
        // A file that cannot take the list must not cost an hour.
        with_claims(file, "")?;
    }
    // Nor must a missing agent, which only the last figure needs.
    agent_program()?;
    let figures = PAPERS.iter().flat_map(|paper| paper.figures);
    let n_minutes = figures.map(|figure| figure.full_minutes).sum::<f64>() + super::gpemu::full_minutes();
    if !quiet && !quick {
        eprintln!(
            "all figures take about {n_minutes:.0} minutes on two cores; an interrupted run resumes where it stopped"
        );
    }
    let program = program()?;
    let mut list = String::new();
    let mut failures = Vec::new();
    for paper in PAPERS {
        let paper = super::known(paper.system)?;
        let _ = write!(list, "## {}\n\n", paper.title);
        let mut run = Vec::new();
        for figure in paper.figures {
            let out = args.out.join(folder(paper, figure));
            let kept = Reproduced::read(paper, figure, &out, &program, *quick, &[]);
            let reproduced = match kept {
                Some(kept) => kept,
                None => {
                    let Done { reproduced, failures: failed } = reproduce(paper, figure, &how, &out)?;
                    failures.extend(failed);
                    reproduced
                }
            };
            println!("{}", reproduced.to_markdown());
            let _ = writeln!(list, "{}", reproduced.to_markdown());
            run.push(reproduced);
        }
        if let Some(verdicts) = over_all_figures(paper, &run) {
            println!("{verdicts}");
            let _ = writeln!(list, "{verdicts}");
        }
    }
    let deployed = super::gpemu::as_part_of_all(&args.out, &args.form)?;
    let _ = write!(list, "## GPEmu\n\n{deployed}");
    println!("{deployed}");
    for failure in &failures {
        eprintln!("{failure}");
    }
    if !failures.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    if let Some(file) = &args.claims {
        replace_file(file, with_claims(file, list.trim_end())?.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A file's text with the list in its place.
fn with_claims(file: &Path, list: &str) -> Result<String> {
    let section = format!("{BEGIN}\n\n{list}\n\n{END}");
    if !file.exists() {
        return Ok(section + "\n");
    }
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let Some((before, after)) = parts else {
        bail!("{}: it has no lines `{BEGIN}` and `{END}` to write the list between", file.display())
    };
    Ok(format!("{before}{section}{after}"))
}

/// Every claim there is, for people.
pub(super) fn list_of_claims() -> String {
    let mut text = String::new();
    for paper in PAPERS {
        for figure in paper.figures {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", paper.heading(figure));
            for claim in figure.claims {
                let _ = writeln!(text, "  {:<34} {}", claim.name, claim.says);
            }
        }
    }
    let _ = writeln!(text, "{}", gpemu_figure::TITLE);
    for (name, says) in gpemu_figure::CLAIMS {
        let _ = writeln!(text, "  {name:<34} {says}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_takes_its_place_and_no_other() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("page.md");
        assert_eq!(with_claims(&file, "- a").expect("a new file"), format!("{BEGIN}\n\n- a\n\n{END}\n"));
        std::fs::write(&file, format!("before\n{BEGIN}\nold\n{END}\nafter\n")).expect("written");
        let text = with_claims(&file, "- b").expect("it has marks");
        assert_eq!(text, format!("before\n{BEGIN}\n\n- b\n\n{END}\nafter\n"));
        std::fs::write(&file, "no marks").expect("written");
        assert!(
            with_claims(&file, "- c").expect_err("no place").to_string().contains("page.md: it has no lines")
        );
    }
}
