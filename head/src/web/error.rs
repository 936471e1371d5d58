//! What a request that is not carried out is answered with: a status, a word for programs, a sentence for people.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::shapes::{ErrorBody, ErrorText};
use crate::engine::refusal::{Refusal, RefusalKind};
use crate::store::StoreError;

/// A request that is not carried out.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
}

pub(crate) type Answer<T> = Result<T, ApiError>;

/// The word for a status.
fn code_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "bad-request",
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::NOT_FOUND => "not-found",
        StatusCode::METHOD_NOT_ALLOWED => "method-not-allowed",
        StatusCode::NOT_ACCEPTABLE => "not-acceptable",
        StatusCode::CONFLICT => "conflict",
        StatusCode::PAYLOAD_TOO_LARGE => "too-large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported-media-type",
        StatusCode::UNPROCESSABLE_ENTITY => "refused",
        StatusCode::TOO_MANY_REQUESTS => "too-many",
        StatusCode::SERVICE_UNAVAILABLE => "unavailable",
        status if status.is_client_error() => "bad-request",
        _ => "internal",
    }
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        ApiError { status, code: code_of(status), message: message.into() }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::NOT_FOUND, message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// Something that the engine refused.
    pub(crate) fn of(kind: RefusalKind, why: &str) -> Self {
        let status = match kind {
            RefusalKind::Forbidden => StatusCode::FORBIDDEN,
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::Conflict => StatusCode::CONFLICT,
            RefusalKind::Refused => StatusCode::UNPROCESSABLE_ENTITY,
            RefusalKind::TooMany => StatusCode::TOO_MANY_REQUESTS,
            RefusalKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
        ApiError::new(status, why)
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        ApiError::of(refusal.kind(), &refusal.to_string())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        tracing::error!("a page of the journal or the history cannot be read: {error}");
        ApiError::unavailable(error.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let ApiError { status, code, message } = self;
        let mut response = json(status, &ErrorBody { error: ErrorText { code, message } });
        if status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// An answer as JSON.
pub(crate) fn json(status: StatusCode, value: &impl serde::Serialize) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    match serde_json::to_vec(value) {
        Ok(body) => (status, kind, body).into_response(),
        Err(error) => {
            tracing::error!("an answer cannot be written as JSON: {error}");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                kind,
                r#"{"error":{"code":"internal","message":"the answer cannot be written"}}"#,
            )
                .into_response()
        }
    }
}

/// An answer of the framework in the shape of ours: everything below `/api` that goes wrong is JSON.
pub(crate) fn in_shape(response: Response) -> Response {
    let status = response.status();
    let is_json = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !(status.is_client_error() || status.is_server_error()) || is_json {
        return response;
    }
    let why = match status {
        StatusCode::METHOD_NOT_ALLOWED => "this path is not asked for in this way",
        StatusCode::PAYLOAD_TOO_LARGE => "the request is too large",
        StatusCode::NOT_FOUND => "there is nothing at this path",
        _ => "the request cannot be read",
    };
    let mut shaped = ApiError::new(status, why).into_response();
    if let Some(allow) = response.headers().get(header::ALLOW) {
        shaped.headers_mut().insert(header::ALLOW, allow.clone());
    }
    shaped
}
