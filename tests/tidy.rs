//! The rules of the house that a compiler does not know. A failure here names a file and what to do about it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rota_scripts::artifact::synergy::OrderName;
use rota_scripts::shipped;
use rota_traces::faults::{self, FaultPlan};
use rota_traces::format::Format;
use rota_traces::{cluster, generate, profile};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// Lines of a file that a reader can still keep in mind.
const MAX_LINES: usize = 600;

/// Every file of the project, by its path from the root; nothing that is built or fetched.
fn files() -> Vec<String> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).expect("a folder of ours") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match path.is_dir() {
                true if ["target", "out", "node_modules", "dist"].contains(&&*name)
                    || name.starts_with('.') => {}
                true => walk(&path, found),
                false => found.push(path),
            }
        }
    }
    let mut found = Vec::new();
    walk(Path::new(ROOT), &mut found);
    let relative =
        |path: PathBuf| path.strip_prefix(ROOT).expect("below the root").to_string_lossy().into_owned();
    let mut names: Vec<_> = found.into_iter().map(relative).collect();
    names.sort_unstable();
    names
}

fn files_ending(end: &str) -> impl Iterator<Item = (String, String)> {
    files().into_iter().filter(move |file| file.ends_with(end)).map(|file| (file.clone(), read(&file)))
}

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn manifest(file: &str) -> toml::Table {
    read(file).parse().unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The names a manifest depends on, for building and for testing.
fn dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    let tables = ["dependencies", "dev-dependencies", "build-dependencies"];
    tables
        .iter()
        .filter_map(|table| manifest.get(*table)?.as_table())
        .flat_map(|table| table.keys().cloned())
        .collect()
}

/// The lines of a text that contain a word, as `file:line`.
fn lines_with(file: &str, text: &str, word: &str) -> Vec<String> {
    let has = |(_, line): &(usize, &str)| line.contains(word);
    text.lines()
        .enumerate()
        .filter(has)
        .map(|(at, line)| format!("{file}:{}: {}", at + 1, line.trim()))
        .collect()
}

/// Cells of the rows of a table in Markdown, after its heading.
fn rows<'t>(text: &'t str, heading: &str) -> Vec<Vec<&'t str>> {
    let lines = text.lines().skip_while(|line| !line.starts_with(heading)).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// What a cell has in backticks.
fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn crates_depend_on_each_other_as_the_architecture_says() {
    let text = read("ARCHITECTURE.md");
    let allowed: BTreeMap<_, _> = rows(&text, "| folder | package |")
        .into_iter()
        .map(|row| (row[1].trim_matches('`').to_owned(), quoted(row[3])))
        .collect();
    let root = manifest("Cargo.toml");
    let members = root["workspace"]["members"].as_array().expect("members");
    let members = members.iter().map(|m| format!("{}/Cargo.toml", m.as_str().expect("a folder")));
    for file in members.chain(["Cargo.toml".to_owned()]) {
        let manifest = manifest(&file);
        let name = manifest["package"]["name"].as_str().expect("a name").to_owned();
        let allowed =
            allowed.get(&name).unwrap_or_else(|| panic!("{name} is missing in ARCHITECTURE.md's table"));
        let mut arrows = dependencies(&manifest);
        // For tests only, and open to all of them.
        if manifest.get("dependencies").is_none_or(|table| table.get("rota-test-support").is_none()) {
            arrows.remove("rota-test-support");
        }
        for arrow in arrows.iter().filter(|d| d.starts_with("rota-")) {
            assert!(
                allowed.contains(arrow),
                "{name} depends on {arrow}, which ARCHITECTURE.md does not allow"
            );
        }
    }
}

/// The rooms of `src/lab/` with the rooms that each may use, from the table in ARCHITECTURE.md.
fn allowed_rooms() -> BTreeMap<String, BTreeSet<String>> {
    let text = read("ARCHITECTURE.md");
    let table = rows(&text, "| room | may use |");
    table.iter().map(|row| (row[0].trim_matches('`').to_owned(), quoted(row[1]))).collect()
}

/// The rooms that a source of `src/lab/` uses: `crate::room::…`, `crate::{room::…, other}`. Comments do not count.
fn rooms_used(source: &str) -> BTreeSet<String> {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let code = source.lines().filter(is_code).collect::<Vec<_>>().join("\n");
    let name = |text: &str| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        text.trim_start().chars().take_while(|c| is_name(*c)).collect::<String>()
    };
    let mut used = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => _ = used.insert(name(rest)),
            Some(group) => used.extend(first_names(group).into_iter().map(name)),
        }
    }
    used.retain(|room| room.starts_with(|c: char| c.is_ascii_lowercase()));
    used
}

/// The parts of a group in braces, up to the brace that ends it; groups within are part of the part they belong to.
fn first_names(group: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0_u32, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                parts.push(&group[begin..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&group[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts
}

/// What a source in a room uses and may not, each as a sentence.
fn forbidden_arrows(
    allowed: &BTreeMap<String, BTreeSet<String>>,
    room: &str,
    file: &str,
    source: &str,
) -> Vec<String> {
    let Some(may_use) = allowed.get(room) else {
        return vec![format!("{file}: the room {room} is missing in ARCHITECTURE.md's table")];
    };
    let used = rooms_used(source).into_iter().filter(|other| other != room && !may_use.contains(other));
    used.map(|other| format!("{file}: {room} uses {other}, which ARCHITECTURE.md does not allow")).collect()
}

#[test]
fn rooms_of_the_laboratory_use_each_other_as_the_architecture_says() {
    let allowed = allowed_rooms();
    let mut found = Vec::new();
    let mut rooms = BTreeSet::new();
    for (file, text) in files_ending(".rs").filter(|(file, _)| file != "src/lab/lib.rs") {
        let Some(below) = file.strip_prefix("src/lab/") else { continue };
        let room = below.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        rooms.insert(room.to_owned());
        found.extend(forbidden_arrows(&allowed, room, &file, &text));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!(rooms, allowed.into_keys().collect(), "the table lists every room and no other");
}

#[test]
fn rooms_do_not_use_each_other_in_circles() {
    let mut left = allowed_rooms();
    while let Some(room) = left.iter().find(|(_, uses)| uses.iter().all(|room| !left.contains_key(room))) {
        let room = room.0.clone();
        left.remove(&room);
    }
    assert!(left.is_empty(), "these rooms use each other in a circle: {:?}", left.keys());
}

#[test]
fn an_arrow_that_is_not_in_the_table_is_found() {
    let rooms = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let allowed = BTreeMap::from([("low".to_owned(), rooms(&[])), ("high".to_owned(), rooms(&["low"]))]);
    let arrows = |room: &str, source: &str| forbidden_arrows(&allowed, room, "src/a.rs", source);
    assert_eq!(arrows("high", "use crate::low::{A, b};\nuse crate::high::C;"), [""; 0]);
    assert_eq!(arrows("low", "//! See crate::high.\nuse std::fmt;"), [""; 0]);
    let sentence = ["src/a.rs: low uses high, which ARCHITECTURE.md does not allow"];
    for source in [
        "use crate::high::A;",
        "use crate::high;",
        "fn f() { crate::high::g() }",
        "use crate::{low::{a, b}, high::C};",
        "pub(crate) use crate::{\n    high,\n    low,\n};",
    ] {
        assert_eq!(arrows("low", source), sentence, "{source}");
    }
    assert!(arrows("new", "")[0].contains("missing in ARCHITECTURE.md"));
}

#[test]
fn foreign_types_stay_in_their_rooms() {
    let owners = [
        ("rhai", "scripts/Cargo.toml"),
        ("highs", "solvers/Cargo.toml"),
        ("highs-sys", "solvers/Cargo.toml"),
        ("quinn", "transport/Cargo.toml"),
        ("rustls", "transport/Cargo.toml"),
        ("rcgen", "transport/Cargo.toml"),
        ("rusqlite", "head/Cargo.toml"),
    ];
    for (file, text) in files_ending("Cargo.toml") {
        let found = dependencies(&text.parse().expect("a manifest"));
        for (package, owner) in owners {
            assert!(
                file == owner || !found.contains(package),
                "{file} depends on {package}, only {owner} may"
            );
        }
        if file == "core/Cargo.toml" {
            let known = ["proptest", "serde", "smallvec", "thiserror", "xxhash-rust"];
            let other = found.iter().find(|name| !known.contains(&name.as_str()));
            assert_eq!(
                other, None,
                "core knows no scripts, solvers, sockets or files: say here why this one is none"
            );
        }
    }
    for (file, text) in files_ending(".rs")
        .filter(|(file, _)| file.starts_with("solvers/src/") && file != "solvers/src/highs.rs")
    {
        let found = [lines_with(&file, &text, "::highs::"), lines_with(&file, &text, "highs_sys")].concat();
        assert!(found.is_empty(), "HiGHS is spoken to in solvers/src/highs.rs only:\n{}", found.join("\n"));
    }
}

#[test]
fn the_wire_is_spoken_in_one_room() {
    let is_outside =
        |file: &str| file.starts_with("transport/src/") && !file.starts_with("transport/src/quic/");
    for (file, text) in files_ending(".rs").filter(|(file, _)| is_outside(file)) {
        let found = lines_with(&file, &text, "quinn::");
        assert!(found.is_empty(), "quinn is spoken in transport/src/quic only:\n{}", found.join("\n"));
    }
}

#[test]
fn the_core_reads_no_clock_and_no_file() {
    for (file, text) in files_ending(".rs").filter(|(file, _)| file.starts_with("core/src/")) {
        for word in [
            "std::fs",
            "std::net",
            "std::env",
            "std::thread",
            "std::process",
            "Instant",
            "SystemTime",
            "HashMap",
        ] {
            let found = lines_with(&file, &text, word);
            assert!(found.is_empty(), "{word} has no place in core:\n{}", found.join("\n"));
        }
    }
}

#[test]
fn nothing_is_left_for_later() {
    // In pieces, or this file would accuse itself.
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
        concat!("dbg", "!("),
        concat!("#[", "ignore"),
        concat!("[", "allow("),
    ];
    let is_code = |file: &str| [".rs", ".rhai", ".toml", ".js", ".css"].iter().any(|end| file.ends_with(end));
    for file in files().into_iter().filter(|file| is_code(file)) {
        let text = read(&file);
        for word in words {
            let found = lines_with(&file, &text, word);
            assert!(found.is_empty(), "do it, or use #[expect(…, reason = \"…\")]:\n{}", found.join("\n"));
        }
    }
}

#[test]
fn files_fit_into_a_head() {
    for (file, text) in files_ending(".rs") {
        let n_lines = text.lines().count();
        assert!(n_lines <= MAX_LINES, "{file} has {n_lines} lines, more than {MAX_LINES}: split it");
        let says_what = text.starts_with("//!") || file.ends_with("/tests.rs");
        assert!(says_what, "{file} does not say what lives there");
    }
}

#[test]
fn every_script_is_listed_and_has_a_header() {
    let originals: BTreeSet<_> =
        OrderName::ALL.iter().map(|(_, name)| format!("artifact/synergy/{name}.rhai")).collect();
    for (file, text) in files_ending(".rhai") {
        // Starters, tests and examples are not policies to choose by name.
        let Some(below) =
            file.strip_prefix("scripts/").filter(|b| !b.starts_with("src/") && !b.starts_with("tests/"))
        else {
            continue;
        };
        let is_shipped = shipped::ALL
            .iter()
            .chain(shipped::STUDIES)
            .chain(shipped::RULES)
            .any(|script| script.file == below);
        assert!(is_shipped || originals.contains(below), "{file} is in no table: it cannot be run by name");
        let name = Path::new(&file).file_stem().unwrap_or_default().to_string_lossy();
        let header: Vec<_> = text.lines().take_while(|line| line.starts_with("// ")).collect();
        let first = header.first().copied().unwrap_or("");
        assert!(first.starts_with(&format!("// {name}")), "{file} does not begin with its name: {first}");
        assert!(header.iter().any(|line| line.starts_with("// Source: ")), "{file} names no source");
    }
}

#[test]
fn every_configuration_is_read_and_built_in() {
    let name = |file: &str| Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_in =
        |built_in: &[(&str, &str)], file: &str| built_in.iter().any(|(known, _)| *known == name(file));
    for file in files().into_iter().filter(|file| file.starts_with("configs/")) {
        let path = Path::new(ROOT).join(&file).display().to_string();
        let (error, is_built_in) = match file.split('/').nth(1) {
            Some("clusters") => (cluster::load(&path).err(), is_in(&cluster::BUILT_IN, &file)),
            Some("profiles") => (profile::load(&path).err(), is_in(&profile::BUILT_IN, &file)),
            Some("faults") => {
                let every = cluster::load("default").expect("built in");
                (FaultPlan::load(&path, &every).err(), is_in(&faults::BUILT_IN, &file))
            }
            Some("workloads") => (generate::load(&path).err(), is_in(&generate::BUILT_IN, &file)),
            // Compared with the head's real figures in tests/fleet/web.rs.
            Some("monitoring") => continue,
            _ => panic!("{file}: a folder of configs/ that is never read"),
        };
        assert!(error.is_none(), "{file}: {}", error.map(|e| e.to_string()).unwrap_or_default());
        assert!(is_built_in, "{file} cannot be chosen by its name");
    }
}

#[test]
fn every_public_trace_has_an_origin_a_licence_and_a_reader() {
    let text = read("traces/README.md");
    let table = rows(&text, "| trace | origin |");
    assert!(table.len() >= 5, "the table of public traces was not found");
    for row in table {
        let [trace, origin, licence, reader, checksum] = row[..] else {
            panic!("five cells are expected: {row:?}")
        };
        assert!(origin.contains('/') || origin.starts_with("the same"), "{trace}: where is it from?");
        assert!(licence.len() > 2, "{trace}: under which licence?");
        let is_known = Format::ALL.iter().any(|entry| reader.contains(&format!("`{}`", entry.name)));
        assert!(is_known, "{trace}: no format is called {reader}");
        let has_sum =
            checksum.split('`').any(|part| part.len() == 64 && part.bytes().all(|b| b.is_ascii_hexdigit()));
        assert!(has_sum || checksum == "–", "{trace}: {checksum} is no checksum");
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    for (file, text) in files_ending(".md") {
        let folder = Path::new(ROOT).join(&file).parent().expect("a folder").to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let is_ours = !link.is_empty() && !link.contains(':');
            assert!(!is_ours || folder.join(link).exists(), "{file} links to {link}, which is not there");
        }
    }
}
