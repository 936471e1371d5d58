//! How one decision came about, for those who look at it: what each stage cost, in which order jobs were served, and by which keys.
//!
//! Nothing is noted unless [`ScriptPolicy::decide_with_account`] is asked: a decision that nobody looks at pays for one comparison in a
//! stage and in `rank`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rhai::Position;
use rota_core::ids::JobId;
use rota_core::plan::Plan;
use rota_core::snapshot::Snapshot;

use crate::language::error::ScriptError;
use crate::language::session::{Session, Shared};
use crate::policy::ScriptPolicy;
use crate::policy::part::{Part, Stage};

/// How a decision came about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// What each stage cost, in the order in which they were asked.
    pub stages: Vec<StageCost>,
    /// Jobs in the order in which they were served. Empty where no stage left one.
    pub queue: Vec<JobId>,
    /// What the order was made by.
    pub keys: Vec<OrderKey>,
    /// Whether the queue is what the keys say, and was not rearranged after that.
    pub is_by_keys: bool,
    /// Where the keys are written: file and line, from 1.
    pub written: Option<(String, usize)>,
}

/// What a stage cost.
#[derive(Clone, Debug, PartialEq)]
pub struct StageCost {
    /// The stage that was called.
    pub stage: Stage,
    /// The part's file; `None` for what is done where no part defines the stage.
    pub file: Option<String>,
    /// Operations, as limits count them.
    pub operations: u64,
    /// Wall-clock time.
    pub took: Duration,
    /// Whether it was asked by a verb, so that another stage's cost contains its own.
    pub is_within: bool,
}

/// One key of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    /// As it is written in the script.
    pub text: String,
    /// Its value for each job; the smallest is first.
    pub values: BTreeMap<JobId, f64>,
}

/// What is noted while a decision is made.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    stages: Vec<StageCost>,
    orders: Vec<OrderMade>,
    queue: Option<Arc<Vec<u32>>>,
}

/// An order that a verb made from keys.
#[derive(Debug)]
pub(crate) struct OrderMade {
    /// The part whose code asked for it.
    pub(crate) part: usize,
    /// Where its verb is called.
    pub(crate) position: Position,
    pub(crate) rows: Arc<Vec<u32>>,
    /// The position among the arguments, from 1, and the values.
    pub(crate) keys: Vec<(usize, Vec<(JobId, f64)>)>,
    /// Texts of the keys, where no script has them.
    pub(crate) texts: &'static [&'static str],
}

/// A stage that has begun; `None` where nobody looks.
pub(crate) type Begun = Option<(u64, Instant)>;

impl Shared {
    /// Whether somebody looks at this decision.
    pub(crate) fn has_account(&self) -> bool {
        self.call_state().account.is_some()
    }

    /// A stage begins.
    pub(crate) fn begin_stage(&self) -> Begun {
        self.has_account().then(|| (self.meter.operations(), Instant::now()))
    }

    /// A stage has ended.
    pub(crate) fn end_stage(&self, begun: Begun, stage: Stage, file: Option<&str>, is_within: bool) {
        let Some((before, since)) = begun else { return };
        let (operations, took) = (self.meter.operations() - before, since.elapsed());
        if let Some(notes) = &mut self.call_state().account {
            notes.stages.push(StageCost {
                stage,
                file: file.map(str::to_owned),
                operations,
                took,
                is_within,
            });
        }
    }

    /// Notes an order made from keys.
    pub(crate) fn note_order(&self, order: OrderMade) {
        if let Some(notes) = &mut self.call_state().account {
            notes.orders.push(order);
        }
    }

    /// Notes the queue that is served; the first one counts.
    pub(crate) fn note_queue(&self, rows: &Arc<Vec<u32>>) {
        if let Some(notes) = &mut self.call_state().account {
            notes.queue.get_or_insert_with(|| Arc::clone(rows));
        }
    }
}

impl ScriptPolicy {
    /// One decision, with how it came about. It decides as without: what is noted reaches no script.
    pub fn decide_with_account(&mut self, snapshot: &Snapshot) -> Result<(Plan, Account), ScriptError> {
        self.shared.call_state().account = Some(Notes::default());
        let result = self.decide_or_explain(snapshot);
        let notes = self.shared.call_state().account.take().unwrap_or_default();
        result.map(|plan| (plan, notes.account(snapshot, &self.parts)))
    }

    /// Ends a stage and says what it cost; `part` defines it, or nobody does.
    pub(crate) fn close_stage(&self, session: &Session, begun: Begun, stage: Stage, part: Option<usize>) {
        let file = part.and_then(|part| self.parts.get(part)).map(|part| part.file.as_str());
        session.shared.end_stage(begun, stage, file, false);
    }
}

impl Notes {
    fn account(self, snapshot: &Snapshot, parts: &[Part]) -> Account {
        let queue = self.queue.unwrap_or_default();
        // The verb that made this very queue; else the last of those that ordered most of its jobs.
        let made = self.orders.iter().rev().find(|order| Arc::ptr_eq(&order.rows, &queue));
        let is_by_keys = made.is_some();
        let listed = |order: &&OrderMade| order.rows.iter().filter(|row| queue.contains(row)).count();
        let made = made.or_else(|| self.orders.iter().filter(|order| listed(order) > 0).max_by_key(listed));
        let written = made
            .filter(|order| !order.position.is_none())
            .and_then(|order| Some((parts.get(order.part)?.file.clone(), order.position.line()?)));
        Account {
            stages: self.stages,
            queue: queue.iter().map(|row| snapshot.jobs.id(*row as usize)).collect(),
            keys: made.map(|order| order.keys(parts)).unwrap_or_default(),
            is_by_keys,
            written,
        }
    }
}

impl OrderMade {
    fn keys(&self, parts: &[Part]) -> Vec<OrderKey> {
        let source = parts.get(self.part).map_or("", |part| &part.source);
        let texts = arguments(source, self.position);
        let text = |number: usize| match (self.texts.get(number - 1), texts.get(number - 1)) {
            (Some(text), _) => (*text).to_owned(),
            (None, Some(text)) => text.clone(),
            (None, None) => format!("key {number}"),
        };
        let key = |(number, values): &(usize, Vec<(JobId, f64)>)| OrderKey {
            text: text(*number),
            values: values.iter().copied().collect(),
        };
        self.keys.iter().map(key).collect()
    }
}

/// The arguments of the call at a position, as they are written.
fn arguments(source: &str, position: Position) -> Vec<String> {
    let (Some(line), Some(column)) = (position.line(), position.position()) else { return Vec::new() };
    let rest = source.lines().skip(line - 1).enumerate().map(|(at, text)| match at {
        0 => text.chars().skip(column.saturating_sub(1)).collect::<String>(),
        _ => text.to_owned(),
    });
    let text = rest.map(|line| without_comment(&line)).collect::<Vec<_>>().join(" ");
    let Some((_, text)) = text.split_once('(') else { return Vec::new() };
    let (mut found, mut one, mut depth, mut quote) = (Vec::new(), String::new(), 0_u32, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '`') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')') if depth == 0 => {
                found.push(one);
                break;
            }
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                found.push(std::mem::take(&mut one));
                continue;
            }
            (None, _) => {}
        }
        one.push(c);
    }
    found.iter().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn without_comment(line: &str) -> String {
    let end = line
        .match_indices("//")
        .map(|(at, _)| at)
        .find(|at| line[..*at].matches('"').count().is_multiple_of(2));
    line[..end.unwrap_or(line.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::compose::Source;
    use crate::{Limits, sample};

    fn account(text: &str) -> Account {
        let source = Source { name: "mine".into(), file: "mine.rhai".into(), text: text.into() };
        let snapshot = sample::varied();
        let mut watched =
            ScriptPolicy::from_sources("mine", std::slice::from_ref(&source), Limits::default())
                .expect("a policy");
        let mut plain = ScriptPolicy::from_sources("mine", &[source], Limits::default()).expect("a policy");
        let (plan, account) = watched.decide_with_account(&snapshot).expect("a decision");
        assert_eq!(plan, plain.decide_or_explain(&snapshot).expect("a decision"), "looking changes nothing");
        assert_eq!(
            account.stages.iter().filter(|cost| !cost.is_within).map(|cost| cost.operations).sum::<u64>(),
            watched.operations(),
            "stages account for every operation: {:?}",
            account.stages
        );
        account
    }

    #[test]
    fn keys_are_told_as_they_are_written_with_the_value_of_each_job() {
        let text = "fn order(jobs, now) {\n    // largest first (a comment, with a bracket)\n    \
                    let queue = rank(-jobs.priority, // first\n        max(jobs.gpus, 2.0) * -1.0, 3, jobs.arrival);\n    queue\n}";
        let account = account(text);
        let texts: Vec<&str> = account.keys.iter().map(|key| key.text.as_str()).collect();
        assert_eq!(texts, ["-jobs.priority", "max(jobs.gpus, 2.0) * -1.0", "jobs.arrival"]);
        assert!(account.is_by_keys);
        assert_eq!(account.written, Some(("mine.rhai".to_owned(), 3)));
        let values: Vec<Vec<f64>> =
            account.queue.iter().map(|id| account.keys.iter().map(|key| key.values[id]).collect()).collect();
        assert!(values.len() > 1 && values.is_sorted(), "the smallest first: {values:?}");
    }

    #[test]
    fn a_queue_that_was_turned_round_still_has_its_keys() {
        let account = account("fn order(jobs, now) { rank(jobs.arrival).reversed() }");
        assert_eq!((account.keys.len(), account.is_by_keys), (1, false));
        let first = account.keys[0].values[&account.queue[0]];
        let last = account.keys[0].values[&account.queue[account.queue.len() - 1]];
        assert!(first >= last, "{first} {last}");
    }

    #[test]
    fn closures_and_the_order_by_default_have_keys_too() {
        let closure = account("fn order(jobs, now) { jobs.order_by(|job| [job.gpus, job.arrival]) }");
        assert_eq!((closure.keys.len(), closure.is_by_keys), (2, true));
        let default = account("fn place(view) { first_fit() }");
        assert_eq!(
            default.keys.iter().map(|key| key.text.as_str()).collect::<Vec<_>>(),
            ["-priority", "arrival"]
        );
        assert!(default.stages.iter().any(|cost| cost.stage == Stage::Order && cost.file.is_none()));
        assert!(!default.queue.is_empty());
    }

    #[test]
    fn a_whole_decision_has_the_queue_that_it_walks() {
        let account = account(
            "fn decide(view) { view.fill(rank(view.jobs.gpus)).give(\"demand\").or_else(\"fair_share\") }",
        );
        assert_eq!((account.keys[0].text.as_str(), account.is_by_keys), ("view.jobs.gpus", true));
        assert_eq!(account.stages.iter().map(|cost| cost.stage).collect::<Vec<_>>(), [Stage::Decide]);
    }
}
