//! Variants: a script that is another one with other defaults, and a name of its own.
//!
//! `like("chronus", #{ spare: "deadlines" })` at the top level takes the stages and parameters of a shipped script as
//! they are and changes the defaults of its parameters. The header is the variant's.

use std::sync::Arc;

use rhai::{Engine, ImmutableString, Map, Position};

use crate::language::error::{LoadError, at};
use crate::language::nearest;
use crate::language::parameters::{Declarations, Parameter, SetError};
use crate::language::reference::{Entry, Registrar};
use crate::language::session::{Outcome, Shared, fail};
use crate::policy::part::Part;
use crate::policy::shipped;

/// What a script said it is like.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    of: &'static shipped::Shipped,
    /// Parameters with their other defaults, as they would be set.
    defaults: Vec<(String, String)>,
}

/// A default that a variant cannot have.
#[derive(Debug, thiserror::Error)]
enum WrongDefault {
    #[error("{of} has no parameter `{name}`")]
    NoParameter { of: &'static str, name: String, hint: Option<String> },
    #[error(transparent)]
    Set(#[from] SetError),
}

impl WrongDefault {
    fn hint(self) -> Option<String> {
        match self {
            WrongDefault::NoParameter { hint, .. } => hint,
            WrongDefault::Set(_) => None,
        }
    }
}

impl Variant {
    /// The shipped script under the name and header of the one that said so, with its defaults.
    pub(crate) fn compile(
        &self,
        engine: &Engine,
        shared: &Shared,
        entries: &[Entry],
        own: &Part,
        declared: &Declarations,
    ) -> Result<(Part, Vec<Parameter>), LoadError> {
        if !own.stages.is_empty()
            || !declared.parameters.is_empty()
            || declared.is_steady
            || declared.keeps_running
        {
            let message =
                format!("a script that is like {} says nothing else: leave the rest out", self.of.name);
            return Err(at(own, position_of_like(own), message, None, None).into());
        }
        let (base, mut parameters) =
            Part::compile(engine, shared, entries, &own.name, self.of.file, self.of.source)?;
        for (name, value) in &self.defaults {
            self.set_default(&mut parameters, name, value)
                .map_err(|error| at(own, position_of_like(own), error.to_string(), error.hint(), None))?;
        }
        Ok((Part { header: own.header.clone(), ..base }, parameters))
    }

    fn set_default(&self, parameters: &mut [Parameter], name: &str, value: &str) -> Result<(), WrongDefault> {
        let hint = nearest::hint(name, parameters.iter().map(|parameter| parameter.name.as_str()));
        let Some(parameter) = parameters.iter_mut().find(|parameter| parameter.name == name) else {
            return Err(WrongDefault::NoParameter { of: self.of.name, name: name.to_owned(), hint });
        };
        parameter.set(value)?;
        parameter.default = parameter.value.clone();
        Ok(())
    }
}

fn position_of_like(part: &Part) -> Position {
    part.position_of_text("like(")
}

pub(crate) fn register(registrar: &mut Registrar<'_>, shared: &Arc<Shared>) {
    let engine = registrar.function(
        "like(policy: String, defaults: Map)",
        "At the top level, instead of stages: this script is a shipped one with other defaults of its parameters, as in \
         `like(\"chronus\", #{ spare: \"deadlines\" });`.",
    );
    let host = Arc::clone(shared);
    engine.register_fn("like", move |name: ImmutableString, defaults: Map| declare(&host, &name, &defaults));
}

fn declare(shared: &Shared, name: &str, defaults: &Map) -> Outcome<()> {
    let Some(of) = shipped::find(name) else {
        let hint = nearest::hint(name, shipped::ALL.iter().map(|script| script.name));
        let hint = hint.unwrap_or_else(|| "`rota policy list` shows all".to_owned());
        return fail(format!("no shipped policy `{name}`: {hint}"));
    };
    if let Some(declarations) = &mut shared.call_state().declarations {
        let defaults = defaults.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        declarations.variant = Some(Variant { of, defaults });
    }
    Ok(())
}
