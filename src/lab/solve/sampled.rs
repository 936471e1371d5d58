//! Wraps a policy to estimate, at a few of its decisions, how much speed its plans leave on the table.
//!
//! Decisions are sampled at equal distances. When there are many samples, every second one is dropped and the distance is
//! doubled: a run of any length costs a few dozen samples, spread evenly over it, and no clock influences which.

use std::collections::BTreeMap;

use rota_core::cluster::Cluster;
use rota_core::ids::NodeId;
use rota_core::plan::Plan;
use rota_core::policy::{Policy, PolicyError};
use rota_core::snapshot::Snapshot;
use rota_core::time::Time;
use rota_scripts::optimum::Relaxation;

use super::given;
use crate::results::{ModelLoss, SpeedGap};

/// The initial distance, in decisions.
const FIRST_STRIDE: u64 = 16;
/// With this many samples, every second one is dropped.
const MOST_LOOKS: usize = 32;
/// How many models are named, the largest loss first.
const MOST_MODELS: usize = 3;

/// Wraps a policy and samples some of its decisions.
pub struct Sampled<'a> {
    inner: &'a mut dyn Policy,
    relaxation: Relaxation,
    n_decisions: u64,
    stride: u64,
    looks: Vec<Seen>,
    last: Time,
}

/// One sample.
struct Seen {
    decision: u64,
    time: Time,
    reached: f64,
    bound: f64,
    /// Speed lost, by model and node.
    losses: BTreeMap<(String, NodeId), f64>,
}

impl<'a> Sampled<'a> {
    /// Watches a policy.
    pub fn new(inner: &'a mut dyn Policy) -> Self {
        Sampled {
            inner,
            relaxation: Relaxation::default(),
            n_decisions: 0,
            stride: FIRST_STRIDE,
            looks: Vec::new(),
            last: Time::ZERO,
        }
    }

    /// What was left on the table over the run; `None` when no sample was possible. A sample counts for the time
    /// until the next one.
    pub fn gap(&self, cluster: &Cluster) -> Option<SpeedGap> {
        let ends = self.looks.iter().skip(1).map(|seen| seen.time).chain([self.last]);
        let mut weights: Vec<f64> =
            self.looks.iter().zip(ends).map(|(seen, end)| (end - seen.time).as_secs_f64()).collect();
        if weights.iter().sum::<f64>() <= 0.0 {
            weights.fill(1.0);
        }
        let (mut reached, mut bound) = (0.0, 0.0);
        let mut losses: BTreeMap<&str, BTreeMap<NodeId, f64>> = BTreeMap::new();
        for (seen, weight) in self.looks.iter().zip(weights) {
            reached += weight * seen.reached;
            bound += weight * seen.bound;
            for ((model, node), loss) in &seen.losses {
                *losses.entry(model).or_default().entry(*node).or_default() += weight * loss;
            }
        }
        (bound > 0.0).then(|| SpeedGap {
            lost: (1.0 - reached / bound).max(0.0),
            decisions: self.looks.len() as u64,
            models: models(&losses, cluster),
        })
    }

    fn look(&mut self, snapshot: &Snapshot, plan: &Plan) {
        let Some(look) = self.relaxation.look(snapshot, &given(snapshot, plan)) else { return };
        let mut losses: BTreeMap<(String, NodeId), f64> = BTreeMap::new();
        for loss in look.losses {
            let model = &snapshot.jobs.spec(loss.row as usize).profile.name;
            *losses.entry((model.clone(), loss.node)).or_default() += loss.speed;
        }
        self.looks.push(Seen {
            decision: self.n_decisions,
            time: snapshot.now,
            reached: look.reached,
            bound: look.bound,
            losses,
        });
        if self.looks.len() == MOST_LOOKS {
            self.stride *= 2;
            self.looks.retain(|seen| seen.decision.is_multiple_of(self.stride));
        }
    }
}

/// The models that lose most, as parts of the whole loss; a node is named if most of a model's loss is there.
fn models(losses: &BTreeMap<&str, BTreeMap<NodeId, f64>>, cluster: &Cluster) -> Vec<ModelLoss> {
    let sum = |nodes: &BTreeMap<NodeId, f64>| nodes.values().sum::<f64>();
    let total: f64 = losses.values().map(sum).sum();
    let name = |node: NodeId| cluster.node(node).map_or_else(|| node.to_string(), |node| node.name.clone());
    let mut models: Vec<ModelLoss> = losses
        .iter()
        .map(|(model, nodes)| {
            let of_model = sum(nodes);
            let worst = nodes.iter().find(|(_, loss)| **loss > of_model / 2.0);
            ModelLoss {
                model: (*model).to_owned(),
                part: if total > 0.0 { of_model / total } else { 0.0 },
                node: worst.map(|(node, _)| name(*node)),
            }
        })
        .collect();
    models.sort_by(|a, b| b.part.total_cmp(&a.part).then_with(|| a.model.cmp(&b.model)));
    models.truncate(MOST_MODELS);
    models
}

impl Policy for Sampled<'_> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let plan = self.inner.decide(snapshot)?;
        if self.n_decisions.is_multiple_of(self.stride) {
            self.look(snapshot, &plan);
        }
        self.n_decisions += 1;
        self.last = snapshot.now;
        Ok(plan)
    }

    fn memory(&self) -> String {
        self.inner.memory()
    }
}
