//! A live cluster for a figure: head and emulated agents on this machine, started by the commands a user would type, with
//! a home folder of their own.
//!
//! However this program ends (done, failed, interrupted, killed), the cluster is stopped: a sweeper process waits for the
//! end of a pipe that only this program holds open, then stops what runs and removes the home.

use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Waits until nothing holds the pipe any more, then stops the cluster in the home `$1` with the program `$0`.
const SWEEP: &str = r#"cat >/dev/null
if [ -e "$1/pids" ]; then "$0" up --stop --home "$1" >/dev/null; fi
code=$?
rm -rf "$1"
exit $code"#;

/// A cluster with a temporary home; stopped when it is dropped.
pub(super) struct LocalCluster {
    program: PathBuf,
    home: PathBuf,
    sweeper: Child,
    /// The pipe to the sweeper: closing it stops the cluster.
    pipe: Option<ChildStdin>,
}

impl LocalCluster {
    /// An empty home; nothing is started yet.
    pub(super) fn new() -> Result<Self> {
        let home = std::env::temp_dir().join(format!("rota-reproduce-{:016x}", rand::random::<u64>()));
        std::fs::create_dir(&home).with_context(|| home.display().to_string())?;
        let program = std::env::current_exe()?;
        let mut sweeper = Command::new("sh");
        sweeper.args(["-c", SWEEP]).args([&program, &home]).stdin(Stdio::piped()).stdout(Stdio::null());
        // A group of its own: an interrupt from the terminal must not reach it.
        let mut sweeper = sweeper.process_group(0).spawn().context("sh")?;
        let pipe = sweeper.stdin.take();
        Ok(LocalCluster { program, home, sweeper, pipe })
    }

    /// The folder for configuration and results; removed with the cluster.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Starts the head and its emulated agents.
    pub(super) fn up(&self, args: &[&str]) -> Result<()> {
        let mut up = self.command(&[&["up"], args].concat());
        // An interrupted `up` could leave processes that nothing knows of yet. It therefore always runs to its end, and
        // holds the pipe until then.
        let pipe = self.pipe.as_ref().context("the cluster was stopped")?;
        output(up.process_group(0).stdin(pipe.as_fd().try_clone_to_owned()?)).map(drop)
    }

    /// Stops the cluster and waits until it is gone.
    pub(super) fn down(mut self) -> Result<()> {
        if !self.sweep()? {
            bail!("the local cluster could not be stopped: see above");
        }
        Ok(())
    }

    /// Runs a command of this program against the cluster and returns its output.
    pub(super) fn run(&self, args: &[&str]) -> Result<String> {
        output(self.command(args).stdin(Stdio::null()))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .env("ROTA_HOME", &self.home)
            .env_remove("ROTA_HEAD")
            .env_remove("ROTA_CREDENTIALS");
        command
    }

    /// Closes the pipe and waits for the sweeper; whether it succeeded.
    fn sweep(&mut self) -> std::io::Result<bool> {
        self.pipe = None;
        Ok(self.sweeper.wait()?.success())
    }
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        // The sweeper has printed what went wrong, if anything did.
        let _ = self.sweep();
    }
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().context("rota itself")?;
    if !output.status.success() {
        let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
        bail!("rota {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
