//! Identities: the cluster has its own certificate authority, and the head, every agent and every user have certificates.
//!
//! Role and name are in the certificate (`node0.agent.rota`, `ada.user.rota`), signed by the authority, so that nobody
//! can claim to be somebody else. `authority` issues and revokes, `rotation` replaces it, `credentials` is what one party keeps on
//! its disk, `request` and `token` how it gets a certificate without its key leaving the machine, `dates` until when that is
//! valid, `user_role` what a person may do. When certificates are checked is in `quic`.

mod authority;
mod credentials;
mod dates;
mod files;
mod request;
mod rotation;
mod token;
mod user_role;

pub use authority::{Authority, Issued, JoinFault, Signed, Validity};
pub use credentials::{Credentials, NewKey};
pub(crate) use credentials::{identity_of, read_certificates};
pub(crate) use dates::validity_of;
pub(crate) use files::read_secret;
pub use request::KeyRequest;
pub use rotation::Rotation;
pub use token::{Fingerprint, JoinToken, TokenFault};
pub use user_role::UserRole;
pub(crate) use user_role::user_role_of;

use std::path::PathBuf;

use crate::value::{Name, ValueError};

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The head, to which the others connect.
    Head,
    /// The daemon of a node.
    Agent,
    /// A person, or a program that acts for one.
    User,
}

impl Role {
    /// Every role with its name.
    pub const ALL: [(Role, &'static str); 3] =
        [(Role::Head, "head"), (Role::Agent, "agent"), (Role::User, "user")];

    /// As in certificates and in messages: `head`, `agent` or `user`.
    pub fn as_str(self) -> &'static str {
        Role::ALL.iter().find(|(role, _)| *role == self).map_or("", |(_, name)| name)
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who holds a certificate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// What it is for.
    pub role: Role,
    /// Whose it is.
    pub name: Name,
}

impl Identity {
    /// The name in the certificate.
    pub fn domain(&self) -> String {
        format!("{}.{}.rota", self.name, self.role)
    }

    /// From a name in a certificate; `None` when it does not name a role of ours.
    pub fn of_domain(domain: &str) -> Option<Self> {
        let rest = domain.strip_suffix(".rota")?;
        let (name, role) = rest.rsplit_once('.')?;
        let role = Role::ALL.iter().find(|(_, known)| *known == role)?.0;
        Some(Identity { role, name: Name::new(name).ok()? })
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.role, self.name)
    }
}

/// Keys and certificates that cannot be made, read or used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file that was to be read or written.
        path: PathBuf,
        /// What the operating system said.
        error: std::io::Error,
    },
    /// A key that others can read.
    #[error("{}: mode {mode:03o} lets others read this key; run `chmod 600 {}`", path.display(), path.display())]
    KeyTooOpen {
        /// The file of the key.
        path: PathBuf,
        /// Permission bits, as `chmod` takes them.
        mode: u32,
    },
    /// A file that does not hold what it should.
    #[error("{}: {why}", path.display())]
    Content {
        /// The file that was read.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The folder already has an authority.
    #[error("{}: an authority is there already; a new one would make every certificate worthless", path.display())]
    Exists {
        /// Folder of the authority that is there.
        path: PathBuf,
    },
    /// Nothing to revoke.
    #[error("{identity}: no certificate was issued by the authority in {}", path.display())]
    NeverIssued {
        /// The party without a certificate.
        identity: Identity,
        /// Folder of the authority.
        path: PathBuf,
    },
    /// A text that is not a token.
    #[error("this is not a token of `rota pki token`: they begin with rota1-")]
    NoToken,
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
    /// An authority that is being replaced already, or is not.
    #[error("{}: {why}", path.display())]
    Rotation {
        /// Folder of the authority.
        path: PathBuf,
        /// Why this step is not the next one.
        why: String,
    },
    /// A name that is not valid.
    #[error(transparent)]
    Name(#[from] ValueError),
    /// A certificate could not be made.
    #[error("{what} could not be made: {error}")]
    Make {
        /// What was being made: a key, the authority, a list, or the party a certificate is for.
        what: String,
        /// What the library for certificates said.
        error: rcgen::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_survive_their_domain() {
        let identity = Identity { role: Role::Agent, name: Name::new("node-7").expect("a name") };
        assert_eq!(identity.domain(), "node-7.agent.rota");
        assert_eq!(Identity::of_domain(&identity.domain()), Some(identity));
        for stranger in ["node0", "node0.agent", "node0.boss.rota", "a.b.agent.rota", ".agent.rota", "rota"] {
            assert_eq!(Identity::of_domain(stranger), None, "{stranger}");
        }
    }
}
