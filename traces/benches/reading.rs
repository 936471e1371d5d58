//! How fast traces are read, and how much memory it takes: `cargo bench -p rota-traces --bench reading [-- FORMAT…]`.
//!
//! For each format a table of a million rows is written to a temporary folder and read as the commands read it, in a process of its
//! own: CPU time of the process, best of three, and its peak memory. Philly's published table is read where `ROTA_SHARED` has it.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use rota_test_support::need;
use rota_traces::format::{self, Setting};
use rota_traces::source::Source;
use rota_traces::{cluster, profile};

const ROWS: u64 = 1_000_000;
const REPEATS: usize = 3;

/// A name, the heading line and a row by its number.
type Made = (&'static str, &'static str, fn(u64, &mut String));

const MADE: [Made; 7] = [
    ("pollux", "timestamp,duration,num_gpus,gpu_time,cluster\n", |n, row| {
        let _ = write!(row, "{},{}.0,{},0,{:06x}", date(n), 60 + n % 90_000, 1 << (n % 4), n % 15);
    }),
    ("rota", "job_id,arrival_s,gpus,duration_s,model,tenant\n", |n, row| {
        let _ = write!(row, "job-{n},{},{},{},gnmt,team{}", n * 3, 1 << (n % 4), 60 + n % 90_000, n % 15);
    }),
    (
        "helios",
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n",
        |n, row| {
            let _ = write!(
                row,
                "{n},u{},vc{},{},8,1,COMPLETED,{},,,{},3",
                n % 300,
                n % 15,
                1 << (n % 4),
                date(n),
                60 + n % 90_000
            );
        },
    ),
    ("pai", "job_id,num_inst,submit_time,duration,num_gpu,num_cpu,user\n", |n, row| {
        let _ = write!(row, "j{n},{},{},{},0.5,6,u{}", 1 + n % 4, n * 3, 60 + n % 90_000, n % 300);
    }),
    ("tiresias", "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n", |n, row| {
        let _ = write!(row, "{n},{},{},606,vgg19,{},30", 1 << (n % 4), n * 3, 60 + n % 90_000);
    }),
    ("swf", "; Version: 2.2\n", |n, row| {
        let _ = write!(
            row,
            "{n} {} 3 {} {} -1 -1 4 200 -1 1 {} 1 1 1 1 -1 -1",
            n * 3,
            60 + n % 90_000,
            1 << (n % 4),
            n % 300
        );
    }),
    ("slurm", "JobID|User|Account|State|Submit|ElapsedRaw|AllocTRES\n", |n, row| {
        let _ = write!(
            row,
            "{n}|u{}|vc{}|COMPLETED|{}|{}|cpu=8,gres/gpu={}",
            n % 300,
            n % 15,
            date(n),
            60 + n % 90_000,
            1 << (n % 4)
        );
    }),
];

/// Every three seconds from a day in 2017 on.
fn date(n: u64) -> String {
    let s = n * 3;
    let (day, s) = (s / 86_400, s % 86_400);
    format!("2017-{:02}-{:02} {:02}:{:02}:{:02}", 9 + day / 30, 1 + day % 30, s / 3_600, s / 60 % 60, s % 60)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    if let [word, path] = arguments.as_slice()
        && word == "read"
    {
        return read(Path::new(path));
    }
    let folder = std::env::temp_dir().join(format!("rota-reading-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    println!("{:10} {:>9} {:>6} {:>8} {:>12} {:>9}", "format", "rows", "MB", "CPU s", "rows/s", "peak MB");
    if let Some(path) = need::shared_path("traces/philly-pollux/philly.csv") {
        measure("Philly", &path);
    }
    for (name, heading, row) in
        MADE.iter().filter(|made| arguments.is_empty() || arguments.iter().any(|a| a == made.0))
    {
        let path = folder.join(format!("{name}.{}", if *name == "swf" { "swf" } else { "csv" }));
        write_rows(&path, heading, *row);
        measure(name, &path);
        std::fs::remove_file(path).expect("removed");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

fn write_rows(path: &PathBuf, heading: &str, row: fn(u64, &mut String)) {
    let mut file = BufWriter::new(std::fs::File::create(path).expect("a file"));
    file.write_all(heading.as_bytes()).expect("written");
    let mut text = String::new();
    for n in 0..ROWS {
        text.clear();
        row(n, &mut text);
        text.push('\n');
        file.write_all(text.as_bytes()).expect("written");
    }
    file.flush().expect("written");
}

/// Reads in a process of its own, a few times.
fn measure(name: &str, path: &Path) {
    let mut best: Option<(f64, f64, f64)> = None;
    for _ in 0..REPEATS {
        let output =
            Command::new(std::env::current_exe().expect("this program")).arg("read").arg(path).output();
        let output = output.expect("started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [jobs, cpu_s, peak_mb] = numbers[..] else { panic!("{text}") };
        if best.is_none_or(|(_, least, _)| cpu_s < least) {
            best = Some((jobs, cpu_s, peak_mb));
        }
    }
    let Some((jobs, cpu_s, peak_mb)) = best else { return };
    let megabytes = std::fs::metadata(path).map_or(0.0, |file| file.len() as f64 / 1e6);
    println!("{name:10} {jobs:>9} {megabytes:>6.0} {cpu_s:>8.3} {:>12.0} {peak_mb:>9.0}", jobs / cpu_s);
}

/// Reads one trace; prints jobs, CPU seconds of this process and its peak memory.
fn read(path: &Path) {
    let (cluster, profiles) =
        (cluster::load("philly").expect("built in"), profile::load("synergy").expect("built in"));
    let began = cpu_s();
    let source = Source::open_trace(path).expect("readable");
    let read = format::read(&source, None, &Setting::new(&cluster, &profiles)).expect("sound");
    let took = cpu_s() - began;
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux keeps this file");
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<f64>().ok());
    println!("{} {took} {}", read.workload.jobs.len(), peak.unwrap_or(0.0) / 1e3);
}

/// CPU time of this process so far, user and system.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux keeps this file");
    stat.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).expect("nanoseconds") / 1e9
}
