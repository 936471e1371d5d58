//! Chronus as the original has it: golden cases carried here, and those of the shared folder where it is.

use std::fs;
use std::path::{Path, PathBuf};

use rota::conform::{Options, SystemReport, conform};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn chronus(golden: &Path) -> SystemReport {
    let options =
        Options { golden: golden.to_owned(), systems: vec!["chronus".into()], out: None, first_round: None };
    conform(&options, &|_, _| ()).expect("a report").systems.remove(0)
}

fn assert_none_failed(report: &SystemReport) {
    let failed: Vec<_> = report.failed().collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn carried_cases_come_out_as_in_the_original() {
    let report = chronus(&Path::new(ROOT).join("tests/data"));
    assert_none_failed(&report);
    assert_eq!((report.n_equal(), report.skipped().count()), (21, 2), "the original aborts in two of them");
}

#[test]
fn every_golden_case_at_hand_comes_out_as_in_the_original() {
    let default = || Path::new(ROOT).join("../shared");
    let golden = std::env::var("ROTA_SHARED").map_or_else(|_| default(), PathBuf::from).join("golden");
    if !golden.join("chronus").is_dir() {
        return println!("{} is absent: nothing to compare with", golden.display());
    }
    let report = chronus(&golden);
    assert_none_failed(&report);
    assert!(report.n_equal() > report.skipped().count(), "{} equal", report.n_equal());
}

#[test]
fn a_changed_expectation_fails_its_case_and_is_named() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let from = Path::new(ROOT).join("tests/data/chronus");
    let to = dir.path().join("chronus");
    for (file, find, replace) in [
        ("index.csv", "", ""),
        ("cases/base_single/case.json", "", ""),
        ("cases/base_single/trace.csv", "", ""),
        ("cases/base_single/expected_highs.json", "\"class\": \"ACCEPTED\"", "\"class\": \"UNACCEPTED\""),
    ] {
        let text = fs::read_to_string(from.join(file)).expect(file);
        assert!(text.contains(find), "{file} has {find}");
        fs::create_dir_all(to.join(file).parent().expect("a folder")).expect("a folder");
        fs::write(to.join(file), text.replace(find, replace)).expect(file);
    }
    let report = chronus(dir.path());
    let why = report.failed().find(|(case, _)| *case == "base_single").expect("it was changed").1;
    assert!(why.contains("job 0 became ACCEPTED"), "{why}");
}
