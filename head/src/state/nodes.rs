//! What agents say of their nodes: who joined, what it has, what is out of service, who is lost.

use rota_core::allocation::GpuSet;
use rota_core::cluster::MAX_GPUS_PER_NODE;
use rota_core::ids::NodeId;
use rota_core::resources::Host;
use rota_core::time::Span;
use rota_transport::message::{Attempt, Inventory, OnHeadLost};
use rota_transport::value::Name;

use super::{Blame, Moment, State};
use crate::record::{NodeHas, Record};

impl State {
    /// Compares what a node says it has and runs with what is known.
    pub(super) fn take_inventory(&mut self, moment: Moment, name: &Name, inventory: &Inventory) {
        let Some(node) = self.settle_node(moment, name, inventory) else { return };
        for info in &inventory.attempts {
            self.take_attempt(moment, node, info);
        }
        // A launch that the node does not know is gone, unless it was ordered only just now.
        for attempt in self.launches.on_node(node) {
            let is_there = inventory.attempts.iter().any(|info| info.attempt == attempt);
            let is_on_its_way = self.agents.get(name).is_some_and(|agent| agent.awaits_launch(attempt));
            if !is_there && !is_on_its_way {
                self.fail(moment, attempt, format!("{name} does not know it any more"), Blame::Nobody);
                self.rank_gone(attempt, node, false);
                self.conclude(moment, attempt);
            }
        }
    }

    /// A node as its agent describes it: new, back, or changed.
    fn settle_node(&mut self, moment: Moment, name: &Name, inventory: &Inventory) -> Option<NodeId> {
        let first = inventory.gpus.first();
        let has = NodeHas {
            gpu_type: first.map_or_else(String::new, |gpu| gpu.model.to_string()),
            n_gpus: inventory.gpus.len() as u32,
            gpu_mem_bytes: first.map_or(0, |gpu| gpu.mem_bytes),
            host: inventory.host.map_or(Host::NONE, |host| host.host()),
        };
        let known = self.agents.node_of(name);
        if known.is_none() && (1..=MAX_GPUS_PER_NODE).contains(&has.n_gpus) {
            let node = NodeId::from(self.cluster.nodes().len());
            self.agents.join(name, node);
            let (name, rack) = (name.to_string(), inventory.rack);
            self.record(moment, Record::NodeJoined { node, name, rack, has: has.clone() });
        }
        let node = self.agents.node_of(name);
        let expected =
            node.and_then(|node| self.cluster.scheduler().cluster().node(node)).map_or(0, |n| n.n_gpus);
        let agent = self.agents.get_mut(name)?;
        agent.gave_inventory();
        if has.n_gpus != expected {
            let reason = format!("has {} GPUs, {expected} were expected", has.n_gpus);
            agent.set_reason(reason.clone());
            if let Some(node) = node.filter(|node| self.cluster.is_up(*node)) {
                self.record(moment, Record::NodeLost { node, reason: format!("{name} {reason}") });
            }
            return node;
        }
        let node = node?;
        let is_away = !self.cluster.is_up(node) || self.cluster.is_cut_off(node);
        if is_away && !self.cluster.is_drained(node) {
            self.record(moment, Record::NodeReturned { node });
        }
        for (gpu, info) in (0..expected).zip(&inventory.gpus) {
            let reason = (!info.is_healthy).then_some("its agent says that it cannot be used");
            self.gpu_is(moment, name, node, gpu, reason);
        }
        Some(node)
    }

    /// A GPU is out of service for a reason, or in service. Only a change is recorded.
    pub(super) fn gpu_is(
        &mut self,
        moment: Moment,
        name: &Name,
        node: NodeId,
        gpu: u32,
        reason: Option<&str>,
    ) {
        let bad = self.cluster.scheduler().nodes().bad_gpus.get(&node);
        match (reason, bad.is_some_and(|bad| bad.contains(gpu))) {
            (Some(reason), false) => {
                let reason = reason.to_owned();
                self.record(moment, Record::GpuLost { node, gpu, reason });
            }
            (None, true) => self.record(moment, Record::GpuReturned { node, gpu }),
            _ => return,
        }
        let bad = self.cluster.scheduler().nodes().bad_gpus.get(&node).copied();
        let numbers: Vec<_> = bad.into_iter().flat_map(GpuSet::iter).map(|gpu| gpu.to_string()).collect();
        if let Some(agent) = self.agents.get_mut(name) {
            agent.set_reason(match (numbers.as_slice(), reason) {
                ([], _) => String::new(),
                ([one], Some(reason)) => format!("GPU {one} is out of service: {reason}"),
                _ => format!("GPUs {} are out of service", numbers.join(", ")),
            });
        }
    }

    /// An agent's lease is over: nothing is started on its node, and what may run there is left alone.
    pub(super) fn cut_off(&mut self, moment: Moment, name: &Name) {
        let terms = self.agents.terms();
        let Some(agent) = self.agents.get_mut(name) else { return };
        let until = match terms.stop_after {
            Some(after) if after > terms.lease => {
                format!(", given up, or away for {} s", after.as_secs_f64())
            }
            Some(_) => " or has stopped them".to_owned(),
            None => " or given up".to_owned(),
        };
        let reason = format!("its lease is over; its jobs are not started elsewhere until it is back{until}");
        agent.lost_its_lease(moment.now, reason);
        let Some(node) = agent.node() else { return };
        if self.cluster.is_up(node) && !self.cluster.is_cut_off(node) {
            let reason = format!("{name} did not answer for the whole of its lease");
            self.record(moment, Record::NodeCutOff { node, reason });
        }
        self.copies_lost(moment, node);
        for attempt in self.launches.unordered_on(node) {
            self.launches.remove(attempt);
            let (reason, is_failure) = (format!("{name} cannot be reached"), false);
            let Attempt { job, incarnation } = attempt;
            let Some(known) = self.cluster.job(job) else { continue };
            let (done, not_before) = (known.done, None);
            self.record(
                moment,
                Record::JobRequeued { job, incarnation, done, reason, is_failure, not_before },
            );
        }
    }

    /// A node that is cut off is lost when its launches have stopped by themselves, even by its clock.
    pub(super) fn lose_if_over(&mut self, moment: Moment, name: &Name) {
        let Some(agent) = self.agents.get(name).filter(|agent| agent.is_cut_off()) else { return };
        let on_node = agent.node().map(|node| self.launches.on_node(node)).unwrap_or_default();
        let grace =
            |attempt: &Attempt| self.cluster.job(attempt.job).map(|job| job.request.start.grace.span());
        let grace = on_node.iter().filter_map(grace).max().unwrap_or(Span::ZERO);
        let over = agent.last_heard().zip(self.agents.terms().gone_after(grace));
        if over.is_some_and(|(heard, after)| moment.real >= heard + after) {
            self.lose(moment, name, "did not answer for so long that its jobs have stopped there", false);
        }
    }

    /// A person says that nothing runs on a node any more.
    pub(crate) fn give_up(&mut self, moment: Moment, name: &Name, user: &Name) {
        self.lose(moment, name, &format!("was given up by {user}"), true);
    }

    /// What a node ran is gone, except, unless the node was given up, what its owner wanted kept without a head. As long as
    /// there is something of that kind, the node stays cut off.
    fn lose(&mut self, moment: Moment, name: &Name, why: &str, with_kept: bool) {
        let Some(agent) = self.agents.get_mut(name) else { return };
        agent.is_lost(moment.now, why.to_owned());
        let Some(node) = agent.node() else { return };
        let reason = format!("{name} {why}");
        let is_kept = |attempt: &Attempt| {
            let job = self.cluster.job(attempt.job);
            job.is_some_and(|job| job.request.start.on_head_lost == OnHeadLost::Keep)
        };
        let (kept, gone): (Vec<_>, Vec<_>) =
            self.launches.on_node(node).into_iter().partition(|attempt| !with_kept && is_kept(attempt));
        for attempt in gone {
            self.rank_gone(attempt, node, false);
            if !kept.is_empty() {
                self.fail(moment, attempt, reason.clone(), Blame::Nobody);
            }
        }
        if self.cluster.is_up(node) && kept.is_empty() {
            self.record(moment, Record::NodeLost { node, reason });
        }
        for attempt in self.launches.attempts() {
            self.conclude(moment, attempt);
        }
    }
}
