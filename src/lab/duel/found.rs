//! A counterexample as it is reported: its scenarios with their results, and the first bad decision.

use rota_scripts::scenario::{self, Scenario};

use super::blame::{Blame, blame};
use super::case::{Case, Setting};
use super::question::{Arena, Question};
use super::side::{Match, Side};

/// Decisions that are written into a scenario.
const MOST_ROUNDS: usize = 12;

/// A case in which a policy is worse than it may be, as small as could be found.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Counterexample {
    /// Number of the case it was shrunk from.
    pub case: u64,
    /// The policies that were compared.
    #[serde(flatten)]
    pub of: Match,
    /// The ratio of that case; null in JSON where a job never ends.
    pub drawn_ratio: f64,
    /// The ratio of this one.
    pub ratio: f64,
    /// What was observed, if the ratio alone does not show it.
    pub what: Option<String>,
    /// The scenarios of each side with their results, to be saved as a file.
    pub scenario: String,
    /// What became of each job.
    pub jobs: Vec<Ended>,
    /// The first bad decision, where two policies met.
    pub blame: Option<Blame>,
}

/// What became of a job.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Ended {
    /// Its name in the scenario.
    pub job: String,
    /// Its completion time under the policy, in seconds; `None` if it was refused or never ended.
    pub jct_s: Option<f64>,
    /// The same under the other policy.
    pub against_jct_s: Option<f64>,
}

/// Explains a case that was shrunk.
pub(super) fn counterexample(
    index: u64,
    of: &Match,
    drawn_ratio: f64,
    case: Case,
    arena: &mut Arena,
) -> Counterexample {
    let setting = case.setting().expect("a case that was judged can be run");
    let mut found = explained(of, &setting, arena);
    found.case = index;
    found.drawn_ratio = drawn_ratio;
    found.scenario = scenarios(of, &case, arena);
    found
}

/// A case as it is, judged and explained; its scenarios are not written.
pub fn explained(of: &Match, setting: &Setting, arena: &mut Arena) -> Counterexample {
    let judged = arena.judge(setting);
    let blame = match (arena.question, &mut arena.against) {
        (Question::Jct, Some(against)) => blame(&mut arena.policy, against, setting),
        _ => None,
    };
    Counterexample {
        case: 0,
        of: of.clone(),
        drawn_ratio: judged.ratio,
        ratio: judged.ratio,
        what: judged.what,
        scenario: String::new(),
        jobs: ended(setting, arena),
        blame,
    }
}

fn ended(setting: &Setting, arena: &mut Arena) -> Vec<Ended> {
    let ours = arena.policy.run(setting).fates;
    let theirs = arena.against.as_mut().map(|against| against.run(setting).fates);
    let seconds = |fate: Option<&super::side::Fate>| fate.and_then(|f| f.jct_s()).filter(|s| s.is_finite());
    let jobs = setting.workload.jobs.iter().enumerate();
    jobs.map(|(index, job)| Ended {
        job: job.name.to_string(),
        jct_s: seconds(ours.get(index)),
        against_jct_s: seconds(theirs.as_ref().and_then(|theirs| theirs.get(index))),
    })
    .collect()
}

/// One scenario for each side, with its result.
fn scenarios(of: &Match, case: &Case, arena: &mut Arena) -> String {
    let sides = [(Some(&of.policy), Some(&mut arena.policy)), (of.against.as_ref(), arena.against.as_mut())];
    let mut texts = Vec::new();
    for (name, side) in sides {
        let (Some(name), Some(side)) = (name, side) else { continue };
        texts.push(scenario_of(case, name, side));
    }
    texts.join("\n")
}

fn scenario_of(case: &Case, policy: &str, side: &mut Side) -> String {
    let (name, set) = (format!("as {policy} decides it"), side.set.clone());
    let asked = case.scenario(&name, policy, &set, MOST_ROUNDS);
    let parsed = scenario::parse(&asked).expect("a case that was judged is a scenario");
    let lines = parsed.first().map(|scenario: &Scenario| scenario::run(scenario, side.policy()).actual);
    let lines = until_nothing_changes(lines.unwrap_or_default());
    let asked = case.scenario(&name, policy, &set, lines.len().max(1));
    format!("{asked}----\n{}\n", lines.join("\n"))
}

/// Leaves out the last lines that say the same as the one before them.
fn until_nothing_changes(mut lines: Vec<String>) -> Vec<String> {
    let without_time = |line: &String| line.split_once(": ").map(|(_, text)| text.to_owned());
    while let [.., before, last] = lines.as_slice()
        && without_time(before) == without_time(last)
    {
        lines.pop();
    }
    lines
}
