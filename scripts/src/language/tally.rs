//! Where a watched run spends its operations and its time: by line, by verb and by stack of functions.
//!
//! Rhai's debugger reports a step before each statement and expression, never after a call. So what is spent between
//! two steps belongs to the outermost call that the first step was in and the second is not, and without one to the
//! line of the first step. Which step is in which call is read from the syntax tree.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use rhai::{AST, ASTNode, Expr, FnCallExpr, Module, Position, Stmt};

/// What was spent somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Operations, as limits count them.
    pub operations: u64,
    /// Time, most of which goes to watching where operations are cheap.
    pub time: Duration,
    /// Steps of the interpreter that began there.
    pub steps: u64,
}

impl Spent {
    /// Adds what was spent elsewhere.
    pub fn add(&mut self, other: &Spent) {
        self.operations += other.operations;
        self.time += other.time;
        self.steps += other.steps;
    }
}

/// A line of a script, and the verb called there; the verb is empty for the rest of the line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeLine {
    /// The script's file.
    pub file: String,
    /// The number of the line, from 1.
    pub line: usize,
    /// The name of the verb or function.
    pub verb: String,
}

/// What is known of a position in a script.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Calls whose arguments it is part of, outermost first, and the call that it is itself.
    calls: Vec<usize>,
}

/// A call written in a script.
#[derive(Clone, Debug)]
struct Call {
    name: String,
    line: usize,
}

/// The step under way.
#[derive(Debug)]
struct Step {
    file: String,
    line: usize,
    calls: Vec<usize>,
    stack: Vec<String>,
    operations: u64,
    since: Instant,
}

/// What a watched run has spent so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    nodes: HashMap<String, HashMap<(usize, usize), Node>>,
    calls: Vec<Call>,
    places: BTreeMap<CodeLine, Spent>,
    stacks: BTreeMap<Vec<String>, Spent>,
    /// Lines that steps began in.
    lines: BTreeSet<(String, usize)>,
    step: Option<Step>,
}

impl Tally {
    /// Reads which positions of a script are in which calls.
    pub(crate) fn learn(&mut self, file: &str, script: &AST) {
        let mut nodes: HashMap<(usize, usize), Node> = HashMap::new();
        let mut numbers: HashMap<(usize, usize, String), usize> = HashMap::new();
        let calls = &mut self.calls;
        script.walk(&mut |path: &[ASTNode]| {
            let mut around = Vec::new();
            for (name, position) in path.iter().filter_map(call) {
                let (line, column) = place(position);
                let number = *numbers.entry((line, column, name.to_owned())).or_insert_with(|| {
                    calls.push(Call { name: name.to_owned(), line });
                    calls.len() - 1
                });
                if !around.contains(&number) {
                    around.push(number);
                }
            }
            let position = path.last().map_or(Position::NONE, |node| position_of(node));
            let known = nodes.entry(place(position)).or_default();
            if around.len() > known.calls.len() {
                known.calls = around;
            }
            true
        });
        self.nodes.insert(file.to_owned(), nodes);
        // The top level has run when a script is there to be asked.
        AST::new(script.statements().to_vec(), Module::new()).walk(&mut |path: &[ASTNode]| {
            let (line, _) = path.last().map_or((0, 0), |node| place(position_of(node)));
            self.lines.insert((file.to_owned(), line));
            true
        });
    }

    /// A step begins: what was spent since the step before is booked.
    pub(crate) fn step(&mut self, file: &str, position: Position, stack: Vec<String>, operations: u64) {
        let known = self.nodes.get(file).and_then(|nodes| nodes.get(&place(position)));
        let calls = known.map(|node| node.calls.clone()).unwrap_or_default();
        self.close(&calls, operations);
        let (line, _) = place(position);
        self.lines.insert((file.to_owned(), line));
        self.step =
            Some(Step { file: file.to_owned(), line, calls, stack, operations, since: Instant::now() });
    }

    /// The run is over.
    pub(crate) fn end(&mut self, operations: u64) {
        self.close(&[], operations);
    }

    fn close(&mut self, next: &[usize], operations: u64) {
        let Some(step) = self.step.take() else { return };
        let spent = Spent {
            operations: operations.saturating_sub(step.operations),
            time: step.since.elapsed(),
            steps: 1,
        };
        let ended =
            step.calls.iter().find(|call| !next.contains(call)).and_then(|call| self.calls.get(*call));
        let (line, verb) = ended.map_or((step.line, String::new()), |call| (call.line, call.name.clone()));
        let shown = if verb.is_empty() { format!("line {line}") } else { format!("line {line} {verb}") };
        let mut stack = step.stack;
        stack.push(shown);
        self.stacks.entry(stack).or_default().add(&spent);
        self.places.entry(CodeLine { file: step.file, line, verb }).or_default().add(&spent);
    }

    /// The file of the last step.
    pub(crate) fn file(&self) -> &str {
        self.step.as_ref().map_or("", |step| &step.file)
    }

    /// Spent by line and verb.
    pub(crate) fn places(&self) -> &BTreeMap<CodeLine, Spent> {
        &self.places
    }

    /// Spent by stack, outermost function first; the last element is the line.
    pub(crate) fn stacks(&self) -> &BTreeMap<Vec<String>, Spent> {
        &self.stacks
    }

    /// Lines of a file that hold code and that no step came to.
    pub(crate) fn missed(&self, file: &str) -> Vec<usize> {
        let Some(nodes) = self.nodes.get(file) else { return Vec::new() };
        let mut lines: Vec<usize> = nodes.keys().map(|(line, _)| *line).filter(|line| *line > 0).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.retain(|line| !self.lines.contains(&(file.to_owned(), *line)));
        lines
    }

    /// One sentence that says where the operations went, of the files of a policy.
    pub(crate) fn sentence(&self) -> Option<String> {
        let total: u64 = self.places.values().map(|spent| spent.operations).sum();
        let mut largest: Vec<(&CodeLine, u64)> =
            self.places.iter().map(|(place, spent)| (place, spent.operations)).collect();
        largest.sort_by_key(|(place, operations)| (std::cmp::Reverse(*operations), (*place).clone()));
        let is_one_file =
            self.places.keys().all(|place| Some(&place.file) == largest.first().map(|(p, _)| &p.file));
        let shown = largest.iter().take(3).filter(|(_, operations)| operations * 20 >= total && total > 0);
        let shown: Vec<String> = shown
            .map(|(place, operations)| {
                let file = if is_one_file { String::new() } else { format!("{}, ", place.file) };
                let verb = if place.verb.is_empty() { String::new() } else { format!(" (`{}`)", place.verb) };
                format!("{} % to {file}line {}{verb}", operations * 100 / total, place.line)
            })
            .collect();
        (!shown.is_empty()).then(|| format!("of its first {total} operations went {}", shown.join(", ")))
    }
}

fn place(position: Position) -> (usize, usize) {
    (position.line().unwrap_or(0), position.position().unwrap_or(0))
}

fn position_of(node: &ASTNode) -> Position {
    match node {
        ASTNode::Stmt(stmt) => stmt.position(),
        ASTNode::Expr(expr) => expr.position(),
        _ => Position::NONE,
    }
}

/// The name and position of a call of something that has a name.
fn call<'a>(node: &'a ASTNode<'a>) -> Option<(&'a str, Position)> {
    let (call, position): (&FnCallExpr, Position) = match node {
        ASTNode::Expr(Expr::FnCall(call, position) | Expr::MethodCall(call, position))
        | ASTNode::Stmt(Stmt::FnCall(call, position)) => (call, *position),
        _ => return None,
    };
    let is_name = call.name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    is_name.then(|| (call.name.as_str(), position))
}
