//! `rota play`, started and ended.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A laboratory that runs.
pub(crate) struct Laboratory {
    child: Child,
    /// Kept open: a program whose output nobody reads ends.
    _output: BufReader<ChildStdout>,
    /// What it printed: works once.
    pub(crate) address: String,
}

impl Laboratory {
    /// Starts `rota play` in a folder.
    pub(crate) fn start(folder: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rota"))
            .arg("play")
            .args(args)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("rota starts");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        output.read_line(&mut line).expect("a line");
        let address =
            line.trim().strip_prefix("open ").unwrap_or_else(|| panic!("no address: {line}")).to_owned();
        Laboratory { child, _output: output, address }
    }

    /// Host and port.
    pub(crate) fn host(&self) -> &str {
        self.address.trim_start_matches("http://").split('/').next().expect("a host")
    }
}

impl Drop for Laboratory {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
