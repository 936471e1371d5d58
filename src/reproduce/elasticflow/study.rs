//! A figure as a whole: every trace under every scheduler, all runs in parallel.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;
use rota_traces::format::{Imported, Setting, elasticflow};
use rota_traces::profile::{self, ProfileSet};
use rota_traces::source::Source;

use super::run::{Loaded, run};
use super::{CONTENDERS, Counts, Figure, Mode, Panel, ReproduceError, servers};

/// What to reproduce, and from what.
#[derive(Clone, Debug)]
pub struct StudyOptions {
    /// The figure.
    pub figure: Figure,
    /// Only its small traces.
    pub is_quick: bool,
    /// Who decides.
    pub mode: Mode,
    /// Folders in which traces are looked for.
    pub folders: Vec<PathBuf>,
}

/// Who wants to know how far it is; called from several threads.
pub trait Watch: Sync {
    /// Everything is read: so many jobs in so many runs are to come.
    fn begin(&self, n_jobs: u64, n_runs: usize);
    /// So many more jobs have ended.
    fn ended(&self, n_jobs: u64);
    /// One more run is complete.
    fn run_done(&self);
}

/// A figure, reproduced.
#[derive(Clone, Debug)]
pub struct Study {
    /// Which.
    pub figure: Figure,
    /// Who decided.
    pub mode: Mode,
    /// One for each trace.
    pub rows: Vec<StudyRow>,
    /// Wall-clock time from reading to the end.
    pub wall_s: f64,
}

/// One trace.
#[derive(Clone, Debug)]
pub struct StudyRow {
    /// The trace and what is published of it.
    pub panel: Panel,
    /// Its jobs.
    pub n_jobs: usize,
    /// What came of them, by contender.
    pub counts: [Counts; 5],
}

/// Runs a figure.
pub fn study(options: &StudyOptions, watch: &dyn Watch) -> Result<Study, ReproduceError> {
    let began = Instant::now();
    let panels: Vec<Panel> =
        options.figure.panels().into_iter().filter(|panel| panel.is_quick || !options.is_quick).collect();
    let profiles = profile::load("elasticflow-a100")?;
    let loaded = panels.iter().map(|panel| load(*panel, &options.folders, &profiles));
    let loaded = loaded.collect::<Result<Vec<_>, _>>()?;
    let mut cells: Vec<(usize, usize)> =
        (0..loaded.len()).flat_map(|at| (0..CONTENDERS.len()).map(move |who| (at, who))).collect();
    // The longest first, or the last one would run alone at the end.
    cells.sort_by_key(|(at, who)| (std::cmp::Reverse(loaded[*at].workload.jobs.len()), *who));
    let n_jobs = cells.iter().map(|(at, _)| loaded[*at].workload.jobs.len() as u64).sum();
    watch.begin(n_jobs, cells.len());
    let counts = cells.into_iter().par_bridge().map(|(at, who)| {
        let counts = run(&loaded[at], &CONTENDERS[who], options.mode, &|n_jobs| watch.ended(n_jobs))?;
        watch.run_done();
        Ok((at, who, counts))
    });
    let mut rows: Vec<StudyRow> = loaded
        .iter()
        .map(|loaded| StudyRow {
            panel: loaded.panel,
            n_jobs: loaded.workload.jobs.len(),
            counts: Default::default(),
        })
        .collect();
    for (at, who, counts) in counts.collect::<Result<Vec<_>, ReproduceError>>()? {
        rows[at].counts[who] = counts;
    }
    Ok(Study { figure: options.figure, mode: options.mode, rows, wall_s: began.elapsed().as_secs_f64() })
}

/// Reads one trace.
pub(super) fn load(
    panel: Panel,
    folders: &[PathBuf],
    profiles: &ProfileSet,
) -> Result<Loaded, ReproduceError> {
    let path = folders.iter().map(|folder| folder.join(panel.file)).find(|path| path.is_file());
    let path = path.ok_or_else(|| ReproduceError::Missing {
        file: panel.file,
        folders: folders.to_vec(),
        origin: panel.origin,
    })?;
    let cluster = Arc::new(servers(panel.cluster)?);
    let source = Source::open(&path)?;
    let Imported { workload, durations, .. } = elasticflow::read(&source, &Setting::new(&cluster, profiles))?;
    workload.check().map_err(|error| ReproduceError::Workload { file: panel.file, error })?;
    Ok(Loaded { panel, cluster, workload: Arc::new(workload), durations })
}
