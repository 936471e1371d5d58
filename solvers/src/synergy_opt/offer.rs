//! What both models of phase 1 are built from, over jobs and over classes of them: variables for levels, and the cluster's limits.

use super::{Level, undominated};
use crate::error::{FormulationError, ModelError};
use crate::model::{Model, Variable};

/// Positions of levels and their variables.
pub(super) type OfferedLevels = Vec<(usize, Variable)>;

/// A variable for each undominated level that reaches the floor, worth its throughput.
pub(super) fn offer(
    model: &mut Model,
    levels: &[Level],
    floor: f64,
    variable: impl Fn(&mut Model, usize) -> Result<Variable, ModelError>,
) -> Result<OfferedLevels, FormulationError> {
    let mut offered = Vec::new();
    for level in undominated(levels) {
        let throughput = levels[level].throughput;
        if throughput >= floor {
            let variable = variable(model, level)?;
            model.set_cost(variable, throughput)?;
            offered.push((level, variable));
        }
    }
    Ok(offered)
}

/// All that is offered stays within the CPUs and the memory of the cluster.
pub(super) fn limit<'a, I>(
    model: &mut Model,
    (cpus, memory): (f64, f64),
    all: impl Fn() -> I,
) -> Result<(), FormulationError>
where
    I: Iterator<Item = (&'a [Level], &'a OfferedLevels)>,
{
    let of_each = |amount: fn(&Level) -> f64| {
        all().flat_map(move |(levels, offered)| {
            offered.iter().map(move |&(level, variable)| (variable, amount(&levels[level])))
        })
    };
    model.row("cpus", f64::NEG_INFINITY, cpus, of_each(|level| level.cpus))?;
    model.row("memory", f64::NEG_INFINITY, memory, of_each(|level| level.memory))?;
    Ok(())
}
