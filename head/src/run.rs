//! A head from start to end: the journal is folded, the threads are started, connections are accepted.

use std::sync::Arc;
use std::time::Duration;

use rota_core::ids::{Incarnation, JobId};
use rota_core::time::Time;
use rota_transport::identity::{Credentials, Role};
use rota_transport::quic::Listener;
use rota_transport::value::TimeScale;
use tokio::sync::mpsc;

use crate::ancestry::{self, Ancestry};
use crate::clock::{self, Clock};
use crate::cluster_state::ClusterState;
use crate::decider::{self, Answer, Ask, ChildSettings, DeciderLink, Program, Scripts};
use crate::engine::{Access, Engine, Input, RoundSettings, RoundTimer};
use crate::error::HeadError;
use crate::joining::JoinDesk;
use crate::record::Record;
use crate::roles::RolesFile;
use crate::serve;
use crate::settings::HeadSettings;
use crate::state::{Past, State, StateSettings};
use crate::store::history::EndedJob;
use crate::store::{Store, StoreError, Write};

/// How many inputs may be queued for the engine.
const MOST_INPUTS: usize = 16_384;
/// The policy of a head for which none was ever chosen.
const DEFAULT_POLICY: &str = "las+tune";
/// A decision may take a round, but at least this long, so that a busy machine and fast-forwarded time do not fail good
/// policies, ...
const LEAST_LIMIT: Duration = Duration::from_secs(2);
/// ... and at most this long, because new jobs wait for it.
const MOST_LIMIT: Duration = Duration::from_secs(60);
/// Numbers of jobs left out when a restore is accepted: people may have been told them, though no agent saw them.
const JOB_MARGIN: u32 = 10_000;
/// The same for numbers of launches.
const LAUNCH_MARGIN: u32 = 100;

/// The key under which it is noted that every ended job is in the history.
const HAS_HISTORY: &str = "has_history";

/// Runs a head until a user or a signal ends it.
pub fn run(settings: &HeadSettings) -> Result<(), HeadError> {
    let mut store = Store::open(&settings.state)?;
    let credentials = Credentials::load_for(&settings.credentials, Role::Head)?;
    let (roles_file, roles) = RolesFile::open(settings.roles.as_deref())?;
    let scale = settings.rules.time_scale;
    let time_scale = TimeScale::new(scale).map_err(HeadError::TimeScale)?;
    let mut cluster = ClusterState::new(&settings.rules)?;
    let folded = fold(&store, &mut cluster)?;
    let ancestry = Ancestry::begin(&store, settings.accepts_restore)?;
    let epoch = ancestry.epoch();
    let clock = Clock::new(start_time(&store, folded.last, scale)?, scale);
    let moment = clock.moment();
    let rules = Some(Box::new(settings.rules.clone()));
    let started = Record::HeadStarted { epoch, version: env!("CARGO_PKG_VERSION").into(), rules };
    let noted = folded.refused.into_iter().map(|text| Record::Noted { text });
    let restored = restored(&ancestry, &cluster);
    for record in &restored {
        cluster.apply(moment.now, record);
    }
    let records = [started].into_iter().chain(noted).chain(restored);
    let mut writes: Vec<_> = records.map(|record| Write::Record(moment.now, record)).collect();
    // Earlier versions had no history: its rows come from their journal, once.
    if store.meta(HAS_HISTORY)?.is_none() {
        let rows = cluster.jobs().iter().filter_map(|(id, job)| EndedJob::of(*id, job, &cluster));
        writes.extend(rows.map(|row| Write::Ended(Box::new(row))));
    }
    store.commit(&writes)?;
    store.set_meta(HAS_HISTORY, "1")?;
    let first = first_policy(settings, &cluster)?;
    let copies_checkpoints = settings.copies_checkpoints;
    let state_settings = StateSettings { epoch, terms: settings.terms, time_scale, copies_checkpoints };
    let past = Past { ancestry, instances: ancestry::instances(&store)? };
    let state = State::new(state_settings, cluster, store.seen()?, moment, past);
    let timer = RoundTimer::new(RoundSettings {
        round: settings.rules.round,
        wakes_early: !settings.rules.is_on_grid,
        least_gap: settings.least_gap,
        wait_for: settings.wait_for,
        min_run: settings.rules.min_run,
    });
    let system = |what| move |error| HeadError::System { what, error };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(system("a runtime"))?;
    let (inputs, received) = mpsc::channel(MOST_INPUTS);
    let access = Access { roles, policies: settings.policies.clone() };
    let children = ChildSettings {
        program: Program::ThisProgram,
        limit: decision_limit(settings),
        memory_bytes: settings.policy_memory_bytes,
    };
    let answers = inputs.clone();
    let tell = Arc::new(move |answer: Answer| {
        // The engine is gone when the head ends.
        let _ = answers.blocking_send(Input::Decider(answer));
    });
    let desks = decider::start(children, tell).map_err(system("a thread"))?;
    let link = DeciderLink::new(desks, first);
    let engine = Engine::new(state, store, clock, settings.rules.clone(), timer, link, access);
    runtime.block_on(attend(settings, credentials, roles_file, engine, inputs, received))?;
    // Policies may still be deciding. Their children end when this process does and closes their pipes.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}

async fn attend(
    settings: &HeadSettings,
    credentials: Credentials,
    roles: RolesFile,
    engine: Engine,
    inputs: mpsc::Sender<Input>,
    received: mpsc::Receiver<Input>,
) -> Result<(), HeadError> {
    let desk = settings.pki.clone().map(JoinDesk::new).transpose()?.map(Arc::new);
    let listener = Arc::new(Listener::bind_with(settings.listen, credentials, desk.is_some())?);
    if let Some(warning) = listener.warning() {
        tracing::warn!("{warning}");
    }
    let address = listener.address().ok_or(HeadError::NoAddress)?;
    tracing::info!("head listens at {address}, state in {}", settings.state.display());
    let door = tokio::spawn(serve::serve(Arc::clone(&listener), roles, desk, inputs.clone()));
    let signals = tokio::spawn(async move {
        match signal().await {
            Ok(name) => {
                tracing::info!("{name}: the head ends, jobs go on");
                let _ = inputs.send(Input::Shutdown).await;
            }
            Err(error) => tracing::error!("signals cannot be received: {error}"),
        }
    });
    engine.run(received).await;
    signals.abort();
    // Answers of the last batch are still on their way.
    tokio::time::sleep(Duration::from_millis(200)).await;
    door.abort();
    listener.close("the head ends");
    let _ = tokio::time::timeout(Duration::from_secs(1), listener.closed()).await;
    Ok(())
}

/// Waits for a signal that asks the head to end.
async fn signal() -> std::io::Result<&'static str> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => Ok("SIGTERM"),
        result = tokio::signal::ctrl_c() => result.map(|()| "SIGINT"),
    }
}

/// How long a decision may take.
fn decision_limit(settings: &HeadSettings) -> Duration {
    let round_s = settings.rules.round.as_secs_f64() / settings.rules.time_scale;
    let round = Duration::try_from_secs_f64(round_s).unwrap_or(MOST_LIMIT);
    round.clamp(LEAST_LIMIT, MOST_LIMIT)
}

/// The first request to the decider: load the policy to start with. A head whose policy does not compile does not start.
fn first_policy(settings: &HeadSettings, cluster: &ClusterState) -> Result<Ask, HeadError> {
    let known = cluster.policy().clone();
    let (policy, set, memory, sent) = match &settings.policy {
        Some((policy, set)) => (policy.clone(), set.clone(), String::new(), Vec::new()),
        None if !known.name.is_empty() => (known.name, known.set, known.memory, known.texts),
        None => (DEFAULT_POLICY.to_owned(), Vec::new(), String::new(), Vec::new()),
    };
    let scripts = Scripts { sent, folder: settings.policies.clone(), reads_paths: true };
    match decider::load_script(&policy, &set, &scripts) {
        Ok(_) => {
            let memory = Some(memory);
            Ok(Ask::Choose { ticket: 0, policy, set, memory, scripts, snapshot: None })
        }
        Err(error) => Err(HeadError::Policy { policy, error: Box::new(error) }),
    }
}

/// What is recorded when the state was restored from an older copy, or may have been. Numbers are left out that the lost state
/// may have given; agents will say if there are more.
fn restored(ancestry: &Ancestry, cluster: &ClusterState) -> Vec<Record> {
    if !ancestry.accepts() {
        if ancestry.is_copy() {
            tracing::warn!(
                "this state is a copy of the one that the last head used: nothing is started for the length of a lease, so that \
                 agents can say whether they know a later one"
            );
        }
        return Vec::new();
    }
    tracing::warn!(
        "a restored state was accepted: agents are awaited for the length of a lease before anything is started"
    );
    let first_job = JobId(cluster.next_job().0.saturating_add(JOB_MARGIN));
    let launches = cluster.jobs().values().map(|job| job.last_launch.0.0);
    let last_launch = launches.max().unwrap_or(0).max(cluster.first_launch().0);
    let first_launch = Incarnation(last_launch.saturating_add(LAUNCH_MARGIN));
    let lineage = ancestry.mark().lineage.to_string();
    vec![Record::RestoreAccepted { lineage }, Record::NumbersSkipped { first_job, first_launch }]
}

/// What reading the journal showed.
struct Folded {
    /// The time of its last record.
    last: Time,
    /// A sentence for each plan that did not fit: they are logged, and noted in the journal as well.
    refused: Vec<String>,
}

/// Folds the journal into the cluster's state.
fn fold(store: &Store, cluster: &mut ClusterState) -> Result<Folded, StoreError> {
    let (mut from, mut folded) = (0, Folded { last: Time::ZERO, refused: Vec::new() });
    loop {
        let lines = store.journal(from, 10_000)?;
        let Some((line, _, _)) = lines.last() else { return Ok(folded) };
        from = line + 1;
        for (line, time, record) in &lines {
            if let Some(violation) = cluster.apply(*time, record).refused {
                let text =
                    format!("journal line {line}: its plan does not fit and was left out: {violation}");
                tracing::error!("{text}");
                folded.refused.push(text);
            }
            folded.last = folded.last.max(*time);
        }
    }
}

/// The head's time now: counted from the making of its state directory, including the time in which no head ran.
fn start_time(store: &Store, last: Time, scale: f64) -> Result<Time, StoreError> {
    let now_us = clock::calendar_us();
    let born_us = match store.meta("born_us")?.and_then(|text| text.parse::<i64>().ok()) {
        Some(born_us) => born_us,
        None => {
            store.set_meta("born_us", &now_us.to_string())?;
            now_us
        }
    };
    let by_calendar = Time(((now_us - born_us).max(0) as f64 * scale) as i64);
    // The head's time does not go back, even if the wall clock was set back.
    Ok(by_calendar.max(last))
}

#[cfg(test)]
mod tests {
    use rota_core::plan::Plan;

    use super::*;
    use crate::record::PlanRecord;
    use crate::rules::{ProfileText, Rules};

    #[test]
    fn a_plan_in_the_journal_that_does_not_fit_is_reported_with_its_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path()).expect("opened");
        let plan = PlanRecord { run: vec![(JobId(7), None)], ..PlanRecord::from(&Plan::default()) };
        let records = [
            Record::RoundBegan { round: 1, protects: None },
            Record::Planned { round: 1, plan, memory: "{}".into() },
            Record::RoundBegan { round: 2, protects: None },
        ];
        let writes: Vec<_> = records.into_iter().map(|record| Write::Record(Time(5), record)).collect();
        store.commit(&writes).expect("written");
        let rules = Rules::plain(ProfileText::load("synergy").expect("built in"));
        let mut cluster = ClusterState::new(&rules).expect("good rules");
        let folded = fold(&store, &mut cluster).expect("read");
        let expected = "journal line 2: its plan does not fit and was left out: \
                        job 7: is not active, so a plan cannot run it";
        assert_eq!(folded.refused, [expected]);
        assert_eq!((cluster.n_rounds(), cluster.policy().memory.as_str()), (2, ""), "the rest is read");
    }
}
