//! A progress bar, shown only in runs that take longer than a second.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shown only after this long.
const PATIENCE: Duration = Duration::from_secs(1);

/// Jobs done over all runs of a command.
pub(crate) struct Meter {
    bar: ProgressBar,
    is_shown: AtomicUsize,
    started: Instant,
    pending: AtomicU64,
    n_runs: usize,
    n_runs_done: AtomicUsize,
}

impl Meter {
    /// A bar over `n_jobs` jobs in `n_runs` runs.
    pub(crate) fn new(n_jobs: u64, n_runs: usize, is_quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(n_jobs), ProgressDrawTarget::hidden());
        let style = "{bar:32} {human_pos}/{human_len} jobs, {per_sec}, {eta} left  {msg}";
        bar.set_style(ProgressStyle::with_template(style).expect("a valid template").progress_chars("━╸ "));
        Meter {
            bar,
            is_shown: AtomicUsize::new(usize::from(is_quiet)),
            started: Instant::now(),
            pending: AtomicU64::new(0),
            n_runs,
            n_runs_done: AtomicUsize::new(0),
        }
    }

    /// More jobs have ended. Cheap to call: in a short run the bar is updated only now and then.
    pub(crate) fn advance(&self, n_jobs: u64) {
        let pending = self.pending.fetch_add(n_jobs, Relaxed) + n_jobs;
        if pending >= 256 || (n_jobs > 0 && self.started.elapsed() > PATIENCE) {
            self.bar.inc(self.pending.swap(0, Relaxed));
            if self.started.elapsed() > PATIENCE && self.is_shown.swap(1, Relaxed) == 0 {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        }
    }

    /// One more run is complete.
    pub(crate) fn run_done(&self) {
        let done = self.n_runs_done.fetch_add(1, Relaxed) + 1;
        if self.n_runs > 1 {
            self.bar.set_message(format!("{done}/{} runs", self.n_runs));
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
