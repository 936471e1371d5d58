//! One function for each request. The OpenAPI document is made from them and from the shapes, and served with them.

mod cluster;
mod extract;
mod forecast;
mod head;
mod jobs;
mod nodes;
mod policy;
mod records;
mod session;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Router, middleware};
use serde_json::{Value, json};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder, SecurityRequirement};
use utoipa::{OpenApi as _, ToSchema as _};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use extract::Asked;

use super::error::json;
use super::guard::guard;
use super::shapes::{ErrorBody, ErrorText};
use super::{Shared, metrics, stream};

/// The largest request.
const MOST_BYTES: usize = 8 << 20;
/// Where the page begins.
const PAGE: &str = "/live.html";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Rota",
        description = "The head of a Rota cluster. Who may ask for what is decided by the same rules as for the command line; \
                       `rota web login --token` prints a token for programs.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(ErrorBody, ErrorText))
)]
struct Document;

/// Everything that can be asked.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let (router, document) = described();
    let document: Arc<[u8]> = written(&document).into();
    let document = move || {
        let document = Arc::clone(&document);
        async move { ([(header::CONTENT_TYPE, "application/json")], document.to_vec()) }
    };
    router
        .route("/api/v1/openapi.json", get(document))
        .route("/api/v1/stream", get(stream::stream))
        .route("/login", get(session::login))
        .route("/metrics", get(metrics::metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(metrics::ready))
        .route("/", get(|| async { Redirect::to(PAGE) }))
        .fallback(page)
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard))
        .with_state(shared)
}

fn described() -> (Router<Arc<Shared>>, OpenApi) {
    let (router, mut document) = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(session::me))
        .routes(routes!(session::logout))
        .routes(routes!(cluster::status))
        .routes(routes!(cluster::tenants))
        .routes(routes!(jobs::list, jobs::submit))
        .routes(routes!(jobs::change))
        .routes(routes!(jobs::page))
        .routes(routes!(jobs::explain))
        .routes(routes!(jobs::output))
        .routes(routes!(records::job_history))
        .routes(routes!(nodes::list))
        .routes(routes!(nodes::page))
        .routes(routes!(nodes::service))
        .routes(routes!(nodes::give_up))
        .routes(routes!(records::events))
        .routes(routes!(records::history))
        .routes(routes!(records::usage))
        .routes(routes!(records::journal))
        .routes(routes!(policy::page))
        .routes(routes!(policy::of))
        .routes(routes!(policy::shipped))
        .routes(routes!(policy::what_if))
        .routes(routes!(policy::set))
        .routes(routes!(policy::reload))
        .routes(routes!(forecast::present, forecast::other))
        .routes(routes!(head::rules))
        .routes(routes!(head::fast_forward))
        .routes(routes!(head::shutdown))
        .routes(routes!(head::stop_all))
        .split_for_parts();
    describe_errors(&mut document);
    describe_doors(&mut document);
    (router, document)
}

/// The document as JSON. Lists of a fixed length are described by the kind of their items, which generators of clients
/// understand, and not place by place.
fn written(document: &OpenApi) -> Vec<u8> {
    let mut document = serde_json::to_value(document).unwrap_or_default();
    without_places(&mut document);
    serde_json::to_vec(&document).unwrap_or_default()
}

fn without_places(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_places),
        Value::Object(fields) => {
            if let Some(Value::Array(places)) = fields.remove("prefixItems") {
                let n_places = places.len();
                let mut kinds: Vec<Value> = places;
                kinds.dedup();
                let items = match kinds.len() {
                    1 => kinds.remove(0),
                    _ => json!({ "anyOf": kinds }),
                };
                fields.insert("items".into(), items);
                fields.insert("minItems".into(), n_places.into());
                fields.insert("maxItems".into(), n_places.into());
            }
            fields.values_mut().for_each(without_places);
        }
        _ => {}
    }
}

/// Every request can be refused in the same ways.
fn describe_errors(document: &mut OpenApi) {
    let ways = [
        ("400", "What was sent cannot be read."),
        ("401", "Nobody is signed in."),
        ("403", "The person may not, or another page asks."),
        ("404", "There is no such thing, or it is not theirs."),
        ("405", "This path is not asked for in this way."),
        ("409", "The thing is not in a state for that."),
        ("413", "The request is too large."),
        ("415", "The body is not JSON."),
        ("422", "It cannot be done as it was asked for."),
        ("429", "Too many requests."),
        ("503", "The head cannot do anything of the kind at present."),
    ];
    let shape = || ContentBuilder::new().schema(Some(Ref::from_schema_name(ErrorBody::name()))).build();
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.delete, &mut item.patch];
        for operation in operations.into_iter().flatten() {
            for (status, about) in ways {
                let response =
                    ResponseBuilder::new().description(about).content("application/json", shape()).build();
                operation.responses.responses.entry(status.to_owned()).or_insert(RefOr::T(response));
            }
        }
    }
}

/// A browser shows its cookie, a program its token.
fn describe_doors(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("token", SecurityScheme::Http(token));
    let cookie =
        ApiKeyValue::with_description("rota-PORT", "with the header x-rota-csrf for what changes something");
    components.add_security_scheme("cookie", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    let one = |name: &str| SecurityRequirement::new(name, Vec::<String>::new());
    document.security = Some(vec![one("token"), one("cookie")]);
}

/// A file of the page.
async fn page(axum::extract::State(shared): axum::extract::State<Arc<Shared>>, uri: Uri) -> Response {
    if uri.path().starts_with("/api") {
        return StatusCode::NOT_FOUND.into_response();
    }
    match (shared.page)(uri.path()) {
        Some((kind, bytes)) => ([(header::CONTENT_TYPE, kind)], bytes.into_owned()).into_response(),
        None => (StatusCode::NOT_FOUND, "there is no such page\n").into_response(),
    }
}

/// A good answer.
fn good(value: &impl serde::Serialize) -> Response {
    json(StatusCode::OK, value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rota_transport::access::RequestKind;

    use super::*;

    /// The operation that does what a request of the command line does; signing in needs the certificate itself.
    fn operation(kind: RequestKind) -> Option<&'static str> {
        Some(match kind {
            RequestKind::Status => "show_status",
            RequestKind::Submit => "submit_jobs",
            RequestKind::Cancel
            | RequestKind::CancelSome
            | RequestKind::Hold
            | RequestKind::Release
            | RequestKind::Requeue
            | RequestKind::Priority => "change_jobs",
            RequestKind::Jobs => "list_jobs",
            RequestKind::Nodes => "list_nodes",
            RequestKind::Logs => "read_output",
            RequestKind::Drain | RequestKind::ServiceNode => "service_node",
            RequestKind::Events => "list_events",
            RequestKind::SetPolicy | RequestKind::SetPolicyText => "set_policy",
            RequestKind::ReloadPolicy => "reload_policy",
            RequestKind::Explain => "explain_job",
            RequestKind::WhatIf | RequestKind::WhatIfText => "ask_what_if",
            RequestKind::Journal => "read_journal",
            RequestKind::Shutdown => "shut_down",
            RequestKind::Rules => "show_rules",
            RequestKind::FastForward => "fast_forward",
            RequestKind::StopAll => "stop_all",
            RequestKind::History => "list_history",
            RequestKind::GiveUp => "give_up_node",
            RequestKind::Forecast => "show_forecast",
            RequestKind::SignIn => return None,
        })
    }

    #[test]
    fn whatever_the_command_line_asks_for_is_an_operation_with_a_name_of_its_own() {
        let document = described().1;
        let items = document.paths.paths.values();
        let operations = items.flat_map(|item| [&item.get, &item.post, &item.put, &item.delete, &item.patch]);
        let all: Vec<&str> =
            operations.flatten().filter_map(|operation| operation.operation_id.as_deref()).collect();
        let names: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(names.len(), all.len(), "{all:?}");
        for name in RequestKind::ALL.iter().filter_map(|kind| operation(*kind)) {
            assert!(names.contains(name), "{name}");
        }
    }
}
