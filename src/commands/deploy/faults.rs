//! Failures on a live cluster of emulated agents, at the times of a fault file.
//!
//! What fails really fails: a node's processes are ended, and the head is told that nothing runs there any more, as a fencing device would
//! tell it; a GPU is marked as bad, a node as slow, in the files by which an operator tries that out; lost checkpoints are deleted.
//! This program must be able to end the cluster's processes, so it has to be one that `rota up` started on this machine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rota_core::cluster::Cluster;
use rota_core::fault::{Change, Fault};
use rota_core::ids::NodeId;
use rota_core::time::Time;
use rota_transport::message::FromUser;
use rota_transport::value::Name;

use super::super::live::{AgentProcess, Client, fetch_nodes, local_agents};

/// The longest that a node may take to be gone, or back.
const PATIENCE: Duration = Duration::from_secs(60);

/// What fails during a deployment.
pub(super) struct Breaker {
    cluster: Arc<Cluster>,
    nodes: BTreeMap<NodeId, LocalNode>,
    checkpoints: PathBuf,
    coming: VecDeque<Fault>,
    n_done: usize,
}

struct LocalNode {
    name: Name,
    process: AgentProcess,
    bad_gpus: BTreeSet<u32>,
}

impl Breaker {
    /// Finds the processes of the nodes. Faults count from time 0 of the trace, whose first job arrives at `begin`.
    pub(super) fn new(cluster: Arc<Cluster>, faults: Vec<Fault>, begin: Time, address: &str) -> Result<Self> {
        let (home, agents) = local_agents(address).context(
            "faults need a cluster that `rota up` started on this machine: its nodes are stopped and started",
        )?;
        let mut by_name: BTreeMap<String, AgentProcess> = agents.into_iter().collect();
        let mut nodes = BTreeMap::new();
        for node in cluster.nodes() {
            let process = by_name
                .remove(&node.name)
                .with_context(|| format!("node {} is not one that `rota up` started", node.name))?;
            let name = Name::new(node.name.as_str())?;
            nodes.insert(node.id, LocalNode { name, process, bad_gpus: BTreeSet::new() });
        }
        let coming = from_the_beginning(faults, begin);
        Ok(Breaker { cluster, nodes, checkpoints: home.join("checkpoints"), coming, n_done: 0 })
    }

    /// When something fails or returns next, in the time of the trace.
    pub(super) fn next_time(&self) -> Option<Time> {
        self.coming.front().map(|fault| fault.time)
    }

    /// Lets everything fail or return that is due.
    pub(super) fn break_what_is_due(&mut self, client: &mut Client, now: Time) -> Result<()> {
        while self.next_time().is_some_and(|time| time <= now) {
            let Some(fault) = self.coming.pop_front() else { break };
            self.apply(client, &fault)?;
            self.n_done += 1;
        }
        Ok(())
    }

    /// Brings everything back, and waits until the head knows.
    pub(super) fn mend(&mut self, client: &mut Client) -> Result<usize> {
        self.coming.clear();
        for node in self.nodes.values_mut() {
            node.bad_gpus.clear();
            node.write_bad_gpus()?;
            node.write_speed(1.0)?;
            if !node.process.is_alive() {
                node.process.start()?;
            }
        }
        let limit = Instant::now() + PATIENCE;
        while client.status()?.n_gpus_up < self.cluster.n_gpus() {
            if Instant::now() > limit {
                let lost = fetch_nodes(client)?.into_iter().filter(|node| node.n_gpus > 0);
                let states: Vec<String> =
                    lost.map(|node| format!("{} {:?}", node.name, node.state)).collect();
                bail!("the nodes are not all back after {PATIENCE:?}: {}", states.join(", "));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(self.n_done)
    }

    fn apply(&mut self, client: &mut Client, fault: &Fault) -> Result<()> {
        let checkpoints = self.checkpoints.clone();
        let Some(node) = self.nodes.get_mut(&fault.node) else { return Ok(()) };
        match fault.change {
            Change::NodeFails { loses_checkpoints } => {
                if loses_checkpoints {
                    lose_checkpoints(client, &checkpoints, &node.name)?;
                }
                node.process.kill()?;
                given_up(client, &node.name)
            }
            Change::NodeReturns if node.process.is_alive() => Ok(()),
            Change::NodeReturns => node.process.start(),
            Change::GpuFails { gpu, loses_checkpoints } => {
                if loses_checkpoints {
                    lose_checkpoints(client, &checkpoints, &node.name)?;
                }
                node.bad_gpus.insert(gpu);
                node.write_bad_gpus()
            }
            Change::GpuReturns { gpu } => {
                node.bad_gpus.remove(&gpu);
                node.write_bad_gpus()
            }
            Change::Slows { to } => node.write_speed(to),
        }
    }
}

impl LocalNode {
    fn write_bad_gpus(&self) -> Result<()> {
        let lines: String = self.bad_gpus.iter().map(|gpu| format!("{gpu} failed on demand\n")).collect();
        write_or_remove(&self.process.run_dir.join(rota_agent_files::BAD_GPUS), &lines)
    }

    fn write_speed(&self, speed: f64) -> Result<()> {
        let text = if speed < 1.0 { speed.to_string() } else { String::new() };
        write_or_remove(&self.process.run_dir.join(rota_agent_files::NODE_SPEED), &text)
    }
}

/// Names of the agent's files; the agent's own tests, and those of deployments, fail when they change.
mod rota_agent_files {
    pub(super) const BAD_GPUS: &str = "bad-gpus";
    pub(super) const NODE_SPEED: &str = "node-speed";
    pub(super) const LOST: &str = "lost";
    pub(super) const CHECKPOINT: &str = "emulated.json";
}

/// What has happened before the first job arrives counts only as far as it lasts.
fn from_the_beginning(faults: Vec<Fault>, begin: Time) -> VecDeque<Fault> {
    let (before, after): (Vec<Fault>, Vec<Fault>) = faults.into_iter().partition(|fault| fault.time <= begin);
    let mut last: BTreeMap<(NodeId, Option<u32>, bool), Fault> = BTreeMap::new();
    for fault in before {
        let key = match fault.change {
            Change::NodeFails { .. } | Change::NodeReturns => (fault.node, None, false),
            Change::GpuFails { gpu, .. } | Change::GpuReturns { gpu } => (fault.node, Some(gpu), false),
            Change::Slows { .. } => (fault.node, None, true),
        };
        last.insert(key, fault);
    }
    let lasts = |fault: &Fault| match fault.change {
        Change::NodeFails { .. } | Change::GpuFails { .. } => true,
        Change::Slows { to } => to < 1.0,
        Change::NodeReturns | Change::GpuReturns { .. } => false,
    };
    last.into_values().filter(lasts).chain(after).collect()
}

/// Tells the head that a node is gone and nothing runs there. It believes that as soon as it has noticed that the connection ended.
fn given_up(client: &mut Client, node: &Name) -> Result<()> {
    let limit = Instant::now() + PATIENCE;
    loop {
        match client.text(&FromUser::GiveUp { node: node.clone() }) {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > limit => return Err(error.context(format!("giving up {node}"))),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Deletes the checkpoints of the jobs on a node, and marks their folders.
fn lose_checkpoints(client: &mut Client, checkpoints: &Path, node: &Name) -> Result<()> {
    let view = fetch_nodes(client)?.into_iter().find(|view| view.name == *node);
    for job in view.map(|view| view.jobs).unwrap_or_default() {
        let folder = checkpoints.join(job.0.to_string());
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let mark = folder.join(rota_agent_files::LOST);
        std::fs::write(&mark, "").with_context(|| mark.display().to_string())?;
        write_or_remove(&folder.join(rota_agent_files::CHECKPOINT), "")?;
    }
    Ok(())
}

/// Writes a file whole; one without content is removed.
fn write_or_remove(path: &Path, text: &str) -> Result<()> {
    let done = match text {
        "" => match std::fs::remove_file(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other,
        },
        text => {
            let next = path.with_extension("next");
            std::fs::write(&next, text).and_then(|()| std::fs::rename(&next, path))
        }
    };
    done.with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_when_the_first_job_arrives_is_broken_at_once() {
        let at = |seconds: i64| Time(seconds * 1_000_000);
        let (one, two) = (NodeId(0), NodeId(1));
        let slow = |seconds, to| Fault { time: at(seconds), node: one, change: Change::Slows { to } };
        let faults = vec![
            Fault::down(at(1), one),
            Fault::up(at(2), one),
            slow(3, 0.5),
            slow(4, 0.7),
            Fault::down(at(5), two),
            Fault::up(at(20), two),
        ];
        let coming: Vec<Fault> = from_the_beginning(faults, at(10)).into();
        assert_eq!(coming, [slow(4, 0.7), Fault::down(at(5), two), Fault::up(at(20), two)]);
    }
}
