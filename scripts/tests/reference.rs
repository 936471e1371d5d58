//! The reference in docs/ agrees with the registrations.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rota_scripts::reference::{Kind, definitions, entries, reference};

#[test]
fn the_committed_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/script-reference.md");
    let generated = reference();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &generated).expect("docs/ can be written");
    }
    let committed = fs::read_to_string(&path).expect("docs/script-reference.md is there");
    let difference = committed.lines().zip(generated.lines()).position(|(a, b)| a != b);
    assert!(
        committed == generated,
        "docs/script-reference.md differs from the registrations (first at line {:?}): UPDATE_EXPECT=1 writes it anew",
        difference.map(|line| line + 1)
    );
}

#[test]
fn everything_is_explained_once() {
    let mut seen = BTreeSet::new();
    for entry in entries() {
        assert!(
            entry.doc.ends_with('.') || entry.doc.ends_with(']'),
            "{}: a sentence ends in a full stop",
            entry.signature
        );
        assert!(
            seen.insert((entry.owner, entry.signature.clone())),
            "{} of `{}` stands twice",
            entry.signature,
            entry.owner
        );
        let owner = entry.owner;
        let is_known =
            owner.is_empty() || entries().iter().any(|e| e.kind == Kind::Type && e.signature == owner);
        assert!(is_known, "{}: its type `{owner}` is not in the table", entry.signature);
    }
}

#[test]
fn definition_files_hold_every_named_thing() {
    let text = definitions();
    for entry in entries().iter().filter(|e| e.kind != Kind::Type && !e.name().is_empty()) {
        assert!(text.contains(entry.name()), "{}", entry.signature);
    }
    assert!(text.contains("fn give(this: Fill, what: ?) -> Fill;"), "{text}");
    assert!(text.contains("fn get attained(this: Jobs) -> Column;"));
}
