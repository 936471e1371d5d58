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

/// A script of one's own in a folder of its own, by its path.
fn script(folder_name: &str, text: &str) -> String {
    let path = folder(folder_name).join("mine.rhai");
    std::fs::write(&path, text).expect("it is written");
    path.to_str().expect("a plain path").to_owned()
}

#[test]
fn show_prints_the_source_of_every_part() {
    let source = |name: &str| shipped::find(name).expect("a shipped script").source;
    assert_eq!(commands::show("elasticflow").expect("a shipped script"), source("elasticflow"));
    let composed = commands::show("las+tune+consolidate").expect("shipped parts");
    for (name, file) in
        [("las", "policies/las"), ("tune", "allocation/tune"), ("consolidate", "placement/consolidate")]
    {
        assert!(composed.contains(&format!("// ==== {name} ({file}.rhai)\n{}", source(name))), "{composed}");
    }
    let variant = commands::show("chronus-deadlines").expect("a shipped variant");
    assert!(
        variant.contains(source("chronus-deadlines")) && variant.contains(source("chronus")),
        "{variant}"
    );
}

#[test]
fn a_copy_of_a_shipped_script_decides_as_it_does() {
    let path = folder("copy").join("mine.rhai");
    commands::new(&path, Some("elasticflow")).expect("it is written");
    let text = std::fs::read_to_string(&path).expect("it is there");
    assert!(text.starts_with("// mine: a copy of elasticflow"), "{text}");
    assert!(text.ends_with(shipped::find("elasticflow").expect("a shipped script").source));
    let name = path.to_str().expect("a plain path");
    let after_name = |text: String| {
        text.split_once(": good").expect("it is good").1.replace(name, "policies/elasticflow.rhai")
    };
    let copied = commands::check(name).expect("the copy is good");
    let shipped = commands::check("elasticflow").expect("the original is good");
    let only_runs =
        |text: String| text.lines().filter(|line| !line.contains("not run")).collect::<Vec<_>>().join("\n");
    assert_eq!(only_runs(after_name(copied)), only_runs(after_name(shipped)));
    let several = commands::new(&folder("several").join("mine.rhai"), Some("las+tune"));
    assert!(several.is_err_and(|error| error.to_string().contains("mine.rhai+tune`")));
    let unknown = commands::new(&folder("unknown").join("mine.rhai"), Some("elasticflw"));
    assert!(unknown.is_err_and(|error| error.to_string().contains("did you mean `elasticflow`")));
}

#[test]
fn the_list_is_by_stage() {
    let text = commands::list();
    let place = |wanted: &str| text.find(wanted).unwrap_or_else(|| panic!("no {wanted:?} in\n{text}"));
    assert!(place("order: ") < place("  las ") && place("  las ") < place("allocate: "));
    assert!(place("allocate: ") < place("  tune ") && place("  tune ") < place("place: "));
    assert!(place("place: ") < place("  consolidate ") && place("  consolidate ") < place("several stages"));
    assert!(place("several stages") < place("  elasticflow "));
    let elasticflow = text.lines().find(|line| line.starts_with("  elasticflow ")).expect("a line");
    assert!(elasticflow.ends_with("(admit, allocate, place)"), "{elasticflow}");
}

#[test]
fn check_finds_wrong_names_in_branches_that_no_run_takes() {
    let wrong = |text: &str| {
        let name = script("names", text);
        match commands::check(&name) {
            Err(error) => error.to_string().replace(&name, "mine.rhai"),
            Ok(text) => panic!("no error: {text}"),
        }
    };
    let branch = |body: &str| {
        format!(
            "fn order(jobs, now) {{\n    if now > 1e12 {{\n        {body}\n    }}\n    rank(jobs.arrival)\n}}"
        )
    };
    for (body, expected) in [
        ("return rank(jobs.atained);", "mine.rhai:3:26: Jobs has no field `atained`"),
        ("return rank(jobs[0].gpuss);", "Job has no field `gpuss`"),
        ("return rnk(jobs.arrival);", "mine.rhai:3:16: no function `rnk`"),
        ("return jobs.ordr_by(|job| job.id);", "Jobs has no verb `ordr_by`"),
        ("return jobs.order_by(|job| job.gpuss);", "nothing has a field `gpuss`"),
        ("for job in jobs { print(job.nmae); }", "Job has no field `nmae`"),
        ("print(param(\"patience\"));", "param `patience` is not declared in this file"),
        ("if jobs.gpus > 4 { print(1); }", "a Column is not a condition"),
        ("print(jobs.gpus.quantile());", "`quantile` with the wrong number of arguments"),
        ("let left = (jobs.remaining / 60).summ();", "Column has no verb `summ`"),
        ("print(jobs.cluster.gpu);", "Cluster has no field `gpu`"),
        ("print(jobs[0].demand.cpu);", "Share has no field `cpu`"),
    ] {
        let message = wrong(&branch(body));
        assert!(message.contains(expected), "{body}\n{message}");
    }
    let two = wrong(&branch("return rank(jobs.atained, jobs.gpuss);"));
    assert!(two.contains("atained") && two.contains("gpuss"), "all wrong names are listed: {two}");
    let wrong_now = wrong("fn order(jobs, now) {\n    rank(jobs.gpus / jobs.held * 0.0)\n}");
    assert!(wrong_now.starts_with("mine.rhai:2:5: rank: key 1"), "the error comes first: {wrong_now}");
}

#[test]
fn check_tries_each_value_of_a_word_and_says_which_lines_did_not_run() {
    let text = "param(\"mode\", \"a\", [\"a\", \"b\"], \"Which.\");\nfn order(jobs, now) {\n    if param(\"mode\") == \"b\" {\n        return 5;\n    }\n    if now > 1e12 {\n        return rank(jobs.gpus);\n    }\n    rank(jobs.arrival)\n}";
    let error = commands::check(&script("values", text)).expect_err("one value is wrong").to_string();
    assert!(
        error.contains("`order` must return a Queue") && error.contains("with --set mine.mode=b"),
        "{error}"
    );
    let good = commands::check(&script("values", &text.replace("return 5", "return rank(jobs.held)")))
        .expect("it is good");
    assert!(
        good.contains("tried with 1 other values") && good.contains("not run, names checked only: line 7\n"),
        "{good}"
    );
}

#[test]
fn check_says_where_a_script_was_when_it_reached_the_limit() {
    let text = "fn order(jobs, now) {\n    let x = 0;\n    while true { x += 1; }\n    rank(jobs.arrival)\n}";
    let error = commands::check(&script("limit", text)).expect_err("it never ends").to_string();
    assert!(
        error.contains("mine.rhai:3:") && error.contains("used more than 10000000 operations"),
        "{error}"
    );
    assert!(error.contains("% to line 3"), "{error}");
}

#[test]
fn a_promise_to_be_steady_is_tried_out() {
    let text = "steady();\nfn order(jobs, now) { rank(jobs.attained) }\n";
    let error = commands::check(&script("steady", text)).expect_err("time changes its answer").to_string();
    assert!(error.contains("mine.rhai:1:1: `steady()` promises that time alone changes nothing"), "{error}");
    assert!(error.contains("`attained` in line 2 changes with time: leave `steady();` out"), "{error}");
    // Waiting longer than others is having come earlier: time changes the numbers and not the order.
    let kept = text.replace("rank(jobs.attained)", "rank(jobs.arrival - now)");
    let checked = commands::check(&script("steady", &kept));
    assert!(checked.is_ok(), "{}", checked.unwrap_err());
    let without = text.replace("steady();", "");
    assert!(commands::check(&script("steady", &without)).is_ok());
}

#[test]
fn what_fails_only_when_a_job_has_ended_is_found() {
    let text = "fn allocate(view) {\n    for id in this.seen ?? [] { print(view.job(id).name); }\n    this.seen = [];\n    \
                for job in view.jobs { this.seen.push(job.id); }\n    view.fill(view.queue)\n}\n";
    let error = commands::check(&script("ended", text)).expect_err("a job ends").to_string();
    assert!(error.contains("mine.rhai:2:") && error.contains("has ended or never arrived"), "{error}");
    assert!(error.contains("on a small cluster over some hours, at "), "{error}");
}

#[test]
fn every_shipped_script_can_be_copied() {
    let folder = folder("copies");
    for shipped in shipped::ALL.iter().filter(|script| shipped::find(script.name).is_some()) {
        let path = folder.join(format!("{}.rhai", shipped.name));
        if commands::new(&path, Some(shipped.name)).is_err() {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a copy");
        assert!(text.ends_with(shipped.source), "{}: its text and nothing behind it", shipped.name);
    }
    let copied = std::fs::read_to_string(folder.join("edf-admission.rhai")).expect("a copy");
    assert!(copied.contains("edf-admission.rhai+edf.\n"), "{copied}");
    let path = folder.join("edf-admission.rhai");
    let checked = commands::check(&format!("{}+edf", path.display()));
    assert!(checked.is_ok(), "{}", checked.unwrap_err());
}

#[test]
fn every_shipped_script_passes_its_own_check() {
    for script in shipped::ALL {
        let checked = commands::check(script.name);
        assert!(checked.is_ok(), "{}", checked.unwrap_err());
        if script.name == "tune" {
            assert!(checked.is_ok_and(|text| !text.contains("not run")), "all of it runs, its top level too");
        }
    }
}

#[test]
fn a_profile_names_the_line_and_the_verb() {
    let text = "fn order(jobs, now) {\n    let keys = 0;\n    for job in jobs {\n        keys += weight(job);\n    }\n    jobs.order_by(|job| job.gpus * 2)\n}\nfn weight(job) {\n    job.gpus + 1\n}\n";
    let size = rota_scripts::sample::Size { n_nodes: 4, n_old: 200, n_new: 10 };
    let profile = commands::profile(&script("profile", text), size).expect("it decides");
    let total: u64 = profile.places.iter().map(|(_, spent)| spent.operations).sum();
    let of_lines = |lines: &[usize]| -> u64 {
        profile
            .places
            .iter()
            .filter(|(place, _)| lines.contains(&place.line))
            .map(|(_, spent)| spent.operations)
            .sum()
    };
    assert!(of_lines(&[3, 4, 9]) + of_lines(&[6]) > total * 9 / 10, "{}", profile.text());
    assert!(of_lines(&[3, 4, 9]) > total / 3 && of_lines(&[6]) > total / 5, "{}", profile.text());
    assert!(profile.text().contains("mine.rhai:4  keys += weight(job);"), "{}", profile.text());
    assert!(profile.places.iter().any(|(place, _)| place.verb == "weight"), "{}", profile.text());
    let folded = profile.folded();
    assert!(folded.lines().any(|line| line.starts_with("order;weight;line 9")), "{folded}");
    assert!(folded.lines().any(|line| line.starts_with("order;closure;line 6")), "{folded}");
}

#[test]
fn a_profile_of_columns_names_the_native_verb() {
    let size = rota_scripts::sample::Size { n_nodes: 16, n_old: 3_000, n_new: 100 };
    let profile = commands::profile("las", size).expect("it decides");
    let rank = profile.places.iter().find(|(place, _)| place.verb == "rank").expect("rank is called");
    assert_eq!(rank.0.file, "policies/las.rhai");
    assert!(rank.1.operations > 3 * 3_000 / 16, "{}", profile.text());
}
