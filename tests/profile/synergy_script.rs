//! A script that behaves as Synergy's do, unchanged: options `-b`, `--workers`, `--max-iterations`, `--job-name`, and a file
//! `PERF_<job>.txt` with the average time of a batch, the iteration and the epoch, written when it ends.

use rota_traces::profile::load;

use super::commands::{rota, said};

/// A batch of 64 takes 64 ms with one worker, half as much with two; it knows nothing of Rota.
const SCRIPT: &str = r#"
while [ $# -gt 0 ]; do
    case "$1" in
        -b | --batch) batch=$2; shift 2 ;;
        -j | --workers) workers=$2; shift 2 ;;
        --max-iterations) iterations=$2; shift 2 ;;
        --job-name) job=$2; shift 2 ;;
        --dali) shift ;;
        *) echo "unrecognized arguments: $1" >&2; exit 2 ;;
    esac
done
echo "Epoch: [0][$iterations] batch $batch"
milliseconds=$((batch / workers))
[ -n "$SAYS_NOTHING" ] || printf '0.%03d\n%s\n0\n' $milliseconds $iterations > "PERF_$job.txt"
"#;

#[test]
fn a_script_of_synergys_is_profiled_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("imagenet.sh"), SCRIPT).expect("written");
    // What an older run left must not be taken for this one's.
    let stale = folder.path().join("PERF_res18_gpu_2_batch_128_cpu_4.txt");
    std::fs::write(&stale, "9.0\n50\n0\n").expect("written");
    let sweep = ["run", "--synergy", "--name", "res18", "--out", "out", "--pretend", "--cpus", "1,2"];
    let scale = ["--gpus", "1,2", "--batch", "128", "--repeats", "2", "--no-warm-up-run"];
    let command = ["--", "sh", "imagenet.sh", "--dali", "-b", "512"];
    let (is_good, text) = said(&rota(folder.path(), &[&sweep[..], &scale, &command].concat()));
    assert!(is_good, "{text}");
    assert!(text.contains("its own `-b 512` is replaced by the profiler's"), "{text}");
    let set = load(folder.path().join("out/profile.toml").to_str().expect("a path")).expect("a profile");
    let entry = set.entry("res18").expect("there");
    let points = &entry.measured.as_ref().expect("measured").points;
    let time = |gpus, cpus| {
        let found = points.iter().find(|p| p.gpus == gpus && p.cpus == cpus);
        found.unwrap_or_else(|| panic!("{gpus} GPUs, {cpus} CPUs: {points:?}")).iteration_s
    };
    assert_eq!((time(1, 1.0), time(1, 2.0)), (0.128, 0.064), "the batch of one GPU is the whole");
    assert_eq!(time(2, 2.0), 0.032, "with two GPUs each has a half");
    let left = std::fs::read_dir(folder.path()).expect("a folder").flatten();
    let left: Vec<_> = left.filter(|e| e.file_name().to_string_lossy().starts_with("PERF_")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_script_that_leaves_no_file_and_a_batch_that_cannot_be_shared_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("imagenet.sh"), SCRIPT).expect("written");
    let run = |words: &[&str]| {
        let sweep = ["run", "--synergy", "--name", "res18", "--pretend", "--cpus", "1", "--repeats", "1"];
        let command = ["--", "sh", "imagenet.sh", "-b", "64"];
        said(&rota(folder.path(), &[&sweep[..], words, &command].concat()))
    };
    let (is_good, text) = run(&["--env", "SAYS_NOTHING=1"]);
    assert!(!is_good && text.contains("PERF_res18_gpu_1_cpu_1.txt: does it accept --job-name?"), "{text}");
    let (is_good, text) = run(&["--gpus", "3", "--batch", "64"]);
    assert!(!is_good && text.contains("divisible by the number of GPUs, 3"), "{text}");
}
