//! What one party keeps on its disk: the authority's certificate, its own, and its key.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rcgen::KeyPair;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use super::dates::validity_of;
use super::files::{self, Secrecy};
use super::request::KeyRequest;
use super::{Identity, IdentityError, Role, UserRole, Validity, user_role_of};

/// A key and a certificate, and whom to trust.
#[derive(Debug)]
pub struct Credentials {
    folder: PathBuf,
    identity: Identity,
    /// Certificates of the authorities to trust: one, or two while one replaces the other.
    pub(crate) authorities: Vec<CertificateDer<'static>>,
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Credentials {
    /// Reads `ca.pem`, `cert.pem` and `key.pem` of a folder.
    pub fn load(folder: &Path) -> Result<Self, IdentityError> {
        let certificate = read_certificate(&folder.join("cert.pem"))?;
        let path = folder.join("key.pem");
        let key = PrivateKeyDer::from_pem_slice(&files::read_secret(&path)?)
            .map_err(|error| IdentityError::Content { path, why: format!("no key: {error}") })?;
        let identity = identity_of(&certificate).ok_or_else(|| IdentityError::Content {
            path: folder.join("cert.pem"),
            why: "names neither a head, an agent nor a user".into(),
        })?;
        let authorities = read_certificates(&folder.join("ca.pem"))?;
        Ok(Credentials { folder: folder.to_owned(), identity, authorities, certificate, key })
    }

    /// Reads them again.
    pub fn reload(&self) -> Result<Self, IdentityError> {
        Credentials::load_for(&self.folder, self.identity.role)
    }

    /// From when to when the certificate is valid.
    pub fn validity(&self) -> Option<Validity> {
        validity_of(&self.certificate)
    }

    /// A request for a new certificate for the same key.
    pub fn request(&self) -> Result<KeyRequest, IdentityError> {
        let made = KeyPair::try_from(&self.key);
        let key = made.map_err(|error| IdentityError::Make { what: "a request".into(), error })?;
        KeyRequest::new(&key)
    }

    /// Replaces the certificate by a newer one for the same key, and the authorities to trust. Each file is replaced at once, and
    /// the old ones go together with the new.
    pub fn replace(&self, certificate: &str, authority: &str) -> Result<(), IdentityError> {
        check_new(&self.folder, &self.identity, certificate, authority)?;
        files::write(&self.folder.join("ca.pem"), authority, Secrecy::Public)?;
        files::write(&self.folder.join("cert.pem"), certificate, Secrecy::Public)
    }

    /// When the files were last written.
    pub fn written_at(&self) -> Vec<Option<SystemTime>> {
        let at = |name| std::fs::metadata(self.folder.join(name)).and_then(|meta| meta.modified()).ok();
        ["ca.pem", "cert.pem", "key.pem", "revoked.pem"].map(at).to_vec()
    }

    /// The same, if they are for that role.
    pub fn load_for(folder: &Path, role: Role) -> Result<Self, IdentityError> {
        let credentials = Credentials::load(folder)?;
        match credentials.identity.role == role {
            true => Ok(credentials),
            false => Err(IdentityError::Content {
                path: folder.join("cert.pem"),
                why: format!("is a certificate of {}, one of role {role} is needed", credentials.identity),
            }),
        }
    }

    /// Whose they are.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What they let a person do.
    pub fn user_role(&self) -> UserRole {
        user_role_of(&self.certificate)
    }

    /// The lists of revoked certificates that a head keeps next to its own, one for each authority.
    pub(crate) fn revoked(&self) -> Result<Vec<CertificateRevocationListDer<'static>>, IdentityError> {
        let path = self.folder.join("revoked.pem");
        let text = files::read(&path)?;
        let lists: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&text).collect();
        let wrong = |why: String| IdentityError::Content { path, why };
        match lists {
            Ok(lists) if lists.is_empty() => Err(wrong("no list of revoked certificates".into())),
            Ok(lists) => Ok(lists),
            Err(error) => Err(wrong(format!("no list of revoked certificates: {error}"))),
        }
    }
}

/// A key for which there is no certificate yet.
pub struct NewKey {
    key: KeyPair,
}

impl NewKey {
    /// Draws a key.
    pub fn draw() -> Result<Self, IdentityError> {
        let drawn = KeyPair::generate();
        Ok(NewKey { key: drawn.map_err(|error| IdentityError::Make { what: "a key".into(), error })? })
    }

    /// The request for its certificate.
    pub fn request(&self) -> Result<KeyRequest, IdentityError> {
        KeyRequest::new(&self.key)
    }

    /// Fills a folder with the key and what was issued for it.
    pub fn store(
        &self,
        folder: &Path,
        certificate: &str,
        authority: &str,
    ) -> Result<Credentials, IdentityError> {
        files::make_folder(folder)?;
        files::write(&folder.join("key.pem"), &self.key.serialize_pem(), Secrecy::Secret)?;
        files::write(&folder.join("ca.pem"), authority, Secrecy::Public)?;
        files::write(&folder.join("cert.pem"), certificate, Secrecy::Public)?;
        Credentials::load(folder)
    }
}

/// Checks what is about to replace a certificate: what cannot be used must not take the place of what can.
fn check_new(
    folder: &Path,
    identity: &Identity,
    certificate: &str,
    authority: &str,
) -> Result<(), IdentityError> {
    let wrong = |why: &str| IdentityError::Content { path: folder.to_owned(), why: why.to_owned() };
    let new = CertificateDer::from_pem_slice(certificate.as_bytes())
        .map_err(|error| wrong(&format!("what was issued is not a certificate: {error}")))?;
    if identity_of(&new).as_ref() != Some(identity) {
        return Err(wrong("what was issued is a certificate of somebody else"));
    }
    match CertificateDer::pem_slice_iter(authority.as_bytes()).next() {
        Some(Ok(_)) => Ok(()),
        _ => Err(wrong("what was issued names no authority")),
    }
}

/// All certificates in a file; there is at least one.
pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let text = files::read(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let wrong = |why: String| IdentityError::Content { path: path.to_owned(), why };
    match all {
        Ok(all) if all.is_empty() => Err(wrong("no certificate".into())),
        Ok(all) => Ok(all),
        Err(error) => Err(wrong(format!("no certificate: {error}"))),
    }
}

fn read_certificate(path: &Path) -> Result<CertificateDer<'static>, IdentityError> {
    CertificateDer::from_pem_slice(&files::read(path)?).map_err(|error| IdentityError::Content {
        path: path.to_owned(),
        why: format!("no certificate: {error}"),
    })
}

/// Who a certificate is for: its first name that is one of ours.
pub(crate) fn identity_of(certificate: &CertificateDer<'_>) -> Option<Identity> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    certificate.valid_dns_names().find_map(Identity::of_domain)
}
