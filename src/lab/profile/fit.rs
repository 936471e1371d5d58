//! The model behind a profile: a job's speed is limited by its CPUs or its data, whichever is slower, times a factor for its
//! GPUs and batch. So two axes and the GPU counts are enough for the whole grid (Synergy, OSDI'22, §3.1: preparing data and
//! fetching it overlap with each other and with computing).

use std::collections::BTreeMap;

use rota_core::profile::{CurveError, HostCurve, Profile, ScaleCurve};
use rota_core::resources::Host;

use super::cache_model::CacheModel;
use super::findings::Findings;
use super::grid::{Grid, Point};
use super::knee::{self, Demand};
use super::sweep::{MemoryAxis, Sweep};

/// Speeds on the axes of a grid, between which everything else follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    grid: Grid,
    flat: f64,
    /// Iterations per second with everything a GPU can get.
    base_rate: f64,
    /// (CPUs in millionths, iterations per second) with all memory.
    cpu: Vec<(u64, f64)>,
    /// (bytes, iterations per second) with all CPUs; empty does not depend on memory.
    mem: Vec<(u64, f64)>,
    /// Iterations per second by GPUs and batch with everything a GPU can get.
    scale: BTreeMap<(u32, u32), f64>,
    /// Storage rate that suffices by memory, at the demand.
    storage_need: Vec<(u64, u64)>,
    /// The worst difference between the model and a measured point off the axes, as a part; none when none was measured.
    pub worst_check: Option<f64>,
}

impl Fit {
    /// The fit to what was measured; none before the first point.
    pub fn new(sweep: &Sweep, findings: &Findings) -> Option<Self> {
        let grid = sweep.grid.clone();
        let base_rate = findings.at(&grid.base())?.rate();
        let measured = |axis: Vec<Point>| axis.into_iter().filter_map(|p| Some((p, findings.at(&p)?.rate())));
        let cpu: Vec<(u64, f64)> = measured(grid.cpu_axis()).map(|(p, rate)| (p.cpu_micro, rate)).collect();
        let mem = match sweep.memory {
            MemoryAxis::Measured => measured(grid.mem_axis()).map(|(p, rate)| (p.mem_bytes, rate)).collect(),
            MemoryAxis::NotMeasured => Vec::new(),
        };
        let scale = measured(grid.scale_axis()).map(|(p, rate)| ((p.gpus, p.batch), rate)).collect();
        let mut fit = Fit {
            grid,
            flat: sweep.flat,
            base_rate,
            cpu,
            mem,
            scale,
            storage_need: Vec::new(),
            worst_check: None,
        };
        let base = fit.grid.base();
        let is_off = |p: &Point| p.cpu_micro != base.cpu_micro && p.mem_bytes != base.mem_bytes;
        let checks = findings.points().filter(is_off).filter_map(|point| {
            let rate = findings.at(&point)?.rate();
            Some((fit.rate(&point) / rate - 1.0).abs())
        });
        fit.worst_check = checks.max_by(f64::total_cmp);
        Some(fit)
    }

    /// The same with memory by a model of what is cached, instead of measured.
    pub fn with_cache(mut self, model: &CacheModel) -> Self {
        let base = self.grid.base();
        let levels = self.grid.mem_bytes().to_vec();
        let job_bytes = |per_gpu: u64| per_gpu.saturating_mul(u64::from(base.gpus));
        self.mem = levels
            .iter()
            .map(|mem| (*mem, self.base_rate.min(1.0 / model.fetch_s(base.batch, job_bytes(*mem)))))
            .collect();
        let compute_s = 1.0 / self.base_rate;
        self.storage_need = levels
            .iter()
            .map(|mem| {
                let bps = model.storage_need_bps(base.batch, job_bytes(*mem), compute_s);
                (*mem, (bps / f64::from(base.gpus)).round() as u64)
            })
            .collect();
        self
    }

    /// Iterations per second at any point.
    pub fn rate(&self, point: &Point) -> f64 {
        let scale = self.scale.get(&(point.gpus, point.batch)).copied().unwrap_or(self.base_rate);
        scale / self.base_rate * self.host_rate(point.cpu_micro, point.mem_bytes)
    }

    fn host_rate(&self, cpu_micro: u64, mem_bytes: u64) -> f64 {
        let by_cpus = between(&self.cpu, cpu_micro).unwrap_or(self.base_rate);
        by_cpus.min(between(&self.mem, mem_bytes).unwrap_or(f64::INFINITY))
    }

    /// The resources that a job should ask for.
    pub fn demand(&self) -> Demand {
        let base = self.grid.base();
        let cpus = self.cpu_levels().map(|cpu| (cpu, self.host_rate(cpu, base.mem_bytes)));
        let cpu_micro = knee::knee(&cpus.collect::<Vec<_>>(), self.flat).unwrap_or(base.cpu_micro);
        let memory = self.mem_levels().map(|mem| (mem, self.host_rate(base.cpu_micro, mem)));
        let mem_bytes = knee::knee(&memory.collect::<Vec<_>>(), self.flat).unwrap_or(base.mem_bytes);
        let need = self.storage_need.iter().find(|(mem, _)| *mem >= mem_bytes).map_or(0, |need| need.1);
        let most_gpus = self.grid.batches().iter().filter_map(|batch| {
            let points: Vec<(u64, f64)> = self.scale_points(*batch).map(|(g, r)| (u64::from(g), r)).collect();
            Some((*batch, knee::last_growth(&points, self.flat)? as u32))
        });
        Demand { cpu_micro, mem_bytes, storage_bps: need, most_gpus: most_gpus.collect() }
    }

    /// CPU levels at which the command runs: those below the first that was measured failed.
    pub fn cpu_levels(&self) -> impl Iterator<Item = u64> + '_ {
        let least = self.cpu.first().map_or(0, |point| point.0);
        self.grid.cpu_micro().iter().copied().filter(move |cpu| *cpu >= least)
    }

    /// Memory levels at which the command runs.
    pub fn mem_levels(&self) -> impl Iterator<Item = u64> + '_ {
        let least = self.mem.first().map_or(0, |point| point.0);
        self.grid.mem_bytes().iter().copied().filter(move |mem| *mem >= least)
    }

    fn scale_points(&self, batch: u32) -> impl Iterator<Item = (u32, f64)> + '_ {
        let of = |gpus: &u32| Some((*gpus, *self.scale.get(&(*gpus, batch))?));
        let points: Vec<(u32, f64)> = self.grid.gpus().iter().filter_map(of).collect();
        points.into_iter()
    }

    /// The fit as a profile.
    pub fn profile(&self, name: &str, gpu_type: &str) -> Result<Profile, CurveError> {
        let demand = self.demand();
        let cpus: Vec<u64> = self.cpu_levels().collect();
        let memory: Vec<u64> = self.mem_levels().collect();
        let row = |cpu: &u64| {
            memory.iter().map(|mem| rounded(self.host_rate(*cpu, *mem) / self.base_rate)).collect()
        };
        let host = HostCurve::new(
            cpus.iter().map(|cpu| *cpu as f64 / 1e6).collect(),
            memory.iter().map(|mem| *mem as f64 / 1e9).collect(),
            cpus.iter().map(row).collect(),
        )?;
        let curve = |batch: &u32| ScaleCurve {
            gpu_type: gpu_type.to_owned(),
            batch: *batch,
            points: self.scale_points(*batch).map(|(gpus, rate)| (gpus, rounded(rate))).collect(),
        };
        let has_scale = self.grid.gpus().len() > 1 || self.grid.batches().len() > 1;
        let scale: Vec<ScaleCurve> = match has_scale {
            true => self.grid.batches().iter().map(curve).filter(|curve| !curve.points.is_empty()).collect(),
            false => Vec::new(),
        };
        Ok(Profile {
            batch: self.grid.base().batch,
            host: Some(host),
            scale,
            demand_per_gpu: Host {
                mem_bytes: demand.mem_bytes,
                storage_bps: demand.storage_bps,
                ..Host::from_units(demand.cpu_micro as f64 / 1e6, 0.0, 0.0)
            },
            storage_need: self.storage_need.clone(),
            ..Profile::plain(name, 1.0 / rounded(1.0 / self.base_rate))
        })
    }
}

/// Six digits: more were not measured.
pub fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// Linear between points, flat outside; none without points.
fn between(points: &[(u64, f64)], at: u64) -> Option<f64> {
    let after = points.iter().position(|point| point.0 >= at);
    match (after, points.first(), points.last()) {
        (Some(0), Some(first), _) => Some(first.1),
        (Some(after), ..) => {
            let (low, high) = (points.get(after - 1)?, points.get(after)?);
            let part = (at - low.0) as f64 / (high.0 - low.0) as f64;
            Some(low.1 + part * (high.1 - low.1))
        }
        (None, _, last) => last.map(|point| point.1),
    }
}
