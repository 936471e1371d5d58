//! The cluster in numbers, and tenants.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use rota_transport::access::RequestKind;

use super::good;
use crate::engine::sights;
use crate::web::Shared;
use crate::web::error::Answer;
use crate::web::sessions::Session;
use crate::web::shapes::{Page, Status, Tenant};

/// The cluster in numbers.
#[utoipa::path(get, path = "/api/v1/status", operation_id = "show_status", tag = "cluster", responses((status = 200, description = "How things stand.", body = Status)))]
pub(crate) async fn status(State(shared): State<Arc<Shared>>, session: Session) -> Answer<Response> {
    let look = |engine: &mut _, moment, _: &_| Ok(sights::status(engine, moment));
    Ok(good(&shared.asking.look(&session, RequestKind::Status, look).await?))
}

/// Whom jobs count for, and what they may hold.
#[utoipa::path(get, path = "/api/v1/tenants", operation_id = "list_tenants", tag = "cluster", responses((status = 200, description = "Tenants.", body = Page<Tenant>)))]
pub(crate) async fn tenants(State(shared): State<Arc<Shared>>, session: Session) -> Answer<Response> {
    let look = |engine: &mut _, _, person: &_| Ok(sights::tenants(engine, person));
    let items = shared.asking.look(&session, RequestKind::Jobs, look).await?;
    let total = Some(items.len() as u64);
    Ok(good(&Page { items, next: None, total }))
}
