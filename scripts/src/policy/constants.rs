//! Constants of a script's top level, so that its functions see them: `const WEIGHT = 3.0;`. Rhai itself shows functions only
//! what they are given, but puts constants that are known before into the text that it compiles.

use std::collections::BTreeSet;

use rhai::{AST, ASTNode, Engine, Map, Scope, Stmt};

/// The constants that are written at the beginning of a line, with their values. None where one of them cannot be computed: what is
/// wrong with it is said when the script is compiled and run.
pub(super) fn of(engine: &Engine, source: &str) -> Scope<'static> {
    let mut scope = Scope::new();
    let (mut text, mut names) = (String::new(), Vec::new());
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("const ").map(name_at_head).filter(|name| !name.is_empty()) else {
            continue;
        };
        names.push(name);
        let mut last = line;
        text.push_str(last);
        while !without_comment(last).ends_with(';') {
            let Some(next) = lines.next() else { break };
            last = next;
            text.push('\n');
            text.push_str(last);
        }
        text.push('\n');
    }
    if names.is_empty() {
        return scope;
    }
    let entries: Vec<String> = names.iter().map(|name| format!("{name}: {name}")).collect();
    text.push_str(&format!("#{{ {} }}", entries.join(", ")));
    for (name, value) in engine.eval::<Map>(&text).unwrap_or_default() {
        scope.push_constant_dynamic(name, value);
    }
    scope
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
        if let Some(ASTNode::Stmt(Stmt::For(parts, _))) = path.last() {
            variables.insert(parts.0.name.to_string());
            variables.extend(parts.1.iter().map(|counter| counter.name.to_string()));
        }
        true
    });
    constants.iter().map(|(name, ..)| name.to_owned()).find(|name| variables.contains(name))
}

fn name_at_head(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

fn without_comment(line: &str) -> &str {
    line.split("//").next().unwrap_or(line).trim_end()
}
