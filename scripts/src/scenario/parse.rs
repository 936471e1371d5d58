//! Reading scenarios.

use std::sync::Arc;

use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::ids::{DatasetId, JobId, NodeId, TenantId};
use rota_core::job::{Deadline, GpuRequest, JobSpec};
use rota_core::profile::{Profile, ScaleCurve};
use rota_core::resources::{GB, Host};
use rota_core::time::{Span, Time};
use rota_core::workload::{Dataset, Truth, Workload};

use super::error::{LineError, ScenarioError};
use super::needs::{self, Need};

/// One scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it shows, as its first line says.
    pub name: String,
    /// The policy, as users write it.
    pub policy: String,
    /// Parameters set, in order.
    pub set: Vec<(String, String)>,
    /// The nodes it runs on.
    pub cluster: Arc<Cluster>,
    /// The jobs, whose estimates are exact.
    pub workload: Arc<Workload>,
    /// Time between rounds.
    pub round: Span,
    /// How many decisions are compared.
    pub n_rounds: usize,
    /// The expected line of each decision.
    pub expected: Vec<String>,
}

/// Reads all scenarios of a text.
pub fn parse(text: &str) -> Result<Vec<Scenario>, ScenarioError> {
    let mut drafts: Vec<Draft> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let written = line.trim();
        let wrong = |why: LineError| ScenarioError { line: index + 1, text: written.to_owned(), why };
        if let Some(name) = written.strip_prefix("scenario:") {
            drafts.push(Draft::new(name.trim(), index + 1));
            continue;
        }
        if written.is_empty() || written.starts_with('#') {
            continue;
        }
        match drafts.last_mut() {
            Some(draft) => draft.read(written).map_err(wrong)?,
            None => return Err(wrong(LineError::NotBegun)),
        }
    }
    drafts.into_iter().map(Draft::finish).collect()
}

/// A scenario being read.
struct Draft {
    name: String,
    line: usize,
    policy: String,
    set: Vec<(String, String)>,
    groups: Vec<NodeGroup>,
    jobs: Vec<JobSpec>,
    tenants: Vec<String>,
    datasets: Vec<Dataset>,
    round: Span,
    n_rounds: usize,
    is_expecting: bool,
    expected: Vec<String>,
}

impl Draft {
    fn new(name: &str, line: usize) -> Draft {
        Draft {
            name: name.to_owned(),
            line,
            policy: String::new(),
            set: Vec::new(),
            groups: Vec::new(),
            jobs: Vec::new(),
            tenants: Vec::new(),
            datasets: Vec::new(),
            round: Span::from_secs(300),
            n_rounds: 1,
            is_expecting: false,
            expected: Vec::new(),
        }
    }

    fn read(&mut self, line: &str) -> Result<(), LineError> {
        if line.starts_with("----") {
            self.is_expecting = true;
            return Ok(());
        }
        if self.is_expecting {
            self.expected.push(line.to_owned());
            return Ok(());
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "cluster" => self.groups.push(group(rest)?),
            "data" => self.datasets.push(dataset(rest)?),
            "job" => {
                let job = self.job(rest)?;
                self.jobs.push(job);
            }
            "policy" => self.policy = rest.to_owned(),
            "set" => {
                let (key, value) = rest.split_once('=').ok_or(LineError::Form("set name=value"))?;
                self.set.push((key.trim().to_owned(), value.trim().to_owned()));
            }
            "round" => self.round = Span::parse(rest)?,
            "rounds" => self.n_rounds = rest.parse().map_err(|_| LineError::Rounds)?,
            _ => {
                return Err(LineError::UnknownLine);
            }
        }
        Ok(())
    }

    /// `name gpus=2 speeds=1:1,2:1.8 work=600 at=300 cpus=6 mem=50 tenant=a priority=1 data=imagenet deadline=900`, and
    /// `cpus=1:0.4,3:1,9:2.4 mem=10:0.1,50:1` for a job whose speed depends on them, `spread=0.9,0.5` for one that is
    /// slower on two nodes or more, `restart=60` for one that pays to start again.
    fn job(&mut self, text: &str) -> Result<JobSpec, LineError> {
        let mut words = text.split_whitespace();
        let name = words.next().ok_or(LineError::NoName)?;
        let mut profile = Profile::plain("model", 1.0);
        let (mut cpus, mut mem) = (Need::of(1.0), Need::of(10.0));
        let mut spec = JobSpec {
            id: JobId::from(self.jobs.len()),
            name: name.into(),
            tenant: TenantId(0),
            priority: 0,
            profile: Arc::new(profile.clone()),
            batch: 0,
            gpus: GpuRequest::fixed(1),
            gpu_type: None,
            estimated_work: 300.0,
            arrival: Time::ZERO,
            deadline: Deadline::None,
            dataset: None,
            costs: None,
        };
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| piece(word, "name=value"))?;
            match key {
                "gpus" => spec.gpus = GpuRequest::fixed(number(value)? as u32),
                "speeds" => (spec.gpus, profile.scale) = speeds(value)?,
                "work" => spec.estimated_work = number(value)?,
                "at" => spec.arrival = Time::from_secs_f64(number(value)?),
                "cpus" => cpus = Need::parse(value)?,
                "mem" => mem = Need::parse(value)?,
                "spread" => profile.spread = value.split(',').map(factor).collect::<Result<_, _>>()?,
                "restart" => profile.restart = Span::from_secs_f64(number(value)?),
                "tenant" => spec.tenant = TenantId::from(intern(&mut self.tenants, value)),
                "priority" => {
                    spec.priority = value.parse().map_err(|_| LineError::Priority(value.to_owned()))?
                }
                "deadline" => spec.deadline = deadline(value)?,
                "data" => {
                    let place = self.datasets.iter().position(|d| d.name == value);
                    spec.dataset = Some(DatasetId::from(
                        place.ok_or_else(|| LineError::UnknownDataset(value.to_owned()))?,
                    ));
                }
                _ => {
                    return Err(LineError::UnknownProperty(key.to_owned()));
                }
            }
        }
        profile.demand_per_gpu = Host::from_units(cpus.demand, mem.demand, 0.0);
        profile.host = needs::curve(&cpus, &mem)?;
        spec.profile = Arc::new(profile);
        Ok(spec)
    }

    fn finish(self) -> Result<Scenario, ScenarioError> {
        let wrong =
            |why: LineError| ScenarioError { line: self.line, text: format!("scenario: {}", self.name), why };
        let cluster = Cluster::new("scenario", &self.groups).map_err(|error| wrong(error.into()))?;
        let truths = self.jobs.iter().map(|job| Truth::of(job.estimated_work)).collect();
        let jobs = self.jobs.iter().cloned().map(Arc::new).collect();
        let workload =
            Workload { jobs, truths, tenants: self.tenants.clone(), datasets: self.datasets.clone() };
        workload.check().map_err(|error| wrong(error.into()))?;
        Ok(Scenario {
            cluster: Arc::new(cluster),
            workload: Arc::new(workload),
            name: self.name,
            policy: self.policy,
            set: self.set,
            round: self.round,
            n_rounds: self.n_rounds,
            expected: self.expected,
        })
    }
}

/// `1:1,2:1.8,4:3`: iterations per second by GPUs, for an elastic job.
fn speeds(text: &str) -> Result<(GpuRequest, Vec<ScaleCurve>), LineError> {
    let mut points: Vec<(u32, f64)> = Vec::new();
    for point in text.split(',') {
        let (gpus, rate) = point.split_once(':').ok_or_else(|| piece(point, "gpus:speed"))?;
        points.push((number(gpus)? as u32, number(rate)?));
    }
    let levels: Box<[u32]> = points.iter().map(|point| point.0).collect();
    let gpus = GpuRequest { asked: levels.first().copied().unwrap_or(1), levels };
    Ok((gpus, vec![ScaleCurve { gpu_type: String::new(), batch: 0, points }]))
}

/// `2 nodes, 4 gpus, 12 cpus, 200 GB[, 50 GB cache][, 2 racks]`
fn group(text: &str) -> Result<NodeGroup, LineError> {
    let mut group = NodeGroup {
        count: 1,
        racks: 1,
        gpu_type: "V100".into(),
        n_gpus: 1,
        gpu_mem_bytes: 0,
        host: Host::NONE,
        cache_bytes: 0,
        fetch_bps: GB,
    };
    let (mut cpus, mut mem) = (0.0, 0.0);
    for piece in text.split(',') {
        let (amount, unit) =
            piece.trim().split_once(' ').ok_or(LineError::Form("2 nodes, 4 gpus, 12 cpus, 200 GB"))?;
        let amount = number(amount)?;
        match unit.trim() {
            "node" | "nodes" => group.count = amount as u32,
            "rack" | "racks" => group.racks = amount as u32,
            "gpu" | "gpus" => group.n_gpus = amount as u32,
            "cpu" | "cpus" => cpus = amount,
            "GB" => mem = amount,
            "GB cache" => group.cache_bytes = (amount * GB as f64) as u64,
            other => {
                return Err(LineError::UnknownUnit(other.to_owned()));
            }
        }
    }
    group.host = Host::from_units(cpus, mem, 0.0);
    Ok(group)
}

/// One time is strict; `600:10,900:5` are the steps of a soft one with their values.
fn deadline(text: &str) -> Result<Deadline, LineError> {
    if !text.contains(':') {
        return Ok(Deadline::Strict(Time::from_secs_f64(number(text)?)));
    }
    let step = |step: &str| {
        let (time, value) = step.split_once(':').ok_or_else(|| piece(step, "time:value"))?;
        Ok((Time::from_secs_f64(number(time)?), number(value)?))
    };
    text.split(',').map(step).collect::<Result<_, LineError>>().map(Deadline::Soft)
}

/// `imagenet 10 GB [on 1]`
fn dataset(text: &str) -> Result<Dataset, LineError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [name, size, "GB", home @ ..] => {
            let home = match home {
                [] => None,
                ["on", node] => Some(NodeId(number(node)? as u32)),
                _ => return Err(LineError::Form("data name 10 GB on 1")),
            };
            Ok(Dataset { name: (*name).to_owned(), bytes: (number(size)? * GB as f64) as u64, home })
        }
        _ => Err(LineError::Form("data name 10 GB")),
    }
}

fn factor(text: &str) -> Result<f64, LineError> {
    match number(text)? {
        0.0 => Err(LineError::NeverEnds),
        factor => Ok(factor),
    }
}

pub(super) fn piece(text: &str, form: &'static str) -> LineError {
    LineError::Piece { text: text.to_owned(), form }
}

pub(super) fn number(text: &str) -> Result<f64, LineError> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(LineError::NotAnAmount(text.to_owned())),
    }
}

fn intern(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}
