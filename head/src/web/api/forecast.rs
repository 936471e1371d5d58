//! Forecasts: the present state simulated ahead, under the policy in use or another one.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use rota_transport::access::RequestKind;
use rota_transport::message::ToUser;
use tokio::sync::mpsc;

use super::extract::Body;
use super::good;
use crate::engine::{Reply, Said, forecasts};
use crate::web::Shared;
use crate::web::error::{Answer, ApiError};
use crate::web::sessions::Session;
use crate::web::shapes::{ForecastQuestion, ForecastShape};

/// The most runs that can be asked for.
const MOST_SEEDS: u32 = 64;
/// The largest error of estimates.
const MOST_NOISE: f64 = 2.0;
/// The farthest horizon: ten years.
const MOST_S: f64 = 3.2e8;

/// What is expected under the policy in use.
#[utoipa::path(get, path = "/api/v1/forecast", operation_id = "show_forecast", tag = "forecast", responses((status = 200, description = "What is expected.", body = ForecastShape)))]
pub(crate) async fn present(State(shared): State<Arc<Shared>>, session: Session) -> Answer<Response> {
    let (reply, answers) = replies();
    let look = move |engine: &mut _, moment, person: &_| {
        forecasts::whole(engine, moment, person, reply);
        Ok(())
    };
    shared.asking.look(&session, RequestKind::Forecast, look).await?;
    Ok(good(&told(answers).await?))
}

/// What is expected under another policy, with other errors of the estimates, or farther ahead.
#[utoipa::path(post, path = "/api/v1/forecast", operation_id = "ask_forecast", tag = "forecast", request_body = ForecastQuestion,
    responses((status = 200, description = "What is expected.", body = ForecastShape)))]
pub(crate) async fn other(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Body(asked): Body<ForecastQuestion>,
) -> Answer<Response> {
    if asked.seeds.is_some_and(|seeds| !(1..=MOST_SEEDS).contains(&seeds)) {
        return Err(ApiError::bad(format!("seeds: must be from 1 to {MOST_SEEDS}")));
    }
    if asked.noise.is_some_and(|noise| !(0.0..=MOST_NOISE).contains(&noise)) {
        return Err(ApiError::bad(format!("noise: must be from 0 to {MOST_NOISE}")));
    }
    if asked.horizon_s.is_some_and(|horizon_s| !(1.0..=MOST_S).contains(&horizon_s)) {
        return Err(ApiError::bad(format!("horizon_s: must be from 1 to {MOST_S}")));
    }
    let (reply, answers) = replies();
    let name = asked.policy.clone();
    let look =
        move |engine: &mut _, moment, person: &_| forecasts::as_asked(engine, moment, person, asked, reply);
    shared.asking.look(&session, RequestKind::WhatIfText, look).await?;
    let mut shape = told(answers).await?;
    if let Some(name) = name {
        shape.policy = name;
    }
    Ok(good(&shape))
}

fn replies() -> (Reply, mpsc::Receiver<Said>) {
    mpsc::channel(4)
}

async fn told(mut answers: mpsc::Receiver<Said>) -> Answer<ForecastShape> {
    while let Some(answer) = answers.recv().await {
        match answer {
            Said::Forecast(shape) => return Ok(*shape),
            Said::Refused { kind, why } => return Err(ApiError::of(kind, why.as_str())),
            Said::Message(ToUser::End) => break,
            Said::Message(_) | Said::Would(_) => {}
        }
    }
    Err(ApiError::unavailable("the head did not answer"))
}
