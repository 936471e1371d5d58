//! The operator's binary: parses the command line and hands over.

use std::process::ExitCode;

fn main() -> ExitCode {
    rota::commands::main()
}
