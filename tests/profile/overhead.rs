//! What changes of an allocation cost: ElasticFlow's traces are read, and an emulated job's costs come back as its profile
//! states them.

use rota_lab::profile::overhead::published::{CHANGES, FIGURE_12, of, seconds};
use rota_lab::profile::overhead::script::{changes, read};
use rota_traces::profile::load;

use super::commands::{rota, said};

/// In the shape of the original's traces, written for this test.
const INTERNODE: &str = "2\nW 25\nG 1 0 0 1 2 3\n\
    R 0 bert 128 0 8 1 0 127.0.0.1 22224 255 5000 1 0 1 2 3 4 5 6 7\n\
    R 1 bert 128 0 8 1 0 127.0.0.1 22224 255 5000 1 8 9 10 11 12 13 14 15\n\
    F\nT\nW 20\nK 0 0\nK 1 0\nW 5\n\
    R 0 bert 128 0 8 1 0 127.0.0.1 22225 255 5000 0 0 1 2 3 4 5 6 7\nF\nT\nW 20\nK 0 0\nW 5\n\
    R 1 bert 128 0 8 1 0 127.0.0.1 22226 255 5000 0 8 9 10 11 12 13 14 15\nF\nT\nW 20\nK 1 0\nS\n";

#[test]
fn elasticflows_traces_become_changes() {
    let stages = read("bert_internode_overhead.txt", INTERNODE).expect("a trace");
    assert_eq!(stages.iter().map(|stage| stage.gpus).collect::<Vec<_>>(), [16, 8, 8]);
    assert_eq!(changes(&stages), [(16, 8, false), (8, 8, true)]);
    for (text, expected) in [
        ("two\n", "t.txt:1: got \"two\", expected the number of workers"),
        ("1\nR 0 bert\n", "t.txt:2: got \"R 0 bert\", expected R worker model"),
        ("1\nW long\n", "t.txt:2: got \"W long\", expected W seconds"),
        ("1\nX\n", "expected one of the commands R, K, W, G, F, T, RE, S"),
    ] {
        let error = read("t.txt", text).expect_err(text).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn figure_12_is_known_by_model_and_change() {
    assert_eq!(FIGURE_12.len(), 6);
    let resnet = of("resnet50").expect("printed");
    assert_eq!(seconds(resnet, CHANGES[0]), Some(1.884));
    assert_eq!(seconds(resnet, (8, 8, true)), Some(0.887));
    assert_eq!(seconds(resnet, (4, 8, false)), None);
    assert_eq!(of("inception3").map(|published| published.model), Some("inceptionv3"));
    assert!(of("nobody").is_none());
}

#[test]
fn an_emulated_jobs_costs_come_back_into_its_profile() {
    let folder = tempfile::tempdir().expect("a folder");
    // Long against what starting a process takes on a busy machine.
    let profile = "format = 1\n[[profile]]\nname = \"resnet50\"\niteration_s = 0.05\nrestart = \"1.5s\"\ncheckpoint = \"1s\"\n";
    std::fs::write(folder.path().join("mine.toml"), profile).expect("written");
    let trace =
        "1\nR 0 resnet50 64 0 1 1 0 a 1 1 100 x\nT\nK 0 0\nR 0 resnet50 64 0 2 1 0 a 1 3 100 x\nT\nS\n";
    std::fs::write(folder.path().join("trace.txt"), trace).expect("written");
    let output = rota(
        folder.path(),
        &[
            "overhead",
            "--pretend",
            "--trace",
            "trace.txt",
            "--profiles",
            "mine.toml",
            "--model",
            "resnet50",
            "--write",
            "--repeats",
            "1",
            "--",
            "rota-agent",
            "emulate",
            "--profile",
            "mine.toml",
        ],
    );
    let (is_good, text) = said(&output);
    assert!(is_good && text.contains("1 → 2 GPUs") && text.contains("1.884"), "{text}");
    let set = load(folder.path().join("mine.toml").to_str().expect("a path")).expect("a profile");
    let resnet = set.get("resnet50").expect("there");
    let (restart, checkpoint) = (resnet.restart.as_secs_f64(), resnet.checkpoint.as_secs_f64());
    // A little more than stated, for processes take their time; never less.
    assert!((0.95..3.0).contains(&checkpoint), "{checkpoint}: {text}");
    assert!((1.45..4.0).contains(&restart), "{restart}: {text}");
    let change = &set.entry("resnet50").expect("there").measured.as_ref().expect("measured").changes[0];
    assert_eq!((change.from, change.to, change.moved), (1, 2, false));
}

#[test]
fn the_printed_figure_needs_no_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let (is_good, text) = said(&rota(folder.path(), &["overhead", "--published"]));
    assert!(is_good && text.contains("549.8") && text.contains("8 GPUs to another node"), "{text}");
    let (is_good, text) = said(&rota(folder.path(), &["overhead"]));
    assert!(!is_good && text.contains("nothing to run"), "{text}");
}
