//! Sia's and Pollux's workloads (SOSP'23, OSDI'21): `name,time,application,num_replicas,batch_size`.
//!
//! | column | meaning |
//! |---|---|
//! | `name`, `time` | name; arrival in seconds |
//! | `application` | a model of the profile set |
//! | `num_replicas` | GPUs asked for |
//! | `batch_size` | global batch size; it stays, where the originals let jobs change it |
//! | `category` | may be missing: `adaptive`, `scale-gpus` (both may run with other GPU counts), `rigid` |
//!
//! Such a table does not say how long a job takes. As in the originals, a job trains its application to the last epoch: its iterations are
//! those that the profile set gives for the batch size (`iterations`; the set `pollux-t4` has them for all six applications). In the
//! originals' simulator, a job with a fixed batch size makes just as many.

use rota_core::job::GpuRequest;

use super::{Head, Imported, Models, Setting};
use crate::error::InputError;
use crate::jobs::JobList;
use crate::profile::ProfileEntry;
use crate::rows::{Row, Rows, UniqueNames};
use crate::source::Source;

/// Applications with replicas.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    head.has(&["name", "time", "application", "num_replicas", "batch_size"])
}

/// Reads the table.
pub(crate) fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let rows = Rows::with_header(source)?;
    let [name, time, application, replicas, batch] =
        ["name", "time", "application", "num_replicas", "batch_size"].map(|heading| rows.need(&[heading]));
    let (name, time, application, replicas, batch) = (name?, time?, application?, replicas?, batch?);
    let category = rows.find(&["category"]);
    let mut models = Models::new(setting);
    let mut names = UniqueNames::default();
    let mut list = JobList::default();
    let dropped = rows.each(setting.bad_rows, |row| {
        let name = names.take(row, name)?;
        let entry = models.find(row, application)?;
        let batch_size = row.whole(batch)?;
        let work = iterations(row, application, batch, entry, batch_size)?;
        let mut spec =
            JobList::plain(name, entry.profile.clone(), row.gpus(replicas)?, work, row.arrival(time)?);
        spec.batch = batch_size;
        models.check_measured(row, batch, &spec)?;
        models.check_gpus(row, replicas, &spec)?;
        if !is_rigid(row, category)? {
            let levels = entry.levels.get(&batch_size).map_or(&[][..], Vec::as_slice);
            spec.gpus = GpuRequest { asked: spec.gpus.asked, levels: levels.into() };
        }
        list.at_line(row.line);
        list.push(spec, work);
        Ok(())
    })?;
    let remarks = vec![
        format!(
            "each job trains as many iterations as profile set {} says for its batch size",
            setting.profiles.name
        ),
        "batch sizes stay as asked for; in the originals jobs may change them".to_owned(),
    ];
    Ok(Imported { dropped, remarks, ..Imported::of(list) })
}

fn iterations(
    row: &Row<'_>,
    application: usize,
    batch: usize,
    entry: &ProfileEntry,
    batch_size: u32,
) -> Result<f64, InputError> {
    let model = &entry.profile.name;
    match entry.trained.get(&batch_size) {
        Some(iterations) => Ok(*iterations as f64),
        None if entry.trained.is_empty() => {
            let what =
                "a model whose profile says after how many iterations it is trained (--profiles pollux-t4)";
            Err(row.expected(application, what))
        }
        None => {
            let known: Vec<_> = entry.trained.keys().map(u32::to_string).collect();
            let what =
                format!("a batch size for which the iterations of {model} are known: {}", known.join(", "));
            Err(row.expected(batch, what))
        }
    }
}

fn is_rigid(row: &Row<'_>, column: Option<usize>) -> Result<bool, InputError> {
    match row.maybe(column) {
        None | Some((_, "adaptive" | "scale-gpus")) => Ok(false),
        Some((_, "rigid")) => Ok(true),
        Some((column, _)) => Err(row.expected(column, "adaptive, scale-gpus or rigid")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};
    use rota_test_support::need;

    const HEAD: &str = "name,time,application,num_replicas,batch_size,category\n";

    fn read_text(text: &str) -> Result<Imported, InputError> {
        let (cluster, profiles) = built_in("t4", "pollux-t4");
        read(&Source::new("w.csv", text), &Setting::new(&cluster, &profiles))
    }

    #[test]
    fn jobs_train_to_the_last_epoch_and_only_rigid_ones_keep_their_gpus() {
        let read =
            read_text(&format!("{HEAD}bert-0,77,bert,4,384,\nbert-1,80,bert,4,384,rigid\n")).expect("sound");
        let jobs = &read.workload.jobs;
        assert_eq!((read.workload.truths[0].work, jobs[0].arrival.as_secs_f64()), (480.0, 77.0));
        assert!(jobs[0].gpus.levels.contains(&16) && jobs[1].gpus.levels.is_empty());
        assert_eq!(read.remarks.len(), 2);
    }

    #[test]
    fn mistakes_are_named() {
        for (row, expected) in [
            (
                "a,1,bert,4,100,",
                "w.csv:2, column 5 (batch_size): got \"100\", expected a batch size for which the iterations of bert are known: 12, 24, 48, 96, 192, 384",
            ),
            (
                "a,1,bert,4,384,sometimes",
                "w.csv:2, column 6 (category): got \"sometimes\", expected adaptive, scale-gpus or rigid",
            ),
            (
                "a,1,bert,4,12,",
                "w.csv:2, column 4 (num_replicas): got \"4\", expected at most 3 GPUs: bert with batch 12 was not measured with more on T4",
            ),
        ] {
            assert_eq!(read_text(&format!("{HEAD}{row}\n")).expect_err(row).to_string(), expected);
        }
        assert!(
            message(read, "w.csv", &format!("{HEAD}a,1,bert,4,384,\n")).contains("(--profiles pollux-t4)")
        );
    }

    /// Tiresias in Pollux's simulator keeps the batch size and the GPUs of a job, and takes 30 s for each start: what a job held beyond that is
    /// how long it trains. Jobs that were given scattered GPUs take longer.
    #[test]
    fn jobs_take_as_long_as_in_the_originals_simulator() {
        let Some(folder) = need::shared_path("golden/goodput") else { return };
        let (cluster, profiles) = built_in("t4", "pollux-t4");
        let read = read(
            &Source::open(&folder.join("inputs/w10b.csv")).expect("readable"),
            &Setting::new(&cluster, &profiles),
        )
        .expect("sound");
        let original =
            std::fs::read_to_string(folder.join("sim/tiresias-16-w10b/jobs.csv")).expect("readable");
        let mut n_jobs = 0;
        for line in original.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let [gpu_s, restarts] = [7, 6].map(|column| cells[column].parse::<f64>().expect("a number"));
            let (job, truth) = read
                .workload
                .jobs
                .iter()
                .zip(&read.workload.truths)
                .find(|(job, _)| &*job.name == cells[0])
                .expect(cells[0]);
            let theirs_s = gpu_s / f64::from(job.gpus.asked) - 30.0 * (1.0 + restarts);
            let ours_s = truth.work / job.fair_rate(&cluster);
            assert!((ours_s / theirs_s - 1.0).abs() < 0.01, "{line}: {ours_s:.0} s, not {theirs_s:.0} s");
            n_jobs += 1;
        }
        assert_eq!(n_jobs, 10);
    }

    #[test]
    fn every_public_workload_is_read_whole() {
        let Some(folder) = need::shared_path("traces/sia/workloads") else { return };
        let (cluster, profiles) = built_in("t4", "pollux-t4");
        let (mut n_files, mut n_jobs) = (0, 0);
        for set in ["philly", "saturn", "newtrace", "scale/scale_32x"] {
            for file in std::fs::read_dir(folder.join(set)).expect("a folder") {
                let source = Source::open(&file.expect("an entry").path()).expect("readable");
                let read = read(&source, &Setting::new(&cluster, &profiles)).expect("sound");
                n_jobs += read.workload.jobs.len();
                n_files += 1;
            }
        }
        assert_eq!((n_files, n_jobs), (38, 63_680));
    }
}
