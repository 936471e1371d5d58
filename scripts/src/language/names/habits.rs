//! What is a correct sentence of the language and still not what its author means: results that are thrown away, functions that
//! hide verbs, comparisons of comparisons, a `switch` on a float, a promise to be steady that is not kept.

use rhai::{ASTNode, Expr, FnCallExpr, Position, ScriptFuncDef, Shared};

use super::{Checker, Type, returned};
use crate::language::reference::Kind;
use crate::policy::part::Stage;

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
        if call.args.iter().zip(types).any(|(argument, of)| is_comparison(argument) && is_column(of)) {
            let hint = "join two comparisons: `(1 < jobs.gpus) & (jobs.gpus < 8)`".to_owned();
            self.report(position, "a comparison of what a comparison gives, 0 or 1".to_owned(), Some(hint));
        }
    }

    /// Reports a `switch` on a float: its cases are whole numbers, none of which it is.
    pub(super) fn switched(&mut self, expr: &Expr, of: Option<&str>) {
        let is_quotient = matches!(expr, Expr::FnCall(call, _) if call.name == "/");
        if is_quotient || of == Some("float") {
            let hint = "4.0 is not the case `4`: write `(…).to_int()`; `/` always gives a float".to_owned();
            self.report(expr.position(), "a `switch` on a float finds no case".to_owned(), Some(hint));
        }
        if !is_quotient && matches!(of, Some("Column" | "NodeColumn")) {
            let hint = "choose with `where(condition, a, b)`".to_owned();
            self.report(expr.position(), "a `switch` on a column finds no case".to_owned(), Some(hint));
        }
    }

    /// Reports what changes with time in a script that promises that time alone changes nothing.
    pub(super) fn unsteady(&mut self) {
        let mut found = Vec::new();
        self.part.script.walk(&mut |path: &[ASTNode]| {
            match path.last() {
                Some(ASTNode::Expr(Expr::Property(name, position)))
                    if CHANGING.contains(&name.2.as_str()) =>
                {
                    found.push((name.2.to_string(), *position));
                }
                Some(ASTNode::Expr(Expr::Variable(name, _, position))) if name.1 == "now" => {
                    found.push(("now".to_owned(), *position));
                }
                _ => {}
            }
            true
        });
        for (name, position) in found {
            let message = format!(
                "`steady()` promises that time alone changes nothing, and `{name}` changes with time"
            );
            let hint = "rounds in which nothing else changed are skipped: leave `steady();` out".to_owned();
            self.report(position, message, Some(hint));
        }
    }
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
