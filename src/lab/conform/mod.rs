//! Golden cases of the originals: run each, compare it with what the original did, name the first difference.
//!
//! ```text
//! golden/<system>/cases.csv ─▶ Case ─▶ Verdict ─▶ SystemReport ─▶ terminal, --json, exit code
//!                 (synergy, …)    │
//!                                 └─▶ --out DIR/<system>/<case>/jobs.csv
//! ```
//!
//! A system is one line of [`SYSTEMS`] and a function that turns its folder into cases. How an original behaves is in
//! `rota_scripts::artifact`; this room has only its inputs and the comparison. A broken case table ends
//! the whole run, a broken file of one case fails that case.

mod case;
mod chronus;
mod compare;
mod elasticflow;
mod error;
mod gavel;
mod milp;
mod opt;
mod report;
mod synergy;
mod table;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use rota_core::time::Time;
use rota_traces::error::InputError;
use rota_traces::source::Source;

pub use case::Case;
use case::{Judged, case_name};
pub use error::{CaseError, ConformError};
pub use report::{CaseReport, Report, SystemReport, Verdict};
pub use synergy::models as synergy_models;

/// What to run on.
#[derive(Clone, Debug)]
pub struct Options {
    /// The parent of the system folders.
    pub golden: PathBuf,
    /// Names of systems; empty takes all that are there.
    pub systems: Vec<String>,
    /// Where result folders are written, if anywhere.
    pub out: Option<PathBuf>,
    /// The first round of every Synergy case, whatever its mode says.
    pub first_round: Option<Time>,
}

/// A system that has golden cases.
pub struct System {
    /// Its name and that of its folder.
    pub name: &'static str,
    /// What is compared, as `--help` shows it.
    pub about: &'static str,
    cases: fn(&Path, &Options) -> Result<Vec<Case>, ConformError>,
}

/// Every system, in the order in which it is reported.
pub const SYSTEMS: [System; 5] = [
    System {
        name: "synergy",
        about: "per-job start and finish of Synergy's simulator",
        cases: synergy::cases,
    },
    System {
        name: "elasticflow",
        about: "per-job outcomes of ElasticFlow and its baselines",
        cases: elasticflow::cases,
    },
    System { name: "chronus", about: "admission, leases and outcomes of Chronus", cases: chronus::cases },
    System {
        name: "gavel",
        about: "answers of Gavel's policies, and start and finish of every job of its simulator",
        cases: gavel::cases,
    },
    System { name: "milp", about: "objectives of optimisation models", cases: milp::cases },
];

/// Runs the cases of the systems asked for, on all cores; `observe` is told how many of how many are done. The
/// report is in the order of the case tables, in whichever order the threads finish.
pub fn conform(options: &Options, observe: &(dyn Fn(usize, usize) + Sync)) -> Result<Report, ConformError> {
    let mut jobs = Vec::new();
    for system in chosen(options)? {
        let folder = options.golden.join(system.name);
        let cases = (system.cases)(&folder, options)?;
        jobs.push((system.name, cases));
    }
    let n_cases = jobs.iter().map(|(_, cases)| cases.len()).sum();
    let n_done = AtomicUsize::new(0);
    let judge = |case: Case| {
        let verdict = case.judge();
        observe(n_done.fetch_add(1, Ordering::Relaxed) + 1, n_cases);
        CaseReport { case: case.into_name(), verdict }
    };
    let systems = jobs.into_iter().map(|(name, cases)| SystemReport {
        name: name.to_owned(),
        cases: cases.into_par_iter().map(judge).collect(),
    });
    Ok(Report { systems: systems.collect() })
}

/// The systems asked for; of all systems, those that have a folder.
fn chosen(options: &Options) -> Result<Vec<&'static System>, ConformError> {
    let has_folder = |system: &&System| options.golden.join(system.name).is_dir();
    if options.systems.is_empty() {
        let found: Vec<_> = SYSTEMS.iter().filter(has_folder).collect();
        return if found.is_empty() {
            Err(ConformError::NoGolden { dir: options.golden.clone() })
        } else {
            Ok(found)
        };
    }
    for name in &options.systems {
        let Some(system) = SYSTEMS.iter().find(|system| system.name == name) else {
            return Err(ConformError::UnknownSystem { name: name.clone() });
        };
        if !has_folder(&system) {
            return Err(ConformError::NoSystem { name: name.clone(), dir: options.golden.clone() });
        }
    }
    Ok(SYSTEMS.iter().filter(|system| options.systems.iter().any(|name| name == system.name)).collect())
}

/// Parses a JSON file; the error names the file.
fn parse_json<T: serde::de::DeserializeOwned>(source: &Source) -> Result<T, InputError> {
    serde_json::from_str(&source.text).map_err(|error| InputError::problem(&source.name, error.to_string()))
}
