//! Who is signed in: links that work once, sessions of browsers, tokens of programs. All of it is in memory only, so a head that
//! starts again knows nobody; secrets are kept as their digests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rota_transport::identity::UserRole;
use rota_transport::message::{SignIn, SignInBy};
use rota_transport::value::{Name, Text};
use sha2::{Digest as _, Sha256};

/// How long a link is good.
const LINK_FOR: Duration = Duration::from_secs(60);
/// How long a person stays signed in, ...
const SESSION_FOR: Duration = Duration::from_secs(12 * 3600);
/// ... and a program.
const TOKEN_FOR: Duration = Duration::from_secs(30 * 24 * 3600);
/// Longer than any of these.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// The most links, sessions and tokens of one person; beyond it the oldest is forgotten.
const MOST_EACH: usize = 32;

type Digest = [u8; 32];

/// Where people find the page.
#[derive(Clone, Debug)]
pub(crate) struct Whereabouts {
    pub(crate) is_tls: bool,
    /// The name to open; empty for the one at which the head was asked.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// Somebody who is signed in.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) user: Name,
    /// What their certificate said when they signed in.
    pub(crate) role: UserRole,
    /// What a page has to send with everything that changes something; none for programs, which send their token.
    pub(crate) csrf: Option<String>,
    /// Seconds since 1970.
    pub(crate) expires_unix_s: i64,
    until: Instant,
    /// Told apart in limits.
    pub(crate) id: u64,
}

impl Session {
    /// Of somebody who is not signed in: for what concerns nobody.
    pub(crate) fn of_nobody(user: Name, role: UserRole) -> Self {
        Session { user, role, csrf: None, expires_unix_s: 0, until: Instant::now(), id: 0 }
    }
}

/// Who is signed in.
#[derive(Debug)]
pub(crate) struct Sessions {
    whereabouts: Whereabouts,
    known: Mutex<Known>,
    /// Rises when who may what has changed.
    generation: AtomicU64,
}

#[derive(Debug, Default)]
struct Known {
    links: BTreeMap<Digest, Session>,
    sessions: BTreeMap<Digest, Session>,
    last_id: u64,
}

impl Sessions {
    pub(crate) fn new(whereabouts: Whereabouts) -> Self {
        Sessions { whereabouts, known: Mutex::default(), generation: AtomicU64::new(0) }
    }

    /// A way in for somebody whose certificate was checked. It lasts no longer than `at_most`.
    pub(crate) fn admit(&self, user: &Name, role: UserRole, by: SignInBy, at_most: Duration) -> SignIn {
        let secret = secret();
        // Longer than anything lasts here, and short enough to be added to a time.
        let at_most = at_most.min(LONGEST);
        let mut known = self.known();
        known.forget_old();
        let (valid, prefix) = match by {
            SignInBy::Link => (LINK_FOR.min(at_most), "/login?token="),
            SignInBy::Token => (TOKEN_FOR.min(at_most), ""),
        };
        known.last_id += 1;
        let session = Session {
            user: user.clone(),
            role,
            csrf: None,
            expires_unix_s: unix_s() + at_most.min(valid).as_secs() as i64,
            until: Instant::now() + valid,
            id: known.last_id,
        };
        match by {
            SignInBy::Link => {
                // A session lasts no longer than the certificate either.
                let session = Session { expires_unix_s: unix_s() + at_most.as_secs() as i64, ..session };
                insert(&mut known.links, digest(&secret), session);
            }
            SignInBy::Token => insert(&mut known.sessions, digest(&secret), session),
        }
        let Whereabouts { is_tls, host, port } = &self.whereabouts;
        SignIn {
            is_tls: *is_tls,
            host: Text::cut(host),
            port: *port,
            secret: Text::cut(&format!("{prefix}{secret}")),
            valid_s: valid.as_secs(),
        }
    }

    /// Uses a link up. Returns the value of the cookie, and for how many seconds it is good.
    pub(crate) fn enter(&self, token: &str) -> Option<(String, u64)> {
        let mut known = self.known();
        known.forget_old();
        let link = known.links.remove(&digest(token))?;
        let left_s = u64::try_from(link.expires_unix_s - unix_s()).unwrap_or(0);
        let lasts = SESSION_FOR.min(Duration::from_secs(left_s));
        let cookie = secret();
        known.last_id += 1;
        let session = Session {
            csrf: Some(secret()),
            expires_unix_s: unix_s() + lasts.as_secs() as i64,
            until: Instant::now() + lasts,
            id: known.last_id,
            ..link
        };
        insert(&mut known.sessions, digest(&cookie), session);
        Some((cookie, lasts.as_secs()))
    }

    /// Who holds a cookie's value or a token.
    pub(crate) fn of(&self, secret: &str) -> Option<Session> {
        let known = self.known();
        let session = known.sessions.get(&digest(secret))?;
        (session.until > Instant::now()).then(|| session.clone())
    }

    /// Whether a session goes on.
    pub(crate) fn goes_on(&self, id: u64) -> bool {
        let now = Instant::now();
        self.known().sessions.values().any(|session| session.id == id && session.until > now)
    }

    /// Somebody signs out.
    pub(crate) fn end(&self, secret: &str) {
        self.known().sessions.remove(&digest(secret));
    }

    /// Certificates changed: everybody signs in again, so that theirs is checked again.
    pub(crate) fn end_all(&self) {
        let mut known = self.known();
        known.links.clear();
        known.sessions.clear();
    }

    /// Roles have changed: what streams show is decided anew.
    pub(crate) fn roles_changed(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Rises when who may what has changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// How many are signed in.
    pub(crate) fn len(&self) -> usize {
        let now = Instant::now();
        self.known().sessions.values().filter(|session| session.until > now).count()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn forget_old(&mut self) {
        let now = Instant::now();
        self.links.retain(|_, session| session.until > now);
        self.sessions.retain(|_, session| session.until > now);
    }
}

fn insert(map: &mut BTreeMap<Digest, Session>, digest: Digest, session: Session) {
    let of_them = |known: &&Session| known.user == session.user;
    if map.values().filter(of_them).count() >= MOST_EACH {
        let oldest =
            map.iter().filter(|(_, known)| known.user == session.user).min_by_key(|(_, known)| known.id);
        if let Some(oldest) = oldest.map(|(digest, _)| *digest) {
            map.remove(&oldest);
        }
    }
    map.insert(digest, session);
}

fn secret() -> String {
    rand::random::<[u8; 32]>().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is looked up are digests, so that the time it takes says nothing about a secret.
fn digest(secret: &str) -> Digest {
    Sha256::digest(secret).into()
}

/// Whether two secrets are the same.
pub(crate) fn is_same(given: &str, secret: &str) -> bool {
    digest(given) == digest(secret)
}

fn unix_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn sessions() -> Sessions {
        Sessions::new(Whereabouts { is_tls: false, host: String::new(), port: 8080 })
    }

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn link(sessions: &Sessions, who: &str, at_most: Duration) -> String {
        let given = sessions.admit(&name(who), UserRole::Submit, SignInBy::Link, at_most);
        given.secret.as_str().strip_prefix("/login?token=").expect("a link").to_owned()
    }

    #[test]
    fn a_link_works_once_and_makes_a_session_with_a_secret_of_its_own() {
        let sessions = sessions();
        let token = link(&sessions, "ada", DAY);
        assert!(sessions.of(&token).is_none(), "a link is no session");
        let (cookie, lasts_s) = sessions.enter(&token).expect("the first time");
        assert!(sessions.enter(&token).is_none(), "not twice");
        assert!(lasts_s <= SESSION_FOR.as_secs());
        let session = sessions.of(&cookie).expect("signed in");
        assert_eq!((session.user.as_str(), session.role), ("ada", UserRole::Submit));
        assert!(session.csrf.is_some_and(|csrf| csrf != cookie && csrf != token));
        sessions.end(&cookie);
        assert!(sessions.of(&cookie).is_none() && !sessions.goes_on(session.id));
    }

    #[test]
    fn nothing_outlasts_the_certificate_or_its_revocation() {
        let sessions = sessions();
        let token = link(&sessions, "ada", Duration::from_secs(5));
        let (_, lasts_s) = sessions.enter(&token).expect("in time");
        assert!(lasts_s <= 5, "{lasts_s}");
        let late = link(&sessions, "ada", Duration::ZERO);
        assert!(sessions.enter(&late).is_none(), "a certificate that has ended opens nothing");
        let program = sessions.admit(&name("ada"), UserRole::Admin, SignInBy::Token, DAY);
        assert!(sessions.of(program.secret.as_str()).is_some_and(|session| session.csrf.is_none()));
        sessions.end_all();
        assert_eq!((sessions.of(program.secret.as_str()).is_none(), sessions.len()), (true, 0));
    }

    #[test]
    fn one_person_cannot_fill_the_memory_or_push_another_out() {
        let sessions = sessions();
        let (other, _) = sessions.enter(&link(&sessions, "bob", DAY)).expect("signed in");
        let all: Vec<String> = (0..100).map(|_| link(&sessions, "ada", DAY)).collect();
        assert_eq!(all.iter().filter(|token| sessions.enter(token).is_some()).count(), MOST_EACH);
        assert!(sessions.of(&other).is_some() && sessions.len() <= MOST_EACH + 1);
    }
}
