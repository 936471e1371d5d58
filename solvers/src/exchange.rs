//! A solve as text, for a process that can be killed: request in, answer out.
//!
//! The binary starts a child, writes [`write_request`] to it, and reads [`read_answer`] back; the child runs
//! [`answer_request`]. Texts end with `end`, so that what a killed child left behind is seen to be cut. The
//! parent re-checks the values: a child is as little trusted as a solver.

use std::fmt::Write;
use std::time::Duration;

use crate::check::check;
use crate::error::ReadError;
use crate::format::{read_mps, write_mps};
use crate::model::Model;
use crate::solution::{Limits, Solution, SolveStatus, Solver, Start};

const REQUEST: &str = "rota-solve-request 1";
const ANSWER: &str = "rota-solve-answer 1";

/// A solve to be done elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The model to solve.
    pub model: Model,
    /// Its limits.
    pub limits: Limits,
    /// A start, or empty for a cold one.
    pub start: Vec<f64>,
}

/// The request as text.
pub fn write_request(model: &Model, limits: &Limits, start: Start<'_>) -> String {
    let Limits { nodes, gap, seed, threads, wall } = limits;
    let mut out = format!("{REQUEST}\nnodes {nodes}\ngap {gap}\nseed {seed}\nthreads {threads}\n");
    let _ = writeln!(out, "wall_us {}", wall.as_micros());
    let start = match start {
        Start::Cold => &[][..],
        Start::Values(values) => values,
    };
    write_numbers(&mut out, "start", start);
    out.push_str("model\n");
    out.push_str(&write_mps(model));
    out
}

/// Reads a request back.
pub fn read_request(text: &str) -> Result<Request, ReadError> {
    let mut lines = Lines::new(text, REQUEST)?;
    let limits = Limits {
        nodes: lines.field("nodes")?,
        gap: lines.field("gap")?,
        seed: lines.field("seed")?,
        threads: lines.field("threads")?,
        wall: Duration::from_micros(lines.field("wall_us")?),
    };
    let start = lines.numbers("start")?;
    lines.exactly("model")?;
    let n_before = lines.number;
    let model = read_mps(lines.rest).map_err(|error| ReadError { line: error.line + n_before, ..error })?;
    Ok(Request { model, limits, start })
}

/// The child's whole work: request text in, answer text out. A request that cannot be read is answered too.
pub fn answer_request(text: &str, solver: &mut dyn Solver) -> String {
    let solution = match read_request(text) {
        Err(error) => Solution::failed(format!("request: {error}"), Duration::ZERO),
        Ok(Request { model, limits, start }) => {
            let start = if start.is_empty() { Start::Cold } else { Start::Values(&start) };
            solver.solve(&model, &limits, start)
        }
    };
    write_answer(&solution)
}

/// The answer as text.
pub fn write_answer(solution: &Solution) -> String {
    let Solution { status, objective: _, bound, nodes, wall, values } = solution;
    let mut out = format!("{ANSWER}\nstatus {}\n", status.word());
    let reason = match status {
        SolveStatus::Failed { reason } => reason.replace(['\n', '\r'], " "),
        _ => String::new(),
    };
    let _ = writeln!(out, "reason {reason}");
    let _ = writeln!(out, "bound {}", bound.map_or(f64::NAN, |bound| bound));
    let _ = writeln!(out, "nodes {}", nodes.map_or(-1, |nodes| i64::try_from(nodes).unwrap_or(i64::MAX)));
    let _ = writeln!(out, "wall_us {}", wall.as_micros());
    write_numbers(&mut out, "values", values);
    out.push_str("end\n");
    out
}

/// Reads an answer to a model, and re-checks its values; the objective is computed here.
pub fn read_answer(model: &Model, text: &str) -> Result<Solution, ReadError> {
    let mut lines = Lines::new(text, ANSWER)?;
    let word = lines.text("status")?;
    let word_line = lines.number;
    let reason = lines.text("reason")?.to_owned();
    let status = match word {
        "optimal" => SolveStatus::Optimal,
        "gap_reached" => SolveStatus::GapReached,
        "limit_with_incumbent" => SolveStatus::LimitWithIncumbent,
        "limit_without" => SolveStatus::LimitWithout,
        "infeasible" => SolveStatus::Infeasible,
        "unbounded" => SolveStatus::Unbounded,
        "failed" => SolveStatus::Failed { reason },
        other => return Err(ReadError::new(word_line, 8, other, "a solve status")),
    };
    let bound: f64 = lines.field("bound")?;
    let nodes: i64 = lines.field("nodes")?;
    let wall = Duration::from_micros(lines.field("wall_us")?);
    let values = lines.numbers("values")?;
    lines.exactly("end")?;
    if !status.has_values() {
        let bound = bound.is_finite().then_some(bound);
        return Ok(Solution {
            bound,
            nodes: u64::try_from(nodes).ok(),
            ..Solution::without_values(status, wall)
        });
    }
    Ok(match check(model, &values) {
        Err(violation) => Solution::failed(format!("the answer fails the re-check: {violation}"), wall),
        Ok(objective) => Solution {
            status,
            objective: Some(objective),
            bound: bound.is_finite().then_some(bound),
            nodes: u64::try_from(nodes).ok(),
            wall,
            values,
        },
    })
}

/// `title n`, then the numbers, sixteen to a line.
fn write_numbers(out: &mut String, title: &str, numbers: &[f64]) {
    let _ = writeln!(out, "{title} {}", numbers.len());
    for line in numbers.chunks(16) {
        for number in line {
            let _ = write!(out, "{number} ");
        }
        out.push('\n');
    }
}

/// Lines of `key value`, in the order they must have.
struct Lines<'a> {
    rest: &'a str,
    number: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str, title: &str) -> Result<Self, ReadError> {
        let mut lines = Lines { rest: text, number: 0 };
        lines.exactly(title)?;
        Ok(lines)
    }

    fn line(&mut self) -> &'a str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        self.number += 1;
        line
    }

    fn exactly(&mut self, expected: &str) -> Result<(), ReadError> {
        let line = self.line();
        if line == expected { Ok(()) } else { Err(ReadError::new(self.number, 1, line, expected)) }
    }

    fn text(&mut self, key: &str) -> Result<&'a str, ReadError> {
        let line = self.line();
        let value = line.strip_prefix(key).and_then(|rest| rest.strip_prefix(' '));
        value.ok_or_else(|| ReadError::new(self.number, 1, line, format!("{key} and its value")))
    }

    fn field<T: std::str::FromStr>(&mut self, key: &str) -> Result<T, ReadError> {
        let value = self.text(key)?;
        value
            .parse()
            .map_err(|_| ReadError::new(self.number, key.len() + 2, value, format!("a number of {key}")))
    }

    fn numbers(&mut self, key: &str) -> Result<Vec<f64>, ReadError> {
        let count: usize = self.field(key)?;
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let line = self.line();
            let before = numbers.len();
            for word in line.split_whitespace() {
                let number = word.parse().map_err(|_| ReadError::new(self.number, 1, word, "a number"))?;
                numbers.push(number);
            }
            if numbers.len() == before || numbers.len() > count {
                return Err(ReadError::new(self.number, 1, line, format!("{count} {key}")));
            }
        }
        Ok(numbers)
    }
}
