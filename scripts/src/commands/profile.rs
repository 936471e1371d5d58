//! `profile`: where a policy's decisions spend their operations and their time, by line, by verb and by stack.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rota_core::policy::Policy as _;

use super::error::TryError;
use crate::commands::sample::{Size, snapshot};
use crate::language::limits::Limits;
pub use crate::language::tally::{CodeLine, Spent};
use crate::language::trace::Trace;
use crate::policy::ScriptPolicy;

/// Decisions that are watched.
const N_DECISIONS: u32 = 3;
/// Operations that a watched decision may use: slow scripts are what this is for.
const MAX_OPERATIONS: u64 = 300_000_000;
/// Rows of a table.
const MAX_ROWS: usize = 15;
/// The widest bar of the drawing of stacks.
const BAR: usize = 40;

/// What the decisions of a policy spent, and where.
#[derive(Debug)]
pub struct Profile {
    /// The policy, with all its parts.
    pub name: String,
    /// How large the instant was.
    pub size: Size,
    /// Operations of one decision.
    pub operations: u64,
    /// How long one decision took while it was not watched.
    pub plain: Duration,
    /// By line and verb.
    pub places: Vec<(CodeLine, Spent)>,
    /// By stack, outermost function first; the last element is the line and the verb.
    pub stacks: Vec<(Vec<String>, Spent)>,
    sources: BTreeMap<String, Vec<String>>,
}

/// Watches a policy decide an instant of a size.
pub fn profile(name: &str, size: Size) -> Result<Profile, TryError> {
    let limits = Limits { operations: MAX_OPERATIONS, ..Limits::default() };
    let mut policy = ScriptPolicy::load(name, limits.clone())?;
    let instant = snapshot(size);
    // The first decision also sorts from nothing and fills memory: what is watched are the ones after it.
    policy.decide(&instant)?;
    let start = Instant::now();
    policy.decide(&instant)?;
    let plain = start.elapsed();
    let trace = Arc::new(Trace::default());
    let mut copy = policy.watched_copy(limits, &trace)?;
    for _ in 0..N_DECISIONS {
        copy.decide(&instant)?;
        trace.watched().tally.end(copy.operations());
    }
    let watched = trace.watched();
    let lines = |text: &str| text.lines().map(str::to_owned).collect();
    Ok(Profile {
        name: name.to_owned(),
        size,
        operations: copy.operations(),
        plain,
        places: watched.tally.places().iter().map(|(place, spent)| (place.clone(), *spent)).collect(),
        stacks: watched.tally.stacks().iter().map(|(stack, spent)| (stack.clone(), *spent)).collect(),
        sources: policy.parts.iter().map(|part| (part.file.clone(), lines(&part.source))).collect(),
    })
}

impl Profile {
    /// Tables by line and by verb, and the stacks as bars.
    pub fn text(&self) -> String {
        let (nodes, jobs) = (self.size.n_nodes, self.size.n_old + self.size.n_new);
        let mut text = format!(
            "{}: {nodes} nodes, {jobs} jobs, {} operations and {:.1?} for one decision\n\
             Shares are of {N_DECISIONS} watched decisions; watching slows down steps of the script, not verbs.\n\n",
            self.name, self.operations, self.plain
        );
        let mut lines: BTreeMap<(String, usize), Spent> = BTreeMap::new();
        let mut verbs: BTreeMap<String, Spent> = BTreeMap::new();
        for (place, spent) in &self.places {
            lines.entry((place.file.clone(), place.line)).or_default().add(spent);
            let verb = if place.verb.is_empty() { "(the script itself)" } else { &place.verb };
            verbs.entry(verb.to_owned()).or_default().add(spent);
        }
        let source = |(file, line): &(String, usize)| {
            let text = self.sources.get(file).and_then(|lines| lines.get(line.saturating_sub(1)));
            format!("{file}:{line}  {}", text.map_or("", |text| text.trim()))
        };
        self.table(&mut text, "line", lines.iter().map(|(place, spent)| (source(place), *spent)).collect());
        self.table(&mut text, "verb", verbs.into_iter().collect());
        self.draw(&mut text);
        text
    }

    fn total(&self) -> Spent {
        let mut total = Spent::default();
        self.places.iter().for_each(|(_, spent)| total.add(spent));
        total
    }

    fn table(&self, text: &mut String, title: &str, mut rows: Vec<(String, Spent)>) {
        let total = self.total();
        rows.sort_by(|a, b| b.1.operations.cmp(&a.1.operations).then_with(|| a.0.cmp(&b.0)));
        let _ = writeln!(text, "operations   share    time  {title}");
        for (label, spent) in rows.iter().take(MAX_ROWS) {
            let shown: String = label.chars().take(100).collect();
            let _ = writeln!(
                text,
                "{:>10}  {:>4.0} %  {:>4.0} %  {shown}",
                spent.operations / u64::from(N_DECISIONS),
                percent(spent.operations as f64, total.operations as f64),
                percent(spent.time.as_secs_f64(), total.time.as_secs_f64()),
            );
        }
        if rows.len() > MAX_ROWS {
            let _ = writeln!(text, "{:>10}  and {} more", "", rows.len() - MAX_ROWS);
        }
        text.push('\n');
    }

    /// Each function below the one that called it, with a bar of its operations, those it called included.
    fn draw(&self, text: &mut String) {
        let total = self.total().operations;
        let mut frames: BTreeMap<&[String], u64> = BTreeMap::new();
        for (stack, spent) in &self.stacks {
            for depth in 1..=stack.len() {
                *frames.entry(&stack[..depth]).or_default() += spent.operations;
            }
        }
        let _ = writeln!(text, "stacks, by operations");
        for (stack, operations) in frames.iter().filter(|(_, operations)| **operations * 100 >= total.max(1))
        {
            let share = percent(*operations as f64, total as f64);
            let bar = "#".repeat((share / 100.0 * BAR as f64).round() as usize);
            let label =
                format!("{}{}", "  ".repeat(stack.len() - 1), stack.last().map_or("", String::as_str));
            let _ = writeln!(text, "  {share:>4.0} %  {label:<40}  {bar}");
        }
    }

    /// Stacks as flame-graph programs read them: frames joined by semicolons, a space, the operations.
    pub fn folded(&self) -> String {
        let lines = self.stacks.iter().filter(|(_, spent)| spent.operations > 0);
        lines.map(|(stack, spent)| format!("{} {}\n", stack.join(";"), spent.operations)).collect()
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole * 100.0 } else { 0.0 }
}
