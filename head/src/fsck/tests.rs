//! States that are damaged in one way each.

use rota_core::ids::JobId;
use rota_core::plan::Plan;
use rota_core::time::Span;

use super::*;
use crate::record::PlanRecord;
use crate::scribe::{Scribe, state_of};
use crate::store::Write;
use crate::store::images::KeepJournal;

/// A state of so many lines, each with enough text that the journal has many pages.
fn state(n_lines: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Store::open(folder.path()).expect("opened");
    store.next_epoch().expect("an epoch");
    let noted =
        |n: u64| Write::Record(Time(n as i64), Record::Noted { text: format!("{n} {}", "x".repeat(500)) });
    store.commit(&(1..=n_lines).map(noted).collect::<Vec<_>>()).expect("written");
    folder
}

fn change(folder: &Path, statement: &str) {
    open(&folder.join("head.sqlite")).expect("opened").execute_batch(statement).expect("changed");
}

#[test]
fn a_good_state_has_no_faults_and_is_not_repaired() {
    let folder = state(20);
    let found = examine(folder.path()).expect("examined");
    assert_eq!(found, Examined { n_lines: 20, last_good: 20, is_usable: true, ..Examined::default() });
    assert_eq!(repair(folder.path()).expect("nothing to do"), None);
}

#[test]
fn a_damaged_line_is_named_and_the_state_goes_on_from_the_line_before_it() {
    for (statement, word) in [
        ("UPDATE journal SET body = '{\"kind\":' WHERE id = 13", "EOF"),
        ("UPDATE journal SET kind = 'planned' WHERE id = 13", "its kind is `planned`"),
        ("UPDATE journal SET body = replace(body, '13 x', '18 x') WHERE id = 13", "its checksum is wrong"),
        ("UPDATE journal SET time_us = time_us + 1 WHERE id = 13", "its checksum is wrong"),
        ("DELETE FROM journal WHERE id = 12; UPDATE journal SET id = 12 WHERE id = 1000", "are missing"),
    ] {
        let folder = state(20);
        change(folder.path(), statement);
        let found = examine(folder.path()).expect("examined");
        let [fault] = &found.faults[..] else { panic!("{:?}", found.faults) };
        assert!(fault.line == Some(13) && fault.what.contains(word), "{fault}");
        let good = found.last_good;
        let repaired = repair(folder.path()).expect("repaired").expect("something to do");
        assert!(repaired.aside.exists() && repaired.lost_tables.is_empty(), "{repaired:?}");
        let kept = std::fs::read_to_string(repaired.lines.expect("lines after it")).expect("read");
        assert_eq!(kept.lines().count(), 8, "lines 13 to 20");
        assert!(examine(folder.path()).expect("examined").is_usable);
        let store = Store::open(folder.path()).expect("a head can use it");
        assert_eq!((store.journal(0, 99).expect("read").len() as u64, good), (good, good));
        assert!(store.next_epoch().expect("an epoch").0 > 1, "epochs go on");
    }
}

#[test]
fn a_head_does_not_start_with_a_line_whose_digits_have_changed() {
    let folder = state(20);
    change(folder.path(), "UPDATE journal SET body = replace(body, '13 x', '18 x') WHERE id = 13");
    let rules = Rules::plain(ProfileText::load("synergy").expect("built in"));
    let error = state_of(folder.path(), &rules).expect_err("refused").to_string();
    assert!(error.contains("journal line 13: its checksum is wrong"), "{error}");
}

#[test]
fn lines_and_images_of_earlier_versions_have_no_checksum_and_are_read() {
    let folder = with_images(KEEPS_ALL);
    change(folder.path(), "ALTER TABLE journal DROP COLUMN sum; ALTER TABLE images DROP COLUMN sum");
    let found = examine(folder.path()).expect("examined");
    assert_eq!((found.faults, found.last_good), (vec![], 60));
    let noted = Write::Record(Time(99), Record::Noted { text: "of this version".into() });
    Store::open(folder.path()).expect("opened").commit(&[noted]).expect("written");
    assert_eq!(examine(folder.path()).expect("examined").last_good, 61);
    change(folder.path(), "UPDATE journal SET body = replace(body, 'this', 'that') WHERE id = 61");
    let found = examine(folder.path()).expect("examined");
    assert_eq!((found.last_good, found.faults.len()), (60, 1), "{:?}", found.faults);
}

#[test]
fn a_page_of_zeros_in_the_middle_is_found_and_survived() {
    let folder = state(200);
    let path = folder.path().join("head.sqlite");
    let mut bytes = std::fs::read(&path).expect("read");
    let page = 4096;
    let middle = bytes.len() / page / 2 * page;
    bytes[middle..middle + page].fill(0);
    std::fs::write(&path, bytes).expect("written");
    let found = examine(folder.path()).expect("examined");
    assert!(!found.faults.is_empty() && found.last_good < 200, "{found:?}");
    let repaired = repair(folder.path()).expect("repaired");
    assert_eq!(repaired.is_some(), !found.is_usable);
    let again = examine(folder.path()).expect("examined");
    assert_eq!((again.faults, again.last_good), (vec![], found.last_good));
}

#[test]
fn a_plan_that_does_not_fit_is_named_and_a_head_lives_with_it() {
    let folder = state(0);
    let plan = PlanRecord { run: vec![(JobId(7), None)], ..PlanRecord::from(&Plan::default()) };
    let records = [
        Record::RoundBegan { round: 1, protects: None },
        Record::Planned { round: 1, plan, memory: String::new(), keeps_memory: false },
    ];
    let writes: Vec<_> = records.into_iter().map(|record| Write::Record(Time(5), record)).collect();
    Store::open(folder.path()).expect("opened").commit(&writes).expect("written");
    let found = examine(folder.path()).expect("examined");
    assert!(
        found.is_usable && found.faults[0].to_string().starts_with("journal line 2: its plan"),
        "{found:?}"
    );
}

/// A state of 60 rounds, with images of it.
fn with_images(keep: KeepJournal) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = Rules::plain(ProfileText::load("synergy").expect("built in"));
    let mut scribe = Scribe::open(folder.path(), &rules, keep).expect("opened");
    for round in 1..=60 {
        scribe.record(Time(round as i64), Record::RoundBegan { round, protects: None });
        scribe.write().expect("written");
    }
    folder
}

const KEEPS_ALL: KeepJournal =
    KeepJournal { span: Span::from_secs(9_999), bytes: 1_000_000_000, image_every: 7 };

fn image_lines(folder: &Path) -> Vec<i64> {
    let database = open(&folder.join("head.sqlite")).expect("opened");
    let mut query = database.prepare("SELECT line FROM images ORDER BY line").expect("a query");
    query.query_map([], |row| row.get(0)).expect("read").collect::<Result<_, _>>().expect("lines")
}

#[test]
fn images_are_compared_with_the_lines_and_a_pruned_journal_is_whole() {
    let whole = with_images(KEEPS_ALL);
    let found = examine(whole.path()).expect("examined");
    assert_eq!((found.faults, found.last_good, found.begins_after), (vec![], 60, 0));
    change(
        whole.path(),
        // As if an earlier version had made it wrongly.
        "UPDATE images SET sum = NULL, body = (SELECT body FROM images ORDER BY line LIMIT 1)
         WHERE line = (SELECT max(line) FROM images)",
    );
    let found = examine(whole.path()).expect("examined");
    assert!(found.faults[0].what.contains("is not what the lines up to it add up to"), "{found:?}");
    let pruned = with_images(KeepJournal { span: Span(0), ..KEEPS_ALL });
    let found = examine(pruned.path()).expect("examined");
    assert!(found.begins_after > 0 && found.is_usable && found.faults.is_empty(), "{found:?}");
    change(pruned.path(), "DELETE FROM images");
    let found = examine(pruned.path()).expect("examined");
    assert!(!found.is_usable && found.faults[0].what.contains("no image of the state"), "{found:?}");
}

#[test]
fn damage_before_an_image_is_named_and_a_head_goes_on_from_the_image() {
    let folder = with_images(KEEPS_ALL);
    let last = *image_lines(folder.path()).last().expect("an image");
    change(folder.path(), &format!("UPDATE journal SET body = '{{' WHERE id = {}", last - 2));
    let found = examine(folder.path()).expect("examined");
    assert_eq!((found.begins_after, found.last_good, found.is_usable), (last as u64, 60, true));
    assert_eq!(found.faults.len(), 1, "{found:?}");
    let (line, cluster) =
        state_of(folder.path(), &Rules::plain(ProfileText::load("synergy").expect("built in")))
            .expect("a head can use it");
    assert_eq!((line, cluster.n_rounds()), (60, 60));
}

#[test]
fn a_state_whose_lines_have_all_left_does_not_start_empty_when_its_image_is_broken() {
    let folder = with_images(KEEPS_ALL);
    change(
        folder.path(),
        "DELETE FROM journal; DELETE FROM images WHERE line < (SELECT max(line) FROM images);
         UPDATE images SET body = x'00'",
    );
    let rules = Rules::plain(ProfileText::load("synergy").expect("built in"));
    assert!(state_of(folder.path(), &rules).is_err());
}

#[test]
fn a_state_in_use_is_examined_but_not_repaired() {
    let folder = state(3);
    let _head = Store::open(folder.path()).expect("opened");
    assert!(examine(folder.path()).expect("examined").is_usable);
    assert!(matches!(repair(folder.path()), Err(StoreError::Locked { .. })));
}
