//! Nodes: the list, a page, and what operators do with them.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use rota_transport::access::RequestKind;
use rota_transport::message::{FromUser, NodeService};
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Asked, Body, NodeInPath, cursor, limit, position, text};
use super::good;
use super::records::events_of_node;
use crate::engine::sights;
use crate::web::Shared;
use crate::web::error::{Answer, ApiError};
use crate::web::sessions::Session;
use crate::web::shapes::{GiveUpShape, Node, NodeChanged, NodePage, Page, ServiceShape, ServiceWord};

/// Which nodes.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeQuery {
    /// States, joined by commas.
    state: Option<String>,
    /// A part of the name, the GPU type or the reason.
    text: Option<String>,
    /// How many.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The end of the page before.
    cursor: Option<String>,
}

/// Nodes, by name.
#[utoipa::path(get, path = "/api/v1/nodes", operation_id = "list_nodes", tag = "nodes", params(NodeQuery),
    responses((status = 200, description = "Nodes.", body = Page<Node>)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Asked(query): Asked<NodeQuery>,
) -> Answer<Response> {
    let limit = limit(query.limit)?;
    let after: Option<String> = position(query.cursor.as_deref())?;
    let look = |engine: &mut _, _, person: &_| Ok(sights::nodes(engine, person));
    let mut items = shared.asking.look(&session, RequestKind::Nodes, look).await?;
    let states: Option<Vec<&str>> = query.state.as_deref().map(|states| states.split(',').collect());
    let wanted = query.text.as_deref().unwrap_or_default().to_lowercase();
    items.retain(|node| {
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        states.as_ref().is_none_or(|states| states.contains(&node.state.as_str()))
            && (has(&node.name) || has(&node.gpu_type) || has(&node.reason))
    });
    let total = Some(items.len() as u64);
    items.retain(|node| after.as_ref().is_none_or(|after| node.name > *after));
    let is_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| is_more).and_then(|node| cursor(&node.name));
    Ok(good(&Page { items, next, total }))
}

/// A node and everything that is known of it.
#[utoipa::path(get, path = "/api/v1/nodes/{name}", operation_id = "show_node", tag = "nodes", params(("name" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The node.", body = NodePage)))]
pub(crate) async fn page(
    State(shared): State<Arc<Shared>>,
    session: Session,
    NodeInPath(name): NodeInPath,
) -> Answer<Response> {
    let look = move |engine: &mut _, _, person: &_| sights::node(engine, person, &name);
    let (node, placements, drained_reason) = shared.asking.look(&session, RequestKind::Nodes, look).await?;
    let events = match node.index {
        Some(index) => events_of_node(&shared, &session, index).await?,
        None => Vec::new(),
    };
    Ok(good(&NodePage { node, placements, drained_reason, events }))
}

/// Takes a node out of service, or back into it.
#[utoipa::path(post, path = "/api/v1/nodes/{name}/service", operation_id = "service_node", tag = "nodes", request_body = ServiceShape,
    params(("name" = String, Path, description = "Its name.")),
    responses((status = 200, description = "Done.", body = NodeChanged)))]
pub(crate) async fn service(
    State(shared): State<Arc<Shared>>,
    session: Session,
    NodeInPath(node): NodeInPath,
    Body(ServiceShape { service, reason }): Body<ServiceShape>,
) -> Answer<Response> {
    let name = node.to_string();
    let how = match service {
        ServiceWord::Out => NodeService::Out,
        ServiceWord::OutWhenIdle => NodeService::OutWhenIdle,
        ServiceWord::In => NodeService::In,
    };
    let reason = text("reason", reason)?;
    shared.asking.ask(&session, FromUser::ServiceNode { node, service: how, reason }).await?;
    Ok(good(&NodeChanged { node: name, service: Some(service) }))
}

/// Gives up a node that cannot be reached: its jobs are started elsewhere, whatever may still run there.
#[utoipa::path(post, path = "/api/v1/nodes/{name}/give-up", operation_id = "give_up_node", tag = "nodes", request_body = GiveUpShape,
    params(("name" = String, Path, description = "Its name.")),
    responses((status = 200, description = "Done.", body = NodeChanged)))]
pub(crate) async fn give_up(
    State(shared): State<Arc<Shared>>,
    session: Session,
    NodeInPath(node): NodeInPath,
    Body(asked): Body<GiveUpShape>,
) -> Answer<Response> {
    if !asked.nothing_runs_there {
        return Err(ApiError::bad(
            "if the node's jobs still run, they would run twice at the same time: make sure that none of them is alive, and say so with nothing_runs_there",
        ));
    }
    let name = node.to_string();
    shared.asking.ask(&session, FromUser::GiveUp { node }).await?;
    Ok(good(&NodeChanged { node: name, service: None }))
}
