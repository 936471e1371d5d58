//! The workloads of golden/milp/synergy (`*.json`) as problems of this crate.

use std::path::Path;

use rota_solvers::synergy_opt::{Demand, Level, LevelJob, LevelProblem, PlacementProblem, Server};
use serde_json::Value;

pub(crate) struct Workload {
    pub(crate) name: String,
    json: Value,
}

/// All workloads, by name.
pub(crate) fn workloads(folder: &Path) -> Vec<Workload> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    paths.sort();
    let load = |path: &std::path::PathBuf| Workload {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        json: serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(),
    };
    paths.iter().map(load).collect()
}

/// The objective the index has for a file; `None` without such a file, infinity for an infeasible one.
pub(crate) fn index(folder: &Path, file: &str) -> Option<f64> {
    let text = std::fs::read_to_string(folder.join("index.csv")).unwrap();
    let mut lines = text.lines();
    let titles: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |title: &str| titles.iter().position(|t| *t == title).unwrap();
    let fields: Vec<&str> = lines.map(|line| line.split(',').collect()).find(|f: &Vec<&str>| f[0] == file)?;
    if fields[at("status")] == "Infeasible" {
        return Some(f64::INFINITY);
    }
    Some(fields[at("mps_objective")].parse().unwrap())
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

impl Workload {
    fn number(&self, key: &str) -> f64 {
        self.json[key].as_f64().unwrap()
    }

    /// Phase 1 as the original states it: levels per GPU, fair share 3 CPUs and 62.5 GB per GPU.
    pub(crate) fn level_problem(&self) -> LevelProblem {
        let (cpu_levels, memory_levels) =
            (numbers(&self.json["cpu_levels"]), numbers(&self.json["mem_levels"]));
        let servers = self.number("servers");
        let job = |job: &Value| {
            let gpus = job["gpus"].as_f64().unwrap();
            let table = &self.json["tput"][job["model"].as_str().unwrap()];
            let mut levels = Vec::new();
            let mut floor = 0.0;
            for (c, &cpus) in cpu_levels.iter().enumerate() {
                for (m, throughput) in numbers(&table[c]).into_iter().enumerate() {
                    let memory = memory_levels[m];
                    levels.push(Level { cpus: gpus * cpus, memory: gpus * memory, throughput });
                    if cpus == 3.0 && memory == 62.5 {
                        floor = throughput;
                    }
                }
            }
            LevelJob { levels, floor }
        };
        LevelProblem {
            cpus: servers * self.number("cpu_per_server"),
            memory: servers * self.number("mem_per_server"),
            jobs: self.json["jobs"].as_array().unwrap().iter().map(job).collect(),
        }
    }

    /// Phase 2 with the demands the original's phase 1 chose.
    pub(crate) fn placement_problem(&self) -> PlacementProblem {
        let server = Server {
            gpus: self.number("gpu_per_server") as u32,
            cpus: self.number("cpu_per_server"),
            memory: self.number("mem_per_server"),
        };
        let job = |job: &Value| Demand {
            gpus: job["gpus"].as_f64().unwrap() as u32,
            cpus: job["phase1_ilp_cpu"].as_f64().unwrap(),
            memory: job["phase1_ilp_mem"].as_f64().unwrap(),
        };
        PlacementProblem {
            servers: vec![server; self.number("servers") as usize],
            jobs: self.json["jobs"].as_array().unwrap().iter().map(job).collect(),
        }
    }
}
