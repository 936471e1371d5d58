//! Every file of the public traces is read or refused for a reason that says what it is, and what is read has the numbers that the
//! notes next to the files give.

use std::path::{Path, PathBuf};

use rota_core::cluster::Cluster;
use rota_core::ids::TenantId;
use rota_core::job::{Deadline, JobSpec};
use rota_core::workload::Workload;
use rota_test_support::need;
use rota_traces::format::{self, ColumnMap, Imported, Setting};
use rota_traces::generate::{PhillyRules, WorkloadOptions};
use rota_traces::profile::{self, ProfileSet};
use rota_traces::rows::BadRows;
use rota_traces::source::Source;
use rota_traces::stats::stats;
use rota_traces::{cluster, profile::import};

/// A cluster large enough for every job, of one GPU type.
fn vast(gpu_type: &str) -> Cluster {
    let text = format!(
        "format = 1\nname = \"vast\"\n[[nodes]]\ncount = 256\ngpu_type = \"{gpu_type}\"\ngpus = 8\ncpus = 96\nmem = \"1TB\"\n"
    );
    cluster::read(&Source::new("vast.toml", text)).expect("a cluster")
}

/// Rows of a file that were read, jobs or not.
fn n_rows(read: &Imported) -> u64 {
    read.workload.jobs.len() as u64 + read.filtered.n_rows() + read.dropped.len() as u64
}

fn read(path: &Path, cluster: &Cluster, profiles: &ProfileSet) -> Result<Imported, String> {
    let everything = PhillyRules { shortest_s: 0.0, longest_s: f64::INFINITY, hours: None };
    let options = WorkloadOptions { philly: everything, ..WorkloadOptions::default() };
    let source = Source::open_trace(path).map_err(|e| e.to_string())?;
    let setting = Setting { options, ..Setting::new(cluster, profiles) };
    format::read(&source, None, &setting).map_err(|e| e.to_string())
}

/// What differs when a trace is written in Rota's own format and read again: everything that a run can depend on is compared.
fn lost_in_rotas_own_format(read: &Imported, cluster: &Cluster, profiles: &ProfileSet) -> Option<String> {
    let text = format::write_rota(&read.workload, cluster);
    let again = match format::read(&Source::new("again.csv", text), None, &Setting::new(cluster, profiles)) {
        Ok(again) => again.workload,
        Err(error) => return Some(error.to_string()),
    };
    let before = &read.workload;
    if (before.jobs.len(), &before.datasets) != (again.jobs.len(), &again.datasets) {
        return Some(format!("{} jobs became {}", before.jobs.len(), again.jobs.len()));
    }
    let names = |workload: &Workload, tenant: TenantId| workload.tenants[tenant.index()].clone();
    let mut pairs = before.jobs.iter().zip(&before.truths).zip(again.jobs.iter().zip(&again.truths));
    let differing = pairs.find(|((job, truth), (job_again, truth_again))| {
        let same_tenant = names(before, job.tenant) == names(&again, job_again.tenant);
        let as_before = JobSpec { tenant: job.tenant, ..JobSpec::clone(job_again) };
        !same_tenant || ***job != as_before || truth != truth_again
    });
    differing.map(|(was, is)| format!("{was:?} became {is:?}"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if !["README.md", "LICENSE"].iter().any(|name| path.ends_with(name)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// What is to become of a file: rows that are read, or words of the refusal.
fn expected(name: &str) -> Result<Option<u64>, &'static str> {
    let beginnings: [(&str, Result<Option<u64>, &'static str>); 31] = [
        ("acme/cluster_summary", Err("a summary of clusters")),
        ("alibaba-gpu-v2023-openb/openb_node", Err("a list of nodes")),
        ("alibaba-gpu-v2023-openb/openb_pod_list_multigpu50", Err("a list of pods without times")),
        ("alibaba-gpu-v2023-openb/openb_pod", Ok(Some(8_152))),
        ("alibaba-pai-v2020/philly_runtime", Err("run times without arrivals")),
        ("alibaba-pai-v2020/pai_task_table", Err("expected at least one job below the headings")),
        ("alibaba-pai-v2020/pai_", Err("expected a trace: this seems to be")),
        ("alibaba-pai-v2020/job_", Err("measured mini-batch times")),
        ("elasticflow-itp/elasticflow/195job", Ok(Some(195))),
        ("elasticflow-itp/", Ok(None)),
        ("gavel-throughputs/", Err("rota profile import")),
        ("shockwave/tacc_throughputs", Err("rota profile import")),
        ("helios-artifact/helios_cluster_summary", Err("a summary of clusters")),
        ("helios-artifact/philly_vc", Err("a list of virtual clusters")),
        ("philly-chronus/", Ok(Some(30_940))),
        ("philly-elasticflow/elasticVpollux_e", Err("expected a model of")),
        ("philly-elasticflow/philly_103959", Ok(Some(876))),
        ("philly-elasticflow/", Ok(None)),
        ("philly-gavel-msr/cluster_specs", Err("expected a list of jobs")),
        ("philly-gavel-msr/", Ok(None)),
        ("philly-pollux/", Ok(Some(82_247))),
        ("shockwave/120_", Ok(Some(120))),
        ("shockwave/220_", Ok(Some(220))),
        ("shockwave/460_", Ok(Some(460))),
        ("shockwave/900_", Ok(Some(900))),
        ("sia/profiles/", Err("a profile of step times")),
        ("sia/workloads/", Ok(None)),
        ("tiresias/60_job", Ok(Some(60))),
        ("tiresias/tf_job", Err("a name that no other job has")),
        ("tiresias/yarn-gput", Err("run times without arrivals")),
        ("tiresias/", Err("a cluster: give it to --cluster")),
    ];
    let found = beginnings.into_iter().find(|(beginning, _)| name.starts_with(beginning));
    found.unwrap_or_else(|| panic!("{name} is new: what is to become of it?")).1
}

#[test]
fn every_file_is_read_whole_or_refused_for_a_stated_reason() {
    let Some(folder) = need::shared_path("traces") else { return };
    let throughputs =
        Source::open(&folder.join("gavel-throughputs/simulation_throughputs.json")).expect("readable");
    let gavel = import::import(import::Origin::Gavel, &[throughputs], &import::ImportOptions::default())
        .expect("sound")
        .set;
    let (synergy, elasticflow) =
        (profile::load("synergy").expect("built in"), profile::load("elasticflow-a100").expect("built in"));
    let pollux = profile::load("pollux-t4").expect("built in");
    let (v100, a100, t4, gavels) = (vast("V100"), vast("A100"), vast("T4"), vast("v100"));
    let (mut n_files, mut wrong) = (0, Vec::new());
    for path in files(&folder) {
        let name = path.strip_prefix(&folder).expect("below it").display().to_string();
        let (cluster, profiles) = match name.split('/').next() {
            Some("elasticflow-itp" | "philly-elasticflow") => (&a100, &elasticflow),
            Some("philly-gavel-msr") => (&gavels, &gavel),
            Some("sia") => (&t4, &pollux),
            _ => (&v100, &synergy),
        };
        match (read(&path, cluster, profiles), expected(&name)) {
            (Ok(read), Ok(n)) => {
                let lines = std::fs::read_to_string(&path).map_or(0, |text| text.lines().count() as u64);
                let has_heading = name.ends_with(".csv");
                let n = n.unwrap_or(lines - u64::from(has_heading));
                if (n_rows(&read), read.workload.check()) != (n, Ok(())) {
                    wrong.push(format!("{name}: {} rows of {n}, {:?}", n_rows(&read), read.workload.check()));
                }
                if let Some(lost) = lost_in_rotas_own_format(&read, cluster, profiles) {
                    wrong.push(format!("{name}, written as Rota's table and read again: {lost}"));
                }
            }
            (Err(said), Err(part)) if said.contains(part) => {}
            (Err(said), Err(part)) => wrong.push(format!("{name}: {said}, not: {part}")),
            (Ok(_), Err(part)) => wrong.push(format!("{name} was read, not refused: {part}")),
            (Err(said), Ok(_)) => wrong.push(format!("{name}: {said}")),
        }
        n_files += 1;
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(n_files > 200, "{n_files} files");
}

#[test]
fn gpu_hours_and_counts_are_those_of_the_notes() {
    let Some(folder) = need::shared_path("traces") else { return };
    let (cluster, synergy) = (vast("V100"), profile::load("synergy").expect("built in"));
    let philly = read(&folder.join("philly-pollux/philly.csv"), &cluster, &synergy).expect("sound");
    let numbers = stats(&philly.workload, &cluster);
    assert_eq!((numbers.n_jobs, numbers.gpu_hours.round()), (82_247, 978_078.0));
    let seconds = &numbers.duration_s;
    assert_eq!([seconds.median, seconds.mean, seconds.max].map(f64::round), [1_144.0, 13_136.0, 4_628_226.0]);
    let by_gpus: Vec<(u32, usize)> =
        numbers.by_gpus.iter().map(|(gpus, group)| (*gpus, group.n_jobs)).collect();
    assert_eq!(
        by_gpus,
        [
            (1, 76_627),
            (2, 1_818),
            (4, 1_870),
            (8, 1_643),
            (12, 7),
            (16, 199),
            (24, 7),
            (32, 67),
            (64, 6),
            (128, 3)
        ]
    );
    // As a table of one's own, because the format's rules leave out short and odd jobs.
    let map = "arrival_s=submission_time,gpus=num_gpu,duration_s=duration";
    let (mut n_jobs, mut gpu_hours) = (0, 0.0);
    for n in 1..=10 {
        let source = Source::open_trace(&folder.join(format!("elasticflow-itp/raw/cluster{n:02}.csv")))
            .expect("readable");
        let source = map.parse::<ColumnMap>().expect("a map").apply(source);
        let setting = Setting { bad_rows: BadRows::Refuse, ..Setting::new(&cluster, &synergy) };
        let read = format::read(&source, None, &setting).expect("sound");
        let numbers = stats(&read.workload, &cluster);
        n_jobs += numbers.n_jobs;
        gpu_hours += numbers.gpu_hours;
    }
    assert_eq!((n_jobs, (gpu_hours * 10.0).round() / 10.0), (69_351, 1_632_719.7));
    // Jobs without GPUs are left out, 124 strict ones and 60 without a deadline in the second file.
    for (file, strict, soft, none) in
        [("SLO", 30_735, 0, 0), ("MIX1", 21_724 - 124, 0, 9_216 - 60), ("MIX2", 9_211, 18_410, 3_125)]
    {
        let path = folder.join(format!("philly-chronus/trace_job_Philly_{file}.csv"));
        let jobs = read(&path, &cluster, &synergy).expect("sound").workload.jobs;
        let count = |is: fn(&Deadline) -> bool| jobs.iter().filter(|job| is(&job.deadline)).count();
        let counts = [
            count(|d| matches!(d, Deadline::Strict(_))),
            count(|d| matches!(d, Deadline::Soft(_))),
            count(|d| matches!(d, Deadline::None)),
        ];
        assert_eq!(counts, [strict, soft, none], "{file}");
    }
}
