//! The comparison of admissions for people and for programs.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::AdmissionRow;
use super::admission::{Answers, WholeRun};
use crate::report::TABLE_STYLE;

/// The comparison as JSON.
#[derive(serde::Serialize)]
struct File {
    traces: Vec<Entry>,
}

#[derive(serde::Serialize)]
struct Entry {
    trace: &'static str,
    file: &'static str,
    cluster: String,
    jobs: usize,
    same_state: Answers,
    elasticflow: WholeRun,
    #[serde(rename = "elasticflow-opt")]
    model: WholeRun,
}

/// For people.
pub fn to_text(rows: &[AdmissionRow]) -> String {
    let mut text = "ElasticFlow's greedy admission against the model's (elasticflow-opt)\n".to_owned();
    text.push_str("\nThe same question to both, each time somebody asks, in the greedy's run: jobs with a deadline that enter\n");
    text.push_str(&same_state(rows));
    text.push_str("\n\nWhole runs, each policy with what it admitted\n");
    text.push_str(&whole_runs(rows));
    text.push('\n');
    let n_worse: usize = rows.iter().map(|row| row.answers.worse).sum();
    let n_instants: usize = rows.iter().map(|row| row.answers.instants).sum();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\nThe model let fewer in than the greedy at {n_worse} of {n_instants} instants.");
    text.push_str("At most: what the model's bound allows, restarts ignored; no plan can let more in.\n");
    text
}

/// For programs.
pub fn to_json(rows: &[AdmissionRow]) -> String {
    let entry = |row: &AdmissionRow| Entry {
        trace: row.panel.name,
        file: row.panel.file,
        cluster: row.panel.cluster.name(),
        jobs: row.n_jobs,
        same_state: row.answers,
        elasticflow: row.greedy,
        model: row.model,
    };
    let file = File { traces: rows.iter().map(entry).collect() };
    serde_json::to_string_pretty(&file).expect("counts are plain numbers and text") + "\n"
}

fn table(heading: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(TABLE_STYLE).set_content_arrangement(ContentArrangement::Disabled).set_header(heading);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn same_state(rows: &[AdmissionRow]) -> String {
    let mut table =
        table(&["trace", "cluster", "asked", "greedy", "model", "at most", "greedy falls short by"]);
    for AdmissionRow { panel, answers, .. } in rows {
        let short = |more: usize| {
            let by = more.saturating_sub(answers.greedy);
            format!("{by} ({:.2} %)", 100.0 * by as f64 / answers.asked.max(1) as f64)
        };
        table.add_row([
            panel.name.to_owned(),
            panel.cluster.name(),
            answers.asked.to_string(),
            answers.greedy.to_string(),
            answers.model.to_string(),
            answers.at_most.to_string(),
            format!("{}, at most {}", short(answers.model), short(answers.at_most)),
        ]);
    }
    table.to_string()
}

fn whole_runs(rows: &[AdmissionRow]) -> String {
    let mut table = table(&["trace", "jobs", "declined", "by the model", "met", "by the model"]);
    for AdmissionRow { panel, n_jobs, greedy, model, .. } in rows {
        table.add_row([
            panel.name.to_owned(),
            n_jobs.to_string(),
            greedy.declined.to_string(),
            model.declined.to_string(),
            greedy.met.to_string(),
            model.met.to_string(),
        ]);
    }
    table.to_string()
}
