//! Rota does what the originals do: golden cases, how differences and garbage are named, and which verbs the
//! artifact drivers share with the shipped policies.

use std::fs;
use std::path::Path;

use rota_lab::conform::{ConformError, Options, Report, SystemReport, Verdict, conform};
use rota_test_support::need;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn options(golden: &Path) -> Options {
    Options { golden: golden.to_owned(), systems: vec!["synergy".into()], out: None, first_round: None }
}

fn synergy(options: &Options) -> Result<SystemReport, ConformError> {
    let Report { mut systems } = conform(options, &|_, _| ())?;
    assert_eq!(systems.len(), 1, "one system was asked for");
    Ok(systems.remove(0))
}

fn assert_none_failed(report: &SystemReport) {
    let failed: Vec<_> = report.failed().map(|(case, why)| format!("{case}: {why}")).collect();
    assert!(
        failed.is_empty(),
        "{} of {} cases differ:\n{}",
        failed.len(),
        report.cases.len(),
        failed.join("\n")
    );
}

/// A copy of the carried cases that a test may spoil.
fn copy_of_carried_cases() -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                copy(&entry.path(), &target)?;
            } else {
                fs::copy(entry.path(), target)?;
            }
        }
        Ok(())
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    copy(&Path::new(ROOT).join("tests/data/synergy"), &dir.path().join("synergy"))
        .expect("the cases can be copied");
    dir
}

fn spoil(dir: &tempfile::TempDir, file: &str, from: &str, to: &str) {
    let path = dir.path().join("synergy").join(file);
    let text = fs::read_to_string(&path).expect(file);
    assert!(text.contains(from), "{file} holds {from:?}");
    fs::write(&path, text.replacen(from, to, 1)).expect(file);
}

#[test]
fn carried_synergy_cases_are_equal() {
    let report =
        synergy(&options(&Path::new(ROOT).join("tests/data"))).expect("the carried cases can be read");
    assert_none_failed(&report);
    assert_eq!((report.n_equal(), report.cases.len()), (174, 174));
}

#[test]
fn every_synergy_case_of_the_original_is_equal_where_they_are_at_hand() {
    let Some(golden) = need::shared_path("golden") else { return };
    let report = synergy(&options(&golden)).expect("the golden cases can be read");
    assert_none_failed(&report);
    for (case, why) in report.skipped() {
        assert!(case.contains("+opt"), "{case} was skipped: {why}");
    }
    assert!(report.n_equal() > 250, "only {} cases were compared", report.n_equal());
}

#[test]
fn the_report_does_not_depend_on_the_number_of_threads() {
    let options = options(&Path::new(ROOT).join("tests/data"));
    let with = |n| {
        rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("threads").install(|| synergy(&options))
    };
    assert_eq!(with(1).expect("a report"), with(3).expect("a report"));
}

#[test]
fn the_first_difference_is_named_by_job_round_and_times() {
    let dir = copy_of_carried_cases();
    spoil(&dir, "expected/m1_basic.DRF+fair+place.csv", "0,1.0,1201.0", "0,1.0,901.0");
    let report = synergy(&options(dir.path())).expect("a report");
    let case = report.cases.iter().find(|case| case.case == "m1_basic.DRF+fair").expect("the case is there");
    let why = "job 0: expected to finish at 901 s (round 3), got at 1201 s (round 4)";
    assert_eq!(case.verdict, Verdict::Failed(why.into()));
}

#[test]
fn a_swapped_order_does_not_go_unnoticed() {
    let dir = copy_of_carried_cases();
    spoil(&dir, "cases.csv", "n30.multi.xhigh.SRTF,SRTF,", "n30.multi.xhigh.SRTF,LAS,");
    let report = synergy(&options(dir.path())).expect("a report");
    let failed: Vec<_> = report.failed().collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    let (case, why) = failed[0];
    assert_eq!(case, "n30.multi.xhigh.SRTF");
    assert!(why.starts_with("job ") && why.contains("expected to") && why.contains("(round "), "{why}");
}

#[test]
fn garbage_in_a_case_table_ends_everything_and_is_named() {
    for (from, to, expected) in [
        (
            "DRF+fair+place,configs/s1.ini",
            "DRF+turbo,configs/s1.ini",
            "cases.csv:2, column 2 (policy): got \"DRF+turbo\"",
        ),
        (
            "replay-static",
            "backwards",
            "cases.csv:2, column 5 (mode): got \"backwards\", expected generator, replay-static",
        ),
        (
            "m1_basic.DRF+fair+place,DRF",
            "../../etc,DRF",
            "cases.csv:2, column 1 (case): got \"../../etc\", expected a name that can be a folder",
        ),
        ("case,policy", "case,plan", "cases.csv:1: got \"case,plan,cluster"),
    ] {
        let dir = copy_of_carried_cases();
        spoil(&dir, "cases.csv", from, to);
        let error = synergy(&options(dir.path())).expect_err(to).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn garbage_in_the_files_of_a_case_fails_that_case_and_is_named() {
    let dir = copy_of_carried_cases();
    spoil(&dir, "inputs/m1_basic.trace", "res50", "resnet-50");
    spoil(&dir, "configs/tiny2x2.ini", "gpus_per_server = 2", "gpus_per_server = two");
    spoil(&dir, "expected/m3_peer.FIFO.csv", "1.0", "noon");
    fs::remove_file(dir.path().join("synergy/inputs/m4_split.trace")).expect("it was there");
    let report = synergy(&options(dir.path())).expect("a report");
    let why = |name: &str| {
        let (_, why) = report.failed().find(|(case, _)| *case == name).expect(name);
        why.to_owned()
    };
    assert!(
        why("m1_basic.FIFO").contains("m1_basic.trace:2, column 2 (model): got \"resnet-50\""),
        "{}",
        why("m1_basic.FIFO")
    );
    assert!(
        why("m2_tiny.FIFO").contains("tiny2x2.ini:4, gpus_per_server: got \"two\""),
        "{}",
        why("m2_tiny.FIFO")
    );
    assert!(
        why("m3_peer.FIFO").contains("m3_peer.FIFO.csv:2, column 2 (first_start_s): got \"noon\""),
        "{}",
        why("m3_peer.FIFO")
    );
    assert!(why("m4_split.FIFO").contains("m4_split.trace: cannot be read"), "{}", why("m4_split.FIFO"));
    assert!(report.n_equal() > 50, "other cases are not touched: {} equal", report.n_equal());
}

#[test]
fn a_folder_without_cases_is_named() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let all = Options { systems: Vec::new(), ..options(dir.path()) };
    let none = conform(&all, &|_, _| ()).expect_err("nothing there").to_string();
    assert!(
        none.contains("has no golden cases: expected a folder named after a system (synergy, "),
        "{none}"
    );
    let missing = synergy(&options(dir.path())).expect_err("nothing there").to_string();
    assert!(missing.ends_with("has no cases of synergy: expected a folder synergy in it"), "{missing}");
}

#[test]
fn result_folders_of_cases_are_in_rotas_format() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let options =
        Options { out: Some(out.path().to_owned()), ..options(&Path::new(ROOT).join("tests/data")) };
    assert_none_failed(&synergy(&options).expect("a report"));
    let folder = out.path().join("synergy/m1_basic.FIFO");
    let results = rota_lab::results::Results::read(&folder).expect("a result folder");
    let jobs = &results.runs[0].jobs;
    let row = |i: usize| {
        (&*jobs[i].job_id, jobs[i].start.map(|t| t.to_string()), jobs[i].finish.map(|t| t.to_string()))
    };
    assert_eq!(row(0), ("0", Some("1".into()), Some("601".into())));
    assert!(!results.runs[0].timeline.is_empty(), "what ran where is written");
}

/// The verbs that carry Synergy's ideas, where the artifact driver calls them, and where a shipped script reaches the
/// same one: through the word it writes and the file of the host that binds the word.
const SHARED_VERBS: [(&str, &str, &str, &str, &str, &str); 6] = [
    // verb, word in the driver, shipped script, its word, file of the host, word there
    (
        "the walk over jobs",
        "Fill::new(",
        "allocation/greedy.rhai",
        "view.fill(",
        "src/values/plans/fill.rs",
        "Fill::new(",
    ),
    (
        "choosing jobs whose GPUs fit",
        "fill.select(",
        "allocation/tune.rhai",
        ".select()",
        "src/values/plans/fill.rs",
        "only_selected",
    ),
    (
        "tune: the fair share",
        "Demand::FairShare",
        "allocation/proportional.rhai",
        "\"fair_share\"",
        "src/values/plans/fill.rs",
        "Demand::FairShare",
    ),
    (
        "tune: taking excess back",
        "Answer::Reclaim(",
        "allocation/tune.rhai",
        "\"reclaim_excess\"",
        "src/values/plans/fill.rs",
        "Answer::Reclaim(",
    ),
    (
        // The shipped script ranks nodes; its twin test compares it with the verb, decision by decision.
        "first-fit placement",
        "Box::new(FirstFit)",
        "tests/twins.rs",
        "(\"first-fit\", \"first_fit()\")",
        "src/values/nodes/placement.rs",
        "Box::new(FirstFit)",
    ),
    (
        "consolidating placement",
        "Consolidate::default()",
        "tests/twins.rs",
        "(\"consolidate\", \"consolidate()\")",
        "src/values/nodes/placement.rs",
        "Consolidate::default()",
    ),
];

#[test]
fn the_synergy_driver_and_the_shipped_policies_share_their_verbs() {
    let read = |file: &str| fs::read_to_string(Path::new(ROOT).join("scripts").join(file)).expect(file);
    let driver = read("src/artifact/synergy/driver.rs");
    for (verb, in_driver, script, in_script, host, in_host) in SHARED_VERBS {
        assert!(driver.contains(in_driver), "{verb}: the driver does not use `{in_driver}`");
        assert!(read(script).contains(in_script), "{verb}: {script} does not use `{in_script}`");
        assert!(read(host).contains(in_host), "{verb}: {host} does not use `{in_host}`");
        println!("{verb}: {in_driver} in the driver, {in_script} in {script}");
    }
    for order in ["fifo", "srtf", "las", "ftf", "drf", "tetris"] {
        for folder in ["artifact/synergy", "policies"] {
            assert!(read(&format!("{folder}/{order}.rhai")).contains("rank("), "{folder}/{order}.rhai ranks");
        }
    }
}
