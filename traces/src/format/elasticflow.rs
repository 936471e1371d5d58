//! ElasticFlow's traces in all their headings: absolute deadlines, global batch sizes, iterations.
//!
//! The original turns a model it does not know into resnet50 and stumbles over negative numbers; here both are errors,
//! as are a batch, a GPU type or a number of GPUs without a measurement, more GPUs than the cluster has, and a deadline
//! before the arrival.

use rota_core::job::{Deadline, GpuRequest};
use rota_core::time::{Span, Time};

use super::{Head, Imported, Models, Setting};
use crate::error::InputError;
use crate::jobs::JobList;
use crate::originals::{self, ForOriginals};
use crate::rows::{Row, Rows, UniqueNames};
use crate::source::Source;

/// Models with batch sizes and iterations.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    head.has(&["num_gpu", "model_name", "batch_size"])
        && head.has_any(&["submit_time", "submission_time"])
        && head.has_any(&["iteration", "num_iteration"])
}

/// Reads a trace of ElasticFlow or of Microsoft's ITP clusters as converted for it.
pub fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    read_for_originals(source, setting).map(|read| read.imported)
}

/// The same with the run times of the trace, if every job has one.
pub(crate) fn read_for_originals(source: &Source, setting: &Setting<'_>) -> Result<ForOriginals, InputError> {
    let rows = Rows::with_header(source)?;
    let job_id = rows.find(&["job_id"]);
    let submit = rows.need(&["submit_time", "submission_time"])?;
    let iterations = rows.need(&["iteration", "num_iteration"])?;
    let model = rows.need(&["model_name"])?;
    let batch = rows.need(&["batch_size"])?;
    let gpus = rows.need(&["num_gpu"])?;
    let (deadline, best_effort) = (rows.find(&["ddl", "deadline"]), rows.find(&["best_effort"]));
    let duration = rows.find(&["duration"]);
    let mut models = Models::new(setting);
    let mut names = UniqueNames::default();
    let mut list = JobList::default();
    let mut run_times: Vec<(Time, Option<Span>)> = Vec::new();
    let dropped = rows.each(setting.bad_rows, |row| {
        let name = names.take_or_number(row, job_id)?;
        let entry = models.find(row, model)?;
        let work = row.positive(iterations)?;
        let arrival = not_negative(row, submit)?;
        let mut spec = JobList::plain(&name, entry.profile.clone(), row.gpus(gpus)?, work, arrival);
        spec.batch = row.whole(batch)?;
        models.check_measured(row, batch, &spec)?;
        models.check_gpus(row, gpus, &spec)?;
        let levels = entry.levels.get(&spec.batch).map_or(&[][..], Vec::as_slice);
        spec.gpus = GpuRequest { asked: spec.gpus.asked, levels: levels.into() };
        if let (Some((column, _)), false) = (row.maybe(deadline), is_best_effort(row, best_effort)?) {
            spec.deadline = Deadline::Strict(deadline_after(row, column, arrival)?);
        }
        let run_time = row.maybe(duration).map(|(column, _)| row.seconds(column)).transpose()?;
        run_times.push((arrival, run_time.map(Span::from_secs_f64)));
        list.at_line(row.line);
        list.push(spec, work);
        Ok(())
    })?;
    let durations = originals::in_job_order(run_times).collect();
    Ok(ForOriginals { imported: Imported { dropped, ..Imported::of(list) }, durations })
}

fn not_negative(row: &Row<'_>, column: usize) -> Result<Time, InputError> {
    row.time(column, 1.0)
        .ok()
        .filter(|time| *time >= Time::ZERO)
        .ok_or_else(|| row.expected(column, "a time in seconds, not negative"))
}

fn deadline_after(row: &Row<'_>, column: usize, arrival: Time) -> Result<Time, InputError> {
    let deadline = not_negative(row, column)?;
    if deadline < arrival {
        return Err(row.expected(column, format!("a deadline after the arrival of the job at {arrival} s")));
    }
    Ok(deadline)
}

fn is_best_effort(row: &Row<'_>, column: Option<usize>) -> Result<bool, InputError> {
    match row.maybe(column) {
        None | Some((_, "0")) => Ok(false),
        Some((_, "1")) => Ok(true),
        Some((column, _)) => Err(row.expected(column, "1 for a job without a deadline, else 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::built_in;
    use rota_test_support::need;

    fn read_text(text: &str) -> Result<Imported, InputError> {
        let (cluster, profiles) = built_in("a100", "elasticflow-a100");
        read(&Source::new("e.csv", text), &Setting::new(&cluster, &profiles))
    }

    #[test]
    fn all_headings_mean_the_same() {
        let variants = [
            "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\na,5,100,bert,900,64,2,50\n",
            "job_id,submit_time,real_iteration,model_name,ddl,batch_size,num_gpu,real_duration,duration,iteration\na,5,7,bert,900,64,2,50,50,100\n",
            "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration,best_effort\na,5,100,bert,900,64,2,50,0\n",
            "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\na,5,100,bert,900,64,2,50",
        ];
        let jobs: Vec<_> =
            variants.map(|text| read_text(text).expect(text).workload.jobs).into_iter().flatten().collect();
        assert!(jobs.windows(2).all(|pair| pair[0] == pair[1]) && jobs.len() == 4, "{jobs:?}");
        assert_eq!(jobs[0].deadline, Deadline::Strict(Time(900_000_000)));
        assert_eq!((&*jobs[0].gpus.levels, jobs[0].gpus.asked), (&[1, 2, 4, 8][..], 2));
    }

    #[test]
    fn best_effort_jobs_have_no_deadline_and_rows_without_a_name_their_number() {
        let text =
            "submit_time,iteration,model_name,ddl,batch_size,num_gpu,best_effort\n5,100,bert,900,64,2,1\n";
        let workload = read_text(text).expect("sound").workload;
        assert_eq!((&workload.jobs[0].deadline, &*workload.jobs[0].name), (&Deadline::None, "0"));
    }

    #[test]
    fn what_nobody_measured_is_refused() {
        let head = "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu\n";
        let error = read_text(&format!("{head}a,5,100,bert,900,65,2\n")).expect_err("batch").to_string();
        assert_eq!(
            error,
            "e.csv:2, column 6 (batch_size): got \"65\", expected a batch size of bert that was measured on A100: 128, 64"
        );
        let error = read_text(&format!("{head}a,5,100,berd,900,64,2\n")).expect_err("model").to_string();
        assert!(
            error.starts_with(
                "e.csv:2, column 4 (model_name): got \"berd\", expected a model of elasticflow-a100: resnet50"
            ),
            "{error}"
        );
        let (cluster, profiles) = built_in("default", "elasticflow-a100");
        let source = Source::new("e.csv", format!("{head}a,5,100,bert,900,64,2\n"));
        let error = read(&source, &Setting::new(&cluster, &profiles)).expect_err("type").to_string();
        assert!(error.ends_with("expected a batch size of bert that was measured on V100: none"), "{error}");
    }

    /// Reads a table whose first job is sound and whose second has this cell in place of its own.
    fn with_cell(column: usize, cell: &str) -> Result<Imported, InputError> {
        let mut cells = ["b", "5", "100", "bert", "900", "64", "2", "50", "0"];
        cells[column] = cell;
        read_text(&format!(
            "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration,best_effort\n\
             a,5,100,bert,900,64,2,50,0\n{}\n",
            cells.join(",")
        ))
    }

    #[test]
    fn every_bad_cell_is_named_with_row_and_column() {
        for (column, name, cell, expected) in [
            (1, "submit_time", "-5", "a time in seconds, not negative"),
            (1, "submit_time", "NaN", "a time in seconds, not negative"),
            (1, "submit_time", "", "a time in seconds, not negative"),
            (2, "iteration", "-100", "a number greater than 0"),
            (2, "iteration", "nan", "a number greater than 0"),
            (2, "iteration", "0", "a number greater than 0"),
            (4, "ddl", "4", "a deadline after the arrival of the job at 5 s"),
            (4, "ddl", "-1", "a time in seconds, not negative"),
            (4, "ddl", "inf", "a time in seconds, not negative"),
            (5, "batch_size", "-64", "a whole number"),
            (6, "num_gpu", "0", "a whole number of GPUs, at least 1"),
            (6, "num_gpu", "-2", "a whole number of GPUs, at least 1"),
            (6, "num_gpu", "1.5", "a whole number of GPUs, at least 1"),
            (6, "num_gpu", "129", "at most 128 GPUs: cluster a100 has no more for it"),
            (7, "duration", "-50", "a length of time, not negative"),
            (7, "duration", "NaN", "a length of time, not negative"),
            (8, "best_effort", "yes", "1 for a job without a deadline, else 0"),
        ] {
            let error = with_cell(column, cell).expect_err(cell).to_string();
            let place = format!("e.csv:3, column {} ({name}): got \"{cell}\"", column + 1);
            assert_eq!(error, format!("{place}, expected {expected}"));
        }
    }

    #[test]
    fn a_gang_nobody_measured_is_refused() {
        let text = "submit_time,iteration,model_name,batch_size,num_gpu\n5,100,resnet50_cifar10,64,16\n";
        let error = read_text(text).expect_err("16 GPUs ran out of memory").to_string();
        assert_eq!(
            error,
            "e.csv:2, column 5 (num_gpu): got \"16\", expected at most 8 GPUs: \
             resnet50_cifar10 with batch 64 was not measured with more on A100"
        );
    }

    #[test]
    fn the_public_traces_have_the_published_counts() {
        let Some(folder) = need::shared_path("traces/elasticflow-itp/elasticflow") else { return };
        let (cluster, profiles) = built_in("a100", "elasticflow-a100");
        let count = |path: &std::path::Path| {
            let source = Source::open(path).expect("readable");
            let workload = read(&source, &Setting::new(&cluster, &profiles)).expect("sound").workload;
            assert_eq!(workload.check(), Ok(()), "{}", path.display());
            workload.jobs.len()
        };
        assert_eq!(count(&folder.join("195job.csv")), 195);
        let all: usize = (1..=10).map(|n| count(&folder.join(format!("cluster{n:02}.csv")))).sum();
        assert_eq!(all, 69_351);
    }
}
