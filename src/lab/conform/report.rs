//! The results of the cases, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

/// All systems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// In the order of [`SYSTEMS`](super::SYSTEMS).
    pub systems: Vec<SystemReport>,
}

/// One system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemReport {
    /// Name of the system.
    pub name: String,
    /// In the order of its case table.
    pub cases: Vec<CaseReport>,
}

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseReport {
    /// Name in the case table.
    pub case: String,
    /// Its result.
    pub verdict: Verdict,
}

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same as in the original.
    Equal,
    /// Not compared, with the reason.
    Skipped(String),
    /// Different, or not runnable: the first difference.
    Failed(String),
}

impl Verdict {
    /// The verdict on a comparison that named the first difference, if there was one.
    pub(super) fn of(difference: Option<impl ToString>) -> Self {
        difference.map_or(Verdict::Equal, |difference| Verdict::Failed(difference.to_string()))
    }
}

#[derive(Serialize)]
struct ReportJson<'r> {
    systems: Vec<SystemJson<'r>>,
}

#[derive(Serialize)]
struct SystemJson<'r> {
    name: &'r str,
    cases: usize,
    equal: usize,
    skipped: usize,
    failed: Vec<FailureJson<'r>>,
}

#[derive(Serialize)]
struct FailureJson<'r> {
    case: &'r str,
    why: &'r str,
}

impl<'r> SystemJson<'r> {
    fn of(system: &'r SystemReport) -> Self {
        SystemJson {
            name: &system.name,
            cases: system.cases.len(),
            equal: system.n_equal(),
            skipped: system.skipped().count(),
            failed: system.failed().map(|(case, why)| FailureJson { case, why }).collect(),
        }
    }
}

impl SystemReport {
    /// Cases that came out equal.
    pub fn n_equal(&self) -> usize {
        self.cases.iter().filter(|case| case.verdict == Verdict::Equal).count()
    }

    /// Cases that were not compared, with the reason.
    pub fn skipped(&self) -> impl Iterator<Item = (&str, &str)> {
        self.cases.iter().filter_map(|case| match &case.verdict {
            Verdict::Skipped(why) => Some((case.case.as_str(), why.as_str())),
            _ => None,
        })
    }

    /// Cases that came out different, with the first difference.
    pub fn failed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.cases.iter().filter_map(|case| match &case.verdict {
            Verdict::Failed(why) => Some((case.case.as_str(), why.as_str())),
            _ => None,
        })
    }
}

impl Report {
    /// Whether no case came out different.
    pub fn is_good(&self) -> bool {
        self.systems.iter().all(|system| system.failed().next().is_none())
    }

    /// For programs: `{"systems":[{"name","cases","equal","skipped","failed":[{"case","why"}]}]}`.
    pub fn to_json(&self) -> String {
        let report = ReportJson { systems: self.systems.iter().map(SystemJson::of).collect() };
        serde_json::to_string_pretty(&report).expect("names and counts are plain JSON") + "\n"
    }

    /// For people: the counts, each failure with its first difference, skipped cases by reason.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for system in &self.systems {
            let (n_skipped, n_failed) = (system.skipped().count(), system.failed().count());
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{:<12} {:>4} cases {:>5} equal {:>5} skipped {:>5} failed",
                system.name,
                system.cases.len(),
                system.n_equal(),
                n_skipped,
                n_failed
            );
            for (case, why) in system.failed() {
                let _ = writeln!(text, "  failed   {case}: {why}");
            }
            let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for (case, why) in system.skipped() {
                by_reason.entry(why).or_default().push(case);
            }
            for (why, cases) in by_reason {
                let _ = writeln!(text, "  skipped  {} because {why}: {}", cases.len(), cases.join(" "));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report() -> Report {
        let case = |case: &str, verdict| CaseReport { case: case.into(), verdict };
        let cases = vec![
            case("a", Verdict::Equal),
            case("b", Verdict::Failed("job 1: expected to start never, got at 1 s".into())),
            case("c", Verdict::Skipped("it is late".into())),
            case("d", Verdict::Skipped("it is late".into())),
        ];
        Report { systems: vec![SystemReport { name: "synergy".into(), cases }] }
    }

    #[test]
    fn json_has_the_agreed_shape() {
        let value: serde_json::Value = serde_json::from_str(&report().to_json()).expect("JSON");
        let failed = json!([{ "case": "b", "why": "job 1: expected to start never, got at 1 s" }]);
        let system = json!({ "name": "synergy", "cases": 4, "equal": 1, "skipped": 2, "failed": failed });
        assert_eq!(value, json!({ "systems": [system] }));
    }

    #[test]
    fn text_names_failures_and_reasons() {
        let text = report().to_text();
        assert!(text.contains("  failed   b: job 1: expected to start never, got at 1 s\n"), "{text}");
        assert!(text.contains("  skipped  2 because it is late: c d\n"), "{text}");
        assert!(!report().is_good());
    }
}
