//! Parameters: numbers, words and switches that a script declares and its user sets.
//!
//! A script declares at its top level `param("name", default, range or choices, "one sentence")` and reads with
//! `param("name")`. Values are typed by their default and checked against the range.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rhai::{Dynamic, ImmutableString, Map};

use crate::language::nearest;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Shared, fail};
use crate::policy::variant::Variant;
use crate::values::number;

/// One parameter of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The word by which `--set` and the script refer to it.
    pub name: String,
    /// Its present value, of the default's type and within the domain.
    pub value: Value,
    /// Its value when it is not set.
    pub default: Value,
    /// The values it may have.
    pub domain: Domain,
    /// One sentence for `rota policy show`.
    pub about: String,
}

/// A parameter's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// On or off.
    Switch(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
    /// Numbers by name.
    Numbers(BTreeMap<String, f64>),
}

/// What a parameter may be.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// `true` or `false`.
    Switch,
    /// From a least to a most, both allowed.
    Between(f64, f64),
    /// One of these.
    OneOf(Vec<String>),
    /// Any text.
    Text,
}

/// A value that a parameter cannot be set to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// No part has it.
    #[error("no parameter `{name}` in policy {policy}{hint}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The policy's name as it was given.
        policy: String,
        /// Nearest names, or those there are.
        hint: String,
    },
    /// Several parts have it.
    #[error("parameter `{name}` is declared by {parts}: write one of them before it, as in `{example}`")]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// Names of the parts that have it, joined by `and`.
        parts: String,
        /// One of the parts and the name, as it can be written.
        example: String,
    },
    /// Not of its type, or outside its range.
    #[error("parameter `{name}`: `{value}` is not {expected}")]
    Wrong {
        /// The parameter that was to be set.
        name: String,
        /// The text that was given.
        value: String,
        /// The values it may have, in words.
        expected: String,
    },
}

/// What the top level of a script declared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declarations {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) is_steady: bool,
    pub(crate) keeps_running: bool,
    /// Which shipped script it is like, if it has no stages of its own.
    pub(crate) variant: Option<Variant>,
}

impl SetError {
    /// The error for a name that is not among the known ones, with the nearest of them.
    pub fn unknown(key: &str, policy: String, known: &[&str]) -> Self {
        let name = key.split_once('.').map_or(key, |(_, name)| name);
        let hint = match (nearest::hint(name, known.iter().copied()), known.is_empty()) {
            (Some(hint), _) => format!(": {hint}"),
            (None, true) => ", which has none".to_owned(),
            (None, false) => format!(", which has {}", known.join(", ")),
        };
        SetError::Unknown { name: key.to_owned(), policy, hint }
    }
}

impl Parameter {
    /// Reads a value as its default's type and checks it.
    pub(crate) fn set(&mut self, text: &str) -> Result<(), SetError> {
        let parsed = match (&self.default, text.trim()) {
            (Value::Switch(_), "true" | "on" | "yes" | "1") => Some(Value::Switch(true)),
            (Value::Switch(_), "false" | "off" | "no" | "0") => Some(Value::Switch(false)),
            (Value::Switch(_), _) => None,
            (Value::Whole(_), text) => text.parse().ok().map(Value::Whole),
            (Value::Number(_), text) => text.parse().ok().map(Value::Number),
            (Value::Word(_), text) => Some(Value::Word(text.to_owned())),
            (Value::Numbers(_), text) => {
                let pairs: Option<Vec<_>> = text.split_whitespace().map(named_number).collect();
                pairs.and_then(each_name_once).map(Value::Numbers)
            }
        };
        match parsed.filter(|value| self.domain.contains(value)) {
            Some(value) => {
                self.value = value;
                Ok(())
            }
            None => {
                let expected = match &self.default {
                    Value::Whole(_) => format!("a whole number {}", self.domain),
                    Value::Number(_) => format!("a number {}", self.domain),
                    Value::Numbers(_) => {
                        format!("names with numbers {}, each name once, as in ann:3 ben:1", self.domain)
                    }
                    _ => self.domain.to_string(),
                };
                Err(SetError::Wrong { name: self.name.clone(), value: text.to_owned(), expected })
            }
        }
    }
}

impl Domain {
    fn contains(&self, value: &Value) -> bool {
        match (self, value) {
            (Domain::Switch, Value::Switch(_)) => true,
            (Domain::Between(low, high), Value::Whole(n)) => (*low..=*high).contains(&(*n as f64)),
            (Domain::Between(low, high), Value::Number(n)) => (*low..=*high).contains(n),
            (Domain::Between(low, high), Value::Numbers(by_name)) => {
                by_name.values().all(|n| (*low..=*high).contains(n))
            }
            (Domain::OneOf(words), Value::Word(word)) => words.contains(word),
            (Domain::Text, Value::Word(_)) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domain::Switch => f.write_str("true or false"),
            Domain::Between(low, high) => write!(f, "from {low} to {high}"),
            Domain::OneOf(words) => write!(f, "one of {}", words.join(", ")),
            Domain::Text => f.write_str("any text"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Switch(value) => value.fmt(f),
            Value::Whole(value) => value.fmt(f),
            Value::Number(value) => write!(f, "{value:?}"),
            Value::Word(value) => f.write_str(value),
            Value::Numbers(by_name) => {
                let pairs: Vec<String> = by_name.iter().map(|(name, n)| format!("{name}:{n}")).collect();
                f.write_str(&pairs.join(" "))
            }
        }
    }
}

impl Value {
    fn to_script(&self) -> Dynamic {
        match self {
            Value::Switch(value) => Dynamic::from(*value),
            Value::Whole(value) => Dynamic::from(*value),
            Value::Number(value) => Dynamic::from(*value),
            Value::Word(value) => Dynamic::from(value.clone()),
            Value::Numbers(by_name) => {
                let entry = |(name, n): (&String, &f64)| (name.as_str().into(), Dynamic::from(*n));
                Dynamic::from(by_name.iter().map(entry).collect::<Map>())
            }
        }
    }
}

/// A range of numbers that are not whole; Rhai has none of its own.
#[derive(Clone, Copy, Debug)]
struct NumberRange(f64, f64);

pub(crate) fn register(registrar: &mut Registrar<'_>, shared: &Arc<Shared>) {
    let engine = registrar.function(
        "param(name: String, default, domain, about: String)",
        "At the top level: declares a parameter with its default, a range (`0..=10`, `0.0..=1.0`), an array of words, or \
         `\"text\"` for any text, and one sentence. A switch (`true`, `false`) needs no domain. A map of numbers, such as `#{}`, is \
         set as `ann:3 ben:1`; its range is that of each number.",
    );
    let host = Arc::clone(shared);
    engine.register_fn(
        "param",
        move |name: ImmutableString, default: Dynamic, domain: Dynamic, about: ImmutableString| {
            declare(&host, &name, &default, &domain, &about)
        },
    );
    let host = Arc::clone(shared);
    engine.register_fn("param", move |name: ImmutableString, default: bool, about: ImmutableString| {
        declare(&host, &name, &Dynamic::from(default), &Dynamic::UNIT, &about)
    });
    engine.register_fn("..=", |low: f64, high: f64| NumberRange(low, high));
    engine.register_fn("..=", |low: i64, high: f64| NumberRange(low as f64, high));
    engine.register_fn("..=", |low: f64, high: i64| NumberRange(low, high as f64));
    let host = Arc::clone(shared);
    registrar
        .function("param(name: String) -> value", "Inside a stage function: the value of a parameter.")
        .register_fn("param", move |name: ImmutableString| read(&host, &name));
    let host = Arc::clone(shared);
    registrar
        .function(
            "steady()",
            "At the top level: what this file answers depends on which jobs and nodes there are and what they hold, not on \
             time or progress. Rounds in which nothing changed are then skipped.",
        )
        .register_fn("steady", move || {
            if let Some(declarations) = &mut host.call_state().declarations {
                declarations.is_steady = true;
            }
        });
    let host = Arc::clone(shared);
    registrar
        .function(
            "no_preemption()",
            "At the top level: a job that runs goes on with what it holds until it ends, whatever the stages of the policy say. \
             A file that says so needs no stage.",
        )
        .register_fn("no_preemption", move || {
            if let Some(declarations) = &mut host.call_state().declarations {
                declarations.keeps_running = true;
            }
        });
}

fn declare(shared: &Shared, name: &str, default: &Dynamic, domain: &Dynamic, about: &str) -> Outcome<()> {
    let default = value_of(default, name)?;
    let domain = domain_of(domain, &default, name)?;
    if !domain.contains(&default) {
        return fail(format!("param `{name}`: its default {default} is not {domain}"));
    }
    let mut state = shared.call_state();
    // A script with constants runs its top level again before each stage; its parameters are declared already.
    let Some(declarations) = &mut state.declarations else { return Ok(()) };
    if declarations.parameters.iter().any(|p| p.name == name) {
        return fail(format!("param `{name}` is declared twice"));
    }
    let about = about.to_owned();
    declarations.parameters.push(Parameter {
        name: name.to_owned(),
        value: default.clone(),
        default,
        domain,
        about,
    });
    Ok(())
}

fn value_of(default: &Dynamic, name: &str) -> Outcome<Value> {
    if let Ok(value) = default.as_bool() {
        return Ok(Value::Switch(value));
    }
    if let Ok(value) = default.as_int() {
        return Ok(Value::Whole(value));
    }
    if let Ok(value) = default.as_float() {
        return Ok(Value::Number(value));
    }
    if let Some(map) = default.read_lock::<Map>() {
        let entry = |(key, value): (&rhai::Identifier, &Dynamic)| Some((key.to_string(), number(value)?));
        return match map.iter().map(entry).collect() {
            Some(by_name) => Ok(Value::Numbers(by_name)),
            None => fail(format!("param `{name}`: a map that is a default has numbers only")),
        };
    }
    match default.read_lock::<ImmutableString>() {
        Some(word) => Ok(Value::Word(word.to_string())),
        None => fail(format!(
            "param `{name}`: the default must be a number, a word, a map of numbers, true or false"
        )),
    }
}

/// Numbers by name; nothing where a name is there twice.
fn each_name_once(pairs: Vec<(String, f64)>) -> Option<BTreeMap<String, f64>> {
    let n_pairs = pairs.len();
    let by_name: BTreeMap<String, f64> = pairs.into_iter().collect();
    (by_name.len() == n_pairs).then_some(by_name)
}

/// A name and its number, as in `ann:3`.
fn named_number(text: &str) -> Option<(String, f64)> {
    let (name, number) = text.split_once(':').filter(|(name, _)| !name.is_empty())?;
    Some((name.to_owned(), number.parse().ok()?))
}

fn domain_of(domain: &Dynamic, default: &Value, name: &str) -> Outcome<Domain> {
    if let Value::Switch(_) = default {
        return Ok(Domain::Switch);
    }
    if let Value::Word(_) = default {
        if domain.read_lock::<ImmutableString>().is_some_and(|word| word.as_str() == "text") {
            return Ok(Domain::Text);
        }
        let words =
            domain.read_lock::<rhai::Array>().map(|words| words.iter().map(ToString::to_string).collect());
        return match words {
            Some(words) => Ok(Domain::OneOf(words)),
            None => fail(format!(
                "param `{name}`: a word needs an array of choices, such as [\"skip\", \"stop\"], or \"text\" if it may be any"
            )),
        };
    }
    if let Some(range) = domain.read_lock::<NumberRange>() {
        return Ok(Domain::Between(range.0, range.1));
    }
    if let Some(range) = domain.read_lock::<std::ops::RangeInclusive<i64>>() {
        return Ok(Domain::Between(*range.start() as f64, *range.end() as f64));
    }
    if let Some(range) = domain.read_lock::<std::ops::Range<i64>>() {
        return Ok(Domain::Between(range.start as f64, (range.end - 1) as f64));
    }
    let got = number(domain).map_or_else(|| domain.type_name().to_owned(), |n| n.to_string());
    fail(format!("param `{name}`: a number needs a range, such as 0..=10 or 0.0..=1.0, got {got}"))
}

fn read(shared: &Shared, name: &str) -> Outcome<Dynamic> {
    let state = shared.call_state();
    let declared = match &state.declarations {
        Some(declarations) => &declarations.parameters,
        None => match state.parameters.get(state.part) {
            Some(parameters) => parameters,
            None => return fail(format!("param `{name}` is not declared in this file")),
        },
    };
    match declared.iter().find(|p| p.name == name) {
        Some(parameter) => Ok(parameter.value.to_script()),
        None => {
            let hint = nearest::hint(name, declared.iter().map(|p| p.name.as_str()));
            fail(format!(
                "param `{name}` is not declared in this file{}",
                hint.map_or_else(String::new, |h| format!(": {h}"))
            ))
        }
    }
}
