//! The head itself: what its decisions depend on, its time, its end.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use rota_core::time::Time;
use rota_transport::message::FromUser;
use serde::Deserialize;
use utoipa::ToSchema;

use super::cluster::status;
use super::extract::Body;
use super::jobs::texts;
use crate::web::Shared;
use crate::web::error::{Answer, ApiError};
use crate::web::sessions::Session;
use crate::web::shapes::Status;

/// A span of time to be skipped.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Jump {
    /// At most until then, on the head's clock.
    until_s: f64,
    /// Iterations that each launch must have done itself.
    #[serde(default)]
    n_iterations: u32,
}

/// Nothing to be said.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// What decisions depend on besides events.
#[utoipa::path(get, path = "/api/v1/rules", operation_id = "show_rules", tag = "head", responses((status = 200, description = "The rules.", body = Object)))]
pub(crate) async fn rules(State(shared): State<Arc<Shared>>, session: Session) -> Answer<Response> {
    let rules = texts(shared.asking.ask(&session, FromUser::Rules).await?);
    Ok(([(header::CONTENT_TYPE, "application/json")], rules).into_response())
}

/// Skips time in which nothing happens; for heads that were started with --fast-forward.
#[utoipa::path(post, path = "/api/v1/head/fast-forward", operation_id = "fast_forward", tag = "head", request_body = Jump,
    responses((status = 200, description = "How things stand then.", body = Status)))]
pub(crate) async fn fast_forward(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Body(jump): Body<Jump>,
) -> Answer<Response> {
    if !(0.0..=9e12).contains(&jump.until_s) {
        return Err(ApiError::bad(format!("until_s {}: is no time of the head's clock", jump.until_s)));
    }
    let (until, n_iterations) = (Time::from_secs_f64(jump.until_s), jump.n_iterations);
    shared.asking.ask(&session, FromUser::FastForward { until, n_iterations }).await?;
    status(State(shared), session).await
}

/// Ends the head; what runs goes on for its lease.
#[utoipa::path(post, path = "/api/v1/head/shutdown", operation_id = "shut_down", tag = "head", request_body = Nothing, responses((status = 204, description = "It ends.")))]
pub(crate) async fn shutdown(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Body(_): Body<Nothing>,
) -> Answer<Response> {
    shared.asking.ask(&session, FromUser::Shutdown).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Stops what runs, after a checkpoint, and ends the head.
#[utoipa::path(post, path = "/api/v1/head/stop-all", operation_id = "stop_all", tag = "head", request_body = Nothing, responses((status = 204, description = "It ends.")))]
pub(crate) async fn stop_all(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Body(_): Body<Nothing>,
) -> Answer<Response> {
    shared.asking.ask(&session, FromUser::StopAll).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
