//! Throughput as a function of an allocation, in both families of the field.
//!
//! Synergy's family: sensitivity to CPUs and memory per GPU (`HostCurve`). ElasticFlow's family: iterations per
//! second by GPU count and batch (`ScaleCurve`). A profile may have either, both or none; GPU type, spread over
//! nodes and storage rate bend the result. Files in which profiles are written are read elsewhere.

use crate::resources::Host;
use crate::time::Span;

/// What is known about a model's speed.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Profile {
    /// The model's name.
    pub name: String,
    /// Its class in workload splits: `vision`, `language`, `speech`, or whatever a user groups by.
    pub class: String,
    /// Where the numbers come from.
    pub source: String,
    /// Batch size the base rate was measured with; 0 when it is not known.
    pub batch: u32,
    /// Iterations per second of a job at its proportional share, where no scale curve says otherwise.
    pub base_rate: f64,
    /// Sensitivity to CPUs and memory; `None` is insensitive.
    pub host: Option<HostCurve>,
    /// Iterations per second by GPU count, for GPU types and batches; empty scales perfectly at constant rate.
    pub scale: Vec<ScaleCurve>,
    /// Iterations per second while another job has the same GPUs at the same time; what is not listed was not measured, or does
    /// not fit.
    #[serde(default)]
    pub beside: Vec<Beside>,
    /// Speed by GPU type relative to the one the rates were measured on; unlisted types count 1.
    pub gpu_speed: Vec<(String, f64)>,
    /// Factor for a job spread over 2, 3, … nodes; the last one holds for more; empty is no loss.
    pub spread: Vec<f64>,
    /// What one GPU's worth of the job asks for to run at its best: the knee of the curve.
    pub demand_per_gpu: Host,
    /// Storage rate needed per GPU at full speed, by memory per GPU in bytes, ascending; empty needs none.
    pub storage_need: Vec<(u64, u64)>,
    /// GPU memory one worker needs, in bytes; 0 when it is not known.
    pub gpu_mem_bytes: u64,
    /// Time lost when a job starts again or changes its GPUs.
    pub restart: Span,
    /// Time to write a checkpoint before a job is stopped.
    pub checkpoint: Span,
}

/// Relative speed over a grid of CPUs and memory per GPU; linear between the points, flat outside.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct HostCurve {
    cpus: Vec<f64>,
    mem_gb: Vec<f64>,
    speed: Vec<f64>,
}

/// Iterations per second by GPU count for one GPU type and global batch size.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ScaleCurve {
    /// GPU type these numbers hold for; empty holds for any.
    pub gpu_type: String,
    /// Global batch size.
    pub batch: u32,
    /// (GPUs, iterations per second), ascending by GPUs; all rates positive.
    pub points: Vec<(u32, f64)>,
}

/// Iterations per second of one batch of a model, on so many GPUs of a type, beside another job on the same GPUs.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Beside {
    /// GPU type these numbers hold for.
    pub gpu_type: String,
    /// How many GPUs both have.
    pub gpus: u32,
    /// Global batch size of this model.
    pub batch: u32,
    /// The other's model and global batch size, and this one's rate, which is positive; by ascending model and batch.
    pub rates: Vec<(String, u32, f64)>,
}

impl Beside {
    /// The rate beside a model and batch.
    fn rate(&self, model: &str, batch: u32) -> Option<f64> {
        let found =
            self.rates.binary_search_by(|(name, other, _)| (name.as_str(), *other).cmp(&(model, batch)));
        found.ok().map(|at| self.rates[at].2)
    }
}

/// What a profile needs to know of an allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape<'a> {
    /// GPUs in all.
    pub gpus: u32,
    /// Nodes they are on.
    pub n_nodes: u32,
    /// The least any worker gets per GPU: training in step waits for the slowest.
    pub per_gpu: Host,
    /// GPU type.
    pub gpu_type: &'a str,
    /// Global batch size of the job; 0 takes the profile's.
    pub batch: u32,
}

/// A grid that is no grid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("speed grid: {why}")]
pub struct CurveError {
    /// What is wrong with it.
    pub why: String,
}

impl HostCurve {
    /// `speed` has one row for each CPU count and one column for each memory size.
    pub fn new(cpus: Vec<f64>, mem_gb: Vec<f64>, speed: Vec<Vec<f64>>) -> Result<Self, CurveError> {
        let wrong = |why: String| Err(CurveError { why });
        for (axis, values) in [("CPU", &cpus), ("memory", &mem_gb)] {
            if values.is_empty()
                || !values.windows(2).all(|w| w[0] < w[1])
                || !values.iter().all(|v| v.is_finite() && *v >= 0.0)
            {
                return wrong(format!("{axis} levels must ascend and be finite, got {values:?}"));
            }
        }
        if speed.len() != cpus.len() || speed.iter().any(|row| row.len() != mem_gb.len()) {
            return wrong(format!(
                "{} rows for {} CPU levels x {} memory levels",
                speed.len(),
                cpus.len(),
                mem_gb.len()
            ));
        }
        let speed: Vec<f64> = speed.into_iter().flatten().collect();
        match speed.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
            Some(bad) => wrong(format!("speeds must be positive, got {bad}")),
            None => Ok(HostCurve { cpus, mem_gb, speed }),
        }
    }

    /// CPU levels per GPU.
    pub fn cpus(&self) -> &[f64] {
        &self.cpus
    }

    /// Memory levels per GPU, in gigabytes.
    pub fn mem_gb(&self) -> &[f64] {
        &self.mem_gb
    }

    /// The grid's own value at a pair of levels.
    pub fn at_level(&self, cpu: usize, mem: usize) -> f64 {
        self.speed[cpu * self.mem_gb.len() + mem]
    }

    /// Relative speed at any point.
    pub fn at(&self, cpus: f64, mem_gb: f64) -> f64 {
        let (c, cf) = bracket(&self.cpus, cpus);
        let (m, mf) = bracket(&self.mem_gb, mem_gb);
        let row = |c: usize| {
            let left = self.at_level(c, m);
            if mf == 0.0 { left } else { left + mf * (self.at_level(c, m + 1) - left) }
        };
        let low = row(c);
        if cf == 0.0 { low } else { low + cf * (row(c + 1) - low) }
    }
}

/// The level at or below `x` and how far `x` is on the way to the next, 0 outside the range.
fn bracket(levels: &[f64], x: f64) -> (usize, f64) {
    let above = levels.iter().position(|l| *l > x).unwrap_or(levels.len());
    match above {
        0 => (0, 0.0),
        n if n == levels.len() => (n - 1, 0.0),
        n => (n - 1, (x - levels[n - 1]) / (levels[n] - levels[n - 1])),
    }
}

impl ScaleCurve {
    /// Iterations per second with that many GPUs: exact at a point, linear between, proportional below the
    /// first, flat past the last.
    pub fn rate(&self, gpus: u32) -> f64 {
        match self.points.iter().position(|p| p.0 >= gpus) {
            Some(i) if self.points[i].0 == gpus => self.points[i].1,
            Some(0) => self.points[0].1 * f64::from(gpus) / f64::from(self.points[0].0.max(1)),
            Some(i) => {
                let (g0, r0) = self.points[i - 1];
                let (g1, r1) = self.points[i];
                r0 + (r1 - r0) * f64::from(gpus - g0) / f64::from(g1 - g0)
            }
            None => self.points.last().map_or(0.0, |p| p.1),
        }
    }
}

impl Profile {
    /// A profile with nothing but a rate: no sensitivity, no loss, no cost. Tests and simple traces start here.
    pub fn plain(name: impl Into<String>, base_rate: f64) -> Self {
        Profile {
            name: name.into(),
            class: String::new(),
            source: String::new(),
            batch: 0,
            base_rate,
            host: None,
            scale: Vec::new(),
            beside: Vec::new(),
            gpu_speed: Vec::new(),
            spread: Vec::new(),
            demand_per_gpu: Host::NONE,
            storage_need: Vec::new(),
            gpu_mem_bytes: 0,
            restart: Span::ZERO,
            checkpoint: Span::ZERO,
        }
    }

    /// The same model, `pace` times as fast whatever it holds.
    pub fn at_pace(&self, pace: f64) -> Self {
        let mut paced = self.clone();
        paced.base_rate *= pace;
        let points = paced.scale.iter_mut().flat_map(|curve| &mut curve.points);
        points.for_each(|point| point.1 *= pace);
        paced.beside.iter_mut().flat_map(|beside| &mut beside.rates).for_each(|rate| rate.2 *= pace);
        paced
    }

    /// The scale curve for a GPU type and batch: exact type first, then one for any type.
    pub fn scale_curve(&self, gpu_type: &str, batch: u32) -> Option<&ScaleCurve> {
        let batch = if batch == 0 { self.batch } else { batch };
        let of = |t: &str| self.scale.iter().find(|c| c.batch == batch && c.gpu_type == t);
        of(gpu_type).or_else(|| of(""))
    }

    /// Iterations per second of a job with that allocation.
    pub fn rate(&self, shape: &Shape<'_>) -> f64 {
        if shape.gpus == 0 {
            return 0.0;
        }
        let base = match self.scale_curve(shape.gpu_type, shape.batch) {
            Some(curve) => curve.rate(shape.gpus),
            None => self.base_rate,
        };
        base * self.host_factor(&shape.per_gpu)
            * self.spread_factor(shape.n_nodes)
            * self.type_factor(shape.gpu_type)
            * self.storage_factor(&shape.per_gpu)
    }

    /// Iterations per second of a job with that allocation while one of another model and batch has the same GPUs; 0 where
    /// either was not measured beside the other.
    pub fn rate_beside(&self, shape: &Shape<'_>, mate: &Profile, mate_batch: u32) -> f64 {
        let batch_of = |profile: &Profile, batch: u32| if batch == 0 { profile.batch } else { batch };
        let (own, others) = (batch_of(self, shape.batch), batch_of(mate, mate_batch));
        let (Some(rate), Some(_)) = (
            self.measured_beside(shape, own, &mate.name, others),
            mate.measured_beside(shape, others, &self.name, own),
        ) else {
            return 0.0;
        };
        rate * self.host_factor(&shape.per_gpu)
            * self.spread_factor(shape.n_nodes)
            * self.storage_factor(&shape.per_gpu)
    }

    fn measured_beside(&self, shape: &Shape<'_>, batch: u32, model: &str, others: u32) -> Option<f64> {
        let is_it = |beside: &&Beside| {
            beside.gpus == shape.gpus && beside.batch == batch && beside.gpu_type == shape.gpu_type
        };
        self.beside.iter().find(is_it)?.rate(model, others)
    }

    fn host_factor(&self, per_gpu: &Host) -> f64 {
        self.host.as_ref().map_or(1.0, |curve| curve.at(per_gpu.cpus(), per_gpu.mem_gb()))
    }

    fn spread_factor(&self, n_nodes: u32) -> f64 {
        match (n_nodes, self.spread.last()) {
            (0 | 1, _) | (_, None) => 1.0,
            (n, Some(last)) => *self.spread.get(n as usize - 2).unwrap_or(last),
        }
    }

    fn type_factor(&self, gpu_type: &str) -> f64 {
        self.gpu_speed.iter().find(|(t, _)| t == gpu_type).map_or(1.0, |(_, factor)| *factor)
    }

    /// A job that needs more storage rate than it holds waits for data in proportion.
    fn storage_factor(&self, per_gpu: &Host) -> f64 {
        let need = self
            .storage_need
            .iter()
            .rev()
            .find(|(mem, _)| *mem <= per_gpu.mem_bytes)
            .or(self.storage_need.first());
        match need {
            Some((_, bps)) if *bps > per_gpu.storage_bps => per_gpu.storage_bps as f64 / *bps as f64,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(gpus: u32, cpus: f64, mem: f64) -> Shape<'static> {
        Shape { gpus, n_nodes: 1, per_gpu: Host::from_units(cpus, mem, 50.0), gpu_type: "V100", batch: 0 }
    }

    fn grid() -> Profile {
        let curve = HostCurve::new(vec![1.0, 3.0], vec![20.0, 60.0], vec![vec![0.1, 0.5], vec![0.1, 1.0]])
            .expect("a grid");
        Profile { host: Some(curve), ..Profile::plain("m", 2.0) }
    }

    #[test]
    fn grid_points_are_exact_and_between_them_it_is_linear() {
        assert_eq!(grid().rate(&shape(1, 3.0, 60.0)), 2.0);
        assert_eq!(grid().rate(&shape(1, 2.0, 60.0)), 1.5);
        assert_eq!(grid().rate(&shape(1, 99.0, 99.0)), 2.0, "flat outside");
        assert_eq!(grid().rate(&shape(1, 0.5, 1.0)), 0.2, "flat outside");
    }

    #[test]
    fn a_job_short_of_storage_waits_in_proportion() {
        let profile = Profile {
            storage_need: vec![(0, 100_000_000), (60_000_000_000, 25_000_000)],
            ..Profile::plain("m", 1.0)
        };
        assert_eq!(profile.rate(&shape(1, 1.0, 10.0)), 0.5, "50 of 100 MB/s");
        assert_eq!(profile.rate(&shape(1, 1.0, 60.0)), 1.0, "memory caches the data set");
    }

    #[test]
    fn scale_curves_are_chosen_by_type_and_batch() {
        let curve = |gpu_type: &str, rate: f64| ScaleCurve {
            gpu_type: gpu_type.into(),
            batch: 64,
            points: vec![(1, rate), (4, 3.0 * rate)],
        };
        let profile = Profile {
            scale: vec![curve("", 1.0), curve("V100", 2.0)],
            batch: 64,
            ..Profile::plain("m", 9.0)
        };
        assert_eq!(profile.rate(&shape(1, 1.0, 1.0)), 2.0);
        assert_eq!(profile.rate(&shape(2, 1.0, 1.0)), 2.0 + 4.0 / 3.0);
        assert_eq!(profile.rate(&shape(8, 1.0, 1.0)), 6.0);
        assert_eq!(profile.rate(&Shape { gpu_type: "T4", ..shape(1, 1.0, 1.0) }), 1.0);
        assert_eq!(profile.rate(&Shape { batch: 7, ..shape(1, 1.0, 1.0) }), 9.0, "no curve for that batch");
    }

    #[test]
    fn spread_and_type_bend_the_rate() {
        let profile = Profile {
            spread: vec![0.9, 0.5],
            gpu_speed: vec![("T4".into(), 0.25)],
            ..Profile::plain("m", 4.0)
        };
        let on = |n_nodes, gpu_type| profile.rate(&Shape { n_nodes, gpu_type, ..shape(4, 1.0, 1.0) });
        assert_eq!((on(1, "V100"), on(2, "V100"), on(3, "V100"), on(7, "V100")), (4.0, 3.6, 2.0, 2.0));
        assert_eq!(on(1, "T4"), 1.0);
    }

    #[test]
    fn two_are_as_fast_beside_each_other_as_was_measured_of_both() {
        let with = |name: &str, other: &str, rate| Profile {
            batch: 8,
            beside: vec![Beside {
                gpu_type: "V100".into(),
                gpus: 2,
                batch: 8,
                rates: vec![(other.into(), 8, rate)],
            }],
            spread: vec![0.5],
            ..Profile::plain(name, 9.0)
        };
        let (a, b) = (with("a", "b", 3.0), with("b", "a", 4.0));
        assert_eq!(a.rate_beside(&shape(2, 1.0, 1.0), &b, 0), 3.0);
        assert_eq!(b.rate_beside(&Shape { n_nodes: 2, ..shape(2, 1.0, 1.0) }, &a, 8), 2.0, "spread");
        let unmeasured = [
            a.rate_beside(&shape(1, 1.0, 1.0), &b, 0),
            a.rate_beside(&shape(2, 1.0, 1.0), &b, 9),
            a.rate_beside(&shape(2, 1.0, 1.0), &a, 0),
            a.rate_beside(&Shape { gpu_type: "T4", ..shape(2, 1.0, 1.0) }, &b, 0),
            a.rate_beside(&shape(2, 1.0, 1.0), &Profile::plain("b", 1.0), 8),
        ];
        assert_eq!(unmeasured, [0.0; 5]);
    }

    #[test]
    fn crooked_grids_are_refused() {
        assert!(HostCurve::new(vec![2.0, 1.0], vec![1.0], vec![vec![1.0], vec![1.0]]).is_err());
        assert!(HostCurve::new(vec![1.0], vec![1.0], vec![vec![1.0, 2.0]]).is_err());
        assert!(HostCurve::new(vec![1.0], vec![1.0], vec![vec![f64::NAN]]).is_err());
        assert!(HostCurve::new(vec![1.0], vec![1.0], vec![vec![0.0]]).is_err());
    }
}
