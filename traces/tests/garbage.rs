//! No input makes a reader panic, and what it accepts the engine can take.

use std::sync::Arc;

use proptest::prelude::*;
use rota_core::job::JobSpec;
use rota_traces::format::{self, ColumnMap, Format, Setting};
use rota_traces::generate::{self, WorkloadOptions};
use rota_traces::rows::BadRows;
use rota_traces::source::Source;
use rota_traces::{cluster, profile};

/// How many of the texts below are traces; then come three clusters, a profile and a workload.
const N_TRACES: usize = 16;

/// A sound text of every format, to be spoilt.
const SOUND: [(&str, &str); 21] = [
    (
        "rota.csv",
        "job_id,arrival_s,gpus,iterations,model,deadline_s,gpu_levels,dataset,restart_s\na,0,1,10,gnmt,5:1|6:2,1-2,d:1GB@0,3\nb,1,2,20,,9,,d,\n",
    ),
    ("replay.trace", "0,alexnet,8.0,23349,1\n1,gnmt,126.0,26435,2\n"),
    ("pollux.csv", "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"),
    (
        "log.json",
        "[{\"vc\": \"v\", \"jobid\": \"j\", \"submitted_time\": \"2017-08-01 00:01:57\", \"attempts\": [{\"start_time\": \"2017-08-01 00:03:11\", \"end_time\": \"2017-08-02 00:45:54\", \"detail\": [{\"ip\": \"m0\", \"gpus\": [\"gpu0\"]}]}]}]",
    ),
    (
        "ef.csv",
        "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration,best_effort\n0,0,7246,resnet50,5896,256,1,3930,0\n",
    ),
    ("itp.csv", "job_id,submission_time,duration,num_gpu\nx,2266647,604,16\n"),
    (
        "chronus.csv",
        "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type\n0,u,1,10,5530,vgg16,96,5,159-189,10-8,0,soft\n",
    ),
    (
        "tiresias.csv",
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,1,0,606,vgg19,164,30\n1,8,30,133,vgg11,147,23\n",
    ),
    (
        "shockwave.trace",
        "LM (batch size 10)\tpython3 main.py\tlm\t--steps\t1\t134583\t1\tgns\t1\t-1.000000\t1418\t0\n",
    ),
    (
        "helios.csv",
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n7,u1,vcA,8,64,1,COMPLETED,2020-04-01 00:04:37,2020-04-01 00:04:40,2020-04-01 01:04:40,3600,3\n",
    ),
    (
        "acme.csv",
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\na,u5,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,,,117,32,936.0\n",
    ),
    ("pai.csv", "job_id,num_inst,submit_time,duration,num_gpu,num_cpu,user\nj1,4,5,100,0.5,6,u\n"),
    (
        "openb.csv",
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\na,12000,16384,1,460,V100|T4,LS,Running,10,110,30\n",
    ),
    ("swf.txt", "; Version: 2.2\n1 0 3 100 4 -1 -1 4 200 -1 1 3 1 1 1 1 -1 -1\n"),
    (
        "sacct.txt",
        "JobID|User|Account|State|Submit|Start|End|AllocTRES\n17|ada|vision|COMPLETED|2026-01-01T00:01:40|2026-01-01T00:02:00|2026-01-01T01:02:00|cpu=8,gres/gpu=4\n",
    ),
    (
        "sacct.json",
        "{\"jobs\": [{\"job_id\": 17, \"user\": \"ada\", \"state\": {\"current\": [\"COMPLETED\"]}, \"time\": {\"submission\": 100, \"elapsed\": 3600}, \"tres\": {\"allocated\": [{\"type\": \"gres\", \"name\": \"gpu\", \"count\": 4}]}}]}",
    ),
    (
        "c.toml",
        "format = 1\n[[nodes]]\ncount = 4\nracks = 2\ngpu_type = \"A100\"\ngpus = 8\ncpus = 96\nmem = \"1TB\"\n",
    ),
    ("c.ini", "[CLUSTER]\nracks = 2\nservers_per_rack = 16\n"),
    ("c.csv", "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,16,8,64,256"),
    (
        "p.toml",
        "format = 1\n[grid]\ncpus = [1, 4]\nmem = [\"10GB\"]\nshare = { cpus = 4, mem = \"10GB\" }\n[[profile]]\nname = \"m\"\niteration_s = 0.5\nspeed = [[1], [2]]\n",
    ),
    ("w.toml", "format = 1\njobs = 5\njobs_per_hour = [1.0, 2.0]\nsplit = { vision = 100.0 }\n"),
];

/// Words that have broken readers before, and that random characters seldom hit.
const NASTY: [&str; 24] = [
    "",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e-320",
    "-1",
    "0",
    "4294967295",
    "18446744073709551616",
    "\"",
    ",",
    "\n",
    "\r\n",
    "-",
    ":",
    "|",
    "@",
    "=",
    "[",
    "]",
    "{}",
    "\u{feff}",
    "日本",
];

fn read_everything(name: &str, text: &str) {
    let source = Source::new(name, text);
    let (cluster, synergy) =
        (cluster::load("small").expect("built in"), profile::load("synergy").expect("built in"));
    let elastic = profile::load("elasticflow-a100").expect("built in").on_any_gpu_type();
    for bad_rows in [BadRows::Refuse, BadRows::Skip] {
        for profiles in [&synergy, &elastic] {
            let setting = Setting { bad_rows, ..Setting::new(&cluster, profiles) };
            for entry in Format::ALL {
                let format = entry.format;
                if let Ok(read) = format::read(&source, Some(format), &setting) {
                    assert_eq!(read.workload.check(), Ok(()), "{} took {text:?}", format.name());
                }
            }
        }
    }
    drop(format::detect(&source));
    if let Ok(mapped) = "job_id=id,arrival_s=submit_time:min,gpus=num_gpu".parse::<ColumnMap>() {
        let mapped = mapped.apply(source.clone());
        let setting = Setting { bad_rows: BadRows::Skip, ..Setting::new(&cluster, &synergy) };
        drop(format::read(&mapped, None, &setting));
    }
    drop(cluster::toml::read(&source));
    drop(cluster::ini::read(&source));
    drop(cluster::spec::read(&source, "A100"));
    drop(generate::read(&source));
    if let Ok(profiles) = profile::read(&source) {
        let options = WorkloadOptions { jobs: Some(3), ..WorkloadOptions::default() };
        if let Ok(workload) = generate::generate(&cluster, &profiles, &options) {
            assert_eq!(workload.check(), Ok(()), "drawn from {text:?}");
        }
    }
}

#[test]
fn the_sound_texts_are_sound() {
    let (cluster, synergy) =
        (cluster::load("small").expect("built in"), profile::load("synergy").expect("built in"));
    let elastic = profile::load("elasticflow-a100").expect("built in").on_any_gpu_type();
    for (name, text) in &SOUND[..N_TRACES] {
        let profiles = if *name == "ef.csv" { &elastic } else { &synergy };
        format::read(&Source::new(*name, *text), None, &Setting::new(&cluster, profiles)).expect(name);
    }
    for (name, text) in &SOUND[N_TRACES..N_TRACES + 3] {
        cluster::read(&Source::new(*name, *text)).expect(name);
    }
    profile::read(&Source::new(SOUND[N_TRACES + 3].0, SOUND[N_TRACES + 3].1)).expect("a profile");
    generate::read(&Source::new(SOUND[N_TRACES + 4].0, SOUND[N_TRACES + 4].1)).expect("a workload");
}

/// All but the names: some formats have none, and the line is the name.
fn facts(jobs: &[Arc<JobSpec>]) -> Vec<JobSpec> {
    jobs.iter().map(|job| JobSpec { name: "".into(), ..JobSpec::clone(job) }).collect()
}

/// A byte-order mark, any line ends, a last line without one, empty lines: the same jobs, and a bad row is found where it stands.
#[test]
fn line_ends_marks_and_empty_lines_change_nothing_and_lines_are_counted_right() {
    let (cluster, synergy) =
        (cluster::load("small").expect("built in"), profile::load("synergy").expect("built in"));
    let elastic = profile::load("elasticflow-a100").expect("built in").on_any_gpu_type();
    for (name, sound) in SOUND[..N_TRACES].iter().filter(|(name, _)| !name.ends_with(".json")) {
        let setting = Setting::new(&cluster, if *name == "ef.csv" { &elastic } else { &synergy });
        let read = |text: &str| {
            let source = Source::from_bytes(*name, text.as_bytes().to_vec()).expect("text");
            format::read(&source, None, &setting)
        };
        let plain = read(sound).expect(name).workload;
        for end in ["\n", "\r\n", "\r"] {
            let lines: Vec<&str> = sound.trim_end().lines().collect();
            let variant = format!("\u{feff}{}", lines.join(&format!("{end}{end}")));
            let read_again = read(&variant).expect(name).workload;
            assert_eq!(
                (read_again.truths, facts(&read_again.jobs)),
                (plain.truths.clone(), facts(&plain.jobs)),
                "{name} {end:?}"
            );
            // After n lines and as many empty ones comes one that makes no sense.
            let spoilt = format!("{variant}{end}{end}what is this{end}");
            let error = read(&spoilt).expect_err(name);
            assert_eq!(error.location.line, 2 * lines.len() as u64 + 1, "{name} {end:?}: {error}");
        }
    }
}

#[test]
fn cells_in_quotes_may_hold_commas_and_line_ends() {
    let (cluster, synergy) =
        (cluster::load("small").expect("built in"), profile::load("synergy").expect("built in"));
    let text = "job_id,arrival_s,gpus,iterations,tenant\r\n\"a, b\",0,1,10,\"x\r\ny\"\r\nc,1,many,10,z\r\n";
    let source = Source::from_bytes("t.csv", text.into()).expect("text");
    let setting = Setting { bad_rows: BadRows::Skip, ..Setting::new(&cluster, &synergy) };
    let read = format::read(&source, None, &setting).expect("one row is sound");
    assert_eq!((&*read.workload.jobs[0].name, read.workload.tenants[0].as_str()), ("a, b", "x\ny"));
    assert_eq!((read.lines.of(read.workload.jobs[0].id), read.dropped[0].line), (Some(2), 4));
}

#[test]
fn a_quote_that_is_left_open_ends_the_reading_not_the_memory() {
    let (cluster, synergy) =
        (cluster::load("small").expect("built in"), profile::load("synergy").expect("built in"));
    let text = format!("job_id,arrival_s,gpus,iterations\n\"a,0,1,10\n{}", "b,0,1,10\n".repeat(2_000_000));
    let error = format::read(&Source::new("t.csv", text), None, &Setting::new(&cluster, &synergy))
        .expect_err("no end");
    assert!(error.to_string().contains("is a quote left open?"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>(), name in "[a-z]{0,3}(\\.(csv|json|toml|ini|txt|trace))?") {
        read_everything(&name, &text);
    }

    #[test]
    fn spoilt_texts_never_panic(
        which in 0..SOUND.len(),
        spoils in proptest::collection::vec((any::<prop::sample::Index>(), 0..8usize, 0..NASTY.len()), 1..4),
    ) {
        let (name, sound) = SOUND[which];
        let mut text: Vec<char> = sound.chars().collect();
        for (place, length, nasty) in spoils {
            let from = place.index(text.len() + 1);
            let to = (from + length).min(text.len());
            text.splice(from..to, NASTY[nasty].chars());
        }
        read_everything(name, &text.into_iter().collect::<String>());
    }

    #[test]
    fn whole_cells_may_be_anything(which in 0..N_TRACES, cell in any::<prop::sample::Index>(), nasty in 0..NASTY.len()) {
        let (name, sound) = SOUND[which];
        let mut cells: Vec<&str> = sound.split(',').collect();
        let at = cell.index(cells.len());
        cells[at] = NASTY[nasty];
        read_everything(name, &cells.join(","));
    }
}
