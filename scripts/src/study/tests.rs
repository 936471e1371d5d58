use std::collections::BTreeMap;
use std::sync::Mutex;

use super::*;

/// A batch in which a run's figure is a function of its load, and one policy always fails.
#[derive(Default)]
struct Toy {
    runs: Mutex<Vec<Settings>>,
    said: Mutex<Vec<String>>,
}

impl Toy {
    fn number(&self, run: usize, name: &str) -> Option<f64> {
        let runs = self.runs.lock().unwrap();
        let (_, setting) = runs[run].iter().find(|(key, _)| key == name)?;
        match setting {
            Setting::Whole(whole) => Some(*whole as f64),
            Setting::Number(number) => Some(*number),
            _ => None,
        }
    }
}

impl Batch for Toy {
    fn submit(&self, settings: Settings) -> Result<usize, RunRefused> {
        if settings.iter().all(|(name, _)| name != "policy") {
            return Err(RunRefused("a run needs a policy".into()));
        }
        let mut runs = self.runs.lock().unwrap();
        runs.push(settings);
        Ok(runs.len() - 1)
    }
    fn figure(&self, run: usize, name: &str) -> Result<Option<f64>, FigureError> {
        match (self.failure(run), name) {
            (Some(why), _) => Err(FigureError::Failed { number: run + 1, why }),
            (None, "avg_jct_s") => Ok(self.number(run, "jobs_per_hour")),
            (None, "deadline_ratio") => Ok(None),
            (None, _) => Err(FigureError::Unknown { name: name.to_owned(), known: vec!["avg_jct_s".into()] }),
        }
    }
    fn failure(&self, run: usize) -> Option<String> {
        let is_bad = ("policy".to_owned(), Setting::Text("bad".into()));
        self.runs.lock().unwrap()[run].contains(&is_bad).then(|| "out of luck".to_owned())
    }
    fn interval(&self, values: &[f64]) -> Option<Interval> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(Interval { n: values.len(), mean, low: mean - 1.0, high: mean + 1.0 })
    }
    fn compare(&self, baseline: &[f64], other: &[f64]) -> Option<Comparison> {
        let difference =
            self.interval(&other.iter().zip(baseline).map(|(o, b)| o - b).collect::<Vec<_>>())?;
        Some(Comparison { difference, ratio: difference, n_smaller: 0 })
    }
    fn title(&self, text: &str) {
        self.say(text);
    }
    fn say(&self, line: &str) {
        self.said.lock().unwrap().push(line.to_owned());
    }
}

fn ran(source: &str, set: &[(&str, &str)]) -> (Vec<Settings>, Vec<String>, Result<(), String>) {
    let toy = Arc::new(Toy::default());
    let set: BTreeMap<_, _> = set.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let options = StudyOptions { is_quick: true, set };
    let result = run("study.rhai", source, Arc::clone(&toy) as Arc<dyn Batch>, options);
    let runs = toy.runs.lock().unwrap().clone();
    let said = toy.said.lock().unwrap().clone();
    (runs, said, result.map_err(|error| error.to_string()))
}

fn error(source: &str, set: &[(&str, &str)]) -> String {
    ran(source, set).2.expect_err("it must fail")
}

#[test]
fn a_sweep_is_every_combination_with_the_last_name_fastest() {
    let (runs, ..) = ran(r#"sweep(#{ policy: ["a", "b"], seed: 1..=2, jobs: 5 })"#, &[]);
    let names: Vec<String> = runs.iter().map(|run| format!("{:?} {:?}", run[1].1, run[2].1)).collect();
    assert_eq!(
        names,
        [r#"Text("a") Whole(1)"#, r#"Text("a") Whole(2)"#, r#"Text("b") Whole(1)"#, r#"Text("b") Whole(2)"#]
    );
    assert_eq!(runs[0][0], ("jobs".to_owned(), Setting::Whole(5)));
}

#[test]
fn arrays_inside_set_are_swept() {
    let (runs, ..) = ran(r#"sweep(#{ policy: "a", set: #{ patience: [2, 6], b: 1 }, seed: 1..=2 })"#, &[]);
    let set = |b: i64, patience: i64| {
        Setting::Pairs(vec![("b".into(), Setting::Whole(b)), ("patience".into(), Setting::Whole(patience))])
    };
    let sets: Vec<&Setting> = runs.iter().map(|run| &run[2].1).collect();
    assert_eq!(sets, [&set(1, 2), &set(1, 6), &set(1, 2), &set(1, 6)], "{runs:?}");
}

#[test]
fn the_best_of_a_search_is_named_with_what_it_is_worth() {
    let source = r#"
        let candidates = [];
        for load in [9, 4, 5] { candidates.push(sweep(#{ policy: "las", jobs_per_hour: load, seed: 1..=2 })); }
        let found = best(candidates, "avg_jct_s");
        print(`${found.at} ${found.next} ${found.is_clear}`);"#;
    let (_, said, result) = ran(source, &[]);
    assert_eq!(result, Ok(()));
    assert!(
        said[0].starts_with("lowest avg_jct_s of 3: number 2 ") && said[0].contains("not told apart"),
        "{said:?}"
    );
    assert_eq!(said[1], "1 2 false", "the toy's intervals are wide");
    assert!(error("best([], \"avg_jct_s\")", &[]).contains("fewer than two lists"));
    assert!(error("best([1, 2], \"avg_jct_s\")", &[]).contains("is not a list of runs"));
}

#[test]
fn an_unknown_figure_is_said_in_a_line_with_the_nearest() {
    let why = error(r#"run(#{ policy: "las" }).avg_jct"#, &[]);
    let first = why.lines().next().unwrap_or_default();
    assert!(first.ends_with("a run has no figure `avg_jct`: did you mean `avg_jct_s`?"), "{why}");
}

#[test]
fn a_script_can_look_for_the_load_it_wants() {
    let source = r#"
        let (low, high) = (0.0, 16.0);
        while high - low > 1.0 {
            let middle = (low + high) / 2.0;
            if run(#{ policy: "las", jobs_per_hour: middle }).avg_jct_s > 5.0 { high = middle } else { low = middle }
        }
        print(high);"#;
    let source = source.replace("let (low, high) = (0.0, 16.0);", "let low = 0.0; let high = 16.0;");
    let (runs, said, result) = ran(&source, &[]);
    assert_eq!((result, runs.len(), said), (Ok(()), 4, vec!["6.0".to_owned()]));
}

#[test]
fn statistics_are_taken_over_runs() {
    let source = r#"
        let runs = sweep(#{ policy: "las", jobs_per_hour: [1, 2, 6] });
        print(mean(runs, "avg_jct_s"));
        print(median(runs, "avg_jct_s"));
        print(percentile(runs, "avg_jct_s", 75));
        print(interval(runs, "avg_jct_s").relative);
        print(compare(runs, runs, "avg_jct_s").difference);
        print(runs[0].deadline_ratio == ());"#;
    let (_, said, result) = ran(source, &[]);
    assert_eq!(result, Ok(()));
    assert_eq!(said[..3], ["3.0", "2.0", "4.0"]);
    assert_eq!((said[4].as_str(), said[5].as_str()), ("0.0", "true"));
}

#[test]
fn a_failed_run_is_an_error_only_for_who_reads_it() {
    assert_eq!(ran(r#"let r = run(#{ policy: "bad" }); print(r.ok); print(r.error);"#, &[]).2, Ok(()));
    let why = error("\nrun(#{ policy: \"bad\" }).avg_jct_s", &[]);
    assert!(why.starts_with("study.rhai:2:") && why.contains("run 1 failed: out of luck"), "{why}");
}

#[test]
fn parameters_have_the_type_of_their_default_and_unknown_ones_are_refused() {
    let source = r#"let n = param("n", 3); run(#{ policy: "las", jobs: n });"#;
    assert_eq!(ran(source, &[("n", "7")]).0[0][0], ("jobs".to_owned(), Setting::Whole(7)));
    assert!(error(source, &[("n", "many")]).contains("--set n=many: a whole number is expected"));
    let why = error(source, &[("m", "1")]);
    assert!(why.contains("--set m: this study has n"), "{why}");
    assert!(error("let x = 1;", &[("m", "1")]).contains("--set m: this study has no parameters"));
}

#[test]
fn what_makes_no_sense_is_said_with_its_place() {
    let why = error("run(#{ seed: 1 })", &[]);
    assert!(why.starts_with("study.rhai:1:1: a run needs a policy"), "{why}");
    assert!(error(r#"run(#{ policy: || 1 })"#, &[]).contains("policy: a function cannot be a setting"));
    assert!(error(r#"sweep(#{ policy: [] })"#, &[]).contains("sweep: policy: no value"));
    assert!(error(r#"sweep(#{ policy: "a", seed: 5..1 })"#, &[]).contains("holds no number"));
    assert!(error(r#"mean([], "avg_jct_s")"#, &[]).contains("avg_jct_s of no runs"));
    assert!(error("loop { }", &[]).contains("operations"));
}
