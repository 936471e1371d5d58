//! The baselines' rules as scripts say them: one rule of each edited as text, wrong options of `time_slice`, work that counts.

mod common;

use rota_core::policy::Policy;
use rota_scripts::Limits;
use rota_scripts::sample::{Size, snapshot};
use rota_scripts::scenario::{parse, run};

use common::policy;

const GANDIVA: &str = include_str!("../policies/gandiva.rhai");
const TIRESIAS: &str = include_str!("../policies/tiresias.rhai");
const THEMIS: &str = include_str!("../policies/themis.rhai");

/// The shipped text with one rule replaced.
#[track_caller]
fn edited(text: &str, rule: &str, other: &str) -> String {
    assert_eq!(text.matches(rule).count(), 1, "`{rule}` stands in the script once");
    text.replace(rule, other)
}

/// What a script decides, a line for each round.
#[track_caller]
fn decides(text: &str, world: &str) -> Vec<String> {
    let scenarios = parse(&format!("scenario: mine\n{world}policy mine\nrounds 3\n----\n"))
        .unwrap_or_else(|error| panic!("{error}"));
    run(&scenarios[0], &mut policy(text, Limits::default())).actual
}

#[track_caller]
fn refusal(options: &str) -> String {
    let text = format!("fn allocate(view) {{ view.time_slice(view.queue, {options}) }}");
    let instant = snapshot(Size { n_nodes: 2, n_old: 12, n_new: 6 });
    policy(&text, Limits::default()).decide(&instant).expect_err("a wrong option").message
}

#[test]
fn who_shares_a_gpu_is_the_key_in_the_script() {
    // The second gang must share: with the gang of its size, or with the jobs of its length.
    let world = "cluster 2 nodes, 2 gpus, 12 cpus, 48 GB
job wide gpus=2 work=900
job left gpus=1 work=600
job right gpus=1 work=600
job second gpus=2 work=600
";
    let by_size = decides(GANDIVA, world);
    assert_eq!(
        by_size[0],
        "0: wide 0[0-1] 6c 24g, left 1[0] 6c 24g, right 1[1] 6c 24g, second 0[0-1] 6c 24g"
    );
    let by_length = edited(GANDIVA, "together: view.jobs.gpus", "together: view.jobs.duration");
    assert_eq!(
        decides(&by_length, world)[0],
        "0: wide 0[0-1] 12c 48g, left 1[0] 3c 12g, right 1[1] 3c 12g, second 1[0-1] 6c 24g"
    );
}

#[test]
fn who_is_stopped_for_whom_is_the_rank_in_the_script() {
    // Both have left the first queue after a round; without the rule the one that came first takes its GPU back.
    let world = "cluster 1 nodes, 1 gpus, 12 cpus, 48 GB
job first gpus=1 work=1500
job second gpus=1 work=1500 at=10
";
    let short = edited(TIRESIAS, "param(\"first\", 3250.0", "param(\"first\", 300.0");
    assert_eq!(decides(&short, world)[2], "600: second 0[0] 12c 48g | waits first");
    let by_arrival = edited(&short, "jobs.held == 0, jobs.since", "jobs.arrival");
    assert_eq!(decides(&by_arrival, world)[2], "600: first 0[0] 12c 48g | waits second");
}

#[test]
fn what_a_job_is_owed_is_the_ratio_in_the_script() {
    // A gang's part of the cluster is small compared with what it asks for; without that it is as badly off as the others.
    let world = "cluster 1 nodes, 2 gpus, 12 cpus, 48 GB
job wide gpus=2 work=900
job narrow gpus=1 work=900
job other gpus=1 work=900
";
    assert_eq!(decides(THEMIS, world)[0], "0: narrow 0[0] 6c 24g, other 0[1] 6c 24g | waits wide");
    let alike = edited(THEMIS, " * max(jobs.gpus / each, 1.0)", "");
    assert_eq!(decides(&alike, world)[0], "0: wide 0[0-1] 12c 48g | waits narrow other");
}

#[test]
fn wrong_options_are_named() {
    assert!(
        refusal("#{ mots: 3 }").contains("time_slice: `mots` is not an option"),
        "{}",
        refusal("#{ mots: 3 }")
    );
    assert!(refusal("#{ most: 0 }").contains("time_slice: `most` is a whole number from 1 to 1000, got 0"));
    assert!(refusal("#{ together: 4 }").contains(
        "`together` is a Column, one key for each job, or a closure |job| or |job, other|, got a whole number"
    ));
    let few = "#{ together: view.jobs.filter(view.jobs.gpus > 100).gpus }";
    assert!(refusal(few).contains("`together` has no key for job"), "{}", refusal(few));
    let no_number = "#{ together: view.jobs.gpus * 0 / 0 }";
    assert!(refusal(no_number).contains("a key that is not a number for job"), "{}", refusal(no_number));
}

#[test]
fn who_shares_a_gpu_may_be_a_closure() {
    let world = "cluster 2 nodes, 2 gpus, 12 cpus, 48 GB
job wide gpus=2 work=900
job left gpus=1 work=600
job right gpus=1 work=600
job second gpus=2 work=600
";
    let rule = "together: view.jobs.gpus";
    let (by_size, by_length) = (
        "0: wide 0[0-1] 6c 24g, left 1[0] 6c 24g, right 1[1] 6c 24g, second 0[0-1] 6c 24g",
        "0: wide 0[0-1] 12c 48g, left 1[0] 3c 12g, right 1[1] 3c 12g, second 1[0-1] 6c 24g",
    );
    for (closure, expected) in [
        ("|job| job.gpus", by_size),
        ("|job| if job.gpus == 2 { \"gang\" } else { \"single\" }", by_size),
        ("|job, other| job.gpus == other.gpus", by_size),
        ("|job| job.duration", by_length),
        // No key says this: the first job suits nobody, all others suit each other.
        ("|job, other| job.name != \"wide\"", by_length),
    ] {
        let text = edited(GANDIVA, rule, &format!("together: {closure}"));
        assert_eq!(decides(&text, world)[0], expected, "{closure}");
    }
}

#[test]
fn wrong_closures_are_named() {
    for (closure, expected) in [
        ("|job| [job.gpus]", "the closure |job| must return a number or a text, got an Array for job"),
        ("|job| 0.0 / 0.0", "must return a number or a text, got NaN for job"),
        ("|job| if job.id == 0 { 1 } else { job.name }", "numbers for some jobs and texts for others"),
        ("|job, other| 1", "the closure |job, other| must return true or false, got a whole number for jobs"),
        ("|job, other| job.gpu == 1", "no field `gpu`"),
        ("|| 1", "the closure takes `|job|` or `|job, other|`, not 0 arguments"),
    ] {
        let said = refusal(&format!("#{{ together: {closure} }}"));
        assert!(said.contains(expected), "{closure}: {said}");
    }
}

#[test]
fn what_a_closure_is_asked_counts_against_the_limits() {
    let text = "fn allocate(view) { view.time_slice(view.queue, #{ together: |job, other| job.gpus == other.gpus }) }";
    let instant = snapshot(Size { n_nodes: 4, n_old: 300, n_new: 50 });
    let used = |text: &str| {
        let mut policy = policy(text, Limits::default());
        policy.decide(&instant).expect("a plan");
        policy.operations()
    };
    let of_keys = used(&text.replace("|job, other| job.gpus == other.gpus", "view.jobs.gpus"));
    assert!(used(text) > 4 * of_keys, "{} against {of_keys} operations", used(text));
    let error = policy(text, Limits { operations: 2 * of_keys, ..Limits::default() }).decide(&instant);
    assert!(error.expect_err("pairs are asked about").message.contains("operations"));
}

#[test]
fn its_work_counts_against_the_limits() {
    let text = "fn allocate(view) { view.time_slice(view.queue, #{ together: view.jobs.gpus }) }";
    let instant = snapshot(Size { n_nodes: 64, n_old: 600, n_new: 100 });
    let limits = Limits { operations: 10_000, ..Limits::default() };
    let error = policy(text, limits).decide(&instant).expect_err("700 jobs on 512 GPUs are more than that");
    assert!(error.message.contains("operations"), "{}", error.message);
    assert!(policy(text, Limits::default()).decide(&instant).is_ok());
}
