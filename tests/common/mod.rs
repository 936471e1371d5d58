//! The program as its users start it: what it prints, and what it says when it refuses.

use std::path::Path;
use std::process::{Command, Output};

/// Runs the program in a folder.
pub(crate) fn rota(dir: &Path, args: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(args.split_whitespace()).current_dir(dir).output().expect("the program starts")
}

/// What it printed, having succeeded.
pub(crate) fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// What it said, having refused.
pub(crate) fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).expect("text")
}
