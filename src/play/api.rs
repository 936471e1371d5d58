//! One function for each request. Bodies are limited and parsed here; what cannot be parsed is answered with 400 and a sentence.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use rota_scripts::reference::{self, Kind};
use rota_scripts::shipped;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::Stream;

use crate::access::{Access, guard};
use crate::bench::Choices;
use crate::parts::SaveError;
use crate::refusal::{Refusal, Unresolved};
use crate::session::{Question, Session};
use crate::{assets, explain, rounds, take, timeline};

/// The largest request: the texts of a policy.
const MAX_BODY: usize = 2 << 20;
/// The largest trace.
const MAX_TRACE: usize = 64 << 20;

type Shared = State<Arc<Session>>;

/// Everything that can be asked.
pub(crate) fn router(session: Arc<Session>, access: Access) -> Router {
    Router::new()
        .route("/api/start", get(start))
        .route("/api/open", post(open))
        .route("/api/run", post(run))
        .route("/api/timeline/{id}/{policy}", get(timeline_of))
        .route("/api/trace", post(take_trace).layer(DefaultBodyLimit::max(MAX_TRACE)))
        .route("/api/files", get(files))
        .route("/api/save", post(save))
        .route("/api/same", post(same))
        .route("/api/report", post(report))
        .route("/api/folder", post(folder))
        .route("/api/explain", post(explain_job))
        .route("/api/difference", post(first_difference))
        .route("/api/round", post(round))
        .fallback(page)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(Arc::new(access), guard))
        .with_state(session)
}

async fn page(uri: Uri) -> Response {
    assets::file(uri.path())
}

/// What the page needs once: the policy, what there is to choose, and the reference for completion.
async fn start(State(session): Shared) -> Response {
    let scripts: Vec<Value> = shipped::ALL
        .iter()
        .map(|script| {
            json!({ "name": script.name, "role": script.role.folder(), "summary": script.summary() })
        })
        .collect();
    let entries: Vec<Value> = reference::entries()
        .iter()
        .map(|entry| {
            let kind = match entry.kind {
                Kind::Type => "type",
                Kind::Field => "field",
                Kind::Method => "method",
                Kind::Function => "function",
            };
            json!({ "kind": kind, "owner": entry.owner, "name": entry.name(), "signature": entry.signature, "doc": entry.doc })
        })
        .collect();
    match session.files.parts(&session.policy) {
        Ok(parts) => answer(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "policy": session.policy,
            "against": session.against,
            "parts": parts,
            "scripts": scripts,
            "entries": entries,
            "menus": session.bench.menus(),
        })),
        Err(error) => refuse(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    policy: String,
}

/// The parts of another policy.
async fn open(State(session): Shared, body: Bytes) -> Response {
    match parse::<Open>(&body).map(|open| session.files.parts(&open.policy)) {
        Ok(Ok(parts)) => answer(json!({ "parts": parts })),
        Ok(Err(error)) => refuse(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
        Err(response) => *response,
    }
}

/// Runs what is in the editor; lines of JSON as results come in. The run ends when the browser no longer listens.
async fn run(State(session): Shared, body: Bytes) -> Response {
    let question: Question = match parse(&body) {
        Ok(question) => question,
        Err(response) => return *response,
    };
    let is_cancelled = session.begin();
    let (sender, receiver) = mpsc::unbounded_channel();
    let lines = Lines { receiver, is_cancelled: Arc::clone(&is_cancelled) };
    tokio::task::spawn_blocking(move || {
        session.answer(question, &is_cancelled, &|line| {
            // Nobody listens any more: the run is cancelled by that.
            let _ = sender.send(Bytes::from(format!("{line}\n")));
        });
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

/// Lines on their way to the browser; when it goes away, the run is cancelled.
struct Lines {
    receiver: mpsc::UnboundedReceiver<Bytes>,
    is_cancelled: Arc<AtomicBool>,
}

impl Stream for Lines {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(context).map(|line| line.map(Ok))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.is_cancelled.store(true, Relaxed);
    }
}

/// Who ran where in one of the runs that are shown.
async fn timeline_of(State(session): Shared, Path((id, policy)): Path<(u64, usize)>) -> Response {
    let shown = session.shown(id);
    match shown.as_ref().and_then(|shown| shown.results.get(policy)) {
        Some(result) => {
            ([(header::CONTENT_TYPE, "application/octet-stream")], timeline::bytes(result)).into_response()
        }
        // Another result is shown by now: nothing is wrong, and there is nothing to draw.
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

/// Takes a trace; it is read once, so that what is wrong with it is said now.
async fn take_trace(State(session): Shared, headers: HeaderMap, body: Bytes) -> Response {
    let name =
        headers.get("x-trace-name").and_then(|name| name.to_str().ok()).unwrap_or("trace.csv").to_owned();
    let tried = tokio::task::spawn_blocking(move || {
        let number = session.take_trace(&name, &body)?;
        let choices = Choices { trace: Some(number), ..Choices::default() };
        session.prepared(&choices).map_err(|Unresolved(why)| {
            session.drop_trace(number);
            Unresolved(why.replace(&format!("{}/{number}/", session.uploads_folder()), ""))
        })?;
        Ok::<_, Refusal>(number)
    });
    match tried.await {
        Ok(Ok(number)) => answer(json!({ "trace": number })),
        Ok(Err(why)) => refuse(StatusCode::UNPROCESSABLE_ENTITY, why.to_string()),
        Err(_) => refuse(StatusCode::UNPROCESSABLE_ENTITY, "the trace cannot be read"),
    }
}

/// The files of the policies as they are on the disk, for changes made by another editor.
async fn files(State(session): Shared) -> Response {
    let files: Vec<Value> = session
        .files
        .on_disk()
        .into_iter()
        .map(|(file, version, text)| json!({ "file": file, "version": version, "text": text }))
        .collect();
    answer(json!({ "files": files }))
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Save {
    file: String,
    text: String,
    version: String,
}

/// Writes a text to its file.
async fn save(State(session): Shared, body: Bytes) -> Response {
    match parse::<Save>(&body).map(|save| session.files.save(&save.file, &save.text, &save.version)) {
        Ok(Ok(version)) => answer(json!({ "version": version })),
        Ok(Err(error @ SaveError::Changed(_))) => refuse(StatusCode::CONFLICT, error.to_string()),
        Ok(Err(error)) => refuse(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
        Err(response) => *response,
    }
}

/// The same runs as a command line and as a study script.
async fn same(State(session): Shared, body: Bytes) -> Response {
    let question: Question = match parse(&body) {
        Ok(question) => question,
        Err(response) => return *response,
    };
    let mut policies = vec![question.policy.clone()];
    policies.extend(question.against.iter().filter(|name| **name != question.policy).cloned());
    let set: Vec<String> = question.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let uploads = session.uploads();
    answer(json!({
        "command": session.bench.command_line(&question.choices, &uploads, &policies, &set),
        "study": session.bench.study_script(&question.choices, &uploads, &policies, &question.set, question.n_seeds),
    }))
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    id: u64,
}

/// The page that `rota simulate --out` would write for the runs that are shown.
async fn report(State(session): Shared, body: Bytes) -> Response {
    let which: Which = match parse(&body) {
        Ok(which) => which,
        Err(response) => return *response,
    };
    let Some(shown) = session.shown(which.id) else {
        return refuse(StatusCode::GONE, "another result is shown by now");
    };
    let made = tokio::task::spawn_blocking(move || take::report(&session, &shown));
    match made.await {
        // It is saved as a file: shown here, its inline style and script would be refused.
        Ok(Ok(page)) => ([(header::CONTENT_TYPE, "application/octet-stream")], page).into_response(),
        Ok(Err(why)) => refuse(StatusCode::UNPROCESSABLE_ENTITY, why.to_string()),
        Err(_) => refuse(StatusCode::UNPROCESSABLE_ENTITY, "the report cannot be made"),
    }
}

/// The result folder of the runs that are shown, packed into one file.
async fn folder(State(session): Shared, body: Bytes) -> Response {
    let which: Which = match parse(&body) {
        Ok(which) => which,
        Err(response) => return *response,
    };
    let Some(shown) = session.shown(which.id) else {
        return refuse(StatusCode::GONE, "another result is shown by now");
    };
    match tokio::task::spawn_blocking(move || take::folder(&session, &shown)).await {
        Ok(Ok(bytes)) => ([(header::CONTENT_TYPE, "application/zip")], bytes).into_response(),
        Ok(Err(why)) => refuse(StatusCode::UNPROCESSABLE_ENTITY, why.to_string()),
        Err(_) => refuse(StatusCode::UNPROCESSABLE_ENTITY, "the results cannot be packed"),
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct OneJob {
    id: u64,
    policy: usize,
    job: String,
}

/// What `rota explain` says of a job; its run is simulated again for that.
async fn explain_job(State(session): Shared, body: Bytes) -> Response {
    let asked: OneJob = match parse(&body) {
        Ok(asked) => asked,
        Err(response) => return *response,
    };
    let Some(shown) = session.shown(asked.id) else {
        return refuse(StatusCode::GONE, "another result is shown by now");
    };
    let said = tokio::task::spawn_blocking(move || explain::of_job(&shown, asked.policy, &asked.job));
    match said.await {
        Ok(Ok(sentences)) => answer(json!({ "sentences": sentences })),
        Ok(Err(why)) => refuse(StatusCode::UNPROCESSABLE_ENTITY, why.to_string()),
        Err(_) => refuse(StatusCode::UNPROCESSABLE_ENTITY, "the job cannot be explained"),
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct TwoPolicies {
    id: u64,
    policy: usize,
    other: usize,
}

/// Where two policies part.
async fn first_difference(State(session): Shared, body: Bytes) -> Response {
    let asked: TwoPolicies = match parse(&body) {
        Ok(asked) => asked,
        Err(response) => return *response,
    };
    let Some(shown) = session.shown(asked.id) else {
        return refuse(StatusCode::GONE, "another result is shown by now");
    };
    let found = move || explain::first_difference(&shown, asked.policy, asked.other);
    match tokio::task::spawn_blocking(found).await {
        Ok(Ok(found)) => answer(found),
        Ok(Err(why)) => refuse(StatusCode::UNPROCESSABLE_ENTITY, why.to_string()),
        Err(_) => refuse(StatusCode::UNPROCESSABLE_ENTITY, "the policies cannot be compared"),
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct OneRound {
    id: u64,
    policy: usize,
    decision: usize,
    /// The last decision by this time, instead.
    by_time_s: Option<f64>,
    /// The next decision that changes something for this job, instead.
    next_of: Option<String>,
}

/// One decision of a run.
async fn round(State(session): Shared, body: Bytes) -> Response {
    let asked: OneRound = match parse(&body) {
        Ok(asked) => asked,
        Err(response) => return *response,
    };
    let Some(shown) = session.shown(asked.id) else {
        return refuse(StatusCode::GONE, "another result is shown by now");
    };
    let told = tokio::task::spawn_blocking(move || {
        let decision = match (&asked.next_of, asked.by_time_s) {
            (Some(job), _) => rounds::next_change(&shown, asked.policy, asked.decision, job)?,
            (None, Some(time_s)) => rounds::by_time(&shown, asked.policy, time_s)?,
            (None, None) => asked.decision,
        };
        rounds::at(&shown, asked.policy, decision)
    });
    match told.await {
        Ok(Ok(value)) => answer(value),
        Ok(Err(why)) => refuse(StatusCode::UNPROCESSABLE_ENTITY, why.to_string()),
        Err(_) => refuse(StatusCode::UNPROCESSABLE_ENTITY, "the decision cannot be shown"),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Box<Response>> {
    serde_json::from_slice(body).map_err(|error| Box::new(refuse(StatusCode::BAD_REQUEST, error.to_string())))
}

fn answer(value: Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

fn refuse(status: StatusCode, message: impl Into<String>) -> Response {
    let message: String = message.into();
    (status, [(header::CONTENT_TYPE, "application/json")], json!({ "message": message }).to_string())
        .into_response()
}
