//! Which account of this machine a user of the cluster has: the one of the same name, unless a table says otherwise.
//!
//! ```text
//! # user    account
//! ada       alovelace
//! eve       none           her jobs are refused here
//! *         none           so are those of everybody who is not listed; without this line they have the account of their name
//! ```
//!
//! The file is read again when it changes. One with an error changes nothing. Whether there is such an account, and that it is
//! not root's, is looked at when a job starts, in `launch::account`.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::unistd::User;
use rota_transport::value::Name;
use tracing::warn;

use crate::launch::account::RunAs;
use crate::options::{AccountOptions, JobsAs};

/// The line of everybody who is not listed.
const OTHERS: &str = "*";
/// As an account: no account at all.
const NONE: &str = "none";
/// The longest file that is read.
const MOST_BYTES: u64 = 1 << 20;

/// A table of accounts that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct AccountsError {
    path: PathBuf,
    why: TableError,
}

/// What is wrong with a table. Lines are named and not quoted: a wrong path must not show what another file contains.
#[derive(Debug, thiserror::Error)]
enum TableError {
    #[error(transparent)]
    File(#[from] std::io::Error),
    #[error("mode {0:03o} lets others write who runs as whom; run `chmod go-w`")]
    Mode(u32),
    #[error("{0} bytes: at most {MOST_BYTES} are read")]
    Size(u64),
    #[error("line {line}: {why}")]
    Line { line: usize, why: &'static str },
}

/// Whose account a job runs under on this node.
#[derive(Clone, Debug)]
pub struct Accounts {
    jobs_as: JobsAs,
    is_root: bool,
    /// The agent's own account.
    own: String,
    table: Option<TableFile>,
}

#[derive(Clone, Debug)]
struct TableFile {
    path: PathBuf,
    /// When it was written and how long it is, as of the last look.
    seen: Option<(SystemTime, u64)>,
    table: BTreeMap<String, String>,
}

impl Accounts {
    /// Reads the table that the options name.
    pub fn open(options: &AccountOptions) -> Result<Self, AccountsError> {
        let table = options.accounts.as_deref().map(TableFile::open).transpose()?;
        let uid = rustix::process::geteuid();
        let user = User::from_uid(nix::unistd::Uid::from_raw(uid.as_raw()));
        let own = user.ok().flatten().map_or_else(|| format!("number {}", uid.as_raw()), |user| user.name);
        Ok(Accounts { jobs_as: options.jobs_as, is_root: uid.is_root(), own, table })
    }

    /// Whether jobs have accounts of their own here, so that they must be able to reach their folders.
    pub fn differ(&self) -> bool {
        self.is_root && self.jobs_as == JobsAs::Submitter
    }

    /// Who a user's jobs run as here.
    pub fn run_as(&mut self, user: &Name) -> RunAs {
        if self.jobs_as == JobsAs::Own {
            return RunAs::Agent;
        }
        let listed = self.table.as_mut().and_then(|file| file.account(user));
        let is_listed = listed.is_some();
        let name = listed.unwrap_or_else(|| user.to_string());
        let nobody = |why: String| RunAs::Nobody { why };
        match (name.as_str(), self.is_root) {
            (NONE, _) => nobody(format!("{user} has no account on this node: its table of accounts says so")),
            ("root", _) => nobody(format!("{user}'s account would be root, and no job runs as root")),
            (account, false) if account == self.own => RunAs::Agent,
            (account, false) => nobody(format!(
                "{user}'s jobs run as `{account}`, and this node's agent, which is not root, can only start them as `{}`",
                self.own
            )),
            (_, true) => RunAs::Account { name, is_listed },
        }
    }

    /// What happens to jobs, for the log and for `rota-agent check`.
    pub fn text(&self) -> String {
        match (self.jobs_as, self.is_root) {
            (JobsAs::Own, true) => "jobs run as root, whoever submits them (--jobs-as self)".to_owned(),
            (JobsAs::Own, false) => {
                format!("jobs run as {}, whoever submits them (--jobs-as self)", self.own)
            }
            (JobsAs::Submitter, true) => "jobs run as the accounts of their submitters".to_owned(),
            (JobsAs::Submitter, false) => format!(
                "only jobs of users with the account {} run: an agent that is not root cannot change to another",
                self.own
            ),
        }
    }

    /// Whether an operator should look at it again.
    pub fn is_doubtful(&self) -> bool {
        (self.jobs_as == JobsAs::Own) == self.is_root
    }
}

impl TableFile {
    fn open(path: &Path) -> Result<Self, AccountsError> {
        let seen = seen(path);
        Ok(TableFile { table: read(path)?, path: path.to_owned(), seen })
    }

    fn account(&mut self, user: &Name) -> Option<String> {
        let seen = seen(&self.path);
        if seen != self.seen {
            self.seen = seen;
            match read(&self.path) {
                Ok(table) => self.table = table,
                Err(error) => warn!("the table of accounts as it was before stays in force: {error}"),
            }
        }
        self.table.get(user.as_str()).or_else(|| self.table.get(OTHERS)).cloned()
    }
}

fn seen(path: &Path) -> Option<(SystemTime, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

fn read(path: &Path) -> Result<BTreeMap<String, String>, AccountsError> {
    read_table(path).map_err(|why| AccountsError { path: path.to_owned(), why })
}

fn read_table(path: &Path) -> Result<BTreeMap<String, String>, TableError> {
    let meta = std::fs::metadata(path)?;
    if meta.mode() & 0o022 != 0 {
        return Err(TableError::Mode(meta.mode() & 0o777));
    }
    if meta.len() > MOST_BYTES {
        return Err(TableError::Size(meta.len()));
    }
    parse(&std::fs::read_to_string(path)?)
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, TableError> {
    let mut table = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |why| Err(TableError::Line { line: index + 1, why });
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let (user, account) = match words.as_slice() {
            [] => continue,
            [user, account] => (*user, *account),
            _ => return wrong("write a user and an account"),
        };
        if user != OTHERS && Name::new(user).is_err() {
            return wrong("its first word is not a user's name");
        }
        if account == "root" || account.starts_with('-') || account.contains(['/', ':']) {
            return wrong("its second word must be the name of an account other than root, or none");
        }
        if table.insert(user.to_owned(), account.to_owned()).is_some() {
            return wrong("this user has a line already");
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(jobs_as: JobsAs, is_root: bool, table: Option<&str>) -> (Accounts, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("accounts");
        let table = table.map(|text| {
            std::fs::write(&path, text).expect("written");
            TableFile::open(&path).expect("a good table")
        });
        (Accounts { jobs_as, is_root, own: "me".to_owned(), table }, folder)
    }

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn account(name: &str, is_listed: bool) -> RunAs {
        RunAs::Account { name: name.to_owned(), is_listed }
    }

    #[test]
    fn a_user_has_the_account_of_their_name_unless_the_table_says_otherwise() {
        let (mut plain, _folder) = accounts(JobsAs::Submitter, true, None);
        assert_eq!(plain.run_as(&name("ada")), account("ada", false));
        let (mut listed, _folder) = accounts(JobsAs::Submitter, true, Some("ada lovelace # her\neve none\n"));
        assert_eq!(listed.run_as(&name("ada")), account("lovelace", true));
        assert_eq!(listed.run_as(&name("bob")), account("bob", false));
        assert!(matches!(listed.run_as(&name("eve")), RunAs::Nobody { .. }));
        let (mut closed, _folder) = accounts(JobsAs::Submitter, true, Some("ada ada\n* none\n"));
        assert!(matches!(closed.run_as(&name("bob")), RunAs::Nobody { .. }));
    }

    #[test]
    fn nobody_becomes_root_by_calling_themselves_so() {
        for is_root in [false, true] {
            let (mut plain, _folder) = accounts(JobsAs::Submitter, is_root, None);
            let RunAs::Nobody { why } = plain.run_as(&name("root")) else { panic!("refused") };
            assert!(why.contains("no job runs as root"), "{why}");
        }
    }

    #[test]
    fn an_agent_that_is_not_root_runs_jobs_of_its_own_account_alone_or_all_if_told_so() {
        let (mut own, _folder) = accounts(JobsAs::Submitter, false, Some("ada me\n"));
        assert_eq!((own.run_as(&name("me")), own.run_as(&name("ada"))), (RunAs::Agent, RunAs::Agent));
        let RunAs::Nobody { why } = own.run_as(&name("bob")) else { panic!("refused") };
        assert!(why.contains("`bob`") && why.contains("`me`"), "{why}");
        let (mut told, _folder) = accounts(JobsAs::Own, false, None);
        assert_eq!(told.run_as(&name("bob")), RunAs::Agent);
    }

    #[test]
    fn a_table_is_read_again_and_one_with_an_error_changes_nothing() {
        let (mut listed, folder) = accounts(JobsAs::Submitter, true, Some("ada first\n"));
        let path = folder.path().join("accounts");
        std::fs::write(&path, "ada root\n").expect("written");
        assert_eq!(listed.run_as(&name("ada")), account("first", true));
        std::fs::write(&path, "ada second-one\n").expect("written");
        assert_eq!(listed.run_as(&name("ada")), account("second-one", true));
        for (text, word) in [
            ("ada", "line 1: write"),
            ("ada a\nada b", "line 2: this user"),
            ("Ada a", "not a user's name"),
            ("ada ../x", "line 1: its second"),
            ("root:x:0:0", "write a user"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(word) && !error.contains("x:0"), "{error}");
        }
    }
}
