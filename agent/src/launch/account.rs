//! The account of this machine that a job runs as: looked up, checked, and taken on between fork and exec.
//!
//! A job never runs as root, except where the agent's operator chose `--jobs-as self` for an agent of root's. The look-up is
//! the shim's work: directories of accounts may be slow, and a shim has nothing else to do. Which account a user of the
//! cluster has is in `accounts`.

use std::ffi::CString;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::{User, getgrouplist};
use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

use super::LaunchError;

/// Accounts with lower numbers belong to the system's services; only a table of accounts may name them.
const FIRST_PERSON_UID: u32 = 1_000;
/// What files of a job are not allowed to others, unless it says otherwise.
const UMASK: u32 = 0o022;

/// Who the processes of a launch run as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunAs {
    /// The agent's own user.
    #[default]
    Agent,
    /// An account of this machine.
    Account {
        /// Its name, as the system's database of users has it.
        name: String,
        /// Whether the operator named it, so that it may be one of the system's.
        is_listed: bool,
    },
    /// Nobody: the launch is refused.
    Nobody {
        /// The reason, for the job's owner.
        why: String,
    },
}

/// Why a launch has no account to run as.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// The agent's rules leave it none.
    #[error("{0}")]
    Refused(String),
    /// This machine does not know the account.
    #[error(
        "there is no account `{0}` on this node: make it, or map the user to another one (rota-agent --accounts)"
    )]
    Unknown(String),
    /// The account is root's, by its name or by its number.
    #[error("the account `{0}` is root's, and no job runs as root")]
    Root(String),
    /// The account is a service's, and nobody said that it is meant.
    #[error(
        "`{name}` is an account of the system (number {uid}): only a line of rota-agent --accounts may give it jobs"
    )]
    System {
        /// The account's name.
        name: String,
        /// Its number.
        uid: u32,
    },
    /// The directory of accounts cannot be asked.
    #[error("the account `{name}` cannot be looked up: {why}")]
    LookUp {
        /// The account's name.
        name: String,
        /// The system's error.
        why: String,
    },
}

/// An account of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name, as the system's database of users has it.
    pub name: String,
    /// Its number, which is not root's.
    pub uid: u32,
    /// Its main group.
    pub gid: u32,
    /// All of its groups.
    pub groups: Vec<u32>,
    /// Its home.
    pub home: PathBuf,
    /// Its shell.
    pub shell: PathBuf,
}

impl Account {
    /// The account to change to; none for the agent's own user.
    pub fn of(run_as: &RunAs) -> Result<Option<Self>, AccountError> {
        match run_as {
            RunAs::Agent => Ok(None),
            RunAs::Nobody { why } => Err(AccountError::Refused(why.clone())),
            RunAs::Account { name, is_listed } => Account::find(name, *is_listed).map(Some),
        }
    }

    fn find(name: &str, is_listed: bool) -> Result<Self, AccountError> {
        let failed = |why: String| AccountError::LookUp { name: name.to_owned(), why };
        let user = User::from_name(name).map_err(|error| failed(error.to_string()))?;
        let user = user.ok_or_else(|| AccountError::Unknown(name.to_owned()))?;
        let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
        if uid == 0 {
            return Err(AccountError::Root(name.to_owned()));
        }
        if uid < FIRST_PERSON_UID && !is_listed {
            return Err(AccountError::System { name: name.to_owned(), uid });
        }
        let c_name = CString::new(name).map_err(|error| failed(error.to_string()))?;
        let groups = getgrouplist(&c_name, user.gid).map_err(|error| failed(error.to_string()))?;
        let groups = groups.into_iter().map(|group| group.as_raw()).collect();
        Ok(Account { name: name.to_owned(), uid, gid, groups, home: user.dir, shell: user.shell })
    }

    /// What a login sets.
    pub fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("HOME", self.home.display().to_string()),
            ("LOGNAME", self.name.clone()),
            ("SHELL", self.shell.display().to_string()),
            ("USER", self.name.clone()),
        ]
    }

    /// Does something with files as this account may, and returns to the agent's user. For the shim, which has one thread.
    pub fn acting<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
        let (own_groups, own_gid, own_uid) =
            (rustix::process::getgroups()?, rustix::process::getegid(), rustix::process::geteuid());
        set_thread_groups(&self.group_ids())?;
        set_thread_res_gid(None, Gid::from_raw(self.gid), None)?;
        set_thread_res_uid(None, Uid::from_raw(self.uid), None)?;
        let result = act();
        // In this order: only root may change groups.
        set_thread_res_uid(None, own_uid, None)?;
        set_thread_res_gid(None, own_gid, None)?;
        set_thread_groups(&own_groups)?;
        result
    }

    /// Makes sure that the account can enter a folder, which the job's owner named.
    pub fn check_folder(&self, path: &Path) -> Result<(), LaunchError> {
        let enter = || {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = rustix::fs::open(path, flags, Mode::empty())?;
            // Looking up a name in it takes the right to enter it.
            rustix::fs::openat(folder, c".", flags, Mode::empty())?;
            Ok(())
        };
        self.acting(enter).map_err(|source| self.refused(path, source))
    }

    /// Makes sure that the account can reach a file or a folder.
    pub fn check_reach(&self, path: &Path) -> Result<(), LaunchError> {
        let reach = || Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map(drop)?);
        self.acting(reach).map_err(|source| self.refused(path, source))
    }

    /// Makes a folder, as the account may.
    pub fn make_folder(&self, path: &Path) -> Result<(), LaunchError> {
        self.acting(|| std::fs::create_dir_all(path)).map_err(|source| self.refused(path, source))?;
        self.check_folder(path)
    }

    /// Makes a folder of the agent's for the account alone. What the agent put there itself, such as a checkpoint that
    /// was copied, becomes the account's; what belongs to another account stays there, and that is an error.
    pub fn give_folder(&self, path: &Path) -> Result<(), LaunchError> {
        self.try_give(path).map_err(|source| LaunchError::File { path: path.to_owned(), source })?;
        self.check_folder(path)
    }

    fn try_give(&self, path: &Path) -> io::Result<()> {
        make_passage(path.parent().unwrap_or(path))?;
        match std::fs::DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => return self.own(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let found = std::fs::symlink_metadata(path)?;
        match found.uid() {
            _ if !found.is_dir() => Err(io::Error::other("it is not a folder")),
            uid if uid == self.uid => Ok(()),
            0 => self.own_all(path),
            uid => Err(io::Error::other(format!("it belongs to account {uid} and not to {}", self.name))),
        }
    }

    fn own(&self, path: &Path) -> io::Result<()> {
        std::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid))
    }

    /// The folder itself last: until then nobody but root can change what is below it.
    fn own_all(&self, folder: &Path) -> io::Result<()> {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                self.own_all(&entry.path())?;
            } else {
                self.own(&entry.path())?;
            }
        }
        self.own(folder)
    }

    fn refused(&self, path: &Path, source: io::Error) -> LaunchError {
        LaunchError::Folder { path: path.to_owned(), account: self.name.clone(), source }
    }

    fn group_ids(&self) -> Vec<Gid> {
        self.groups.iter().map(|group| Gid::from_raw(*group)).collect()
    }

    /// Everything that the change needs, made before the fork.
    pub(super) fn change(&self, directory: &Path) -> Result<Change, LaunchError> {
        use std::os::unix::ffi::OsStrExt as _;
        let path = CString::new(directory.as_os_str().as_bytes())
            .map_err(|error| self.refused(directory, io::Error::other(error)))?;
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        Ok(Change { uid, gid, groups: self.group_ids(), directory: path })
    }
}

/// A change of account that is prepared: carrying it out makes system calls only.
pub(super) struct Change {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    directory: CString,
}

impl Change {
    /// Gives up root for good, checks that it is gone, and enters the job's directory as the account may.
    pub(super) fn carry_out(&self) -> io::Result<()> {
        use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
        // This process has one thread: it is the child of a fork.
        set_thread_groups(&self.groups)?;
        set_thread_res_gid(self.gid, self.gid, self.gid)?;
        set_thread_res_uid(self.uid, self.uid, self.uid)?;
        rustix::thread::set_no_new_privs(true)?;
        let is_root_gone = rustix::process::getuid() == self.uid
            && rustix::process::geteuid() == self.uid
            && rustix::process::getgid() == self.gid
            && rustix::process::getegid() == self.gid
            && !self.uid.is_root()
            && set_thread_res_uid(None, Uid::ROOT, None).is_err()
            && rustix::thread::capabilities(None)
                .is_ok_and(|sets| (sets.effective | sets.permitted) == CapabilitySet::empty());
        if !is_root_gone {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        rustix::process::umask(Mode::from_raw_mode(UMASK));
        Ok(rustix::process::chdir(self.directory.as_c_str())?)
    }
}

/// Makes folders that others may pass through and not list.
pub fn make_passage(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        make_passage(above)?;
    }
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o711))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_account_is_root_or_a_service_or_unknown() {
        let of = |name: &str, is_listed| Account::of(&RunAs::Account { name: name.to_owned(), is_listed });
        for is_listed in [false, true] {
            assert_eq!(of("root", is_listed), Err(AccountError::Root("root".to_owned())));
            let unknown = of("no-such-account", is_listed);
            assert_eq!(unknown, Err(AccountError::Unknown("no-such-account".to_owned())));
        }
        assert!(matches!(of("daemon", false), Err(AccountError::System { .. })));
        assert!(of("daemon", true).is_ok_and(|account| account.is_some_and(|found| found.uid > 0)));
        let nobody = RunAs::Nobody { why: "a reason".to_owned() };
        assert_eq!(Account::of(&nobody), Err(AccountError::Refused("a reason".to_owned())));
        assert_eq!(Account::of(&RunAs::Agent), Ok(None));
    }
}
