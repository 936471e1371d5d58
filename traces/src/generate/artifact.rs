//! The jobs that Synergy's own program draws, number by number.
//!
//! With a Philly log and exponential arrivals the program throws the log's durations away: it draws one for each job as
//! it parses the log, and keeps the list in a file. A later run, which reads that file, starts its random numbers
//! again for the arrivals. With one GPU for each job nothing of the log is left, so the jobs follow from the seed alone. Jobs
//! of several GPUs are those of its synthetic mode, which has one stream for everything and no log.

use rota_core::cluster::Cluster;
use rota_core::time::Time;
use rota_core::workload::Workload;

use super::options::{Lengths, WorkloadOptions};
use super::python::PythonRandom;
use super::synergy::{DEFAULT_JOBS, ModelMix};
use crate::error::InputError;
use crate::jobs::JobList;
use crate::profile::ProfileSet;
use crate::speeds::Speeds;

/// Draws a workload.
pub(super) fn generate(
    cluster: &Cluster,
    profiles: &ProfileSet,
    options: &WorkloadOptions,
) -> Result<Workload, InputError> {
    let mut draws = Draws::new(options);
    let mut models = ModelMix::new(profiles, options)?;
    let mut speeds = Speeds::new(cluster);
    let mut list = JobList::default();
    for index in 0..options.jobs.unwrap_or(DEFAULT_JOBS) {
        let Drawn { arrival, duration_s, gpus } = draws.next();
        let mut spec = JobList::plain(&index.to_string(), models.next(), gpus, 0.0, arrival);
        let work = speeds.whole_iterations(&spec, duration_s)?;
        spec.estimated_work = work;
        list.push(spec, work);
    }
    Ok(list.finish())
}

struct Drawn {
    arrival: Time,
    duration_s: f64,
    gpus: u32,
}

/// The program's streams.
struct Draws<'a> {
    options: &'a WorkloadOptions,
    /// Durations of a parsed log; with several GPUs everything comes from `rest`.
    durations: PythonRandom,
    rest: PythonRandom,
    count: i64,
    last_s: f64,
}

impl<'a> Draws<'a> {
    fn new(options: &'a WorkloadOptions) -> Self {
        let stream = PythonRandom::new(options.seed);
        Draws { options, durations: stream.clone(), rest: stream, count: 0, last_s: 0.0 }
    }

    fn next(&mut self) -> Drawn {
        let arrival = self.arrival();
        let lengths = self.options.lengths;
        let drawn = if self.options.multi_gpu {
            let duration_s = duration_s(&mut self.rest, lengths);
            Drawn { arrival, duration_s, gpus: gpus(&mut self.rest) }
        } else {
            Drawn { arrival, duration_s: duration_s(&mut self.durations, lengths), gpus: 1 }
        };
        // The program draws a digit for the class and does not look at it.
        self.rest.digit();
        drawn
    }

    /// Each gap is rounded up to a second; jobs that come at once are a millisecond apart.
    fn arrival(&mut self) -> Time {
        self.count += 1;
        if self.options.is_static {
            return Time((self.count - 1) * 1_000);
        }
        let gap_h = -(1.0 - self.rest.random()).ln() / self.options.jobs_per_hour;
        self.last_s += (gap_h * 3_600.0).ceil();
        Time::from_secs_f64(self.last_s)
    }
}

fn duration_s(rng: &mut PythonRandom, lengths: Lengths) -> f64 {
    let (short, long) = match lengths {
        Lengths::Long => ((1.5, 3.0), (3.0, 4.0)),
        Lengths::Short => ((1.5, 2.5), (2.5, 2.7)),
    };
    let (low, high) = if rng.random() >= 0.8 { long } else { short };
    60.0 * 10_f64.powf(rng.uniform(low, high))
}

fn gpus(rng: &mut PythonRandom) -> u32 {
    match rng.random() {
        draw if draw >= 0.95 => 8,
        draw if draw >= 0.8 => 4,
        draw if draw >= 0.7 => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use crate::{cluster, profile};
    use rota_test_support::need;

    /// Lines of the program's own record: id, model, arrival, iterations, GPUs.
    fn drawn(options: &WorkloadOptions) -> Vec<String> {
        let (cluster, profiles) =
            (cluster::load("default").expect("built in"), profile::load("synergy").expect("built in"));
        let workload = generate(&cluster, &profiles, options).expect("options are sound");
        let line = |job: &std::sync::Arc<rota_core::job::JobSpec>| {
            let (arrival, work) = (job.arrival.as_secs_f64(), job.estimated_work);
            format!("{},{},{arrival:.1},{work},{}", job.name, job.profile.name, job.gpus.asked)
        };
        workload.jobs.iter().map(line).collect()
    }

    #[test]
    fn the_first_jobs_are_those_of_the_program() {
        let options =
            WorkloadOptions { jobs: Some(5), jobs_per_hour: 9.0, seed: 42, ..WorkloadOptions::default() };
        let first = ["0,alexnet,409.0,3447,1", "1,gnmt,951.0,34181,1", "2,transformer,1053.0,29317,1"];
        assert_eq!(drawn(&options)[..3], first);
    }

    #[test]
    fn whole_records_of_the_program_are_drawn_again() {
        for (input, jobs, jobs_per_hour, multi_gpu) in
            [("n1000.single.high", 1_000, 9.0, false), ("n200.multi.high", 200, 1.4, true)]
        {
            let Some(path) = need::shared_path(&format!("golden/synergy/inputs/{input}.trace")) else {
                return;
            };
            let recorded = Source::open(&path).expect("readable").text;
            let options = WorkloadOptions {
                jobs: Some(jobs),
                jobs_per_hour,
                multi_gpu,
                seed: 42,
                ..WorkloadOptions::default()
            };
            assert_eq!(drawn(&options), recorded.lines().collect::<Vec<_>>(), "{input}");
        }
    }
}
