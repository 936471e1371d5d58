//! Figures for Prometheus, and whether the head lives and is ready.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus::core::Collector;
use prometheus::{Gauge, GaugeVec, Opts, Registry, TextEncoder};
use rota_transport::identity::UserRole;
use rota_transport::value::Name;

use super::Shared;
use super::error::{Answer, ApiError};
use super::sessions::Session;
use crate::engine::sights::{self, Figures};

/// Whether the head takes requests: its journal has been read, and its disk takes what it writes.
pub(crate) async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    if !shared.asking.is_ready() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the journal is being read\n").into_response();
    }
    let look = |engine: &mut _, _, _: &_| sights::disk_trouble(engine);
    match shared.asking.look_at_the_head(&nobody(), look).await {
        Ok(None) => "ready\n".into_response(),
        // Why is for those who are signed in.
        Ok(Some(_)) => (StatusCode::SERVICE_UNAVAILABLE, "the journal cannot be written\n").into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the head does not answer\n").into_response(),
    }
}

/// Somebody who may do nothing.
fn nobody() -> Session {
    Session::of_nobody(Name::new("nobody").expect("a name"), UserRole::Submit)
}

/// All figures, as Prometheus reads them.
pub(crate) async fn metrics(State(shared): State<Arc<Shared>>) -> Answer<Response> {
    let look = |engine: &mut _, moment, _: &_| sights::figures(engine, moment);
    let figures = shared.asking.look_at_the_head(&nobody(), look).await?;
    let text = text(&figures, shared.sessions.len(), shared.hub.n_viewers())
        .map_err(|error| ApiError::unavailable(format!("the figures cannot be written: {error}")))?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

fn text(figures: &Figures, n_sessions: usize, n_streams: usize) -> Result<String, prometheus::Error> {
    let state = Registry::new();
    let one = |name: &str, about: &str, value: f64| -> Result<(), prometheus::Error> {
        let gauge = Gauge::new(name, about)?;
        gauge.set(value);
        state.register(Box::new(gauge))
    };
    let many =
        |name: &str, about: &str, label: &str, values: &[(String, f64)]| -> Result<(), prometheus::Error> {
            let gauges = GaugeVec::new(Opts::new(name, about), &[label])?;
            for (value, number) in values {
                gauges.with_label_values(&[value]).set(*number);
            }
            // Without a value there is nothing to say.
            if gauges.collect().iter().all(|family| family.get_metric().is_empty()) {
                return Ok(());
            }
            state.register(Box::new(gauges))
        };
    let version = [(env!("CARGO_PKG_VERSION").to_owned(), 1.0)];
    many("rota_build_info", "The head's version.", "version", &version)?;
    one(
        "rota_head_ready",
        "Whether enough agents are there and rounds are held.",
        f64::from(u8::from(figures.is_ready)),
    )?;
    one("rota_head_epoch", "How often the head has started.", figures.epoch as f64)?;
    one("rota_head_time_seconds", "The time on the head's clock.", figures.now_s)?;
    one(
        "rota_policy_trouble",
        "Whether the policy or the disk is in trouble.",
        f64::from(u8::from(figures.has_trouble)),
    )?;
    many("rota_jobs", "Jobs that have not ended, by state.", "state", &figures.jobs)?;
    one("rota_queue_gpus", "GPUs that jobs ask for which wait.", figures.gpus_waiting)?;
    one(
        "rota_queue_oldest_wait_seconds",
        "How long the job has waited that came first of those that wait.",
        figures.oldest_wait_s,
    )?;
    many("rota_gpus", "GPUs of nodes that are up, by state.", "state", &figures.gpus)?;
    many("rota_nodes", "Nodes, by state.", "state", &figures.nodes)?;
    one(
        "rota_agents_connected",
        "Agents that are connected and have said what they have.",
        figures.n_agents,
    )?;
    many("rota_tenant_gpus_held", "GPUs that the jobs of a tenant hold.", "tenant", &figures.tenant_held)?;
    many(
        "rota_tenant_gpus_quota",
        "The most GPUs that the jobs of a tenant may hold.",
        "tenant",
        &figures.tenant_quota,
    )?;
    many("rota_tenant_jobs_waiting", "Jobs of a tenant that wait.", "tenant", &figures.tenant_waiting)?;
    one("rota_journal_lines", "The number of the last line of the journal.", figures.journal_lines)?;
    one("rota_journal_size_bytes", "The size of the state's database.", figures.journal_bytes)?;
    one(
        "rota_journal_writable",
        "Whether the disk takes what is written.",
        f64::from(u8::from(figures.is_writable)),
    )?;
    one("rota_web_sessions", "People and programs that are signed in.", n_sessions as f64)?;
    one("rota_web_streams", "Viewers of the live page.", n_streams as f64)?;
    let families = [state.gather(), figures.meters.registry.gather()].concat();
    TextEncoder::new().encode_to_string(&families)
}
