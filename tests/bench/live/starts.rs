//! Job starts per second with real processes, next to HyperQueue in the same run.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use crate::cluster::Cluster;
use crate::driver::{Bell, User, job};
use crate::measure::quantile;

const N_JOBS: usize = 1_000;
const N_RUNS: usize = 3;
/// Jobs that may run at once, for either.
const N_PLACES: u32 = 16;

pub(crate) fn measure() {
    let cluster = Cluster::start(1, N_PLACES, &[]);
    let bell = Bell::hang(cluster.folder.path());
    let mut user = User::connect(&cluster);
    let mut other = HyperQueue::start(&bell);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..N_RUNS {
        ours.push(rate(&bell, || {
            user.submit(vec![job(&bell.command()); N_JOBS]);
        }));
        // Ends are still being written down when the last one has begun.
        cluster.until("all is quiet", |cluster| cluster.jobs().iter().all(|job| job["state"] == "finished"));
        if let Ok(other) = &mut other {
            theirs.push(rate(&bell, || other.submit(N_JOBS)));
            other.wait();
        }
    }
    println!(
        "\n**Job starts per second**: {N_JOBS} jobs of one shell line submitted at once, {N_PLACES} places, from the"
    );
    println!("submission to the last job's own line; runs in turn, median of {N_RUNS} and range.\n");
    println!("| | per second | range |\n|---|---|---|");
    let median = |rates: &mut Vec<f64>| {
        rates.sort_unstable_by(f64::total_cmp);
        quantile(rates, 0.5)
    };
    let own = median(&mut ours);
    println!("| Rota | {own:.0} | {:.0} to {:.0} |", ours[0], ours[N_RUNS - 1]);
    match other {
        Ok(other) => {
            let their = median(&mut theirs);
            println!("| {} | {their:.0} | {:.0} to {:.0} |", other.version, theirs[0], theirs[N_RUNS - 1]);
            println!("\nRota starts {:.1} times as many.", own / their);
        }
        Err(why) => println!("\nHyperQueue was not measured: {why}"),
    }
}

fn rate(bell: &Bell, submit: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    submit();
    let last = (0..N_JOBS).map(|_| bell.next()).max().expect("jobs");
    N_JOBS as f64 / (last - begun).as_secs_f64()
}

/// A server and a worker of HyperQueue, driven through a Python script line by line.
struct HyperQueue {
    version: String,
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl HyperQueue {
    fn start(bell: &Bell) -> Result<Self, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/with_hyperqueue.py");
        let python = std::env::var("ROTA_HYPERQUEUE_PYTHON").unwrap_or_else(|_| "python3".into());
        let mut process = Command::new(&python)
            .arg(script)
            .arg(N_PLACES.to_string())
            .args(bell.command())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{python}: {error}"))?;
        let (orders, answers) = (process.stdin.take().expect("piped"), process.stdout.take().expect("piped"));
        let mut found =
            HyperQueue { version: String::new(), process, orders, answers: BufReader::new(answers) };
        match found.read().as_str() {
            version if version.starts_with("HyperQueue") => found.version = version.to_owned(),
            "" => return Err("its driver ended at once".into()),
            why => return Err(why.to_owned()),
        }
        Ok(found)
    }

    fn submit(&mut self, n_jobs: usize) {
        writeln!(self.orders, "{n_jobs}").expect("it listens");
    }

    /// Waits until it is done with all of them.
    fn wait(&mut self) {
        assert_eq!(self.read(), "done");
    }

    fn read(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("text");
        line.trim().to_owned()
    }
}

impl Drop for HyperQueue {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
