//! The head: the scheduler of a live cluster.
//!
//! ```text
//!  agents ─┐                          ┌─ desk      the policy decides, in a thread of its own
//!          ├─ serve ─▶ engine ─▶ state ─ books     scheduler and jobs, changed by records alone
//!  users ──┘   ▲         │      │     └─ fleet     launches that are alive, rank by rank
//!              └─────────┤      └─ sessions        one with each agent
//!                      store                       SQLite: written before anything leaves
//! ```
//!
//! `record` is what is written down, `users`, `views` and `explain` what people are told, `launch` how an allocation becomes
//! orders, `attempts` what becomes of launches, `copies` how checkpoints move with their jobs, `forward` how time is passed over, `clock` the only clock. `rules` is what decisions depend on, `replay` reads a journal and asks a policy again,
//! `ledger` turns one into the books of a run, `recorded` into a trace. The sessions and the wire are in
//! `rota-transport`, decisions in `rota-core` and the scripts.

#[cfg(test)]
mod absurd;
mod attempts;
mod books;
mod clock;
mod copies;
mod desk;
mod engine;
mod explain;
mod fleet;
mod forward;
mod launch;
pub mod ledger;
pub mod pace;
mod record;
pub mod recorded;
pub mod replay;
mod rounds;
mod rules;
mod serve;
mod state;
mod store;
mod users;
mod views;

pub use books::{Applied, Books, JobRecord, Standing};
pub use record::{PlanRecord, Record};
pub use rules::{ProfileText, Rules};
pub use store::{Store, StoreError, read_journal};

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, mpsc as std_mpsc};

use anyhow::{Context as _, Result, anyhow};
use rota_core::time::{Span, Time};
use rota_transport::identity::{Credentials, Role};
use rota_transport::quic::Listener;
use rota_transport::session::Terms;
use rota_transport::value::TimeScale;
use tokio::sync::mpsc;

use clock::Clock;
use desk::{Answer, Ask};
use engine::{Engine, Input};
use rounds::Rounds;
use state::State;
use store::Write;

/// Inputs that may wait for the engine.
const MOST_INPUTS: usize = 16_384;

/// How a head runs.
#[derive(Clone, Debug)]
pub struct HeadSettings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Its state directory.
    pub state: PathBuf,
    /// Its key and certificate.
    pub credentials: PathBuf,
    /// The policy of a new state directory, or a change of it: name and parameters.
    pub policy: Option<(String, Vec<(String, String)>)>,
    /// What decisions depend on.
    pub rules: Rules,
    /// Real time between two rounds at least.
    pub least_gap: Span,
    /// Agents that must be there before the first round.
    pub wait_for: usize,
    /// What it agrees on with agents.
    pub terms: Terms,
    /// Whether checkpoints are copied to the node that a job moves to.
    pub copies_checkpoints: bool,
}

/// The policy of a head that was never told another.
const DEFAULT_POLICY: &str = "las+tune";

/// Runs a head until it is told to end, or a signal comes.
pub fn run(settings: &HeadSettings) -> Result<()> {
    let mut store = Store::open(&settings.state)?;
    let credentials = Credentials::load_for(&settings.credentials, Role::Head)?;
    let scale = settings.rules.time_scale;
    let time_scale = TimeScale::new(scale).map_err(|error| anyhow!("--time-scale: {error}"))?;
    let mut books = Books::new(&settings.rules)?;
    let last = reload(&store, &mut books)?;
    let epoch = store.next_epoch()?;
    let clock = Clock::new(start_time(&store, last, scale)?, scale);
    let moment = clock.moment();
    let rules = Some(Box::new(settings.rules.clone()));
    let started = Record::HeadStarted { epoch, version: env!("CARGO_PKG_VERSION").into(), rules };
    store.commit(&[Write::Record(moment.now, started)])?;
    let (policy, set, memory) = match (&settings.policy, books.chosen.clone()) {
        (Some((policy, set)), _) => (policy.clone(), set.clone(), String::new()),
        (None, known) if !known.policy.is_empty() => (known.policy, known.set, known.memory),
        (None, _) => (DEFAULT_POLICY.to_owned(), Vec::new(), String::new()),
    };
    // A policy that does not even compile is said now, not when somebody looks.
    desk::load(&policy, &set).with_context(|| format!("policy {policy}"))?;
    let mut state = State::new(epoch, settings.terms, time_scale, books, store.seen()?, moment);
    state.copies.is_on = settings.copies_checkpoints;
    let rounds = Rounds {
        round: settings.rules.round,
        wakes_early: !settings.rules.is_on_grid,
        least_gap: settings.least_gap,
        wait_for: settings.wait_for,
        min_run: settings.rules.min_run,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (inputs, received) = mpsc::channel(MOST_INPUTS);
    let (asks, asked) = std_mpsc::channel();
    asks.send(Ask::Take { ticket: 0, policy, set, memory, snapshot: None }).context("the desk")?;
    let engine = Engine::new(state, store, clock, rounds, settings.rules.clone(), asks);
    let answers = inputs.clone();
    let desk = std::thread::Builder::new().name("desk".into()).stack_size(64 << 20).spawn(move || {
        desk::sit(&asked, |answer: Answer| {
            // Nobody listens any more when the head ends.
            let _ = answers.blocking_send(Input::Desk(answer));
        });
    })?;
    runtime.block_on(attend(settings, credentials, engine, inputs, received))?;
    // The desk may be deep in a decision that nobody waits for: it is left alone and ends with the process.
    drop(desk);
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    Ok(())
}

async fn attend(
    settings: &HeadSettings,
    credentials: Credentials,
    engine: Engine,
    inputs: mpsc::Sender<Input>,
    received: mpsc::Receiver<Input>,
) -> Result<()> {
    let listener = Arc::new(Listener::bind(settings.listen, credentials)?);
    if let Some(warning) = listener.warning() {
        eprintln!("{warning}");
    }
    let address = listener.address().context("the listener has no address")?;
    eprintln!("head listens at {address}, state in {}", settings.state.display());
    let door = tokio::spawn(serve::serve(Arc::clone(&listener), inputs.clone()));
    let signals = tokio::spawn(async move {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            _ = terminate.recv() => {}
            result = tokio::signal::ctrl_c() => result?,
        }
        let _ = inputs.send(Input::Shutdown).await;
        std::io::Result::Ok(())
    });
    engine.run(received).await;
    signals.abort();
    // Answers of the last batch are still on their way.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    door.abort();
    listener.close("the head ends");
    let _ = tokio::time::timeout(std::time::Duration::from_secs(1), listener.closed()).await;
    Ok(())
}

/// Reads the journal into the books; the time of its last line.
fn reload(store: &Store, books: &mut Books) -> Result<Time> {
    let (mut from, mut last) = (0, Time::ZERO);
    loop {
        let lines = store.journal(from, 10_000)?;
        let Some((line, _, _)) = lines.last() else { return Ok(last) };
        from = line + 1;
        for (_, time, record) in &lines {
            books.apply(*time, record);
            last = last.max(*time);
        }
    }
}

/// The head's time now: since its state directory was made, the hours of its absence included.
fn start_time(store: &Store, last: Time, scale: f64) -> Result<Time> {
    let now_us = clock::calendar_us();
    let born_us = match store.meta("born_us")?.and_then(|text| text.parse::<i64>().ok()) {
        Some(born_us) => born_us,
        None => {
            store.set_meta("born_us", &now_us.to_string())?;
            now_us
        }
    };
    let by_calendar = Time(((now_us - born_us).max(0) as f64 * scale) as i64);
    // A calendar that was set back must not turn time back.
    Ok(by_calendar.max(last))
}
