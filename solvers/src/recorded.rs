//! A solver that answers from a recording: for conformance runs, replays and tests of the code above the solver.

use std::collections::VecDeque;
use std::time::Duration;

use crate::check::check;
use crate::model::Model;
use crate::solution::{Limits, Solution, SolveStatus, Solver, Start};

/// One recorded answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// How the recorded solve ended.
    pub status: SolveStatus,
    /// Its values, empty if it had none.
    pub values: Vec<f64>,
}

/// Answers solves in the order recorded; each answer is re-checked against the model it is given for.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    answers: VecDeque<Recording>,
}

impl Recorded {
    /// A solver for these answers.
    pub fn new(answers: impl IntoIterator<Item = Recording>) -> Self {
        Recorded { answers: answers.into_iter().collect() }
    }

    /// How many answers are left.
    pub fn n_left(&self) -> usize {
        self.answers.len()
    }
}

impl Solver for Recorded {
    fn solve(&mut self, model: &Model, _: &Limits, _: Start<'_>) -> Solution {
        let Some(Recording { status, values }) = self.answers.pop_front() else {
            return Solution::failed("the recording has no answer left", Duration::ZERO);
        };
        if !status.has_values() {
            return Solution::without_values(status, Duration::ZERO);
        }
        match check(model, &values) {
            Err(violation) => Solution::failed(
                format!("the recorded answer fits another model: {violation}"),
                Duration::ZERO,
            ),
            Ok(objective) => {
                let bound = (status == SolveStatus::Optimal).then_some(objective);
                let objective = Some(objective);
                Solution { status, objective, bound, nodes: None, wall: Duration::ZERO, values }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Sense;

    fn recording(value: f64) -> Recording {
        Recording { status: SolveStatus::Optimal, values: vec![value] }
    }

    #[test]
    fn answers_come_in_order_and_then_run_out() {
        let mut model = Model::new(Sense::Maximize);
        let x = model.binary("x").unwrap();
        model.set_cost(x, 3.0).unwrap();
        let infeasible = Recording { status: SolveStatus::Infeasible, values: Vec::new() };
        let mut solver = Recorded::new([recording(1.0), infeasible, recording(2.0)]);
        let mut next = || solver.solve(&model, &Limits::default(), Start::Cold);
        assert_eq!(next().objective, Some(3.0));
        assert_eq!(next().status, SolveStatus::Infeasible);
        assert_eq!(
            next().status.to_string(),
            "failed: the recorded answer fits another model: variable x is 2, outside 0 to 1"
        );
        assert_eq!(next().status.to_string(), "failed: the recording has no answer left");
    }
}
