//! People's roles and tenants: what their certificates say, and a file with which the head's operator adds or narrows.
//!
//! ```text
//! # user   role      tenants
//! ada      admin
//! bob      -         vision,nlp     the role of the certificate; jobs count for vision unless they say nlp
//! eve      none                     nothing at all, whatever the certificate says
//! ```
//!
//! The file is read again while the head runs. One with an error changes nothing. Messages about it name lines and never
//! quote them: a wrong path must not show what another file contains. Which request takes which role is in
//! `rota_transport::access`.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rota_transport::identity::UserRole;
use rota_transport::value::{Name, is_plain};

/// The longest file that is read.
const MOST_BYTES: u64 = 1 << 20;
/// The longest name of a tenant.
const MOST_TENANT_BYTES: usize = 63;

/// A file of roles that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RolesError {
    /// It cannot be read.
    #[error("{}: {why}", path.display())]
    File {
        /// The file of roles.
        path: PathBuf,
        /// What the operating system said, or what is wrong with the whole of it.
        why: String,
    },
    /// A line that means nothing.
    #[error("{}: line {line}: {why}", path.display())]
    Line {
        /// The file of roles.
        path: PathBuf,
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it, without its words.
        why: &'static str,
    },
}

/// A person as the head sees them for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) name: Name,
    /// None for a person who may do nothing.
    pub(crate) role: Option<UserRole>,
    /// Whom their jobs may count for; the first unless they say another.
    tenants: Vec<String>,
}

impl Person {
    /// Nobody in particular, who sees everything: for what is narrowed later.
    pub(crate) fn anybody() -> Self {
        let name = Name::new("anybody").expect("a name");
        Person { name, role: Some(UserRole::Operate), tenants: Vec::new() }
    }

    /// Whether they may see and change everybody's jobs.
    pub(crate) fn operates(&self) -> bool {
        self.role >= Some(UserRole::Operate)
    }

    /// Whether a job is theirs to see and change.
    pub(crate) fn may_touch(&self, owner: &str) -> bool {
        self.operates() || owner == self.name.as_str()
    }

    /// The tenant that a job counts for, if they may use the one it names.
    pub(crate) fn tenant<'a>(&'a self, asked: &'a str) -> Option<&'a str> {
        let own = self.tenants.first().map_or(self.name.as_str(), String::as_str);
        match asked {
            "" => Some(own),
            asked if self.operates() || asked == own => Some(asked),
            asked => self.tenants.iter().any(|known| known == asked).then_some(asked),
        }
    }

    /// Whom their jobs may count for, in words.
    pub(crate) fn tenants_text(&self) -> String {
        if self.tenants.is_empty() { self.name.to_string() } else { self.tenants.join(", ") }
    }
}

/// What the file says about people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roles {
    entries: BTreeMap<Name, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    role: RoleWord,
    tenants: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoleWord {
    AsInCertificate,
    None,
    Is(UserRole),
}

impl Roles {
    /// A person, by the name and the role in their certificate.
    pub(crate) fn person(&self, name: &Name, certified: UserRole) -> Person {
        let entry = self.entries.get(name);
        let role = match entry.map_or(RoleWord::AsInCertificate, |entry| entry.role) {
            RoleWord::AsInCertificate => Some(certified),
            RoleWord::None => None,
            RoleWord::Is(role) => Some(role),
        };
        let tenants = entry.map_or_else(Vec::new, |entry| entry.tenants.clone());
        Person { name: name.clone(), role, tenants }
    }

    /// How many people it names.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn parse(path: &Path, text: &str) -> Result<Self, RolesError> {
        let mut entries = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = |why| RolesError::Line { path: path.to_owned(), line: index + 1, why };
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let (user, role, tenants) = match words.as_slice() {
                [] => continue,
                [user, role] => (user, role, "-"),
                [user, role, tenants] => (user, role, *tenants),
                _ => return Err(wrong("write a user, a role and, if you like, tenants joined by commas")),
            };
            let user = Name::new(*user).map_err(|_| wrong("its first word is no user's name"))?;
            let role = match *role {
                "-" => RoleWord::AsInCertificate,
                "none" => RoleWord::None,
                role => RoleWord::Is(
                    UserRole::of_name(role)
                        .ok_or_else(|| wrong("the role must be submit, operate, admin, none or -"))?,
                ),
            };
            let tenants =
                if tenants == "-" { Vec::new() } else { tenants.split(',').map(str::to_owned).collect() };
            if tenants
                .iter()
                .any(|tenant| tenant.is_empty() || !is_plain(tenant) || tenant.len() > MOST_TENANT_BYTES)
            {
                return Err(wrong("a tenant's name has 1 to 63 bytes and no control characters"));
            }
            if entries.insert(user, Entry { role, tenants }).is_some() {
                return Err(wrong("this user has a line already"));
            }
        }
        Ok(Roles { entries })
    }
}

/// A file of roles that is watched; without one, certificates alone count.
#[derive(Clone, Debug)]
pub(crate) struct RolesFile {
    path: Option<PathBuf>,
    /// The text, or the error, of the last look.
    last: Result<String, RolesError>,
}

impl RolesFile {
    /// Reads the file that the head starts with.
    pub(crate) fn open(path: Option<&Path>) -> Result<(Self, Roles), RolesError> {
        let Some(path) = path else {
            return Ok((RolesFile { path: None, last: Ok(String::new()) }, Roles::default()));
        };
        let text = read(path)?;
        let roles = Roles::parse(path, &text)?;
        Ok((RolesFile { path: Some(path.to_owned()), last: Ok(text) }, roles))
    }

    /// Looks again: new roles or a new error, if there is one of them.
    pub(crate) fn refresh(&mut self) -> Option<Result<Roles, RolesError>> {
        let path = self.path.as_ref()?;
        let text = read(path);
        if text == self.last {
            return None;
        }
        self.last = text.clone();
        Some(text.and_then(|text| Roles::parse(path, &text)))
    }
}

fn read(path: &Path) -> Result<String, RolesError> {
    let wrong = |why: String| RolesError::File { path: path.to_owned(), why };
    let meta = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(wrong(format!("mode {mode:03o} lets others write who may what; run `chmod go-w`")));
    }
    if meta.len() > MOST_BYTES {
        return Err(wrong(format!("{} bytes: at most {MOST_BYTES} are read", meta.len())));
    }
    std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn parse(text: &str) -> Result<Roles, RolesError> {
        Roles::parse(Path::new("roles"), text)
    }

    #[test]
    fn the_file_adds_and_narrows_and_leaves_the_others_their_certificates() {
        let roles = parse("ada admin\nbob - vision,nlp # two\n\neve none\nolga submit -\n").expect("good");
        let role = |who: &str, certified| roles.person(&name(who), certified).role;
        assert_eq!(role("ada", UserRole::Submit), Some(UserRole::Admin));
        assert_eq!(role("olga", UserRole::Admin), Some(UserRole::Submit));
        assert_eq!(role("bob", UserRole::Operate), Some(UserRole::Operate));
        assert_eq!(role("eve", UserRole::Admin), None);
        assert_eq!(role("dan", UserRole::Submit), Some(UserRole::Submit));
    }

    #[test]
    fn tenants_are_those_of_the_file_or_ones_own_name() {
        let roles = parse("bob - vision,nlp\nolga operate\n").expect("good");
        let (bob, dan) =
            (roles.person(&name("bob"), UserRole::Submit), roles.person(&name("dan"), UserRole::Submit));
        assert_eq!(
            (bob.tenant(""), bob.tenant("nlp"), bob.tenant("bob")),
            (Some("vision"), Some("nlp"), None)
        );
        assert_eq!(
            (dan.tenant(""), dan.tenant("dan"), dan.tenant("vision")),
            (Some("dan"), Some("dan"), None)
        );
        assert_eq!(roles.person(&name("olga"), UserRole::Submit).tenant("vision"), Some("vision"));
    }

    #[test]
    fn a_wrong_line_is_named_and_not_quoted() {
        for (text, line) in [
            ("root:$6$secret:19000", 1),
            ("ada boss", 1),
            ("ada admin\nADA admin", 2),
            ("ada admin\nada submit", 2),
            ("ada admin a,,b", 1),
            ("ada admin a b", 1),
            ("bob - a\u{1b}[2J", 1),
        ] {
            let error = parse(text).expect_err(text);
            assert!(matches!(error, RolesError::Line { line: at, .. } if at == line), "{text}: {error}");
            assert!(!error.to_string().contains("secret") && !error.to_string().contains("boss"), "{error}");
        }
    }

    #[test]
    fn a_file_that_others_can_write_is_refused_and_changes_are_seen_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("roles");
        std::fs::write(&path, "ada admin\n").expect("written");
        let mode =
            |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        mode(0o664);
        assert!(RolesFile::open(Some(&path)).expect_err("refused").to_string().contains("664"));
        mode(0o644);
        let (mut file, roles) = RolesFile::open(Some(&path)).expect("opened");
        assert_eq!(roles.len(), 1);
        assert!(file.refresh().is_none());
        std::fs::write(&path, "ada nonsense\n").expect("written");
        assert!(file.refresh().is_some_and(|found| found.is_err()) && file.refresh().is_none());
        std::fs::write(&path, "ada admin\nbob none\n").expect("written");
        assert!(file.refresh().is_some_and(|found| found.is_ok_and(|roles| roles.len() == 2)));
        std::fs::remove_file(&path).expect("removed");
        assert!(file.refresh().is_some_and(|found| found.is_err()) && file.refresh().is_none());
    }
}
