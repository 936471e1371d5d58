use super::*;
use crate::results::HostShare;
use crate::results::samples::{results, run};
use rota_core::resources::Host;

fn file(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn jobs_are_written_with_exact_times_and_empty_gaps() {
    let dir = tempfile::tempdir().expect("a folder");
    results(vec![run("las+tune", 1, None)]).write(&dir.path().join("out")).expect("written");
    let expected = "\
run,policy,jobs_per_hour,seed,job_id,tenant,model,gpus,arrival_s,start_s,finish_s,jct_s,to_first_gpu_s,status,deadline_s,met,service_gpu_s,preemptions,reason,run_s,wait_s,alone_s,slowdown,finish_time_ratio,speed_of_best,cpus_per_gpu,cpus_wanted,mem_gb_per_gpu,mem_gb_wanted
1,las+tune,,1,job-0,vision,resnet18,1,1000,1000,1050,50,0,finished,,,50,1,,50,0,1,50,50,,,,,
1,las+tune,,1,job-1,\"speech, and more\",resnet18,2,1010,1030,1160.25,150.25,20,finished,1110,0,260.5,1,,130.25,20,1,150.25,104.878339,,,,,
1,las+tune,,1,job-2,vision,resnet18,3,1020,1030,1110,90,10,finished,,,240,1,,80,10,1,90,33.230769,,,,,
1,las+tune,,1,job-3,\"speech, and more\",resnet18,4,1030,,,,,declined,1130,0,0,0,\"3 GPUs short at 1130 s, \"\"see\"\" <timeline>\",0,,1,,,,,,,
1,las+tune,,1,job-4,vision,resnet18,1,1040,,,,,unfinished,,,0,0,,0,,1,,,,,,,
";
    assert_eq!(file(&dir.path().join("out"), "jobs.csv"), expected);
}

#[test]
fn the_timeline_and_the_rounds_are_written_as_tables() {
    let dir = tempfile::tempdir().expect("a folder");
    results(vec![run("las+tune", 1, None)]).write_files(dir.path()).expect("written");
    assert_eq!(
        file(dir.path(), "timeline.csv"),
        "run,policy,jobs_per_hour,seed,job_id,node,gpus,gpu_share,cpus,mem_gb,from_s,to_s\n1,las+tune,,1,job-1,node1,1 3,1,3.5,62.500000001,1030,1160.25\n"
    );
    let rounds = file(dir.path(), "rounds.csv");
    assert!(rounds.ends_with(
        "1030,2,6,8,6,9,3,9,6.5,12,200,120,180,1,0.00025,,,solver: optimal; gap 0\n1,las+tune,,1,1110,1,3,8,3,6,1.5,9,6.5,12,200,120,180,1,0.00025,,,\n"
    ));
}

#[test]
fn a_folder_of_the_first_format_is_read() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(
        dir.path().join("jobs-las.csv"),
        "job_id,tenant,model,gpus,arrival_s,start_s,finish_s,jct_s,queue_s,status,deadline_s,met,service_gpu_s,preemptions,reason\n\
         a,t,m,2,0,10,60,60,10,finished,,,100,1,\n",
    )
    .expect("written");
    let written = results(vec![run("las", 1, None), run("srtf", 1, None)]);
    let write = |name: &str, text: String| fs::write(dir.path().join(name), text).expect("written");
    write("config.toml", config::to_toml(&written).expect("TOML").replace("format = 2", "format = 1"));
    let summary = written.to_json().replace("\"format\": 2", "\"format\": 1");
    write("summary.json", summary.replace("avg_to_first_gpu_s", "avg_queue_s"));
    let apart = tempfile::tempdir().expect("a folder");
    results(vec![run("las", 1, None)]).write_files(apart.path()).expect("written");
    let without_run = |name: &str| -> String {
        let lines = file(apart.path(), name);
        lines.lines().map(|line| format!("{}\n", line.splitn(5, ',').last().unwrap_or_default())).collect()
    };
    write("jobs-srtf.csv", without_run("jobs.csv").replace("to_first_gpu_s", "queue_s"));
    write("rounds-las.csv", without_run("rounds.csv"));
    write("rounds-srtf.csv", without_run("rounds.csv"));
    write("timeline-srtf.csv", without_run("timeline.csv"));
    let back = Results::read(dir.path()).expect("read");
    let old = &back.runs[0].jobs[0];
    assert_eq!((&*old.job_id, old.gpus, old.ran, old.wait(), old.slowdown()), ("a", 2, None, None, None));
    assert_eq!(back.runs[0].summary.avg_to_first_gpu_s, Some(10.0));
    assert_eq!((&back.runs[1].jobs, back.runs[1].timeline.len()), (&written.runs[1].jobs, 1));
}

#[test]
fn what_is_written_is_read_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut windowed = run("./mine.rhai+tune", u64::MAX, Some(4.5));
    windowed.meta.window = "1..3".parse().ok();
    windowed.meta.exact_estimates = true;
    windowed.meta.parameters.insert("gap".into(), toml::Value::from(0.01));
    windowed.recount();
    let mut sensitive = run("las+tune", 1, None);
    sensitive.jobs[0].share = Some(HostShare {
        of_best_micro: 340_136,
        held: Host::from_units(3.0, 62.5, 0.0),
        wanted: Host::from_units(12.0, 62.5, 0.0),
    });
    let written = results(vec![sensitive, windowed]);
    written.write_files(dir.path()).expect("written");
    let back = Results::read(dir.path()).expect("read");
    assert_eq!(
        (&back.title, &back.settings, &back.inputs),
        (&written.title, &written.settings, &written.inputs)
    );
    for (a, b) in back.runs.iter().zip(&written.runs) {
        assert_eq!((&a.meta, &a.summary, &a.jobs, &a.samples), (&b.meta, &b.summary, &b.jobs, &b.samples));
        assert_eq!(a.timeline[0].slice.gpus, b.timeline[0].slice.gpus);
        assert_eq!(a.nodes[a.timeline[0].slice.node.index()], "node1");
    }
    assert_eq!(back.runs.len(), 2);
}

#[test]
fn runs_that_a_policy_does_not_tell_apart_get_longer_names() {
    let meta = |policy: &str, seed, load| RunMeta {
        policy: policy.into(),
        seed,
        jobs_per_hour: load,
        ..RunMeta::default()
    };
    let runs = [
        meta("las", 1, Some(2.0)),
        meta("las", 1, Some(4.0)),
        meta("srtf", 1, None),
        meta("../a b", 1, None),
        meta("", 1, None),
    ];
    let names = suffixes(&runs.iter().collect::<Vec<_>>());
    assert_eq!(names, ["-las-2-per-hour-seed1", "-las-4-per-hour-seed1", "-srtf", "-a_b", "-policy"]);
    assert_eq!(suffixes(&[&runs[0], &runs[0]]), ["-las-2-per-hour-seed1-1", "-las-2-per-hour-seed1-2"]);
    assert_eq!(
        (suffixes(&[&runs[0]]), suffixes_by_run(&[&runs[0]])),
        (vec!["-las".to_owned()], vec![String::new()])
    );
}

#[test]
fn a_result_folder_replaces_an_older_one_whole() {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("deep/out");
    results(vec![run("las", 1, None), run("srtf", 1, None)]).write(&out).expect("written");
    results(vec![run("las", 1, None)]).write(&out).expect("replaced");
    let mut names: Vec<String> = fs::read_dir(&out)
        .expect("a folder")
        .map(|e| e.expect("entry").file_name().to_string_lossy().into())
        .collect();
    names.sort();
    assert_eq!(names, ["config.toml", "jobs.csv", "rounds.csv", "summary.json", "timeline.csv"]);
    assert_eq!(fs::read_dir(dir.path().join("deep")).expect("a folder").count(), 1, "no leftovers");
}

#[test]
fn a_folder_with_other_things_in_it_is_not_overwritten() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("thesis.tex"), "years of work").expect("written");
    let error = results(vec![run("las", 1, None)]).write(dir.path()).expect_err("refused").to_string();
    assert!(error.contains("thesis.tex") && error.contains("not a Rota result folder"), "{error}");
    assert_eq!(file(dir.path(), "thesis.tex"), "years of work");

    let out = dir.path().join("out");
    results(vec![run("las", 1, None)]).write(&out).expect("written");
    fs::write(out.join("notes.md"), "mine").expect("written");
    let error = results(vec![run("las", 1, None)]).write(&out).expect_err("refused").to_string();
    assert!(error.contains("notes.md"), "{error}");
    assert!(matches!(Staging::new(&dir.path().join("thesis.tex")), Err(ResultsError::IsFile { .. })));
}

#[test]
fn an_abandoned_folder_leaves_no_trace() {
    let dir = tempfile::tempdir().expect("a folder");
    let staging = Staging::new(&dir.path().join("out")).expect("staged");
    results(vec![run("las", 1, None)]).write_files(staging.path()).expect("written");
    assert!(!dir.path().join("out").exists());
    drop(staging);
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 0);
}

#[test]
fn damaged_folders_are_refused_with_the_place_of_the_damage() {
    let dir = tempfile::tempdir().expect("a folder");
    let error = |what: &str| {
        let error = Results::read(dir.path()).expect_err(what).to_string();
        assert!(error.contains(what), "{error}");
    };
    error("no summary.json");
    results(vec![run("las", 1, None)]).write_files(dir.path()).expect("written");
    let jobs = file(dir.path(), "jobs.csv");
    fs::write(dir.path().join("jobs.csv"), jobs.replace("1160.25", "soon")).expect("written");
    error("line 3, column finish_s: `soon` is not a number");
    fs::write(dir.path().join("jobs.csv"), jobs.replace("declined", "bored")).expect("written");
    error("line 5, column status: `bored` is not a status of a job");
    fs::write(dir.path().join("jobs.csv"), jobs.replace("jct_s,", "").replace("gpus,", "")).expect("written");
    error("has no column `gpus`");
    fs::write(dir.path().join("jobs.csv"), jobs.replace("\n1,las", "\n3,las")).expect("written");
    error("line 2, column run: `3` is not a run of this folder");
    let summary = file(dir.path(), "summary.json");
    fs::write(dir.path().join("summary.json"), summary.replace("\"format\": 2", "\"format\": 7"))
        .expect("written");
    error("format 7, this program reads up to 2");
}
