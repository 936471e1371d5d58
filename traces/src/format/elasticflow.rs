//! ElasticFlow's traces in all their headings: absolute deadlines, global batch sizes, iterations.
//!
//! The original turns a model it does not know into resnet50; here it is an error, as is a batch or a GPU type
//! nobody measured.

use rota_core::job::{Deadline, GpuRequest};

use super::{Imported, Models, Setting};
use crate::error::InputError;
use crate::jobs::JobList;
use crate::rows::Rows;
use crate::source::Source;

/// Reads a trace of ElasticFlow or of Microsoft's ITP clusters as converted for it.
pub fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let rows = Rows::with_header(source)?;
    let job_id = rows.find(&["job_id"]);
    let submit = rows.need(&["submit_time", "submission_time"])?;
    let iterations = rows.need(&["iteration", "num_iteration"])?;
    let model = rows.need(&["model_name"])?;
    let batch = rows.need(&["batch_size"])?;
    let gpus = rows.need(&["num_gpu"])?;
    let (deadline, best_effort) = (rows.find(&["ddl", "deadline"]), rows.find(&["best_effort"]));
    let mut models = Models::new(setting);
    let mut list = JobList::default();
    let dropped = rows.each(setting.bad_rows, |row| {
        let name = row.maybe(job_id).map_or_else(|| row.index.to_string(), |(_, name)| name.to_owned());
        let entry = models.find(row, model)?;
        let work = row.positive(iterations)?;
        let mut spec =
            JobList::plain(&name, entry.profile.clone(), row.gpus(gpus)?, work, row.time(submit, 1.0)?);
        spec.batch = row.whole(batch)?;
        models.check_measured(row, batch, &spec)?;
        let levels = entry.levels.get(&spec.batch).map_or(&[][..], Vec::as_slice);
        spec.gpus = GpuRequest { asked: spec.gpus.asked, levels: levels.into() };
        let is_best_effort = row.maybe(best_effort).is_some_and(|(_, flag)| flag == "1");
        if let (Some((column, _)), false) = (row.maybe(deadline), is_best_effort) {
            spec.deadline = Deadline::Strict(row.time(column, 1.0)?);
        }
        list.push(spec, work);
        Ok(())
    })?;
    Ok(Imported { dropped, ..Imported::of(list) })
}

#[cfg(test)]
mod tests {
    use rota_core::time::Time;

    use super::*;
    use crate::format::tests::{built_in, shared};

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

    #[test]
    fn the_public_traces_have_the_published_counts() {
        let Some(folder) = shared("traces/elasticflow-itp/elasticflow") else { return };
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
