//! The answer to a model, for people and for programs.

use std::fmt::Write as _;

use rota_solvers::{Model, Sense, Solution, Variable};
use serde_json::{Value, json};

/// How many variables are shown unless all are asked for.
const MOST_SHOWN: usize = 40;

/// A model and its answer.
pub struct Answer<'a> {
    /// The model that was solved.
    pub model: &'a Model,
    /// Its solution.
    pub solution: &'a Solution,
    /// Whether the solve overran its time and was killed.
    pub is_killed: bool,
}

impl Answer<'_> {
    /// A table: the status and its numbers, then the variables that are not zero.
    pub fn to_text(&self, shows_all: bool) -> String {
        let (model, solution) = (self.model, self.solution);
        let number = |value: Option<f64>| value.map_or("unknown".to_owned(), |value| format!("{value}"));
        let goal = if model.sense() == Sense::Maximize { "maximise" } else { "minimise" };
        let status = if self.is_killed { " (overran its time and was killed)" } else { "" };
        let mut text = format!(
            "model      {goal}, {} variables ({} whole), {} rows, {} terms\nstatus     {}{status}\n",
            model.n_variables(),
            model.n_integers(),
            model.n_rows(),
            model.n_terms(),
            solution.status
        );
        let gap = solution.gap().map_or("unknown".to_owned(), |gap| format!("{:.4} %", gap * 100.0));
        let nodes = solution.nodes.map_or("unknown".to_owned(), |nodes| nodes.to_string());
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "objective  {}\nbound      {}",
            number(solution.objective),
            number(solution.bound)
        );
        let _ = writeln!(
            text,
            "gap        {gap}\nnodes      {nodes}\ntime       {:.3} s",
            solution.wall.as_secs_f64()
        );
        if solution.status.has_values() {
            self.write_variables(&mut text, shows_all);
        }
        text
    }

    fn write_variables(&self, text: &mut String, shows_all: bool) {
        let set: Vec<(&str, f64)> = self.nonzero().collect();
        let most = if shows_all { usize::MAX } else { MOST_SHOWN };
        let width = set.iter().take(most).map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(8);
        let _ = writeln!(text, "\n{:<width$}  value", "variable");
        for (name, value) in set.iter().take(most) {
            let _ = writeln!(text, "{name:<width$}  {value}");
        }
        if set.len() > most {
            let _ = writeln!(text, "… and {} more: --all shows them", set.len() - most);
        }
        let _ = writeln!(text, "{} of {} variables are not zero", set.len(), self.model.n_variables());
    }

    /// The variables that are not zero, in the order of the model.
    fn nonzero(&self) -> impl Iterator<Item = (&str, f64)> {
        let value = |variable: Variable| self.solution.value(variable).filter(|value| *value != 0.0);
        self.model.variables().filter_map(move |x| Some((self.model.variable_name(x), value(x)?)))
    }

    /// The same as JSON; numbers that are not known are null.
    pub fn to_json(&self) -> String {
        let (model, solution) = (self.model, self.solution);
        let values: serde_json::Map<String, Value> =
            self.nonzero().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        let answer = json!({
            "status": solution.status.word(),
            "reason": match &solution.status {
                rota_solvers::SolveStatus::Failed { reason } => Some(reason),
                _ => None,
            },
            "objective": solution.objective,
            "bound": solution.bound,
            "gap": solution.gap(),
            "nodes": solution.nodes,
            "wall_s": solution.wall.as_secs_f64(),
            "killed": self.is_killed,
            "variables": model.n_variables(),
            "whole": model.n_integers(),
            "rows": model.n_rows(),
            "terms": model.n_terms(),
            "values": values,
        });
        format!("{answer:#}\n")
    }
}
