//! What is a correct sentence of the language and still not what its author means: results that are thrown away, functions that
//! hide verbs or that nothing calls, comparisons of comparisons or of a number with a text, a `switch` on a float.

use std::collections::BTreeSet;

use rhai::{ASTNode, Expr, FnCallExpr, Position, ScriptFuncDef, Shared, Stmt, SwitchCasesCollection};

use super::{Checker, Type, returned};
use crate::language::engine::reader;
use crate::language::nearest;
use crate::language::reference::Kind;
use crate::policy::part::{Part, Stage};
use crate::values::label;

/// Types of which verbs return new values and change nothing.
const VALUES: [&str; 14] = [
    "Column",
    "Texts",
    "Jobs",
    "Queue",
    "Share",
    "Timeline",
    "Fill",
    "Placement",
    "NodeColumn",
    "Verdict",
    "Matrix",
    "Constraint",
    "float",
    "int",
];

/// Verbs whose result may be thrown away, because they also do something: those of models, and those that arrays have too.
const DOERS: [&str; 9] = ["binary", "integer", "real", "remove", "set", "push", "drain", "retain", "splice"];

/// Fields that change while nothing else does.
const CHANGING: [&str; 7] =
    ["now", "remaining", "attained", "service", "done", "next_deadline", "is_protected"];

/// Whole numbers among which the cases of a `switch` are looked for.
const CASES: std::ops::RangeInclusive<i64> = 0..=256;

const COMPARISONS: [&str; 6] = ["<", "<=", ">", ">=", "==", "!="];

impl Checker<'_> {
    /// Reports a value that nobody uses.
    pub(super) fn dropped(&mut self, expr: &Expr, of: Option<&str>) {
        match expr {
            Expr::FnCall(call, position) => self.dropped_call(call, *position, of),
            Expr::Dot(parts, ..) => self.dropped(&parts.rhs, of),
            Expr::MethodCall(call, position) => {
                let name = call.name.as_str();
                let is_told = of.is_some_and(|of| VALUES.contains(&of));
                if DOERS.contains(&name)
                    || self.written.contains_key(name)
                    || !(is_told || self.is_pure(name))
                {
                    return;
                }
                let message = format!("the result of `{name}` is not used");
                let of = of.unwrap_or("value");
                let hint = format!(
                    "`{name}` changes nothing: it returns a new {of}, as in `let after = before.{name}(…);`"
                );
                self.report(*position, message, Some(hint));
            }
            _ => {}
        }
    }

    pub(super) fn dropped_call(&mut self, call: &FnCallExpr, position: Position, of: Option<&str>) {
        let name = call.name.as_str();
        let is_operator = !name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let is_function = || {
            let known = |e: &&crate::language::reference::Entry| e.kind == Kind::Function && e.name() == name;
            self.entries.iter().find(known).and_then(returned).is_some_and(|of| VALUES.contains(&of.as_str()))
        };
        if self.written.contains_key(name)
            || !(is_operator || of.is_some_and(|of| VALUES.contains(&of)) || is_function())
        {
            return;
        }
        let hint = match COMPARISONS.contains(&name) {
            true => "a constraint is added to a model by `m.add(…)`".to_owned(),
            false => "give it to a variable or a verb, or return it".to_owned(),
        };
        self.report(position, format!("the result of `{name}` is not used"), Some(hint));
    }

    /// Whether all verbs of this name return a new value and change nothing.
    fn is_pure(&self, name: &str) -> bool {
        let mut verbs = self.entries.iter().filter(|e| e.kind == Kind::Method && e.name() == name).peekable();
        let returns_value = |of: Type| of.is_some_and(|of| VALUES.contains(&of.as_str()));
        verbs.peek().is_some() && verbs.all(|verb| returns_value(returned(verb)))
    }

    /// Reports a function of the script that takes the place of one that is there already.
    pub(super) fn hidden(&mut self, function: &Shared<ScriptFuncDef>) {
        let (name, n_arguments) = (function.name.as_str(), function.params.len());
        let is_stage = Stage::ALL.into_iter().any(|stage| stage.name() == name);
        let hides = self.functions.get(name).is_some_and(|counts| counts.contains(&n_arguments));
        if is_stage || name.starts_with("anon$") || !hides {
            return;
        }
        // A verb of a type is missed only where it is called.
        let is_function = self.entries.iter().any(|e| e.kind == Kind::Function && e.name() == name);
        if !is_function && !self.calls_as_verb(name, n_arguments) {
            return;
        }
        let position = self.part.position_of_text(&format!("fn {name}("));
        let what =
            self.entries.iter().find(|e| e.name() == name && matches!(e.kind, Kind::Function | Kind::Method));
        let hint = match what {
            Some(entry) => format!("`{}` could no longer be called: give it another name", entry.signature),
            None => "that of Rhai could no longer be called: give it another name".to_owned(),
        };
        self.report(
            position,
            format!("there is a `{name}` with {n_arguments} arguments already"),
            Some(hint),
        );
    }

    /// Reports `1 < column < 8`: a comparison gives 0 or 1, and comparing that again says nothing.
    pub(super) fn compared_twice(&mut self, call: &FnCallExpr, types: &[Type], position: Position) {
        if !matches!(call.name.as_str(), "<" | "<=" | ">" | ">=") {
            return;
        }
        let is_column = |of: &Type| matches!(of.as_deref(), Some("Column" | "NodeColumn" | "Matrix"));
        let is_comparison = |expr: &Expr| matches!(expr, Expr::FnCall(inner, _) if COMPARISONS.contains(&inner.name.as_str()));
        if call.args.iter().all(is_comparison) {
            return;
        }
        if call.args.iter().zip(types).any(|(argument, of)| is_comparison(argument) && is_column(of)) {
            let hint = "join two comparisons: `(1 < jobs.gpus) & (jobs.gpus < 8)`".to_owned();
            self.report(position, "a comparison of what a comparison gives, 0 or 1".to_owned(), Some(hint));
        }
    }

    fn calls_as_verb(&self, name: &str, n_arguments: usize) -> bool {
        let mut calls = false;
        self.part.script.walk(&mut |path: &[ASTNode]| {
            if let Some(ASTNode::Expr(Expr::MethodCall(call, _))) = path.last() {
                calls |= call.name == name && call.args.len() + 1 == n_arguments;
            }
            !calls
        });
        calls
    }

    /// Reports functions that look like stages, by their name or by their arguments, and that nothing calls.
    pub(super) fn stray(&mut self) {
        let used = used_names(self.part);
        for function in self.part.script.iter_functions() {
            let is_stage = Stage::ALL.into_iter().any(|stage| stage.name() == function.name);
            if is_stage || function.name.starts_with("anon$") || used.contains(function.name) {
                continue;
            }
            let has_its_arguments = Stage::ALL
                .into_iter()
                .any(|stage| stage.form(function.params.len()) == Some(function.params.as_slice()));
            let close = nearest::hint(function.name, Stage::ALL.map(Stage::name));
            if close.is_none() && !has_its_arguments {
                continue;
            }
            let hint =
                close.unwrap_or_else(|| format!("stages are {}", Stage::ALL.map(Stage::name).join(", ")));
            let position = self.part.position_of_text(&format!("fn {}(", function.name));
            self.report(
                position,
                format!("`{}` is no stage, and nothing calls it", function.name),
                Some(hint),
            );
        }
    }

    /// Reports a comparison of a number with a text, which fails where it is run.
    pub(super) fn compared_with_text(&mut self, call: &FnCallExpr, types: &[Type], position: Position) {
        let [Some(a), Some(b)] = types else { return };
        let is_number = |of: &str| matches!(of, "int" | "float" | "Column");
        let is_text = |of: &str| matches!(of, "String" | "Texts");
        if COMPARISONS.contains(&call.name.as_str())
            && (is_number(a) && is_text(b) || is_text(a) && is_number(b))
        {
            let (a, b) = (label(a), label(b));
            let hint = "a text is written in quotes, `== \"3\"`; `parse_float(text)` makes a number of one"
                .to_owned();
            self.report(position, format!("`{}` of {a} and {b}", call.name), Some(hint));
        }
    }

    /// Reports a `switch` that finds no case: of a float among whole numbers, or of a column.
    pub(super) fn switched(&mut self, expr: &Expr, of: Option<&str>, cases: &SwitchCasesCollection) {
        let is_quotient = matches!(expr, Expr::FnCall(call, _) if call.name == "/");
        if (is_quotient || of == Some("float")) && has_whole_number(cases) {
            let hint = "4.0 is not the case `4`: write `(…).to_int()`; `/` always gives a float".to_owned();
            self.report(
                expr.position(),
                "a `switch` on a float does not find a whole number".to_owned(),
                Some(hint),
            );
        }
        if !is_quotient && matches!(of, Some("Column" | "NodeColumn")) {
            let hint = "choose with `where(condition, a, b)`".to_owned();
            self.report(expr.position(), "a `switch` on a column finds no case".to_owned(), Some(hint));
        }
    }
}

/// Names that a script calls, hands on or has as texts.
fn used_names(part: &Part) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    part.script.walk(&mut |path: &[ASTNode]| {
        match path.last() {
            Some(ASTNode::Expr(Expr::FnCall(call, _) | Expr::MethodCall(call, _)))
            | Some(ASTNode::Stmt(Stmt::FnCall(call, _))) => drop(used.insert(call.name.to_string())),
            Some(ASTNode::Expr(Expr::Variable(name, ..))) => drop(used.insert(name.1.to_string())),
            Some(ASTNode::Expr(Expr::StringConstant(text, _))) => drop(used.insert(text.to_string())),
            Some(ASTNode::Expr(Expr::DynamicConstant(value, _))) => {
                if let Some(function) = value.read_lock::<rhai::FnPtr>() {
                    used.insert(function.fn_name().to_owned());
                }
            }
            _ => {}
        }
        true
    });
    used
}

/// Whether one of the cases is a whole number. Cases are known by hashes alone, which are compared with those of small numbers.
fn has_whole_number(cases: &SwitchCasesCollection) -> bool {
    let every: Vec<String> = CASES.map(|case| format!("{case} => 0")).collect();
    let Ok(script) = reader().compile(format!("let x = 0; switch x {{ {} }}", every.join(", "))) else {
        return false;
    };
    let is_among = |stmt: &Stmt| match stmt {
        Stmt::Switch(parts, _) => parts.1.cases.keys().any(|hash| cases.cases.contains_key(hash)),
        _ => false,
    };
    script.statements().iter().any(is_among)
}

/// The first thing in a script that changes with time, and its line.
pub(crate) fn changing(part: &Part) -> Option<(String, Position)> {
    let mut found = None;
    part.script.walk(&mut |path: &[ASTNode]| {
        match path.last() {
            Some(ASTNode::Expr(Expr::Property(name, position))) if CHANGING.contains(&name.2.as_str()) => {
                found.get_or_insert((name.2.to_string(), *position));
            }
            Some(ASTNode::Expr(Expr::Variable(name, _, position))) if name.1 == "now" => {
                found.get_or_insert(("now".to_owned(), *position));
            }
            _ => {}
        }
        found.is_none()
    });
    found
}

/// The type of what an operator gives.
pub(super) fn of_operator(name: &str, types: &[Type]) -> Type {
    let is_any = |wanted: &[&str]| types.iter().flatten().find(|of| wanted.contains(&of.as_str())).cloned();
    if let Some(of) = is_any(&["Column", "NodeColumn"]) {
        return Some(of);
    }
    let is_number = |of: &Type| matches!(of.as_deref(), Some("int" | "float"));
    if !types.iter().all(is_number) {
        return None;
    }
    match name {
        "/" => Some("float".to_owned()),
        "+" | "-" | "*" | "**" | "%" => is_any(&["float"]).or_else(|| is_any(&["int"])),
        _ => None,
    }
}
