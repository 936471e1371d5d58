//! A live cluster for a figure: this very program, run as anybody would type it, with a home of its own that is gone at
//! the end.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// This program and the folder in which its head and agents keep everything.
pub(super) struct Rota {
    program: PathBuf,
    home: PathBuf,
    is_up: bool,
}

impl Rota {
    /// With an empty home.
    pub(super) fn new() -> Result<Self> {
        let home = std::env::temp_dir().join(format!("rota-reproduce-{:016x}", rand::random::<u64>()));
        std::fs::create_dir(&home).with_context(|| home.display().to_string())?;
        Ok(Rota { program: std::env::current_exe()?, home, is_up: false })
    }

    /// Where files for it can be put.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Starts a head and emulated agents.
    pub(super) fn up(&mut self, args: &[&str]) -> Result<()> {
        self.run(&[&["up"], args].concat())?;
        self.is_up = true;
        Ok(())
    }

    /// Ends them.
    pub(super) fn down(&mut self) -> Result<()> {
        self.is_up = false;
        self.run(&["up", "--stop"]).map(drop)
    }

    /// Runs a command; what it says.
    pub(super) fn run(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .env("ROTA_HOME", &self.home)
            .env_remove("ROTA_HEAD")
            .env_remove("ROTA_CREDENTIALS");
        let output = command.stdin(Stdio::null()).output().context("rota itself")?;
        if !output.status.success() {
            bail!("rota {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Rota {
    fn drop(&mut self) {
        // Whatever came of it, nothing is left running; a folder that stays is no reason to fail.
        if self.is_up {
            let _ = self.down();
        }
        let _ = std::fs::remove_dir_all(&self.home);
    }
}
