//! `detect` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rota_traces_fuzz::run("detect", bytes));
