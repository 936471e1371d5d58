//! ElasticFlow's cases: one of its schedulers, a cluster, a trace, a slot; outcome, start and end of every job.
//!
//! Themis sorts by the last digits of an interior-point solver there: only the number of deadlines met is compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rota_core::time::{Span, Time};
use rota_core::workload::Workload;
use rota_scripts::artifact::elasticflow::{self as artifact, ElasticflowSettings, Judgement, Run, Scheduler};
use rota_traces::cluster::spec;
use rota_traces::error::InputError;
use rota_traces::format::{Format, Setting};
use rota_traces::originals::{self, ForOriginals};
use rota_traces::profile::{self, ProfileSet};
use rota_traces::source::Source;

use super::case::{CaseRun, skipped_by_note};
use super::table::{Row, Table};
use super::{Case, ConformError, Judged, Options, Verdict, case_name};

/// Part of the jobs by which the number of deadlines met may differ for themis.
const THEMIS_TOLERANCE: f64 = 0.03;

/// The cases of `cases.csv`.
pub(super) fn cases(folder: &Path, options: &Options) -> Result<Vec<Case>, ConformError> {
    let columns = ["case", "policy", "cluster", "input", "slot_s", "gpu_type", "expected", "note"];
    let table = Table::open(&folder.join("cases.csv"), &columns)?;
    let profiles = [Arc::new(profile::load("elasticflow-a100")?), Arc::new(profile::load("elasticflow-t4")?)];
    let case = |row: Row<'_>| {
        let name = case_name(&row, "case")?;
        let slot = row.time("slot_s")?.filter(|slot| *slot > Time::ZERO);
        let golden = GoldenCase {
            scheduler: Scheduler::parse(row.text("policy"))
                .map_err(|error| row.expected("policy", error.to_string()))?,
            policy: row.text("policy").to_owned(),
            cluster: folder.join(row.text("cluster")),
            input: folder.join(row.text("input")),
            slot: slot.ok_or_else(|| row.expected("slot_s", "a slot in seconds"))? - Time::ZERO,
            profiles: Arc::clone(&profiles[usize::from(row.text("gpu_type") != "A100")]),
            gpu_type: row.text("gpu_type").to_owned(),
            expected: folder.join(row.text("expected")),
            note: row.text("note").to_owned(),
            out: options.out.as_ref().map(|out| out.join("elasticflow").join(&name)),
        };
        Ok(Case::new(name, move || golden.judge()))
    };
    table.rows().map(case).collect()
}

/// A row of the case table.
struct GoldenCase {
    scheduler: Scheduler,
    policy: String,
    cluster: PathBuf,
    input: PathBuf,
    slot: Span,
    gpu_type: String,
    expected: PathBuf,
    note: String,
    out: Option<PathBuf>,
    profiles: Arc<ProfileSet>,
}

/// What became of a job, in the original or in our run.
#[derive(Clone, Debug, PartialEq)]
struct Fate {
    outcome: String,
    start: Option<Time>,
    end: Option<Time>,
}

impl GoldenCase {
    fn judge(&self) -> Judged {
        if let Some(skipped) = skipped_by_note(&self.note) {
            return Ok(skipped);
        }
        let cluster = spec::read(&Source::open(&self.cluster)?, &self.gpu_type)?;
        let source = Source::open(&self.input)?;
        let setting = Setting::new(&cluster, &self.profiles);
        let ForOriginals { imported, durations } =
            originals::read(&source, Some(Format::Elasticflow), &setting)?;
        let workload = imported.workload;
        let settings = ElasticflowSettings {
            durations: durations.as_deref(),
            ..ElasticflowSettings::new(self.scheduler, self.slot)
        };
        let run = artifact::run(&cluster, &workload, &settings)?;
        let expected = expected(&self.expected)?;
        let got = fates(&workload, &run);
        let difference = if self.scheduler == Scheduler::Themis {
            counts_difference(&expected, &got)
        } else {
            first_difference(&expected, &got)
        };
        if let Some(out) = &self.out {
            let (system, policy) = ("ElasticFlow", self.policy.as_str());
            let (cluster, workload, ledger) = (&cluster, &workload, run.ledger);
            let is_met = run.judgements.iter().map(|judgement| *judgement == Judgement::Met).collect();
            CaseRun { system, policy, cluster, workload, ledger, is_met: Some(is_met) }.write(out)?;
        }
        Ok(Verdict::of(difference))
    }
}

fn expected(path: &Path) -> Result<BTreeMap<String, Fate>, InputError> {
    let table = Table::open(path, &["job_id", "outcome", "start", "end"])?;
    let mut fates = BTreeMap::new();
    for row in table.rows() {
        // The original marks a start it never sets with the largest number it knows.
        let start = if row.text("start") == i64::MAX.to_string() { None } else { row.time("start")? };
        let fate = Fate { outcome: row.text("outcome").to_owned(), start, end: row.time("end")? };
        if fates.insert(row.text("job_id").to_owned(), fate).is_some() {
            return Err(row.expected("job_id", "every job once"));
        }
    }
    Ok(fates)
}

fn fates(workload: &Workload, run: &Run) -> BTreeMap<String, Fate> {
    let jobs = workload.jobs.iter().zip(&run.ledger.outcomes).zip(&run.judgements);
    let fate = |judgement: &Judgement, start, end| Fate { outcome: name(*judgement).to_owned(), start, end };
    jobs.map(|((job, outcome), judgement)| {
        (job.name.to_string(), fate(judgement, outcome.start, outcome.finish))
    })
    .collect()
}

/// The word for it in the golden tables.
fn name(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Met => "met",
        Judgement::Missed => "missed",
        Judgement::Declined => "declined",
        Judgement::BestEffortDone => "best_effort_done",
        Judgement::Unfinished => "unfinished",
    }
}

/// The earliest difference, or `None` when every job's outcome, start and end are the same.
fn first_difference(expected: &BTreeMap<String, Fate>, got: &BTreeMap<String, Fate>) -> Option<String> {
    if let Some(name) = expected.keys().find(|name| !got.contains_key(*name)) {
        return Some(format!("job {name}: expected, but not in the input"));
    }
    let mut differing: Vec<_> = got.iter().filter(|(name, fate)| expected.get(*name) != Some(fate)).collect();
    let earliest = |fate: &Fate| fate.start.or(fate.end).unwrap_or(Time::MAX);
    let first =
        |(name, fate): &(&String, &Fate)| expected.get(*name).map_or(Time::MAX, earliest).min(earliest(fate));
    differing.sort_by_key(first);
    let (name, fate) = differing.first()?;
    let Some(wanted) = expected.get(*name) else {
        return Some(format!("job {name}: in the input, but nothing is expected of it"));
    };
    let more = differing.len() - 1;
    Some(format!(
        "job {name}: expected {}, got {}; {more} more jobs differ",
        describe(wanted),
        describe(fate)
    ))
}

fn describe(fate: &Fate) -> String {
    let time = |time: Option<Time>| time.map_or("never".to_owned(), |time| format!("at {time} s"));
    format!("{} (start {}, end {})", fate.outcome, time(fate.start), time(fate.end))
}

fn counts_difference(expected: &BTreeMap<String, Fate>, got: &BTreeMap<String, Fate>) -> Option<String> {
    let met = |fates: &BTreeMap<String, Fate>| fates.values().filter(|fate| fate.outcome == "met").count();
    let (wanted, found) = (met(expected), met(got));
    let allowed = THEMIS_TOLERANCE * expected.len() as f64;
    (wanted.abs_diff(found) as f64 > allowed || expected.len() != got.len()).then(|| {
        format!("{found} of {} jobs met their deadline, expected {wanted} within {allowed:.1}", got.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(outcome: &str, start: i64, end: i64) -> Fate {
        let time = |seconds: i64| (seconds >= 0).then_some(Time(seconds * 1_000_000));
        Fate { outcome: outcome.into(), start: time(start), end: time(end) }
    }

    fn run(jobs: &[(&str, Fate)]) -> BTreeMap<String, Fate> {
        jobs.iter().map(|(name, fate)| ((*name).to_owned(), fate.clone())).collect()
    }

    #[test]
    fn the_earliest_difference_is_named() {
        let expected =
            run(&[("a", fate("met", 10, 90)), ("b", fate("declined", -1, -1)), ("c", fate("met", 5, 50))]);
        assert_eq!(first_difference(&expected, &expected), None);
        let got = run(&[("a", fate("met", 10, 90)), ("b", fate("met", 7, 9)), ("c", fate("missed", 5, 51))]);
        assert_eq!(
            first_difference(&expected, &got).as_deref(),
            Some(
                "job c: expected met (start at 5 s, end at 50 s), got missed (start at 5 s, end at 51 s); \
                 1 more jobs differ"
            )
        );
        let less = run(&[("a", fate("met", 10, 90))]);
        assert_eq!(
            first_difference(&expected, &less).as_deref(),
            Some("job b: expected, but not in the input")
        );
    }

    #[test]
    fn themis_may_differ_by_three_in_a_hundred() {
        let jobs = |n_met: usize| {
            let outcome = |i| if i < n_met { "met" } else { "missed" };
            (0..100).map(|i| (i.to_string(), fate(outcome(i), -1, 5))).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(counts_difference(&jobs(50), &jobs(53)), None);
        assert!(counts_difference(&jobs(50), &jobs(54)).is_some());
    }
}
