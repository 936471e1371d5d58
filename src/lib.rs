//! Rota's command line. The binary in `main.rs` only calls it; what the commands do is in `rota-lab` and `rota-head`.

pub mod commands;
