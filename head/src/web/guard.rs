//! Who may ask, from where and how often; what a page may load. What a person may do is the engine's business.
//!
//! A browser shows the cookie that its link was exchanged for, and must send the page's own origin and a secret of the session with
//! everything that changes something. A program shows its token. On loopback, names that were made to point at this machine (DNS
//! rebinding) are refused by the host; elsewhere by the certificate.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::door::PeerAddress;
use super::error::{ApiError, in_shape};
use super::sessions::{Session, is_same};

/// Scripts, styles and data come from the page's own address, and from nowhere else; nothing is inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// How long a request may take, streams apart.
const PATIENCE: Duration = Duration::from_secs(130);
/// Requests of one session: so many at once, ...
const BURST: f64 = 240.0;
/// ... and then so many a second.
const PER_SECOND: f64 = 60.0;
/// The same for addresses that are not signed in.
const BURST_OF_STRANGERS: f64 = 60.0;
const PER_SECOND_OF_STRANGERS: f64 = 5.0;
/// Limits that are remembered.
const MOST_REMEMBERED: usize = 10_000;

/// Where a page says its session's secret.
pub(crate) const CSRF_HEADER: HeaderName = HeaderName::from_static("x-rota-csrf");

/// What paths are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Area {
    /// Files of the page, signing in: they hold no secrets.
    Open,
    /// Whether the head lives.
    Health,
    Metrics,
    Api,
}

impl Area {
    fn of(path: &str) -> Self {
        match path {
            "/healthz" | "/readyz" => Area::Health,
            "/metrics" => Area::Metrics,
            path if path == "/api" || path.starts_with("/api/") => Area::Api,
            _ => Area::Open,
        }
    }
}

/// Lets a request through or answers it; every answer says what a page may load.
pub(crate) async fn guard(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let area = Area::of(request.uri().path());
    let is_stream = request.uri().path() == "/api/v1/stream" || request.uri().path() == "/api/v1/journal";
    let response = match shared.judge(area, &request) {
        Err(error) => error.into_response(),
        Ok(session) => {
            if let Some(session) = session {
                request.extensions_mut().insert(session);
            }
            match is_stream {
                true => next.run(request).await,
                false => match tokio::time::timeout(PATIENCE, next.run(request)).await {
                    Ok(response) => response,
                    Err(_) => ApiError::unavailable("this took too long").into_response(),
                },
            }
        }
    };
    let mut response = if area == Area::Api { in_shape(response) } else { response };
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    let headers = response.headers_mut();
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    if shared.is_tls {
        let year = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, year);
    }
    response
}

impl Shared {
    /// Whether a request may go on, and whose it is.
    fn judge(&self, area: Area, request: &Request) -> Result<Option<Session>, ApiError> {
        let headers = request.headers();
        let forbidden = |why: &str| ApiError::new(StatusCode::FORBIDDEN, why);
        let peer = request.extensions().get::<PeerAddress>().map(|peer| peer.0.ip());
        if area == Area::Health {
            // Whether it lives, it says itself; for the rest the engine is asked.
            return match request.uri().path() == "/healthz" || self.limits.takes_stranger(peer) {
                true => Ok(None),
                false => Err(too_many()),
            };
        }
        if !self.is_tls && !is_local_host(headers, self.port) {
            return Err(forbidden("this address is not the page's"));
        }
        let site = text(headers, &HeaderName::from_static("sec-fetch-site"));
        if area != Area::Open && site.is_some_and(|site| !["same-origin", "none"].contains(&site)) {
            return Err(forbidden("only the head's own page may ask"));
        }
        if area == Area::Open {
            return match self.limits.takes_stranger(peer) {
                true => Ok(None),
                false => Err(too_many()),
            };
        }
        let bearer = bearer(headers);
        if area == Area::Metrics
            && let (Some(given), Some(token)) = (bearer, &self.metrics_token)
            && is_same(given, token)
        {
            return Ok(None);
        }
        let cookie = self.cookie(headers);
        let session = bearer.or(cookie.as_deref()).and_then(|secret| self.sessions.of(secret));
        let Some(session) = session else {
            return Err(match self.limits.takes_stranger(peer) {
                true => ApiError::new(
                    StatusCode::UNAUTHORIZED,
                    "you are not signed in: run `rota web login` and open the link that it prints",
                ),
                false => too_many(),
            });
        };
        if !self.limits.takes(session.id) {
            return Err(too_many());
        }
        // A token is sent by a program that knows it; a cookie is sent by the browser, whoever makes it ask.
        if bearer.is_none() {
            self.is_own_page(request.method(), headers, &session).map_err(forbidden)?;
        }
        Ok(Some(session))
    }

    fn is_own_page(
        &self,
        method: &Method,
        headers: &HeaderMap,
        session: &Session,
    ) -> Result<(), &'static str> {
        let scheme = if self.is_tls { "https://" } else { "http://" };
        let host = text(headers, &header::HOST);
        let is_own = |origin: &str| origin.strip_prefix(scheme).is_some_and(|rest| Some(rest) == host);
        let origin = text(headers, &header::ORIGIN);
        if origin.is_some_and(|origin| !is_own(origin)) {
            return Err("only the head's own page may ask");
        }
        if matches!(*method, Method::GET | Method::HEAD) {
            return Ok(());
        }
        if origin.is_none() {
            return Err("only the head's own page may ask");
        }
        let given = text(headers, &CSRF_HEADER);
        match (given, &session.csrf) {
            (Some(given), Some(csrf)) if is_same(given, csrf) => Ok(()),
            _ => Err("the header x-rota-csrf is not that of your session: ask /api/v1/me for it"),
        }
    }

    /// Cookies do not know ports: the name tells heads on one machine apart.
    pub(crate) fn cookie_name(&self) -> String {
        match self.is_tls {
            // Browsers take it over TLS only, for this host and all paths.
            true => format!("__Host-rota-{}", self.port),
            false => format!("rota-{}", self.port),
        }
    }

    /// The value of the session's cookie, if there is one.
    pub(crate) fn cookie(&self, headers: &HeaderMap) -> Option<String> {
        let name = self.cookie_name();
        let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        all.flat_map(|cookies| cookies.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.to_owned())
    }
}

fn too_many() -> ApiError {
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too many requests: ask again later")
}

/// The token of a program.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = text(headers, &header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn is_local_host(headers: &HeaderMap, port: u16) -> bool {
    let hosts = ["127.0.0.1", "localhost", "[::1]"];
    text(headers, &header::HOST)
        .is_some_and(|host| hosts.iter().any(|known| host == format!("{known}:{port}")))
}

/// How often sessions and strangers have asked lately.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    sessions: Mutex<BTreeMap<u64, Bucket>>,
    strangers: Mutex<BTreeMap<Option<IpAddr>, Bucket>>,
}

/// So many requests are left, as of a moment.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    as_of: Instant,
}

impl Limits {
    fn takes(&self, session: u64) -> bool {
        take(&self.sessions, session, BURST, PER_SECOND)
    }

    fn takes_stranger(&self, address: Option<IpAddr>) -> bool {
        take(&self.strangers, address, BURST_OF_STRANGERS, PER_SECOND_OF_STRANGERS)
    }
}

fn take<K: Ord + Copy>(buckets: &Mutex<BTreeMap<K, Bucket>>, key: K, burst: f64, per_s: f64) -> bool {
    let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    if buckets.len() >= MOST_REMEMBERED {
        // Full buckets are as good as none.
        buckets.retain(|_, bucket| bucket.left + bucket.as_of.elapsed().as_secs_f64() * per_s < burst);
    }
    if buckets.len() >= MOST_REMEMBERED && !buckets.contains_key(&key) {
        return false;
    }
    let bucket = buckets.entry(key).or_insert(Bucket { left: burst, as_of: now });
    bucket.left = (bucket.left + (now - bucket.as_of).as_secs_f64() * per_s).min(burst);
    bucket.as_of = now;
    let takes = bucket.left >= 1.0;
    if takes {
        bucket.left -= 1.0;
    }
    takes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_too_often_waits_and_others_do_not() {
        let limits = Limits::default();
        let n_taken = (0..10_000).filter(|_| limits.takes(1)).count() as f64;
        assert!((BURST..BURST + 120.0).contains(&n_taken), "{n_taken}");
        assert!(limits.takes(2), "somebody else");
        let n_strangers = (0..1_000).filter(|_| limits.takes_stranger(None)).count() as f64;
        assert!((BURST_OF_STRANGERS..BURST_OF_STRANGERS + 20.0).contains(&n_strangers), "{n_strangers}");
    }

    #[test]
    fn only_names_of_this_machine_are_hosts_on_loopback() {
        let host = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_str(host).expect("a value"));
            is_local_host(&headers, 8080)
        };
        assert!(host("127.0.0.1:8080") && host("localhost:8080") && host("[::1]:8080"));
        assert!(!host("rebound.example:8080") && !host("127.0.0.1:8081") && !host("127.0.0.1"));
        assert!(!is_local_host(&HeaderMap::new(), 8080));
    }
}
