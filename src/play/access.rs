//! Who may ask, and what a page may load.
//!
//! The page is for the person who started the program. A random token in the printed address is exchanged once for a cookie;
//! every request needs that cookie. Requests by other pages in the same browser are refused by their origin, and names that
//! were made to point at this machine (DNS rebinding) by the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// Scripts, styles and data come from the page's own address, and from nowhere else; nothing is inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The secrets of one laboratory.
pub(crate) struct Access {
    port: u16,
    token: String,
    cookie: String,
    is_token_used: AtomicBool,
}

/// Whether a request may go on.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It has the cookie.
    Known,
    /// It has the token, which is used up now.
    Enters,
    /// It may not, for this reason.
    Refused(&'static str),
}

impl Access {
    /// New secrets for a server on a port.
    pub(crate) fn new(port: u16) -> Self {
        let secret = || rand::random::<[u8; 32]>().iter().map(|byte| format!("{byte:02x}")).collect();
        Access { port, token: secret(), cookie: secret(), is_token_used: AtomicBool::new(false) }
    }

    /// The address to open, with its token.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// Cookies do not know ports: the name tells laboratories on one machine apart.
    fn cookie_name(&self) -> String {
        format!("rota-play-{}", self.port)
    }

    fn judge(&self, method: &Method, path: &str, query: Option<&str>, headers: &HeaderMap) -> Verdict {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let hosts = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let Some(host) = text(header::HOST).filter(|host| hosts.iter().any(|known| known == host)) else {
            return Verdict::Refused("this address is not the laboratory's");
        };
        let is_own = |origin: &str| origin.strip_prefix("http://") == Some(host);
        let origin = text(header::ORIGIN);
        if origin.is_some_and(|origin| !is_own(origin)) || (method != Method::GET && origin.is_none()) {
            return Verdict::Refused("only the laboratory's own page may ask");
        }
        let has_cookie =
            headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok()).any(|cookies| {
                let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
                pairs.any(|(name, value)| name == self.cookie_name() && is_same(value, &self.cookie))
            });
        let token =
            query.into_iter().flat_map(|query| query.split('&')).find_map(|p| p.strip_prefix("token="));
        let enters = path == "/" && token.is_some_and(|token| is_same(token, &self.token));
        // A link from elsewhere may lead to the page, but nothing else may be asked from elsewhere.
        let site = text(HeaderName::from_static("sec-fetch-site"));
        let is_foreign = site.is_some_and(|site| !["same-origin", "none"].contains(&site)) && path != "/";
        match (has_cookie, enters) {
            _ if is_foreign => Verdict::Refused("only the laboratory's own page may ask"),
            (true, _) => Verdict::Known,
            (false, true) if !self.is_token_used.swap(true, SeqCst) => Verdict::Enters,
            (false, true) => {
                Verdict::Refused("this address was used already: start rota play again for another")
            }
            (false, false) => Verdict::Refused("open the address that rota play printed"),
        }
    }
}

/// Compares digests, so that the time it takes says nothing about the secret.
fn is_same(given: &str, secret: &str) -> bool {
    Sha256::digest(given) == Sha256::digest(secret)
}

/// Lets a request through or answers 403; every answer says what a page may load.
pub(crate) async fn guard(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let uri = request.uri();
    let verdict = access.judge(request.method(), uri.path(), uri.query(), request.headers());
    let mut response = match verdict {
        Verdict::Known | Verdict::Enters => next.run(request).await,
        Verdict::Refused(why) => (StatusCode::FORBIDDEN, format!("{why}\n")).into_response(),
    };
    let headers = response.headers_mut();
    if verdict == Verdict::Enters {
        let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", access.cookie_name(), access.cookie);
        headers.extend(HeaderValue::from_str(&cookie).ok().map(|value| (header::SET_COOKIE, value)));
    }
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        };
        pairs.iter().map(pair).collect()
    }

    fn cookie(access: &Access) -> String {
        format!("other=1; {}={}", access.cookie_name(), access.cookie)
    }

    #[test]
    fn the_token_opens_the_page_once() {
        let access = Access::new(4000);
        let query = format!("token={}", access.token);
        let own = headers(&[("host", "127.0.0.1:4000")]);
        let enter = |path: &str| access.judge(&Method::GET, path, Some(&query), &own);
        assert!(matches!(enter("/api/start"), Verdict::Refused(_)), "a token is for the page alone");
        assert_eq!(enter("/"), Verdict::Enters);
        assert!(matches!(enter("/"), Verdict::Refused(_)), "used already");
        assert!(matches!(access.judge(&Method::GET, "/", None, &own), Verdict::Refused(_)));
        let wrong = access.judge(&Method::GET, "/", Some("token=0"), &own);
        assert!(matches!(wrong, Verdict::Refused(_)));
    }

    #[test]
    fn the_cookie_counts_only_for_the_pages_own_host_and_origin() {
        let access = Access::new(4000);
        let cookie = cookie(&access);
        let judge = |method: Method, more: &[(&'static str, &str)]| {
            let mut all = vec![("cookie", cookie.as_str())];
            all.extend_from_slice(more);
            access.judge(&method, "/api/run", None, &headers(&all))
        };
        let host = ("host", "127.0.0.1:4000");
        assert_eq!(judge(Method::GET, &[host]), Verdict::Known);
        assert_eq!(judge(Method::POST, &[host, ("origin", "http://127.0.0.1:4000")]), Verdict::Known);
        for refused in [
            judge(Method::GET, &[("host", "rebound.example:4000")]),
            judge(Method::GET, &[]),
            judge(Method::POST, &[host]),
            judge(Method::POST, &[host, ("origin", "http://evil.example")]),
            judge(Method::POST, &[host, ("origin", "http://localhost:4000")]),
            judge(Method::POST, &[host, ("origin", "null")]),
            judge(Method::GET, &[host, ("sec-fetch-site", "cross-site")]),
        ] {
            assert!(matches!(refused, Verdict::Refused(_)), "{refused:?}");
        }
    }
}
