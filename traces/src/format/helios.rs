//! The job logs of S-Lab's clusters: Helios (SC'21) and Acme (NSDI'24). Both are one table in two dialects.
//!
//! | column | meaning |
//! |---|---|
//! | `job_id`, `user` | name and owner |
//! | `vc` | virtual cluster (Helios); it is the tenant where it is there, else the user is |
//! | `gpu_num` | GPUs, 0 for CPU jobs, which are left out |
//! | `state` | `COMPLETED`, `CANCELLED`, `FAILED`, `TIMEOUT`, `NODE_FAIL` |
//! | `submit_time` | date, with a time zone in Acme's |
//! | `duration` | seconds; empty or 0 for jobs that never ran |

use super::accounts::{Account, Accounts, end_in_slurm};
use super::{Head, Imported, Setting};
use crate::dates;
use crate::error::InputError;
use crate::rows::{Rows, UniqueNames};
use crate::source::Source;

/// GPUs, state and virtual cluster.
pub(crate) fn recognises_helios(head: &Head<'_>) -> bool {
    head.has(&["job_id", "user", "gpu_num", "state", "submit_time", "duration", "vc"])
}

/// GPUs, state and kind of work.
pub(crate) fn recognises_acme(head: &Head<'_>) -> bool {
    head.has(&["job_id", "user", "gpu_num", "state", "submit_time", "duration", "type"]) && !head.has(&["vc"])
}

/// Reads either.
pub(crate) fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let rows = Rows::with_header(source)?;
    let [job_id, user, gpus, state, submit, duration] =
        ["job_id", "user", "gpu_num", "state", "submit_time", "duration"].map(|name| rows.need(&[name]));
    let (job_id, user, gpus) = (job_id?, user?, gpus?);
    let (state, submit, duration) = (state?, submit?, duration?);
    let tenant = rows.find(&["vc"]).unwrap_or(user);
    let mut names = UniqueNames::default();
    let mut accounts = Accounts::with_dates();
    let dropped = rows.each(setting.bad_rows, |row| {
        let date = dates::parse(row.text(submit));
        let submitted_s = date.ok_or_else(|| row.expected(submit, "a date such as 2020-04-01 00:04:37"))?;
        accounts.add(&Account {
            name: names.take(row, job_id)?,
            tenant: row.text(tenant),
            submitted_s: submitted_s as f64,
            duration_s: row.maybe(Some(duration)).map_or(Ok(0.0), |(column, _)| row.seconds(column))?,
            gpus: row.number_of_gpus(gpus)?,
            gpu_type: None,
            ended: end_in_slurm(row.text(state)),
            line: row.line,
        });
        Ok(())
    })?;
    accounts.finish(setting, dropped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};
    use rota_core::time::Time;
    use rota_core::workload::RecordedEnd;

    #[test]
    fn both_dialects_are_read() {
        let (cluster, profiles) = built_in("default", "synergy");
        let helios = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
            7,u1,vcA,8,64,1,COMPLETED,2020-04-01 00:04:37,2020-04-01 00:04:40,2020-04-01 01:04:40,3600,3\n\
            8,u2,vcA,0,4,1,COMPLETED,2020-04-01 00:05:00,2020-04-01 00:05:00,2020-04-01 00:06:00,60,0\n\
            9,u2,vcB,1,4,1,FAILED,2020-04-01 00:03:37,,,0,0\n\
            10,u2,vcB,1,4,1,CANCELLED,2020-04-01 00:04:47,,,100,0\n";
        let acme = "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n\
            a,u5,1,8,128,Other,COMPLETED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,117,32,936.0\n";
        let setting = Setting::new(&cluster, &profiles);
        let jobs = read(&Source::new("h.csv", helios), &setting).expect("sound");
        let names: Vec<_> = jobs.workload.jobs.iter().map(|job| (&*job.name, job.gpus.asked)).collect();
        assert_eq!(names, [("7", 8), ("10", 1)]);
        assert_eq!(jobs.workload.jobs[1].arrival, Time::from_secs_f64(10.0), "the first that runs is at 0");
        assert_eq!((jobs.workload.tenants, jobs.filtered.n_rows()), (vec!["vcA".into(), "vcB".into()], 2));
        assert!(jobs.remarks.iter().any(|said| said.starts_with("1 of 2 jobs failed")), "{:?}", jobs.remarks);
        let ends: Vec<_> = jobs.workload.truths.iter().map(|truth| truth.end).collect();
        assert_eq!(ends, [RecordedEnd::Passed, RecordedEnd::Killed]);
        let jobs = read(&Source::new("a.csv", acme), &setting).expect("sound").workload;
        assert!((jobs.truths[0].work / jobs.jobs[0].fair_rate(&cluster) - 117.0).abs() < 1e-6);
    }

    #[test]
    fn mistakes_are_named() {
        let head =
            "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n";
        assert_eq!(
            message(read, "h.csv", &format!("{head}7,u,v,many,1,1,COMPLETED,2020-04-01 00:04:37,,,5,3\n")),
            "h.csv:2, column 4 (gpu_num): got \"many\", expected a number of GPUs, 0 or more"
        );
        let row = "7,u,v,1,1,1,COMPLETED,2020-04-01 00:04:37,,,5,3\n";
        assert_eq!(
            message(read, "h.csv", &format!("{head}{row}{row}")),
            "h.csv:3, column 1 (job_id): got \"7\", expected a name that no other job has (line 2 has it)"
        );
    }
}
