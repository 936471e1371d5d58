//! Which point to measure next: a pure function of the grid and of what was measured.
//!
//! CPUs and memory make a job faster or leave it as it is. So both ends of an axis are measured; a stretch whose ends
//! differ is halved again and again, which steps through it level by level where it is steep, and a stretch whose ends
//! agree is left alone, after measuring its middle if it is long. GPU counts and batches do not behave that way
//! (communication may make more GPUs slower), so each of them is measured.

use super::findings::Findings;
use super::fit::Fit;
use super::grid::{Grid, Point};

/// With more levels than this between two equal ends, the middle is measured too.
const LONG_STRETCH: usize = 4;

/// What to measure, and how exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Levels of every axis.
    pub grid: Grid,
    /// Whether memory is measured; otherwise it is modelled or left out.
    pub memory: MemoryAxis,
    /// Speeds that differ by less than this part are the same.
    pub flat: f64,
    /// A point is run until half the width of its interval is below this part of its time.
    pub within: f64,
    /// The most runs of one point.
    pub most_runs_of_a_point: u32,
    /// Whether the first run only fills caches.
    pub warms_up: bool,
}

/// Whether points are run on the memory axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAxis {
    /// Like CPUs.
    Measured,
    /// Computed from the size of the data, or left out.
    NotMeasured,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Resources and batch of the run.
    pub point: Point,
    /// Whether the run only warms up.
    pub is_warm_up: bool,
}

/// How many runs a sweep takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// When everything is flat and every point is sure after one run.
    pub least: u32,
    /// When everything is steep; repetitions apart.
    pub most: u32,
    /// What the full grid would take.
    pub full: u32,
}

impl Sweep {
    /// The next run; none when everything is known, or when the very first point cannot be run.
    pub fn next(&self, findings: &Findings) -> Option<Next> {
        let base = self.grid.base();
        if findings.runs().is_empty() && self.warms_up {
            return Some(Next { point: base, is_warm_up: true });
        }
        let next = |point| Some(Next { point, is_warm_up: false });
        if findings.failure(&base).is_some() {
            return None;
        }
        if let Some(point) = findings.points().chain([base]).find(|point| self.wants_run(point, findings)) {
            return next(point);
        }
        let memory = match self.memory {
            MemoryAxis::Measured => self.grid.mem_axis(),
            MemoryAxis::NotMeasured => Vec::new(),
        };
        let on_axes = [self.grid.cpu_axis(), memory].into_iter();
        let mut on_axes = on_axes.filter_map(|axis| self.next_on_axis(&axis, findings));
        if let Some(point) = on_axes.next() {
            return next(point);
        }
        let mut scales = self.grid.scale_axis().into_iter();
        if let Some(point) = scales.find(|point| findings.n_runs(point) == 0) {
            return next(point);
        }
        self.check_point(findings).filter(|point| findings.n_runs(point) == 0).and_then(next)
    }

    /// How many runs it may take.
    pub fn cost(&self) -> Cost {
        let (n_cpus, n_mem) = (self.grid.cpu_micro().len() as u32, self.grid.mem_bytes().len() as u32);
        let n_mem_runs = if self.memory == MemoryAxis::Measured { n_mem } else { 1 };
        let flat = |n: u32| if n as usize >= LONG_STRETCH + 2 { 3 } else { n.min(2) };
        let n_scales = self.grid.scale_axis().len() as u32;
        let warm_up = u32::from(self.warms_up);
        // The base is on every axis and run once.
        let least = warm_up + flat(n_cpus) + flat(n_mem_runs) - 1 + n_scales - 1;
        let checks = u32::from(n_cpus > 1 && n_mem_runs > 1);
        let most = warm_up + n_cpus + n_mem_runs - 1 + n_scales - 1 + checks;
        Cost { least, most, full: n_scales * n_cpus * n_mem }
    }

    fn wants_run(&self, point: &Point, findings: &Findings) -> bool {
        match (findings.n_runs(point), findings.at(point)) {
            (0, _) => true,
            (_, None) => false,
            (n_runs, Some(estimate)) => {
                estimate.relative() > self.within && n_runs < self.most_runs_of_a_point.max(1)
            }
        }
    }

    fn next_on_axis(&self, axis: &[Point], findings: &Findings) -> Option<Point> {
        let is_known = |point: &&Point| findings.n_runs(point) > 0;
        let ends = [axis.last()?, axis.first()?];
        if let Some(end) = ends.into_iter().find(|point| findings.n_runs(point) == 0) {
            return Some(*end);
        }
        let known: Vec<usize> =
            (0..axis.len()).filter(|at| axis.get(*at).as_ref().is_some_and(is_known)).collect();
        let mut stretches = known.windows(2).filter(|pair| pair[1] > pair[0] + 1);
        let stretch = stretches.find(|pair| {
            let n_between = pair[1] - pair[0] - 1;
            n_between >= LONG_STRETCH || !self.is_flat(axis.get(pair[0]), axis.get(pair[1]), findings)
        })?;
        axis.get((stretch[0] + stretch[1]) / 2).copied()
    }

    /// A level that cannot be run is steep: somewhere above it the command begins to work.
    fn is_flat(&self, low: Option<&Point>, high: Option<&Point>, findings: &Findings) -> bool {
        let rate = |point: Option<&Point>| findings.at(point?).map(|estimate| estimate.rate());
        match (rate(low), rate(high)) {
            (Some(low), Some(high)) => (high - low).abs() <= self.flat * high.max(low),
            (None, None) => true,
            _ => false,
        }
    }

    /// A point off both axes at which the fit is checked: where CPUs and memory hold the job back alike.
    fn check_point(&self, findings: &Findings) -> Option<Point> {
        if self.memory == MemoryAxis::NotMeasured {
            return None;
        }
        let base = self.grid.base();
        let full = findings.at(&base)?.rate();
        let held_back = |rate: f64| rate < (1.0 - self.flat) * full;
        let fit = Fit::new(self, findings)?;
        let rates = |axis: Vec<Point>| -> Vec<(Point, f64)> {
            let known = axis.into_iter().filter(|point| findings.failure(point).is_none());
            known.map(|point| (point, fit.rate(&point))).filter(|(_, rate)| held_back(*rate)).collect()
        };
        // The highest memory that still holds back: lower ones rule alone.
        let (memory, cap) = rates(self.grid.mem_axis()).into_iter().next_back()?;
        let cpus = rates(self.grid.cpu_axis());
        let nearest = cpus.into_iter().min_by(|a, b| (a.1 - cap).abs().total_cmp(&(b.1 - cap).abs()))?;
        Some(Point { cpu_micro: nearest.0.cpu_micro, mem_bytes: memory.mem_bytes, ..base })
    }
}
