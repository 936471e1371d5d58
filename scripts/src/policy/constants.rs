//! Constants of a script's top level, so that its functions see them: `const WEIGHT = 3.0;`. Rhai itself shows functions only
//! what they are given, but puts constants that are known before into the text that it compiles.

use std::collections::BTreeSet;

use rhai::{AST, ASTFlags, ASTNode, Engine, Expr, Module, Scope, Stmt};

use crate::language::engine::reader;

/// The constants of the top level with their values. None where the text cannot be read or one of them cannot be computed: what
/// is wrong is said when the script is compiled and run.
pub(super) fn of(engine: &Engine, source: &str) -> Scope<'static> {
    if !source.contains("const") {
        return Scope::new();
    }
    let Ok(script) = reader().compile(source) else { return Scope::new() };
    let is_constant =
        |stmt: &&Stmt| matches!(stmt, Stmt::Var(_, flags, _) if flags.intersects(ASTFlags::CONSTANT));
    let constants: Vec<Stmt> = script.statements().iter().filter(is_constant).cloned().collect();
    let mut scope = Scope::new();
    match engine.run_ast_with_scope(&mut scope, &AST::new(constants, Module::new())) {
        Ok(()) => scope,
        Err(_) => Scope::new(),
    }
}

/// A constant whose name a function uses for something else: Rhai would take the constant for it.
pub(super) fn shadowed(constants: &Scope<'_>, script: &AST) -> Option<String> {
    if constants.is_empty() {
        return None;
    }
    let mut variables: BTreeSet<String> = BTreeSet::new();
    for function in script.iter_fn_def() {
        variables.extend(function.params.iter().map(ToString::to_string));
    }
    script.walk(&mut |path: &[ASTNode]| {
        match path.last() {
            Some(ASTNode::Stmt(Stmt::For(parts, _))) => {
                variables.insert(parts.0.name.to_string());
                variables.extend(parts.1.iter().map(|counter| counter.name.to_string()));
            }
            Some(ASTNode::Stmt(Stmt::TryCatch(flow, _))) => {
                if let Expr::Variable(name, ..) = &flow.expr {
                    variables.insert(name.1.to_string());
                }
            }
            _ => {}
        }
        true
    });
    constants.iter().map(|(name, ..)| name.to_owned()).find(|name| variables.contains(name))
}
