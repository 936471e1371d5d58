//! What README, tutorial and the other documents tell people to type is typed, document by document, in an empty folder.
//!
//! `blocks` says which code blocks are commands. A transcript (docs/first-hour.md) is also compared with what is printed;
//! `UPDATE_EXPECT=1` writes it again.

mod blocks;
mod transcript;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use blocks::{Becomes, Block, blocks};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The programs as a reader has them: on the path.
fn shell(dir: &Path, command: &str) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_rota")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new("bash")
        .args(["-c", command])
        .current_dir(dir)
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("ROTA_HOME", dir.join(".rota"))
        .env("COLUMNS", "100")
        .output()
        .expect("bash starts")
}

/// A checkout as far as documents speak of it, in a folder where things may be written.
fn checkout() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    for shared in ["traces", "scripts", "configs", "tests"] {
        std::os::unix::fs::symlink(Path::new(ROOT).join(shared), dir.path().join(shared)).expect("a link");
    }
    dir
}

fn documents() -> Vec<PathBuf> {
    let docs = fs::read_dir(Path::new(ROOT).join("docs"))
        .expect("docs")
        .map(|entry| entry.expect("an entry").path());
    let mut found: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    found.push(Path::new(ROOT).join("README.md"));
    found.sort();
    found
}

/// Does what a block says; what was wrong.
fn follow(dir: &Path, name: &str, block: &Block, is_full: bool) -> Vec<String> {
    let place = format!("{name}:{}", block.line);
    match &block.becomes {
        Becomes::File(file) => fs::write(dir.join(file), block.lines.join("\n") + "\n").expect("written"),
        Becomes::Edit(file) => edit(&dir.join(file), &block.lines, &place),
        Becomes::Run => return run_all(dir, block, &place),
        Becomes::RunInFull if is_full => return run_all(dir, block, &place),
        Becomes::Transcript | Becomes::RunInFull | Becomes::Nothing => {}
    }
    Vec::new()
}

fn run_all(dir: &Path, block: &Block, place: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for command in block.commands() {
        let command = command.replace("./dev run ", "rota ");
        if !["rota ", "rota-agent "].iter().any(|ours| command.starts_with(ours)) {
            faults
                .push(format!("{place}: `{command}` is neither rota's nor marked: see tests/docs/blocks.rs"));
            continue;
        }
        let output = shell(dir, &command);
        let errors = String::from_utf8_lossy(&output.stderr);
        // `rota diff` and `rota policy duel` end with 1 when they have found something: that is an answer.
        let is_answer = output.status.code() == Some(1) && !errors.contains("rota: ");
        if !output.status.success() && !is_answer {
            faults.push(format!("{place}: `{command}`: {}", errors.trim()));
        }
    }
    faults
}

/// Replaces the line that begins with the same word as the given one.
fn edit(file: &Path, lines: &[String], place: &str) {
    let [line] = lines else { panic!("{place}: an edit is one line") };
    let word = line.trim().split('(').next().unwrap_or("");
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{place}: {}: {error}", file.display()));
    let is_it = |old: &&str| old.trim_start().starts_with(&format!("{word}("));
    assert_eq!(text.lines().filter(is_it).count(), 1, "{place}: which line begins with `{word}(`?\n{text}");
    let edited: Vec<&str> = text.lines().map(|old| if is_it(&old) { line.as_str() } else { old }).collect();
    fs::write(file, edited.join("\n") + "\n").expect("written");
}

#[test]
fn every_command_of_the_documents_works() {
    let is_full = std::env::var_os("ROTA_FULL").is_some();
    let mut faults = Vec::new();
    for path in documents() {
        let name = path.strip_prefix(ROOT).expect("ours").display().to_string();
        let text = fs::read_to_string(&path).expect("a document");
        let (dir, found) = (checkout(), blocks(&name, &text));
        // Typed by the other test.
        if found.iter().any(|block| block.becomes == Becomes::Transcript) {
            continue;
        }
        for block in found {
            faults.extend(follow(dir.path(), &name, &block, is_full));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn transcripts_are_what_is_printed() {
    for path in documents() {
        let name = path.strip_prefix(ROOT).expect("ours").display().to_string();
        let text = fs::read_to_string(&path).expect("a document");
        let found = blocks(&name, &text);
        if !found.iter().any(|block| block.becomes == Becomes::Transcript) {
            continue;
        }
        let dir = checkout();
        let mut written: Vec<String> = text.lines().map(str::to_owned).collect();
        // From the end, so that lines that are added move nothing that is still to be written.
        let mut changes = Vec::new();
        for block in &found {
            if block.becomes == Becomes::Transcript {
                let now = transcript::again(dir.path(), &block.lines);
                changes.push((block.line, block.lines.len(), now));
            } else {
                let faults = follow(dir.path(), &name, block, false);
                assert!(faults.is_empty(), "{}", faults.join("\n"));
            }
        }
        let is_written = std::env::var_os("UPDATE_EXPECT").is_some();
        for (line, n_lines, now) in changes.into_iter().rev() {
            let old = &written[line..line + n_lines];
            if is_written {
                written.splice(line..line + n_lines, now);
            } else {
                transcript::compare(&format!("{name}:{line}"), old, &now);
            }
        }
        if is_written {
            fs::write(&path, written.join("\n") + "\n").expect("written");
        }
    }
}

#[test]
fn the_book_has_every_document_once() {
    let summary = fs::read_to_string(Path::new(ROOT).join("docs/SUMMARY.md")).expect("docs/SUMMARY.md");
    for path in documents() {
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.parent() == Some(&Path::new(ROOT).join("docs")) && file != "SUMMARY.md" {
            assert_eq!(summary.matches(&format!("({file})")).count(), 1, "docs/SUMMARY.md and {file}");
        }
    }
}

#[test]
fn headings_that_links_name_exist() {
    let mut faults = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        let name = path.strip_prefix(ROOT).expect("ours").display().to_string();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let Some((file, anchor)) = link.split_once('#').filter(|_| !link.starts_with("http")) else {
                continue;
            };
            let target =
                if file.is_empty() { path.clone() } else { path.parent().expect("a folder").join(file) };
            let Ok(target) = fs::read_to_string(&target) else { continue };
            let is_there =
                target.lines().filter(|line| line.starts_with('#')).any(|line| slug(line) == anchor);
            if !is_there {
                faults.push(format!("{name} links to #{anchor}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The anchor that GitHub and mdBook give a heading.
fn slug(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn install_puts_programs_completions_and_manual_pages_below_one_folder() {
    let dir = tempfile::tempdir().expect("a folder");
    let man = dir.path().join("man1");
    let output = shell(dir.path(), &format!("rota man {}", man.display()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(man.join("rota-simulate.1")).expect("a page");
    assert!(page.contains("\\-\\-overwrite"), "{page}");
    assert!(man.join("rota.1").exists() && man.join("rota-trace-import.1").exists());
    for shell_name in ["bash", "zsh", "fish"] {
        let output = shell(dir.path(), &format!("rota completions {shell_name}"));
        assert!(String::from_utf8_lossy(&output.stdout).contains("overwrite"), "{shell_name}");
    }
}
