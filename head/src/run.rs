//! A head from start to end: connections are accepted, the journal is folded, the threads are started.

use std::sync::{Arc, mpsc as std_mpsc};
use std::time::Duration;

use rota_core::ids::{Incarnation, JobId};
use rota_core::time::Time;
use rota_transport::identity::{Credentials, Role};
use rota_transport::quic::Listener;
use rota_transport::value::TimeScale;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::ancestry::{self, Ancestry};
use crate::clock::{self, Clock};
use crate::cluster_state::ClusterState;
use crate::decider::{
    self, Answer, Ask, ChildSettings, Decider, DeciderLink, PolicyUseError, Program, Scripts,
};
use crate::engine::sights::Watch;
use crate::engine::{Access, Engine, Input, RoundSettings, RoundTimer};
use crate::error::HeadError;
use crate::joining::CertificateIssuer;
use crate::record::Record;
use crate::roles::RolesFile;
use crate::rules::Rules;
use crate::serve::{self, Lobby};
use crate::settings::HeadSettings;
use crate::state::{Past, State, StateSettings};
use crate::store::history::EndedJob;
use crate::store::{Store, StoreError, Write};
use crate::upkeep::{self, Upkeep};
use crate::web::Web;

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

/// The key under which it is noted that every ended job is in the history, ...
const HAS_HISTORY: &str = "has_history";
/// ... with all that this version keeps of one.
const HISTORY_VERSION: &str = "2";

/// Runs a head until a user or a signal ends it.
pub fn run(settings: &HeadSettings) -> Result<(), HeadError> {
    let mut store = Store::open(&settings.state)?;
    let credentials = Credentials::load_for(&settings.credentials, Role::Head)?;
    let (roles_file, roles) = RolesFile::open(settings.roles.as_deref())?;
    let scale = settings.rules.time_scale;
    let time_scale = TimeScale::new(scale).map_err(HeadError::TimeScale)?;
    settings.rules.profile_set()?;
    let ancestry = Ancestry::begin(&store, settings.accepts_restore)?;
    let epoch = ancestry.epoch();
    let (seen, instances) = (store.seen()?, ancestry::instances(&store)?);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(system("a runtime"))?;
    let (inputs, received) = mpsc::channel(MOST_INPUTS);
    let (ready, is_ready) = watch::channel(false);
    let lobby = Lobby {
        ancestry: ancestry.clone(),
        instances: instances.clone(),
        terms: settings.terms,
        seen: seen.iter().cloned().collect(),
        is_ready,
    };
    // Agents are answered from here on, so that no lease runs out while the journal is read.
    let door = Door::open(&runtime, settings, credentials, roles_file, inputs.clone(), lobby)?;
    let folded = fold(&store, &settings.rules)?;
    let clock = Clock::new(start_time(&store, folded.last, scale)?, scale);
    let Begun { cluster, first, trouble } =
        begin(settings, &mut store, folded, &ancestry, clock.moment().now)?;
    let copies_checkpoints = settings.copies_checkpoints;
    let state_settings = StateSettings { epoch, terms: settings.terms, time_scale, copies_checkpoints };
    // Leases count from now: they were renewed while the journal was read.
    let state = State::new(state_settings, cluster, seen, clock.moment(), Past { ancestry, instances });
    let web = settings.web.as_ref().map(|web| {
        let _guard = runtime.enter();
        Web::open(web)
    });
    let (web, watch) = web.transpose()?.map_or((None, Watch::default()), |(web, watch)| (Some(web), watch));
    let timer = RoundTimer::new(RoundSettings {
        round: settings.rules.round,
        wakes_early: !settings.rules.is_on_grid,
        least_gap: settings.least_gap,
        wait_for: settings.wait_for,
        min_run: settings.rules.min_run,
    });
    let sessions = web.as_ref().map(Web::sessions);
    let access = Access { roles, policies: settings.policies.clone(), limits: settings.limits, sessions };
    let decider = start_deciding(settings, inputs.clone())?;
    let link = DeciderLink::new(decider, first, trouble);
    let upkeep = start_upkeep(settings, &store, inputs.clone())?;
    let engine = Engine::new(state, store, clock, settings.rules.clone(), timer, link, access, upkeep)
        .with_viewers(watch);
    if let Some(web) = web {
        runtime.spawn(web.serve(inputs.clone(), ready.subscribe()));
    }
    let _ = ready.send(true);
    runtime.block_on(attend(door, engine, inputs, received));
    // Policies may still be deciding, and the journal be looked through. Children end when this process does and closes their
    // pipes, threads with it.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> HeadError {
    move |error| HeadError::System { what, error }
}

/// Where connections are accepted.
struct Door {
    listener: Arc<Listener>,
    task: JoinHandle<()>,
}

impl Door {
    fn open(
        runtime: &Runtime,
        settings: &HeadSettings,
        credentials: Credentials,
        roles: RolesFile,
        inputs: mpsc::Sender<Input>,
        lobby: Lobby,
    ) -> Result<Self, HeadError> {
        let _guard = runtime.enter();
        let issuer = settings.pki.clone().map(CertificateIssuer::new).transpose()?.map(Arc::new);
        let listener = Arc::new(Listener::bind_with(settings.listen, credentials, issuer.is_some())?);
        if let Some(warning) = listener.warning() {
            tracing::warn!("{warning}");
        }
        let address = listener.address().ok_or(HeadError::NoAddress)?;
        tracing::info!("head listens at {address}, state in {}", settings.state.display());
        let serving = serve::serve(Arc::clone(&listener), roles, issuer, inputs, Arc::new(lobby));
        Ok(Door { listener, task: runtime.spawn(serving) })
    }
}

/// What a head begins with.
struct Begun {
    cluster: ClusterState,
    /// The policy to load.
    first: Option<Ask>,
    /// What is wrong, if that is not the one that the head was told to start with.
    trouble: Option<String>,
}

/// Writes down that a head begins, and what follows from that.
fn begin(
    settings: &HeadSettings,
    store: &mut Store,
    folded: Folded,
    ancestry: &Ancestry,
    now: Time,
) -> Result<Begun, HeadError> {
    let mut cluster = folded.cluster;
    let (epoch, rules) = (ancestry.epoch(), Some(Box::new(settings.rules.clone())));
    let started = Record::HeadStarted { epoch, version: env!("CARGO_PKG_VERSION").into(), rules };
    let (first, trouble) = first_policy(settings, &cluster)?;
    let noted = folded.refused.into_iter().chain(trouble.clone()).map(|text| Record::Noted { text });
    let records: Vec<_> = [started].into_iter().chain(noted).chain(restored(ancestry, &cluster)).collect();
    for record in &records {
        cluster.apply(now, record);
    }
    let mut writes: Vec<_> = records.into_iter().map(|record| Write::Record(now, record)).collect();
    // Earlier versions had no history, or less in it: its rows come from their journal, once.
    if store.meta(HAS_HISTORY)?.as_deref() != Some(HISTORY_VERSION) {
        let rows = cluster.jobs().iter().filter_map(|(id, job)| EndedJob::of(*id, job, &cluster));
        writes.extend(rows.map(|row| Write::Ended(Box::new(row))));
    }
    store.commit(&writes)?;
    store.set_meta(HAS_HISTORY, HISTORY_VERSION)?;
    Ok(Begun { cluster, first, trouble })
}

fn start_deciding(settings: &HeadSettings, inputs: mpsc::Sender<Input>) -> Result<Decider, HeadError> {
    let children = ChildSettings {
        program: Program::ThisProgram,
        limit: decision_limit(settings),
        memory_bytes: settings.policy_memory_bytes,
    };
    let tell = Arc::new(move |answer: Answer| {
        // The engine is gone when the head ends.
        let _ = inputs.blocking_send(Input::Decider(answer));
    });
    decider::start(children, tell).map_err(system("a thread"))
}

fn start_upkeep(
    settings: &HeadSettings,
    store: &Store,
    inputs: mpsc::Sender<Input>,
) -> Result<Upkeep, HeadError> {
    let (chores, to_do) = std_mpsc::channel();
    let (upkeep, reader) = (Upkeep::new(chores, settings.keep, store)?, store.reader()?);
    let thread = std::thread::Builder::new().name("upkeep".into());
    let started = thread.spawn(move || {
        upkeep::run(&to_do, &reader, |chore| {
            let _ = inputs.blocking_send(Input::Upkeep(chore));
        });
    });
    started.map(|_| upkeep).map_err(system("a thread"))
}

async fn attend(door: Door, engine: Engine, inputs: mpsc::Sender<Input>, received: mpsc::Receiver<Input>) {
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
    door.task.abort();
    door.listener.close("the head ends");
    let _ = tokio::time::timeout(Duration::from_secs(1), door.listener.closed()).await;
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

/// The first request to the decider: load the policy to start with; and what is wrong, if that is not the one asked for. A head
/// that has never had a policy does not start with one that does not compile. Any other starts, because jobs may be running:
/// with the text in the journal, with the policy in the journal, or, if that cannot be used either, without one.
fn first_policy(
    settings: &HeadSettings,
    cluster: &ClusterState,
) -> Result<(Option<Ask>, Option<String>), HeadError> {
    let known = cluster.policy();
    let has_known = !known.name.is_empty();
    let default = || (DEFAULT_POLICY.to_owned(), Vec::new());
    let before = has_known.then(|| (known.name.clone(), known.set.clone()));
    let (policy, set) = settings.policy.clone().or_else(|| before.clone()).unwrap_or_else(default);
    let first = |policy: &str, set: &[(String, String)]| {
        let is_known = (policy, set) == (known.name.as_str(), known.set.as_slice());
        let scripts = Scripts {
            sent: if is_known { known.texts.clone() } else { Vec::new() },
            folder: settings.policies.clone(),
            reads_paths: true,
            kept: known.files.clone(),
            prefers_kept: false,
        };
        let loaded = decider::load_script(policy, set, &scripts);
        loaded.or_else(|error| {
            decider::load_script(policy, set, &scripts.preferring_kept()).map_err(|_| error)
        })?;
        let memory = if is_known { known.memory.clone() } else { String::new() };
        let (policy, set) = (policy.to_owned(), set.to_vec());
        let memory = Some(memory);
        Ok::<_, PolicyUseError>(Ask::Choose { ticket: 0, policy, set, memory, scripts, snapshot: None })
    };
    let error = match first(&policy, &set) {
        Ok(ask) => return Ok((Some(ask), None)),
        Err(error) => error,
    };
    let Some((name, set)) = before else {
        return Err(HeadError::Policy { policy, error: Box::new(error) });
    };
    let is_other = name != policy;
    match first(&name, &set) {
        Ok(ask) if is_other || settings.policy.is_some() => {
            let text = format!("policy {policy} cannot be used: {error}; {name} goes on deciding");
            tracing::error!("{text}");
            Ok((Some(ask), Some(text)))
        }
        _ => {
            let text =
                format!("policy {policy} cannot be used: {error}; what runs is kept, nothing is decided");
            tracing::error!("{text}");
            Ok((None, Some(text)))
        }
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
pub(crate) struct Folded {
    pub(crate) cluster: ClusterState,
    /// The time of its last record.
    last: Time,
    /// A sentence for each plan that did not fit: they are logged, and noted in the journal as well.
    refused: Vec<String>,
}

/// Folds the journal into the cluster's state: from the newest image on, or from the beginning.
pub(crate) fn fold(store: &Store, rules: &Rules) -> Result<Folded, HeadError> {
    let (mut from, cluster) = match store.newest_image()? {
        Some((line, image)) => (line + 1, ClusterState::restore(image)?),
        None => (0, ClusterState::new(rules)?),
    };
    let mut folded = Folded { cluster, last: store.last_time()?, refused: Vec::new() };
    loop {
        let lines = store.journal(from, 10_000)?;
        let Some((line, _, _)) = lines.last() else { return Ok(folded) };
        let mut before = from.max(1) - 1;
        from = line + 1;
        for (line, time, record) in &lines {
            if before + 1 != *line {
                return Err(StoreError::Gap { path: store.path().to_owned(), before, line: *line }.into());
            }
            before = *line;
            if let Some(violation) = folded.cluster.apply(*time, record).refused {
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
    use rota_core::ids::JobId;
    use rota_core::plan::Plan;

    use super::*;
    use crate::record::PlanRecord;
    use crate::rules::ProfileText;

    #[test]
    fn a_plan_in_the_journal_that_does_not_fit_is_reported_with_its_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path()).expect("opened");
        let plan = PlanRecord { run: vec![(JobId(7), None)], ..PlanRecord::from(&Plan::default()) };
        let records = [
            Record::RoundBegan { round: 1, protects: None },
            Record::Planned { round: 1, plan, memory: "{}".into(), keeps_memory: false },
            Record::RoundBegan { round: 2, protects: None },
        ];
        let writes: Vec<_> = records.into_iter().map(|record| Write::Record(Time(5), record)).collect();
        store.commit(&writes).expect("written");
        let rules = Rules::plain(ProfileText::load("synergy").expect("built in"));
        let folded = fold(&store, &rules).expect("read");
        let expected = "journal line 2: its plan does not fit and was left out: \
                        job 7: is not active, so a plan cannot run it";
        assert_eq!(folded.refused, [expected]);
        let cluster = folded.cluster;
        assert_eq!((cluster.n_rounds(), cluster.policy().memory.as_str()), (2, ""), "the rest is read");
    }
}
