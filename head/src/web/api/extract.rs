//! What comes in: bodies, parameters of the query, numbers and names in paths. What cannot be read is answered in our shape.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use rota_core::ids::JobId;
use rota_transport::value::{LongText, Name, Text};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::web::error::{Answer, ApiError};
use crate::web::sessions::Session;

/// A body in JSON; an absent one is an empty object.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_json =
            kind.is_none_or(|kind| kind.split(';').next().unwrap_or("").trim() == "application/json");
        if !is_json {
            let why = "the body has to be JSON, with the header `content-type: application/json`";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            let status = axum::response::IntoResponse::into_response(rejection).status();
            ApiError::new(status, "the body cannot be read, or is too large")
        })?;
        let bytes = if bytes.is_empty() { &b"{}"[..] } else { &bytes[..] };
        serde_json::from_slice(bytes)
            .map(Body)
            .map_err(|error| ApiError::bad(format!("the body cannot be read: {error}")))
    }
}

/// Parameters of the query.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(found)) => Ok(Asked(found)),
            Err(rejection) => Err(ApiError::bad(rejection.body_text())),
        }
    }
}

/// The number of a job in the path.
pub(crate) struct JobInPath(pub(crate) JobId);

impl<S: Send + Sync> FromRequestParts<S> for JobInPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let text = in_path(parts, state).await?;
        let id =
            text.parse().map_err(|_| ApiError::not_found(format!("`{text}` is not the number of a job")))?;
        Ok(JobInPath(JobId(id)))
    }
}

/// The name of a node in the path.
pub(crate) struct NodeInPath(pub(crate) Name);

impl<S: Send + Sync> FromRequestParts<S> for NodeInPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let text = in_path(parts, state).await?;
        let name = Name::new(text.as_str())
            .map_err(|_| ApiError::not_found(format!("{text}: there is no such node")))?;
        Ok(NodeInPath(name))
    }
}

async fn in_path<S: Send + Sync>(parts: &mut Parts, state: &S) -> Answer<String> {
    let found = Path::<String>::from_request_parts(parts, state).await;
    found.map(|Path(text)| text).map_err(|rejection| ApiError::bad(rejection.body_text()))
}

impl<S: Send + Sync> FromRequestParts<S> for Session {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let none = || ApiError::new(StatusCode::UNAUTHORIZED, "you are not signed in");
        parts.extensions.get::<Session>().cloned().ok_or_else(none)
    }
}

/// A text of the wire.
pub(crate) fn text(what: &str, text: impl Into<String>) -> Answer<Text> {
    Text::new(text.into()).map_err(|error| ApiError::refused(format!("{what}: {error}")))
}

/// A long text of the wire.
pub(crate) fn long_text(what: &str, text: impl Into<String>) -> Answer<LongText> {
    LongText::new(text.into()).map_err(|error| ApiError::refused(format!("{what}: {error}")))
}

/// How many are on a page.
pub(crate) fn limit(asked: Option<u32>) -> Answer<usize> {
    match asked.unwrap_or(100) {
        limit @ 1..=1_000 => Ok(limit as usize),
        limit => Err(ApiError::bad(format!("limit {limit}: must be from 1 to 1000"))),
    }
}

/// A position in a list as a word that programs send back.
pub(crate) fn cursor(position: &impl Serialize) -> Option<String> {
    let bytes = serde_json::to_vec(position).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The position that such a word stands for.
pub(crate) fn position<T: DeserializeOwned>(cursor: Option<&str>) -> Answer<Option<T>> {
    let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else { return Ok(None) };
    let wrong = || ApiError::bad("this cursor is not one of this list");
    let byte = |at: usize| u8::from_str_radix(cursor.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..cursor.len()).step_by(2).map(byte).collect();
    serde_json::from_slice(&bytes.ok_or_else(wrong)?).map(Some).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was_and_another_one_is_refused() {
        let given = cursor(&("née <b>", 17_u32)).expect("a cursor");
        assert_eq!(position::<(String, u32)>(Some(&given)).expect("ours"), Some(("née <b>".into(), 17)));
        assert!(position::<(String, u32)>(None).expect("none").is_none());
        for wrong in ["zz", "0", "7b7d", "ééé", "5b5d00"] {
            assert!(position::<(String, u32)>(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
