//! Traces from files: one reader for each format, and the detection of a file's format.

pub mod chronus;
pub mod elasticflow;
mod home;
pub mod itp;
mod models;
pub mod philly;
pub mod pollux;
pub mod replay;
pub mod rota;
pub mod write_chronus;
pub mod write_elasticflow;
mod write_rota;

use std::collections::BTreeMap;

use rota_core::cluster::Cluster;

use rota_core::workload::Workload;

use crate::error::InputError;
use crate::generate::{WorkloadOptions, redraw};
use crate::jobs::JobList;
use crate::profile::ProfileSet;
use crate::rows::{BadRows, DroppedRow};
use crate::source::Source;

pub use home::{Home, home};
pub(crate) use models::Models;
pub use models::PLAIN;
pub use write_rota::write as write_rota;

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

/// What a reader made of a file.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The jobs in the order of their arrival, with tenants and data sets.
    pub workload: Workload,
    /// Rows left out because they made no sense, when that was asked for.
    pub dropped: Vec<DroppedRow>,
    /// Rows left out by the rules of the format: rule and count.
    pub filtered: BTreeMap<String, u64>,
}

impl Imported {
    fn of(list: JobList) -> Self {
        Imported { workload: list.finish(), ..Imported::default() }
    }

    /// The same with what the options ask to draw instead of read.
    pub(crate) fn redrawn(mut self, setting: &Setting<'_>) -> Result<Self, InputError> {
        redraw(&mut self.workload, setting.cluster, &setting.options)?;
        Ok(self)
    }
}

macro_rules! formats {
    ($($(#[doc = $doc:literal])* $variant:ident => $name:literal, $reader:path;)*) => {
        /// A trace format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format { $($(#[doc = $doc])* $variant),* }

        impl Format {
            /// Every format with its name on the command line and what it is.
            pub const ALL: &'static [(Format, &'static str, &'static str)] =
                &[$((Format::$variant, $name, concat!($($doc),*))),*];

            /// Reads a trace as it is, before anything is redrawn.
            pub(crate) fn read(self, source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
                match self { $(Format::$variant => $reader(source, setting)),* }
            }
        }
    };
}

formats! {
    /// Rota's own table: headings say what is there.
    Rota => "rota", rota::read;
    /// Synergy's record and replay file: `id,model,arrival,iterations,gpus` without a heading.
    Replay => "synergy", replay::read;
    /// Philly as Pollux's authors extracted it: `timestamp,duration,num_gpus,gpu_time,cluster`.
    Pollux => "pollux", pollux::read;
    /// Philly's job log: a JSON list of jobs with their attempts.
    Philly => "philly", philly::read;
    /// ElasticFlow's table with deadlines and batch sizes, in any of its headings.
    Elasticflow => "elasticflow", elasticflow::read;
    /// Microsoft's raw ITP table: `job_id,submission_time,duration,num_gpu`.
    Itp => "itp", itp::read;
    /// Chronus' table with strict and soft deadlines, in minutes.
    Chronus => "chronus", chronus::read;
    /// The same in seconds, as ElasticFlow's port of Chronus has it.
    ChronusSeconds => "chronus-seconds", chronus::read_seconds;
}

impl Format {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Format::ALL.iter().find(|(format, ..)| *format == self).map_or("?", |(_, name, _)| name)
    }
}

impl std::str::FromStr for Format {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let known = Format::ALL.iter().find(|(_, name, _)| *name == text);
        known.map(|(format, ..)| *format).ok_or_else(|| {
            let names: Vec<_> = Format::ALL.iter().map(|(_, name, _)| *name).collect();
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

/// Guesses the format by the first line and the extension.
pub fn detect(source: &Source) -> Result<Format, InputError> {
    let first = source.text.trim_start().lines().next().unwrap_or("");
    let cells: Vec<&str> = first.split(source.separator()).map(str::trim).collect();
    let has = |names: &[&str]| names.iter().all(|name| cells.contains(name));
    let any = |names: &[&str]| names.iter().any(|name| cells.contains(name));
    if source.has_extension("json") || first.starts_with('[') {
        return Ok(Format::Philly);
    }
    if has(&["job_id", "arrival_s"]) {
        return Ok(Format::Rota);
    }
    if has(&["timestamp", "duration", "num_gpus"]) {
        return Ok(Format::Pollux);
    }
    if has(&["submit_time", "expect_time_list"]) {
        return Ok(Format::Chronus);
    }
    if any(&["submit_time", "submission_time"]) && has(&["num_gpu"]) {
        let is_converted = any(&["iteration", "num_iteration"]) && has(&["model_name"]);
        return Ok(if is_converted { Format::Elasticflow } else { Format::Itp });
    }
    if cells.len() == 5 && cells[2..].iter().all(|cell| cell.parse::<f64>().is_ok()) {
        return Ok(Format::Replay);
    }
    let names: Vec<_> = Format::ALL.iter().map(|(_, name, _)| *name).collect();
    let what = format!("a trace in one of the formats {} (name it if it is one)", names.join(", "));
    Err(InputError::expected(&source.name, what).at_line(1).got(first))
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
