//! A small cluster and a few jobs, in whole numbers: what is drawn, shrunk, and written as a scenario.
//!
//! A case is run as the scenario it is written as, so that what is printed is what was run.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use rota_core::cluster::Cluster;
use rota_core::time::Span;
use rota_core::workload::Workload;
use rota_scripts::scenario::{self, Scenario, ScenarioError};

/// Time between rounds in every case that is drawn, in seconds.
pub const ROUND_S: u32 = 300;

/// A cluster and its jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Like nodes, group by group.
    pub groups: Vec<Group>,
    /// By ascending arrival.
    pub jobs: Vec<Job>,
}

/// Like nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Number of nodes of this kind.
    pub nodes: u32,
    /// Number of racks they are spread over.
    pub racks: u32,
    /// GPUs of each.
    pub gpus: u32,
    /// CPUs of each.
    pub cpus: u32,
    /// Memory of each, in gigabytes.
    pub mem_gb: u32,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// GPUs it asks for.
    pub gpus: u32,
    /// Its work: seconds at speed 1.
    pub work_s: u32,
    /// When it arrives, in seconds.
    pub at_s: u32,
    /// How its speed depends on CPUs.
    pub cpus: Need,
    /// How its speed depends on memory, in gigabytes.
    pub mem_gb: Need,
    /// Its speed on several nodes, in hundredths; 100 is no loss.
    pub spread: u32,
    /// What starting again costs, in seconds.
    pub restart_s: u32,
}

/// How a job's speed depends on a resource, for each of its GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// It asks for this much, and its speed does not depend on it.
    Plain(u32),
    /// Its speed, in hundredths, at each amount.
    Curve(Vec<(u32, u32)>),
}

/// A case as the engine runs it.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Cluster that every run of the case starts with.
    pub cluster: Arc<Cluster>,
    /// Jobs with their true work.
    pub workload: Arc<Workload>,
    /// Time between rounds.
    pub round: Span,
}

impl From<&Scenario> for Setting {
    fn from(scenario: &Scenario) -> Setting {
        Setting {
            cluster: Arc::clone(&scenario.cluster),
            workload: Arc::clone(&scenario.workload),
            round: scenario.round,
        }
    }
}

impl Case {
    /// As the engine runs it.
    pub fn setting(&self) -> Result<Setting, ScenarioError> {
        let scenarios = scenario::parse(&self.scenario("case", "", &[], 1))?;
        let scenario = scenarios.first().expect("one scenario was written");
        Ok(Setting::from(scenario))
    }

    /// As a scenario without expectations.
    pub fn scenario(&self, name: &str, policy: &str, set: &[(String, String)], n_rounds: usize) -> String {
        let mut text = format!("scenario: {name}\n");
        for group in &self.groups {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "cluster {group}");
        }
        for (index, job) in self.jobs.iter().enumerate() {
            let _ = writeln!(text, "job {} {job}", job_name(index));
        }
        let _ = writeln!(text, "policy {policy}");
        for (key, value) in set {
            let _ = writeln!(text, "set {key}={value}");
        }
        let _ = writeln!(text, "round {ROUND_S}s\nrounds {n_rounds}");
        text
    }

    /// GPUs of the cluster.
    pub fn n_gpus(&self) -> u32 {
        self.groups.iter().map(|group| group.nodes * group.gpus).sum()
    }

    /// How complicated the case is for a reader: every step of shrinking makes it smaller.
    pub fn weight(&self) -> u64 {
        let groups = self.groups.iter().map(Group::weight).sum::<u64>();
        groups + self.jobs.iter().map(Job::weight).sum::<u64>()
    }
}

/// `a` to `z`, then `job27` and so on.
fn job_name(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index @ 0..26) => char::from(b'a' + index).to_string(),
        _ => format!("job{}", index + 1),
    }
}

impl Group {
    fn weight(&self) -> u64 {
        let numbers = number_weight(self.gpus) + number_weight(self.cpus) + number_weight(self.mem_gb);
        100 + 100 * u64::from(self.nodes) + 20 * u64::from(self.gpus + self.racks) + numbers
    }
}

impl Job {
    fn weight(&self) -> u64 {
        let costs = number_weight(self.restart_s) + number_weight(100 - self.spread.min(100));
        300 + 20 * u64::from(self.gpus)
            + number_weight(self.work_s)
            + 3 * number_weight(self.at_s)
            + self.cpus.weight()
            + self.mem_gb.weight()
            + 3 * costs
    }
}

impl Need {
    /// The amount with which the job runs at its best.
    pub fn demand(&self) -> u32 {
        match self {
            Need::Plain(demand) => *demand,
            Need::Curve(points) => {
                let best = points.iter().map(|point| point.1).max().unwrap_or(0);
                points.iter().find(|point| point.1 == best).map_or(0, |point| point.0)
            }
        }
    }

    fn weight(&self) -> u64 {
        match self {
            Need::Plain(demand) => number_weight(*demand),
            Need::Curve(points) => {
                let numbers = |point: &(u32, u32)| 10 + number_weight(point.0) + number_weight(point.1);
                20 + points.iter().map(numbers).sum::<u64>()
            }
        }
    }
}

/// Orders numbers by how many digits they need, then by size: 0, 1, 10, 300, 310, 317.
fn number_weight(number: u32) -> u64 {
    if number == 0 {
        return 0;
    }
    let digits = number.to_string().trim_end_matches('0').len() as u64;
    4 * digits + u64::from(number.ilog2())
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Group { nodes, racks, gpus, cpus, mem_gb } = self;
        write!(f, "{nodes} nodes, {gpus} gpus, {cpus} cpus, {mem_gb} GB")?;
        if *racks > 1 { write!(f, ", {racks} racks") } else { Ok(()) }
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gpus={} work={} cpus={} mem={}", self.gpus, self.work_s, self.cpus, self.mem_gb)?;
        if self.at_s > 0 {
            write!(f, " at={}", self.at_s)?;
        }
        if self.spread < 100 {
            write!(f, " spread={}", hundredths(self.spread))?;
        }
        if self.restart_s > 0 { write!(f, " restart={}", self.restart_s) } else { Ok(()) }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Plain(demand) => write!(f, "{demand}"),
            Need::Curve(points) => {
                let point = |point: &(u32, u32)| format!("{}:{}", point.0, hundredths(point.1));
                f.write_str(&points.iter().map(point).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// `0.4`, `1`, `2.35`.
fn hundredths(number: u32) -> String {
    (f64::from(number) / 100.0).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_written_as_a_scenario_that_is_read_back() {
        let job = Job {
            gpus: 2,
            work_s: 600,
            at_s: 300,
            cpus: Need::Curve(vec![(1, 40), (3, 100), (9, 235)]),
            mem_gb: Need::Plain(20),
            spread: 90,
            restart_s: 60,
        };
        let group = Group { nodes: 2, racks: 2, gpus: 4, cpus: 12, mem_gb: 200 };
        let case = Case { groups: vec![group], jobs: vec![job] };
        let text = case.scenario("one job", "fifo+tune", &[("key".to_owned(), "7".to_owned())], 3);
        assert!(text.ends_with("policy fifo+tune\nset key=7\nround 300s\nrounds 3\n"), "{text}");
        let line = "job a gpus=2 work=600 cpus=1:0.4,3:1,9:2.35 mem=20 at=300 spread=0.9 restart=60\n";
        assert!(text.contains("cluster 2 nodes, 4 gpus, 12 cpus, 200 GB, 2 racks\n"), "{text}");
        assert!(text.contains(line), "{text}");
        let setting = case.setting().expect("a scenario");
        assert_eq!(setting.cluster.n_gpus(), case.n_gpus());
        assert_eq!(setting.workload.jobs[0].demand_per_gpu(&setting.cluster).cpus(), 6.0, "cut to the node");
        assert_eq!(setting.workload.jobs[0].profile.demand_per_gpu.cpus(), 9.0);
    }

    #[test]
    fn short_and_small_numbers_weigh_less() {
        let ascending = [0, 1, 3, 10, 300, 310, 317];
        assert!(ascending.windows(2).all(|pair| number_weight(pair[0]) < number_weight(pair[1])));
    }
}
