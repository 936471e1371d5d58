//! What a person may do: the role in a user's certificate.
//!
//! It is a second name of the certificate (`operate.role.rota`), signed by the authority like the first. A certificate
//! without one, as earlier versions issued them, has the least role. Which request takes which role is in `access`.

use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};

/// What a person may do; each role may also do what the ones before it may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum UserRole {
    /// Submit jobs, and see, explain and cancel one's own.
    #[default]
    Submit,
    /// See and cancel everybody's jobs, drain nodes, choose the policy.
    Operate,
    /// End the head, and let others join the cluster.
    Admin,
}

impl UserRole {
    /// Every role with its name, from the least on.
    pub const ALL: [(UserRole, &'static str); 3] =
        [(UserRole::Submit, "submit"), (UserRole::Operate, "operate"), (UserRole::Admin, "admin")];

    /// As in certificates, options and messages.
    pub fn as_str(self) -> &'static str {
        UserRole::ALL.iter().find(|(role, _)| *role == self).map_or("", |(_, name)| name)
    }

    /// The role of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        UserRole::ALL.iter().find(|(_, known)| *known == name).map(|(role, _)| *role)
    }

    /// The name in the certificate.
    pub(super) fn domain(self) -> String {
        format!("{self}.role.rota")
    }

    fn of_domain(domain: &str) -> Option<Self> {
        UserRole::of_name(domain.strip_suffix(".role.rota")?)
    }
}

impl std::fmt::Display for UserRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The role in a certificate that was checked; the least if it names none, or more than one.
pub(crate) fn user_role_of(certificate: &CertificateDer<'_>) -> UserRole {
    let Ok(certificate) = webpki::EndEntityCert::try_from(certificate) else { return UserRole::default() };
    let mut roles = certificate.valid_dns_names().filter_map(UserRole::of_domain);
    match (roles.next(), roles.next()) {
        (Some(role), None) => role,
        _ => UserRole::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_ordered_and_survive_their_domain() {
        assert!(UserRole::Submit < UserRole::Operate && UserRole::Operate < UserRole::Admin);
        for (role, name) in UserRole::ALL {
            assert_eq!(
                (UserRole::of_name(name), UserRole::of_domain(&role.domain())),
                (Some(role), Some(role))
            );
        }
        for stranger in ["root", "Admin", "", "admin.role.rota"] {
            assert_eq!(UserRole::of_name(stranger), None, "{stranger}");
        }
        // A user called `admin` has no role by that name.
        assert_eq!(UserRole::of_domain("admin.user.rota"), None);
    }
}
