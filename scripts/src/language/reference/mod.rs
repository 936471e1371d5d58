//! The table of everything a script can use: each registration names its type, its signature and its meaning, and
//! from the same table come the reference in docs/, the definition files for editors and the hints in errors.

mod render;

pub use render::{definitions, entries, reference};

use rhai::{Dynamic, Engine, EvalAltResult, ImmutableString, Position};

use crate::language::nearest;
use crate::language::session::Outcome;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A type.
    Type,
    /// A value read with a dot.
    Field,
    /// A function called with a dot, or an operator.
    Method,
    /// A function called by its name.
    Function,
}

/// One thing a script can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Type, field, method or function.
    pub kind: Kind,
    /// The type it belongs to; empty for functions.
    pub owner: &'static str,
    /// How it is written: `give(what) -> Fill`, `len: int`.
    pub signature: String,
    /// A sentence or two for the reference.
    pub doc: String,
}

impl Entry {
    /// The bare name; empty for operators and indexes.
    pub fn name(&self) -> &str {
        let end = self
            .signature
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(self.signature.len());
        match self.kind {
            Kind::Method if !self.signature[end..].starts_with('(') => "",
            _ => &self.signature[..end],
        }
    }
}

/// An engine being given its verbs, and the table that grows with it.
pub(crate) struct Registrar<'a> {
    engine: &'a mut Engine,
    entries: Vec<Entry>,
}

impl<'a> Registrar<'a> {
    pub(crate) fn new(engine: &'a mut Engine) -> Self {
        Registrar { engine, entries: Vec::new() }
    }

    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// The engine, for what needs no entry of its own.
    pub(crate) fn engine(&mut self) -> &mut Engine {
        self.engine
    }

    /// A type by the name scripts know.
    pub(crate) fn class<T: Clone + Send + Sync + 'static>(&mut self, name: &'static str, doc: &str) {
        self.engine.register_type_with_name::<T>(name);
        self.add(Kind::Type, name, name, doc);
    }

    /// Notes a field; the caller registers it with the engine returned.
    pub(crate) fn field(
        &mut self,
        owner: &'static str,
        signature: impl Into<String>,
        doc: &str,
    ) -> &mut Engine {
        self.add(Kind::Field, owner, signature, doc)
    }

    /// Notes a method; the caller registers it with the engine returned.
    pub(crate) fn method(&mut self, owner: &'static str, signature: &str, doc: &str) -> &mut Engine {
        self.add(Kind::Method, owner, signature, doc)
    }

    /// Notes a function; the caller registers it with the engine returned.
    pub(crate) fn function(&mut self, signature: &str, doc: &str) -> &mut Engine {
        self.add(Kind::Function, "", signature, doc)
    }

    /// Makes a misspelt field an error that knows type and name. Rhai asks here when no field of the name exists.
    pub(crate) fn unknown_field<T: Clone + Send + Sync + 'static>(&mut self, owner: &'static str) {
        self.engine.register_indexer_get(move |_: &mut T, name: ImmutableString| -> Outcome<Dynamic> {
            let unknown = UnknownField { owner, name };
            Err(Box::new(EvalAltResult::ErrorRuntime(Dynamic::from(unknown), Position::NONE)))
        });
    }

    fn add(
        &mut self,
        kind: Kind,
        owner: &'static str,
        signature: impl Into<String>,
        doc: &str,
    ) -> &mut Engine {
        self.entries.push(Entry { kind, owner, signature: signature.into(), doc: doc.to_owned() });
        self.engine
    }
}

/// A field that a type does not have.
#[derive(Clone, Debug)]
pub(crate) struct UnknownField {
    pub(crate) owner: &'static str,
    pub(crate) name: ImmutableString,
}

/// Names that may follow a dot after a value of a type.
pub(crate) fn names_of<'a>(entries: &'a [Entry], owner: &'a str) -> impl Iterator<Item = &'a str> {
    entries
        .iter()
        .filter(move |e| e.owner == owner && e.kind != Kind::Type)
        .map(Entry::name)
        .filter(|n| !n.is_empty())
}

/// Names of functions.
pub(crate) fn functions(entries: &[Entry]) -> impl Iterator<Item = &str> {
    entries.iter().filter(|e| e.kind == Kind::Function).map(Entry::name)
}

/// What to say of a field that a type does not have: a verb of that name, or the nearest names.
pub(crate) fn field_hint(entries: &[Entry], owner: &str, name: &str) -> Option<String> {
    let is_verb = |e: &&Entry| e.owner == owner && e.kind == Kind::Method && e.name() == name;
    match entries.iter().find(is_verb) {
        Some(verb) => Some(format!("it is a verb, `{}`: write `{name}(…)`", verb.signature)),
        None => nearest::hint(name, names_of(entries, owner)).or_else(|| elsewhere(entries, name)),
    }
}

/// The types that have a field of this name.
fn elsewhere(entries: &[Entry], name: &str) -> Option<String> {
    let of_that_name = entries.iter().filter(|e| e.kind == Kind::Field && e.name() == name);
    let owners: Vec<&str> = of_that_name.map(|entry| entry.owner).collect();
    match owners.contains(&"Job") {
        true => Some(format!(
            "one job has it: `for job in jobs {{ job.{name} }}`, or in a closure `|job| job.{name}`"
        )),
        false => (!owners.is_empty()).then(|| format!("{} has it", owners.join(", "))),
    }
}

/// What to say of a verb that a type does not have: how what it may mean is done, or the nearest names.
pub(crate) fn verb_hint<'a>(
    entries: &[Entry],
    owner: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let hint = match (owner, name) {
        ("Jobs" | "Queue", "sort" | "sort_by" | "order" | "sorted" | "sort_desc") => {
            "`rank(jobs.arrival)` orders jobs by columns, `jobs.order_by(|job| key)` by a closure".to_owned()
        }
        ("Jobs" | "Queue", "map" | "for_each" | "to_array" | "iter" | "find" | "push") => {
            "go through them with `for job in jobs { … }`; an array takes them by `push`".to_owned()
        }
        _ => return nearest::hint(name, known).or_else(|| is_field(entries, owner, name)),
    };
    Some(hint)
}

/// What to say where a field is called like a verb.
pub(crate) fn is_field(entries: &[Entry], owner: &str, name: &str) -> Option<String> {
    let is_field = |e: &Entry| e.owner == owner && e.kind == Kind::Field && e.name() == name;
    entries.iter().any(is_field).then(|| format!("`{name}` is a field: write it without `()`"))
}
