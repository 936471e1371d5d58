//! Synergy's cases: a scheduler, a cluster, a replay file, and when the first round is.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rota_core::cluster::Cluster;
use rota_core::ledger::Ledger;
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;
use rota_scripts::artifact::synergy::{self as artifact, Allocation, Model, Models, Scheme, SynergySettings};
use rota_traces::error::InputError;
use rota_traces::format::{Setting, replay};
use rota_traces::profile::ProfileSet;
use rota_traces::source::Source;
use rota_traces::{cluster, profile};

use super::case::{CaseRun, skipped_by_note};
use super::compare::{self, Rounds};
use super::table::{Row, Table};
use super::{Case, CaseError, ConformError, Judged, Options, Verdict, case_name, opt};

/// The original's round length: a literal in its runner.
const ROUND: Span = Span::from_secs(300);

/// The cases of `cases.csv`.
pub(super) fn cases(folder: &Path, options: &Options) -> Result<Vec<Case>, ConformError> {
    let table = Table::open(
        &folder.join("cases.csv"),
        &["case", "policy", "cluster", "input", "mode", "expected", "note"],
    )?;
    let profiles = Arc::new(profile::load("synergy")?);
    let case = |row: Row<'_>| {
        let name = case_name(&row, "case")?;
        let golden = GoldenCase {
            scheme: Scheme::parse(row.text("policy"), Allocation::Greedy)
                .map_err(|error| row.expected("policy", format!("a scheduler of the original ({error})")))?,
            cluster: folder.join(row.text("cluster")),
            input: folder.join(row.text("input")),
            mode: row.text("mode").parse().map_err(|expected| row.expected("mode", expected))?,
            expected: folder.join(row.text("expected")),
            note: row.text("note").to_owned(),
            first_round: options.first_round,
            out: options.out.as_ref().map(|out| out.join("synergy").join(&name)),
            policy: row.text("policy").to_owned(),
            profiles: Arc::clone(&profiles),
        };
        Ok(Case::new(name, move || golden.judge()))
    };
    table.rows().map(case).collect()
}

/// When the first round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// At time zero.
    Generator,
    /// At one second.
    ReplayStatic,
    /// At the first multiple of the round length at or after the arrival on the file's first line.
    ReplayDynamic,
    /// At this time.
    FirstRound(Time),
}

impl FromStr for Mode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(' ') {
            None if text == "generator" => Ok(Mode::Generator),
            None if text == "replay-static" => Ok(Mode::ReplayStatic),
            None if text == "replay-dynamic" => Ok(Mode::ReplayDynamic),
            Some(("first-round", span)) if Span::parse(span).is_ok() => {
                Ok(Mode::FirstRound(Time::ZERO + Span::parse(span).unwrap_or_default()))
            }
            _ => Err("generator, replay-static, replay-dynamic or first-round T"),
        }
    }
}

/// A row of the case table.
struct GoldenCase {
    scheme: Scheme,
    policy: String,
    cluster: PathBuf,
    input: PathBuf,
    mode: Mode,
    expected: PathBuf,
    note: String,
    first_round: Option<Time>,
    out: Option<PathBuf>,
    profiles: Arc<ProfileSet>,
}

impl GoldenCase {
    fn judge(&self) -> Judged {
        if let Some(skipped) = skipped_by_note(&self.note) {
            return Ok(skipped);
        }
        if self.scheme.allocation == Allocation::Opt {
            return self.judge_optimum();
        }
        let cluster = Arc::new(self.cluster()?);
        let source = Source::open(&self.input)?;
        let workload = self.workload(&source, &cluster)?;
        let expected = compare::expected(&self.expected, "first_start_s", "finish_s")?;
        let rounds = Rounds { first: self.first_round(&source, &workload), length: ROUND };
        let ledger = self.run(&cluster, &workload, rounds)?;
        let got = compare::got(&workload, &ledger);
        if let Some(out) = &self.out {
            let (system, policy, is_met) = ("Synergy", self.policy.as_str(), None);
            let (cluster, workload) = (&*cluster, &workload);
            CaseRun { system, policy, cluster, workload, ledger, is_met }.write(out)?;
        }
        Ok(Verdict::of(compare::first_difference(&expected, &got, rounds)))
    }

    fn judge_optimum(&self) -> Judged {
        let name = self.expected.to_string_lossy();
        let log = PathBuf::from(name.replace(".jobs.csv", ".optlog.json"));
        if !log.exists() {
            return Ok(Verdict::Skipped("the original kept no log of its optima".into()));
        }
        let cluster = self.cluster()?;
        let workload = self.workload(&Source::open(&self.input)?, &cluster)?;
        Ok(Verdict::of(opt::first_difference(&log, &cluster, &workload)?))
    }

    fn cluster(&self) -> Result<Cluster, InputError> {
        cluster::read(&Source::open(&self.cluster)?)
    }

    fn workload(&self, source: &Source, cluster: &Cluster) -> Result<Workload, InputError> {
        Ok(replay::read(source, &Setting::new(cluster, &self.profiles))?.workload)
    }

    fn run(&self, cluster: &Arc<Cluster>, workload: &Workload, rounds: Rounds) -> Result<Ledger, CaseError> {
        let settings = SynergySettings {
            round: rounds.length,
            first_round: rounds.first,
            keeps_timeline: self.out.is_some(),
            ..SynergySettings::default()
        };
        let models = models(&self.profiles);
        Ok(artifact::run(self.scheme, Arc::clone(cluster), workload, &models, &settings, &mut |_| ())?)
    }

    fn first_round(&self, source: &Source, workload: &Workload) -> Time {
        match self.first_round.map_or(self.mode, Mode::FirstRound) {
            Mode::Generator => Time::ZERO,
            Mode::ReplayStatic => Time::ZERO + Span::from_secs(1),
            Mode::ReplayDynamic => first_line_arrival(source, workload).align_up(Time::ZERO, ROUND),
            Mode::FirstRound(time) => time,
        }
    }
}

/// The models of a set for which the original's own numbers are known: its driver needs them as well as the workload.
pub fn models(profiles: &ProfileSet) -> Models {
    let model = |entry: &profile::ProfileEntry| {
        let model = Model { iteration_s: entry.iteration_s?, ideal_speedup: entry.ideal_speedup? };
        Some((entry.profile.name.clone(), model))
    };
    profiles.entries().iter().filter_map(model).collect()
}

/// The arrival of the job on the file's first line. Jobs are numbered by arrival, so it has to be looked up by name.
fn first_line_arrival(source: &Source, workload: &Workload) -> Time {
    let line = source.text.lines().map(str::trim).find(|line| !line.is_empty());
    let name = line.and_then(|line| line.split(',').next()).map(str::trim);
    let job = workload.jobs.iter().find(|job| Some(&*job.name) == name);
    job.map_or(Time::ZERO, |job| job.arrival)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_say_when_the_first_round_is() {
        assert_eq!("generator".parse(), Ok(Mode::Generator));
        assert_eq!("first-round 5m".parse(), Ok(Mode::FirstRound(Time(300_000_000))));
        assert!("first-round soon".parse::<Mode>().is_err() && "replay".parse::<Mode>().is_err());
    }

    #[test]
    fn a_dynamic_replay_begins_with_the_first_line_even_when_it_is_not_the_first_to_arrive() {
        let cluster = cluster::load("small").expect("built in");
        let profiles = profile::load("synergy").expect("built in");
        let source = Source::new("r.trace", "\n7,lstm,301,10,1\n8,lstm,5,10,1\n");
        let workload =
            replay::read(&source, &Setting::new(&cluster, &profiles)).expect("a replay file").workload;
        let arrival = first_line_arrival(&source, &workload);
        assert_eq!(arrival.align_up(Time::ZERO, ROUND), Time(600_000_000));
    }
}
