//! What one party keeps on its disk: the authority's certificate, its own, and its key.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use super::files;
use super::{Identity, IdentityError, Role, UserRole, user_role_of};

/// A key and a certificate, and whom to trust.
#[derive(Debug)]
pub struct Credentials {
    folder: PathBuf,
    identity: Identity,
    pub(crate) authority: CertificateDer<'static>,
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
        let authority = read_certificate(&folder.join("ca.pem"))?;
        Ok(Credentials { folder: folder.to_owned(), identity, authority, certificate, key })
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

    /// The list of revoked certificates that a head keeps next to its own.
    pub(crate) fn revoked(&self) -> Result<CertificateRevocationListDer<'static>, IdentityError> {
        let path = self.folder.join("revoked.pem");
        CertificateRevocationListDer::from_pem_slice(&files::read(&path)?).map_err(|error| {
            IdentityError::Content { path, why: format!("no list of revoked certificates: {error}") }
        })
    }

    /// When that list was last written.
    pub(crate) fn revoked_at(&self) -> Option<SystemTime> {
        std::fs::metadata(self.folder.join("revoked.pem")).and_then(|meta| meta.modified()).ok()
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
