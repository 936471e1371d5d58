//! Algebra over variables, so that a formulation reads like the paper it comes from.
//!
//! `model.constrain("capacity", (2.0 * x + y).at_most(8.0))`. Terms are kept as written; the model merges
//! and checks them. Hot builders skip this and hand terms to [`Model::row`] directly.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Neg, Sub};

use crate::error::ModelError;
use crate::model::{Model, Row, Sense, Variable};

/// A sum of coefficients times variables, plus a constant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expression {
    /// The terms as written; a variable may occur several times.
    pub terms: Vec<(Variable, f64)>,
    /// The part that depends on no variable.
    pub constant: f64,
}

/// An expression between two bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    expression: Expression,
    lower: f64,
    upper: f64,
}

impl Expression {
    /// `self <= upper`.
    pub fn at_most(self, upper: f64) -> Constraint {
        self.between(f64::NEG_INFINITY, upper)
    }

    /// `self >= lower`.
    pub fn at_least(self, lower: f64) -> Constraint {
        self.between(lower, f64::INFINITY)
    }

    /// `self == value`.
    pub fn equal_to(self, value: f64) -> Constraint {
        self.between(value, value)
    }

    /// `lower <= self <= upper`.
    pub fn between(self, lower: f64, upper: f64) -> Constraint {
        Constraint { expression: self, lower, upper }
    }
}

impl Model {
    /// Adds a row from an expression; its constant moves into the bounds.
    pub fn constrain(&mut self, name: &str, constraint: Constraint) -> Result<Row, ModelError> {
        let Constraint { expression, lower, upper } = constraint;
        let constant = expression.constant;
        self.row(name, lower - constant, upper - constant, expression.terms)
    }

    /// Replaces the objective.
    pub fn set_objective(
        &mut self,
        sense: Sense,
        objective: impl Into<Expression>,
    ) -> Result<(), ModelError> {
        let objective = objective.into();
        self.set_sense(sense);
        self.set_offset(objective.constant)?;
        for variable in self.variables() {
            self.set_cost(variable, 0.0)?;
        }
        for (variable, coefficient) in objective.terms {
            let so_far = if variable.index() < self.n_variables() { self.cost(variable) } else { 0.0 };
            self.set_cost(variable, so_far + coefficient)?;
        }
        Ok(())
    }
}

impl From<Variable> for Expression {
    fn from(variable: Variable) -> Self {
        Expression { terms: vec![(variable, 1.0)], constant: 0.0 }
    }
}

impl From<f64> for Expression {
    fn from(constant: f64) -> Self {
        Expression { terms: Vec::new(), constant }
    }
}

impl<E: Into<Expression>> Add<E> for Expression {
    type Output = Expression;
    fn add(mut self, other: E) -> Expression {
        self += other;
        self
    }
}

impl<E: Into<Expression>> AddAssign<E> for Expression {
    fn add_assign(&mut self, other: E) {
        let other = other.into();
        self.terms.extend(other.terms);
        self.constant += other.constant;
    }
}

impl<E: Into<Expression>> Sub<E> for Expression {
    type Output = Expression;
    fn sub(self, other: E) -> Expression {
        self + -other.into()
    }
}

impl Neg for Expression {
    type Output = Expression;
    fn neg(self) -> Expression {
        -1.0 * self
    }
}

impl Mul<Expression> for f64 {
    type Output = Expression;
    fn mul(self, mut expression: Expression) -> Expression {
        for term in &mut expression.terms {
            term.1 *= self;
        }
        expression.constant *= self;
        expression
    }
}

impl Mul<Variable> for f64 {
    type Output = Expression;
    fn mul(self, variable: Variable) -> Expression {
        Expression { terms: vec![(variable, self)], constant: 0.0 }
    }
}

impl<E: Into<Expression>> Add<E> for Variable {
    type Output = Expression;
    fn add(self, other: E) -> Expression {
        Expression::from(self) + other
    }
}

impl<E: Into<Expression>> Sub<E> for Variable {
    type Output = Expression;
    fn sub(self, other: E) -> Expression {
        Expression::from(self) - other
    }
}

impl<E: Into<Expression>> Sum<E> for Expression {
    fn sum<I: Iterator<Item = E>>(parts: I) -> Expression {
        parts.fold(Expression::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algebra_builds_the_row_it_says() {
        let mut model = Model::new(Sense::Minimize);
        let x = model.continuous("x", 0.0, 9.0).unwrap();
        let y = model.continuous("y", 0.0, 9.0).unwrap();
        let row = model.constrain("r", (2.0 * (x + y) - y + 1.0).at_most(8.0)).unwrap();
        assert_eq!(model.terms(row).collect::<Vec<_>>(), [(x, 2.0), (y, 1.0)]);
        assert_eq!(model.row_range(row).upper, 7.0);
    }

    #[test]
    fn terms_that_cancel_leave_the_row() {
        let mut model = Model::new(Sense::Minimize);
        let x = model.continuous("x", 0.0, 9.0).unwrap();
        let y = model.continuous("y", 0.0, 9.0).unwrap();
        let row = model.constrain("r", (y + x - y).equal_to(3.0)).unwrap();
        assert_eq!(model.terms(row).collect::<Vec<_>>(), [(x, 1.0)]);
    }

    #[test]
    fn a_new_objective_forgets_the_old_one() {
        let mut model = Model::new(Sense::Minimize);
        let x = model.continuous("x", 0.0, 9.0).unwrap();
        let y = model.continuous("y", 0.0, 9.0).unwrap();
        model.set_objective(Sense::Minimize, x + 5.0).unwrap();
        model.set_objective(Sense::Maximize, [y, y].into_iter().sum::<Expression>()).unwrap();
        assert_eq!((model.cost(x), model.cost(y), model.offset()), (0.0, 2.0, 0.0));
    }

    #[test]
    fn a_variable_of_another_model_is_refused() {
        let mut other = Model::new(Sense::Minimize);
        let foreign = other.continuous("x", 0.0, 1.0).unwrap();
        let mut model = Model::new(Sense::Minimize);
        let error = model.set_objective(Sense::Minimize, foreign).unwrap_err();
        assert_eq!(error.to_string(), "objective: variable number 0 does not exist, the model has 0");
    }
}
