//! Alibaba's PAI cluster (2020, NSDI'22): the jobs of its simulator, or the table of tasks with its headings in front.
//!
//! | simulator | tasks | meaning |
//! |---|---|---|
//! | `job_id` | `job_name`, `task_name` | the name; each task is a job of its own |
//! | `submit_time` | `start_time` | seconds; tasks have no other time |
//! | `duration` | `end_time` less `start_time` | seconds |
//! | `num_gpu` | `plan_gpu`, in hundredths | GPUs of one instance; parts are rounded up after the product |
//! | `num_inst` | `inst_num` | instances |
//! | `user` | – | the tenant |
//! | `gpu_type` | `gpu_type` | kept where the cluster has that type |
//! | `status` | `status` | `Terminated` is passed, `Failed`, `Interrupted`; others still ran |

use std::borrow::Cow;

use rota_core::workload::RecordedEnd;

use super::accounts::{Account, Accounts};
use super::{Head, Imported, Setting};
use crate::error::InputError;
use crate::rows::{Row, Rows, UniqueNames};
use crate::source::Source;

/// Jobs with instances, or tasks with planned resources.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    head.has(&["job_id", "num_inst", "submit_time", "duration", "num_gpu"]) || is_table_of_tasks(head)
}

fn is_table_of_tasks(head: &Head<'_>) -> bool {
    head.has(&["job_name", "task_name", "inst_num", "plan_gpu", "start_time", "end_time"])
}

/// Reads either.
pub(crate) fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let is_tasks = is_table_of_tasks(&Head::of(source));
    let rows = Rows::with_header(source)?;
    let columns = Columns::of(&rows, is_tasks)?;
    let mut names = UniqueNames::default();
    let mut accounts = Accounts::default();
    let dropped = rows.each(setting.bad_rows, |row| columns.take(row, setting, &mut names, &mut accounts))?;
    let mut imported = accounts.finish(setting, dropped)?;
    if is_tasks {
        imported.remarks.push("each task is a job, submitted when it started".to_owned());
    }
    Ok(imported)
}

struct Columns {
    name: usize,
    task: Option<usize>,
    submit: usize,
    duration: Option<usize>,
    end: Option<usize>,
    gpus: usize,
    /// GPUs for one in the column.
    unit: f64,
    instances: usize,
    user: Option<usize>,
    gpu_type: Option<usize>,
    status: Option<usize>,
}

impl Columns {
    fn of(rows: &Rows<'_>, is_tasks: bool) -> Result<Self, InputError> {
        let need = |simulator: &str, tasks: &str| rows.need(&[if is_tasks { tasks } else { simulator }]);
        Ok(Columns {
            name: need("job_id", "job_name")?,
            task: rows.find(&["task_name"]),
            submit: need("submit_time", "start_time")?,
            duration: if is_tasks { None } else { Some(rows.need(&["duration"])?) },
            end: if is_tasks { Some(rows.need(&["end_time"])?) } else { None },
            gpus: need("num_gpu", "plan_gpu")?,
            unit: if is_tasks { 0.01 } else { 1.0 },
            instances: need("num_inst", "inst_num")?,
            user: rows.find(&["user"]),
            gpu_type: rows.find(&["gpu_type"]),
            status: rows.find(&["status"]),
        })
    }

    fn take(
        &self,
        row: &Row<'_>,
        setting: &Setting<'_>,
        names: &mut UniqueNames,
        accounts: &mut Accounts,
    ) -> Result<(), InputError> {
        let number = |column: usize, missing: f64| {
            row.maybe(Some(column)).map_or(Ok(missing), |(column, _)| row.number_of_gpus(column))
        };
        let submitted_s = row.maybe(Some(self.submit)).map_or(Ok(0.0), |(column, _)| row.seconds(column))?;
        let length =
            |column: Option<usize>| row.maybe(column).map(|(column, _)| row.seconds(column)).transpose();
        let duration_s = match (length(self.duration)?, length(self.end)?) {
            (Some(duration_s), _) => duration_s,
            (None, Some(end_s)) => end_s - submitted_s,
            (None, None) => 0.0,
        };
        let name = match row.maybe(self.task) {
            Some((_, task)) => {
                let name = format!("{}/{task}", row.text(self.name));
                names.take_text(row, self.name, &name)?;
                Cow::Owned(name)
            }
            None => Cow::Borrowed(names.take(row, self.name)?),
        };
        let gpu_type = row.maybe(self.gpu_type).and_then(|(_, name)| setting.cluster.gpu_type_id(name));
        accounts.add(&Account {
            name: &name,
            tenant: row.maybe(self.user).map_or("", |(_, user)| user),
            submitted_s,
            duration_s,
            gpus: number(self.gpus, 0.0)? * self.unit * number(self.instances, 1.0)?,
            gpu_type,
            ended: match row.maybe(self.status) {
                Some((_, "Terminated")) => RecordedEnd::Passed,
                Some((_, "Failed")) => RecordedEnd::Failed,
                Some((_, "Interrupted")) => RecordedEnd::Killed,
                _ => RecordedEnd::Unknown,
            },
            line: row.line,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};

    #[test]
    fn jobs_and_tasks_give_gpus_of_all_instances() {
        let (cluster, profiles) = built_in("default", "synergy");
        let setting = Setting::new(&cluster, &profiles);
        let jobs = "job_id,num_inst,submit_time,duration,num_gpu,num_cpu,user\nj1,4,5,100,0.5,6,u\nj2,1,7,50,0,6,u\n";
        let tasks = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n\
            a,worker,2,Terminated,100,160,600,30,100,V100\na,ps,1,Terminated,100,160,600,30,,\n";
        let read_text = |text: &str| read(&Source::new("p.csv", text), &setting).expect("sound");
        let (jobs, tasks) = (read_text(jobs), read_text(tasks));
        assert_eq!((jobs.workload.jobs.len(), jobs.workload.jobs[0].gpus.asked), (1, 2));
        let worker = &tasks.workload.jobs[0];
        assert_eq!((&*worker.name, worker.gpus.asked, tasks.workload.jobs.len()), ("a/worker", 2, 1));
        assert!((worker.estimated_work / worker.fair_rate(&cluster) - 60.0).abs() < 1e-6);
    }

    #[test]
    fn mistakes_are_named() {
        let text = "job_id,num_inst,submit_time,duration,num_gpu\nj1,4,5,long,0.5\n";
        assert_eq!(
            message(read, "p.csv", text),
            "p.csv:2, column 4 (duration): got \"long\", expected a length of time, not negative"
        );
    }
}
