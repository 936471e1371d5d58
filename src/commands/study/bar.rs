//! How far a study is: runs done, their rate, the time left, failures.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::run::human;
use rota_lab::report;
use rota_lab::study::Watch;

/// The bar, and what it has counted.
pub(crate) struct Bar {
    bar: ProgressBar,
    started: Instant,
    is_quiet: bool,
    n_kept: AtomicUsize,
    n_done: AtomicUsize,
    n_failed: AtomicUsize,
}

impl Bar {
    /// A bar; hidden where nobody would see it.
    pub(crate) fn new(is_quiet: bool) -> Self {
        let target = if is_quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style = "{bar:32} {pos}/{len} runs, {per_sec}, {eta} left  {msg}";
        bar.set_style(ProgressStyle::with_template(style).expect("a valid template").progress_chars("━╸ "));
        Bar {
            bar,
            started: Instant::now(),
            is_quiet,
            n_kept: AtomicUsize::new(0),
            n_done: AtomicUsize::new(0),
            n_failed: AtomicUsize::new(0),
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// What was run, in a line.
    pub(crate) fn summary(&self) -> String {
        let (done, kept) = (self.n_done.load(Relaxed), self.n_kept.load(Relaxed));
        let grouped = |count: usize| report::grouped(count as u64);
        let kept = if kept > 0 { format!(", {} were there already", grouped(kept)) } else { String::new() };
        let runs = if done == 1 { "run" } else { "runs" };
        format!("{} {runs} in {}{kept}", grouped(done), human(self.started.elapsed()))
    }
}

impl Watch for Bar {
    fn submitted(&self, is_cached: bool) {
        if is_cached {
            self.n_kept.fetch_add(1, Relaxed);
        } else {
            self.bar.inc_length(1);
        }
    }

    fn done(&self, is_failed: bool) {
        self.n_done.fetch_add(1, Relaxed);
        if is_failed {
            let failed = self.n_failed.fetch_add(1, Relaxed) + 1;
            self.bar.set_message(format!("{failed} failed"));
        }
        self.bar.inc(1);
    }

    fn say(&self, line: &str) {
        if !self.is_quiet {
            self.bar.suspend(|| println!("{line}"));
        }
    }
}
