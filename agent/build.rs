//! Links hwloc statically where its static library is installed: the agent then starts on servers without hwloc.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_HWLOC").is_none() {
        return;
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names a folder"));
    match static_library() {
        // In a folder of its own: the linker takes it there before it looks for the shared one where both are.
        Some(library) => {
            std::fs::copy(library, out.join("libhwloc.a")).expect("the static library is copied");
            println!("cargo:rustc-link-search=native={}", out.display());
            without_udev();
        }
        None => println!("cargo:warning=no libhwloc.a: rota-agent will need libhwloc.so where it runs"),
    }
}

fn static_library() -> Option<PathBuf> {
    let asked = Command::new("pkg-config").args(["--variable=libdir", "hwloc"]).output().ok()?;
    let folder = String::from_utf8(asked.stdout).ok()?;
    let library = Path::new(folder.trim()).join("libhwloc.a");
    library.exists().then_some(library)
}

/// hwloc asks udev for the makers of disks, which the agent does not need, and works without it. A substitute that reports
/// udev as absent saves the agent a shared library.
fn without_udev() {
    println!("cargo:rerun-if-changed=src/probe/no_udev.c");
    cc::Build::new().file("src/probe/no_udev.c").cargo_metadata(false).compile("rota_no_udev");
    let out = std::env::var("OUT_DIR").expect("cargo names a folder");
    println!("cargo:rustc-link-search=native={out}");
    println!("cargo:rustc-link-lib=static:+whole-archive=rota_no_udev");
}
