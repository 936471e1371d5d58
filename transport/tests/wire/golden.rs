//! The bytes of every message, frozen. A failure here means that agents and heads of two builds would misunderstand
//! each other: append variants instead, or raise `PROTOCOL_VERSION` and the ALPN. `UPDATE_EXPECT=1` writes the file anew.

use crate::samples;

use std::fmt::Write as _;
use std::path::Path;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[test]
fn every_message_keeps_its_bytes() {
    let mut lines = String::new();
    for (name, bytes) in samples::all() {
        let _ = writeln!(lines, "{name} {}", hex(&bytes));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/golden.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&file, &lines).expect("golden.txt can be written");
    }
    let kept = std::fs::read_to_string(&file).expect("golden.txt is there");
    for (is, was) in lines.lines().zip(kept.lines()) {
        assert_eq!(is, was, "a message changed its bytes");
    }
    assert_eq!(lines.lines().count(), kept.lines().count(), "a message came or went");
}

#[test]
fn every_message_comes_back_as_it_was() {
    samples::assert_round_trips();
}

#[test]
fn no_variant_is_without_a_sample() {
    let names: Vec<_> = samples::all().into_iter().map(|(name, _)| name).collect();
    for (kind, n_variants) in
        [("ToHead", 6), ("ToAgent", 5), ("Task", 10), ("Fact", 7), ("FromUser", 25), ("ToUser", 13)]
            .into_iter()
            .chain([("FromJoiner", 2), ("ToJoiner", 2)])
    {
        let n_samples = names.iter().filter(|name| name.starts_with(&format!("{kind}::"))).count();
        assert!(n_samples >= n_variants, "{kind} has {n_variants} variants and {n_samples} samples");
    }
}

#[test]
fn every_kind_of_request_has_a_sample_and_a_rule() {
    let kinds: Vec<_> = samples::from_user().iter().map(|request| request.kind()).collect();
    assert_eq!(kinds, rota_transport::access::RequestKind::ALL, "in the order of the messages");
}
