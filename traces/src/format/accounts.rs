//! Jobs as a cluster's accounting has them: who submitted what and when, on how many GPUs it ran and for how long. What all
//! readers of such logs share.
//!
//! Time starts at 0 with the first submission; rows come in any order. Accounting does not say what the jobs trained, so models
//! are drawn from the profile set by the seed. A job that failed or was cancelled takes as long as it ran.

use rota_core::ids::{GpuTypeId, TenantId};
use rota_core::time::Time;
use rota_core::workload::{RecordedEnd, Truth};

use super::{Imported, LeftOut, Setting};
use crate::error::InputError;
use crate::generate::elasticflow::Templates;
use crate::jobs::JobList;
use crate::rows::DroppedRow;
use crate::speeds::Speeds;

/// One job of the log.
pub(crate) struct Account<'t> {
    /// What the log calls it.
    pub(crate) name: &'t str,
    /// Who is charged: a user, a group or a virtual cluster; empty for nobody.
    pub(crate) tenant: &'t str,
    /// When it was submitted, in seconds from any moment.
    pub(crate) submitted_s: f64,
    /// How long it ran.
    pub(crate) duration_s: f64,
    /// GPUs it held; parts of one are rounded up.
    pub(crate) gpus: f64,
    /// The only GPU type of the cluster that it may use.
    pub(crate) gpu_type: Option<GpuTypeId>,
    /// How it ended.
    pub(crate) ended: RecordedEnd,
    /// Its line, from 1.
    pub(crate) line: u64,
}

/// A log while it is read.
#[derive(Default)]
pub(crate) struct Accounts {
    list: JobList,
    /// Whether the log has dates, not seconds from some moment.
    has_dates: bool,
    jobs: Vec<Kept>,
    filtered: LeftOut,
    n_rounded: u64,
    /// GPU-hours that rounding adds.
    added_hours: f64,
}

struct Kept {
    name: Box<str>,
    tenant: TenantId,
    submitted_s: f64,
    duration_s: f64,
    gpus: u32,
    gpu_type: Option<GpuTypeId>,
    ended: RecordedEnd,
    line: u64,
}

/// How a job ended, by the state that Slurm gives it; Helios and Acme use the same words.
pub(crate) fn end_in_slurm(state: &str) -> RecordedEnd {
    // `CANCELLED by 1000` says by whom.
    match state.split_whitespace().next().unwrap_or("") {
        "COMPLETED" => RecordedEnd::Passed,
        "FAILED" | "NODE_FAIL" | "OUT_OF_MEMORY" | "BOOT_FAIL" | "LAUNCH_FAILED" => RecordedEnd::Failed,
        "CANCELLED" | "TIMEOUT" | "PREEMPTED" | "DEADLINE" | "REVOKED" => RecordedEnd::Killed,
        _ => RecordedEnd::Unknown,
    }
}

/// What to say of jobs that did not do what they were to do, if there are any.
pub(crate) fn premature(truths: &[Truth]) -> Option<String> {
    let n = truths.iter().filter(|truth| truth.end.is_premature()).count();
    let said =
        || format!("{n} of {} jobs failed or were killed: they take as long as they ran", truths.len());
    (n > 0).then(said)
}

impl Accounts {
    /// A log whose times are dates.
    pub(crate) fn with_dates() -> Self {
        Accounts { has_dates: true, ..Accounts::default() }
    }

    /// Adds a job, or counts the rule that leaves it out.
    pub(crate) fn add(&mut self, account: &Account<'_>) {
        if account.gpus <= 0.0 {
            self.filtered.count("asks for no GPU", account.line);
            return;
        }
        if account.duration_s <= 0.0 {
            self.filtered.count("never ran", account.line);
            return;
        }
        self.n_rounded += u64::from(account.gpus.fract() != 0.0);
        self.added_hours += (account.gpus.ceil() - account.gpus) * account.duration_s / 3_600.0;
        self.jobs.push(Kept {
            name: account.name.into(),
            tenant: self.list.tenant(account.tenant),
            submitted_s: account.submitted_s,
            duration_s: account.duration_s,
            gpus: account.gpus.ceil() as u32,
            gpu_type: account.gpu_type,
            ended: account.ended,
            line: account.line,
        });
    }

    /// Counts a row that a rule of the format itself leaves out.
    pub(crate) fn leave_out(&mut self, rule: &'static str, line: u64) {
        self.filtered.count(rule, line);
    }

    /// The workload, with models drawn.
    pub(crate) fn finish(
        mut self,
        setting: &Setting<'_>,
        dropped: Vec<DroppedRow>,
    ) -> Result<Imported, InputError> {
        self.jobs.sort_by(|a, b| a.submitted_s.total_cmp(&b.submitted_s));
        let first_s = self.jobs.first().map_or(0.0, |job| job.submitted_s);
        let mut templates = Templates::new(setting.profiles, setting.cluster, setting.options.seed)?;
        let mut speeds = Speeds::new(setting.cluster);
        for job in &self.jobs {
            let arrival = Time::from_secs_f64(job.submitted_s - first_s);
            let mut spec = templates.draw_job(&job.name, job.gpus, arrival);
            spec.tenant = job.tenant;
            spec.gpu_type = job.gpu_type;
            let work = speeds.iterations(&spec, job.duration_s)?;
            spec.estimated_work = work;
            self.list.at_line(job.line);
            self.list.push_with(spec, Truth { end: job.ended, ..Truth::of(work) });
        }
        let remarks = self.remarks(setting.options.seed);
        let has_dates = self.has_dates;
        let mut imported = Imported { dropped, filtered: self.filtered, remarks, ..Imported::of(self.list) };
        imported.begins_s = has_dates.then_some(first_s as i64);
        imported.remarks.extend(premature(&imported.workload.truths));
        Ok(imported)
    }

    fn remarks(&self, seed: u64) -> Vec<String> {
        let mut remarks = vec![format!("models were drawn with seed {seed}")];
        if self.n_rounded > 0 {
            remarks.push(format!(
                "{} of {} jobs ask for a part of a GPU and get a whole one, which adds {:.0} GPU-hours",
                self.n_rounded,
                self.jobs.len(),
                self.added_hours
            ));
        }
        remarks
    }
}
