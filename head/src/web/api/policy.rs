//! The policy: its texts, what another one would do, and choosing another one.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use rota_scripts::{LoadError, shipped};
use rota_transport::access::RequestKind;
use rota_transport::message::FromUser;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Asked, Body, long_text, text};
use super::good;
use super::head::Nothing;
use super::jobs::texts;
use crate::decider::Scripts;
use crate::engine::refusal::Refusal;
use crate::engine::views::{JobWould, Would};
use crate::engine::{Engine, Said, sights};
use crate::roles::Person;
use crate::state::Moment;
use crate::web::Shared;
use crate::web::error::{Answer, ApiError};
use crate::web::sessions::Session;
use crate::web::shapes::{
    PartShape, PolicyChoice, PolicyPage, ShippedScripts, ShippedShape, TextBody, WouldChange, WouldShape,
};

/// The policy that decides.
#[utoipa::path(get, path = "/api/v1/policy", operation_id = "show_policy", tag = "policy", responses((status = 200, description = "The policy.", body = PolicyPage)))]
pub(crate) async fn page(State(shared): State<Arc<Shared>>, session: Session) -> Answer<Response> {
    let (mut page, scripts) = shared.asking.look(&session, RequestKind::Status, in_use).await?;
    let name = page.name.clone();
    page.parts = shared.asking.read(move || parts(&name, &scripts)).await?.unwrap_or_default();
    Ok(good(&page))
}

fn in_use(engine: &mut Engine, _: Moment, person: &Person) -> Result<(PolicyPage, Scripts), Refusal> {
    sights::policy(engine, person)
}

/// Another policy.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfQuery {
    /// Its name: shipped scripts, and files of the head's folder of policies.
    policy: String,
}

/// The texts of a policy that is not in use.
#[utoipa::path(get, path = "/api/v1/policy/of", operation_id = "show_other_policy", tag = "policy", params(OfQuery),
    responses((status = 200, description = "The policy.", body = PolicyPage)))]
pub(crate) async fn of(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Asked(OfQuery { policy }): Asked<OfQuery>,
) -> Answer<Response> {
    let wanted = policy.clone();
    let look = move |engine: &mut _, _, _: &_| sights::scripts_for(engine, &wanted);
    let scripts = shared.asking.look(&session, RequestKind::WhatIf, look).await?;
    let name = policy.clone();
    let parts = shared.asking.read(move || parts(&name, &scripts)).await?;
    let parts = parts.map_err(|error| ApiError::refused(error.to_string()))?;
    let (set, none) = (Vec::new(), String::new());
    Ok(good(&PolicyPage { name: policy, set, refused: none.clone(), trouble: none, parts }))
}

fn parts(policy: &str, scripts: &Scripts) -> Result<Vec<PartShape>, LoadError> {
    let texts = scripts.texts(policy)?;
    let part = |source: rota_scripts::Source| PartShape {
        is_shipped: shipped::ALL.iter().any(|script| script.file == source.file),
        name: source.name,
        file: source.file,
        text: source.text,
    };
    Ok(texts.sources.into_iter().map(part).collect())
}

/// The scripts that are built in.
#[utoipa::path(get, path = "/api/v1/policy/shipped", operation_id = "list_shipped_scripts", tag = "policy", responses((status = 200, description = "Scripts.", body = ShippedScripts)))]
pub(crate) async fn shipped(_session: Session) -> Answer<Response> {
    let script = |script: &shipped::Shipped| ShippedShape {
        name: script.name.to_owned(),
        role: script.role.folder().to_owned(),
        summary: script.summary(),
    };
    Ok(good(&ShippedScripts { scripts: shipped::ALL.iter().map(script).collect() }))
}

/// What another policy would do now.
#[utoipa::path(post, path = "/api/v1/policy/what-if", operation_id = "ask_what_if", tag = "policy", request_body = PolicyChoice,
    responses((status = 200, description = "What would change.", body = WouldShape)))]
pub(crate) async fn what_if(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Body(choice): Body<PolicyChoice>,
) -> Answer<Response> {
    let Chosen { policy, set, texts } = chosen(choice)?;
    let answers = shared.asking.ask(&session, FromUser::WhatIfText { policy, set, texts }).await?;
    let changes = answers.into_iter().find_map(|answer| match answer {
        Said::Would(changes) => Some(changes),
        _ => None,
    });
    let changes = changes.ok_or_else(|| ApiError::unavailable("the policy did not answer"))?;
    let text = JobWould::text(&changes);
    let change = |change: JobWould| WouldChange {
        job: change.job.0,
        what: match change.what {
            Would::Start => "start",
            Would::Stop => "stop",
            Would::Resize => "resize",
            Would::Move => "move",
        },
        gpus_from: change.gpus_from,
        gpus_to: change.gpus_to,
        nodes: change.nodes,
    };
    Ok(good(&WouldShape { text, changes: changes.into_iter().map(change).collect() }))
}

/// Chooses another policy, from the next round on.
#[utoipa::path(post, path = "/api/v1/policy/set", operation_id = "set_policy", tag = "policy", request_body = PolicyChoice,
    responses((status = 200, description = "It decides from the next round on.", body = TextBody)))]
pub(crate) async fn set(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Body(choice): Body<PolicyChoice>,
) -> Answer<Response> {
    let Chosen { policy, set, texts: sent } = chosen(choice)?;
    let answers = shared.asking.ask(&session, FromUser::SetPolicyText { policy, set, texts: sent }).await?;
    Ok(good(&TextBody { text: texts(answers) }))
}

/// Reads the policy's scripts again.
#[utoipa::path(post, path = "/api/v1/policy/reload", operation_id = "reload_policy", tag = "policy", request_body = Nothing,
    responses((status = 200, description = "It decides from the next round on.", body = TextBody)))]
pub(crate) async fn reload(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Body(_): Body<Nothing>,
) -> Answer<Response> {
    Ok(good(&TextBody { text: texts(shared.asking.ask(&session, FromUser::ReloadPolicy).await?) }))
}

/// A choice as the wire has it.
struct Chosen {
    policy: rota_transport::value::Text,
    set: Vec<(rota_transport::value::Text, rota_transport::value::Text)>,
    texts: Vec<(rota_transport::value::Text, rota_transport::value::LongText)>,
}

fn chosen(choice: PolicyChoice) -> Answer<Chosen> {
    let PolicyChoice { policy, set, texts } = choice;
    let pair = |(key, value): (String, String)| Ok((text("set", key)?, text("set", value)?));
    let script = |(name, body): (String, String)| Ok((text("texts", name.clone())?, long_text(&name, body)?));
    Ok(Chosen {
        policy: text("policy", policy)?,
        set: set.into_iter().map(pair).collect::<Answer<_>>()?,
        texts: texts.into_iter().map(script).collect::<Answer<_>>()?,
    })
}
