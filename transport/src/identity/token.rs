//! One-time tokens: whoever holds one gets one certificate, so that no key has to be carried to a node.
//!
//! A token has the fingerprint of the cluster's authority, by which its holder recognises the head, and a secret. The authority
//! keeps a hash of the secret in its file `tokens`, with who may use it and until when.

use std::path::Path;

use ring::digest;
use ring::rand::SecureRandom as _;
use rustls::pki_types::CertificateDer;

use super::files::{self, Secrecy};
use super::{Identity, IdentityError, UserRole};

/// What every token begins with.
const START: &str = "rota1";
const N_SECRET_BYTES: usize = 16;

/// The hash of an authority's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// That of a certificate.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Self {
        Fingerprint(sha256(certificate))
    }
}

/// A token as a person copies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinToken {
    fingerprint: Fingerprint,
    secret: [u8; N_SECRET_BYTES],
}

impl JoinToken {
    /// Draws a token for an authority.
    pub(super) fn draw(fingerprint: Fingerprint) -> Result<Self, IdentityError> {
        let mut secret = [0; N_SECRET_BYTES];
        ring::rand::SystemRandom::new().fill(&mut secret).map_err(|_| IdentityError::NoRandomness)?;
        Ok(JoinToken { fingerprint, secret })
    }

    /// Reads what `Display` writes.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        let parts: Vec<&str> = text.trim().split('-').collect();
        let read = match parts.as_slice() {
            [START, fingerprint, secret] => bytes(fingerprint).zip(bytes(secret)),
            _ => None,
        };
        let (fingerprint, secret) = read.ok_or(IdentityError::NoToken)?;
        Ok(JoinToken { fingerprint: Fingerprint(fingerprint), secret })
    }

    /// The authority that it is for.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// What its holder shows to the head.
    pub fn secret(&self) -> [u8; N_SECRET_BYTES] {
        self.secret
    }
}

impl std::fmt::Display for JoinToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{START}-{}-{}", hex(&self.fingerprint.0), hex(&self.secret))
    }
}

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// No token of this authority has this secret.
    #[error("it is not a token of this cluster")]
    Unknown,
    /// It was used before.
    #[error("it was used before; a token is good for one certificate")]
    Used,
    /// It is too late.
    #[error("it has expired")]
    Expired,
}

/// What a token is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) identity: Identity,
    pub(super) user_role: UserRole,
    /// How long the certificate will be valid.
    pub(super) certificate_s: i64,
}

/// Adds a token to the file of an authority, under the caller's lock.
pub(super) fn add(
    folder: &Path,
    token: &JoinToken,
    grant: &Grant,
    until_unix_s: i64,
) -> Result<(), IdentityError> {
    let mut lines = read(folder)?;
    lines.push(Line {
        hash: hex(&sha256(&token.secret)),
        grant: grant.clone(),
        until_unix_s,
        is_used: false,
    });
    write(folder, &lines)
}

/// Marks a token as used: the second time it is refused. Under the caller's lock.
pub(super) fn take(
    folder: &Path,
    secret: &[u8],
    now_unix_s: i64,
) -> Result<Result<Grant, TokenFault>, IdentityError> {
    let mut lines = read(folder)?;
    let hash = hex(&sha256(secret));
    // Comparing hashes tells a guesser nothing about the secret.
    let Some(line) = lines.iter_mut().find(|line| line.hash == hash) else {
        return Ok(Err(TokenFault::Unknown));
    };
    if line.is_used {
        return Ok(Err(TokenFault::Used));
    }
    if now_unix_s >= line.until_unix_s {
        return Ok(Err(TokenFault::Expired));
    }
    line.is_used = true;
    let grant = line.grant.clone();
    write(folder, &lines)?;
    Ok(Ok(grant))
}

struct Line {
    hash: String,
    grant: Grant,
    until_unix_s: i64,
    is_used: bool,
}

impl Line {
    fn to_text(&self) -> String {
        let Grant { identity, user_role, certificate_s } = &self.grant;
        let state = if self.is_used { "used" } else { "open" };
        format!(
            "{} {} {user_role} {certificate_s} {} {state}\n",
            self.hash,
            identity.domain(),
            self.until_unix_s
        )
    }

    fn of_text(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [hash, domain, role, certificate_s, until, state] = words.as_slice() else { return None };
        let grant = Grant {
            identity: Identity::of_domain(domain)?,
            user_role: UserRole::of_name(role)?,
            certificate_s: certificate_s.parse().ok()?,
        };
        let is_used = match *state {
            "used" => true,
            "open" => false,
            _ => return None,
        };
        Some(Line { hash: (*hash).to_owned(), grant, until_unix_s: until.parse().ok()?, is_used })
    }
}

fn read(folder: &Path) -> Result<Vec<Line>, IdentityError> {
    let path = folder.join("tokens");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = String::from_utf8_lossy(&files::read_secret(&path)?).into_owned();
    let wrong = |at| IdentityError::Content {
        path: path.clone(),
        why: format!("line {at}: not the record of a token"),
    };
    text.lines().enumerate().map(|(at, line)| Line::of_text(line).ok_or_else(|| wrong(at + 1))).collect()
}

fn write(folder: &Path, lines: &[Line]) -> Result<(), IdentityError> {
    let text: String = lines.iter().map(Line::to_text).collect();
    files::write(&folder.join("tokens"), &text, Secrecy::Secret)
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    if hex.len() != 2 * N || !hex.is_ascii() {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok();
    let found: Vec<u8> = (0..N).map(byte).collect::<Option<_>>()?;
    found.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_its_text_and_nonsense_is_no_token() {
        let token = JoinToken::draw(Fingerprint([7; 32])).expect("drawn");
        assert_eq!(JoinToken::parse(&format!(" {token}\n")).expect("read"), token);
        for text in ["", "rota1-00-11", "rota2", &token.to_string().replace("rota1", "rota0"), "rota1-é-é"]
        {
            assert!(JoinToken::parse(text).is_err(), "{text}");
        }
    }
}
