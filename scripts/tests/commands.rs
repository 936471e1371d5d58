//! What `rota policy` shows and does.

use std::path::{Path, PathBuf};

use rota_scripts::{commands, shipped};

/// A folder of this test's own in the build's temporary folder.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder can be made");
    path
}

#[test]
fn the_list_has_every_shipped_script_with_a_sentence() {
    let text = commands::list();
    for script in shipped::ALL {
        assert!(text.contains(&format!("  {}", script.name)), "{}", script.name);
        assert!(script.summary().len() > 10, "{}", script.name);
    }
}

#[test]
fn about_names_stages_and_parameters() {
    let text = commands::about("tetris+tune").expect("shipped parts");
    assert!(text.contains("tetris (policies/tetris.rhai)\n  stages: order"), "{text}");
    assert!(text.contains("--set alignment=0.5  (from 0 to 1) Weight of fitting well"), "{text}");
    assert!(text.ends_with("It is asked at every round.\n"), "{text}");
    assert!(
        commands::about("fifo+tune")
            .expect("shipped parts")
            .ends_with("Rounds in which nothing changed are skipped.\n")
    );
}

#[test]
fn the_family_passes_its_own_check() {
    for order in ["fifo", "srtf", "srsf", "las", "ftf", "drf", "tetris"] {
        let checked = commands::check(&format!("{order}+tune+consolidate"));
        assert!(checked.is_ok(), "{checked:?}");
    }
}

#[test]
fn a_starter_runs_is_tested_and_is_not_overwritten() {
    let path = folder("starter").join("mine.rhai");
    commands::new(&path, None).expect("it is written");
    let name = path.to_str().expect("a plain path");
    assert!(commands::check(name).is_ok_and(|text| text.contains("good")));
    let reports = commands::test(&path).expect("its scenarios run");
    assert_eq!(reports.len(), 1);
    assert!(reports[0].passes(), "{}", reports[0].difference());
    assert!(commands::new(&path, None).is_err(), "a file that is there stays");
    assert!(commands::new(Path::new("mine.txt"), None).is_err());
}

#[test]
fn a_scenario_that_does_not_hold_shows_the_difference() {
    let path = folder("difference").join("mine.rhai");
    let text = commands::STARTER.replace("// 300: long", "// 300: nobody | waits long");
    std::fs::write(&path, text).expect("it is written");
    let reports = commands::test(&path).expect("its scenarios run");
    assert!(!reports[0].passes());
    assert!(
        reports[0].difference().contains("got      300: long 0[0-1] 6c 100g"),
        "{}",
        reports[0].difference()
    );
}
