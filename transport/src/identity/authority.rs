//! The certificate authority of a cluster: a folder with its key, the certificates it issued and those it revoked.
//!
//! ```text
//! ca.pem  ca.key  revoked.pem  issued        the authority
//! tokens  lock                               one-time tokens by their hashes; held while one of these files is changed
//! old/  rotation                             the authority before this one, while it is being replaced (`rotation`)
//! head/  agents/NAME/  users/NAME/  web/     one folder for each party, and for the page: ca.pem, cert.pem, key.pem
//! ```

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, PublicKeyData,
    RevocationReason, RevokedCertParams, SerialNumber,
};
use time::{Duration, OffsetDateTime};

use super::files::{self, Secrecy};
use super::request::KeyRequest;
use super::token::{self, Grant, JoinToken, TokenFault};
use super::{Fingerprint, Identity, IdentityError, Role, UserRole, read_certificates};
use crate::quic::{AGENTS_DOMAIN, USERS_DOMAIN};

/// The authority's name, if no other was given to it.
const FIRST_NAME: &str = "Rota cluster authority";

/// The time in which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Start of the validity.
    pub from: OffsetDateTime,
    /// End of the validity.
    pub to: OffsetDateTime,
}

impl Validity {
    /// This many days from now, beginning a little earlier because some clocks are behind.
    pub fn days(days: u32) -> Self {
        Validity::seconds(i64::from(days) * 86_400)
    }

    /// This many seconds from now, beginning a little earlier because some clocks are behind.
    pub fn seconds(seconds: i64) -> Self {
        let now = OffsetDateTime::now_utc();
        let to = now.checked_add(Duration::seconds(seconds)).unwrap_or(now);
        Validity { from: now - EARLIER, to }
    }

    /// How long it lasts from its issue on.
    pub fn length_s(&self) -> i64 {
        (self.to - self.from - EARLIER).whole_seconds().max(1)
    }
}

/// Certificates are valid from so long before their issue.
const EARLIER: Duration = Duration::minutes(10);

/// A certificate for a key that its holder keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// Whose it is.
    pub identity: Identity,
    /// The certificate, as PEM.
    pub certificate: String,
    /// The certificates of the authorities to trust.
    pub authority: String,
}

/// Why a holder of a key gets no certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinFault {
    /// The token is not accepted.
    #[error("the token is refused: {0}")]
    Token(#[from] TokenFault),
    /// The request is not signed by the key that it names.
    #[error("the request is not signed by its key")]
    NotSigned,
}

/// A folder with the credentials of one party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    /// The party whose credentials it holds.
    pub identity: Identity,
    /// Where its key and certificate are.
    pub folder: PathBuf,
}

/// An authority that can issue and revoke.
pub struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes a new authority in a folder, with a certificate for the head.
    pub fn create(folder: &Path, validity: Validity) -> Result<Self, IdentityError> {
        if folder.join("ca.key").exists() {
            return Err(IdentityError::Exists { path: folder.to_owned() });
        }
        files::make_folder(folder)?;
        let authority = Authority::make(folder, FIRST_NAME, validity)?;
        files::write(&folder.join("issued"), "", Secrecy::Public)?;
        authority.write_revoked()?;
        Ok(authority)
    }

    /// Makes key and certificate of an authority, in the place of those that are there.
    pub(super) fn make(folder: &Path, name: &str, validity: Validity) -> Result<Self, IdentityError> {
        let key = KeyPair::generate().map_err(|error| make("a key", error))?;
        let mut params = params(name)?;
        (params.not_before, params.not_after) = (validity.from, validity.to);
        let certificate = params.self_signed(&key).map_err(|error| make("the authority", error))?;
        files::write(&folder.join("ca.name"), name, Secrecy::Public)?;
        files::write(&folder.join("ca.key"), &key.serialize_pem(), Secrecy::Secret)?;
        files::write(&folder.join("ca.pem"), &certificate.pem(), Secrecy::Public)?;
        Ok(Authority { folder: folder.to_owned(), issuer: Issuer::new(params, key) })
    }

    /// Opens the authority of a folder.
    pub fn open(folder: &Path) -> Result<Self, IdentityError> {
        let path = folder.join("ca.key");
        let content = |why: String| IdentityError::Content { path: path.clone(), why };
        let pem = String::from_utf8(files::read_secret(&path)?).map_err(|_| content("no text".into()))?;
        let key = KeyPair::from_pem(&pem).map_err(|error| content(error.to_string()))?;
        // Authorities of earlier versions have no file for their name.
        let name = files::read(&folder.join("ca.name")).unwrap_or_else(|_| FIRST_NAME.into());
        let params = params(&String::from_utf8_lossy(&name))?;
        Ok(Authority { folder: folder.to_owned(), issuer: Issuer::new(params, key) })
    }

    /// The folder it is in.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes a key and a certificate and fills the party's folder; a user gets the least role.
    pub fn issue(&self, identity: &Identity, validity: Validity) -> Result<Issued, IdentityError> {
        self.issue_as(identity, UserRole::default(), validity)
    }

    /// The same with a role, which only a user's certificate carries.
    pub fn issue_as(
        &self,
        identity: &Identity,
        user_role: UserRole,
        validity: Validity,
    ) -> Result<Issued, IdentityError> {
        let key = KeyPair::generate().map_err(|error| make(&identity.to_string(), error))?;
        let certificate = self.sign(identity, user_role, validity, &key)?;
        let folder = self.folder_of(identity);
        files::make_folder(&folder)?;
        files::write(&folder.join("key.pem"), &key.serialize_pem(), Secrecy::Secret)?;
        files::write(&folder.join("cert.pem"), &certificate, Secrecy::Public)?;
        files::write(&folder.join("ca.pem"), &self.trusted()?, Secrecy::Public)?;
        if identity.role == Role::Head {
            let revoked = files::read(&self.folder.join("revoked.pem"))?;
            files::write(&folder.join("revoked.pem"), &String::from_utf8_lossy(&revoked), Secrecy::Public)?;
        }
        Ok(Issued { identity: identity.clone(), folder })
    }

    /// Draws a one-time token for a certificate that is valid for some time from the day it is asked for.
    pub fn token(
        &self,
        identity: &Identity,
        user_role: UserRole,
        certificate_s: i64,
        token_s: i64,
    ) -> Result<JoinToken, IdentityError> {
        let _lock = self.lock()?;
        let own = read_certificates(&self.folder.join("ca.pem"))?;
        let own = own.first().ok_or(IdentityError::NoToken)?;
        let token = JoinToken::draw(Fingerprint::of(own))?;
        let grant = Grant { identity: identity.clone(), user_role, certificate_s };
        let until_unix_s = OffsetDateTime::now_utc().unix_timestamp().saturating_add(token_s);
        token::add(&self.folder, &token, &grant, until_unix_s)?;
        Ok(token)
    }

    /// Issues the certificate that a token is good for. The token is used up first, whatever comes after.
    pub fn join(
        &self,
        secret: &[u8],
        request: &KeyRequest,
    ) -> Result<Result<Signed, JoinFault>, IdentityError> {
        let Some(key) = request.proven() else { return Ok(Err(JoinFault::NotSigned)) };
        let now_unix_s = OffsetDateTime::now_utc().unix_timestamp();
        let taken = {
            let _lock = self.lock()?;
            token::take(&self.folder, secret, now_unix_s)?
        };
        match taken {
            Err(fault) => Ok(Err(fault.into())),
            Ok(grant) => {
                let validity = Validity::seconds(grant.certificate_s);
                let certificate = self.sign(&grant.identity, grant.user_role, validity, &key)?;
                Ok(Ok(Signed { identity: grant.identity, certificate, authority: self.trusted()? }))
            }
        }
    }

    /// Issues a certificate to somebody whose present one was checked; it lasts as long.
    pub fn renew(
        &self,
        identity: &Identity,
        user_role: UserRole,
        length_s: i64,
        request: &KeyRequest,
    ) -> Result<Result<Signed, JoinFault>, IdentityError> {
        let Some(key) = request.proven() else { return Ok(Err(JoinFault::NotSigned)) };
        let certificate = self.sign(identity, user_role, Validity::seconds(length_s), &key)?;
        Ok(Ok(Signed { identity: identity.clone(), certificate, authority: self.trusted()? }))
    }

    /// The authorities to trust: this one, and the one before it while it is being replaced.
    fn trusted(&self) -> Result<String, IdentityError> {
        let mut all = String::from_utf8_lossy(&files::read(&self.folder.join("ca.pem"))?).into_owned();
        let old = self.folder.join("old/ca.pem");
        if old.exists() {
            all.push_str(&String::from_utf8_lossy(&files::read(&old)?));
        }
        Ok(all)
    }

    /// Gives the head the authorities to trust.
    pub(super) fn write_trusted_for_head(&self) -> Result<(), IdentityError> {
        let of_head = self.folder.join("head");
        match of_head.is_dir() {
            true => files::write(&of_head.join("ca.pem"), &self.trusted()?, Secrecy::Public),
            false => Ok(()),
        }
    }

    /// Held while a list is read, changed and written: the head and commands use the same folder.
    pub(super) fn lock(&self) -> Result<std::fs::File, IdentityError> {
        let path = self.folder.join("lock");
        let file = std::fs::File::options().create(true).truncate(false).write(true).open(&path);
        let locked = file.and_then(|file| file.lock().map(|()| file));
        locked.map_err(|error| IdentityError::File { path, error })
    }

    fn sign(
        &self,
        identity: &Identity,
        user_role: UserRole,
        validity: Validity,
        key: &impl PublicKeyData,
    ) -> Result<String, IdentityError> {
        let failed = |error| make(&identity.to_string(), error);
        let mut domains = vec![identity.domain()];
        match identity.role {
            Role::Head => domains.extend([AGENTS_DOMAIN, USERS_DOMAIN].map(str::to_owned)),
            Role::User => domains.push(user_role.domain()),
            Role::Agent => {}
        }
        let serial = new_serial();
        let mut params = CertificateParams::new(domains).map_err(failed)?;
        params.distinguished_name = named(&identity.domain());
        (params.not_before, params.not_after) = (validity.from, validity.to);
        params.serial_number = Some(SerialNumber::from(serial.clone()));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![match identity.role {
            Role::Head => ExtendedKeyUsagePurpose::ServerAuth,
            Role::Agent | Role::User => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        let certificate = params.signed_by(key, &self.issuer).map_err(failed)?;
        // The list first: a certificate that was issued can be revoked even if writing its folder fails.
        self.note_issued(identity, &serial, validity)?;
        Ok(certificate.pem())
    }

    /// Revokes every certificate of a party, and returns how many that were.
    pub fn revoke(&self, identity: &Identity) -> Result<usize, IdentityError> {
        let _lock = self.lock()?;
        let mut lines = self.issued()?;
        let domain = identity.domain();
        let mut n_revoked = 0;
        for line in lines.iter_mut().filter(|line| line.domain == domain && !line.is_revoked) {
            line.is_revoked = true;
            n_revoked += 1;
        }
        if !lines.iter().any(|line| line.domain == domain) {
            return Err(IdentityError::NeverIssued { identity: identity.clone(), path: self.folder.clone() });
        }
        let text: String = lines.iter().map(Line::to_text).collect();
        files::write(&self.folder.join("issued"), &text, Secrecy::Public)?;
        self.write_revoked()?;
        Ok(n_revoked)
    }

    /// Makes a key and a certificate for the head's page, which is valid for these names and addresses, and fills a folder with
    /// them.
    pub fn issue_web(&self, names: &[String], validity: Validity) -> Result<PathBuf, IdentityError> {
        let failed = |error| make("the page's certificate", error);
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::new(names.to_vec()).map_err(failed)?;
        params.distinguished_name = named(names.first().map_or("rota", String::as_str));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = (validity.from, validity.to);
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        let folder = self.folder.join("web");
        files::make_folder(&folder)?;
        files::write(&folder.join("key.pem"), &key.serialize_pem(), Secrecy::Secret)?;
        files::write(&folder.join("cert.pem"), &certificate.pem(), Secrecy::Public)?;
        files::write(&folder.join("ca.pem"), &self.trusted()?, Secrecy::Public)?;
        Ok(folder)
    }

    fn folder_of(&self, identity: &Identity) -> PathBuf {
        match identity.role {
            Role::Head => self.folder.join("head"),
            Role::Agent => self.folder.join("agents").join(identity.name.as_str()),
            Role::User => self.folder.join("users").join(identity.name.as_str()),
        }
    }

    /// Writes the list of what was revoked, here and for the head; there is one more for the authority before this one.
    pub(super) fn write_revoked(&self) -> Result<(), IdentityError> {
        let mut pem = self.revoked_pem()?;
        let old = self.folder.join("old");
        if old.exists() {
            let before = Authority { folder: self.folder.clone(), issuer: Authority::open(&old)?.issuer };
            pem.push_str(&before.revoked_pem()?);
        }
        files::write(&self.folder.join("revoked.pem"), &pem, Secrecy::Public)?;
        let of_head = self.folder.join("head");
        match of_head.is_dir() {
            true => files::write(&of_head.join("revoked.pem"), &pem, Secrecy::Public),
            false => Ok(()),
        }
    }

    fn revoked_pem(&self) -> Result<String, IdentityError> {
        let revoked: Vec<_> = self.issued()?.into_iter().filter(|line| line.is_revoked).collect();
        let now = OffsetDateTime::now_utc();
        let params = CertificateRevocationListParams {
            this_update: now - Duration::minutes(10),
            next_update: now.checked_add(Duration::days(3650)).unwrap_or(now),
            crl_number: SerialNumber::from(now.unix_timestamp().unsigned_abs()),
            issuing_distribution_point: None,
            revoked_certs: revoked
                .iter()
                .map(|line| RevokedCertParams {
                    serial_number: SerialNumber::from(line.serial.clone()),
                    revocation_time: now,
                    reason_code: Some(RevocationReason::CessationOfOperation),
                    invalidity_date: None,
                })
                .collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let failed = |error| make("the list of revoked certificates", error);
        params.signed_by(&self.issuer).and_then(|list| list.pem()).map_err(failed)
    }

    pub(super) fn issued(&self) -> Result<Vec<Line>, IdentityError> {
        let path = self.folder.join("issued");
        let text = String::from_utf8_lossy(&files::read(&path)?).into_owned();
        let line = |(at, text): (usize, &str)| {
            let why = || format!("line {}: `{text}` is not the record of a certificate", at + 1);
            Line::of_text(text).ok_or_else(|| IdentityError::Content { path: path.clone(), why: why() })
        };
        text.lines().enumerate().map(line).collect()
    }

    fn note_issued(&self, who: &Identity, serial: &[u8], valid: Validity) -> Result<(), IdentityError> {
        let _lock = self.lock()?;
        let mut lines = self.issued()?;
        lines.push(Line {
            serial: serial.to_vec(),
            domain: who.domain(),
            until_unix_s: valid.to.unix_timestamp(),
            is_revoked: false,
        });
        let text: String = lines.iter().map(Line::to_text).collect();
        files::write(&self.folder.join("issued"), &text, Secrecy::Public)
    }
}

/// One certificate in the list of those issued.
pub(super) struct Line {
    serial: Vec<u8>,
    pub(super) domain: String,
    pub(super) until_unix_s: i64,
    pub(super) is_revoked: bool,
}

impl Line {
    fn to_text(&self) -> String {
        let serial: String = self.serial.iter().map(|byte| format!("{byte:02x}")).collect();
        let state = if self.is_revoked { "revoked" } else { "valid" };
        format!("{serial} {} {} {state}\n", self.domain, self.until_unix_s)
    }

    fn of_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let digits = words.next()?;
        let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let serial = (0..digits.len()).step_by(2).map(byte).collect::<Option<Vec<_>>>()?;
        let domain = words.next()?.to_owned();
        let until_unix_s = words.next()?.parse().ok()?;
        let is_revoked = match words.next()? {
            "revoked" => true,
            "valid" => false,
            _ => return None,
        };
        words.next().is_none().then_some(Line { serial, domain, until_unix_s, is_revoked })
    }
}

/// The same for every authority but for the name, so that they need not be read from its certificate.
fn params(name: &str) -> Result<CertificateParams, IdentityError> {
    let mut params = CertificateParams::new(Vec::new()).map_err(|error| make("the authority", error))?;
    params.distinguished_name = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    named.push(DnType::CommonName, name);
    named
}

/// Sixteen random bytes, positive and without a leading zero.
fn new_serial() -> Vec<u8> {
    let mut serial = rand::random::<[u8; 16]>();
    if let Some(first) = serial.first_mut() {
        *first = *first & 0x3f | 0x40;
    }
    serial.to_vec()
}

fn make(what: &str, error: rcgen::Error) -> IdentityError {
    IdentityError::Make { what: what.to_owned(), error }
}
