//! Microsoft's ITP clusters as published: `job_id,submission_time,duration,num_gpu`, and ElasticFlow's rules for
//! making elastic jobs with deadlines of them (ASPLOS'23, §6.1).

use rota_core::time::{Span, Time};

use super::{Head, Imported, LeftOut, Setting};
use crate::error::InputError;
use crate::generate::elasticflow::{Deadlines, Templates};
use crate::jobs::JobList;
use crate::originals::{self, ForOriginals};
use crate::rows::{Rows, UniqueNames};
use crate::source::Source;
use crate::speeds::Speeds;

/// GPU counts that throughput was measured with; the converter drops all others.
const MEASURED_GPUS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Shorter jobs are dropped, seconds.
const SHORTEST_S: f64 = 600.0;

/// Arrival, duration and GPUs, and nothing on what is trained.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    head.has(&["num_gpu", "duration"])
        && head.has_any(&["submission_time", "submit_time"])
        && !head.has_any(&[
            "model_name",
            "num_inst",
            "iterations",
            "iteration",
            "num_iteration",
            "start_time",
        ])
}

/// Reads a raw trace and converts it: models, deadlines and best-effort jobs are drawn by the seed.
pub fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    read_for_originals(source, setting).map(|read| read.imported)
}

/// The same with the run times of the trace.
pub(crate) fn read_for_originals(source: &Source, setting: &Setting<'_>) -> Result<ForOriginals, InputError> {
    setting.options.check()?;
    let rows = Rows::with_header(source)?;
    let job_id = rows.find(&["job_id"]);
    let submit = rows.need(&["submission_time", "submit_time"])?;
    let (duration, gpus) = (rows.need(&["duration"])?, rows.need(&["num_gpu"])?);
    let mut templates = Templates::new(setting.profiles, setting.cluster, setting.options.seed)?;
    let mut deadlines = Deadlines::new(&setting.options);
    let mut speeds = Speeds::new(setting.cluster);
    let mut names = UniqueNames::default();
    let mut list = JobList::default();
    let mut filtered = LeftOut::default();
    let mut run_times: Vec<(Time, Span)> = Vec::new();
    let dropped = rows.each(setting.bad_rows, |row| {
        let (arrival, duration_s, n_gpus) =
            (row.time(submit, 1.0)?, row.seconds(duration)?, row.whole::<u32>(gpus)?);
        if let Some(rule) = rule_against(arrival.as_secs_f64(), duration_s, n_gpus) {
            filtered.count(rule, row.line);
            return Ok(());
        }
        let n_gpus_in_all = speeds.reach(None).n_gpus;
        if n_gpus > n_gpus_in_all {
            let cluster = &setting.cluster.name;
            return Err(
                row.expected(gpus, format!("at most {n_gpus_in_all} GPUs: cluster {cluster} has no more"))
            );
        }
        let name = names.take_or_number(row, job_id)?;
        let mut spec = templates.draw_job(&name, n_gpus, arrival);
        let work = speeds.whole_iterations(&spec, duration_s)?;
        spec.estimated_work = work;
        spec.deadline = deadlines.draw(arrival, duration_s);
        list.at_line(row.line);
        list.push(spec, work);
        run_times.push((arrival, Span::from_secs_f64(duration_s)));
        Ok(())
    })?;
    let durations = Some(originals::in_job_order(run_times).collect());
    let remarks = vec![
        format!("models and batch sizes were drawn with seed {}", setting.options.seed),
        "deadlines were drawn by ElasticFlow's rule, a random factor of the duration after the arrival"
            .to_owned(),
    ];
    Ok(ForOriginals { imported: Imported { dropped, filtered, remarks, ..Imported::of(list) }, durations })
}

fn rule_against(arrival_s: f64, duration_s: f64, n_gpus: u32) -> Option<&'static str> {
    if arrival_s < 0.0 {
        Some("submitted before the trace begins")
    } else if !MEASURED_GPUS.contains(&n_gpus) {
        Some("a GPU count other than 1, 2, 4, 8, 16, 32, 64")
    } else if duration_s < SHORTEST_S {
        Some("shorter than 600 s")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::built_in;
    use rota_test_support::need;

    #[test]
    fn the_converters_rules_are_counted() {
        let (cluster, profiles) = built_in("a100", "elasticflow-a100");
        let text = "job_id,submission_time,duration,num_gpu\na,5,6000,1\nb,-5,6000,1\nc,6,6000,3\nd,7,599,1\ne,8,600,64\n";
        let read = read(&Source::new("i.csv", text), &Setting::new(&cluster, &profiles)).expect("sound");
        let names: Vec<_> = read.workload.jobs.iter().map(|j| &*j.name).collect();
        assert_eq!(names, ["a", "e"]);
        assert_eq!(read.filtered.rules().map(|(_, count)| count.n_rows).collect::<Vec<_>>(), [1, 1, 1]);
        assert!(read.workload.jobs[1].batch >= 64, "64 GPUs need a batch to share");
        assert!(read.workload.jobs.iter().all(|j| j.deadline.first() > Some(j.arrival)));
    }

    #[test]
    fn the_public_raw_traces_are_kept_whole() {
        let Some(folder) = need::shared_path("traces/elasticflow-itp/raw") else { return };
        let (cluster, profiles) = built_in("a100", "elasticflow-a100");
        for (file, n_jobs) in [("cluster10.csv", 260), ("cluster04.csv", 15_802)] {
            let source = Source::open(&folder.join(file)).expect("readable");
            let read = read(&source, &Setting::new(&cluster, &profiles)).expect("sound");
            assert_eq!((read.workload.jobs.len(), read.filtered.n_rows()), (n_jobs, 0), "{file}");
        }
    }
}
