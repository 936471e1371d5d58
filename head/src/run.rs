//! A head from start to end: connections are accepted, the journal is folded, the threads are started.

use std::sync::{Arc, mpsc as std_mpsc};
use std::time::Duration;

use rota_core::time::Time;
use rota_transport::identity::{Credentials, Role};
use rota_transport::quic::Listener;
use rota_transport::value::TimeScale;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::clock::{self, Clock};
use crate::cluster_state::ClusterState;
use crate::decider::{self, Answer, Ask, DeciderLink, PolicyUseError, Scripts};
use crate::engine::{Access, Engine, Input, RoundSettings, RoundTimer};
use crate::error::HeadError;
use crate::joining::JoinDesk;
use crate::record::Record;
use crate::roles::RolesFile;
use crate::rules::Rules;
use crate::serve::{self, Lobby};
use crate::settings::HeadSettings;
use crate::state::{State, StateSettings};
use crate::store::history::EndedJob;
use crate::store::{Store, StoreError, Write};
use crate::upkeep::{self, Upkeep};

/// How many inputs may be queued for the engine.
const MOST_INPUTS: usize = 16_384;
/// The policy of a head for which none was ever chosen.
const DEFAULT_POLICY: &str = "las+tune";
/// Scripts and solvers recurse deeply.
const DECIDER_STACK_BYTES: usize = 64 << 20;

/// Runs a head until a user or a signal ends it.
pub fn run(settings: &HeadSettings) -> Result<(), HeadError> {
    let mut store = Store::open(&settings.state)?;
    let credentials = Credentials::load_for(&settings.credentials, Role::Head)?;
    let (roles_file, roles) = RolesFile::open(settings.roles.as_deref())?;
    let scale = settings.rules.time_scale;
    let time_scale = TimeScale::new(scale).map_err(HeadError::TimeScale)?;
    settings.rules.profile_set()?;
    let epoch = store.next_epoch()?;
    let seen = store.seen()?;
    let system = |what| move |error| HeadError::System { what, error };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(system("a runtime"))?;
    // Agents are answered from here on, so that no lease runs out while the journal is read.
    let (inputs, received) = mpsc::channel(MOST_INPUTS);
    let (ready, is_ready) = watch::channel(false);
    let lobby = Lobby { epoch, terms: settings.terms, seen: seen.iter().cloned().collect(), is_ready };
    let guard = runtime.enter();
    let desk = settings.pki.clone().map(JoinDesk::new).transpose()?.map(Arc::new);
    let listener = Arc::new(listen(settings, credentials, desk.is_some())?);
    drop(guard);
    let door = serve::serve(Arc::clone(&listener), roles_file, desk, inputs.clone(), Arc::new(lobby));
    let door = runtime.spawn(door);
    let Folded { mut cluster, last, refused } = fold(&store, &settings.rules)?;
    let clock = Clock::new(start_time(&store, last, scale)?, scale);
    let moment = clock.moment();
    let rules = Some(Box::new(settings.rules.clone()));
    let started = Record::HeadStarted { epoch, version: env!("CARGO_PKG_VERSION").into(), rules };
    cluster.apply(moment.now, &started);
    let (first, trouble) = first_policy(settings, &cluster)?;
    let noted = refused.into_iter().chain(trouble.clone()).map(|text| Record::Noted { text });
    let mut writes: Vec<_> =
        [started].into_iter().chain(noted).map(|record| Write::Record(moment.now, record)).collect();
    // Most of them are in the history already; not those of a journal that an earlier version wrote.
    let ended = cluster.jobs().filter_map(|(id, job)| EndedJob::of(id, job, &cluster));
    writes.extend(ended.map(|row| Write::Ended(Box::new(row))));
    store.commit(&writes)?;
    let copies_checkpoints = settings.copies_checkpoints;
    let state_settings = StateSettings { epoch, terms: settings.terms, time_scale, copies_checkpoints };
    let state = State::new(state_settings, cluster, seen, clock.moment());
    let timer = RoundTimer::new(RoundSettings {
        round: settings.rules.round,
        wakes_early: !settings.rules.is_on_grid,
        least_gap: settings.least_gap,
        wait_for: settings.wait_for,
        min_run: settings.rules.min_run,
    });
    let (asks, asked) = std_mpsc::channel();
    if let Some(first) = first {
        // The receiver is in scope: this cannot fail.
        let _ = asks.send(first);
    }
    let access = Access { roles, policies: settings.policies.clone() };
    let mut link = DeciderLink::new(asks);
    if let Some(trouble) = trouble {
        link.has_refused(&trouble);
    }
    let (chores, to_do) = std_mpsc::channel();
    let upkeep = Upkeep::new(chores, settings.keep, &store)?;
    let reader = store.reader()?;
    let engine = Engine::new(state, store, clock, settings.rules.clone(), timer, link, access, upkeep);
    let answers = inputs.clone();
    let thread = std::thread::Builder::new().name("decider".into()).stack_size(DECIDER_STACK_BYTES);
    let decider = thread.spawn(move || {
        decider::run(&asked, |answer: Answer| {
            // The engine is gone when the head ends.
            let _ = answers.blocking_send(Input::Decider(answer));
        });
    });
    let decider = decider.map_err(system("a thread"))?;
    let done = inputs.clone();
    let thread = std::thread::Builder::new().name("upkeep".into());
    let keeper = thread.spawn(move || {
        upkeep::run(&to_do, &reader, |chore| {
            let _ = done.blocking_send(Input::Upkeep(chore));
        });
    });
    let keeper = keeper.map_err(system("a thread"))?;
    let _ = ready.send(true);
    runtime.block_on(attend(listener, door, engine, inputs, received));
    // They may still be at work. What they do is not needed any more, so they end with the process.
    drop((decider, keeper));
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}

fn listen(settings: &HeadSettings, credentials: Credentials, issues: bool) -> Result<Listener, HeadError> {
    let listener = Listener::bind_with(settings.listen, credentials, issues)?;
    if let Some(warning) = listener.warning() {
        tracing::warn!("{warning}");
    }
    let address = listener.address().ok_or(HeadError::NoAddress)?;
    tracing::info!("head listens at {address}, state in {}", settings.state.display());
    Ok(listener)
}

async fn attend(
    listener: Arc<Listener>,
    door: JoinHandle<()>,
    engine: Engine,
    inputs: mpsc::Sender<Input>,
    received: mpsc::Receiver<Input>,
) {
    let signals = tokio::spawn(async move {
        match signal().await {
            Ok(name) => {
                tracing::info!("{name}: the head ends, jobs go on for their lease");
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
}

/// Waits for a signal that asks the head to end.
async fn signal() -> std::io::Result<&'static str> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => Ok("SIGTERM"),
        result = tokio::signal::ctrl_c() => result.map(|()| "SIGINT"),
    }
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
        from = line + 1;
        for (line, time, record) in &lines {
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
