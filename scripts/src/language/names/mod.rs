//! Names of a script against what there is, without running it: fields, verbs, functions and parameters, also in branches
//! that no run takes.
//!
//! Types are followed as far as the text says them: arguments of stages, fields and verbs of known types, loops over
//! jobs. A value of unknown type may have any field that some type or some map of the script has.
//!
//! `habits` looks at what is written correctly and still not meant: results that are thrown away, functions that nothing calls.

pub(crate) mod habits;

use std::collections::{BTreeMap, BTreeSet};

use rhai::{AST, ASTFlags, ASTNode, Engine, Expr, FnCallExpr, Module, Position, ScriptFuncDef, Shared, Stmt};

use crate::language::error::{ScriptError, at};
use crate::language::nearest;
use crate::language::reference::{self, Entry, Kind};
use crate::policy::part::{Part, Stage};

/// Functions that every value has.
const OF_ANY: [&str; 6] = ["to_string", "to_debug", "type_of", "call", "is_shared", "curry"];

/// Every wrong name in a part, by position.
pub(crate) fn check(
    engine: &Engine,
    entries: &[Entry],
    part: &Part,
    parameters: &[String],
) -> Vec<ScriptError> {
    let mut checker = Checker::new(engine, entries, part, parameters);
    for stmt in part.script.statements() {
        checker.statement(stmt);
    }
    for function in part.script.iter_fn_def() {
        checker.hidden(function);
        checker.function(function);
    }
    checker.stray();
    checker.wrong.sort_by_key(|error| error.position);
    checker.wrong.dedup();
    checker.wrong
}

/// What is known of a value's type: a name of the reference, or nothing.
type Type = Option<String>;

struct Checker<'a> {
    entries: &'a [Entry],
    part: &'a Part,
    parameters: &'a [String],
    /// Functions of the engine with their numbers of arguments.
    functions: BTreeMap<String, BTreeSet<usize>>,
    /// Functions of the script with their numbers of arguments.
    written: BTreeMap<String, BTreeSet<usize>>,
    /// Fields that maps of this script have.
    keys: BTreeSet<String>,
    /// Variables that are given another value after their declaration.
    changing: BTreeSet<String>,
    variables: Vec<(String, Type)>,
    stage: Option<&'static str>,
    wrong: Vec<ScriptError>,
}

impl<'a> Checker<'a> {
    fn new(engine: &Engine, entries: &'a [Entry], part: &'a Part, parameters: &'a [String]) -> Self {
        let mut functions: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        let known = engine.collect_fn_metadata(
            None,
            |info| Some((info.metadata.name.to_string(), info.metadata.num_params)),
            true,
        );
        for (name, n_arguments) in known {
            functions.entry(name).or_default().insert(n_arguments);
        }
        let mut written: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        for function in part.script.iter_fn_def() {
            written.entry(function.name.to_string()).or_default().insert(function.params.len());
        }
        let (keys, changing) = keys_and_changing(&part.script);
        Checker {
            entries,
            part,
            parameters,
            functions,
            written,
            keys,
            changing,
            variables: Vec::new(),
            stage: None,
            wrong: Vec::new(),
        }
    }

    fn function(&mut self, function: &Shared<ScriptFuncDef>) {
        let stage = Stage::ALL
            .into_iter()
            .find_map(|s| Some((s, s.form(function.params.len())?)).filter(|_| s.name() == function.name));
        self.stage = stage.map(|(stage, _)| stage.name());
        for (index, name) in function.params.iter().enumerate() {
            let known = stage.and_then(|(stage, form)| match form[index] {
                "jobs" => Some("Jobs"),
                "job" if stage == Stage::Place => Some("Gang"),
                "job" => Some("Job"),
                "nodes" => Some("Nodes"),
                "view" => Some("View"),
                "now" => Some("float"),
                "problem" if stage == Stage::LevelModel => Some("LevelProblem"),
                "problem" if stage == Stage::LeaseModel => Some("LeaseProblem"),
                _ => None,
            });
            self.declare(name, known.map(str::to_owned));
        }
        self.statements(&body(function), true);
        self.variables.clear();
        self.stage = None;
    }

    fn declare(&mut self, name: &str, of: Type) {
        let of = of.filter(|_| !self.changing.contains(name));
        self.variables.push((name.to_owned(), of));
    }

    /// A list of statements; the value of the last is what the list comes to, if that is asked for.
    fn statements(&mut self, list: &[Stmt], is_value: bool) {
        for (index, stmt) in list.iter().enumerate() {
            self.statement_of(stmt, is_value && index + 1 == list.len());
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        self.statement_of(stmt, true);
    }

    /// A statement, and whether its value is used.
    fn statement_of(&mut self, stmt: &Stmt, is_value: bool) {
        match stmt {
            Stmt::Var(declared, ..) => {
                let of = self.expression(&declared.1);
                self.declare(&declared.0.name, of);
            }
            Stmt::Expr(expr) => {
                let of = self.expression(expr);
                if !is_value {
                    self.dropped(expr, of.as_deref());
                }
            }
            Stmt::FnCall(call, position) => {
                let of = self.call(call, *position);
                if !is_value {
                    self.dropped_call(call, *position, of.as_deref());
                }
            }
            Stmt::Assignment(assigned) => {
                self.expression(&assigned.1.lhs);
                self.expression(&assigned.1.rhs);
            }
            Stmt::Block(block) => self.scoped(block.statements(), is_value),
            Stmt::If(flow, _) => {
                self.condition(&flow.expr);
                self.scoped(flow.body.statements(), is_value);
                self.scoped(flow.branch.statements(), is_value);
            }
            Stmt::While(flow, _) | Stmt::Do(flow, ..) => {
                if !matches!(flow.expr, Expr::Unit(_)) {
                    self.condition(&flow.expr);
                }
                self.scoped(flow.body.statements(), false);
            }
            Stmt::For(parts, _) => {
                let (name, counter, flow) = &**parts;
                let over = self.expression(&flow.expr);
                let n_outer = self.variables.len();
                self.declare(&name.name, element(over));
                if let Some(counter) = counter {
                    self.declare(&counter.name, Some("int".to_owned()));
                }
                self.scoped(flow.body.statements(), false);
                self.variables.truncate(n_outer);
            }
            Stmt::TryCatch(flow, _) => {
                // What is thrown away here may have been tried only to see whether it fails.
                self.scoped(flow.body.statements(), true);
                let n_outer = self.variables.len();
                if let Expr::Variable(name, ..) = &flow.expr {
                    self.declare(&name.1, None);
                }
                self.scoped(flow.branch.statements(), is_value);
                self.variables.truncate(n_outer);
            }
            Stmt::Switch(parts, _) => {
                let of = self.expression(&parts.0);
                self.switched(&parts.0, of.as_deref(), &parts.1);
                for case in &parts.1.expressions {
                    self.expression(&case.lhs);
                    self.expression(&case.rhs);
                }
            }
            Stmt::BreakLoop(Some(expr), ..) | Stmt::Return(Some(expr), ..) => drop(self.expression(expr)),
            _ => {}
        }
    }

    fn scoped(&mut self, statements: &[Stmt], is_value: bool) {
        let n_outer = self.variables.len();
        self.statements(statements, is_value);
        self.variables.truncate(n_outer);
    }

    fn condition(&mut self, expr: &Expr) {
        let what = match self.expression(expr).as_deref() {
            Some("Column") => "job",
            Some("NodeColumn") => "node",
            _ => return,
        };
        let hint = format!(
            "it holds one number for each {what}: choose {what} by {what} with `where(condition, a, b)`"
        );
        let kind = if what == "job" { "Column" } else { "NodeColumn" };
        self.report(expr.position(), format!("a {kind} is not a condition"), Some(hint));
    }

    /// Looks at an expression; its type, where the text says it.
    fn expression(&mut self, expr: &Expr) -> Type {
        match expr {
            Expr::Variable(name, ..) => self
                .variables
                .iter()
                .rev()
                .find(|(known, _)| *known == name.1.as_str())
                .and_then(|(_, of)| of.clone()),
            Expr::Dot(parts, ..) => {
                let of = self.expression(&parts.lhs);
                self.link(of, &parts.rhs)
            }
            Expr::Index(parts, flags, _) => {
                let of = self.expression(&parts.lhs);
                self.index(of, &parts.rhs, *flags)
            }
            Expr::FnCall(call, position) => self.call(call, *position),
            Expr::And(parts, _) | Expr::Or(parts, _) => {
                parts.iter().for_each(|part| self.condition(part));
                Some("bool".to_owned())
            }
            Expr::Coalesce(parts, _) => {
                parts.iter().for_each(|part| drop(self.expression(part)));
                None
            }
            Expr::Array(items, _) => {
                items.iter().for_each(|item| drop(self.expression(item)));
                Some("Array".to_owned())
            }
            Expr::Map(entries, _) => {
                entries.0.iter().for_each(|(_, value)| drop(self.expression(value)));
                None
            }
            Expr::InterpolatedString(pieces, _) => {
                pieces.iter().for_each(|piece| drop(self.expression(piece)));
                Some("String".to_owned())
            }
            Expr::Stmt(block) => {
                self.scoped(block.statements(), true);
                None
            }
            Expr::StringConstant(..) => Some("String".to_owned()),
            Expr::FloatConstant(..) => Some("float".to_owned()),
            Expr::IntegerConstant(..) => Some("int".to_owned()),
            _ => None,
        }
    }

    /// What follows a dot.
    fn link(&mut self, of: Type, expr: &Expr) -> Type {
        match expr {
            Expr::Property(name, position) => self.field(of, &name.2, *position),
            Expr::MethodCall(call, position) => self.method(of, call, *position),
            Expr::Dot(parts, ..) => {
                let next = self.link(of, &parts.lhs);
                self.link(next, &parts.rhs)
            }
            Expr::Index(parts, flags, _) => {
                let next = self.link(of, &parts.lhs);
                self.index(next, &parts.rhs, *flags)
            }
            other => self.expression(other),
        }
    }

    /// What stands in brackets, and what follows it: Rhai keeps the rest of a chain to the right of the index.
    fn index(&mut self, of: Type, expr: &Expr, flags: ASTFlags) -> Type {
        match expr {
            Expr::Dot(parts, ..) if !flags.intersects(ASTFlags::BREAK) => {
                self.expression(&parts.lhs);
                self.link(element(of), &parts.rhs)
            }
            Expr::Index(parts, next, _) if !flags.intersects(ASTFlags::BREAK) => {
                self.expression(&parts.lhs);
                self.index(element(of), &parts.rhs, *next)
            }
            other => {
                self.expression(other);
                element(of)
            }
        }
    }

    fn field(&mut self, of: Type, name: &str, position: Position) -> Type {
        if let Some(owner) = of.as_deref().filter(|owner| self.is_class(owner)) {
            let known =
                self.entries.iter().find(|e| e.kind == Kind::Field && e.owner == owner && e.name() == name);
            return match known {
                Some(entry) => entry.signature.split_once(": ").map(|(_, of)| of.to_owned()),
                None => {
                    let hint = reference::field_hint(self.entries, owner, name);
                    self.report(position, format!("{owner} has no field `{name}`"), hint);
                    None
                }
            };
        }
        let fields = self.entries.iter().filter(|e| e.kind == Kind::Field).map(Entry::name);
        if of.is_none() && !self.keys.contains(name) && !fields.clone().any(|field| field == name) {
            let hint = nearest::hint(name, fields.chain(self.keys.iter().map(String::as_str)));
            self.report(position, format!("nothing has a field `{name}`"), hint);
        }
        None
    }

    fn method(&mut self, of: Type, call: &FnCallExpr, position: Position) -> Type {
        self.arguments(call);
        let name = call.name.as_str();
        if OF_ANY.contains(&name) || self.written.contains_key(name) || self.keys.contains(name) {
            return None;
        }
        let n_arguments = call.args.len() + 1;
        let owner = of.as_deref().filter(|owner| self.is_class(owner)).map(str::to_owned);
        if let Some(owner) = &owner {
            let mut known =
                reference::names_of(self.entries, owner).chain(reference::functions(self.entries));
            if !known.any(|known| known == name) {
                let known =
                    reference::names_of(self.entries, owner).chain(reference::functions(self.entries));
                let hint = reference::verb_hint(self.entries, owner, name, known);
                self.report(position, format!("{owner} has no verb `{name}`"), hint);
                return None;
            }
        }
        if let Some(hint) = owner.as_deref().and_then(|owner| reference::is_field(self.entries, owner, name))
        {
            self.report(position, format!("`{name}` is no verb"), Some(hint));
            return None;
        }
        self.known(name, n_arguments, position);
        let entry = self.entries.iter().find(|e| {
            matches!(e.kind, Kind::Method | Kind::Function)
                && e.name() == name
                && owner.as_ref().is_none_or(|owner| e.owner == owner || e.owner.is_empty())
        });
        owner.and(entry).and_then(returned)
    }

    fn call(&mut self, call: &FnCallExpr, position: Position) -> Type {
        let types = self.arguments(call);
        let name = call.name.as_str();
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            self.compared_twice(call, &types, position);
            self.compared_with_text(call, &types, position);
            return habits::of_operator(name, &types);
        }
        if name == "param" {
            self.parameter(call);
            return None;
        }
        if matches!(
            name,
            "Fn" | "print" | "debug" | "call" | "curry" | "is_def_var" | "is_def_fn" | "type_of"
        ) {
            return None;
        }
        match self.written.get(name) {
            Some(counts) if counts.contains(&call.args.len()) => None,
            Some(counts) if !self.functions.contains_key(name) => {
                let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
                let message =
                    format!("`{name}` takes {} arguments, not {}", counts.join(" or "), call.args.len());
                self.report(position, message, None);
                None
            }
            _ => {
                self.known(name, call.args.len(), position);
                let entry = self.entries.iter().find(|e| e.kind == Kind::Function && e.name() == name);
                let has = |wanted: &str| types.iter().flatten().any(|of| of == wanted);
                match entry.and_then(returned).as_deref() {
                    Some("Column") if has("NodeColumn") => Some("NodeColumn".to_owned()),
                    Some("Queue") if has("NodeColumn") => Some("Placement".to_owned()),
                    // Of columns of jobs or of nodes, as arguments of closures may be.
                    Some("Column" | "Queue") if !has("Column") => None,
                    other => other.map(str::to_owned),
                }
            }
        }
    }

    /// Reports a function that does not exist, or not with so many arguments.
    fn known(&mut self, name: &str, n_arguments: usize, position: Position) {
        match self.functions.get(name) {
            Some(counts) if counts.contains(&n_arguments) => {}
            Some(_) => {
                let forms: Vec<String> = self
                    .entries
                    .iter()
                    .filter(|e| e.name() == name)
                    .map(|e| format!("`{}`", e.signature))
                    .collect();
                let hint = (!forms.is_empty()).then(|| format!("it is {}", forms.join(" or ")));
                self.report(position, format!("`{name}` with the wrong number of arguments"), hint);
            }
            None => {
                let known = reference::functions(self.entries)
                    .chain(self.entries.iter().filter(|e| e.kind == Kind::Method).map(Entry::name))
                    .chain(self.written.keys().map(String::as_str));
                let hint = nearest::hint(name, known.filter(|known| !known.is_empty()));
                self.report(position, format!("no function `{name}`"), hint);
            }
        }
    }

    fn arguments(&mut self, call: &FnCallExpr) -> Vec<Type> {
        call.args.iter().map(|argument| self.expression(argument)).collect()
    }

    fn parameter(&mut self, call: &FnCallExpr) {
        let [Expr::StringConstant(name, position)] = call.args.as_slice() else { return };
        if !self.parameters.iter().any(|known| known == name.as_str()) {
            let hint = nearest::hint(name, self.parameters.iter().map(String::as_str));
            self.report(*position, format!("param `{name}` is not declared in this file"), hint);
        }
    }

    fn is_class(&self, name: &str) -> bool {
        self.entries.iter().any(|e| e.kind == Kind::Type && e.signature == name)
    }

    fn report(&mut self, position: Position, message: String, hint: Option<String>) {
        self.wrong.push(at(self.part, position, message, hint, self.stage));
    }
}

/// The statements of a function. Rhai does not export the type that holds them, so a tree of this function alone is walked.
fn body(function: &Shared<ScriptFuncDef>) -> Vec<Stmt> {
    let mut module = Module::new();
    module.set_script_fn(Shared::clone(function));
    let mut statements = Vec::new();
    AST::new(std::iter::empty::<Stmt>(), module).walk(&mut |path: &[ASTNode]| {
        if let [ASTNode::Stmt(stmt)] = path {
            statements.push((*stmt).clone());
        }
        true
    });
    statements
}

/// The type that a verb's signature says it returns.
fn returned(entry: &Entry) -> Type {
    entry.signature.split_once("-> ").map(|(_, of)| of.trim().to_owned()).filter(|of| of != "value")
}

/// The type of one element.
fn element(of: Type) -> Type {
    match of.as_deref() {
        Some("Jobs" | "Queue") => Some("Job".to_owned()),
        _ => None,
    }
}

/// Names that maps of a script may have as fields (keys of literals, texts, fields that are assigned to), and variables
/// that are assigned to.
fn keys_and_changing(script: &AST) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut keys, mut changing) = (BTreeSet::new(), BTreeSet::new());
    script.walk(&mut |path: &[ASTNode]| {
        match path.last() {
            Some(ASTNode::Expr(Expr::Map(entries, _))) => {
                keys.extend(entries.1.keys().map(ToString::to_string));
                keys.extend(entries.0.iter().map(|(key, _)| key.name.to_string()));
            }
            Some(ASTNode::Expr(Expr::DynamicConstant(value, _))) => {
                if let Some(map) = value.read_lock::<rhai::Map>() {
                    keys.extend(map.keys().map(ToString::to_string));
                }
            }
            Some(ASTNode::Expr(Expr::StringConstant(text, _))) => drop(keys.insert(text.to_string())),
            Some(ASTNode::Stmt(Stmt::Assignment(assigned))) => match &assigned.1.lhs {
                Expr::Variable(name, ..) => drop(changing.insert(name.1.to_string())),
                other => keys.extend(last_field(other)),
            },
            _ => {}
        }
        true
    });
    (keys, changing)
}

/// The field at the end of a chain.
fn last_field(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Property(name, _) => Some(name.2.to_string()),
        Expr::Dot(parts, ..) | Expr::Index(parts, ..) => last_field(&parts.rhs),
        _ => None,
    }
}
