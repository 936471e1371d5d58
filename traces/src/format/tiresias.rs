//! Tiresias' tables (NSDI'19): those of its simulator and of its testbed.
//!
//! | column | meaning |
//! |---|---|
//! | `job_id` | the name |
//! | `num_gpu` | GPUs |
//! | `submit_time`, `duration` | seconds |
//! | `model_name` | a name without a profile: how long a job takes is its duration |
//! | `iterations`, `interval`, `start_time`, `model_size`, … | not used |

use super::{Head, Imported, Models, Setting};
use crate::error::InputError;
use crate::jobs::JobList;
use crate::rows::{Rows, UniqueNames};
use crate::source::Source;

/// Models and intervals, or models and their sizes, and no deadlines.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    head.has(&["job_id", "num_gpu", "submit_time", "model_name", "duration"])
        && (head.has(&["iterations", "interval"]) || head.has(&["model_size", "aggr_interval"]))
        && !head.has_any(&["expect_time_list", "batch_size"])
}

/// Reads either table.
pub(crate) fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let rows = Rows::with_header(source)?;
    let [job_id, gpus, submit, model, duration] =
        ["job_id", "num_gpu", "submit_time", "model_name", "duration"].map(|name| rows.need(&[name]));
    let (job_id, gpus, submit, model, duration) = (job_id?, gpus?, submit?, model?, duration?);
    let mut models = Models::new(setting);
    let mut names = UniqueNames::default();
    let mut list = JobList::default();
    let dropped = rows.each(setting.bad_rows, |row| {
        let (arrival, work) = (row.arrival(submit)?, row.run_time(duration)?);
        let name = names.take(row, job_id)?;
        list.at_line(row.line);
        list.push(JobList::plain(name, models.plain(row.text(model)), row.gpus(gpus)?, work, arrival), work);
        Ok(())
    })?;
    let remarks = vec!["models have no profiles here: a job takes its duration whatever it gets".to_owned()];
    Ok(Imported { dropped, remarks, ..Imported::of(list) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};
    use rota_test_support::need;

    #[test]
    fn mistakes_are_named() {
        let head = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n";
        assert_eq!(
            message(read, "t.csv", &format!("{head}0,1,-5,606,vgg19,164,30\n")),
            "t.csv:2, column 3 (submit_time): got \"-5\", expected a time in seconds, not negative"
        );
    }

    #[test]
    fn the_public_sample_is_read_whole_and_its_sketch_of_a_testbed_refused() {
        let Some(folder) = need::shared_path("traces/tiresias") else { return };
        let (cluster, profiles) = built_in("default", "synergy");
        let read_file = |name: &str| {
            let source = Source::open(&folder.join(name)).expect("readable");
            crate::format::read(&source, None, &Setting::new(&cluster, &profiles))
        };
        let jobs = read_file("60_job.csv").expect("sound").workload.jobs;
        assert_eq!((jobs.len(), &*jobs[0].profile.name), (60, "plain:vgg19"));
        assert!(jobs.iter().all(|job| job.deadline.first().is_none()), "nobody invents deadlines");
        let twice = read_file("tf_job.csv").expect_err("job 10 is there twice").to_string();
        assert!(
            twice.ends_with("got \"10\", expected a name that no other job has (line 2 has it)"),
            "{twice}"
        );
    }
}
