//! Traces from files: one reader for each format, and the detection of a file's format.

mod accounts;
pub mod chronus;
mod detect;
pub mod elasticflow;
mod gavel;
mod helios;
mod home;
pub mod itp;
mod left_out;
mod mapped;
mod models;
mod near;
mod openb;
mod pai;
pub mod philly;
pub mod pollux;
pub mod replay;
pub mod rota;
mod shockwave;
mod sia;
mod slurm;
mod swf;
mod tiresias;
pub mod write_chronus;
pub mod write_elasticflow;
mod write_rota;

use rota_core::cluster::Cluster;
use rota_core::ids::JobId;
use rota_core::workload::Workload;

use crate::error::InputError;
use crate::generate::{WorkloadOptions, redraw};
use crate::jobs::JobList;
use crate::profile::ProfileSet;
use crate::rows::{BadRows, DroppedRow};
use crate::source::Source;

pub(crate) use accounts::{Account, Accounts};
pub(crate) use detect::Head;
pub use detect::detect;
pub use home::{Home, home};
pub use left_out::{LeftOut, RuleCount};
pub use mapped::ColumnMap;
pub(crate) use mapped::in_seconds;
pub(crate) use models::Models;
pub use models::PLAIN;
pub(crate) use write_rota::write_changed as write_rota_changed;
pub use write_rota::{write as write_rota, write_remarked as write_rota_remarked};

/// What readers need to know in addition to the file.
#[derive(Clone, Debug)]
pub struct Setting<'a> {
    /// The cluster at whose proportional share durations count.
    pub cluster: &'a Cluster,
    /// What model names mean, and what is drawn where a trace names none.
    pub profiles: &'a ProfileSet,
    /// What to do with rows that make no sense.
    pub bad_rows: BadRows,
    /// Seed, and what is drawn instead of read.
    pub options: WorkloadOptions,
}

impl<'a> Setting<'a> {
    /// Everything from the trace; the first bad row ends the reading.
    pub fn new(cluster: &'a Cluster, profiles: &'a ProfileSet) -> Self {
        Setting { cluster, profiles, bad_rows: BadRows::Refuse, options: WorkloadOptions::default() }
    }
}

/// The lines of a file that jobs come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines(pub(crate) Vec<u64>);

impl Lines {
    /// The line of a job (for JSON, its number in the list), from 1. A job that was repeated comes from the line of the first.
    pub fn of(&self, job: JobId) -> Option<u64> {
        let n = self.0.len().max(1);
        self.0.get(job.index() % n).copied().filter(|line| *line > 0)
    }
}

/// Rows that an error lists when no job is left.
const SHOWN: usize = 20;

/// What a reader made of a file.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The jobs in the order of their arrival, with tenants and data sets.
    pub workload: Workload,
    /// The date of time 0 in seconds since 1970, by the clock of the log, where the trace has dates.
    pub begins_s: Option<i64>,
    /// The line that each job comes from.
    pub lines: Lines,
    /// Rows left out because they made no sense, when that was asked for.
    pub dropped: Vec<DroppedRow>,
    /// Rows left out by the rules of the format.
    pub filtered: LeftOut,
    /// What was drawn, invented or changed because the trace does not have it, a clause each.
    pub remarks: Vec<String>,
}

impl Imported {
    fn of(list: JobList) -> Self {
        let (workload, lines) = list.finish_with_lines();
        Imported { workload, lines: Lines(lines), ..Imported::default() }
    }

    /// The error for a file of which no job is left, with the reasons.
    fn nothing_left(&self, file: &str) -> InputError {
        let mut reasons: Vec<String> = self.filtered.clauses();
        if !self.dropped.is_empty() {
            let first: Vec<String> =
                self.dropped.iter().take(SHOWN).map(|row| format!("\n  {}", row.reason)).collect();
            let more = self.dropped.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!("\n  … and {more} more") } else { String::new() };
            reasons.push(format!("{} rows make no sense:{}{more}", self.dropped.len(), first.join("")));
        }
        match reasons.is_empty() {
            true => InputError::expected(file, "at least one job below the headings"),
            false => {
                InputError::problem(file, format!("has no job that can be used: {}", reasons.join("; ")))
            }
        }
    }

    /// The same with what the options ask to draw instead of read.
    pub(crate) fn redrawn(mut self, setting: &Setting<'_>) -> Result<Self, InputError> {
        redraw(&mut self.workload, setting.cluster, &setting.options)?;
        Ok(self)
    }
}

/// A trace format with what is known of it.
#[derive(Clone, Copy)]
pub struct FormatEntry {
    /// Which it is.
    pub format: Format,
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    pub(crate) recognises: fn(&Head<'_>) -> bool,
    pub(crate) read: fn(&Source, &Setting<'_>) -> Result<Imported, InputError>,
}

macro_rules! formats {
    ($($(#[doc = $doc:literal])* $variant:ident => $name:literal, $recognises:path, $reader:path;)*) => {
        /// A trace format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format { $($(#[doc = $doc])* $variant),* }

        impl Format {
            /// Every format, in the order in which they are listed.
            pub const ALL: &'static [FormatEntry] = &[$(FormatEntry {
                format: Format::$variant,
                name: $name,
                about: concat!($($doc),*),
                recognises: $recognises,
                read: $reader,
            }),*];
        }
    };
}

formats! {
    /// Rota's own table: headings say what is there.
    Rota => "rota", rota::recognises, rota::read;
    /// Synergy's record and replay file: `id,model,arrival,iterations,gpus` without a heading.
    Replay => "synergy", replay::recognises, replay::read;
    /// Philly as Pollux's authors extracted it: `timestamp,duration,num_gpus,gpu_time,cluster`.
    Pollux => "pollux", pollux::recognises, pollux::read;
    /// Philly's job log: a JSON list of jobs with their attempts.
    Philly => "philly", philly::recognises, philly::read;
    /// ElasticFlow's table with deadlines and batch sizes, in any of its headings.
    Elasticflow => "elasticflow", elasticflow::recognises, elasticflow::read;
    /// Microsoft's raw ITP table: `job_id,submission_time,duration,num_gpu`.
    Itp => "itp", itp::recognises, itp::read;
    /// Chronus' table with strict and soft deadlines, in minutes.
    Chronus => "chronus", chronus::recognises, chronus::read;
    /// The same in seconds, as ElasticFlow's port of Chronus has it; never recognised, because it looks the same.
    ChronusSeconds => "chronus-seconds", never, chronus::read_seconds;
    /// Tiresias' tables: `job_id,num_gpu,submit_time,iterations,model_name,duration,interval`, and its testbed's.
    Tiresias => "tiresias", tiresias::recognises, tiresias::read;
    /// Gavel's trace: 7 or 10 fields between tabs, no heading; speeds come from Gavel's throughputs (`--profiles`).
    Gavel => "gavel", gavel::recognises, gavel::read;
    /// Shockwave's trace: 12 fields between tabs, no heading, with durations.
    Shockwave => "shockwave", shockwave::recognises, shockwave::read;
    /// Helios' job log: `job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,…`.
    Helios => "helios", helios::recognises_helios, helios::read;
    /// Acme's job log: `job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,…`.
    Acme => "acme", helios::recognises_acme, helios::read;
    /// Alibaba PAI 2020, the jobs of its simulator: `job_id,num_gpu,submit_time,num_inst,duration,user,…`.
    Pai => "pai", pai::recognises, pai::read;
    /// Alibaba openb 2023, the list of pods: `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,…`.
    Openb => "openb", openb::recognises, openb::read;
    /// Sia's and Pollux's workloads: `name,time,application,num_replicas,batch_size`.
    Sia => "sia", sia::recognises, sia::read;
    /// The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, processors count as GPUs.
    Swf => "swf", swf::recognises, swf::read;
    /// Slurm's accounting: `sacct -P` with headings, or `sacct --json`.
    Slurm => "slurm", slurm::recognises, slurm::read;
}

fn never(_: &Head<'_>) -> bool {
    false
}

impl Format {
    fn entry(self) -> Option<&'static FormatEntry> {
        Format::ALL.iter().find(|entry| entry.format == self)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.entry().map_or("?", |entry| entry.name)
    }

    /// Reads a trace as it is, before anything is redrawn.
    pub(crate) fn read(self, source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
        let entry = self.entry().ok_or_else(|| InputError::problem(&source.name, "has no reader"))?;
        let imported = (entry.read)(source, setting)?;
        let is_listed = setting.bad_rows == BadRows::List && !imported.dropped.is_empty();
        match imported.workload.jobs.is_empty() && !is_listed {
            true => Err(imported.nothing_left(&source.name)),
            false => Ok(imported),
        }
    }
}

impl std::str::FromStr for Format {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let known = Format::ALL.iter().find(|entry| entry.name == text);
        known.map(|entry| entry.format).ok_or_else(|| {
            let names: Vec<_> = Format::ALL.iter().map(|entry| entry.name).collect();
            InputError::expected("trace format", format!("one of {}", names.join(", "))).got(text)
        })
    }
}

/// Reads a trace in the given format, or in the one it seems to be in, and redraws what the options ask for.
pub fn read(source: &Source, format: Option<Format>, setting: &Setting<'_>) -> Result<Imported, InputError> {
    choose(source, format, setting)?.read(source, setting)?.redrawn(setting)
}

/// The given format, or the one that the trace seems to be in; the options are checked before anything is read.
pub(crate) fn choose(
    source: &Source,
    format: Option<Format>,
    setting: &Setting<'_>,
) -> Result<Format, InputError> {
    let format = format.map_or_else(|| detect(source), Ok)?;
    setting.options.check()?;
    Ok(format)
}

#[cfg(test)]
pub(crate) mod tests {

    use super::*;
    use crate::{cluster, profile};

    pub(crate) fn built_in(cluster: &str, profiles: &str) -> (Cluster, ProfileSet) {
        (cluster::load(cluster).expect("built in"), profile::load(profiles).expect("built in"))
    }

    /// A reader's error for a text it cannot use.
    pub(crate) fn message(
        read: impl Fn(&Source, &Setting<'_>) -> Result<Imported, InputError>,
        name: &str,
        text: &str,
    ) -> String {
        let (cluster, profiles) = built_in("default", "synergy");
        read(&Source::new(name, text), &Setting::new(&cluster, &profiles)).expect_err(text).to_string()
    }

    #[test]
    fn formats_are_known_by_their_first_line() {
        let cases = [
            ("a.csv", "job_id,arrival_s,gpus,iterations\n", Format::Rota),
            ("a.trace", "0,alexnet,8.0,23349,1\n", Format::Replay),
            ("a.csv", "timestamp,duration,num_gpus,gpu_time,cluster\n", Format::Pollux),
            ("a.json.gz", "", Format::Philly),
            ("stdin", "[{\"vc\": 1}]", Format::Philly),
            (
                "a.csv",
                "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration",
                Format::Elasticflow,
            ),
            (
                "a.txt",
                "job_id submit_time iteration model_name ddl batch_size num_gpu duration",
                Format::Elasticflow,
            ),
            ("a.csv", "job_id,submission_time,duration,num_gpu\n", Format::Itp),
            (
                "a.csv",
                "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list\n",
                Format::Chronus,
            ),
            (
                "a.csv",
                "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n",
                Format::Tiresias,
            ),
            ("a.trace", "LM (batch size 10)\tpython3\t-n\t1\t10000\t6.0\t1\n", Format::Gavel),
            (
                "a.trace",
                "LM (batch size 10)\tpython3\tlm\t--steps\t1\t9\t1\tgns\t1\t-1.0\t1418\t0\n",
                Format::Shockwave,
            ),
            (
                "a.csv",
                "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n",
                Format::Helios,
            ),
            (
                "a.csv",
                "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n",
                Format::Acme,
            ),
            ("a.csv", "job_id,num_inst,submit_time,duration,num_gpu,num_cpu,user\n", Format::Pai),
            (
                "a.csv",
                "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n",
                Format::Openb,
            ),
            ("a.csv", "name,time,application,num_replicas,batch_size\n", Format::Sia),
            ("a.swf", "; Version: 2.2\n1 0 3 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1\n", Format::Swf),
            ("a.txt", "JobID|User|Submit|Start|End|State|AllocTRES\n", Format::Slurm),
            ("a.json", "{\"meta\": {}, \"jobs\": []}", Format::Slurm),
        ];
        for (name, text, format) in cases {
            assert_eq!(detect(&Source::new(name, text)), Ok(format), "{text}");
            assert_eq!(format.name().parse(), Ok(format));
        }
    }

    #[test]
    fn an_unknown_format_lists_the_known_ones() {
        let error = detect(&Source::new("x.csv", "a,b,c\n1,2,3\n")).expect_err("nothing known").to_string();
        assert!(
            error.starts_with("x.csv:1: got \"a,b,c\", expected a trace in one of the formats "),
            "{error}"
        );
        assert!("sinergy".parse::<Format>().is_err());
    }
}
