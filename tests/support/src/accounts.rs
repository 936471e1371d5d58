//! Accounts of this machine, made for one test and removed after it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::need::{self, Lack, Thing};

static N_MADE: AtomicU32 = AtomicU32::new(0);

/// Accounts with homes of their own that only they can enter.
#[derive(Debug)]
pub struct Accounts {
    names: Vec<String>,
}

impl Accounts {
    /// Makes accounts; none where this user may not.
    pub fn make(n_accounts: usize) -> Option<Self> {
        let mut accounts = Accounts { names: Vec::new() };
        let made = (0..n_accounts).try_for_each(|_| {
            let number = N_MADE.fetch_add(1, Ordering::Relaxed);
            let name = format!("rota{}x{number}", std::process::id());
            useradd(&name)?;
            accounts.names.push(name);
            Ok(())
        });
        need::found(Thing::Accounts, made.map(|()| accounts))
    }

    /// The name of one of them.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    /// The home of one of them.
    pub fn home(&self, index: usize) -> PathBuf {
        home(self.name(index))
    }

    /// User and group numbers of one of them.
    ///
    /// # Panics
    /// If the system does not say.
    pub fn ids(&self, index: usize) -> (u32, u32) {
        let ask = |option: &str| {
            let output = Command::new("id").args([option, self.name(index)]).output().expect("id runs");
            String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
        };
        (ask("-u"), ask("-g"))
    }
}

impl Drop for Accounts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = quietly(Command::new("userdel").args(["--force", "--remove", name]));
        }
    }
}

fn home(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("home-{name}"))
}

fn useradd(name: &str) -> Result<(), Lack> {
    let path = home(name);
    let mut command = Command::new("useradd");
    command.args(["--create-home", "--shell", "/bin/sh", "--home-dir"]).arg(&path).arg(name);
    // Another test may hold the lock of the system's list for a moment.
    for _ in 0..50 {
        match quietly(&mut command) {
            Err(_) => return Err(Lack::Missing("useradd is not installed".to_owned())),
            Ok(true) => {
                let closed = std::fs::Permissions::from_mode(0o700);
                return std::fs::set_permissions(&path, closed)
                    .map_err(|error| Lack::Refused(format!("{}: {error}", path.display())));
            }
            Ok(false) => std::thread::sleep(std::time::Duration::from_millis(200)),
        }
    }
    Err(Lack::Refused("accounts cannot be made here: it takes root".to_owned()))
}

fn quietly(command: &mut Command) -> std::io::Result<bool> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().map(|status| status.success())
}
