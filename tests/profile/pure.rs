//! The pieces of the profiler that need no process: samples, patterns, invocations, the model of memory, files of runs.

use std::path::Path;

use rota_lab::profile::cache_model::CacheModel;
use rota_lab::profile::findings::{Findings, FindingsFile, Run};
use rota_lab::profile::fit::Fit;
use rota_lab::profile::grid::{Grid, Point};
use rota_lab::profile::invocation::{Invocation, OptionNames};
use rota_lab::profile::pattern::{Pattern, Reading};
use rota_lab::profile::rates::{Amounts, Rates, measure};
use rota_lab::profile::samples::{Estimate, iteration_times};
use rota_lab::profile::sweep::{MemoryAxis, Sweep};

const POINT: Point = Point { gpus: 2, batch: 64, cpu_micro: 3_500_000, mem_bytes: 0 };

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn iteration_times_leave_the_warm_up_out() {
    // Ten slow iterations, then a tenth of a second each.
    let slow = (0..=10).map(|n| (f64::from(n), f64::from(n)));
    let fast = (1..=100).map(|n| (10.0 + 0.1 * f64::from(n), 10.0 + f64::from(n)));
    let reports: Vec<(f64, f64)> = slow.chain(fast).collect();
    let times = iteration_times(&reports, 10.0);
    assert!((2..=25).contains(&times.len()), "{} stretches", times.len());
    assert!(times.iter().all(|seconds| (seconds - 0.1).abs() < 1e-6), "{times:?}");
    assert!(iteration_times(&[], 1.0).is_empty());
    assert!(iteration_times(&[(1.0, 5.0), (2.0, 5.0)], 0.0).is_empty(), "nothing was done");
    assert_eq!(iteration_times(&[(1.0, 5.0), (3.0, 6.0)], 0.0), [2.0]);
}

#[test]
fn an_interval_is_students() {
    let estimate = Estimate::of(&[1.0, 2.0, 3.0]).expect("samples");
    assert_eq!(estimate.iteration_s, 2.0);
    assert!((estimate.within_s - 4.303 / 3.0_f64.sqrt()).abs() < 1e-3, "{}", estimate.within_s);
    assert!(Estimate::of(&[1.0]).is_some_and(|e| e.within_s.is_infinite()), "one sample is not sure");
    assert_eq!(Estimate::of(&[]), None);
}

#[test]
fn patterns_read_counts_times_and_rates() {
    let read = |pattern: &str, line: &str| pattern.parse::<Pattern>().expect("a pattern").read(line);
    assert_eq!(read(r"step (?<iteration>\d+)/", "step 12/50 loss 3"), Some(Reading::Iterations(12.0)));
    assert_eq!(read(r"(?<seconds>[\d.]+) s/it", "0.25 s/it"), Some(Reading::Seconds(0.25)));
    assert_eq!(read(r"(?<rate>[\d.]+) it/s", "4 it/s"), Some(Reading::Seconds(0.25)));
    assert_eq!(read(r"(?<rate>[\d.]+) it/s", "0 it/s"), None);
    let error = "step (\\d+)".parse::<Pattern>().expect_err("no name").to_string();
    assert!(error.contains("name a group `iteration`"), "{error}");
    assert!("(".parse::<Pattern>().is_err());
}

#[test]
fn the_profilers_options_win_and_that_is_said() {
    let command = words("python train.py -b 256 --workers=9 --max-iterations 7 --lr 0.1 --data /old");
    let with = |data: Option<&str>, sets_batch| {
        let data = data.map(str::to_owned);
        Invocation::new(&command, OptionNames::usual(), 50, data, Some("mine".to_owned()), sets_batch)
    };
    let all = with(Some("/new"), true);
    let expected = "python train.py --lr 0.1 --batch-size 64 --workers 3 --max-iterations 50 --data /new";
    assert_eq!(all.at(&POINT), words(expected));
    assert_eq!(all.overruled(), ["-b 256", "--workers=9", "--max-iterations 7", "--data /old"]);
    let some = with(None, false);
    assert_eq!(
        some.overruled(),
        ["--workers=9", "--max-iterations 7"],
        "what the profiler does not set stays"
    );
}

#[test]
fn places_in_the_command_are_filled_and_nothing_is_added() {
    let command = words("train --workers {workers} --n={iterations} {data}/x --batch-size {batch}");
    let data = Some("/d".to_owned());
    let invocation = Invocation::new(&command, OptionNames::usual(), 50, data, None, true);
    assert_eq!(invocation.at(&POINT), words("train --workers 3 --n=50 /d/x --batch-size 64"));
    assert!(invocation.overruled().is_empty());
    let launcher = words("python -m launch --nproc_per_node={gpus} train.py");
    let launched = Invocation::new(&launcher, OptionNames::none(), 50, None, None, true);
    assert_eq!(launched.at(&POINT), words("python -m launch --nproc_per_node=2 train.py"));
    let bare = Invocation::new(&words("train"), OptionNames::none(), 50, None, None, true);
    assert_eq!(bare.at(&POINT), ["train"]);
}

#[test]
fn synergys_scripts_are_told_the_batch_of_one_gpu_and_a_name_for_each_point() {
    let command = words("python pytorch-imagenet.py --dali --batch 512 --job-name old");
    let invocation =
        Invocation::new(&command, OptionNames::synergy(), 50, None, Some("res18".to_owned()), true);
    let expected = "python pytorch-imagenet.py --dali -b 32 --workers 3 --max-iterations 50 \
                    --job-name res18_gpu_2_batch_64_cpu_7";
    assert_eq!(invocation.at(&POINT), words(expected), "64 over two GPUs");
    assert_eq!(invocation.overruled(), ["--batch 512", "--job-name old"]);
}

/// Synergy's model by hand: 100 GB of 1000 samples, 100 MB each; storage 100 MB/s, memory 10 GB/s.
#[test]
fn memory_caches_its_part_of_the_data() {
    let model =
        CacheModel { dataset_bytes: 100_000_000_000, samples: 1000, storage_bps: 1e8, memory_bps: 1e10 };
    assert!((model.fetch_s(10, 1) - 10.0).abs() < 1e-6, "all from storage: a gigabyte in 10 s");
    assert!((model.fetch_s(10, 50_000_000_000) - (5.0 + 0.05)).abs() < 1e-6);
    assert!((model.fetch_s(10, 0) - 0.1).abs() < 1e-9, "no limit caches everything");
    let need = model.storage_need_bps(10, 50_000_000_000, 10.05);
    assert!((need - 5e7).abs() < 1.0, "half a gigabyte in ten seconds: {need}");
    assert_eq!(model.storage_need_bps(10, 1, 0.001), 1e8, "never more than the storage has");
    assert_eq!(model.storage_need_bps(10, 100_000_000_000, 1.0), 0.0);
}

/// The same data set under a job of a second an iteration, of which only that second was measured.
#[test]
fn computed_memory_becomes_a_curve_a_demand_and_a_need_for_storage() {
    let tenths: Vec<u64> = (1..=10).map(|tenth| tenth * 10_000_000_000).collect();
    let sweep = Sweep {
        grid: Grid::new(&[1], &[10], &[1_000_000], &tenths).expect("levels"),
        memory: MemoryAxis::NotMeasured,
        flat: 0.03,
        within: 0.05,
        most_runs_of_a_point: 1,
        warms_up: false,
    };
    let mut findings = Findings::default();
    while let Some(next) = sweep.next(&findings) {
        let iteration_s = vec![1.0, 1.0];
        findings.add(Run { point: next.point, iteration_s, wall_s: 1.0, failure: None, is_warm_up: false });
    }
    assert_eq!(findings.runs().len(), 1, "memory is not run");
    let model =
        CacheModel { dataset_bytes: 100_000_000_000, samples: 1000, storage_bps: 1e8, memory_bps: 1e10 };
    let fit = Fit::new(&sweep, &findings).expect("measured").with_cache(&model);
    let rate = |gb: u64| fit.rate(&Point { mem_bytes: gb * 1_000_000_000, ..sweep.grid.base() });
    assert!((rate(50) - 1.0 / 5.05).abs() < 1e-9, "half of it from storage: {}", rate(50));
    assert!((rate(90) - 1.0 / 1.09).abs() < 1e-9, "{}", rate(90));
    assert_eq!(rate(100), 1.0, "as measured");
    assert_eq!(fit.demand().mem_bytes, 100_000_000_000);
    let profile = fit.profile("m", "").expect("a profile");
    assert_eq!(
        profile.storage_need.first(),
        Some(&(10_000_000_000, 100_000_000)),
        "all that the storage has"
    );
    assert_eq!(profile.storage_need.last(), Some(&(100_000_000_000, 0)));
}

#[test]
fn a_broken_off_sweep_goes_on_and_foreign_runs_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("runs.jsonl");
    let run =
        Run { point: POINT, iteration_s: vec![0.5, 0.6], wall_s: 3.0, failure: None, is_warm_up: false };
    let (file, findings) = FindingsFile::open(&path, "python train.py").expect("begun");
    assert!(findings.runs().is_empty());
    file.add(&run).expect("written");
    // A machine that went down in the middle of a line.
    let mut text = std::fs::read_to_string(&path).expect("read");
    text.push_str("{\"point\":");
    std::fs::write(&path, text).expect("written");
    let (file, findings) = FindingsFile::open(&path, "python train.py").expect("goes on");
    assert_eq!(findings.runs(), std::slice::from_ref(&run));
    file.add(&run).expect("written");
    assert_eq!(FindingsFile::open(&path, "python train.py").expect("goes on").1.n_runs(&POINT), 2);
    let error = FindingsFile::open(&path, "another").expect_err("of something else").to_string();
    assert!(
        error.contains("holds runs of something else") && error.contains("there: python train.py"),
        "{error}"
    );
    let text = std::fs::read_to_string(&path).expect("read") + "{\"no\": 1}\n";
    std::fs::write(&path, text).expect("written");
    let error = FindingsFile::open(&path, "python train.py").expect_err("no run").to_string();
    assert!(error.contains("runs.jsonl:4: "), "{error}");
}

#[test]
fn rates_are_measured_and_remembered() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = Amounts { file_bytes: 4 << 20, block_bytes: 4 << 20, attempts: 1 };
    let rates = measure(folder.path(), 2, small).expect("measured");
    assert!(rates.storage_bps > 1e5, "{rates:?}");
    assert_eq!(rates.memory_bps.keys().copied().collect::<Vec<_>>(), [1, 2]);
    assert!(rates.memory_with(1.5) == rates.memory_bps[&1]);
    let left = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 0, "nothing is left behind");
    let cache = folder.path().join("cache/rates.json");
    rates.remember(&cache).expect("written");
    assert_eq!(Rates::remembered(&cache, folder.path()), Some(rates));
    assert_eq!(Rates::remembered(&cache, Path::new("/")), None);
    let error = measure(Path::new("/no/such/folder"), 1, small).expect_err("no folder").to_string();
    assert!(error.contains("/no/such/folder"), "{error}");
}
