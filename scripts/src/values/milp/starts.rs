//! Where a solve begins: values that a script knows already, such as those of the round before.
//!
//! A start that the model allows is handed to the solver, and the answer is never worse than it. One that breaks a bound
//! or a row is not used, and the answer says which.

use rhai::{Dynamic, ImmutableString};
use rota_solvers::{Model, Variable, check};

use super::MilpValue;
use super::linear::Linear;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};

/// What became of the values given to `start`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Began {
    /// None were given.
    Cold,
    /// The model allows them.
    Warm,
    /// The model does not, with the reason.
    Refused(String),
}

impl Began {
    /// As scripts and notes read it.
    pub(super) fn text(&self) -> String {
        match self {
            Began::Cold => "none".to_owned(),
            Began::Warm => "used".to_owned(),
            Began::Refused(why) => format!("not used: {why}"),
        }
    }
}

/// Values by variable; not a number where none was given.
#[derive(Clone, Debug, Default)]
pub(super) struct Starts(Vec<f64>);

impl Starts {
    fn set(&mut self, variable: Variable, value: f64) {
        self.0[variable.index()] = value;
    }

    /// One value for each variable, and what becomes of them. A variable without one has the allowed value next to 0.
    pub(super) fn complete(&self, model: &Model) -> (Vec<f64>, Began) {
        if self.0.is_empty() {
            return (Vec::new(), Began::Cold);
        }
        let value = |variable: Variable| {
            let range = model.range(variable);
            let given = self.0.get(variable.index()).copied().filter(|value| !value.is_nan());
            given.unwrap_or_else(|| 0.0_f64.max(range.lower).min(range.upper))
        };
        let values: Vec<f64> = model.variables().map(value).collect();
        match check(model, &values) {
            Ok(_) => (values, Began::Warm),
            Err(violation) => (Vec::new(), Began::Refused(violation.to_string())),
        }
    }
}

impl MilpValue {
    fn start(&self, variables: &Linear, values: &Dynamic) -> Outcome<()> {
        self.own(variables)?;
        let values = Linear::constant(&self.0, values)?.spread(variables.shape())?;
        if values.shape().len() != variables.shape().len() {
            return fail(format!("start: values over {} for {}", values.shape(), variables.shape()));
        }
        let mut starts = self.0.starts();
        let n_more = self.0.model().n_variables().saturating_sub(starts.0.len());
        self.0.take_bytes(n_more, n_more as u64 * 8)?;
        let n_variables = starts.0.len() + n_more;
        starts.0.resize(n_variables, f64::NAN);
        for position in 0..variables.shape().len() {
            let value = values.number(position);
            match variables.terms(position) {
                // No variable for this pair: there is nothing to start from.
                [] if variables.number(position) == 0.0 => {}
                [(variable, 1.0)] if variables.number(position) == 0.0 && value.is_finite() => {
                    starts.set(*variable, value);
                }
                [(_, 1.0)] if !value.is_finite() => {
                    return fail(format!("start: {value} is not a usable number"));
                }
                _ => return fail("start: takes variables as they were made, not an expression"),
            }
        }
        Ok(())
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    let engine = registrar.method(
        "Milp",
        "start(variables: Linear, values)",
        "Where the solve begins: a number, a column, an array or a matrix with a value for each of the variables. Variables \
         without a value begin at the allowed one next to 0. If the model allows these values, the answer is never worse \
         than they are; if not, they are not used, and `answer.start` says why.",
    );
    engine.register_fn("start", |m: MilpValue, variables: Linear, values: Dynamic| {
        m.start(&variables, &values)
    });
    let engine = registrar.field(
        "Answer",
        "start: String",
        "What became of the values given to `m.start`: `none` were given, `used`, or `not used: ` and why.",
    );
    engine.register_get("start", |a: &mut super::answer::MilpAnswer| ImmutableString::from(a.began()));
}
