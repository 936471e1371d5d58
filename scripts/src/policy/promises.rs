//! What can be said against a policy before it runs: its admission promises deadlines by a plan and the rest follows none, one
//! part says what no other asks for, a script of one's own has names or habits that `rota policy check` refuses.

use rhai::{ASTNode, Expr, Stmt};

use crate::commands::check;
use crate::language::error::ScriptError;
use crate::policy::part::{Part, Stage};
use crate::policy::{ScriptPolicy, shipped};

/// Verbs with which a script plans ahead.
const PLANNING: [&str; 2] = ["timeline", "leases"];
/// Verbs that ask the placement of the policy.
const PLACING: [&str; 2] = ["fill", "find"];

impl ScriptPolicy {
    /// The part that admits jobs by a plan, if one does: what it lets in with a deadline was promised to meet it.
    pub fn promises_by(&self) -> Option<&str> {
        let admission = self.parts.iter().find(|part| part.stages.contains(&Stage::Admit))?;
        plans_ahead(admission).then_some(admission.name.as_str())
    }

    /// The names of the parts besides admission, as they keep or break its promises.
    pub fn kept_by(&self) -> String {
        let others = self.parts.iter().filter(|part| part.stages != [Stage::Admit]);
        let names: Vec<&str> = others.map(|part| part.name.as_str()).collect();
        if names.is_empty() { "the default order and allocation".to_owned() } else { names.join("+") }
    }

    /// What can be said against the policy before it runs.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.broken_promises();
        warnings.extend(self.unasked());
        warnings.extend(self.suspicious());
        warnings
    }

    /// A stage of one part whose answer the part that allocates does not use.
    fn unasked(&self) -> Vec<String> {
        let Some(allocation) = self.allocation() else { return Vec::new() };
        let of_stage = |stage: Stage| self.parts.iter().find(|part| part.stages.contains(&stage));
        let mut warnings = Vec::new();
        // Admission is asked before the order.
        let mut later = self.parts.iter().filter(|part| part.stages != [Stage::Admit]);
        let is_looked_at = later.any(|part| reads(part, "queue"));
        if let Some(order) = of_stage(Stage::Order).filter(|_| !is_looked_at) {
            warnings.push(format!(
                "{} orders the jobs, and {} does not look at `view.queue`: the order has no effect",
                order.name, allocation.name
            ));
        }
        let asks_for_places = calls(allocation, &PLACING);
        if let Some(place) = of_stage(Stage::Place).filter(|_| !asks_for_places) {
            warnings.push(format!(
                "{} says where jobs go, and {} places them by itself: the placement has no effect",
                place.name, allocation.name
            ));
        }
        warnings
    }

    /// What is wrong with scripts that are not shipped.
    fn suspicious(&self) -> Vec<String> {
        let is_own = |part: &Part| !shipped::ALL.iter().any(|script| script.file == part.file);
        let wrong = check::wrong_names_of(self, is_own);
        let said = |error: ScriptError| {
            let at = error.position.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
            let hint = error.hint.map_or_else(String::new, |hint| format!(" ({hint})"));
            format!("{}{at}: {}{hint}", error.file, error.message)
        };
        wrong.into_iter().map(said).collect()
    }

    fn allocation(&self) -> Option<&Part> {
        let allocates =
            |part: &&Part| part.stages.iter().any(|s| matches!(s, Stage::Allocate | Stage::Decide));
        self.parts.iter().find(allocates)
    }

    fn broken_promises(&self) -> Vec<String> {
        let allocation = self.allocation();
        match self.promises_by() {
            Some(admission) if !allocation.is_some_and(plans_ahead) => {
                let other = allocation.map_or("the default allocation", |part| &part.name);
                vec![format!(
                    "{admission} promises deadlines by a plan, and {other} follows none: promises may be broken"
                )]
            }
            _ => Vec::new(),
        }
    }
}

/// Whether a script calls a verb that plans ahead, wherever that may be.
fn plans_ahead(part: &Part) -> bool {
    calls(part, &PLANNING)
}

/// Whether a script calls one of these verbs.
fn calls(part: &Part, verbs: &[&str]) -> bool {
    has(part, |node| {
        let call = match node {
            ASTNode::Expr(Expr::FnCall(call, _) | Expr::MethodCall(call, _)) => call,
            ASTNode::Stmt(Stmt::FnCall(call, _)) => call,
            _ => return false,
        };
        verbs.contains(&call.name.as_str())
    })
}

/// Whether a script reads a field of this name.
fn reads(part: &Part, field: &str) -> bool {
    has(part, |node| matches!(node, ASTNode::Expr(Expr::Property(name, _)) if name.2 == field))
}

fn has(part: &Part, is_meant: impl Fn(&ASTNode<'_>) -> bool) -> bool {
    let mut found = false;
    part.script.walk(&mut |path: &[ASTNode<'_>]| {
        found |= path.last().is_some_and(&is_meant);
        !found
    });
    found
}

#[cfg(test)]
mod tests {
    use crate::{Limits, ScriptPolicy};

    #[test]
    fn admission_by_plan_is_warned_of_where_nobody_follows_one() {
        let warned = |name: &str| {
            let policy =
                ScriptPolicy::load(name, Limits::default()).unwrap_or_else(|error| panic!("{error}"));
            policy.warnings().join("; ")
        };
        assert_eq!(
            warned("elasticflow-admission+las+tune"),
            "elasticflow-admission promises deadlines by a plan, and tune follows none: promises may be broken"
        );
        assert!(warned("chronus-admission+srtf").contains("the default allocation follows none"));
        assert!(warned("elasticflow:admit+las+tune").starts_with("elasticflow:admit promises"));
        for sound in
            ["elasticflow", "elasticflow-admission", "edf-admission", "edf-admission+edf", "quota+las", "las"]
        {
            assert_eq!(warned(sound), "", "{sound}");
        }
    }
}
