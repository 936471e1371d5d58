//! The same request over tonic: a program of its own (`tests/bench/grpc`), so that nobody compiles gRPC to build Rota.

use std::path::Path;
use std::process::Command;

const BUILD: &str = "cargo build --release --manifest-path tests/bench/grpc/Cargo.toml";

pub(crate) fn measure() {
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/grpc/target/release/rota-bench-grpc");
    if !program.exists() {
        println!("\nThe comparison with gRPC was not measured: it is not built. Build it with `{BUILD}`.");
        return;
    }
    let status = Command::new(&program).status().expect("it starts");
    assert!(status.success(), "{} failed: {status}", program.display());
}
