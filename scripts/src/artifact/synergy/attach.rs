//! What the original works out when a job is created: its demand cut to a server, and its speed at that demand.

use std::collections::BTreeMap;

use rota_core::cluster::Cluster;
use rota_core::job::JobSpec;
use rota_core::resources::Host;

use super::error::ArtifactError;
use crate::artifact::{Defect, Defects};

/// Storage rate of every GPU of every model, MB/s: the original stores its models' own numbers under a misspelt name.
const STORAGE_PER_GPU: f64 = 62.5;

/// GPU counts for which the original has a profile.
const COUNTS: [u32; 5] = [1, 2, 4, 8, 16];

/// A model as the original knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Seconds of one iteration at the proportional share.
    pub iteration_s: f64,
    /// Speed at the ideal demand relative to that.
    pub ideal_speedup: f64,
}

/// Models by name.
pub type Models = BTreeMap<String, Model>;

/// One server, in the original's units; all are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Server {
    gpus: f64,
    /// CPUs, gigabytes, megabytes per second.
    host: [f64; 3],
}

/// A job with what the original attached to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Attached {
    /// Seconds of one iteration at the proportional share, whatever the GPU count.
    pub(super) iteration_s: f64,
    /// Speed at `demand` relative to the proportional share.
    pub(super) speedup: f64,
    /// CPUs, gigabytes, megabytes per second, in all.
    pub(super) demand: [f64; 3],
    /// The same for one GPU, as the walk takes it.
    pub(super) per_gpu: Host,
}

impl Server {
    pub(super) fn of(cluster: &Cluster) -> Result<Self, ArtifactError> {
        let mut nodes = cluster.nodes().iter();
        let Some(first) = nodes.next() else { return Err(ArtifactError::MixedCluster { node: 0 }) };
        let differs = |n: &&rota_core::cluster::Node| {
            n.n_gpus != first.n_gpus || n.host != first.host || n.gpu_type != first.gpu_type
        };
        if let Some(other) = nodes.find(differs) {
            return Err(ArtifactError::MixedCluster { node: other.id.0 });
        }
        let host = [first.host.cpus(), first.host.mem_gb(), first.host.storage_mb_per_s()];
        Ok(Server { gpus: f64::from(first.n_gpus), host })
    }

    /// Works out a job's demand and speed.
    pub(super) fn attach(
        &self,
        job: &JobSpec,
        models: &Models,
        defects: Defects,
    ) -> Result<Attached, ArtifactError> {
        let name = || job.name.to_string();
        let asked = job.gpus.asked;
        if !COUNTS.contains(&asked) {
            return Err(ArtifactError::OddCount { job: name(), gpus: asked });
        }
        let Some(model) = models.get(&job.profile.name) else {
            return Err(ArtifactError::UnknownModel { job: name(), model: job.profile.name.clone() });
        };
        let per_gpu = &job.profile.demand_per_gpu;
        let gpus = f64::from(asked);
        let storage =
            if defects.has(Defect::StorageRate) { STORAGE_PER_GPU } else { per_gpu.storage_mb_per_s() };
        let ideal = [gpus * per_gpu.cpus(), gpus * per_gpu.mem_gb(), gpus * storage];
        let (demand, speedup) = self.cut(gpus, ideal, model.ideal_speedup);
        // With measured speeds the straight line is not used.
        let speedup = speedup.or_else(|| (!defects.has(Defect::TwoSpeeds)).then_some(1.0));
        let speedup = speedup.ok_or_else(|| ArtifactError::NoSlope { job: name() })?;
        let [cpus, mem_gb, storage] = demand.map(|d| d / gpus);
        Ok(Attached {
            iteration_s: model.iteration_s,
            speedup,
            demand,
            per_gpu: Host::from_units(cpus, mem_gb, storage),
        })
    }

    /// Cuts a demand to a server, resource by resource, and lowers the speed on a straight line in CPUs alone
    /// between the proportional share and the ideal; no speed when that line has no length.
    fn cut(&self, gpus: f64, ideal: [f64; 3], ideal_speedup: f64) -> ([f64; 3], Option<f64>) {
        let (mut demand, mut speedup, mut is_cut) = (ideal, ideal_speedup, false);
        for (demand, has) in demand.iter_mut().zip(self.host) {
            if *demand > has {
                *demand = has;
                is_cut = true;
                if gpus > self.gpus {
                    *demand = gpus * (has / self.gpus);
                    speedup = 1.0;
                    is_cut = false;
                }
            }
        }
        if is_cut {
            let fair = gpus * (self.host[0] / self.gpus);
            let length = ideal[0] - fair;
            if length == 0.0 {
                return (demand, None);
            }
            speedup = 1.0 + (speedup - 1.0) / length * (demand[0] - fair);
        }
        (demand, Some(speedup))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Server = Server { gpus: 8.0, host: [24.0, 500.0, 500.0] };

    fn check(per_gpu: [f64; 2], speedup: f64, expected: [(f64, f64, f64); 5]) {
        for (gpus, (cpus, mem_gb, speed)) in COUNTS.map(f64::from).into_iter().zip(expected) {
            let ideal = [gpus * per_gpu[0], gpus * per_gpu[1], gpus * STORAGE_PER_GPU];
            let (demand, got) = SERVER.cut(gpus, ideal, speedup);
            let got = got.expect("a slope");
            assert_eq!((demand[0], demand[1]), (cpus, mem_gb), "{gpus} GPUs");
            assert!((got - speed).abs() < 1e-6, "{gpus} GPUs: speed {got}, expected {speed}");
        }
    }

    #[test]
    fn demands_are_cut_to_a_server_and_speeds_follow_the_cpus() {
        let alexnet = [
            (12.0, 125.0, 2.94),
            (24.0, 250.0, 2.94),
            (24.0, 500.0, 1.646667),
            (24.0, 500.0, 1.0),
            (48.0, 1000.0, 1.0),
        ];
        check([12.0, 125.0], 2.94, alexnet);
        let language =
            [(1.0, 20.0, 1.0), (2.0, 40.0, 1.0), (4.0, 80.0, 1.0), (8.0, 160.0, 1.0), (16.0, 320.0, 1.0)];
        check([1.0, 20.0], 1.0, language);
    }

    #[test]
    fn memory_alone_does_not_slow_a_cut_job_down() {
        assert_eq!(SERVER.cut(4.0, [24.0, 750.0, 250.0], 2.5), ([24.0, 500.0, 250.0], Some(2.5)));
    }

    #[test]
    fn a_line_without_length_is_refused() {
        let server = Server { host: [48.0, 500.0, 500.0], ..SERVER };
        assert_eq!(server.cut(4.0, [24.0, 750.0, 250.0], 2.5).1, None);
    }
}
