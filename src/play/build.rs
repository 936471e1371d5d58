//! Compiles the package again when the bundle that it embeds has changed.

fn main() {
    println!("cargo::rerun-if-changed=../../web/dist");
}
