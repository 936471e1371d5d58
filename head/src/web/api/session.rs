//! Signing in and out, and who is signed in.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::{PAGE, good};
use crate::engine::sights;
use crate::web::Shared;
use crate::web::error::{Answer, ApiError};
use crate::web::guard::bearer;
use crate::web::sessions::Session;
use crate::web::shapes::Me;

use super::extract::Asked;

/// What a link says.
#[derive(Deserialize)]
pub(crate) struct Link {
    #[serde(default)]
    token: String,
}

/// Uses a link up: the browser gets a cookie and goes to the page.
pub(crate) async fn login(State(shared): State<Arc<Shared>>, Asked(link): Asked<Link>) -> Response {
    let Some((cookie, lasts_s)) = shared.sessions.enter(&link.token) else {
        let why = "this link was used already, or is too old: run `rota web login` for another\n";
        return (StatusCode::FORBIDDEN, why).into_response();
    };
    let secure = if shared.is_tls { "; Secure" } else { "" };
    let name = shared.cookie_name();
    let cookie = format!("{name}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age={lasts_s}{secure}");
    let mut response = Redirect::to(PAGE).into_response();
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

/// Who is signed in, and what they may do.
#[utoipa::path(get, path = "/api/v1/me", operation_id = "who_am_i", tag = "session", responses((status = 200, description = "Who is signed in.", body = Me)))]
pub(crate) async fn me(State(shared): State<Arc<Shared>>, session: Session) -> Answer<Response> {
    let who = shared.asking.look_at_the_head(&session, |_, _, person| sights::who(person)).await?;
    Ok(good(&Me {
        user: session.user.to_string(),
        role: who.role.map_or("none", |role| role.as_str()).to_owned(),
        tenants: who.tenants,
        csrf: session.csrf.unwrap_or_default(),
        expires_unix_s: session.expires_unix_s,
        may: who.may,
    }))
}

/// Signs out.
#[utoipa::path(post, path = "/api/v1/logout", operation_id = "sign_out", tag = "session", responses((status = 204, description = "Signed out.")))]
pub(crate) async fn logout(
    State(shared): State<Arc<Shared>>,
    _session: Session,
    headers: HeaderMap,
) -> Answer<Response> {
    let cookie = shared.cookie(&headers);
    let secret = bearer(&headers).or(cookie.as_deref());
    shared.sessions.end(secret.ok_or_else(|| ApiError::bad("nobody is signed in"))?);
    Ok(StatusCode::NO_CONTENT.into_response())
}
