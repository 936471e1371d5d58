//! `rota reproduce list`: every figure with the command that runs it, how long it takes, and whether it needs files.

use std::fmt::Write as _;

use super::figure::about;
use rota_lab::reproduce::gpemu as gpemu_figure;
use rota_lab::reproduce::papers::PAPERS;

/// One line for each figure.
pub(super) fn list_of_figures() -> String {
    let mut text = String::new();
    for paper in PAPERS {
        let _ = writeln!(text, "{}", paper.title);
        for figure in paper.figures {
            // Chronus has one figure, which needs no name.
            let name = if paper.figures.len() > 1 { figure.name } else { "" };
            line(
                &mut text,
                &format!("{} {name}", paper.system),
                figure.title,
                figure.full_minutes,
                figure.needs.len(),
            );
        }
        if paper.system == "elasticflow" {
            let _ = writeln!(
                text,
                "  {:<38} the original's functional test; seconds",
                "rota reproduce elasticflow functional"
            );
        }
    }
    let _ = writeln!(text, "GPEmu");
    line(&mut text, "gpemu synergy", gpemu_figure::TITLE, super::gpemu::full_minutes(), 1);
    text.push_str("\nTimes are for two cores; --quick runs a small form in less than a minute. `rota reproduce claims` lists the claims.\n");
    text
}

fn line(text: &mut String, command: &str, title: &str, minutes: f64, n_files: usize) {
    let needs = if n_files > 0 { ", needs public traces" } else { "" };
    let command = format!("rota reproduce {}", command.trim_end());
    let _ = writeln!(text, "  {command:<38} {title}; {}{needs}", about(minutes));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_listed_with_its_command() {
        let text = list_of_figures();
        for (paper, figure) in
            PAPERS.iter().flat_map(|paper| paper.figures.iter().map(move |figure| (paper, figure)))
        {
            // Before the title there is the command alone.
            let is_its_line = |line: &&str| {
                let before = line.split_once(figure.title).map(|(before, _)| before);
                before.is_some_and(|it| it.contains(paper.system) && it.split_whitespace().count() <= 4)
            };
            assert_eq!(text.lines().filter(is_its_line).count(), 1, "{}: {text}", figure.title);
        }
    }
}
