use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use rota_scripts::study::{Batch as _, Setting};

use super::*;
use crate::results::RunResult;
use crate::results::samples::run as sample_run;
use crate::study::RunError;

/// Counts what is run; the policy `odd` fails, `broken` panics.
#[derive(Default)]
struct Counting(Arc<AtomicUsize>);

impl Execute for Counting {
    type Plan = String;
    fn plan(&self, settings: &Settings) -> Result<(String, Key), RunError> {
        let text = format!("{settings:?}");
        Ok((text.clone(), Key::new([text.as_str()])))
    }
    fn run(&self, plan: &String) -> Result<RunResult, RunError> {
        self.0.fetch_add(1, SeqCst);
        assert!(!plan.contains("broken"), "a defect");
        if plan.contains("odd") {
            Err(RunError { why: "no such policy".to_owned() })
        } else {
            Ok(sample_run("las", 1, None))
        }
    }
}

struct Silent;

impl Watch for Silent {
    fn submitted(&self, _: bool) {}
    fn done(&self, _: bool) {}
    fn say(&self, _: &str) {}
}

fn policy(name: &str) -> Settings {
    vec![("policy".to_owned(), Setting::Text(name.to_owned()))]
}

fn batch(dir: &std::path::Path, shard: Option<&str>) -> (Shared<Counting>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let cache = Cache::open(dir, &[]).expect("a cache");
    let shard = shard.map(|shard| shard.parse().expect("a shard"));
    let batch = Batch::new(Counting(Arc::clone(&count)), cache, shard, Arc::new(Silent));
    (Shared(Arc::new(batch)), count)
}

#[test]
fn equal_settings_are_one_run_and_what_was_run_before_is_not_run_again() {
    let dir = tempfile::tempdir().expect("a folder");
    for expected in [2, 0] {
        let (shared, count) = batch(dir.path(), None);
        let runs = ["las", "srtf", "las"].map(|name| shared.submit(policy(name)).expect("taken on"));
        assert_eq!(runs, [0, 1, 0]);
        assert_eq!(shared.figure(0, "jobs"), Ok(Some(5.0)));
        let (_, _, ran) = shared.0.finish();
        assert_eq!((ran.len(), count.load(SeqCst)), (2, expected));
    }
}

#[test]
fn one_failure_stays_alone_and_is_tried_again_next_time() {
    let dir = tempfile::tempdir().expect("a folder");
    for _ in 0..2 {
        let (shared, count) = batch(dir.path(), None);
        let [odd, broken, las] =
            ["odd", "broken", "las"].map(|name| shared.submit(policy(name)).expect("taken on"));
        assert_eq!(shared.failure(odd).as_deref(), Some("no such policy"));
        assert!(shared.failure(broken).is_some_and(|why| why.contains("defect")));
        assert_eq!(shared.failure(las), None);
        let why = shared.figure(odd, "jobs").expect_err("it failed");
        assert!(why.to_string().contains("run 1 failed: no such policy"), "{why}");
        assert!(count.load(SeqCst) >= 2);
    }
}

#[test]
fn shards_share_the_runs_and_one_that_is_read_is_run_anyway() {
    let names: Vec<String> = (0..20).map(|n| format!("policy{n}")).collect();
    let mut n_runs = 0;
    for shard in ["1/3", "2/3", "3/3"] {
        let dir = tempfile::tempdir().expect("a folder");
        let (shared, count) = batch(dir.path(), Some(shard));
        for name in &names {
            shared.submit(policy(name)).expect("taken on");
        }
        let (_, _, ran) = shared.0.finish();
        let n_elsewhere = ran.iter().filter(|run| run.outcome == Outcome::Elsewhere).count();
        assert_eq!(count.load(SeqCst) + n_elsewhere, 20);
        n_runs += count.load(SeqCst);
        let elsewhere =
            ran.iter().position(|run| run.outcome == Outcome::Elsewhere).expect("one of another shard");
        assert_eq!(shared.figure(elsewhere, "jobs"), Ok(Some(5.0)));
    }
    assert_eq!(n_runs, 20);
}

#[test]
fn an_unknown_figure_is_answered_with_those_there_are() {
    let dir = tempfile::tempdir().expect("a folder");
    let (shared, _) = batch(dir.path(), None);
    let run = shared.submit(policy("las")).expect("taken on");
    let why = shared.figure(run, "avg_jtc").expect_err("no such figure");
    assert!(
        why.to_string().contains("no figure `avg_jtc`") && why.to_string().contains("avg_jct_s"),
        "{why}"
    );
}
