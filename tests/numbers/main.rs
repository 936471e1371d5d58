//! Figures in documents that do not depend on the machine come from commands. `docs/numbers.toml` says which; here they
//! are run, and what is written is compared with what the program says.
//!
//! Every test runs the quick commands; with `ROTA_FULL=1` the long ones too. With `UPDATE_EXPECT=1` the documents are
//! written instead. `./dev numbers [--write]` is both. What needs the public traces is left out where they are not.

mod facts;
mod figure;
mod pattern;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use facts::{Fact, Facts};
use figure::Style;
use rota_test_support::need;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const LIST: &str = "docs/numbers.toml";

fn list() -> Facts {
    let text = std::fs::read_to_string(Path::new(ROOT).join(LIST)).expect(LIST);
    toml::from_str(&text).unwrap_or_else(|error| panic!("{LIST}: {error}"))
}

/// Commands, and what they said when they were first asked.
struct Runs<'a> {
    facts: &'a Facts,
    shared: Option<PathBuf>,
    is_full: bool,
    said: RefCell<BTreeMap<String, String>>,
}

impl Runs<'_> {
    fn command(&self, run: &str) -> &str {
        let known = self.facts.runs.get(run).or_else(|| self.facts.long.get(run));
        known.unwrap_or_else(|| panic!("{LIST}: there is no run `{run}`"))
    }

    /// Why a run is not made, if it is not.
    fn left_out(&self, run: &str) -> Option<&'static str> {
        if self.facts.long.contains_key(run) && !self.is_full {
            Some("long commands are for `./dev numbers` and `./dev full`")
        } else if self.command(run).contains("SHARED/") && self.shared.is_none() {
            Some("the public traces are not here (ROTA_SHARED, default ../shared)")
        } else {
            None
        }
    }

    fn said(&self, run: &str) -> String {
        if let Some(said) = self.said.borrow().get(run) {
            return said.clone();
        }
        let dir = tempfile::tempdir().expect("a folder");
        let shared = self.shared.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let mut text = String::new();
        for command in self.command(run).split(" && ") {
            let words = command.split_whitespace().map(|word| word.replace("SHARED/", &format!("{shared}/")));
            let output = Command::new(env!("CARGO_BIN_EXE_rota"))
                .args(words)
                .current_dir(dir.path())
                .env("ROTA_SHARED", &shared)
                .output()
                .expect("rota runs");
            let error = String::from_utf8_lossy(&output.stderr);
            // A duel that has found a case ends with 1 and no message.
            let is_answer = output.status.success() || (output.status.code() == Some(1) && error.is_empty());
            assert!(is_answer, "{run}: rota {command}\n{error}");
            text = String::from_utf8(output.stdout).expect("text");
        }
        self.said.borrow_mut().insert(run.to_owned(), text.clone());
        text
    }
}

/// A figure that is not what the program says.
struct Stale {
    range: std::ops::Range<usize>,
    now: String,
    words: String,
}

/// The figures of a fact that are stale, or why that cannot be said.
fn stale(file: &str, text: &str, fact: &Fact, runs: &Runs<'_>) -> Result<Vec<Stale>, String> {
    let places = pattern::find(text, &fact.text).map_err(|why| format!("{file}: {why}"))?;
    let commands = |of: &[&str]| {
        let commands: BTreeSet<String> = of.iter().map(|run| format!("rota {}", runs.command(run))).collect();
        commands.into_iter().collect::<Vec<_>>().join("; ")
    };
    let at = places.first().map_or(0, |place| pattern::line_of(text, place.range.start));
    let values = fact
        .values(&|run| runs.said(run))
        .map_err(|why| format!("{file}:{at}: {why} ({})", commands(&fact.runs())))?;
    if values.len() != places.len() {
        return Err(format!("{file}:{at}: {} figures, {} values", places.len(), values.len()));
    }
    let mut stale = Vec::new();
    for (place, (value, expression)) in places.into_iter().zip(values) {
        let written = &text[place.range.clone()];
        let now = Style::of(written, place.is_signed).write(value);
        if now != written {
            let line = pattern::line_of(text, place.range.start);
            let by = commands(&facts::runs_of(expression));
            let words = format!("{file}:{line}: `{written}` is written, the program says {now} ({by})");
            stale.push(Stale { range: place.range, now, words });
        }
    }
    Ok(stale)
}

#[test]
fn figures_in_documents_are_what_the_program_says() {
    let facts = list();
    let runs = Runs {
        facts: &facts,
        shared: need::shared(),
        is_full: need::is_long_tier(),
        said: RefCell::default(),
    };
    let is_writing = std::env::var_os("UPDATE_EXPECT").is_some();
    let (mut wrong, mut n_checked) = (Vec::new(), 0);
    let mut left_out: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, of_file) in &facts.facts {
        let path = Path::new(ROOT).join(file);
        let mut text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        for fact in of_file.iter().flat_map(Fact::rows) {
            if let Some(why) = fact.runs().into_iter().find_map(|run| runs.left_out(run)) {
                *left_out.entry(why).or_default() += 1;
                continue;
            }
            n_checked += 1;
            match stale(file, &text, &fact, &runs) {
                Err(why) => wrong.push(why),
                Ok(figures) if is_writing => {
                    // From the end, so that places before it stay what they are.
                    for figure in figures.into_iter().rev() {
                        println!("written: {}", figure.words);
                        text.replace_range(figure.range, &figure.now);
                    }
                }
                Ok(figures) => wrong.extend(figures.into_iter().map(|figure| figure.words)),
            }
        }
        if is_writing {
            std::fs::write(&path, text).unwrap_or_else(|error| panic!("{file}: {error}"));
        }
    }
    println!("{n_checked} places compared, {} commands", runs.said.borrow().len());
    for (why, n) in left_out {
        println!("{n} places not compared: {why}");
    }
    assert!(wrong.is_empty(), "write them anew with `./dev numbers --write`:\n{}", wrong.join("\n"));
}

#[test]
fn every_fact_has_its_place_and_every_run_its_fact() {
    let facts = list();
    let mut unused: BTreeSet<&String> = facts.runs.keys().chain(facts.long.keys()).collect();
    for (file, of_file) in &facts.facts {
        let text = std::fs::read_to_string(Path::new(ROOT).join(file)).expect("a document");
        for fact in of_file.iter().flat_map(Fact::rows) {
            pattern::find(&text, &fact.text).unwrap_or_else(|why| panic!("{file}: {why}"));
            for run in fact.runs() {
                let is_known = facts.runs.contains_key(run) || facts.long.contains_key(run);
                assert!(is_known, "{LIST}: there is no run `{run}`");
                unused.retain(|known| *known != run);
            }
        }
    }
    assert!(unused.is_empty(), "{LIST}: no fact speaks of {unused:?}");
}

#[test]
fn a_stale_figure_is_named_with_its_place_and_command() {
    let runs_of = |command: &str| BTreeMap::from([("small".to_owned(), command.to_owned())]);
    let facts = Facts {
        runs: runs_of("simulate -p fifo --workload small --json"),
        long: BTreeMap::new(),
        facts: BTreeMap::new(),
    };
    let runs = Runs { facts: &facts, shared: None, is_full: false, said: RefCell::default() };
    let json = r#"{"runs": [{"policy": "fifo", "jobs": 200}]}"#;
    runs.said.borrow_mut().insert("small".into(), json.into());
    let fact = Fact { text: "with {} jobs".into(), is: vec!["small:fifo:jobs".into()], each: Vec::new() };
    let found = stale("doc.md", "\nwith 199 jobs\n", &fact, &runs).expect("it can be said");
    assert_eq!(
        found[0].words,
        "doc.md:2: `199` is written, the program says 200 (rota simulate -p fifo --workload small --json)"
    );
    assert!(stale("doc.md", "with 200 jobs", &fact, &runs).expect("it can be said").is_empty());
    assert_eq!(
        stale("doc.md", "no", &fact, &runs).err(),
        Some("doc.md: `with {} jobs` is nowhere in it".into())
    );
}
