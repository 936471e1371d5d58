//! Promises: whether a policy's admission promises deadlines by a plan, and whether the rest of it follows one.

use rhai::{ASTNode, Expr, Stmt};

use crate::policy::ScriptPolicy;
use crate::policy::part::{Part, Stage};

/// Verbs with which a script plans ahead.
const PLANNING: [&str; 2] = ["timeline", "leases"];

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

    /// What can be said against the combination of parts before it runs.
    pub fn warnings(&self) -> Vec<String> {
        let allocates =
            |part: &&Part| part.stages.iter().any(|s| matches!(s, Stage::Allocate | Stage::Decide));
        let allocation = self.parts.iter().find(allocates);
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
    let mut plans = false;
    part.script.walk(&mut |path: &[ASTNode<'_>]| {
        let call = match path.last() {
            Some(ASTNode::Expr(Expr::FnCall(call, _) | Expr::MethodCall(call, _))) => Some(call),
            Some(ASTNode::Stmt(Stmt::FnCall(call, _))) => Some(call),
            _ => None,
        };
        plans |= call.is_some_and(|call| PLANNING.contains(&call.name.as_str()));
        !plans
    });
    plans
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
